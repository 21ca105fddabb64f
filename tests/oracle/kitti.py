"""Average precision as the KITTI object benchmark has it, 2D boxes, one class and level at a time.

Ground truths, in the order of their file, choose detections. They do so twice: once by score, which
says at which scores to look, and then again by overlap at each of these scores.
"""

from typing import NamedTuple

Box = tuple[float, float, float, float]
POINTS = 41

COUNTS, NEUTRAL, ELSEWHERE = "counts", "neutral", "elsewhere"


class Level(NamedTuple):
    """Which objects are due: taller than that, and at most so far hidden and cut off."""

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


class Found(NamedTuple):
    """An object of a results file."""

    type: str
    box: Box
    score: float


class Image(NamedTuple):
    """The two files of an image."""

    labels: list[Label]
    found: list[Found]


class Tally(NamedTuple):
    """What an image, or all, comes to at one score."""

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


def due(label: Label, name: str, level: Level) -> str:
    """Say what a label is to a class and a level."""
    kind = label.type.lower()
    if kind not in (name, NEIGHBOURS.get(name)):
        return ELSEWHERE
    tall = label.box[3] - label.box[1] > level.height
    plain = label.occluded <= level.occlusion and label.truncated <= level.truncation
    return COUNTS if kind == name and tall and plain else NEUTRAL


def role(found: Found, name: str, level: Level) -> str:
    """Say what a detection is to a class and a level; low ones are of every class."""
    if abs(found.box[3] - found.box[1]) < level.height:
        return NEUTRAL
    return COUNTS if found.type.lower() == name else ELSEWHERE


def scores_of_found(image: Image, name: str, level: Level) -> list[float]:
    """Return the scores of the detections that labels choose by score, where both count."""
    taken: set[int] = set()
    scores = []
    for label in image.labels:
        kind = due(label, name, level)
        if kind == ELSEWHERE:
            continue
        best = None
        for number, found in enumerate(image.found):
            if number in taken or role(found, name, level) == ELSEWHERE:
                continue
            if iou(label.box, found.box) > OVERLAP[name] and (
                best is None or found.score > image.found[best].score
            ):
                best = number
        if best is None:
            continue
        taken.add(best)
        if kind == COUNTS and role(image.found[best], name, level) == COUNTS:
            scores.append(image.found[best].score)
    return scores


def sampled(scores: list[float], positives: int) -> list[float]:
    """Return the scores at which precision is taken: nearest to steps of 1/40 in recall."""
    ordered = sorted(scores, reverse=True)
    wanted, chosen = 0.0, []
    for number, score in enumerate(ordered, 1):
        here, next_one = number / positives, (number + 1) / positives
        if number < len(ordered) and next_one - wanted < wanted - here:
            continue
        chosen.append(score)
        wanted += 1 / (POINTS - 1)
    return chosen


def tally(image: Image, name: str, level: Level, score: float) -> Tally:
    """Return what an image comes to where detections below a score are not looked at."""
    taken: set[int] = set()
    right, missed = 0, 0
    rest = {n: found for n, found in enumerate(image.found) if found.score >= score}
    for label in image.labels:
        kind = due(label, name, level)
        if kind == ELSEWHERE:
            continue
        best, low, most = None, None, 0.0
        for number, found in rest.items():
            overlap = iou(label.box, found.box)
            if number in taken or overlap <= OVERLAP[name]:
                continue
            what = role(found, name, level)
            if what == COUNTS and overlap > most:
                best, most = number, overlap
            elif what == NEUTRAL and low is None:
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
    for number, found in rest.items():
        if number in taken or role(found, name, level) != COUNTS:
            continue
        own = area(found.box)
        hidden = any(own and common(found.box, box) / own > OVERLAP[name] for box in regions)
        wrong += not hidden
    return Tally(right, wrong, missed)


def precision(images: list[Image], name: str, level: Level) -> list[float] | None:
    """Return precision at 41 points of recall, each the largest from there on; None undefined."""
    positives = sum(due(label, name, level) == COUNTS for image in images for label in image.labels)
    if not positives:
        return None
    scores = [score for image in images for score in scores_of_found(image, name, level)]
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
