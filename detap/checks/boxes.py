"""Plausibility checks for boxes: corners read as x, y, width, height; network pixels; normalized.

Boxes are counted on a sample of images that depends on their names alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from detap.checks.tables import check_units, normalized_problem, of_unknown_size
from detap.errors import InputError, Note, Problem
from detap.tables.detection import Detections, Flags, Floats, GroundTruth, Name
from detap.tables.notes import AS_IS, INSIST, exchanged

Keys = NDArray[np.uint64]

# The thresholds separate 13 real pairs of ground truth and detections from the same pairs with
# corners instead of x, y, width, height, and with boxes in the pixels of a network's input.
_ORDERED = 0.99
"""Fraction of boxes whose last two numbers exceed the first two; at most 0.8 in real files."""
_FEWEST_DETECTIONS, _FEWEST_TRUTHS = 10, 20
_CORNERS_GAIN = 0.25
_BEYOND = 0.2
"""Fraction of ground truths beyond their image; at most 0.012 in real files, 0.77 of corners."""
_MIN_IOU = 0.5
_FINE = 0.7
"""Fraction of top detections that overlap a ground truth; above it no other scale is tried."""
_SCALED, _SCALE_GAIN = 0.5, 0.2
_CENTERS_GAIN = 0.5

IMAGES = 64
"""Number of sampled images."""

_SIZES = (
    *(300, 320, 384, 416, 448, 512, 544, 576, 608, 640),
    *(672, 704, 736, 768, 800, 896, 960, 1024, 1280, 1536),
)
_MODES = (
    ("letterboxed (centered)", "(x - (S - r * width) / 2) / r", "r = min(S / width, S / height)"),
    ("letterboxed (top left)", "x / r", "r = min(S / width, S / height)"),
    ("stretched", "x * width / S", "y * height / S"),
)
_SCALES = tuple((mode, size) for mode in range(len(_MODES)) for size in _SIZES)

_SMALL, _PIXELS, _ENOUGH = 2.0, 10.0, 10


def sampled_detections(
    ground_truth: GroundTruth, detections: Detections
) -> tuple[Detections, Detections]:
    """Return the detections that :func:`check_boxes` samples, and these with one of each image."""
    is_sampled = np.zeros(len(detections.images), np.bool_)
    is_sampled[_sampled_images([ground_truth, detections])] = True
    first = np.zeros(len(detections.images), np.intp)
    first[detections.image[::-1]] = np.arange(len(detections))[::-1]
    kept = is_sampled[detections.image]
    sampled = detections.select(kept)
    kept[first[detections.images_with_rows]] = True
    return sampled, detections.select(kept)


def _sampled_images(tables: Sequence[GroundTruth | Detections]) -> NDArray[np.intp]:
    """Return the sampled images that have rows in all tables."""
    images = np.flatnonzero(np.all([table.images_with_rows for table in tables], axis=0))
    keys = image_keys([tables[0].images[image] for image in images.tolist()])
    return images[np.lexsort((keys,))[:IMAGES]]


def image_keys(names: Sequence[Name]) -> Keys:
    """Hash image names."""
    try:
        keys = np.array(names, np.int64).astype(np.uint64)
    except (ValueError, OverflowError):
        keys = np.array([crc32(str(name).encode("utf-8", "replace")) for name in names], np.uint64)
    # The finalizer of splitmix64.
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Keys = keys ^ (keys >> np.uint64(31))
    return mixed


def as_corners(corners: Floats) -> Floats:
    """Reinterpret x, y, width, height as two corners."""
    changed = corners.copy()
    changed[:, 2:] -= corners[:, :2]
    return changed


def half_sizes(corners: Floats) -> Floats:
    """Return half of width and height, for both corners (N, 4)."""
    return np.tile((corners[:, 2:] - corners[:, :2]) / 2, 2)


def _in_order(corners: Floats, order: str) -> Floats:
    """Reinterpret x, y, width, height as two corners, in the other `order` of :func:`_order`."""
    return exchanged(as_corners(corners))[1] if order else as_corners(corners)


class _BoxCounts(NamedTuple):
    """Numbers of boxes of a table on the sampled images."""

    total: int = 0
    ordered: int = 0  # whose width and height exceed x and y
    small: int = 0  # within the first two pixels
    fractional: int = 0  # with an area and at most one integer coordinate
    far: int = 0  # that extend beyond ten pixels

    @classmethod
    def of(cls, corners: Floats) -> "_BoxCounts":
        """Count boxes."""
        with np.errstate(over="ignore", invalid="ignore"):
            ordered = (corners[:, 2:] - corners[:, :2] > corners[:, :2]).all(axis=1)
        reach = np.abs(corners).max(axis=1, initial=0)
        fractional = (corners != np.floor(corners)).sum(axis=1) >= 3  # one may be on the border
        fractional &= (corners[:, :2] != corners[:, 2:]).all(axis=1)
        flags = (ordered, reach <= _SMALL, fractional, reach >= _PIXELS)
        return cls(len(corners), *(int(np.count_nonzero(one)) for one in flags))

    @property
    def may_be_corners(self) -> bool:
        """True if nearly all boxes may be two corners."""
        return self.ordered >= _ORDERED * self.total


class _TopDetections:
    """The V detections with the highest score of an image and class of the ground truth.

    Without scores they are the largest.
    """

    def __init__(self, ground_truth: GroundTruth, detections: Detections) -> None:
        classes = max(len(ground_truth.classes), len(detections.classes))
        truth = ground_truth.select(~ground_truth.crowd)
        truth_cell, cell = (
            table.image.astype(np.int64) * classes + table.label for table in (truth, detections)
        )
        by_cell = np.argsort(truth_cell, kind="stable")
        low, high = (
            np.searchsorted(truth_cell, cell, side, sorter=by_cell) for side in ("left", "right")
        )
        rows = np.flatnonzero(high > low)
        score = detections.score if detections.has_scores else detections.box_area
        rows = rows[np.lexsort((-score[rows], cell[rows]))]
        rows = rows[np.flatnonzero(np.diff(cell[rows], prepend=-1))]
        self.image, self.corners = detections.image[rows], detections.corners[rows]
        self.truths = truth.corners
        # The pairs with the ground truths of the same image and class, at least one each.
        count = (high - low)[rows]
        self._start = np.cumsum(count) - count
        self._detection = np.repeat(np.arange(len(rows)), count)
        position = np.arange(len(self._detection)) - (self._start - low[rows])[self._detection]
        self._truth = by_cell[position]

    def __len__(self) -> int:
        return len(self.corners)

    def overlapped(self, corners: Floats, truths: Floats) -> int:
        """Count those with IoU >= 0.5 with a ground truth, of given boxes (V, 4) and (G, 4)."""
        if not len(self):
            return 0
        dt, gt = corners[self._detection], truths[self._truth]
        with np.errstate(over="ignore", invalid="ignore"):
            width_height = np.minimum(dt[:, 2:], gt[:, 2:]) - np.maximum(dt[:, :2], gt[:, :2])
            common = np.maximum(width_height, 0).prod(axis=1)
            areas = [(boxes[:, 2:] - boxes[:, :2]).prod(axis=1) for boxes in (dt, gt)]
            overlaps = (common > 0) & (common >= _MIN_IOU * (areas[0] + areas[1] - common))
        return int(np.count_nonzero(np.logical_or.reduceat(overlaps, self._start)))


def _scaled_back(corners: Floats, sizes: Floats, mode: int, size: int) -> Floats:
    """Scale boxes from a network's square input back to image pixels."""
    with np.errstate(over="ignore", invalid="ignore"):
        scale = size / sizes
        if mode == 2:
            return corners / np.hstack((scale, scale))
        ratio = scale.min(axis=1, keepdims=True)
        pad = (size - sizes * ratio) / 2 * (mode == 0)
        scaled: Floats = (corners - np.hstack((pad, pad))) / ratio
        return scaled


