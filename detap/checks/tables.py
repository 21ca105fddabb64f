"""Plausibility checks of one table: normalized boxes, negative sizes, duplicates, cut scores.

An invalid record is always an error. These checks find likely mistakes instead, and ``--as-is``
(``as_is=True``) turns them off.
"""

from collections.abc import Iterable, Iterator
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from detap.errors import InputError, Note, Problem, Severity
from detap.tables._loops import survey_boxes
from detap.tables.detection import Detections, Floats, GroundTruth, Integers
from detap.tables.notes import BOX_OPTIONS, FRACTIONS, INSIST
from detap.text_input import join_names

_FIRST_PIXELS = 2.0
"""Normalized coordinates are at most 1; a center plus a width, read as a corner, at most 2."""
_SAMPLED = 512
_TINY, _ROUNDED = 4.0, 2.0
"""Area in square pixels up to which a box may have any area; pixels that rounding adds to sides."""
_FEWEST_AREAS, _ALMOST_ALL, _LEAST_RATIO = 5, 0.95, 0.45
"""Areas in one ratio to their boxes are implausible below that of triangles and people."""


# --- classes without detections


def perhaps_undefined(ground_truth: GroundTruth, classes: Iterable[str]) -> str:
    """Return the exception to "their AP is 0" for classes without detections.

    The AP of a class is undefined if the protocol counts none of its objects.
    """
    flagged = (
        ground_truth.crowd | ground_truth.difficult | ground_truth.ignore | ground_truth.group_of
    )
    labels = np.flatnonzero(np.bincount(ground_truth.label[~flagged]))  # np.unique imports numpy.ma
    counted = {ground_truth.classes[k] for k in labels}
    uncounted = [name for name in classes if name not in counted]
    if not uncounted:
        return ""
    names = join_names(uncounted)
    return f"; undefined if the protocol counts none of their objects, possibly {names}"


# --- areas of objects


