"""How detections are matched and scored, as data: the axes of a detection protocol."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isinf
from typing import Any, ClassVar, Literal

from detap.errors import UsageError
from detap.protocols.fields import (
    ANY_AREA,
    RECALL_GRIDS,
    SAME_THRESHOLD,
    SIGMAS,
    AreaRange,
    Areas,
    ByClass,
    Decimals,
    Flags,
    Floor,
    Limits,
    Number,
    NumberList,
    ProtocolBase,
    Sigmas,
    Thresholds,
    Weight,
    Word,
    float32,
    protocol_field,
    protocol_fields,
)
from detap.protocols.summary import MetricSpec

Interpolation = Literal["11-point", "all-point", "101-point", "40-point", "trapezoid-101"]

_LEVELS = {"11-point": 11, "40-point": 40, "101-point": 101, "trapezoid-101": 101}
"""How many recall levels an interpolation has; that of all points has none."""


_BY_RANGE = ("height_min", "occlusion_max", "truncation_max")
_OF_GROUND_TRUTH = ("class_iou", "neighbour_classes", *_BY_RANGE)
"""What pairing by ground truth alone looks at."""

_OF_LISTS = ("verified", "not_exhaustive", "class_groups")
"""What needs classes, and detections that rank."""

_OVERLAPS = {
    "pixel_edge": ("box",),
    "box_decimals": ("box", "polygon"),
    "detection_area": ("mask", "boundary", "keypoints"),
    "dilation_ratio": ("boundary",),
    "group_of_weight": ("box",),
    "flat_boxes": ("box",),
    "sigmas": ("keypoints",),
    "class_agnostic": ("box", "mask", "boundary", "polygon"),
}
"""Which overlaps look at an axis that not all do."""

_AREAS = {"extent": ("keypoints",), "pixels": ("mask", "boundary")}
"""Which overlaps have an area of a detection that not all have."""

_READING = {"mask": "masks", "boundary": "masks", "keypoints": "keypoints"}
"""What readers must be asked for beside boxes."""

_OF_RANKING = (
    "candidate",
    "equal_iou",
    "detection_limits",
    "limit_scope",
    "ties",
    "absent_class",
    "class_agnostic",
    "group_of_weight",
    "zero_area",
    "empty_images",
    "id_zero",
    *_OF_LISTS,
)
"""What it does not look at: no detection claims, and none is ranked."""


_NOT_OF_COVERAGE = (
    "absorbing",
    "candidate",
    "equal_iou",
    "limit_scope",
    "interpolation",
    "recall_grid",
    "precision_guard",
    "absent_class",
    "id_zero",
)
"""What pairing by coverage does not look at besides: it has recall alone, of one class."""


class Protocol(ProtocolBase, kw_only=True):
    """How detections are matched and scored.

    Each field is an axis on which implementations differ; its text stands beside it, and
    docs/protocols.md has them as a table. `name` is the preset that this is, or departs from.
    """

    presets: ClassVar[Mapping[str, "Protocol"]] = {}

    together: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("overlap", "sigmas", "detection_area", "dilation_ratio", "pixel_edge"),
        ("neutral", "absorbing", "group_of_weight"),
        ("candidate", "equal_iou"),
        ("interpolation", "recall_grid", "precision_guard"),
        ("detection_limits", "limit_scope"),
        ("area_ranges", *_BY_RANGE),
    )

    iou_thresholds: tuple[float, ...] = protocol_field(
        (0.5,),
        "IoU thresholds: 0.5, or 0.5,0.75, or 0.5:0.95:0.05.",
        "Overlaps from which a detection can be a true positive; the option may be repeated. A "
        "range is made as numpy.linspace makes it, so that `0.5:0.95:0.05` is COCO's own list to "
        "the last bit.",
        kind=Thresholds(),
        option="--iou",
    )
    iou_grid: Literal["float64", "float32"] = protocol_field(
        "float64",
        "IoU thresholds are as given, or rounded to float32 first.",
        "IoU thresholds are as they are given; or rounded to float32 first, as torch.linspace has "
        "them: an overlap of exactly .6 or .8 then misses.",
    )
    strict_iou: bool = protocol_field(
        False,
        "Overlap must exceed the threshold.",
        "The overlap must exceed the threshold (`>`), not merely reach it (`>=`).",
    )
    iou_ceiling: float = protocol_field(
        1.0,
        "Thresholds are lowered to this.",
        "Thresholds are lowered to this, so that a threshold of 1 can be met despite rounding.",
        kind=Number(0, 1, above=True, metavar="IOU"),
    )
    pixel_edge: bool = protocol_field(
        False,
        "Width is x2 - x1 + 1, in whole pixels.",
        "Corners are the first and the last pixel: width = x2 \N{MINUS SIGN} x1 + 1.",
    )
    overlap: Literal["box", "mask", "boundary", "keypoints", "polygon"] = protocol_field(
        "box",
        "What overlaps: boxes, masks, masks and their boundaries, keypoints (OKS), or "
        "quadrilaterals (rotated boxes).",
        "What overlaps: boxes; masks, pixel by pixel, as COCO files have them in polygons and run "
        "lengths of either kind; masks and their boundaries, whichever overlap is less; keypoints, "
        "of which OKS says how near they lie; or quadrilaterals, such as rotated boxes, of which a "
        "plain box is one too.",
    )
    sigmas: tuple[float, ...] = protocol_field(
        (),
        "Keypoints: what a distance means at each: coco, crowdpose, or one number for each.",
        "Keypoints: how far from the truth one lies for how little, as a share of the object's "
        "size; one number for each keypoint of the skeleton, in the file's order.",
        kind=Sigmas(),
    )
    detection_area: Literal["box", "pixels", "extent"] = protocol_field(
        "box",
        "The area that decides the range of an unmatched mask or pose: its row's bbox, or its own.",
        "The area that decides the range of an unmatched mask: of the `bbox` where its row has "
        "one, else its pixels; or always its pixels. Of keypoints likewise, or always their "
        "extent.",
    )
    dilation_ratio: float = protocol_field(
        0.02,
        "How deep the boundary of a mask is, in diagonals of the image.",
        "How deep the boundary of a mask is, in diagonals of the image: rounded to whole pixels, "
        "halves to even, and at least one.",
        kind=Number(0, 1, above=True, metavar="RATIO"),
    )
    candidate: Literal["best", "best-free"] = protocol_field(
        "best",
        "The ground truth a detection may match: the best, taken or not, or the best free.",
        "The ground truth that a detection may match: the one of largest IoU, even if another "
        "detection has taken it (then this one is a duplicate); or the one of largest IoU among "
        "those still free, neutral ones last.",
    )
    equal_iou: Literal["first", "last"] = protocol_field(
        "first",
        "The best of equal ones.",
        "Which of several of equal IoU is the best, in file order.",
    )
    neutral: tuple[str, ...] = protocol_field(
        (),
        "Ground truths that count neither way: difficult, crowd, ignore, group_of, no_keypoints; "
        "or none.",
        "Flags of ground truths that need not be found. A detection matched with one counts "
        "neither way. What is no longer neutral stops absorbing too.",
        kind=Flags(without="count", having="count neither way"),
    )
    absorbing: tuple[str, ...] = protocol_field(
        (),
        "Neutral ones that take any number of detections; or none.",
        "Neutral ones that take any number of detections; the overlap with them is the "
        "intersection over the detection's own area.",
        kind=Flags(without="take one detection each", having="take any number of detections"),
    )
    group_of_weight: int | None = protocol_field(
        None,
        "Boxes around groups: as any other (none), or a second stage in which false positives "
        "lie in them; 1: a group is to be found, 0: not.",
        "What is made of ground truths marked group_of. Nothing (`none`): they are boxes as any "
        "other. Or detections are first matched to the other boxes; each false positive, "
        "duplicates included, then goes to the group in which most of it lies, if that is a share "
        "of its own area that reaches the IoU threshold, and counts neither way. With 1 a group "
        "is to be found: the best-scored of its detections, if it scores above 0, is one true "
        "positive, and a group without any is a miss. With 0 it need not be found.",
        kind=Weight(),
    )
    area_ranges: tuple[AreaRange, ...] = protocol_field(
        (ANY_AREA,),
        "coco, proposals, none, or small=0:1024,large=1024:1e10 in square pixels.",
        "For each, ground truths outside it are neutral, and so are unmatched detections outside "
        "it. In square pixels, both ends included; all areas always come first. The numbers of a "
        "range called `tiny` are named `AP-tiny`; `small`, `medium` and `large` give `APs`, `APm`, "
        "`APl`.",
        kind=Areas(),
    )
    area_source: Literal["annotation", "box"] = protocol_field(
        "annotation",
        "The area that decides a ground truth's range.",
        "The area of a ground truth that decides its range, and by which OKS measures distances.",
    )
    detection_limits: tuple[int | None, ...] = protocol_field(
        (None,),
        "Best-scored detections that count: 1,10,100; none is no limit. AP is taken at the "
        "largest.",
        "So many of the best-scored detections count. AP is taken at the largest.",
        kind=Limits(),
        option="--max-dets",
    )
    limit_scope: Literal["class", "image"] = protocol_field(
        "class",
        "The limit is for each class of an image, or for the image.",
        "The limit holds for each class of an image, or for the image over all classes.",
    )
    ties: Literal["image", "file"] = protocol_field(
        "file", "Equal scores rank by image and then by place in the file, or by place alone."
    )
    interpolation: Interpolation = protocol_field(
        "all-point",
        "How the curve becomes its average precision.",
        "How the precision-recall curve becomes its average precision: the mean of interpolated "
        "precision at 11, 40 or 101 recall levels; the area under it; or the area under the line "
        "that joins its points, by the trapezoidal rule over 101 levels.",
        option="--ap",
    )
    recall_grid: Literal["matlab", "arange", "linspace", "hundredths", "float32", "fortieths"] = (
        protocol_field(
            "linspace",
            "Who makes the recall levels of 11, 101 or 40 points.",
            "Who makes the recall levels: the first two have 11, the next three 101; they differ "
            "in their last bits. The last has 40, from 1/40 to 1.",
        )
    )
    precision_guard: float = protocol_field(
        0.0, "Added to TP + FP in the precision.", kind=Number(0, 1)
    )
    absent_class: Literal["undefined", "zero", "zero-if-detected"] = protocol_field(
        "undefined",
        "The AP of a class without ground truth.",
        "The AP of a class without ground truth that counts. Undefined stays outside the mean; "
        "zero if detected is undefined where there are no detections of it either.",
    )
    class_agnostic: bool = protocol_field(
        False, "Score classes as one.", "All classes are scored as one."
    )
    pairing: Literal["ranked", "coverage", "ground-truth"] = protocol_field(
        "ranked",
        "Detections claim ground truths by falling score, or (proposals) by falling IoU, or "
        "ground truths choose detections (KITTI).",
        "Detections claim ground truths by falling score; or ground truths and proposals are "
        "paired off by falling IoU, whatever the score; or ground truths, in file order, choose "
        "detections, first by score and then by overlap (KITTI).",
    )
    class_iou: tuple[tuple[str, float], ...] = protocol_field(
        (),
        "Pairing by ground truth: the classes scored and their IoU thresholds: Car=0.7; or none: "
        "all, at --iou.",
        "Pairing by ground truth: which classes are scored, and at which threshold each; `none` is "
        "all classes, at `iou_thresholds`. Changing `iou_thresholds` sets them all. Here and "
        "below, names are compared without regard to case.",
        kind=ByClass(
            Number(0, 1, above=True, metavar="IOU"),
            "classes and thresholds, or `none`",
            "Car=0.7,Cyclist=0.5",
        ),
    )
    neighbour_classes: tuple[tuple[str, str], ...] = protocol_field(
        (),
        "Pairing by ground truth: classes whose ground truths are neutral to another: Car=Van; "
        "*=DontCare is to all; or none.",
        "Pairing by ground truth: classes so like another that their ground truths are neutral to "
        "it; those of `*=DontCare` are to all.",
        kind=ByClass(Word(), "classes and neighbours, or `none`", "Car=Van,*=DontCare"),
    )
    height_min: tuple[float, ...] = protocol_field(
        (),
        "Pairing by ground truth: least height in pixels, for each of --area-ranges or for all; "
        "or none.",
        "Pairing by ground truth: ground truths not higher than this, in pixels, are neutral, and "
        "so are lower detections. One for each area range, or one for all.",
        kind=NumberList(),
    )
    occlusion_max: tuple[float, ...] = protocol_field(
        (),
        "Pairing by ground truth: most occlusion, as KITTI's labels have it, likewise; or none.",
        "Pairing by ground truth: ground truths more occluded than this, as KITTI's labels tell "
        "it, are neutral. Likewise.",
        kind=NumberList(),
    )
    truncation_max: tuple[float, ...] = protocol_field(
        (),
        "Pairing by ground truth: most truncation, from 0 to 1, likewise; or none.",
        "Pairing by ground truth: ground truths more truncated than this, from 0 to 1, are "
        "neutral. Likewise.",
        kind=NumberList(),
    )
    empty_images: Literal["counted", "left-out"] = protocol_field(
        "counted",
        "Proposals: ground truths of images without any proposal.",
        "Proposals: whether the ground truths of an image without any proposal count as missed.",
    )
    id_zero: Literal["name", "no-match"] = protocol_field(
        "name",
        "What an annotation id of 0 is: a name like any other, or, as in pycocotools, none.",
        "An annotation id of 0 is a name like any other; or a match with it counts as none, "
        "as in pycocotools (quirk 3).",
    )
    score_floor: float | None = protocol_field(
        None,
        "Detections of a lower score are left out; none leaves out none.",
        "Detections of a lower score are left out, as if whoever wrote them had done so.",
        kind=Floor(),
    )
    score_decimals: int | None = protocol_field(
        None,
        "Round scores first; none does not.",
        "Scores are rounded to so many decimals first, as if written to a text file and read "
        "again.",
        kind=Decimals(),
    )
    box_decimals: int | None = protocol_field(
        None, "Round corners first; none does not.", "Corners likewise.", kind=Decimals()
    )
    flat_boxes: Literal["counted", "dropped"] = protocol_field(
        "counted",
        "Detections without width or height count, or are left out.",
        "Detections whose box ends where it begins, or before: they count, or are left out.",
    )
    zero_area: Literal["counted", "dropped"] = protocol_field(
        "counted",
        "Ground truths and detections without area count, or are left out.",
        "Ground truths and detections whose area is not above 0: they count; or are left out, "
        "detections after the detection limits (LVIS).",
    )
    verified: Literal["all", "listed"] = protocol_field(
        "all",
        "Which detections can be judged: all, or those of classes that were looked for in their "
        "image (LVIS, Open Images).",
        "Which detections can be judged: all; or those of classes that have ground truth in their "
        "image, or that the ground truth lists as there or as absent (`neg_category_ids` of LVIS, "
        "labels of images of Open Images). Others take their places in the detection limits, and "
        "count nowhere.",
    )
    not_exhaustive: Literal["counted", "neutral"] = protocol_field(
        "counted",
        "Unmatched detections of classes of which not every object was annotated in their image "
        "(LVIS).",
        "Unmatched detections, duplicates too, of classes of which the ground truth says that not "
        "every object of the image was annotated (`not_exhaustive_category_ids` of LVIS): false "
        "positives; or they count neither way.",
    )
    class_groups: Literal["none", "frequency"] = protocol_field(
        "none",
        "Groups of classes with numbers of their own: APr, APc, APf of rare, common, frequent ones "
        "(LVIS).",
        "Groups of classes with numbers of their own: by `frequency` of LVIS's categories, which "
        "gives APr, APc and APf, the means over the rare, common and frequent ones that have "
        "ground truth.",
    )
    headline: Literal["AP", "mAP", "AR"] = protocol_field(
        "AP",
        "The number that comes first, and with it which others there are.",
        "The number that is quoted, and with it what the summary holds.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not set(self.absorbing) <= set(self.neutral):
            raise UsageError("only neutral ground truths can absorb detections")
        if self.group_of_weight is not None and "group_of" in self.neutral:
            raise UsageError(
                "group_of is neutral and has a group of weight too: take it from the neutral ones, "
                "or say --group-of-weight none"
            )
        by_truth = self.pairing == "ground-truth"
        self._refuse_other(_OF_RANKING if by_truth else _OF_GROUND_TRUTH, "pairing")
        if self.pairing == "coverage":
            self._refuse_other((*_OF_LISTS, "group_of_weight", "zero_area"), "pairing")
        self._check_overlap()
        if self.class_agnostic and any(getattr(self, n) != getattr(Protocol, n) for n in _OF_LISTS):
            raise UsageError(
                "lists of classes and groups of classes need classes: to score classes as one, "
                "give --verified all --not-exhaustive counted --class-groups none too"
            )
        for name in _BY_RANGE:
            if len(getattr(self, name)) not in (0, 1, len(self.area_ranges)):
                raise UsageError(
                    f"{name.replace('_', ' ')} has {len(getattr(self, name))} values, and there "
                    f"are {len(self.area_ranges)} area ranges: give one for each, or one for all"
                )
        if by_truth:
            self._check_points()

    def _refuse_other(self, names: tuple[str, ...], where: str) -> None:
        """Refuse what the value of another axis does not look at: it would seem to be heeded."""
        for name in names:
            if getattr(self, name) != getattr(Protocol, name):  # the default
                raise UsageError(
                    f"{name.replace('_', ' ')} has no say where {where} is "
                    f"{getattr(self, where)}: leave out {_option_of(name)}, or start from another "
                    "--protocol"
                )

    def _check_overlap(self) -> None:
        self._refuse_other(self._unheeded(self.overlap), "overlap")
        if self.overlap == "keypoints" and not self.sigmas:
            raise UsageError(
                "keypoints need sigmas, one number for each: --sigmas coco, crowdpose or your own"
            )
        if self.overlap != "keypoints" and "no_keypoints" in self.neutral:
            raise UsageError(
                f"no_keypoints has no say where overlap is {self.overlap}: leave it out of "
                "--neutral, or give --overlap keypoints"
            )
        if self.overlap != "box" and self.pairing != "ranked":
            raise UsageError(
                f"overlap {self.overlap} goes with pairing ranked, not with {self.pairing}"
            )

    def _check_points(self) -> None:
        if len(self.iou_thresholds) > 1:
            raise UsageError("pairing by ground truth takes one IoU threshold")
        points = [40 * level for level in self.recall_levels]
        if not points or any(abs(point - round(point)) > SAME_THRESHOLD for point in points):
            raise UsageError(
                f"pairing by ground truth gives precision at 41 points, from which "
                f"{self.interpolation} interpolation cannot be taken: use 40-point or 11-point"
            )

    @property
    def recall_levels(self) -> tuple[float, ...]:
        """The R recall levels of the interpolation; empty where it takes all points."""
        if self.interpolation not in _LEVELS:
            return ()
        levels = RECALL_GRIDS[self.recall_grid]
        if len(levels) != _LEVELS[self.interpolation]:
            raise UsageError(
                f"recall grid {self.recall_grid!r} has {len(levels)} levels; "
                f"it does not go with {self.interpolation} interpolation"
            )
        return levels

    @property
    def summing(self) -> Literal["pairwise", "one-by-one", "trapezoid"]:
        """In which order precision at the recall levels is summed up, as core has it."""
        if self.interpolation == "trapezoid-101":
            return "trapezoid"
        return "one-by-one" if self.interpolation == "11-point" else "pairwise"

    @property
    def search_thresholds(self) -> tuple[float, ...]:
        """The T thresholds that overlaps are compared with: rounded, and below the ceiling."""
        return tuple(map(self.searched, self.iou_thresholds))

    def searched(self, threshold: float) -> float:
        """Return what overlaps are compared with for a threshold."""
        made = float32(threshold) if self.iou_grid == "float32" else threshold
        return min(made, self.iou_ceiling)

    def refuse_unranked(self, hint: str) -> None:
        """Refuse what asks of each detection whether it is right, where that is not known.

        Raises
        ------
        UsageError
        """
        if self.pairing != "ranked":
            raise UsageError(
                f"protocol {self.name} pairs by {self.pairing.replace('-', ' ')}, under which no "
                f"detection is right or wrong by itself; {hint}"
            )

    def refuse_other_overlaps(self, hint: str) -> None:
        """Refuse what asks how boxes lie to each other, where something else overlaps.

        Raises
        ------
        UsageError
        """
        if self.overlap != "box":
            raise UsageError(
                f"protocol {self.name} has the overlap {self.overlap}, and this looks at boxes; "
                f"{hint}"
            )

    def refuse_lists(self, hint: str) -> None:
        """Refuse an analysis that ignores the classes an image lists.

        Raises
        ------
        UsageError
        """
        plain = {"verified": "all", "not_exhaustive": "counted"}
        used = {name: value for name, value in plain.items() if getattr(self, name) != value}
        if used:
            options = " ".join(f"--{n.replace('_', '-')} {value}" for n, value in used.items())
            raise UsageError(
                f"protocol {self.name} scores by the classes that each image lists, and this "
                f"analysis ignores those lists; {hint}, or score every class: {options}"
            )

    @property
    def reading(self) -> dict[str, bool]:
        """What readers must be asked for beside boxes, as options of theirs."""
        return {_READING[self.overlap]: True} if self.overlap in _READING else {}

    def with_changes(self, **changes: Any) -> "Protocol":
        """Return these rules with other values in some fields, and with what goes with them.

        An interpolation brings a recall grid of as many levels; ground truths that are no longer
        neutral no longer absorb; a threshold is that of all classes; axes that another overlap does
        not look at fall back, and keypoints bring COCO's sigmas.
        """
        if "overlap" in changes and changes["overlap"] != self.overlap:
            changes = self._for_overlap(changes["overlap"]) | changes
        if "iou_thresholds" in changes and "class_iou" not in changes and self.class_iou:
            threshold = changes["iou_thresholds"][0]
            changes["class_iou"] = tuple((name, threshold) for name, _ in self.class_iou)
        if "interpolation" in changes and "recall_grid" not in changes:
            changes["recall_grid"] = self._grid_of(changes["interpolation"])
        if "neutral" in changes and "absorbing" not in changes:
            kept = set(changes["neutral"])
            changes["absorbing"] = tuple(flag for flag in self.absorbing if flag in kept)
        return replace(self, **changes)

    def check_effect(self, changed: Iterable[str]) -> None:
        """Refuse fields that were changed and have no effect on any number.

        Parameters
        ----------
        changed : iterable of str
            The names of the fields.

        Raises
        ------
        UsageError
        """
        all_points = self.interpolation not in _LEVELS
        unlimited = set(self.detection_limits) == {None}
        any_area = not any(band.low > 0 or not isinf(band.high) for band in self.area_ranges)
        coverage = self.pairing == "coverage"
        idle = {
            "recall_grid": all_points and "--ap all-point takes all points",
            "limit_scope": unlimited and "there is no limit: give --max-dets too",
            "area_source": any_area and "there is one range, of all areas: give --area-ranges too",
            "empty_images": not coverage and "it is for proposals: --pairing coverage",
        }
        if coverage:
            why = "pairing by coverage gives recall alone, of one class"
            idle |= dict.fromkeys(_NOT_OF_COVERAGE, why)
        for name in changed:
            if idle.get(name):
                option = _option_of(name)
                raise UsageError(f"{option} has no effect: {idle[name]}; or leave out {option}")

    def _unheeded(self, overlap: str) -> tuple[str, ...]:
        """Return the axes whose values an overlap does not look at."""
        names = tuple(name for name, heeding in _OVERLAPS.items() if overlap not in heeding)
        known = _AREAS.get(self.detection_area, _OVERLAPS["detection_area"])
        return names if overlap in known else (*names, "detection_area")

    def _for_overlap(self, overlap: str) -> dict[str, Any]:
        """Return what changes with the overlap."""
        found = {name: getattr(Protocol, name) for name in self._unheeded(overlap)}
        if overlap == "keypoints":
            found["sigmas"] = SIGMAS["coco"]
        elif "no_keypoints" in self.neutral:
            found["neutral"] = tuple(flag for flag in self.neutral if flag != "no_keypoints")
        return found

    def with_interpolation(self, interpolation: Interpolation) -> "Protocol":
        """Return the protocol with another interpolation, and a recall grid that goes with it."""
        return self.with_changes(interpolation=interpolation)

    def _grid_of(self, interpolation: Interpolation) -> Any:
        grids = {
            "11-point": "matlab",
            "101-point": "linspace",
            "40-point": "fortieths",
            "trapezoid-101": "linspace",
        }
        grid: Any = grids.get(interpolation, self.recall_grid)
        if _LEVELS.get(self.interpolation) == _LEVELS.get(interpolation):
            grid = self.recall_grid
        elif interpolation == "11-point" and self.strict_iou:
            grid = "arange"  # as py-faster-rcnn, whose other departure that is
        return grid

    def threshold_index(self, threshold: float) -> int | None:
        """Return the index of an IoU threshold, or None where it is not among them.

        Within :data:`SAME_THRESHOLD`: linspace(.5, .95, 10)[8] is 0.8999999999999999 (quirk 8).
        """
        for index, value in enumerate(self.iou_thresholds):
            if abs(value - threshold) < SAME_THRESHOLD:
                return index
        return None

    def alone(self, entry: MetricSpec) -> "Protocol":
        """Return the rules that have no number but this one, and what is needed for it.

        Raises
        ------
        UsageError
            If it is the mean over a group of classes, or of a metric that no protocol is quoted by.
        """
        if entry.metric.headline is None:
            raise UsageError(
                f"{entry.name} cannot be explained: no protocol has {entry.metric.name} alone; ask "
                "for AP or AR"
            )
        if entry.group:
            raise UsageError(
                f"{entry.name} is a mean over {entry.group} classes alone; ask for "
                f"{entry.metric.name}, or select the classes (--classes)"
            )
        all_of, at = self.iou_thresholds, entry.threshold
        return replace(
            self.over(entry.area),
            iou_thresholds=all_of if at is None else (all_of[at],),
            detection_limits=(self.detection_limits[entry.limit],),
            headline=entry.metric.headline,
            class_groups="none",
        )

    def over(self, area: int) -> "Protocol":
        """Return the rules that know only one of the area ranges, with what they say for it."""
        said = {name: getattr(self, name) for name in ("area_ranges", *_BY_RANGE)}
        of_one = {name: values[area : area + 1] for name, values in said.items() if len(values) > 1}
        return replace(self, **of_one)


def _option_of(name: str) -> str:
    """Return the option that sets a field."""
    return next(entry.option for entry in protocol_fields(Protocol) if entry.name == name)