class FailedCheck(NamedTuple):
    """A failed plausibility check: the code of its warning, and its problem."""

    code: str
    problem: Problem


def failed_box_checks(
    ground_truth: GroundTruth | None,
    detections: Detections | None,
    paths: tuple[str, str],
    *,
    boxes: bool = True,
) -> list[FailedCheck]:
    """Return the failed plausibility checks of one table, or of two on images with rows in both."""
    check_units(ground_truth, detections)
    tables = [table for table in (ground_truth, detections) if table is not None]
    if not tables or any(map(of_unknown_size, tables)):
        return []
    images = _sampled_images(tables)
    sampled = np.zeros(len(tables[0].images), np.bool_)
    sampled[images] = True
    gt, dt = (_of_images(table, sampled) for table in (ground_truth, detections))
    counts = tuple(
        _BoxCounts() if table is None else _BoxCounts.of(table.corners) for table in (gt, dt)
    )
    sizes = None if gt is None else gt.image_sizes
    longest = np.full(1, np.nan) if sizes is None else sizes[images].max(axis=1)
    failed = [*_normalized(counts, longest, paths)] or [
        *_conventions(gt, dt if boxes else None, counts, paths)
    ]
    if detections is None or detections.responses is None:
        return failed
    hint = f"name the dialect that the model writes by --dialect, or pass {INSIST}"
    return [
        FailedCheck(code, problem._replace(hint=hint) if problem.file == paths[1] else problem)
        for code, problem in failed
    ]


