"""Presets; each reproduces a public implementation."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from detap.protocols.detection import Protocol
from detap.protocols.fields import (
    ALL_AREAS,
    ANY_AREA,
    COCO_AREAS,
    KITTI_LEVELS,
    PROPOSAL_AREAS,
    SIGMAS,
    linspace,
)

COCO_MAX_IOU_THRESHOLD = 1 - 1e-10
"""Upper bound of IoU thresholds in pycocotools, so that boxes can match at threshold 1."""

COCO_PRECISION_EPS = 2.0**-52
"""numpy.spacing(1), added by pycocotools to tp + fp: 1/1 becomes 0.9999999999999998."""

_COCO_THRESHOLDS = linspace(0.5, 0.95, 10)
_PERCENTS = tuple(percent / 100 for percent in range(50, 100, 5))

_TIES = "ties in its unstable sort"
_SUMS = "order of summation"
_SUMMED: dict[str, Any] = {"tolerance": 1e-12, "residue": _SUMS}
_CITYPERSONS = "cvgroup-njust/CityPersons 839c22f, eval_MR_multisetup.py, setup"
_AS_COCO: dict[str, Any] = {
    "iou_thresholds": _COCO_THRESHOLDS,
    "candidate": "best-unmatched",
    "tie_break": "image",
}
_CROWD: dict[str, Any] = {"ignore_flags": ("crowd",), "crowd_flags": ("crowd",)}


_CHANGES: dict[str, tuple[str, dict[str, Any]]] = {}


def _preset(name: str, base: str = "", **changes: Any) -> None:
    """Declare a preset: the changed fields of another one, or of the defaults."""
    _CHANGES[name] = base, changes


_preset(
    "voc2007",
    inclusive_pixels=True,
    ignore_flags=("difficult",),
    interpolation="11-point",
    recall_grid="matlab",
    primary_metric="mAP",
    source="VOC 2007 development kit, VOCevaldet.m and VOCap.m",
    residue="its MATLAB code was read, not run",
)
_preset(
    "voc2012",
    "voc2007",
    interpolation="all-point",
    recall_grid="linspace",
    source="VOC 2010-2012 development kits, VOCevaldet.m and VOCap.m",
)
_preset(
    "voc2007-py",
    "voc2007",
    strict_iou=True,
    recall_grid="arange",
    source="py-faster-rcnn, lib/datasets/voc_eval.py with use_07_metric=True",
    tolerance=1e-7,
    residue=_TIES,
)
_preset(
    "voc2012-py",
    "voc2007-py",
    interpolation="all-point",
    recall_grid="linspace",
    source="py-faster-rcnn, lib/datasets/voc_eval.py with use_07_metric=False",
)
_preset(
    "coco",
    **_AS_COCO,
    **_CROWD,
    max_iou_threshold=COCO_MAX_IOU_THRESHOLD,
    equal_iou="last",
    area_ranges=COCO_AREAS,
    max_dets=(1, 10, 100),
    interpolation="101-point",
    precision_eps=COCO_PRECISION_EPS,
    source="pycocotools 2.0.11, COCOeval with iouType bbox",
    tolerance=0.0,
)
_preset(
    "coco-strict",
    "coco",
    annotation_id_zero="unmatched",
    source="pycocotools 2.0.11, COCOeval with iouType bbox and annotation id 0",
)
_preset(
    "coco-segm", "coco", iou_type="segm", source="pycocotools 2.0.11, COCOeval with iouType segm"
)
_preset(
    "coco-boundary",
    "coco",
    iou_type="boundary",
    ignore_flags=("crowd", "ignore"),
    source="bowenc0221/boundary-iou-api 37d2558, COCOeval with iouType boundary",
)
_preset(
    "coco-keypoints",
    "coco",
    iou_type="keypoints",
    sigmas=SIGMAS["coco"],
    ignore_flags=("crowd", "no_keypoints"),
    area_ranges=(COCO_AREAS[0], *COCO_AREAS[2:]),
    max_dets=(20,),
    source="pycocotools 2.0.11, COCOeval with iouType keypoints",
)
for _part, _keys, _sigmas in (
    ("", ("keypoints", "foot_kpts", "face_kpts", "lefthand_kpts", "righthand_kpts"), "wholebody"),
    ("-body", ("keypoints",), "coco"),
    ("-foot", ("foot_kpts",), "foot"),
    ("-face", ("face_kpts",), "face"),
    ("-lefthand", ("lefthand_kpts",), "hand"),
    ("-righthand", ("righthand_kpts",), "hand"),
):
    _preset(
        f"coco-wholebody{_part}",
        "coco-keypoints",
        keypoint_keys=_keys,
        result_score_key=f"{_part.removeprefix('-') or 'wholebody'}_score",
        sigmas=SIGMAS[_sigmas],
        source=f"xtcocotools 1.14.3, COCOeval with iouType keypoints_{_part[1:] or 'wholebody'}",
        **_SUMMED,
    )
_preset(
    "crowdpose",
    "coco-keypoints",
    sigmas=SIGMAS["crowdpose"],
    area_ranges=(ALL_AREAS,),
    area_source="0.53-box",
    source="xtcocotools 1.14.3, COCOeval with iouType keypoints_crowd and without areas",
)
_preset(
    "coco-polygon",
    "coco",
    iou_type="polygon",
    source="pycocotools 2.0.11, COCOeval with IoUs of quadrilaterals by shapely 2.2.0",
    tolerance=1e-9,
    residue="rounding of the IoU",
)
_preset(
    "lvis",
    "coco",
    ignore_flags=("ignore",),
    crowd_flags=(),
    max_dets=(300,),
    max_dets_scope="image",
    zero_area="drop",
    verified="listed",
    not_exhaustive="ignore",
    class_groups="frequency",
    source="lvis 0.5.3, LVISEval with iou_type bbox",
)
_preset("lvis-segm", "lvis", iou_type="segm", source="lvis 0.5.3, LVISEval with iou_type segm")
_preset(
    "lvis-fixed",
    "lvis",
    max_dets=(10000,),
    max_dets_scope="dataset",
    source="achalddave/large-vocab-devil 87dcb5e, scripts/evaluate_ap_fixed.py, over lvis 0.5.3",
    residue="ties at the limit, which it breaks by file order",
)
_preset(
    "lvis-fixed-segm",
    "lvis-fixed",
    iou_type="segm",
    detection_area="pixels",
    source="achalddave/large-vocab-devil 87dcb5e, scripts/evaluate_ap_fixed.py, masks without "
    "boxes",
)
_preset(
    "dota",
    "voc2007-py",
    iou_type="polygon",
    inclusive_pixels=False,
    absent_class="zero",
    source="CAPTAIN-WHU/DOTA_devkit 9938855, dota_evaluation_task1.py",
    tolerance=1e-9,
    residue="rounding of its IoU, and " + _TIES,
)
_preset(
    "dota-allpoint",
    "dota",
    interpolation="all-point",
    recall_grid="linspace",
    absent_class="undefined",
    source="CAPTAIN-WHU/DOTA_devkit 9938855, with use_07_metric=False",
)
_preset(
    "kitti",
    strict_iou=True,
    ignore_flags=("difficult",),
    crowd_flags=("difficult",),
    area_ranges=KITTI_LEVELS,
    interpolation="40-point",
    recall_grid="fortieths",
    matching="kitti",
    class_iou=(("Car", 0.7), ("Pedestrian", 0.5), ("Cyclist", 0.5)),
    neighbor_classes=(("Car", "Van"), ("Pedestrian", "Person_sitting"), ("*", "DontCare")),
    min_height=(25, 40, 25),
    max_occlusion=(1, 0, 2),
    max_truncation=(0.3, 0.15, 0.5),
    primary_metric="mAP",
    source="KITTI 2D development kit, evaluate_object.cpp, through "
    "traveller59/kitti-object-eval-python 9f385f8",
    **_SUMMED,
)
_preset(
    "kitti-r11",
    "kitti",
    interpolation="11-point",
    recall_grid="arange",
    source="traveller59/kitti-object-eval-python 9f385f8, 11 points, used until October 2019",
)
_preset(
    "proposals",
    "coco",
    area_ranges=PROPOSAL_AREAS,
    max_dets=(100, 1000),
    crowd_flags=(),
    class_agnostic=True,
    matching="by-iou",
    primary_metric="AR",
    source="Detectron2, evaluation/coco_evaluation.py",
    tolerance=None,
    residue="float32 there, images without proposals excluded there",
)
_preset(
    "torchmetrics",
    "coco",
    iou_dtype="float32",
    recall_grid="float32",
    source="torchmetrics 1.9, detection.MeanAveragePrecision with iou_type bbox",
    tolerance=1e-6,
    residue="its values are float32; ties rank in update order, here by image id",
)
_preset(
    "ultralytics",
    **_AS_COCO,
    max_dets=(300,),
    max_dets_scope="image",
    interpolation="trapezoid-101",
    min_score=0.001,
    primary_metric="mAP",
    source="Ultralytics 8.4.190, val: BaseValidator.match_predictions and ap_per_class",
    tolerance=1e-6,
    residue=f"its IoU is float32, and {_TIES}",
)
_preset(
    "ultralytics-pose",
    "coco-keypoints",
    sigmas=(),
    area_source="0.53-box",
    source="Ultralytics 8.4.190, OKS of PoseValidator; AP of pycocotools 2.0.11, COCOeval",
    tolerance=0.0,
)
_preset(
    "detectron2-voc",
    "voc2007-py",
    iou_thresholds=_PERCENTS,
    score_decimals=3,
    box_decimals=1,
    source="Detectron2 02b5c4e, evaluation/pascal_voc_evaluation.py for VOC 2007",
    tolerance=5e-5,
    residue=_TIES,
)
_preset(
    "tidecv-ap",
    iou_thresholds=_PERCENTS,
    candidate="best-unmatched",
    **_CROWD,
    max_dets=(100,),
    max_dets_scope="image",
    tie_break="image",
    interpolation="101-point",
    recall_grid="hundredths",
    absent_class="zero-if-detected",
    source="tidecv 1.0.1, TIDE.evaluate_range with mode TIDE.BOX",
    **_SUMMED,
)
_preset(
    "globox",
    **_AS_COCO,
    equal_iou="last",
    area_ranges=(ALL_AREAS,),
    area_source="box",
    max_dets=(100,),
    interpolation="101-point",
    source="globox 2.9.0, COCOEvaluator",
    **_SUMMED,
)
_preset(
    "padilla",
    "voc2012",
    ignore_flags=(),
    source="rafaelpadilla/object_detection_metrics, pascal_voc_evaluator.py, all points",
    **_SUMMED,
)
_preset("cartucho", "voc2012", source="Cartucho/mAP, main.py", **_SUMMED)
_preset(
    "mmdet-voc",
    "voc2007",
    recall_grid="arange",
    source="mmdetection 3.3, VOCMetric with eval_mode 11points",
    tolerance=1e-5,
    residue=f"float32, and {_TIES}",
)
_preset(
    "tf-pascal",
    "voc2012",
    inclusive_pixels=False,
    source="TensorFlow Object Detection API 2.8.0, PascalDetectionEvaluator",
    tolerance=1e-5,
    residue="float32, and ties, which it reverses",
)
_preset(
    "open-images-v2",
    group_of_weight=0,
    degenerate_boxes="drop",
    primary_metric="mAP",
    source="TensorFlow Object Detection API 2.8.0, OpenImagesDetectionEvaluator",
    tolerance=1e-12,
    residue="ties, which its unstable sort reverses",
)
_preset(
    "open-images-challenge",
    "open-images-v2",
    group_of_weight=1,
    verified="listed",
    source="TensorFlow Object Detection API 2.8.0, OpenImagesDetectionChallengeEvaluator",
)
_preset(
    "caltech",
    "citypersons",
    ignore_where="height<50 or vis_ratio<0.65 or x1<5 or y1<5 or x2>635 or y2>475",
    max_dets=(None,),
    mr_points="exact",
    source="Caltech Pedestrian toolbox 3.0.0, dbEval.m, Reasonable",
    residue="its MATLAB code, which also sets widths to 0.41 of the height, was read, not run",
)
_preset(
    "citypersons",
    "coco",
    iou_thresholds=(0.5,),
    max_iou_threshold=1.0,
    ignore_flags=("crowd", "ignore"),
    crowd_flags=("crowd", "ignore"),
    ignore_where="height<50 or vis_ratio<0.65",
    drop_where="height<40",
    area_ranges=(ANY_AREA,),
    max_dets=(1000,),
    metrics=("MR-2", "MR-4"),
    source=f"{_CITYPERSONS} Reasonable",
    tolerance=None,
    residue="citypersons-script; here the miss rate is 1 where no point is low enough",
)
for _name, _setup, _ignored, _dropped in (
    (
        "small",
        "Reasonable_small",
        "height<50 or height>75 or vis_ratio<0.65",
        "height<40 or height>=93.75",
    ),
    ("heavy", "Reasonable_occ=heavy", "height<50 or vis_ratio<0.2 or vis_ratio>0.65", "height<40"),
    ("all", "All", "height<20 or vis_ratio<0.2", "height<16"),
):
    _preset(
        f"citypersons-{_name}",
        "citypersons",
        ignore_where=_ignored,
        drop_where=_dropped,
        source=f"{_CITYPERSONS} {_setup}",
    )
_preset("citypersons-script", "citypersons", mr_rule="at-most-or-last", **_SUMMED)
_preset(
    "kaist",
    "citypersons",
    ignore_where="height<55 or occlusion>1 or x1<5 or y1<5 or x2>635 or y2>507",
    drop_where="",
    source="sejong-rcv/INSANet 167237e, evaluation_script.py, setup Reasonable",
    residue="kaist-script; here people on images without detections count as missed",
)
_preset("kaist-script", "kaist", empty_images="exclude", mr_rule="at-most-or-last", **_SUMMED)
_preset(
    "crowdhuman",
    "citypersons",
    strict_iou=True,
    equal_iou="first",
    ignore_where="",
    drop_where="",
    max_dets=(None,),
    mr_rule="at-least",
    source="Purkialo/CrowdDet fa0b55b, lib/evaluate/APMRToolkits",
    tolerance=1e-12,
    residue="its IoU has 1e-6 in the denominator, and its boxes are clipped to the image",
)
_preset(
    "wider-easy",
    inclusive_pixels=True,
    images_without_ground_truth="ignore",
    primary_metric="mAP",
    metrics=("AP@thresholds=1000",),
    ignore_where="easy==0",
    source="derronqi/yolov7-face 74a2a1d, widerface_evaluate/evaluation.py, for AP@thresholds=1000",
    **_SUMMED,
)
_preset("wider-medium", "wider-easy", ignore_where="medium==0")
_preset("wider-hard", "wider-easy", ignore_where="hard==0")
_preset(
    "visdrone",
    **_AS_COCO,
    **_CROWD,
    equal_iou="last",
    drop_in_regions=(("ignored regions", 0.5),),
    excluded_classes=("ignored regions", "others"),
    max_dets=(1, 10, 100, 500),
    max_dets_scope="image",
    max_dets_order="file",
    recall_base="all",
    class_mean="images",
    source="VisDrone/VisDrone2018-DET-toolkit, evalDET.m, as fractions",
    tolerance=1e-11,
    residue=_SUMS,
)


@cache
def _made(name: str) -> Protocol:
    base, changes = _CHANGES[name]
    return replace(_made(base) if base else Protocol(name=name), name=name, **changes)


class _Presets(Mapping[str, Protocol]):
    """The presets, each made when it is first read: all take 7 ms."""

    def __getitem__(self, name: str) -> Protocol:
        return _made(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_CHANGES)

    def __len__(self) -> int:
        return len(_CHANGES)

    def __repr__(self) -> str:
        return repr(dict(self))


PRESETS: Mapping[str, Protocol] = _Presets()
"""The presets by name."""

Protocol.presets = PRESETS


def protocol(name: str) -> Protocol:
    """Return a preset by name.

    Raises
    ------
    UsageError
        If there is none; the message suggests similar names.
    """
    return Protocol.preset(name)
