"""Protocols: everything in which implementations of "the same" metric differ, as data.

A :class:`Protocol` is a frozen record with one field per axis. No code asks for a protocol's name.
A preset reproduces one public implementation. The signature names the preset, every field that
departs from it, and detap's version: two numbers may be compared only when theirs are equal.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from itertools import pairwise
from math import inf, isinf
from typing import Any, Literal, NamedTuple

from detap.errors import UsageError

Interpolation = Literal["11-point", "all-point", "101-point"]

COCO_IOU_CEILING = 1 - 1e-10
"""pycocotools starts its search from min(t, 1 - 1e-10), so that a threshold of 1 can be met."""

COCO_PRECISION_GUARD = 2.0**-52
"""numpy.spacing(1), which pycocotools adds to tp + fp: 1/1 becomes 0.9999999999999998 there."""


def linspace(start: float, stop: float, count: int) -> tuple[float, ...]:
    """Return `count` numbers from `start` to `stop`, the very floats of ``numpy.linspace``.

    Its order of operations, without importing it: linspace(.5, .95, 10)[8] is 0.8999999999999999,
    linspace(0, 1, 101)[35] one ulp above 35/100.
    """
    step = (stop - start) / (count - 1)
    return (*(i * step + start for i in range(count - 1)), stop)


SAME_THRESHOLD = 1e-9
"""IoU thresholds nearer than this are one: no two of a protocol may be."""

MOST_THRESHOLDS = 64
"""core holds what happens at each threshold as the bits of one word."""

RECALL_GRIDS: dict[str, tuple[float, ...]] = {
    # MATLAB's 0:0.1:1 counts up from the left to the middle and down from the right behind it:
    # .3 = 3 * .1 is one ulp above 3/10, all others are the nearest floats to k/10.
    "matlab": tuple(i * 0.1 if i <= 5 else 1.0 - (10 - i) * 0.1 for i in range(11)),
    # numpy.arange(0, 1.1, .1): .3, .6 and .7 are one ulp above k/10.
    "arange": tuple(i * 0.1 for i in range(11)),
    "linspace": linspace(0.0, 1.0, 101),
    "hundredths": tuple(i / 100 for i in range(101)),
}
"""The recall levels at which interpolated precision is read, by the name of who makes them so."""


@dataclass(frozen=True)
class AreaRange:
    """Areas from `low` to `high` square pixels, both ends included.

    `suffix` is what the range adds to the name of a measure: ``"s"`` in ``APs``.
    """

    name: str
    low: float
    high: float
    suffix: str = ""


ANY_AREA = AreaRange("all", -inf, inf)
"""Where a protocol knows no ranges: negative areas (of boxes clipped away) and huge ones count."""

ALL_AREAS = AreaRange("all", 0.0, 1e10)
"""pycocotools' range of all areas: an unmatched detection beyond it counts neither way."""

COCO_AREAS = (
    ALL_AREAS,
    AreaRange("small", 0.0, 32.0**2, "s"),
    AreaRange("medium", 32.0**2, 96.0**2, "m"),
    AreaRange("large", 96.0**2, 1e10, "l"),
)
PROPOSAL_AREAS = (
    *COCO_AREAS,
    AreaRange("96-128", 96.0**2, 128.0**2, "-96-128"),
    AreaRange("128-256", 128.0**2, 256.0**2, "-128-256"),
    AreaRange("256-512", 256.0**2, 512.0**2, "-256-512"),
    AreaRange("512-inf", 512.0**2, 1e10, "-512-inf"),
)