def _of_images(table: Any, sampled: Flags) -> Any:
    return None if table is None else table.select(np.flatnonzero(sampled.take(table.image)))


def _normalized(
    counts: Sequence[_BoxCounts], longest: Floats, paths: tuple[str, str]
) -> Iterator[FailedCheck]:
    """Yield the tables with normalized boxes.

    Images (of `longest` sides) or boxes of the other table are larger than a few pixels, or ten
    boxes look normalized.
    """
    large = bool((longest >= _PIXELS).any())
    if (longest <= _SMALL).any() and not large:
        return
    normalized = [
        (role, path, one.total)
        for role, path, one in zip(("ground-truth", "detections"), paths, counts, strict=True)
        if 0 < one.total == one.small and 2 * one.fractional >= one.total
    ]
    large = large or any(one.far for one in counts)
    if large or sum(total for _, _, total in normalized) >= _ENOUGH:
        for role, path, _ in normalized:
            yield FailedCheck("normalized-boxes", normalized_problem(path, role))


def _order(table: GroundTruth | Detections, counts: _BoxCounts) -> str:
    """Say which of two corners, read as x, y, width, height, are exchanged; empty if none."""
    return "" if counts.may_be_corners else exchanged(as_corners(table.corners))[0]


def _why_corners(truth: GroundTruth, counts: _BoxCounts, order: str) -> str:
    """Return the reason why ground truths look like two corners; empty if they do not."""
    if counts.total < _FEWEST_TRUTHS or not (order or counts.may_be_corners):
        return ""
    corners, total = truth.corners, counts.total
    with np.errstate(over="ignore", invalid="ignore"):
        if truth.image_sizes is not None:
            size = truth.image_sizes[truth.image]
            sized = int(np.count_nonzero(~np.isnan(size).any(axis=1)))
            beyond = int(np.count_nonzero((corners[:, 2:] > 1.01 * size + 1).any(axis=1)))
            if sized:
                text = f"{beyond} of {sized} extend beyond their image"
                return text if beyond >= _BEYOND * sized else ""
        areas = [(c[:, 2:] - c[:, :2]).prod(axis=1) for c in (_in_order(corners, order), corners)]
        of_corners, of_box = np.abs(truth.area - areas) <= 0.01 * areas[0]
    products = np.count_nonzero(of_corners & ~of_box)  # a box at 0, 0 has both
    return "their areas are those of two corners" if products >= _ORDERED * total else ""


def _conventions(
    truth: GroundTruth | None,
    detections: Detections | None,
    counts: Sequence[_BoxCounts],
    paths: tuple[str, str],
) -> Iterator[FailedCheck]:
    """Yield the tables whose boxes look like two corners, or like pixels of a network's input."""
    why = order = dt_order = corners_fit = ""
    top = None
    if truth is not None:
        order = _order(truth, counts[0])
        why = _why_corners(truth, counts[0], order)
    if truth is not None and detections is not None:
        top = _TopDetections(truth, detections)
        dt_order = _order(detections, counts[1])
        if counts[1].total >= _FEWEST_DETECTIONS and (dt_order or counts[1].may_be_corners):
            truths = _in_order(top.truths, order) if why else top.truths
            changed = _in_order(top.corners, dt_order)
            corners_fit = _fit(top, changed, truths, _CORNERS_GAIN, "two corners")
    options = ("--boxes", "--boxes") if why and corners_fit else ("--gt-boxes", "--dt-boxes")
    if why:
        yield FailedCheck(
            "ground-truth-look-xyxy", _corners(truth, paths[0], options[0], why, order)
        )
    if corners_fit:
        problem = _corners(detections, paths[1], options[1], corners_fit, dt_order)
        yield FailedCheck("detections-look-xyxy", problem)
    elif not why and top is not None:
        centers = ""
        if counts[1].total >= _FEWEST_DETECTIONS:
            changed = top.corners - half_sizes(top.corners)  # whose center was read as a corner
            centers = _fit(top, changed, top.truths, _CENTERS_GAIN, "centers")
        if centers:
            problem = _centers(detections, paths[1], centers)
            yield FailedCheck("detections-look-centered", problem)
        elif truth is not None and truth.image_sizes is not None:
            yield from _scales(top, truth.image_sizes[top.image], paths[1])


def _fit(top: _TopDetections, changed: Floats, truths: Floats, gain: float, what: str) -> str:
    """Return the reason why detections look like changed boxes; empty if they do not."""
    before, after = (top.overlapped(boxes, truths) for boxes in (top.corners, changed))
    fits = after - before >= max(1, gain * len(top))
    return f"{_fractions(before, after, len(top))} as {what}" if fits else ""


