"""The presets: each reproduces one public implementation."""

from collections.abc import Mapping
from dataclasses import replace

from detap.protocols.axes import COCO_AREAS, KITTI_LEVELS, PROPOSAL_AREAS, linspace
from detap.protocols.detection import Protocol

COCO_IOU_CEILING = 1 - 1e-10
"""pycocotools starts its search from min(t, 1 - 1e-10), so that a threshold of 1 can be met."""

COCO_PRECISION_GUARD = 2.0**-52
"""numpy.spacing(1), which pycocotools adds to tp + fp: 1/1 becomes 0.9999999999999998 there."""

_VOC2007 = Protocol(
    name="voc2007",
    pixel_edge=True,
    neutral=("difficult",),
    interpolation="11-point",
    recall_grid="matlab",
    headline="mAP",
    source="VOCevaldet.m and VOCap.m of the PASCAL VOC 2007 development kit",
)
_VOC2012 = replace(
    _VOC2007,
    name="voc2012",
    interpolation="all-point",
    recall_grid="linspace",
    source="VOCevaldet.m and VOCap.m of the PASCAL VOC 2010-2012 development kits",
)
_COCO = Protocol(
    name="coco",
    iou_thresholds=linspace(0.5, 0.95, 10),
    iou_ceiling=COCO_IOU_CEILING,
    candidate="best-free",
    equal_iou="last",
    neutral=("crowd",),
    absorbing=("crowd",),
    area_ranges=COCO_AREAS,
    detection_limits=(1, 10, 100),
    ties="image",
    interpolation="101-point",
    recall_grid="linspace",
    precision_guard=COCO_PRECISION_GUARD,
    source="pycocotools 2.0.11, COCOeval with iouType bbox",
)
_KITTI = Protocol(
    name="kitti",
    strict_iou=True,
    neutral=("difficult",),
    absorbing=("difficult",),
    area_ranges=KITTI_LEVELS,
    interpolation="40-point",
    recall_grid="fortieths",
    pairing="ground-truth",
    class_iou=(("Car", 0.7), ("Pedestrian", 0.5), ("Cyclist", 0.5)),
    neighbour_classes=(("Car", "Van"), ("Pedestrian", "Person_sitting"), ("*", "DontCare")),
    height_min=(25, 40, 25),
    occlusion_max=(1, 0, 2),
    truncation_max=(0.3, 0.15, 0.5),
    headline="mAP",
    source="evaluate_object.cpp of the KITTI development kit, in 2D, through "
    "traveller59/kitti-object-eval-python 9f385f8",
)

Protocol.presets |= {
    rules.name: rules
    for rules in (
        _VOC2007,
        _VOC2012,
        replace(
            _VOC2007,
            name="voc2007-py",
            strict_iou=True,
            recall_grid="arange",
            source="py-faster-rcnn, lib/datasets/voc_eval.py with use_07_metric=True",
        ),
        replace(
            _VOC2012,
            name="voc2012-py",
            strict_iou=True,
            source="py-faster-rcnn, lib/datasets/voc_eval.py with use_07_metric=False",
        ),
        _COCO,
        replace(
            _COCO,
            name="coco-strict",
            id_zero="no-match",
            source="pycocotools 2.0.11, COCOeval with iouType bbox, its annotation id 0 included",
        ),
        _KITTI,
        replace(
            _KITTI,
            name="kitti-r11",
            interpolation="11-point",
            recall_grid="arange",
            source="the same, as it was until October 2019",
        ),
        replace(
            _COCO,
            name="proposals",
            area_ranges=PROPOSAL_AREAS,
            detection_limits=(100, 1000),
            absorbing=(),
            class_agnostic=True,
            pairing="coverage",
            headline="AR",
            source="Detectron2, evaluation/coco_evaluation.py, with images without proposals "
            "counted and in float64",
        ),
    )
}

PRESETS: Mapping[str, Protocol] = Protocol.presets
"""The presets by name."""


def protocol(name: str) -> Protocol:
    """Return the preset of that name.

    Raises
    ------
    UsageError
        Where there is none; the message lists near ones.
    """
    return Protocol.preset(name)
