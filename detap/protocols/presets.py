"""Presets; each reproduces a public implementation."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

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

_TIES = "ties in its unstable sort"
_FLOAT32 = "float32"
_SUMS = "order of summation"

_VOC2007 = Protocol(
    name="voc2007",
    inclusive_pixels=True,
    ignore_flags=("difficult",),
    interpolation="11-point",
    recall_grid="matlab",
    primary_metric="mAP",
    source="VOC 2007 development kit, VOCevaldet.m and VOCap.m",
    residue="its MATLAB code was read, not run",
)
_VOC2012 = replace(
    _VOC2007,
    name="voc2012",
    interpolation="all-point",
    recall_grid="linspace",
    source="VOC 2010-2012 development kits, VOCevaldet.m and VOCap.m",
)
_VOC2007_PY = replace(
    _VOC2007,
    name="voc2007-py",
    strict_iou=True,
    recall_grid="arange",
    source="py-faster-rcnn, lib/datasets/voc_eval.py with use_07_metric=True",
    tolerance=1e-7,
    residue=_TIES,
)
_COCO = Protocol(
    name="coco",
    iou_thresholds=_COCO_THRESHOLDS,
    max_iou_threshold=COCO_MAX_IOU_THRESHOLD,
    candidate="best-unmatched",
    equal_iou="last",
    ignore_flags=("crowd",),
    crowd_flags=("crowd",),
    area_ranges=COCO_AREAS,
    max_dets=(1, 10, 100),
    tie_break="image",
    interpolation="101-point",
    recall_grid="linspace",
    precision_eps=COCO_PRECISION_EPS,
    source="pycocotools 2.0.11, COCOeval with iouType bbox",
    tolerance=0.0,
)
_COCO_KEYPOINTS = replace(
    _COCO,
    name="coco-keypoints",
    iou_type="keypoints",
    sigmas=SIGMAS["coco"],
    ignore_flags=("crowd", "no_keypoints"),
    area_ranges=(COCO_AREAS[0], *COCO_AREAS[2:]),
    max_dets=(20,),
    source="pycocotools 2.0.11, COCOeval with iouType keypoints",
)
_LVIS = replace(
    _COCO,
    name="lvis",
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
_LVIS_FIXED = replace(
    _LVIS,
    name="lvis-fixed",
    max_dets=(10000,),
    max_dets_scope="dataset",
    source="achalddave/large-vocab-devil 87dcb5e, scripts/evaluate_ap_fixed.py, over lvis 0.5.3",
    residue="ties at the limit, which it breaks by file order",
)
_KITTI = Protocol(
    name="kitti",
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
    tolerance=1e-12,
    residue=_SUMS,
)

_DOTA = Protocol(
    name="dota",
    iou_type="polygon",
    strict_iou=True,
    ignore_flags=("difficult",),
    interpolation="11-point",
    recall_grid="arange",
    absent_class="zero",
    primary_metric="mAP",
    source="CAPTAIN-WHU/DOTA_devkit 9938855, dota_evaluation_task1.py",
    tolerance=1e-9,
    residue="rounding of its IoU, and " + _TIES,
)

_OPEN_IMAGES = Protocol(
    name="open-images-v2",
    group_of_weight=0,
    degenerate_boxes="drop",
    primary_metric="mAP",
    source="TensorFlow Object Detection API 2.8.0, OpenImagesDetectionEvaluator",
    tolerance=1e-12,
    residue="ties, which its unstable sort reverses",
)

_WIDER = Protocol(
    name="wider-easy",
    inclusive_pixels=True,
    images_without_ground_truth="ignore",
    primary_metric="mAP",
    metrics=("AP@thresholds=1000",),
    ignore_where="easy==0",
    source="derronqi/yolov7-face 74a2a1d, widerface_evaluate/evaluation.py, for AP@thresholds=1000",
    tolerance=1e-12,
    residue=_SUMS,
)
_PEDESTRIANS = replace(
    _COCO,
    iou_thresholds=(0.5,),
    max_iou_threshold=1.0,
    ignore_flags=("crowd", "ignore"),
    crowd_flags=("crowd", "ignore"),
    area_ranges=(ANY_AREA,),
    max_dets=(1000,),
    metrics=("MR-2", "MR-4"),
    tolerance=1e-12,
)
_CITYPERSONS = replace(
    _PEDESTRIANS,
    name="citypersons",
    ignore_where="height<50 or vis_ratio<0.65",
    drop_where="height<40",
    source="cvgroup-njust/CityPersons 839c22f, eval_MR_multisetup.py, setup Reasonable",
    tolerance=None,
    residue="citypersons-script; here the miss rate is 1 where no point is low enough",
)
_KAIST = replace(
    _PEDESTRIANS,
    name="kaist",
    ignore_where="height<55 or occlusion>1 or x1<5 or y1<5 or x2>635 or y2>507",
    source="sejong-rcv/INSANet 167237e, evaluation_script.py, setup Reasonable",
    tolerance=None,
    residue="kaist-script; here people on images without detections count as missed",
)

_ALL = (
    _VOC2007,
    _VOC2012,
    _VOC2007_PY,
    replace(
        _VOC2012,
        name="voc2012-py",
        strict_iou=True,
        source="py-faster-rcnn, lib/datasets/voc_eval.py with use_07_metric=False",
        tolerance=1e-7,
        residue=_TIES,
    ),
    _COCO,
    replace(
        _COCO,
        name="coco-strict",
        annotation_id_zero="unmatched",
        source="pycocotools 2.0.11, COCOeval with iouType bbox and annotation id 0",
    ),
    replace(
        _COCO,
        name="coco-segm",
        iou_type="segm",
        source="pycocotools 2.0.11, COCOeval with iouType segm",
    ),
    replace(
        _COCO,
        name="coco-boundary",
        iou_type="boundary",
        ignore_flags=("crowd", "ignore"),
        source="bowenc0221/boundary-iou-api 37d2558, COCOeval with iouType boundary",
    ),
    _COCO_KEYPOINTS,
    replace(
        _COCO,
        name="coco-polygon",
        iou_type="polygon",
        source="pycocotools 2.0.11, COCOeval with IoUs of quadrilaterals by shapely 2.2.0",
        tolerance=1e-9,
        residue="rounding of the IoU",
    ),
    _LVIS,
    replace(
        _LVIS,
        name="lvis-segm",
        iou_type="segm",
        source="lvis 0.5.3, LVISEval with iou_type segm",
    ),
    _LVIS_FIXED,
    replace(
        _LVIS_FIXED,
        name="lvis-fixed-segm",
        iou_type="segm",
        detection_area="pixels",
        source="achalddave/large-vocab-devil 87dcb5e, scripts/evaluate_ap_fixed.py, masks without "
        "boxes",
    ),
    _DOTA,
    replace(
        _DOTA,
        name="dota-allpoint",
        interpolation="all-point",
        recall_grid="linspace",
        absent_class="undefined",
        source="CAPTAIN-WHU/DOTA_devkit 9938855, with use_07_metric=False",
    ),
    _KITTI,
    replace(
        _KITTI,
        name="kitti-r11",
        interpolation="11-point",
        recall_grid="arange",
        source="traveller59/kitti-object-eval-python 9f385f8, 11 points, used until October 2019",
    ),
    replace(
        _COCO,
        name="proposals",
        area_ranges=PROPOSAL_AREAS,
        max_dets=(100, 1000),
        crowd_flags=(),
        class_agnostic=True,
        matching="by-iou",
        primary_metric="AR",
        source="Detectron2, evaluation/coco_evaluation.py",
        tolerance=None,
        residue="float32 there, images without proposals excluded there",
    ),
    replace(
        _COCO,
        name="torchmetrics",
        iou_dtype="float32",
        recall_grid="float32",
        source="torchmetrics 1.9, detection.MeanAveragePrecision with iou_type bbox",
        tolerance=1e-6,
        residue="its values are float32; ties rank in update order, here by image id",
    ),
    Protocol(
        name="ultralytics",
        iou_thresholds=_COCO_THRESHOLDS,
        candidate="best-unmatched",
        max_dets=(300,),
        max_dets_scope="image",
        tie_break="image",
        interpolation="trapezoid-101",
        min_score=0.001,
        primary_metric="mAP",
        source="Ultralytics 8.4.190, val: BaseValidator.match_predictions and ap_per_class",
        tolerance=1e-6,
        residue=f"its IoU is float32, and {_TIES}",
    ),
    replace(
        _COCO_KEYPOINTS,
        name="ultralytics-pose",
        sigmas=(),
        area_source="0.53-box",
        source="Ultralytics 8.4.190, OKS of PoseValidator; AP of pycocotools 2.0.11, COCOeval",
        tolerance=0.0,
    ),
    replace(
        _VOC2007_PY,
        name="detectron2-voc",
        iou_thresholds=tuple(percent / 100 for percent in range(50, 100, 5)),
        score_decimals=3,
        box_decimals=1,
        source="Detectron2 02b5c4e, evaluation/pascal_voc_evaluation.py for VOC 2007",
        tolerance=5e-5,
        residue=_TIES,
    ),
    Protocol(
        name="tidecv-ap",
        iou_thresholds=tuple(percent / 100 for percent in range(50, 100, 5)),
        candidate="best-unmatched",
        ignore_flags=("crowd",),
        crowd_flags=("crowd",),
        max_dets=(100,),
        max_dets_scope="image",
        tie_break="image",
        interpolation="101-point",
        recall_grid="hundredths",
        absent_class="zero-if-detected",
        source="tidecv 1.0.1, TIDE.evaluate_range with mode TIDE.BOX",
        tolerance=1e-12,
        residue=_SUMS,
    ),
    Protocol(
        name="globox",
        iou_thresholds=_COCO_THRESHOLDS,
        candidate="best-unmatched",
        equal_iou="last",
        area_ranges=(ALL_AREAS,),
        area_source="box",
        max_dets=(100,),
        tie_break="image",
        interpolation="101-point",
        source="globox 2.9.0, COCOEvaluator",
        tolerance=1e-12,
        residue=_SUMS,
    ),
    replace(
        _VOC2012,
        name="padilla",
        ignore_flags=(),
        source="rafaelpadilla/object_detection_metrics, pascal_voc_evaluator.py, all points",
        tolerance=1e-12,
        residue=_SUMS,
    ),
    replace(
        _VOC2012,
        name="cartucho",
        source="Cartucho/mAP, main.py",
        tolerance=1e-12,
        residue=_SUMS,
    ),
    replace(
        _VOC2007,
        name="mmdet-voc",
        recall_grid="arange",
        source="mmdetection 3.3, VOCMetric with eval_mode 11points",
        tolerance=1e-5,
        residue=f"{_FLOAT32}, and {_TIES}",
    ),
    replace(
        _VOC2012,
        name="tf-pascal",
        inclusive_pixels=False,
        source="TensorFlow Object Detection API 2.8.0, PascalDetectionEvaluator",
        tolerance=1e-5,
        residue=f"{_FLOAT32}, and ties, which it reverses",
    ),
    _OPEN_IMAGES,
    replace(
        _OPEN_IMAGES,
        name="open-images-challenge",
        group_of_weight=1,
        verified="listed",
        source="TensorFlow Object Detection API 2.8.0, OpenImagesDetectionChallengeEvaluator",
    ),
    replace(
        _PEDESTRIANS,
        name="caltech",
        ignore_where="height<50 or vis_ratio<0.65 or x1<5 or y1<5 or x2>635 or y2>475",
        drop_where="height<40",
        max_dets=(None,),
        mr_points="exact",
        source="Caltech Pedestrian toolbox 3.0.0, dbEval.m, Reasonable",
        tolerance=None,
        residue="its MATLAB code, which also sets widths to 0.41 of the height, was read, not run",
    ),
    _CITYPERSONS,
    replace(
        _CITYPERSONS,
        name="citypersons-small",
        ignore_where="height<50 or height>75 or vis_ratio<0.65",
        drop_where="height<40 or height>=93.75",
        source="cvgroup-njust/CityPersons 839c22f, eval_MR_multisetup.py, setup Reasonable_small",
    ),
    replace(
        _CITYPERSONS,
        name="citypersons-heavy",
        ignore_where="height<50 or vis_ratio<0.2 or vis_ratio>0.65",
        source="cvgroup-njust/CityPersons 839c22f, eval_MR_multisetup.py, setup "
        "Reasonable_occ=heavy",
    ),
    replace(
        _CITYPERSONS,
        name="citypersons-all",
        ignore_where="height<20 or vis_ratio<0.2",
        drop_where="height<16",
        source="cvgroup-njust/CityPersons 839c22f, eval_MR_multisetup.py, setup All",
    ),
    replace(
        _CITYPERSONS,
        name="citypersons-script",
        mr_rule="at-most-or-last",
        tolerance=1e-12,
        residue=_SUMS,
    ),
    _KAIST,
    replace(
        _KAIST,
        name="kaist-script",
        empty_images="exclude",
        mr_rule="at-most-or-last",
        tolerance=1e-12,
        residue=_SUMS,
    ),
    replace(
        _PEDESTRIANS,
        name="crowdhuman",
        strict_iou=True,
        equal_iou="first",
        max_dets=(None,),
        mr_rule="at-least",
        source="Purkialo/CrowdDet fa0b55b, lib/evaluate/APMRToolkits",
        residue="its IoU has 1e-6 in the denominator, and its boxes are clipped to the image",
    ),
    _WIDER,
    replace(_WIDER, name="wider-medium", ignore_where="medium==0"),
    replace(_WIDER, name="wider-hard", ignore_where="hard==0"),
)

PRESETS: Mapping[str, Protocol] = MappingProxyType({preset.name: preset for preset in _ALL})
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