def area_notes(truth: GroundTruth) -> Iterator[Note]:
    """Yield a warning if the annotated areas of most objects cannot be those of the objects."""
    for rows in (slice(None, None, len(truth) // _SAMPLED + 1), slice(None)):
        cause, count, total = _wrong_areas(truth, rows)
        if not count:
            return
    message = (
        f"areas of {count / total:.0%} of ground truths {cause}: APs, APm, APl and OKS depend on "
        "them; evaluate with the areas of the boxes, --area-source box (area_source='box')"
    )
    yield Note("areas-look-wrong", message, count)


def _wrong_areas(truth: GroundTruth, rows: slice) -> tuple[str, int, int]:
    """Return the fault of the areas of some rows, the number that has it, and of how many."""
    kept = ~truth.crowd[rows] & (truth.box_area[rows] > _TINY)
    area, box = truth.area[rows][kept], truth.box_area[rows][kept]
    if not len(area) or np.array_equal(area, box):
        return "", 0, 0
    small = area <= 1
    if 2 * np.count_nonzero(small) > len(area):
        value = area[small][0]
        what = f"{value:g} (a placeholder?)" if (area[small] == value).all() else "at most 1"
        return f"are {what}", int(np.count_nonzero(small)), len(area)
    corners = truth.corners[rows][kept]
    with np.errstate(over="ignore"):
        larger = area > (corners[:, 2:] - corners[:, :2] + _ROUNDED).prod(axis=1)
    of_images = np.zeros(len(area), np.bool_)
    if truth.image_sizes is not None:
        of_images = area == truth.image_sizes.prod(axis=1)[truth.image[rows][kept]]
    if truth.keypoints is not None:  # their extents may be the boxes, and smaller than the objects
        larger &= of_images
    if 2 * np.count_nonzero(larger) > len(area):
        end = " (those of the images?)" if of_images[larger].mean() > 0.5 else ""
        return f"exceed their boxes{end}", int(np.count_nonzero(larger)), len(area)
    if len(area) < _FEWEST_AREAS or box.max() < 4 * box.min():
        return "", 0, 0
    # Without np.median, which imports numpy.ma.
    ratio, middle = (float(np.sort(values)[len(area) // 2]) for values in (area / box, area))
    proportional = np.abs(area - ratio * box) <= 0.02 * ratio * box + 1
    for what, alike in (
        (f"are {ratio:.2g} of their boxes (of another image size?)", proportional),
        (f"are all {middle:g}", area == middle),
    ):
        if ratio < _LEAST_RATIO and alike.mean() >= _ALMOST_ALL:
            return what, int(np.count_nonzero(alike)), len(area)
    return "", 0, 0


# --- duplicate boxes


def repeats(key: NDArray[np.int64], numbers: Floats) -> NDArray[np.bool_]:
    """Mark rows whose key (N,) and numbers (N, k) equal those of an earlier row, (N,) bool."""
    # Equal rows have equal hashes, so most rows are ruled out cheaply.
    mixed = key.astype(np.uint64)
    bits = (numbers + 0.0).view(np.uint64)
    for column, factor in zip(
        bits.T, cycle((0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)), strict=False
    ):
        mixed = (mixed ^ (column >> np.uint64(29)) ^ column) * np.uint64(factor)
    ordered = np.sort(mixed)
    candidates = ordered[1:][ordered[1:] == ordered[:-1]]
    duplicate = np.zeros(len(key), np.bool_)
    if len(candidates):
        rows = np.flatnonzero(np.isin(mixed, candidates))
        table = zip(key[rows].tolist(), map(tuple, numbers[rows].tolist()), strict=True)
        seen: set[tuple[int, tuple[float, ...]]] = set()
        for row, values in zip(rows.tolist(), table, strict=True):
            duplicate[row] = values in seen
            seen.add(values)
    return duplicate


def pair_key(image: Integers, label: Integers) -> NDArray[np.int64]:
    """Return a unique number for each pair of image and class, (N,)."""
    return image.astype(np.int64) << np.int64(32) | label


def repeated(image: Integers, label: Integers, numbers: Floats) -> int:
    """Count the rows with the image, class and numbers (N, k), such as a box, of an earlier row."""
    return int(np.count_nonzero(repeats(pair_key(image, label), numbers)))


def repeated_detections(count: int, detections: Detections) -> Iterator[Note]:
    """Yield the note of a `count` of duplicate detections."""
    if count:
        message = (
            "duplicate detections (same image, class, box) count as false positives; file written "
            "twice or NMS missing?"
        )
        severity: Severity = "warning" if 100 * count >= len(detections) else "info"
        yield Note("repeated-detections", message, count, severity)


# --- notes of readers and evaluation


def zero_area_ground_truths(count: int) -> Note:
    """Return the note of ground truths without area."""
    message = "zero-area ground truths can never be matched"
    return Note("zero-area-ground-truth", message, count)


def zero_area_detections(count: int) -> Note:
    """Return the note of detections without area."""
    message = "zero-area detections are false positives"
    return Note("zero-area-detections", message, count, severity="info")


def scores_outside_note(low: float, high: float, count: int) -> Note:
    """Return the note of scores outside [0, 1]; `low` and `high` are the extremes."""
    message = f"scores are outside [0, 1] ({low:.6g} to {high:.6g}); only their order matters"
    return Note("scores-outside-unit", message, count, severity="info")


def box_notes(
    kind: str,
    boxes: tuple[Floats, Integers],
    sizes: Floats | None,
    margin: float,
    *,
    corners: bool = True,
    fixed: bool = False,
) -> Iterator[Note]:
    """Yield notes of boxes that extend beyond their image or look like corners.

    `fixed` is True if no option changes the format of the boxes.
    """
    if sizes is None or not len(boxes[1]) or bool(np.isnan(sizes).all()):
        return
    beyond, fit_as_corners = survey_boxes(*boxes, sizes, margin)
    look_xyxy = 2 * beyond > len(boxes[1]) and 10 * fit_as_corners >= 9 * beyond
    subject = "detections" if kind == "detections" else "ground truth boxes"
    if beyond and corners and look_xyxy:
        end = "" if fixed else f"; use {BOX_OPTIONS[kind]} xyxy"
        message = (
            f"{subject} look like [x1, y1, x2, y2], expected [x, y, width, height]: most extend "
            f"beyond the image but fit as corners{end}"
        )
        yield Note(f"{kind}-look-xyxy", message, beyond)
    if beyond:
        message = f"{subject} extend beyond the image (not clipped)"
        yield Note(f"{kind}-beyond-image", message, beyond)


# --- score thresholds

_CUTS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9)
_CUT_WIDTH = 0.01
_FEWEST_SCORES = 100


def score_cut(lowest: float | None, count: int) -> float | None:
    """Return the round threshold just below the lowest score, if there is one."""
    if lowest is None or count < _FEWEST_SCORES:
        return None
    return next((cut for cut in _CUTS if cut <= lowest <= cut + _CUT_WIDTH), None)


def one_score(score: Floats) -> bool:
    """Return True if several detections have the same score, and none another."""
    return len(score) > 1 and bool(score[0] == score[-1] and (score == score[0]).all())


def one_score_note(count: int, end: str = "") -> Note:
    """Return the note of equal scores; `end` says what AP could be."""
    message = f"all detections have the same score: file order decides AP{end}"
    message += "; remove the score for a score-free evaluation"
    return Note("one-score", message, count)


def score_cut_note(cut: float, end: str = "") -> Note:
    """Return the note of a score threshold; `end` describes the end of the curve."""
    message = (
        f"no score is below {cut:g}: a score threshold cuts off the precision-recall curve{end}; "
        "predict with a lower one (Ultralytics: conf=0.001)"
    )
    return Note("scores-cut", message, severity="info")


# --- negative width or height


def negative_size_error(
    path: str, count: int, total: int, listed: list[Problem], looks: str = ""
) -> InputError:
    """Return the error of boxes with negative width or height."""
    hint = f"{listed[0].hint}, or pass {INSIST} to count them as boxes that overlap nothing"
    if count == 1:
        return InputError(listed[0]._replace(hint=hint))
    message = f"{count} of {total} boxes have negative width or height{looks and ': '}{looks}"
    if looks:
        first = listed[0]
        where = ": ".join(filter(None, (first.file, first.location)))
        return InputError(Problem(path, "", f"{message}; first: {where}: {first.message}", hint))
    return InputError([Problem(path, "", message, hint), *listed], count - len(listed))


# --- normalized boxes


def look_normalized(corners: Floats) -> bool:
    """Return True if boxes look normalized: all within the first pixels, most not integers."""
    if not len(corners):
        return False
    sample = corners[:: -(-len(corners) // _SAMPLED)]  # rejects nearly all inputs in less time
    return _in_first_pixels(sample) and _in_first_pixels(corners)


def _in_first_pixels(corners: Floats) -> bool:
    if not (np.abs(corners) <= _FIRST_PIXELS).all():
        return False
    fractional = (corners != np.floor(corners)).sum(axis=1) >= 3  # one may be on the border
    empty = (corners[:, :2] == corners[:, 2:]).any(axis=1)
    return bool(2 * np.count_nonzero(fractional & ~empty) >= len(corners))


def of_unknown_size(table: GroundTruth | Detections) -> bool:
    """Return True if boxes are normalized and image sizes unknown."""
    return any(note.code == FRACTIONS.code for note in table.notes)


def unsized_problem(table: GroundTruth | Detections, why: str, otherwise: str = "") -> Problem:
    """Return the problem of normalized boxes of unknown image size, expected in pixels."""
    message = f"boxes are normalized and image sizes are unknown, but {why}"
    hint = "pass --image-sizes FILE (image_sizes=)"
    return Problem(table.path, "", message, f"{hint}{otherwise and ', or '}{otherwise}")


def normalized_problem(path: str, role: str, example: str = "") -> Problem:
    """Return the problem of normalized boxes."""
    option = "--gt-format" if role == "ground-truth" else "--dt-format"
    return Problem(
        path,
        "",
        f"boxes look normalized (all coordinates \N{LESS-THAN OR EQUAL TO} {_FIRST_PIXELS:g}"
        f"{example and f', e.g. {example}'}), expected pixels",
        f"for YOLO text files use {option} yolo, otherwise multiply by image width and height, or "
        f"pass {INSIST}",
    )


def check_units(ground_truth: GroundTruth | None, detections: Detections | None) -> None:
    """Raise InputError if one table is normalized with unknown image sizes, one in pixels."""
    tables = [table for table in (ground_truth, detections) if table is not None]
    unsized = [table for table in tables if of_unknown_size(table)]
    if 0 < len(unsized) < len(tables):
        other = "detections" if unsized[0] is ground_truth else "ground truth boxes"
        raise InputError(unsized_problem(unsized[0], f"the {other} are in pixels"))
