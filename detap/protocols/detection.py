"""Detection protocols: the fields that define matching and scoring."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isinf
from typing import Any, ClassVar, Literal

from detap.errors import UsageError
from detap.protocols import conditions
from detap.protocols.fields import (
    ANY_AREA,
    RECALL_GRIDS,
    SAME_THRESHOLD,
    SIGMAS,
    AreaRange,
    Areas,
    Ascending,
    ByClass,
    Condition,
    Flags,
    Limits,
    Names,
    Number,
    ProtocolBase,
    Ratio,
    Several,
    Sigmas,
    Thresholds,
    Whole,
    Word,
    float32,
    protocol_field,
)

Interpolation = Literal["11-point", "all-point", "101-point", "40-point", "trapezoid-101"]

_LEVELS = {"11-point": 11, "40-point": 40, "101-point": 101, "trapezoid-101": 101}
"""The number of recall levels of an interpolation; all-point has none."""

_GRIDS = {"11-point": "matlab", "40-point": "fortieths"} | dict.fromkeys(
    ("101-point", "trapezoid-101"), "linspace"
)

_KITTI_LIMITS = ("min_height", "max_occlusion", "max_truncation")
_KITTI_ONLY = ("class_iou", "neighbor_classes", *_KITTI_LIMITS)
"""Fields that only KITTI's matching uses."""

_CLASS_LISTS = ("verified", "not_exhaustive", "class_groups")
"""Fields that need classes and score matching."""

_USED_BY_IOU_TYPE = {
    "inclusive_pixels": ("bbox",),
    "box_decimals": ("bbox", "polygon"),
    "detection_area": ("segm", "boundary", "keypoints"),
    "dilation_ratio": ("boundary",),
    "group_of_weight": ("bbox",),
    "drop_in_regions": ("bbox",),
    "degenerate_boxes": ("bbox",),
    "sigmas": ("keypoints",),
    "keypoint_keys": ("keypoints",),
    "class_agnostic": ("bbox", "segm", "boundary", "polygon"),
}
"""The IoU types that use a field; all types use the other fields."""

_AREAS = {"extent": ("keypoints",), "pixels": ("segm", "boundary")}
"""The IoU types that have this area of a detection; all types have its box's."""

OF_TABLES = ("area", "x1", "y1", "x2", "y2", "crowd", "difficult", "ignore")
"""Attributes in conditions that every ground truth has."""

_READING = {"segm": "masks", "boundary": "masks", "keypoints": "keypoints"}
"""The reader option that an IoU type needs."""

_NOT_KITTI = (
    *("candidate", "equal_iou", "max_dets", "max_dets_scope", "tie_break", "absent_class"),
    *("class_agnostic", "group_of_weight", "zero_area", "empty_images"),
    *("images_without_ground_truth", "annotation_id_zero", "excluded_classes", "drop_in_regions"),
    *("max_dets_order", "recall_base", *_CLASS_LISTS),
)
"""Fields that KITTI's matching does not use: it does not rank detections."""

_NEEDS_SCORES = (
    *("min_score", "score_decimals", "max_dets", "max_dets_scope", "area_ranges", "metrics"),
    *("absent_class", "duplicates", "annotation_id_zero", "class_groups", "max_dets_order"),
    *("recall_base", "class_mean"),
)
"""Fields that have no effect on detections without scores."""

_NOT_BY_IOU = (
    *("crowd_flags", "candidate", "equal_iou", "max_dets_scope", "interpolation", "recall_grid"),
    *("precision_eps", "absent_class", "images_without_ground_truth", "annotation_id_zero"),
)
"""Fields that matching by IoU does not use either: it gives the recall of one class."""


_BY_RANGE = Several(Number(0), "`25`; `25,40,25`; `none`")


