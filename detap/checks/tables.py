"""Plausibility checks of one table: fractions, negative sides, duplicates, cut scores.

A record that is invalid is refused wherever it stands. What is here rests on a suspicion instead:
it takes evidence, and who knows better can insist (``as_is=True``, ``--as-is``).
"""

from collections.abc import Iterable, Iterator
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from detap.checks._box_stats import survey_boxes
from detap.errors import InputError, Note, Problem
from detap.tables.detection import Detections, Floats, GroundTruth, Integers
from detap.tables.notes import BOX_OPTIONS, FRACTIONS, INSIST
from detap.text_input import join_names

_FIRST_PIXELS = 2.0
"""No fraction exceeds 1, nor xc + w, where that is taken for x + w, 2."""
_LOOKED_AT = 512


# --- classes that nothing is found of


def perhaps_undefined(ground_truth: GroundTruth, classes: Iterable[str]) -> str:
    """Return the exceptions from "their AP is 0", said of classes without any detection.

    Undefined is the AP of those without an object that counts, which the protocol alone knows.
    """
    flagged = (
        ground_truth.crowd | ground_truth.difficult | ground_truth.ignore | ground_truth.group_of
    )
    counted = {ground_truth.classes[k] for k in np.unique(ground_truth.label[~flagged]).tolist()}
    others = [name for name in classes if name not in counted]
    if not others:
        return ""
    return (
        "; undefined where the protocol counts none of their objects, as may be of "
        f"{join_names(others)}"
        " (difficult, crowd and the like, if there are any)"
    )


# --- boxes that are there twice


def repeats(key: NDArray[np.int64], numbers: Floats) -> NDArray[np.bool_]:
    """Return which of N rows have the key (N,) and the numbers (N, k) of an earlier one, (N,)."""
    # A hash that misses no equal pair is enough to rule them out, and far cheaper than the rows.
    mixed = key.astype(np.uint64)
    bits = (numbers + 0.0).view(np.uint64)
    for column, odd in zip(bits.T, cycle((0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)), strict=False):
        mixed = (mixed ^ (column >> np.uint64(29)) ^ column) * np.uint64(odd)
    ordered = np.sort(mixed)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    again = np.zeros(len(key), np.bool_)
    if len(twice):
        rows = np.flatnonzero(np.isin(mixed, twice))
        table = zip(key[rows].tolist(), map(tuple, numbers[rows].tolist()), strict=True)
        seen: set[tuple[int, tuple[float, ...]]] = set()
        for row, entry in zip(rows.tolist(), table, strict=True):
            again[row] = entry in seen
            seen.add(entry)
    return again


def pair_key(image: Integers, label: Integers) -> NDArray[np.int64]:
    """Return a number for each pair of an image and a class, another for every other, (N,)."""
    return image.astype(np.int64) << np.int64(32) | label


def repeated(image: Integers, label: Integers, corners: Floats) -> int:
    """Return how many of N rows have the image, the class and the box (N, 4) of an earlier one."""
    return int(np.count_nonzero(repeats(pair_key(image, label), corners)))


def repeated_detections(detections: Detections) -> Iterator[Note]:
    """Say how many detections are there more than once."""
    count = repeated(detections.image, detections.label, detections.corners)
    if count:
        message = (
            "detections repeat the image, class and box of another: each but the first is a false "
            "positive; was the file written twice, or non-maximum suppression left out?"
        )
        yield Note(
            "repeated-detections",
            message,
            count,
            severity="warning" if 100 * count >= len(detections) else "info",
        )


# --- what readers and evaluate both note


def zero_area_truths(count: int) -> Note:
    """Return the note of ground truths without area."""
    message = "ground truth boxes have no area: nothing can find them"
    return Note("zero-area-ground-truth", message, count)


def zero_area_detections(count: int) -> Note:
    """Return the note of detections without area."""
    message = "detections have no area: they are false positives"
    return Note("zero-area-detections", message, count, severity="info")


def scores_outside_note(low: float, high: float, count: int) -> Note:
    """Return the note of scores below 0 or above 1; `low` and `high` are those of all."""
    message = f"scores lie outside 0 to 1 ({low:.6g} to {high:.6g}); only their order counts"
    return Note("scores-outside-unit", message, count, severity="info")


def box_notes(
    kind: str,
    boxes: tuple[Floats, Integers],
    sizes: Floats | None,
    margin: float,
    *,
    corners: bool = True,
) -> Iterator[Note]:
    """Say how many boxes reach beyond their image, and whether they look like corners.

    Parameters
    ----------
    kind : {"detections", "ground-truth"}
    boxes : ((N, 4) float64, (N,) int32)
        Corners, and the image of each.
    sizes : (I, 2) float64 or None
        Of the images; beyond one of unknown size (NaN) reaches nothing.
    margin : float
        By how many pixels a box must reach beyond its image.
    corners : bool
        Whether they are read as x, y, width, height, and may be two corners.
    """
    if sizes is None or not len(boxes[1]) or bool(np.isnan(sizes).all()):
        return
    beyond, fitting = survey_boxes(*boxes, sizes, margin)
    most = 2 * beyond > len(boxes[1]) and 10 * fitting >= 9 * beyond
    what = "detections" if kind == "detections" else "ground truth boxes"
    if beyond and corners and most:
        message = (
            f"{what} look like x1, y1, x2, y2 where x, y, width, height is due: most reach beyond "
            f"their image, and would fit it as corners ({BOX_OPTIONS[kind]} xyxy)"
        )
        yield Note(f"{kind}-look-xyxy", message, beyond)
    if beyond:
        message = f"{what} reach beyond their image; none is clipped"
        yield Note(f"{kind}-beyond-image", message, beyond)