class Measure(NamedTuple):
    """One number of the summary: what it is called, and where in the arrays it is read.

    Attributes
    ----------
    name : str
        ``"AP50"``, ``"AR100"``, ``"mAP"`` ...
    quantity : {"AP", "AR"}
        Average precision, or final recall.
    threshold : int or None
        Index of the IoU threshold; None for the mean over all.
    area : int
        Index of the area range.
    limit : int
        Index of the detection limit.
    title : str
        The name written out, for people.
    """

    name: str
    quantity: Literal["AP", "AR"]
    threshold: int | None
    area: int
    limit: int
    title: str


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How detections are matched and scored.

    Attributes
    ----------
    name : str
        The preset that this is, or departs from.
    iou_thresholds : tuple of float
        Overlaps from which a detection can be a true positive; ascending.
    strict_iou : bool
        Whether the overlap must exceed the threshold (``>``) rather than reach it (``>=``).
    iou_ceiling : float
        Thresholds are lowered to this, so that a threshold of 1 can be met.
    pixel_edge : bool
        Whether corners are the first and the last pixel, so that width = x2 - x1 + 1.
    candidate : {"best", "best-free"}
        The ground truth a detection may match: the one of largest IoU even when it is taken (the
        detection is then a duplicate), or the one of largest IoU among those still free, neutral
        ones last.
    equal_iou : {"first", "last"}
        Which ground truth, in file order, is the best of several with equal IoU.
    neutral : tuple of {"difficult", "crowd", "ignore", "group_of"}
        Flags whose ground truths need not be found, and whose matches count neither way.
    absorbing : tuple of the same flags
        Flags whose ground truths take any number of detections, overlap then being the
        intersection over the detection's own area.
    area_ranges : tuple of AreaRange
        For each, ground truths outside it are neutral, and unmatched detections outside it too.
    area_source : {"annotation", "box"}
        Which area of a ground truth decides its range.
    detection_limits : tuple of int or None
        Ascending; the best-scored so many detections count; None means no limit. AP is taken at
        the largest.
    limit_scope : {"class", "image"}
        Whether the limit holds for each class of an image, or for the image over all classes.
    ties : {"image", "file"}
        How equal scores rank: by image, then by place in the file; or by place in the file alone.
    interpolation : {"11-point", "all-point", "101-point"}
        How the precision-recall curve becomes its average precision.
    recall_grid : {"matlab", "arange", "linspace", "hundredths"}
        Who makes the recall levels, where the interpolation has any.
    precision_guard : float
        Added to tp + fp in the precision.
    absent_class : {"undefined", "zero"}
        The AP of a class without ground truth that counts.
    class_agnostic : bool
        Whether all classes are scored as one.
    pairing : {"ranked", "coverage"}
        Detections claim ground truths by falling score; or, for proposals, ground truths are
        paired off by falling IoU whatever the score.
    empty_images : {"counted", "left-out"}
        Proposals: whether the ground truths of an image without any proposal count as missed.
    id_zero : {"name", "no-match"}
        What an annotation whose id is 0 means: ids are only names; or, as in pycocotools, which
        takes ids as truth values, a match with it is no match, although it is then taken.
    score_decimals, box_decimals : int or None
        Scores and corners are rounded to so many decimals first, as if through a text file.
    headline : {"AP", "mAP", "AR"}
        The name of the number that people quote.
    """

    name: str
    iou_thresholds: tuple[float, ...] = (0.5,)
    strict_iou: bool = False
    iou_ceiling: float = 1.0
    pixel_edge: bool = False
    candidate: Literal["best", "best-free"] = "best"
    equal_iou: Literal["first", "last"] = "first"
    neutral: tuple[str, ...] = ()
    absorbing: tuple[str, ...] = ()
    area_ranges: tuple[AreaRange, ...] = (ANY_AREA,)
    area_source: Literal["annotation", "box"] = "annotation"
    detection_limits: tuple[int | None, ...] = (None,)
    limit_scope: Literal["class", "image"] = "class"
    ties: Literal["image", "file"] = "file"
    interpolation: Interpolation = "all-point"
    recall_grid: str = "linspace"
    precision_guard: float = 0.0
    absent_class: Literal["undefined", "zero"] = "undefined"
    class_agnostic: bool = False
    pairing: Literal["ranked", "coverage"] = "ranked"
    empty_images: Literal["counted", "left-out"] = "counted"
    id_zero: Literal["name", "no-match"] = "name"
    score_decimals: int | None = None
    box_decimals: int | None = None
    headline: Literal["AP", "mAP", "AR"] = "AP"
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for name in _LISTS:
            object.__setattr__(self, name, _listed(name, getattr(self, name)))
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            for entry in value if name in _LISTS else (value,):
                if entry not in allowed:
                    raise UsageError(
                        f"{_spoken(name)} {entry!r} is unknown; choose from {', '.join(allowed)}"
                    )
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise UsageError(f"{_spoken(name)} {getattr(self, name)!r} is not True or False")
        thresholds = tuple(_number("IoU threshold", value) for value in self.iou_thresholds)
        object.__setattr__(self, "iou_thresholds", thresholds)
        for name in ("iou_ceiling", "precision_guard"):
            object.__setattr__(self, name, _number(name, getattr(self, name)))
        if not 0 < self.iou_ceiling <= 1:
            raise UsageError(f"iou ceiling {self.iou_ceiling!r} is not above 0 and at most 1")
        if not 0 <= self.precision_guard <= 1:
            raise UsageError(f"precision guard {self.precision_guard!r} is not from 0 to 1")
        for name in ("score_decimals", "box_decimals"):
            decimals = getattr(self, name)
            if decimals is not None and not (_is_whole(decimals) and 0 <= decimals <= _DECIMALS):
                raise UsageError(
                    f"{_spoken(name)} {decimals!r} is not None or a whole number to {_DECIMALS}"
                )
        _check_thresholds(self.iou_thresholds)
        _check_limits(self.detection_limits)
        _check_areas(self.area_ranges)
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

    def with_interpolation(self, interpolation: Interpolation) -> "Protocol":
        """Return the protocol with another interpolation, and a recall grid that goes with it."""
        grids = {"11-point": "matlab", "101-point": "linspace"}
        grid = grids.get(interpolation, self.recall_grid)
        if self.interpolation == interpolation:
            grid = self.recall_grid
        elif interpolation == "11-point" and self.strict_iou:
            grid = "arange"  # as py-faster-rcnn, whose other departure that is
        return replace(self, interpolation=interpolation, recall_grid=grid)

    def as_dict(self) -> dict[str, Any]:
        """Return every field under its own name, ready for JSON."""
        record = asdict(self)
        del record["source"]
        for band in record["area_ranges"]:
            # JSON has no infinity: null is "without end".
            band.update({end: None for end in ("low", "high") if isinf(band[end])})
        return record

    def departures(self) -> dict[str, Any]:
        """Return the fields in which this differs from the preset of its name."""
        base = protocol(self.name)
        return {
            entry.name: getattr(self, entry.name)
            for entry in fields(self)
            if entry.compare and getattr(self, entry.name) != getattr(base, entry.name)
        }

    def signature(self, version: str) -> str:
        """Return the one line that makes a number reproducible.

        Parameters
        ----------
        version : str
            detap's own.
        """
        parts = [f"protocol:{self.name}"]
        parts += [
            f"{name.replace('_', '-')}:{in_signature(value)}"
            for name, value in self.departures().items()
        ]
        return "|".join([*parts, f"detap:{version}"])

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
        if self.headline == "AR":
            return tuple(
                self._recall_measure(area, limit, both=True)
                for limit in range(len(self.detection_limits))
                for area in range(len(self.area_ranges))
            )
        precision = [self._precision_measure(None, 0)]
        if len(self.iou_thresholds) > 1 or self.headline == "AP":
            indices = [self.threshold_index(t) for t in (0.5, 0.75)]
            precision += [self._precision_measure(t, 0) for t in indices if t is not None]
        areas = range(1, len(self.area_ranges))
        precision += [self._precision_measure(None, area) for area in areas]
        if self.headline == "mAP":
            return tuple(precision)
        recall = [self._recall_measure(0, m) for m in range(len(self.detection_limits))]
        recall += [self._recall_measure(area, len(self.detection_limits) - 1) for area in areas]
        return (*precision, *recall)

    def measure(self, name: str) -> Measure:
        """Return a measure by its name, also one that the summary leaves out.

        ``"AP90"`` is AP at IoU .9, ``"AP75s"`` that at small areas, ``"AR10"`` recall at 10
        detections, ``"ARm"`` that at the largest limit and medium areas.

        Raises
        ------
        KeyError
            Where the protocol has no such number.
        """
        candidates = [
            *self.measures(),
            *(
                self._precision_measure(t, area)
                for area in range(len(self.area_ranges))
                for t in (None, *range(len(self.iou_thresholds)))
                if self.headline != "AR"
            ),
            *(
                self._recall_measure(area, limit, both=both)
                for both in (False, True)
                for limit in reversed(range(len(self.detection_limits)))
                for area in range(len(self.area_ranges))
            ),
        ]
        for candidate in candidates:
            if candidate.name == name:
                return candidate
        raise KeyError(name)

    def _precision_measure(self, threshold: int | None, area: int) -> Measure:
        band = self.area_ranges[area]
        at = "" if threshold is None else _percent(self.iou_thresholds[threshold])
        return Measure(
            f"{self.headline}{at}{band.suffix}",
            "AP",
            threshold,
            area,
            len(self.detection_limits) - 1,
            ", ".join(
                [
                    "mean average precision" if self.headline == "mAP" else "average precision",
                    f"IoU {self._iou_text(threshold)}",
                    *([] if area == 0 else [f"{band.name} areas"]),
                    *self._limit_text(len(self.detection_limits) - 1),
                ]
            ),
        )

    def _recall_measure(self, area: int, limit: int, *, both: bool = False) -> Measure:
        band = self.area_ranges[area]
        most = self.detection_limits[limit]
        named_limit = "" if most is None or (area and not both) else str(most)
        return Measure(
            f"AR{named_limit}{band.suffix}",
            "AR",
            None,
            area,
            limit,
            ", ".join(
                [
                    "average recall",
                    f"IoU {self._iou_text(None)}",
                    *([] if area == 0 else [f"{band.name} areas"]),
                    *self._limit_text(limit),
                ]
            ),
        )

    def _iou_text(self, threshold: int | None) -> str:
        values = self.iou_thresholds if threshold is None else self.iou_thresholds[threshold:][:1]
        if len(values) == 1:
            return format(values[0], ".6g")
        return f"{values[0]:.6g}\N{EN DASH}{values[-1]:.6g}"

    def _limit_text(self, limit: int) -> list[str]:
        most = self.detection_limits[limit]
        if most is None:
            return []
        per = "image" if self.limit_scope == "image" or self.class_agnostic else "image and class"
        return [f"at most {most} per {per}"]


_FLAGS = ("difficult", "crowd", "ignore", "group_of")
_CHOICES: dict[str, tuple[str, ...]] = {
    "candidate": ("best", "best-free"),
    "equal_iou": ("first", "last"),
    "neutral": _FLAGS,
    "absorbing": _FLAGS,
    "area_source": ("annotation", "box"),
    "limit_scope": ("class", "image"),
    "ties": ("image", "file"),
    "interpolation": ("11-point", "all-point", "101-point"),
    "recall_grid": tuple(RECALL_GRIDS),
    "absent_class": ("undefined", "zero"),
    "pairing": ("ranked", "coverage"),
    "empty_images": ("counted", "left-out"),
    "id_zero": ("name", "no-match"),
    "headline": ("AP", "mAP", "AR"),
}


def _percent(threshold: float) -> str:
    """Return a threshold in percent, as names of measures have it, no other one being meant."""
    short = format(100 * threshold, ".6g")
    near = abs(float(short) / 100 - threshold) < SAME_THRESHOLD / 2
    return short if near else format(100 * threshold, ".12g")


_LISTS = ("iou_thresholds", "neutral", "absorbing", "area_ranges", "detection_limits")
_SWITCHES = ("strict_iou", "pixel_edge", "class_agnostic")
_DECIMALS = 99
_MOST_DETECTIONS = 2**63 - 1


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _listed(name: str, value: Any) -> tuple[Any, ...]:
    """Return a sequence as a tuple; text is none, although it has letters."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise UsageError(f"{_spoken(name)} {value!r} is not a tuple")
    return tuple(value)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(name: str, value: Any) -> float:
    """Return a plain float, also for numpy's: signatures spell it."""
    if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__"):
        raise UsageError(f"{_spoken(name)} {value!r} is not a number")
    return float(value)


