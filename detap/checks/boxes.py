"""Plausibility checks for boxes: corners read as x, y, width, height; network pixels; normalized.

The counts are taken per image, on a sample that depends on image names alone. The merged counts of
shards are therefore those of one file, and the checks give the same result.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from detap.checks.tables import check_units, normalized_problem, of_unknown_size
from detap.display import Brief
from detap.errors import InputError, Note, Problem
from detap.tables.detection import Detections, Flags, Floats, GroundTruth, Name
from detap.tables.notes import AS_IS, INSIST

Counts = NDArray[np.int64]
Keys = NDArray[np.uint64]
Rows = NDArray[np.intp]

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


class Count:
    """Columns of the counts of an image; :data:`_SCALES` have one each after these."""

    TRUTHS = 0
    TRUTHS_ORDERED = 1
    """Ground truths whose width and height exceed x and y."""
    TRUTHS_SMALL = 2
    """Ground truths within the first two pixels."""
    TRUTHS_FRACTIONAL = 3
    """Ground truths with an area and at most one integer coordinate."""
    TRUTHS_FAR = 4
    """Ground truths that extend beyond ten pixels."""
    DETECTIONS = 5
    DETECTIONS_ORDERED = 6
    DETECTIONS_SMALL = 7
    DETECTIONS_FRACTIONAL = 8
    DETECTIONS_FAR = 9
    SIZED = 10
    """Ground truths on an image of known size."""
    BEYOND = 11
    """Ground truths that extend beyond it by 1% and a pixel."""
    PRODUCTS = 12
    """Other ground truths whose area is that of two corners, not of their box."""
    TINY_IMAGE = 13
    """1 if the image is known to be at most two pixels large."""
    LARGE_IMAGE = 14
    """1 if it is known to be ten pixels or larger."""
    BEST = 15
    """Top-scored detections, one per class of the image's ground truth."""
    OVERLAPPED = 16
    """Top detections with IoU >= 0.5 with a ground truth of their class."""
    OVERLAPPED_DT_CORNERS = 17
    OVERLAPPED_GT_CORNERS = 18
    OVERLAPPED_BOTH_CORNERS = 19


_FIRST_SCALE = 20
COUNTS = _FIRST_SCALE + len(_SCALES)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SampledBoxCounts(Brief):
    """Counts of sampled images."""

    key: Keys  # (n,): keys of the sampled images, ascending
    counts: Counts  # (n, COUNTS) int64


NOTHING = SampledBoxCounts(np.zeros(0, np.uint64), np.zeros((0, COUNTS), np.int64))


def count_sampled_boxes(
    ground_truth: GroundTruth | None,
    detections: Detections | None,
    *,
    boxes: bool = True,
    whole: bool = False,
) -> SampledBoxCounts:
    """Count the boxes of one table, or of two on the images with boxes in both."""
    check_units(ground_truth, detections)
    tables = [table for table in (ground_truth, detections) if table is not None]
    if not tables or any(map(of_unknown_size, tables)):
        return NOTHING
    keys, sample = _sampled(tables)
    counts = np.zeros((len(keys), COUNTS), np.int64)
    sampled = sample.index >= 0
    rows = [np.flatnonzero(sampled.take(table.image)) for table in tables]
    if ground_truth is not None:
        sample.count_boxes(ground_truth, rows[0], counts[:, Count.TRUTHS :])
        sample.count_ground_truths(ground_truth, rows[0], counts)
    if detections is not None:
        sample.count_boxes(detections, rows[-1], counts[:, Count.DETECTIONS :])
        if ground_truth is not None and boxes:
            sample.count_overlapped(
                (ground_truth, rows[0]), (detections, rows[1]), counts, whole=whole
            )
    return SampledBoxCounts(keys, counts)


def sampled_detections(
    ground_truth: GroundTruth, detections: Detections
) -> tuple[Detections, Detections]:
    """Return the detections on the sampled images, and these with the first of every image.

    :func:`check_boxes` gives the same for the second as for all.
    """
    is_sampled = _sampled([ground_truth, detections])[1].index >= 0
    first = np.zeros(len(detections.images), np.intp)
    first[detections.image[::-1]] = np.arange(len(detections))[::-1]
    kept = is_sampled[detections.image]
    sampled = detections.select(kept)
    kept[first[detections.images_with_rows]] = True
    return sampled, detections.select(kept)


