"""Average precision as in the KITTI object benchmark, for one class and difficulty of 2D boxes.

Ground truths, in file order, choose detections, in two passes. The first pass chooses by score and
selects the scores at which precision is sampled. The second pass, at each of these scores, chooses
by IoU.
"""

from typing import NamedTuple

Box = tuple[float, float, float, float]
POINTS = 41

COUNTS, IGNORED, OTHER_CLASS = "counts", "ignored", "other class"


class Level(NamedTuple):
    """Difficulty limits: minimum height, maximum occlusion and truncation."""

    height: float
    occlusion: float
    truncation: float


EASY = Level(40, 0, 0.15)
MODERATE = Level(25, 1, 0.3)
HARD = Level(25, 2, 0.5)

NEIGHBOURS = {"car": "van", "pedestrian": "person_sitting"}
OVERLAP = {"car": 0.7, "pedestrian": 0.5, "cyclist": 0.5}


class Label(NamedTuple):
    """An object of a label file."""

    type: str
    truncated: float
    occluded: float
    box: Box


class Detection(NamedTuple):
    """An object of a results file."""

    type: str
    box: Box
    score: float


class Image(NamedTuple):
    """The two files of an image."""

    labels: list[Label]
    detections: list[Detection]


class Tally(NamedTuple):
    """TP, FP and FN of an image, or of all images, at one score threshold."""

    right: int
    wrong: int
    missed: int


def area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def common(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return width * height if width > 0 and height > 0 else 0.0


def iou(one: Box, other: Box) -> float:
    shared = common(one, other)
    return shared / (area(one) + area(other) - shared) if shared else 0.0


def label_role(label: Label, name: str, level: Level) -> str:
    """Return the role of a label for a class and a difficulty level."""
    kind = label.type.lower()
    if kind not in (name, NEIGHBOURS.get(name)):
        return OTHER_CLASS
    tall = label.box[3] - label.box[1] > level.height
    plain = label.occluded <= level.occlusion and label.truncated <= level.truncation
    return COUNTS if kind == name and tall and plain else IGNORED


def detection_role(detection: Detection, name: str, level: Level) -> str:
    """Return the role of a detection; those below the height limit are ignored for all classes."""
    if abs(detection.box[3] - detection.box[1]) < level.height:
        return IGNORED
    return COUNTS if detection.type.lower() == name else OTHER_CLASS


def matched_scores(image: Image, name: str, level: Level) -> list[float]:
    """Return the scores of matched detections (labels take the best score) if both count."""
    taken: set[int] = set()
    scores = []
    for label in image.labels:
        kind = label_role(label, name, level)
        if kind == OTHER_CLASS:
            continue
        best = None
        for number, detection in enumerate(image.detections):
            if number in taken or detection_role(detection, name, level) == OTHER_CLASS:
                continue
            if iou(label.box, detection.box) > OVERLAP[name] and (
                best is None or detection.score > image.detections[best].score
            ):
                best = number
        if best is None:
            continue
        taken.add(best)
        if kind == COUNTS and detection_role(image.detections[best], name, level) == COUNTS:
            scores.append(image.detections[best].score)
    return scores


def sampled(scores: list[float], positives: int) -> list[float]:
    """Return the scores at which precision is sampled: nearest to recall steps of 1/40."""
    ordered = sorted(scores, reverse=True)
    target, chosen = 0.0, []
    for number, score in enumerate(ordered, 1):
        here, next_one = number / positives, (number + 1) / positives
        if number < len(ordered) and next_one - target < target - here:
            continue
        chosen.append(score)
        target += 1 / (POINTS - 1)
    return chosen


def tally(image: Image, name: str, level: Level, score: float) -> Tally:
    """Count TP, FP and FN of an image, without detections below a score."""
    taken: set[int] = set()
    right, missed = 0, 0
    rest = {
        n: detection for n, detection in enumerate(image.detections) if detection.score >= score
    }
    for label in image.labels:
        kind = label_role(label, name, level)
        if kind == OTHER_CLASS:
            continue
        best, low, most = None, None, 0.0
        for number, detection in rest.items():
            overlap = iou(label.box, detection.box)
            if number in taken or overlap <= OVERLAP[name]:
                continue
            what = detection_role(detection, name, level)
            if what == COUNTS and overlap > most:
                best, most = number, overlap
            elif what == IGNORED and low is None:
                low = number
        chosen = low if best is None else best
        if chosen is not None:
            taken.add(chosen)
        if kind == COUNTS and chosen is None:
            missed += 1
        elif kind == COUNTS and best is not None:
            right += 1
    wrong = 0
    regions = [label.box for label in image.labels if label.type.lower() == "dontcare"]
    for number, detection in rest.items():
        if number in taken or detection_role(detection, name, level) != COUNTS:
            continue
        own = area(detection.box)
        hidden = any(own and common(detection.box, box) / own > OVERLAP[name] for box in regions)
        wrong += not hidden
    return Tally(right, wrong, missed)


def precision(images: list[Image], name: str, level: Level) -> list[float] | None:
    """Return the interpolated precision at 41 recall levels, None if undefined."""
    positives = sum(
        label_role(label, name, level) == COUNTS for image in images for label in image.labels
    )
    if not positives:
        return None
    scores = [score for image in images for score in matched_scores(image, name, level)]
    points = []
    for score in sampled(scores, positives):
        tallies = [tally(image, name, level, score) for image in images]
        right = sum(each.right for each in tallies)
        wrong = sum(each.wrong for each in tallies)
        points.append(right / (right + wrong) if right + wrong else 0.0)
    points += [0.0] * (POINTS - len(points))
    return [max(points[number:]) for number in range(POINTS)]


def r40(points: list[float]) -> float:
    """Return the mean of the points 1 to 40."""
    return sum(points[1:]) / 40


def r11(points: list[float]) -> float:
    """Return the mean of every fourth point, from 0 to 40."""
    return sum(points[::4]) / 11