def _check_thresholds(thresholds: tuple[float, ...]) -> None:
    if not thresholds:
        raise UsageError("at least one IoU threshold is needed")
    for threshold in thresholds:
        if not 0 < threshold <= 1:
            raise UsageError(f"IoU threshold {threshold!r} is not above 0 and at most 1")
    if len(thresholds) > MOST_THRESHOLDS:
        raise UsageError(
            f"{len(thresholds)} IoU thresholds; at most {MOST_THRESHOLDS} are possible"
        )
    if list(thresholds) != sorted(set(thresholds)):
        raise UsageError("IoU thresholds must ascend, each given once")
    for lower, upper in pairwise(thresholds):
        if upper - lower < SAME_THRESHOLD:
            raise UsageError(
                f"IoU thresholds {lower!r} and {upper!r} are too near each other: numbers are "
                f"named by thresholds that differ by {SAME_THRESHOLD} at least"
            )


def _check_limits(limits: tuple[int | None, ...]) -> None:
    if not limits:
        raise UsageError("at least one detection limit is needed")
    for limit in limits:
        if limit is not None and not _is_whole(limit):
            raise UsageError(f"detection limit {limit!r} is not None or a whole number")
    sizes = [float("inf") if limit is None else limit for limit in limits]
    if any(size < 1 for size in sizes):
        raise UsageError("a detection limit must be at least 1")
    if any(limit is not None and limit > _MOST_DETECTIONS for limit in limits):
        raise UsageError(f"a detection limit is above {_MOST_DETECTIONS}; None is no limit")
    if sizes != sorted(set(sizes)):
        raise UsageError("detection limits must ascend, each given once")