def _sampled(tables: Sequence[GroundTruth | Detections]) -> tuple[Keys, "_Sample"]:
    """Return the keys of the sampled images, ascending, and the sample."""
    in_all = np.ones(len(tables[0].images), np.bool_)
    for table in tables:
        in_table = np.zeros(len(in_all), np.bool_)
        in_table[table.image] = True
        in_all &= in_table
    images = np.flatnonzero(in_all)
    keys = image_keys([tables[0].images[image] for image in images.tolist()])
    first = np.lexsort((keys,))[:IMAGES]
    return keys[first], _Sample(images[first], len(in_all))


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


class _Sample:
    """Sampled images, and the counts of their boxes."""

    def __init__(self, images: NDArray[np.intp], image_count: int) -> None:
        self.images = images
        self.index = np.full(image_count, -1, np.int64)
        self.index[images] = np.arange(len(images))

    def _sum(self, flags: Flags, index: NDArray[np.int64]) -> Counts:
        return np.bincount(index, flags, len(self.images)).astype(np.int64)

    def count_boxes(self, table: GroundTruth | Detections, rows: Rows, to: Counts) -> None:
        """Fill the columns that both tables have."""
        corners, index = table.corners[rows], self.index[table.image[rows]]
        with np.errstate(over="ignore", invalid="ignore"):
            ordered = (corners[:, 2:] - corners[:, :2] > corners[:, :2]).all(axis=1)
        reach = np.abs(corners).max(axis=1, initial=0)
        fractional = (corners != np.floor(corners)).sum(axis=1) >= 3  # one may be on the border
        fractional &= (corners[:, :2] != corners[:, 2:]).all(axis=1)
        every = np.ones(len(rows), np.bool_)
        columns = (every, ordered, reach <= _SMALL, fractional, reach >= _PIXELS)
        for column, flags in enumerate(columns):
            to[:, column] = self._sum(flags, index)

    def count_ground_truths(self, ground_truth: GroundTruth, rows: Rows, to: Counts) -> None:
        """Fill the columns of ground truths and images."""
        corners, index = ground_truth.corners[rows], self.index[ground_truth.image[rows]]
        size = np.full((len(ground_truth.images), 2), np.nan)
        if ground_truth.image_sizes is not None:
            size = ground_truth.image_sizes
        longest = size[self.images].max(axis=1)
        to[:, Count.TINY_IMAGE] = longest <= _SMALL
        to[:, Count.LARGE_IMAGE] = longest >= _PIXELS
        size = size[ground_truth.image[rows]]
        sized = ~np.isnan(size).any(axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            beyond = np.any(corners[:, 2:] > 1.01 * size + 1, axis=1)
            areas = [(c[:, 2:] - c[:, :2]).prod(axis=1) for c in (as_corners(corners), corners)]
            near = np.abs(ground_truth.area[rows] - areas) <= 0.01 * areas[0]
            product: Flags = ~sized & near[0] & ~near[1]  # a box at 0, 0 has both
        for column, flags in (
            (Count.SIZED, sized),
            (Count.BEYOND, beyond),
            (Count.PRODUCTS, product),
        ):
            to[:, column] = self._sum(flags, index)

    def count_overlapped(
        self,
        of_truth: tuple[GroundTruth, Rows],
        of_detections: tuple[Detections, Rows],
        to: Counts,
        *,
        whole: bool,
    ) -> None:
        """Count top detections that overlap a ground truth of their class.

        The top detection has the highest score of an image and class of the ground truth.
        """
        (truth, ground_truths), (detections, rows) = of_truth, of_detections
        classes = max(len(truth.classes), len(detections.classes))
        ground_truths = ground_truths[~truth.crowd[ground_truths]]
        cell_of_truth = (
            self.index[truth.image[ground_truths]] * classes + truth.label[ground_truths]
        )
        has_truth = np.zeros(len(self.images) * classes, np.bool_)
        has_truth[cell_of_truth] = True
        cell = self.index[detections.image[rows]] * classes + detections.label[rows]
        rows, cell = rows[has_truth[cell]], cell[has_truth[cell]]
        order = np.lexsort((-detections.score[rows], cell))
        rows, cell = rows[order], cell[order]
        best = np.ones(len(cell), np.bool_)
        best[1:] = cell[1:] != cell[:-1]
        rows, cell = rows[best], cell[best]
        if not len(rows):
            return
        index = cell // classes
        to[:, Count.BEST] = np.bincount(index, minlength=len(self.images))
        pairs = _Pairs.of(cell, cell_of_truth)
        dt, gt = detections.corners[rows], truth.corners[ground_truths]
        to[:, Count.OVERLAPPED] = self._sum(pairs.overlapped(dt, gt), index)
        sums = to.sum(axis=0)
        if whole or any(map(_may_be_corners, (sums[Count.TRUTHS :], sums[Count.DETECTIONS :]))):
            for column, dt_read, gt_read in (
                (Count.OVERLAPPED_DT_CORNERS, as_corners(dt), gt),
                (Count.OVERLAPPED_GT_CORNERS, dt, as_corners(gt)),
                (Count.OVERLAPPED_BOTH_CORNERS, as_corners(dt), as_corners(gt)),
            ):
                to[:, column] = self._sum(pairs.overlapped(dt_read, gt_read), index)
        if truth.image_sizes is not None and (whole or _few_overlapped(sums)):
            sizes = truth.image_sizes[self.images][index]
            for column, (mode, size) in enumerate(_SCALES, _FIRST_SCALE):
                scaled = _scaled_back(dt, sizes, mode, size)
                to[:, column] = self._sum(pairs.overlapped(scaled, gt), index)


class _Pairs(NamedTuple):
    """Pairs of V detections with the ground truths of their image and class, at least one each."""

    detection: NDArray[np.int64]
    truth: NDArray[np.int64]
    start: NDArray[np.int64]  # (V,) int64

    @classmethod
    def of(cls, cell: NDArray[np.int64], cell_of_truth: NDArray[np.int64]) -> "_Pairs":
        """Pair rows of the same cell (image and class)."""
        order = np.argsort(cell_of_truth, kind="stable")
        ordered = cell_of_truth[order]
        low = np.searchsorted(ordered, cell)
        count = np.searchsorted(ordered, cell, "right") - low
        start = np.cumsum(count) - count
        detection = np.repeat(np.arange(len(cell)), count)
        index = np.arange(len(detection)) - start[detection] + low[detection]
        return cls(detection, order[index], start)

    def overlapped(self, detections: Floats, ground_truths: Floats) -> Flags:
        """Mark detections with IoU >= 0.5 with a ground truth, (V,) bool."""
        dt, gt = detections[self.detection], ground_truths[self.truth]
        with np.errstate(over="ignore", invalid="ignore"):
            width_height = np.minimum(dt[:, 2:], gt[:, 2:]) - np.maximum(dt[:, :2], gt[:, :2])
            common = np.maximum(width_height, 0).prod(axis=1)
            areas = [(boxes[:, 2:] - boxes[:, :2]).prod(axis=1) for boxes in (dt, gt)]
            overlaps = (common > 0) & (common >= _MIN_IOU * (areas[0] + areas[1] - common))
        overlapped: Flags = np.logical_or.reduceat(overlaps, self.start)
        return overlapped


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


# --- checks of the counts


def _may_be_corners(counts: Sequence[int] | Counts) -> bool:
    """Return True if nearly all boxes of a table may be two corners."""
    return bool(counts[1] >= _ORDERED * counts[0])


def _few_overlapped(sums: Sequence[int] | Counts) -> bool:
    """Return True if few top detections overlap a ground truth."""
    return bool(sums[Count.BEST] > 0 and sums[Count.OVERLAPPED] < _FINE * sums[Count.BEST])


class FailedCheck(NamedTuple):
    """A failed plausibility check: the code of its warning, and its problem."""

    code: str
    problem: Problem

    @property
    def note(self) -> Note:
        """The problem as a warning."""
        return Note(self.code, self.problem.message)


def failed_box_checks(sampled: SampledBoxCounts, truth: str, detections: str) -> list[FailedCheck]:
    """Return the failed plausibility checks of boxes."""
    sums: list[int] = sampled.counts.sum(axis=0).tolist()
    return [*_normalized(sums, truth, detections)] or [*_conventions(sums, truth, detections)]


def _normalized(sums: Sequence[int], truth: str, detections: str) -> Iterator[FailedCheck]:
    """Yield the tables with normalized boxes.

    Images or boxes of the other table are larger than a few pixels, or ten boxes look normalized.
    """
    if sums[Count.TINY_IMAGE] and not sums[Count.LARGE_IMAGE]:
        return
    tables = (
        ("ground-truth", truth, sums[Count.TRUTHS :]),
        ("detections", detections, sums[Count.DETECTIONS :]),
    )
    normalized = [
        (role, path, counts[0])
        for role, path, counts in tables
        if 0 < counts[0] == counts[2] and 2 * counts[3] >= counts[0]
    ]
    large = sums[Count.LARGE_IMAGE] + sums[Count.TRUTHS_FAR] + sums[Count.DETECTIONS_FAR]
    if large or sum(count for _, _, count in normalized) >= _ENOUGH:
        for role, path, _ in normalized:
            yield FailedCheck("normalized-boxes", normalized_problem(path, role))


def _why_corners(sums: Sequence[int]) -> str:
    """Return the reason why ground truths look like two corners; empty if they do not."""
    ground_truths, sized, beyond = (sums[k] for k in (Count.TRUTHS, Count.SIZED, Count.BEYOND))
    if ground_truths < _FEWEST_TRUTHS or not _may_be_corners(sums[Count.TRUTHS :]):
        return ""
    if sized:
        return f"{beyond} of {sized} extend beyond their image" if beyond >= _BEYOND * sized else ""
    many = sums[Count.PRODUCTS] >= _ORDERED * ground_truths
    return "their areas are those of two corners" if many else ""


def _conventions(sums: Sequence[int], truth: str, detections: str) -> Iterator[FailedCheck]:
    why = _why_corners(sums)
    as_read, as_corners = (
        (Count.OVERLAPPED_GT_CORNERS, Count.OVERLAPPED_BOTH_CORNERS)
        if why
        else (Count.OVERLAPPED, Count.OVERLAPPED_DT_CORNERS)
    )
    corners_fit = (
        sums[Count.DETECTIONS] >= _FEWEST_DETECTIONS
        and _may_be_corners(sums[Count.DETECTIONS :])
        and 0 < _CORNERS_GAIN * sums[Count.BEST] <= sums[as_corners] - sums[as_read]
    )
    options = ("--boxes", "--boxes") if why and corners_fit else ("--gt-boxes", "--dt-boxes")
    if why:
        problem = _corners(truth, options[0], why)
        yield FailedCheck("ground-truth-look-xyxy", problem)
    if corners_fit:
        gain = f"{_fractions(sums, as_read, as_corners)} as two corners"
        problem = _corners(detections, options[1], gain)
        yield FailedCheck("detections-look-xyxy", problem)
    elif not why and _few_overlapped(sums):
        yield from _scales(sums, detections)


def _corners(path: str, option: str, why: str) -> Problem:
    return Problem(
        path,
        "",
        f"boxes look like [x1, y1, x2, y2] but are read as [x, y, width, height]: {why}",
        f"pass {option} xyxy (boxes='xyxy'; box_format='xyxy' for arrays), or {INSIST}",
    )


def _fractions(sums: Sequence[int], as_read: int, otherwise: int) -> str:
    read, changed = (100 * sums[column] / sums[Count.BEST] for column in (as_read, otherwise))
    return (
        f"{read:.0f}% of the top detections per image and class have IoU >= {_MIN_IOU:g} with a "
        f"ground truth, {changed:.0f}%"
    )


def _scales(sums: Sequence[int], path: str) -> Iterator[FailedCheck]:
    """Yield a failed check if detections look like pixels of a network's input."""
    scaled, best = max(sums[_FIRST_SCALE:]), sums[Count.BEST]
    if scaled < _SCALED * best or scaled - sums[Count.OVERLAPPED] < _SCALE_GAIN * best:
        return
    column = sums.index(scaled, _FIRST_SCALE)
    mode, size = _SCALES[column - _FIRST_SCALE]
    name, formula, where = (text.replace("S", str(size)) for text in _MODES[mode])
    message = (
        f"boxes look like pixels of a {size}x{size} {name} network input: "
        f"{_fractions(sums, Count.OVERLAPPED, column)} scaled back"
    )
    hint = f"scale them back to image pixels ({formula}, {where}), or pass {INSIST}"
    yield FailedCheck("detections-in-network-pixels", Problem(path, "", message, hint))


def check_boxes(
    ground_truth: GroundTruth | None, detections: Detections | None, *, boxes: bool
) -> tuple[Note, ...]:
    """Raise InputError if boxes look misread; return warnings if input is taken as is."""
    sampled = count_sampled_boxes(ground_truth, detections, boxes=boxes)
    notes = [
        note for table in (ground_truth, detections) if table is not None for note in table.notes
    ]
    paths = ("" if table is None else table.path for table in (ground_truth, detections))
    return warned(failed_box_checks(sampled, *paths), notes)


def warned(
    failed_checks: Sequence[FailedCheck], notes: Iterable[Note], *, refuse: bool = True
) -> tuple[Note, ...]:
    """Raise InputError for failed checks, or return them as warnings.

    Warnings that `notes` already has are left out.
    """
    given = [*notes]
    if refuse and failed_checks and AS_IS not in given:
        raise InputError([check.problem for check in failed_checks])
    codes = {note.code for note in given}
    return tuple(check.note for check in failed_checks if check.code not in codes)
