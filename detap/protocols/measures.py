"""The numbers that a protocol has: each one's name and title, once."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from detap.errors import UnknownNameError
from detap.protocols.axes import SAME_THRESHOLD
from detap.spelling import near

if TYPE_CHECKING:
    from detap.protocols.detection import Protocol


AT_THRESHOLD = ("F1", "precision", "recall", "false-positives-per-image")
"""The numbers of a detector at one score threshold, which no protocol decides."""

DEFAULT_FEWEST = 20
"""Ground truths; numbers that count fewer have no interval, unless asked otherwise."""

UNBOUNDED = frozenset({"false-positives-per-image"})
"""Numbers that may exceed 1 and are no counts."""


FREQUENCIES = {"r": "rare", "c": "common", "f": "frequent"}
"""The groups of classes by `frequency`, as LVIS's categories spell it."""


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
    title : tuple of str
        The name written out, in parts that line up under one another: what, at which IoU, over
        which areas or classes, of which detections.
    group : str
        The group of classes that the mean is over; empty for all.
    """

    name: str
    quantity: Literal["AP", "AR"]
    threshold: int | None
    area: int
    limit: int
    title: tuple[str, ...]
    group: str = ""


def summary(rules: "Protocol") -> tuple[Measure, ...]:
    """Return the numbers of a protocol's summary, in order, the headline first."""
    limits, bands = range(len(rules.detection_limits)), range(len(rules.area_ranges))
    if rules.headline == "AR":
        return tuple(_recall(rules, area, limit, both=True) for limit in limits for area in bands)
    precision = [_precision(rules, None, 0)]
    at_thresholds = len(rules.iou_thresholds) > 1 or rules.headline == "AP"
    if at_thresholds and not rules.class_iou:
        indices = [rules.threshold_index(t) for t in (0.5, 0.75)]
        precision += [_precision(rules, t, 0) for t in indices if t is not None]
    precision += [_precision(rules, None, area) for area in bands[1:]]
    precision += _groups(rules)
    if rules.headline == "mAP":
        return tuple(precision)
    recall = [_recall(rules, 0, limit) for limit in limits]
    recall += _recall_at(rules)
    recall += [_recall(rules, area, limits[-1]) for area in bands[1:]]
    return (*precision, *recall)


def named(rules: "Protocol", name: str) -> Measure:
    """Return a number of a protocol by its name, also one that the summary leaves out.

    Raises
    ------
    UnknownNameError
        Where there is none, with near names.
    """
    for candidate in _all(rules):
        if candidate.name == name:
            return candidate
    usual = [entry.name for entry in summary(rules)]
    hint = near(name, usual) or near(
        name, dict.fromkeys(candidate.name for candidate in _all(rules))
    )
    hint = hint or f"it has {', '.join(usual)}"
    raise UnknownNameError(f"protocol {rules.name} has no number {name!r}; {hint}")


def _all(rules: "Protocol") -> Iterator[Measure]:
    """Yield all numbers of a protocol, those of the summary first; a name may occur again."""
    limits, bands = range(len(rules.detection_limits)), range(len(rules.area_ranges))
    thresholds = (None, *range(len(rules.iou_thresholds) if not rules.class_iou else 0))
    yield from summary(rules)
    if rules.headline != "AR":
        yield from (_precision(rules, t, a) for a in bands for t in thresholds)
    for both in (False, True):
        for limit in reversed(limits):
            yield from (_recall(rules, area, limit, both=both) for area in bands)


def _recall_at(rules: "Protocol") -> list[Measure]:
    """Return recall at single thresholds, which pycocotools' summary of keypoints has.

    Unless it were called as the recall at a limit is.
    """
    taken = rules.detection_limits if rules.overlap == "keypoints" else (50, 75)
    indices = [rules.threshold_index(p / 100) for p in (50, 75) if p not in taken]
    limit = len(rules.detection_limits) - 1
    return [
        _measure(rules, f"AR{_percent(rules.iou_thresholds[t])}", "AR", (t, 0, limit))
        for t in indices
        if t is not None
    ]


def _groups(rules: "Protocol") -> list[Measure]:
    """Return average precision over each group of classes."""
    if rules.class_groups == "none":
        return []
    whole, found = _precision(rules, None, 0), []
    for suffix, group in FREQUENCIES.items():
        what, iou, _, detections = whole.title
        title = (what, iou, f"{group} classes", detections)
        found.append(whole._replace(name=f"{whole.name}{suffix}", title=title, group=group))
    return found


def _precision(rules: "Protocol", threshold: int | None, area: int) -> Measure:
    at = "" if threshold is None else _percent(rules.iou_thresholds[threshold])
    name = f"{rules.headline}{at}{rules.area_ranges[area].suffix}"
    return _measure(rules, name, "AP", (threshold, area, len(rules.detection_limits) - 1))


def _recall(rules: "Protocol", area: int, limit: int, *, both: bool = False) -> Measure:
    most = rules.detection_limits[limit]
    named_limit = "" if most is None or (area and not both) else str(most)
    name = f"AR{named_limit}{rules.area_ranges[area].suffix}"
    return _measure(rules, name, "AR", (None, area, limit))


def _measure(
    rules: "Protocol",
    name: str,
    quantity: Literal["AP", "AR"],
    place: tuple[int | None, int, int],
) -> Measure:
    threshold, area, limit = place
    what = {"AP": "average precision", "AR": "average recall"}[quantity]
    title = (
        f"mean {what}" if rules.headline == "mAP" else what,
        f"{'OKS' if rules.overlap == 'keypoints' else 'IoU'} {_iou(rules, threshold)}",
        f"{rules.area_ranges[area].name} {'objects' if rules.asks_of_objects else 'areas'}",
        _detections(rules, limit),
    )
    return Measure(name, quantity, *place, title)


def _percent(threshold: float) -> str:
    """Return a threshold in percent, as names of measures have it, no other one being meant."""
    short = format(100 * threshold, ".6g")
    near = abs(float(short) / 100 - threshold) < SAME_THRESHOLD / 2
    return short if near else format(100 * threshold, ".12g")


def _iou(rules: "Protocol", threshold: int | None) -> str:
    values = rules.iou_thresholds if threshold is None else rules.iou_thresholds[threshold:][:1]
    if rules.class_iou:
        values = tuple(sorted({value for _, value in rules.class_iou}))
    if len(values) == 1:
        return format(values[0], ".6g")
    return f"{values[0]:.6g}\N{EN DASH}{values[-1]:.6g}"


def _detections(rules: "Protocol", limit: int) -> str:
    most = rules.detection_limits[limit]
    if most is None:
        return "all detections"
    per = "image" if rules.limit_scope == "image" or rules.class_agnostic else "image and class"
    return f"at most {most} per {per}"