def _centers(table: Detections | None, path: str, why: str) -> Problem:
    """Return the problem of centers; its hint names an option only if that helps."""
    message = (
        "boxes look like [center x, center y, width, height] but are read as [x, y, width, "
        f"height]: {why}"
    )
    remedy = "correct the boxes"
    files = () if table is None else table.files
    given = [file.fixed_boxes or "boxes" in str(file.reading) for file in files]
    if files and not any(given):
        remedy = "pass --dt-boxes cxcywh (dt_boxes='cxcywh')"
    return Problem(path, "", message, f"{remedy}, or pass {INSIST}")


def _corners(
    table: GroundTruth | Detections | None, path: str, option: str, why: str, order: str
) -> Problem:
    """Return the problem of corners; its hint names an option only if that helps."""
    if order or (table is not None and any(file.fixed_boxes for file in table.files)):
        looks = "corners" if order else "[x1, y1, x2, y2]"
        reason = f"{order}; {why}" if order else why
        message = f"boxes look like {looks} taken as [x, y, width, height]: {reason}"
        return Problem(path, "", message, f"correct the boxes, or pass {INSIST}")
    message = f"boxes look like [x1, y1, x2, y2] but are read as [x, y, width, height]: {why}"
    hint = f"pass {option} xyxy (boxes='xyxy'; box_format='xyxy' for arrays), or {INSIST}"
    return Problem(path, "", message, hint)


def _fractions(as_read: int, changed: int, total: int) -> str:
    return (
        f"{100 * as_read / total:.0f}% of the top detections per image and class have IoU >= "
        f"{_MIN_IOU:g} with a ground truth, {100 * changed / total:.0f}%"
    )


def _scales(top: _TopDetections, sizes: Floats, path: str) -> Iterator[FailedCheck]:
    """Yield a failed check if detections look like pixels of a network's input."""
    best, overlapped = len(top), top.overlapped(top.corners, top.truths)
    if overlapped >= _FINE * best:
        return
    counts = [
        top.overlapped(_scaled_back(top.corners, sizes, *scale), top.truths) for scale in _SCALES
    ]
    scaled = max(counts)
    if scaled < _SCALED * best or scaled - overlapped < _SCALE_GAIN * best:
        return
    # Boxes whose top-left corner was read as their center overlap after a scale too.
    if top.overlapped(top.corners + half_sizes(top.corners), top.truths) > scaled:
        return
    mode, size = _SCALES[counts.index(scaled)]
    name, formula, where = (text.replace("S", str(size)) for text in _MODES[mode])
    message = (
        f"boxes look like pixels of a {size}x{size} {name} network input: "
        f"{_fractions(overlapped, scaled, best)} scaled back"
    )
    hint = f"scale them back to image pixels ({formula}, {where}), or pass {INSIST}"
    yield FailedCheck("detections-in-network-pixels", Problem(path, "", message, hint))


def check_boxes(
    ground_truth: GroundTruth | None, detections: Detections | None, *, boxes: bool
) -> tuple[Note, ...]:
    """Raise InputError if boxes look misread; return warnings if input is taken as is."""
    tables = ground_truth, detections
    first, second = ("" if table is None else table.path for table in tables)
    failed_checks = failed_box_checks(*tables, (first, second), boxes=boxes)
    notes = [note for table in tables if table is not None for note in table.notes]
    return (*warned(failed_checks, notes), *_equal_boxes(ground_truth, detections))


def _equal_boxes(truth: GroundTruth | None, detections: Detections | None) -> Iterator[Note]:
    """Yield the warning of detections without scores whose boxes are those of the ground truth."""
    if truth is None or detections is None or detections.has_scores:
        return
    if len(truth) != len(detections):
        return
    tables = [(*table.corners.T, table.label, table.image) for table in (truth, detections)]
    first, second = (np.array(columns)[:, np.lexsort(columns)] for columns in tables)
    if np.array_equal(first, second):
        message = "all boxes are those of the ground truth: is one file given as both?"
        yield Note("detections-equal-ground-truth", message, len(detections))


def warned(
    failed_checks: Sequence[FailedCheck], notes: Iterable[Note], *, refuse: bool = True
) -> tuple[Note, ...]:
    """Raise InputError for failed checks, or return those that are not in `notes` as warnings."""
    given = [*notes]
    if refuse and failed_checks and AS_IS not in given:
        raise InputError([check.problem for check in failed_checks])
    codes = {note.code for note in given}
    new = (check for check in failed_checks if check.code not in codes)
    return tuple(Note(check.code, check.problem.message) for check in new)
