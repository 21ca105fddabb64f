"""Average precision as in the LVIS challenge, with the verified classes of each image.

An image lists the classes verified as absent (negative), and those whose objects are not all
annotated (not exhaustive).
"""

from collections import defaultdict
from typing import NamedTuple, TypeVar

Box = tuple[float, float, float, float]
Place = tuple[int, int]
"""An image and a class."""

THRESHOLDS = [0.5 + step * 0.05 for step in range(10)]
LEVELS = [step / 100 for step in range(101)]


class GroundTruthRow(NamedTuple):
    """A ground truth: x, y, width, height, and whether it is ignored."""

    image: int
    label: int
    box: Box
    ignored: bool = False


class DetectionRow(NamedTuple):
    """A detection."""

    image: int
    label: int
    box: Box
    score: float


Row = TypeVar("Row", GroundTruthRow, DetectionRow)


class Lists(NamedTuple):
    """Classes verified per image."""

    negative: frozenset[Place]
    not_exhaustive: frozenset[Place]


def overlap(one: Box, other: Box) -> float:
    """Return intersection over union."""
    width = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    height = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    return both / (one[2] * one[3] + other[2] * other[3] - both)


def judged(
    truths: list[GroundTruthRow], detections: list[DetectionRow], lists: Lists, limit: int = 300
) -> list[DetectionRow]:
    """Return the detections that count: the best of an image, of verified classes."""
    by_image: dict[int, list[DetectionRow]] = defaultdict(list)
    for detection in detections:
        by_image[detection.image].append(detection)
    best = [
        detection
        for image in sorted(by_image)
        for detection in sorted(by_image[image], key=lambda each: -each.score)[:limit]
    ]
    known = lists.negative | {(truth.image, truth.label) for truth in with_area(truths)}
    return [
        detection for detection in with_area(best) if (detection.image, detection.label) in known
    ]


def with_area(rows: list[Row]) -> list[Row]:
    """Return the objects or detections that have an area."""
    return [row for row in rows if row.box[2] * row.box[3] > 0]


def matches_of_class(
    truths: list[GroundTruthRow], detections: list[DetectionRow], lists: Lists, threshold: float
) -> list[bool]:
    """Return the rank and True if TP for each counted detection of a class, by descending score."""
    ranked = sorted(detections, key=lambda detection: -detection.score)
    fate: dict[int, bool] = {}
    for cell in sorted({(detection.image, detection.label) for detection in ranked}):
        here = [truth for truth in truths if (truth.image, truth.label) == cell]
        # Those that count are preferred to those that do not, and later ones of equal overlap.
        free = [truth for truth in here if not truth.ignored]
        spare = [truth for truth in here if truth.ignored]
        for rank, detection in enumerate(ranked):
            if (detection.image, detection.label) != cell:
                continue
            taken = _best(detection, free, threshold)
            if taken is not None:
                free.pop(taken)
                fate[rank] = True
                continue
            taken = _best(detection, spare, threshold)
            if taken is not None:
                spare.pop(taken)
            elif cell not in lists.not_exhaustive:
                fate[rank] = False
    return [fate[rank] for rank in sorted(fate)]


def _best(detection: DetectionRow, truths: list[GroundTruthRow], threshold: float) -> int | None:
    overlaps = [(overlap(detection.box, truth.box), row) for row, truth in enumerate(truths)]
    reached = [each for each in overlaps if each[0] >= threshold]
    return max(reached)[1] if reached else None


def average_precision(
    truths: list[GroundTruthRow], detections: list[DetectionRow], lists: Lists, label: int
) -> float | None:
    """Return the AP of a class, or None without ground truths."""
    truths = with_area(truths)
    positives = sum(truth.label == label and not truth.ignored for truth in truths)
    if not positives:
        return None
    own = [detection for detection in detections if detection.label == label]
    total = 0.0
    for threshold in THRESHOLDS:
        hits = matches_of_class(truths, own, lists, threshold)
        points = [
            (sum(hits[: n + 1]) / positives, sum(hits[: n + 1]) / (n + 1)) for n in range(len(hits))
        ]
        for level in LEVELS:
            total += max((p for r, p in points if r >= level - 1e-12), default=0.0)
    return total / len(THRESHOLDS) / len(LEVELS)


def mean_over(averages: dict[int, float | None], labels: set[int]) -> float | None:
    """Return the mean over classes with a defined value."""
    defined = [averages[label] for label in sorted(labels) if averages.get(label) is not None]
    return sum(value for value in defined if value is not None) / len(defined) if defined else None
