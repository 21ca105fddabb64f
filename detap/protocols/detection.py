"""How detections are matched and scored, as data: the axes of a detection protocol."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from detap.errors import UsageError
from detap.protocols import measures
from detap.protocols.axes import (
    ANY_AREA,
    RECALL_GRIDS,
    SAME_THRESHOLD,
    AreaRange,
    Areas,
    Decimals,
    Flags,
    Limits,
    Number,
    Rules,
    Thresholds,
    axis,
)
from detap.protocols.measures import Measure

Interpolation = Literal["11-point", "all-point", "101-point"]


@dataclass(frozen=True, kw_only=True)
class Protocol(Rules):
    """How detections are matched and scored.

    Each field is an axis on which implementations differ; its text stands beside it, and
    docs/protocols.md has them as a table. `name` is the preset that this is, or departs from.
    """

    presets: ClassVar[dict[str, "Protocol"]] = {}

    iou_thresholds: tuple[float, ...] = axis(
        (0.5,),
        "IoU thresholds: 0.5, or 0.5,0.75, or 0.5:0.95:0.05.",
        "Overlaps from which a detection can be a true positive; the option may be repeated. A "
        "range is made as numpy.linspace makes it, so that `0.5:0.95:0.05` is COCO's own list to "
        "the last bit.",
        kind=Thresholds(),
        option="--iou",
    )
    strict_iou: bool = axis(
        False,
        "Overlap must exceed the threshold.",
        "The overlap must exceed the threshold (`>`), not merely reach it (`>=`).",
    )
    iou_ceiling: float = axis(
        1.0,
        "Thresholds are lowered to this.",
        "Thresholds are lowered to this, so that a threshold of 1 can be met despite rounding.",
        kind=Number(0, 1, above=True, metavar="IOU"),
    )
    pixel_edge: bool = axis(
        False,
        "Width is x2 - x1 + 1, in whole pixels.",
        "Corners are the first and the last pixel: width = x2 \N{MINUS SIGN} x1 + 1.",
    )
    candidate: Literal["best", "best-free"] = axis(
        "best",
        "The ground truth a detection may match: the best, taken or not, or the best free.",
        "The ground truth that a detection may match: the one of largest IoU, even if another "
        "detection has taken it (then this one is a duplicate); or the one of largest IoU among "
        "those still free, neutral ones last.",
    )
    equal_iou: Literal["first", "last"] = axis(
        "first",
        "The best of equal ones.",
        "Which of several of equal IoU is the best, in file order.",
    )
    neutral: tuple[str, ...] = axis(
        (),
        "Ground truths that count neither way: difficult, crowd, ignore, group_of; or none.",
        "Flags of ground truths that need not be found. A detection matched with one counts "
        "neither way. What is no longer neutral stops absorbing too.",
        kind=Flags(),
    )
    absorbing: tuple[str, ...] = axis(
        (),
        "Neutral ones that take any number of detections; or none.",
        "Neutral ones that take any number of detections; the overlap with them is the "
        "intersection over the detection's own area.",
        kind=Flags(),
    )
    area_ranges: tuple[AreaRange, ...] = axis(
        (ANY_AREA,),
        "coco, proposals, none, or small=0:1024,large=1024:1e10 in square pixels.",
        "For each, ground truths outside it are neutral, and so are unmatched detections outside "
        "it. In square pixels, both ends included; all areas always come first. The numbers of a "
        "range called `tiny` are named `AP-tiny`; `small`, `medium` and `large` give `APs`, `APm`, "
        "`APl`.",
        kind=Areas(),
    )
    area_source: Literal["annotation", "box"] = axis(
        "annotation",
        "The area that decides a ground truth's range.",
        "The area of a ground truth that decides its range.",
    )
    detection_limits: tuple[int | None, ...] = axis(
        (None,),
        "Best-scored detections that count: 1,10,100; none is no limit. AP is taken at the "
        "largest.",
        "So many of the best-scored detections count. AP is taken at the largest.",
        kind=Limits(),
        option="--max-dets",
    )
    limit_scope: Literal["class", "image"] = axis(
        "class",
        "The limit is for each class of an image, or for the image.",
        "The limit holds for each class of an image, or for the image over all classes.",
    )
    ties: Literal["image", "file"] = axis(
        "file", "Equal scores rank by image and then by place in the file, or by place alone."
    )
    interpolation: Interpolation = axis(
        "all-point",
        "How the curve becomes its average precision.",
        "How the precision-recall curve becomes its average precision.",
        option="--ap",
    )
    recall_grid: Literal["matlab", "arange", "linspace", "hundredths", "float32"] = axis(
        "linspace",
        "Who makes the recall levels of 11 or 101 points.",
        "Who makes the recall levels: the first two have 11, the others 101; they differ in their "
        "last bits.",
    )
    precision_guard: float = axis(0.0, "Added to TP + FP in the precision.", kind=Number(0, 1))
    absent_class: Literal["undefined", "zero"] = axis(
        "undefined",
        "The AP of a class without ground truth.",
        "The AP of a class without ground truth that counts. Undefined stays outside the mean.",
    )
    class_agnostic: bool = axis(False, "Score classes as one.", "All classes are scored as one.")
    pairing: Literal["ranked", "coverage"] = axis(
        "ranked",
        "Detections claim ground truths by falling score, or (proposals) by falling IoU.",
        "Detections claim ground truths by falling score; or ground truths and proposals are "
        "paired off by falling IoU, whatever the score.",
    )
    empty_images: Literal["counted", "left-out"] = axis(
        "counted",
        "Proposals: ground truths of images without any proposal.",
        "Proposals: whether the ground truths of an image without any proposal count as missed.",
    )
    id_zero: Literal["name", "no-match"] = axis(
        "name",
        "What an annotation id of 0 is: a name like any other, or, as in pycocotools, none.",
        "An annotation id of 0 is a name like any other; or a match with it counts as none, "
        "as in pycocotools (quirk 3).",
    )
    score_decimals: int | None = axis(
        None,
        "Round scores first; none does not.",
        "Scores are rounded to so many decimals first, as if written to a text file and read "
        "again.",
        kind=Decimals(),
    )
    box_decimals: int | None = axis(
        None, "Round corners first; none does not.", "Corners likewise.", kind=Decimals()
    )
    headline: Literal["AP", "mAP", "AR"] = axis(
        "AP",
        "The number that comes first, and with it which others there are.",
        "The number that is quoted, and with it what the summary holds.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not set(self.absorbing) <= set(self.neutral):
            raise UsageError("only neutral ground truths can absorb detections")

    @property
    def recall_levels(self) -> tuple[float, ...]:
        """The R recall levels of the interpolation; empty where it takes all points."""
        if self.interpolation == "all-point":
            return ()
        levels = RECALL_GRIDS[self.recall_grid]
        if len(levels) != int(self.interpolation.partition("-")[0]):
            raise UsageError(
                f"recall grid {self.recall_grid!r} has {len(levels)} levels; "
                f"it does not go with {self.interpolation} interpolation"
            )
        return levels

    @property
    def search_thresholds(self) -> tuple[float, ...]:
        """The T thresholds that overlaps are compared with, after the ceiling."""
        return tuple(min(t, self.iou_ceiling) for t in self.iou_thresholds)

    def with_changes(self, **changes: Any) -> "Protocol":
        """Return these rules with other values in some fields, and with what goes with them.

        An interpolation brings a recall grid of as many levels; ground truths that are no longer
        neutral no longer absorb.
        """
        rules = self
        if "interpolation" in changes:
            rules = rules.with_interpolation(changes.pop("interpolation"))
        if "neutral" in changes and "absorbing" not in changes:
            kept = set(changes["neutral"])
            changes["absorbing"] = tuple(flag for flag in rules.absorbing if flag in kept)
        return replace(rules, **changes)

    def with_interpolation(self, interpolation: Interpolation) -> "Protocol":
        """Return the protocol with another interpolation, and a recall grid that goes with it."""
        grids = {"11-point": "matlab", "101-point": "linspace"}
        grid: Any = grids.get(interpolation, self.recall_grid)
        if self.interpolation == interpolation:
            grid = self.recall_grid
        elif interpolation == "11-point" and self.strict_iou:
            grid = "arange"  # as py-faster-rcnn, whose other departure that is
        return replace(self, interpolation=interpolation, recall_grid=grid)

    def threshold_index(self, threshold: float) -> int | None:
        """Return the index of an IoU threshold, or None where it is not among them.

        Within :data:`SAME_THRESHOLD`: linspace(.5, .95, 10)[8] is 0.8999999999999999 (quirk 8).
        """
        for index, value in enumerate(self.iou_thresholds):
            if abs(value - threshold) < SAME_THRESHOLD:
                return index
        return None

    def measures(self) -> tuple[Measure, ...]:
        """Return the numbers of the summary, in order, the headline first."""
        return measures.summary(self)

    def measure(self, name: str) -> Measure:
        """Return a measure by its name, also one that the summary leaves out.

        ``"AP90"`` is AP at IoU .9, ``"AP75s"`` that at small areas, ``"AR10"`` recall at 10
        detections, ``"ARm"`` that at the largest limit and medium areas.

        Raises
        ------
        UnknownNameError
            Where the protocol has no such number, with near names. It is a KeyError too.
        """
        return measures.named(self, name)