def _check_areas(ranges: tuple[AreaRange, ...]) -> None:
    if not ranges:
        raise UsageError("at least one area range is needed")
    for band in ranges:
        if not isinstance(band, AreaRange):
            raise UsageError(f"area range {band!r} is not an AreaRange")
        for end in (band.low, band.high):
            _number(f"end of area range {band.name!r}", end)
        if band != ANY_AREA and not 0 <= band.low <= band.high:
            raise UsageError(
                f"area range {band.name!r} goes from {in_signature(band.low)} "
                f"to {in_signature(band.high)}; "
                "it must ascend from 0 or more"
            )
    for what in ("name", "suffix"):
        if len({getattr(band, what) for band in ranges}) < len(ranges):
            raise UsageError(f"two area ranges have the same {what}")


def in_signature(value: object) -> str:
    """Return a value as signatures spell it: two numbers are spelt alike only where equal."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        # Of float, not of what is derived from it: numpy's own repr names its type.
        return float.__repr__(value).removesuffix(".0")
    if isinstance(value, AreaRange):
        if value == ANY_AREA:
            return "any"
        return f"{value.name}={in_signature(value.low)}-{in_signature(value.high)}"
    if isinstance(value, tuple):
        return ",".join(in_signature(entry) for entry in value) or "none"
    return "none" if value is None else str(value)


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

PRESETS: Mapping[str, Protocol] = {
    preset.name: preset
    for preset in (
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
"""The presets by name."""


@cache
def protocol(name: str) -> Protocol:
    """Return the preset of that name.

    Raises
    ------
    UsageError
        Where there is none; the message lists near ones.
    """
    try:
        return PRESETS[name]
    except KeyError:
        from difflib import get_close_matches  # noqa: PLC0415 - only after a slip

        near = get_close_matches(name, PRESETS, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"choose from {', '.join(PRESETS)}"
        raise UsageError(f"protocol {name!r} is unknown; {hint}") from None