# --- detections cut at a score

_CUTS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9)
_CUT_WIDTH = 0.01
_FEWEST_SCORES = 100


def score_cut(lowest: float | None, count: int) -> float | None:
    """Return the round threshold that detections seem to be cut at, just below their lowest score.

    Parameters
    ----------
    lowest : float or None
        None where there is no detection.
    count : int
        How many there are; of fewer than 100 nothing is said.
    """
    if lowest is None or count < _FEWEST_SCORES:
        return None
    return next((cut for cut in _CUTS if cut <= lowest <= cut + _CUT_WIDTH), None)


def score_cut_note(cut: float, end: str = "") -> Note:
    """Return the note of detections that seem to be cut at a score; `end` says where curves end."""
    message = (
        f"no score is below {cut:g}: were detections cut there? AP counts the whole curve{end}; "
        "predict with a lower threshold (Ultralytics: conf=0.001)"
    )
    return Note("scores-cut", message, severity="info")


# --- boxes that end before they begin


def too_many_backward(
    path: str, count: int, total: int, listed: list[Problem], looks: str = ""
) -> InputError:
    """Return the error of boxes that are in another order than is due, led by what they share.

    Parameters
    ----------
    path : str
        What holds them.
    count, total : int
        How many they are, of how many boxes.
    listed : list of Problem
        Some of them, each with its place.
    looks : str
        What they look like instead.
    """
    hint = f"{listed[0].hint}; or give {INSIST}, and they count as boxes that overlap nothing"
    if count == 1:
        return InputError(listed[0]._replace(hint=hint))
    message = f"{count} of {total} boxes have a negative width or height{looks}"
    return InputError([Problem(path, "", message, hint), *listed], count - len(listed))


# --- fractions of the image's size


def in_fractions(corners: Floats) -> bool:
    """Return whether boxes look like fractions of the image's size: all in the first pixels.

    Boxes of whole numbers do not, nor such as have no area: of these there may be some.
    """
    if not len(corners):
        return False
    some = corners[:: -(-len(corners) // _LOOKED_AT)]
    return all(map(_in_first_pixels, (some, corners)))


def _in_first_pixels(corners: Floats) -> bool:
    if not (np.abs(corners) <= _FIRST_PIXELS).all():
        return False
    broken = (corners != np.floor(corners)).sum(axis=1) >= 3  # one may lie on the border
    empty = (corners[:, :2] == corners[:, 2:]).any(axis=1)
    return bool(2 * np.count_nonzero(broken & ~empty) >= len(corners))


def of_unknown_size(table: GroundTruth | Detections) -> bool:
    """Return whether a table bears :data:`FRACTIONS`."""
    return any(note.code == FRACTIONS.code for note in table.notes)


def unsized_problem(table: GroundTruth | Detections, why: str, otherwise: str = "") -> Problem:
    """Return the problem of a table that bears :data:`FRACTIONS`, where pixels are due.

    Parameters
    ----------
    table : GroundTruth or Detections
    why : str
        What asks for pixels.
    otherwise : str
        What would do without them.
    """
    message = f"its boxes are in fractions of images whose sizes are not known, and {why}"
    hint = "give the size of each image (image_sizes, --image-sizes FILE)"
    return Problem(table.path, "", message, f"{hint}{otherwise and ', or '}{otherwise}")


def fractions_problem(path: str, what: str, example: str = "") -> Problem:
    """Return the problem of boxes in fractions."""
    side = "--gt-format" if what == "the ground truth" else "--dt-format"
    return Problem(
        path,
        "",
        f"the boxes of {what} look like fractions of the image's size, where pixels are due: all "
        f"lie within the first {_FIRST_PIXELS:g} pixels{example and f', such as {example}'}",
        f"give {side} yolo (format='yolo') for text files of a class, a centre, width and height, "
        "as YOLO's tools write them; else write pixels: x times the width of its image, y times "
        f"its height; or, if pixels they are, give {INSIST}",
    )


def check_units(ground_truth: GroundTruth | None, detections: Detections | None) -> None:
    """Refuse a table in fractions of images of unknown size beside one in pixels.

    Raises
    ------
    InputError
    """
    given = [table for table in (ground_truth, detections) if table is not None]
    unsized = [table for table in given if of_unknown_size(table)]
    if 0 < len(unsized) < len(given):
        raise InputError(unsized_problem(unsized[0], "those of the other side in pixels"))