@dataclass(frozen=True, repr=False, kw_only=True)
class Protocol(ProtocolBase):
    """Rules of matching and scoring.

    Each field is a setting on which implementations differ; docs/protocols.md lists them.
    `name` is the preset, or the preset that this protocol was derived from.
    """

    preset_by_iou_type: ClassVar[Mapping[str, str]] = {
        "bbox": "coco",
        "segm": "coco-segm",
        "keypoints": "coco-keypoints",
    }

    together: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("iou_type", "sigmas", "detection_area", "dilation_ratio", "inclusive_pixels"),
        ("ignore_flags", "crowd_flags", "ignore_where", "group_of_weight"),
        ("candidate", "equal_iou"),
        ("interpolation", "recall_grid", "precision_eps"),
        ("max_dets", "max_dets_scope", "max_dets_order"),
        ("area_ranges", *_KITTI_LIMITS),
    )

    iou_thresholds: tuple[float, ...] = protocol_field(
        (0.5,),
        "IoU thresholds: 0.5, or 0.5,0.75, or 0.5:0.95:0.05.",
        "The option may be repeated. A range has the values of numpy.linspace, so `0.5:0.95:0.05` "
        "equals COCO's list to the last bit.",
        kind=Thresholds(Number(0, 1, above=True), "`0.5`; `0.5,0.75`; `0.5:0.95:0.05`"),
        option="--iou",
    )
    iou_dtype: Literal["float64", "float32"] = protocol_field(
        "float64",
        "Floating-point type of the IoU thresholds.",
        "In float32 (torch.linspace) an IoU of exactly 0.6 or 0.8 misses its threshold.",
    )
    strict_iou: bool = protocol_field(False, "Require IoU > threshold instead of >=.")
    max_iou_threshold: float = protocol_field(
        1.0,
        "Lower greater IoU thresholds to this.",
        "pycocotools: 1 - 1e-10, so that a threshold of 1 can be reached.",
        kind=Number(0, 1, above=True, metavar="IOU"),
    )
    inclusive_pixels: bool = protocol_field(
        False,
        "Compute box widths as x2 - x1 + 1 (VOC).",
        "Box corners are the first and last pixel.",
    )
    iou_type: Literal["bbox", "segm", "boundary", "keypoints", "polygon"] = protocol_field(
        "bbox",
        "Compute IoU on boxes, masks, mask boundaries, keypoints (OKS) or quadrilaterals. "
        "Selects the sibling preset if there is one: coco-segm, coco-keypoints, lvis-segm.",
        "Boundaries give the lower IoU of masks and their boundaries. Plain boxes are "
        "quadrilaterals too.",
    )
    sigmas: tuple[float, ...] = protocol_field(
        (),
        "Keypoints: OKS sigmas: coco, crowdpose, one number per keypoint, or none for those of "
        "the ground truth.",
        "They are in the file's order. Those of the ground truth are `kpt_oks_sigmas` of a "
        "data.yaml, else COCO's for 17 keypoints with visibility, else 1/K (Ultralytics).",
        kind=Sigmas(
            Number(0, above=True),
            "`coco`, `crowdpose`, `wholebody`, `foot`, `face`, `hand`, `0.026,0.025,...`; `none`",
        ),
    )
    keypoint_keys: tuple[str, ...] = protocol_field(
        (),
        "Keypoints of COCO files: keys joined into one list: keypoints,foot_kpts; none: keypoints.",
        "With keys, ground truths without labeled keypoints (v > 0) there are ignored, whatever "
        "`num_keypoints` is, and detections without are dropped (COCO-WholeBody).",
        kind=Names("keypoints,foot_kpts"),
        always_reported=False,
    )
    result_score_key: str = protocol_field(
        "score",
        "Key of the score in COCO results: foot_score; where they lack it, score.",
        kind=Word(),
        always_reported=False,
    )
    detection_area: Literal["box", "pixels", "extent"] = protocol_field(
        "box",
        "Area that puts an unmatched mask or keypoints into an area range: box, or their own.",
        "Masks: of the `bbox` if there is one, else of the mask; or always of the mask (`pixels`)."
        " Keypoints: of the `bbox`, or always of their bounding box (`extent`).",
    )
    dilation_ratio: float = protocol_field(
        0.02,
        "Boundary width as a fraction of the image diagonal.",
        "Rounded half to even, at least 1 pixel.",
        kind=Number(0, 1, above=True, metavar="RATIO"),
    )
    candidate: Literal["best", "best-unmatched"] = protocol_field(
        "best",
        "Ground truth that a detection can match: the one of highest IoU, or the best unmatched.",
        "With `best` (VOC) a detection whose ground truth is matched already is a duplicate. With "
        "`best-unmatched` (COCO) ignored ground truths come last.",
    )
    equal_iou: Literal["first", "last"] = protocol_field(
        "first", "Which ground truth wins at equal IoU.", "In file order."
    )
    ignore_flags: tuple[str, ...] = protocol_field(
        (),
        "Ignore these ground truths: difficult, crowd, ignore, group_of, no_keypoints, or none.",
        "They are neither TP nor FN, and detections matched to them are neither TP nor FP. A flag "
        "removed here is removed from `crowd_flags` too.",
        kind=Flags(without="count", having="are ignored"),
    )
    crowd_flags: tuple[str, ...] = protocol_field(
        (),
        "Flags of ignored ground truths that any number of detections can match; or none.",
        "pycocotools treats `iscrowd` so. Their overlap is intersection over detection area (IoA).",
        kind=Flags(without="match one detection each", having="match any number of detections"),
    )
    ignore_where: str = protocol_field(
        "",
        "Ignore ground truths for which this holds: 'height<50 or vis_ratio<0.65'.",
        "Any number of detections can match them, by IoA. The condition compares attributes of the"
        " annotations with numbers or quoted strings: `<`, `<=`, `>`, `>=`, `==`, `!=`, `and`, "
        "`or`, `not`. `width`, `height`, `area`, `x1`, `y1`, `x2` and `y2` are those of the box "
        "unless the annotation has its own. A ground truth without an attribute is an error.",
        kind=Condition(),
    )
    drop_where: str = protocol_field(
        "",
        "Drop detections for which this holds: 'height<40'.",
        "It compares `score`, `width`, `height`, `area`, `x1`, `y1`, `x2` and `y2`.",
        kind=Condition(),
    )
    drop_in_regions: tuple[tuple[str, float], ...] = protocol_field(
        (),
        "Drop what lies in regions, which are boxes of a class, with this share of its area: "
        "ignored regions=0.5; or none.",
        "Ground truths and detections of all classes, before `max_dets`; the regions too. In whole "
        "pixels, so that image sizes are needed (VisDrone).",
        kind=ByClass(Number(0, 1, above=True, metavar="SHARE"), "ignored regions=0.5"),
        always_reported=False,
    )
    excluded_classes: tuple[str, ...] = protocol_field(
        (),
        "Classes that are not evaluated: others; or none.",
        "Their ground truths are dropped; their detections use up `max_dets` (VisDrone).",
        kind=Names("others"),
        always_reported=False,
    )
    group_of_weight: int | None = protocol_field(
        None,
        "Open Images group boxes: plain boxes (none), or matched by IoA after the others; weight "
        "in recall 1 or 0.",
        "They have the flag group_of; [rules](presets.md#open-images).",
        kind=Whole(0, 1),
    )
    area_ranges: tuple[AreaRange, ...] = protocol_field(
        (ANY_AREA,),
        "coco, proposals, none, or small=0:1024,large=1024:1e10 in square pixels, or "
        "small=0:1%,large=1%:100% of the image.",
        "In each range, ground truths outside it are ignored, and so are unmatched detections "
        "outside it. Both ends are included; all areas always come first. Metrics of a range "
        "`tiny` are named `AP-tiny`; `small`, `medium` and `large` give `APs`, `APm`, `APl`.",
        kind=Areas(),
    )
    area_source: Literal["annotation", "box", "0.53-box"] = protocol_field(
        "annotation",
        "Area of a ground truth: of its annotation, of its box, or 0.53 of its box.",
        "For area ranges and OKS. 0.53 estimates a person's mask (Ultralytics).",
    )
    max_dets: tuple[int | None, ...] = protocol_field(
        (None,),
        "Best-scored detections kept: 1,10,100, or none for all. AP uses the largest.",
        "AR has a value for each.",
        kind=Limits(Whole(1), "`1,10,100`; `none`"),
    )
    max_dets_scope: Literal["class", "image", "dataset"] = protocol_field(
        "class",
        "Apply --max-dets per image and class, per image, or per class over the data set.",
        "`image` counts all classes (LVIS). `dataset` (fixed AP) takes one limit and drops the "
        "other detections.",
    )
    max_dets_order: Literal["score", "file"] = protocol_field(
        "score",
        "Detections that max dets keeps: the best-scored ones, or the first of the file.",
        "With `file` (VisDrone), each limit matches again what it keeps.",
        always_reported=False,
    )
    tie_break: Literal["image", "file"] = protocol_field(
        "file", "Rank equal scores by image and then file order, or by file order."
    )
    interpolation: Interpolation = protocol_field(
        "all-point",
        "Interpolation of the precision-recall curve.",
        "AP is the mean interpolated precision at 11, 40 or 101 recall levels; the area under the "
        "interpolated curve; or the trapezoidal rule over 101 levels of the linearly interpolated "
        "curve.",
    )
    recall_grid: Literal["matlab", "arange", "linspace", "hundredths", "float32", "fortieths"] = (
        protocol_field(
            "linspace",
            "Floating-point values of the recall levels.",
            "They differ in the last bits: `matlab` and `arange` have 11; `linspace`, `hundredths`"
            " and `float32` have 101; `fortieths` has 40, from 1/40 to 1.",
        )
    )
    precision_eps: float = protocol_field(
        0.0,
        "Number added to TP + FP in the precision.",
        "pycocotools adds `np.spacing(1)`.",
        kind=Number(0, 1),
    )
    absent_class: Literal["undefined", "zero", "zero-if-detected"] = protocol_field(
        "undefined",
        "AP of a class without ground truth.",
        "Ignored ones are not counted. `undefined` is left out of the mean; `zero-if-detected` is "
        "undefined without detections of the class. In a size range, AP of a class without objects "
        "there is undefined.",
    )
    recall_base: Literal["counted", "all"] = protocol_field(
        "counted",
        "Ground truths that recall is a fraction of: the counted ones, or the ignored ones too.",
        "With `all` (VisDrone), no detection is a TP on an ignored one: AP is below 1.",
        always_reported=False,
    )
    class_mean: Literal["equal", "images"] = protocol_field(
        "equal",
        "Weight of a class in the mean: equal, or the number of images with ground truths of it.",
        always_reported=False,
    )
    class_agnostic: bool = protocol_field(False, "Treat all classes as one.")
    matching: Literal["by-score", "by-iou", "kitti"] = protocol_field(
        "by-score",
        "Match detections greedily by score, proposals greedily by IoU, or as KITTI does.",
        "`by-iou` matches pairs in descending IoU order, whatever the score (proposal recall). "
        "`kitti`: each ground truth in file order takes a detection, by score and then by IoU.",
    )
    class_iou: tuple[tuple[str, float], ...] = protocol_field(
        (),
        "KITTI: evaluated classes and their IoU thresholds: Car=0.7; none: all, at --iou.",
        "Changing `iou_thresholds` changes them all. Here and below, class names are compared "
        "without case.",
        kind=ByClass(Number(0, 1, above=True, metavar="IOU"), "Car=0.7,Cyclist=0.5"),
    )
    neighbor_classes: tuple[tuple[str, str], ...] = protocol_field(
        (),
        "KITTI: classes whose ground truths are ignored for another: Car=Van; *=DontCare for all; "
        "or none.",
        kind=ByClass(Word(), "Car=Van,*=DontCare"),
    )
    min_height: tuple[float, ...] = protocol_field(
        (),
        "KITTI: minimum height in pixels, one per area range or one for all; or none.",
        "Exclusive. Lower ground truths and detections are ignored.",
        kind=_BY_RANGE,
    )
    max_occlusion: tuple[float, ...] = protocol_field(
        (),
        "KITTI: maximum occlusion level, one per area range or one for all; or none.",
        "More occluded ground truths are ignored.",
        kind=_BY_RANGE,
    )
    max_truncation: tuple[float, ...] = protocol_field(
        (),
        "KITTI: maximum truncation from 0 to 1, one per area range or one for all; or none.",
        "More truncated ground truths are ignored.",
        kind=_BY_RANGE,
    )
    empty_images: Literal["count", "exclude"] = protocol_field(
        "count",
        "Count or exclude ground truths of images without detections of their class.",
    )
    images_without_ground_truth: Literal["count", "ignore"] = protocol_field(
        "count",
        "Count or ignore detections on images without ground truths.",
        "Not even ignored ones.",
    )
    annotation_id_zero: Literal["valid", "unmatched"] = protocol_field(
        "valid",
        "A match with annotation id 0 is valid, or (pycocotools) unmatched.",
        "See [the difference](implementation-differences.md#3-annotation-id-0).",
    )
    min_score: float | None = protocol_field(
        None, "Drop detections of a lower score; none keeps all.", kind=Number(or_none=True)
    )
    score_decimals: int | None = protocol_field(
        None, "Round scores to this many decimals; none does not.", kind=Whole(0, 99)
    )
    box_decimals: int | None = protocol_field(
        None, "Round box corners to this many decimals; none does not.", kind=Whole(0, 99)
    )
    degenerate_boxes: Literal["keep", "drop"] = protocol_field(
        "keep", "Keep or drop detections with zero or negative width or height."
    )
    zero_area: Literal["count", "drop"] = protocol_field(
        "count",
        "Count or drop ground truths and detections without area.",
        "The area is 0 or less; detections are dropped after `max_dets` (LVIS).",
    )
    verified: Literal["all", "listed"] = protocol_field(
        "all",
        "Evaluate all detections, or those of classes verified in their image (LVIS, Open Images).",
        "Verified classes have ground truth in the image or are listed as present or absent "
        "(`neg_category_ids` of LVIS, image labels of Open Images). Detections of others use up "
        "`max_dets` and are ignored.",
    )
    not_exhaustive: Literal["count", "ignore"] = protocol_field(
        "count",
        "Count or ignore unmatched detections of classes not exhaustively annotated in the image.",
        "Duplicates too. LVIS lists the classes in `not_exhaustive_category_ids`.",
    )
    class_groups: Literal["none", "frequency"] = protocol_field(
        "none",
        "Metrics per group of classes: APr, APc, APf of rare, common and frequent ones (LVIS).",
        "Means over classes with ground truth, by their `frequency`.",
    )
    primary_metric: Literal["AP", "mAP", "AR"] = protocol_field(
        "AP", "Metric quoted first; it determines the other metrics of the summary."
    )
    metrics: tuple[str, ...] = protocol_field(
        (),
        "List these metrics too: MR-2, or MR-2@75,MR-2s; none: only the protocol's own.",
        "They are not in the signature.",
        kind=Names("MR-2,MR-2@75"),
        compared=False,
    )
    mr_points: Literal["rounded", "exact"] = protocol_field(
        "rounded",
        "Reference FPPI of the log-average miss rate: rounded (0.0178), or exact powers of 10.",
    )
    mr_rule: Literal["at-most", "at-most-or-last", "at-least"] = protocol_field(
        "at-most",
        "Point of the curve read at a reference FPPI: the last with at most that FPPI, or the "
        "first with at least that.",
        "Without such a point the miss rate is 1, or that of the curve's last point "
        "(`at-most-or-last`: scripts of CityPersons and KAIST; `at-least`: CrowdHuman).",
    )
    mr_floor: float = protocol_field(
        0.0,
        "Lower miss rates count as this in the log-average miss rate.",
        "With 0, one reference without misses makes it 0.",
        kind=Number(0, 1, metavar="RATE"),
    )
    froc_points: tuple[float, ...] = protocol_field(
        (0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
        "FPPI whose recall FROC averages: 0.25,0.5,1, or 1/8,1/4.",
        kind=Ascending(Ratio(0, above=True), "`0.25,0.5,1`; `1/8,1/4`"),
    )
    froc_rule: Literal["step", "linear"] = protocol_field(
        "step",
        "Recall at an FPPI: of the last point with at most that FPPI, or interpolated.",
        "LUNA16, MONAI and nnDetection interpolate.",
    )
    duplicates: Literal["false-positive", "ignore"] = protocol_field(
        "false-positive",
        "Count duplicates as false positives, or ignore them (LUNA16, MONAI), except in AP and AR.",
        "They are false positives whose ground truth is matched by another detection. `ignore` "
        "requires the lowest IoU threshold.",
    )
    scores: Literal["given", "none", "1", "area"] = protocol_field(
        "given",
        "Scores of the detections: of the file, none, or made up (`--missing-scores`).",
        "The detections decide it. Without scores nothing is ranked, and F1 takes the place of AP.",
        option="",
        always_reported=False,
    )
    unknown_labels: Literal["count", "drop"] = protocol_field(
        "count",
        "Detections of classes that the ground truth lacks: count, or drop them.",
        "Dropped ones are not matched and not counted. A list of classes in the ground truth's "
        "format counts as its classes.",
        always_reported=False,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not set(self.crowd_flags) <= set(self.ignore_flags):
            raise UsageError("crowd_flags must be among ignore_flags")
        if self.group_of_weight is not None and "group_of" in self.ignore_flags:
            raise UsageError(
                "group_of has a group_of_weight and is among ignore_flags; remove it from "
                "--ignore-flags, or use --group-of-weight none"
            )
        if self.max_dets_scope == "dataset":
            self._check_dataset_limit()
        kitti = self.matching == "kitti"
        self._require_default(_NOT_KITTI if kitti else _KITTI_ONLY, "matching")
        if self.matching == "by-iou":
            unused = ("group_of_weight", "zero_area", "max_dets_order", "recall_base")
            self._require_default((*_CLASS_LISTS, *unused), "matching")
        self._check_iou_type()
        if self.class_agnostic and any(
            getattr(self, name) != getattr(Protocol, name) for name in _CLASS_LISTS
        ):
            raise UsageError(
                "class_agnostic requires --verified all --not-exhaustive count --class-groups "
                "none: the class lists and groups have no effect without classes"
            )
        for name in _KITTI_LIMITS:
            if len(getattr(self, name)) not in (0, 1, len(self.area_ranges)):
                raise UsageError(
                    f"{name} has {len(getattr(self, name))} values for {len(self.area_ranges)} "
                    "area ranges; give one per range, or one for all"
                )
        if kitti:
            self._check_points()

    def _check_dataset_limit(self) -> None:
        if len(self.max_dets) > 1 or self.max_dets == (None,):
            raise UsageError(
                "max_dets_scope dataset takes one limit per class; use --max-dets 10000"
            )
        if self.max_dets_order == "file":
            raise UsageError("max_dets_scope dataset takes the best; use --max-dets-order score")
        self.require_score_matching("use --max-dets-scope class")

    def _require_default(self, names: tuple[str, ...], other: str) -> None:
        """Raise if a field is changed that the value of another field makes unused."""
        for name in names:
            if getattr(self, name) != getattr(Protocol, name):  # the default
                raise UsageError(
                    f"{name} has no effect with {other} {getattr(self, other)}; leave out "
                    f"{self._option_of(name)}, or use another --protocol"
                )

    def _check_iou_type(self) -> None:
        self._require_default(self._unused_fields(self.iou_type), "iou_type")
        if self.iou_type != "keypoints" and "no_keypoints" in self.ignore_flags:
            raise UsageError(
                f"no_keypoints has no effect with iou_type {self.iou_type}; remove it from "
                "--ignore-flags, or use --iou-type keypoints"
            )
        if self.iou_type != "bbox" and self.matching != "by-score":
            raise UsageError(
                f"iou_type {self.iou_type} requires matching by-score, not {self.matching}"
            )

    def _check_points(self) -> None:
        if len(self.iou_thresholds) > 1:
            raise UsageError("matching kitti takes one IoU threshold")
        points = [40 * level for level in self.recall_levels]
        if not points or any(abs(point - round(point)) > SAME_THRESHOLD for point in points):
            raise UsageError(
                "matching kitti gives precision at 41 points, which "
                f"{self.interpolation} interpolation cannot use; use 40-point or 11-point"
            )

    @property
    def max_dets_per_image(self) -> tuple[int | None, ...]:
        """The limits of each image; none if `max_dets` is one of the data set."""
        return (None,) if self.max_dets_scope == "dataset" else self.max_dets

    @property
    def matches_by_limit(self) -> bool:
        """True if what one limit keeps is not matched as among what a higher one keeps."""
        return self.max_dets_order == "file" and len(self.max_dets) > 1

    @property
    def recall_levels(self) -> tuple[float, ...]:
        """The R recall levels of the interpolation; empty for all-point."""
        if self.interpolation not in _LEVELS:
            return ()
        levels = RECALL_GRIDS[self.recall_grid]
        if len(levels) != _LEVELS[self.interpolation]:
            raise UsageError(
                f"recall_grid {self.recall_grid} has {len(levels)} levels, "
                f"{self.interpolation} interpolation needs {_LEVELS[self.interpolation]}"
            )
        return levels

    @property
    def summing(self) -> Literal["pairwise", "one-by-one", "trapezoid"]:
        """The order in which the core sums precision over the recall levels."""
        if self.interpolation == "trapezoid-101":
            return "trapezoid"
        return "one-by-one" if self.interpolation == "11-point" else "pairwise"

    @property
    def relative_areas(self) -> bool:
        """True if area ranges are fractions of the area of the image."""
        return any(area_range.unit == "%" for area_range in self.area_ranges)

    @property
    def area_bounds(self) -> tuple[tuple[float, float], ...]:
        """The bounds of the A area ranges, in square pixels or as fractions of the image."""
        divisors = ((r, 100 if r.unit == "%" else 1) for r in self.area_ranges)
        return tuple((r.low / divisor, r.high / divisor) for r, divisor in divisors)

    @property
    def search_thresholds(self) -> tuple[float, ...]:
        """The T thresholds that IoU is compared with, after rounding and the maximum."""
        return tuple(map(self.searched, self.iou_thresholds))

    def searched(self, threshold: float) -> float:
        """Return the value that IoU is compared with for a threshold."""
        rounded = float32(threshold) if self.iou_dtype == "float32" else threshold
        return min(rounded, self.max_iou_threshold)

    def always_in_signature(self) -> tuple[str, ...]:
        """Return sigmas of the ground truth: with keypoints the default is COCO's otherwise."""
        others = self.iou_type == "keypoints" and self.preset(self.name).iou_type != "keypoints"
        return ("sigmas",) if others and not self.sigmas else ()

    @property
    def uses_annotated_areas(self) -> bool:
        """True if area ranges or OKS use the areas of annotations."""
        used = self.iou_type == "keypoints" or len(self.area_ranges) > 1
        return used and self.area_source == "annotation"

    @property
    def has_scores(self) -> bool:
        """False if the detections have no scores that rank them."""
        return self.scores in ("given", "area")

    @property
    def ranks_detections(self) -> bool:
        """True if detections are matched in the order of their scores."""
        return self.matching == "by-score" and self.has_scores

    @property
    def options_that_need_scores(self) -> list[str]:
        """The options that are changed from the preset and have no effect without scores."""
        preset = self.preset(self.name)
        changed = [
            name
            for name in _NEEDS_SCORES
            if getattr(self, name) not in (getattr(preset, name), getattr(Protocol, name))
        ]
        if self.drop_where and "score" in conditions.names(self.drop_where):
            changed.append("drop_where")
        return [self._option_of(name) for name in changed]

    def without_scores(self) -> "Protocol":
        """Return the protocol for detections without scores: nothing that ranks them is left.

        Raises
        ------
        UsageError
            If the protocol does not match by score.
        """
        self.require_score_matching("use another --protocol for detections without scores")
        return replace(self._ranked_as(Protocol), scores="none")

    def with_ranking(self) -> "Protocol":
        """Return the protocol with the preset's fields that need scores, for made-up ones."""
        return replace(self._ranked_as(self.preset(self.name)), scores="given")

    def comparable(self, preset: "Protocol") -> "Protocol":
        """Return a preset without the fields that have no effect here, for the signature."""
        return preset if self.has_scores else preset._ranked_as(Protocol)

    def _ranked_as(self, other: Any) -> "Protocol":
        return replace(self, **{name: getattr(other, name) for name in _NEEDS_SCORES})

    def require_score_matching(self, hint: str) -> None:
        """Raise if detections are not matched by score, so that none is a TP or FP by itself.

        Raises
        ------
        UsageError
        """
        if self.matching != "by-score":
            raise UsageError(
                f"protocol {self.name} uses matching {self.matching}, which labels no detection TP "
                f"or FP; {hint}"
            )

    def require_boxes(self, hint: str) -> None:
        """Raise if the protocol does not compare boxes.

        Raises
        ------
        UsageError
        """
        if self.iou_type != "bbox":
            raise UsageError(
                f"protocol {self.name} has iou_type {self.iou_type}, this requires bbox; {hint}"
            )

    def refuse_lists(self, hint: str) -> None:
        """Raise if the protocol uses class lists of images, which the analysis ignores.

        Raises
        ------
        UsageError
        """
        plain = {"verified": "all", "not_exhaustive": "count"}
        used = {name: value for name, value in plain.items() if getattr(self, name) != value}
        if used:
            options = " ".join(f"{self._option_of(name)} {value}" for name, value in used.items())
            raise UsageError(
                f"protocol {self.name} uses the class lists of images, which this analysis "
                f"ignores; {hint}, or evaluate every class: {options}"
            )

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of annotations that `ignore_where` uses, without those of tables."""
        if not self.ignore_where:
            return ()
        return tuple(name for name in conditions.names(self.ignore_where) if name not in OF_TABLES)

    @property
    def reader_options(self) -> dict[str, Any]:
        """The reader options and attributes that the protocol needs."""
        options: dict[str, Any] = {**self.reading, **self.keys}
        return options | ({"attributes": self.attributes} if self.attributes else {})

    @property
    def keys(self) -> dict[str, Any]:
        """The reader options for the keys of records, where they are not the usual ones."""
        names = ("keypoint_keys", "result_score_key")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value != getattr(Protocol, name)}

    @property
    def reading(self) -> dict[str, bool]:
        """The reader options that the protocol needs."""
        return {_READING[self.iou_type]: True} if self.iou_type in _READING else {}

    def with_changes(self, **changes: Any) -> "Protocol":
        """Return a copy with changed fields and the fields that depend on them.

        An interpolation sets a recall grid of as many levels. Flags removed from `ignore_flags` are
        removed from `crowd_flags`. A threshold replaces those of `class_iou`. An IoU type resets
        the fields that it does not use, and keypoints set COCO's sigmas.
        """
        iou_type = changes.get("iou_type", self.iou_type)
        if iou_type != self.iou_type:
            reset = {name: getattr(Protocol, name) for name in self._unused_fields(iou_type)}
            if iou_type == "keypoints":
                reset["sigmas"] = SIGMAS["coco"]
            elif "no_keypoints" in self.ignore_flags:
                flags = self.ignore_flags
                reset["ignore_flags"] = tuple(flag for flag in flags if flag != "no_keypoints")
            changes = reset | changes
        if "iou_thresholds" in changes and "class_iou" not in changes and self.class_iou:
            threshold = changes["iou_thresholds"][0]
            changes["class_iou"] = tuple((name, threshold) for name, _ in self.class_iou)
        if "interpolation" in changes and "recall_grid" not in changes:
            interpolation = changes["interpolation"]
            if _LEVELS.get(self.interpolation) != _LEVELS.get(interpolation):
                grid = _GRIDS.get(interpolation, self.recall_grid)
                of_py_faster_rcnn = interpolation == "11-point" and self.strict_iou
                changes["recall_grid"] = "arange" if of_py_faster_rcnn else grid
        if "ignore_flags" in changes and "crowd_flags" not in changes:
            ignored = set(changes["ignore_flags"])
            changes["crowd_flags"] = tuple(flag for flag in self.crowd_flags if flag in ignored)
        changed = replace(self, **changes)
        return changed if changed.has_scores else changed.without_scores()

    def _idle(self) -> dict[str, str]:
        unused = {}
        if self.interpolation not in _LEVELS:
            unused["recall_grid"] = "--interpolation all-point has no recall levels"
        if set(self.max_dets) == {None}:
            unused |= dict.fromkeys(("max_dets_scope", "max_dets_order"), "--max-dets is none")
        unlimited = all(band.low <= 0 and isinf(band.high) for band in self.area_ranges)
        if unlimited and self.iou_type != "keypoints":
            unused["area_source"] = "--area-ranges has all areas only"
        if self.matching == "by-iou":
            why = "matching by-iou gives the recall of one class"
            unused |= dict.fromkeys(_NOT_BY_IOU, why)
        return unused

    def _unused_fields(self, iou_type: str) -> tuple[str, ...]:
        """Return the fields that an IoU type does not use."""
        names = tuple(name for name, users in _USED_BY_IOU_TYPE.items() if iou_type not in users)
        having = _AREAS.get(self.detection_area, _USED_BY_IOU_TYPE["detection_area"])
        return names if iou_type in having else (*names, "detection_area")

    def threshold_index(self, threshold: float) -> int | None:
        """Return the index of an IoU threshold, or None if it is not among them.

        Within :data:`SAME_THRESHOLD`: linspace(.5, .95, 10)[8] is 0.8999999999999999 (quirk 8).
        """
        close = (abs(value - threshold) < SAME_THRESHOLD for value in self.iou_thresholds)
        return next((index for index, same in enumerate(close) if same), None)

    def only_metric(self, metric: Any) -> "Protocol":
        """Return the protocol reduced to what one metric needs, with no other metric.

        Parameters
        ----------
        metric : detap.metrics.metric.MetricSpec

        Raises
        ------
        UsageError
            If it is a mean over a group of classes, or not the primary metric of any protocol.
        """
        if metric.metric.primary_metric is None:
            raise UsageError(
                f"{metric.name} cannot be explained: no protocol has {metric.metric.name} alone; "
                "use AP or AR"
            )
        if metric.group:
            raise UsageError(
                f"{metric.name} is a mean over {metric.group} classes; use {metric.metric.name}, "
                "or select the classes with --classes"
            )
        index = metric.threshold  # None for the mean over all
        return replace(
            self.only_area_range(metric.area),
            iou_thresholds=self.iou_thresholds if index is None else (self.iou_thresholds[index],),
            max_dets=(self.max_dets[metric.max_dets_index],),
            primary_metric=metric.metric.primary_metric,
            metrics=(),
            class_groups="none",
        )

    def only_area_range(self, area: int) -> "Protocol":
        """Return the protocol reduced to one of its area ranges."""
        values = {name: getattr(self, name) for name in ("area_ranges", *_KITTI_LIMITS)}
        changes = {name: v[area : area + 1] for name, v in values.items() if len(v) > 1}
        return replace(self, **changes)
