"""Sizes of the workloads."""

from dataclasses import dataclass, replace
from typing import Literal

Digits = Literal["rounded", "full"]
IouType = Literal["bbox", "segm", "keypoints"]
SEED = 20260


@dataclass(frozen=True, slots=True)
class CocoShape:
    """Size of a COCO workload, and number format of its detections.

    Attributes
    ----------
    digits : {"rounded", "full"}
        Coordinates to 3 decimals and scores to 5, as YOLO's tools write them (about 100 bytes a
        record), or every digit of a float32, as torch code without rounding does (about 160).
    iou_type : {"bbox", "segm", "keypoints"}
        IoU type, as in pycocotools.
    boxed : bool
        If True, masks in the results also have the detector's box.
    """

    name: str
    images: int
    ground_truths: int
    classes: int
    detections: int
    digits: Digits = "rounded"
    iou_type: IouType = "bbox"
    boxed: bool = True

    @property
    def truth_name(self) -> str:
        what = "person-keypoints" if self.iou_type == "keypoints" else "instances"
        return f"{what}-{self.images}-{self.ground_truths}-{self.classes}"


@dataclass(frozen=True, slots=True)
class VocShape:
    """Size of a VOC workload."""

    name: str
    images: int
    objects: int
    classes: int
    detections: int


COCO_SHAPES = {
    shape.name: shape
    for shape in (
        CocoShape("1k", 100, 736, 80, 1_000),
        CocoShape("48k", 5_000, 36_781, 80, 48_000),
        CocoShape("500k", 5_000, 36_781, 80, 500_000),
        CocoShape("500k-full", 5_000, 36_781, 80, 500_000, "full"),
        CocoShape("2M", 40_000, 600_000, 365, 2_000_000),
        CocoShape("5M", 80_000, 1_000_000, 365, 5_000_000),
        CocoShape("1230-classes", 2_000, 19_540, 1_230, 60_000),
        CocoShape("masks", 5_000, 36_781, 80, 100_000, iou_type="segm"),
        CocoShape("masks-alone", 5_000, 36_781, 80, 100_000, iou_type="segm", boxed=False),
        CocoShape("keypoints", 5_000, 11_004, 1, 50_000, iou_type="keypoints"),
    )
}
VOC_SHAPE = VocShape("voc", 4_952, 14_976, 20, 111_000)


def coco_shape(name: str) -> CocoShape:
    """Return the workload of that name.

    ``detections-N`` are the images and ground truths of COCO's size with N detections; ``images-N``
    are N images with as many ground truths each as COCO's have, and 50 detections each.
    """
    series, _, number = name.partition("-")
    if name in COCO_SHAPES:
        return COCO_SHAPES[name]
    if series == "detections":
        return replace(COCO_SHAPES["500k"], name=name, detections=int(number))
    if series == "images":
        n = int(number)
        return CocoShape(name, n, round(36_781 / 5_000 * n), 80, 50 * n)
    raise KeyError(name)
