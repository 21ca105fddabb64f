"""Plausibility checks for boxes: corners read as x, y, width, height; network pixels; fractions.

What they go by is counted image by image, on a sample of images that depends on their names alone.
So the counts of parts, merged, are those of the whole, which is judged alike in one file and in
shards.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from detap.checks.tables import check_units, fractions_problem, of_unknown_size
from detap.errors import InputError, Note, Problem
from detap.records import Record
from detap.tables.detection import Detections, Flags, Floats, GroundTruth, Name
from detap.tables.notes import AS_IS, INSIST

Counts = NDArray[np.int64]
Keys = NDArray[np.uint64]
Rows = NDArray[np.intp]

# The thresholds separate 13 real pairs of ground truth and detections from the same pairs with
# corners in place of x, y, width, height, and with boxes left in the pixels of a network's input.
_ORDERED = 0.99
"""Share of boxes whose third and fourth number exceed the first two; at most .8 in real files."""
_FEWEST_DETECTIONS, _FEWEST_TRUTHS = 10, 20
_CORNERS_GAIN = 0.25
_BEYOND = 0.2
"""Share of ground truths beyond their image; at most .012 in real files, .77 of corners."""
_MEETS = 0.5
_FINE = 0.7
"""Share of best detections that meet a ground truth from which on no other scale is tried."""
_SCALED, _SCALE_GAIN = 0.5, 0.2

IMAGES = 64
"""Images of a sample."""

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
    """What is counted of an image; behind these, the best detections that meet if scaled back."""

    TRUTHS = 0
    TRUTHS_ORDERED = 1
    """Those whose third and fourth number exceed the first two, were they x, y, width, height."""
    TRUTHS_SMALL = 2
    """Those within the first two pixels."""
    TRUTHS_FRACTIONAL = 3
    """Those with an area, and with no more than one whole number."""
    TRUTHS_FAR = 4
    """Those that reach beyond ten pixels."""
    DETECTIONS = 5
    DETECTIONS_ORDERED = 6
    DETECTIONS_SMALL = 7
    DETECTIONS_FRACTIONAL = 8
    DETECTIONS_FAR = 9
    SIZED = 10
    """Ground truths on an image of known size."""
    BEYOND = 11
    """Those that reach beyond it by 1 % and a pixel."""
    PRODUCTS = 12
    """Others whose area is that of the two corners that their numbers may be, and not their own."""
    TINY_IMAGE = 13
    """1 where the image is known to be of two pixels at most."""
    LARGE_IMAGE = 14
    """1 where it is known to be of ten pixels or more."""
    BEST = 15
    """The best detections of a class that the image has."""
    MET = 16
    """Those that have an IoU of 0.5 or more with one of its ground truths."""
    MET_IF_DETECTIONS_TURNED = 17
    MET_IF_TRUTHS_TURNED = 18
    MET_IF_BOTH_TURNED = 19


_FIRST_SCALE = 20
COUNTS = _FIRST_SCALE + len(_SCALES)


class BoxEvidence(Record):
    """What the checks go by.

    Attributes
    ----------
    key : (n,) uint64
        The images of the sample, ascending.
    counts : (n, COUNTS) int64
    """

    key: Keys
    counts: Counts

    def of_images(self, images: Sequence[Name]) -> "BoxEvidence":
        """Return the evidence of these images alone."""
        kept = np.isin(self.key, image_keys(images))
        return BoxEvidence(self.key[kept], self.counts[kept])


NOTHING = BoxEvidence(np.zeros(0, np.uint64), np.zeros((0, COUNTS), np.int64))


def evidence_of(
    ground_truth: GroundTruth | None,
    detections: Detections | None,
    *,
    boxes: bool = True,
    whole: bool = False,
) -> BoxEvidence:
    """Collect the evidence of one table, or of two on the images that both have boxes on.

    Parameters
    ----------
    ground_truth, detections : GroundTruth, Detections or None
        Numbered alike.
    boxes : bool
        Whether boxes are what is compared; otherwise they may only be fractions.
    whole : bool
        Whether it will be merged with that of other images: then nothing is left out that these
        alone do not ask for.

    Raises
    ------
    InputError
        Where one side is in fractions of images of unknown size, and the other in pixels.
    """
    check_units(ground_truth, detections)
    tables = [table for table in (ground_truth, detections) if table is not None]
    if not tables or any(map(of_unknown_size, tables)):
        return NOTHING
    keys, sample = _sampled(tables)
    counts = np.zeros((len(keys), COUNTS), np.int64)
    chosen = sample.place >= 0
    rows = [np.flatnonzero(chosen.take(table.image)) for table in tables]
    if ground_truth is not None:
        sample.count_boxes(ground_truth, rows[0], counts[:, Count.TRUTHS :])
        sample.count_truths(ground_truth, rows[0], counts)
    if detections is not None:
        sample.count_boxes(detections, rows[-1], counts[:, Count.DETECTIONS :])
        if ground_truth is not None and boxes:
            sample.count_met((ground_truth, rows[0]), (detections, rows[1]), counts, whole=whole)
    return BoxEvidence(keys, counts)


def _sampled(tables: Sequence[GroundTruth | Detections]) -> tuple[Keys, "_Sample"]:
    """Return the keys of the images of the sample, ascending, and the sample."""
    filled = np.ones(len(tables[0].images), np.bool_)
    for table in tables:
        has = np.zeros(len(filled), np.bool_)
        has[table.image] = True
        filled &= has
    images = np.flatnonzero(filled)
    keys = image_keys([tables[0].images[image] for image in images.tolist()])
    first = np.argsort(keys, kind="stable")[:IMAGES]
    return keys[first], _Sample(images[first], len(filled))


def merged_evidence(parts: Sequence[BoxEvidence]) -> BoxEvidence:
    """Return the evidence of several parts of the images as one."""
    key, place = np.unique(np.concatenate([part.key for part in parts]), return_index=True)
    counts = np.concatenate([part.counts for part in parts])
    return BoxEvidence(key[:IMAGES], counts[place[:IMAGES]])


def image_keys(names: Sequence[Name]) -> Keys:
    """Return a number for each image that depends on its name alone."""
    try:
        keys = np.array(names, np.int64).astype(np.uint64)
    except (ValueError, OverflowError):
        keys = np.array([crc32(str(name).encode("utf-8", "replace")) for name in names], np.uint64)
    # The finalizer of splitmix64.
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Keys = keys ^ (keys >> np.uint64(31))
    return mixed


def _turned(corners: Floats) -> Floats:
    """Return boxes read as x, y, width, height as the two corners that these may be."""
    turned = corners.copy()
    turned[:, 2:] -= corners[:, :2]
    return turned


class _Sample:
    """Some images, and what is counted of the boxes on them.

    Parameters
    ----------
    images : (n,) int
        Their numbers.
    of : int
        How many there are.
    """

    def __init__(self, images: NDArray[np.intp], of: int) -> None:
        self.images = images
        self.place = np.full(of, -1, np.int64)
        self.place[images] = np.arange(len(images))

    def _sum(self, flags: Flags, place: NDArray[np.int64]) -> Counts:
        return np.bincount(place, flags, len(self.images)).astype(np.int64)

    def count_boxes(self, table: GroundTruth | Detections, rows: Rows, to: Counts) -> None:
        """Count what either table has of boxes, from the first column on."""
        corners, place = table.corners[rows], self.place[table.image[rows]]
        with np.errstate(over="ignore", invalid="ignore"):
            ordered = (corners[:, 2:] - corners[:, :2] > corners[:, :2]).all(axis=1)
        reach = np.abs(corners).max(axis=1, initial=0)
        broken = (corners != np.floor(corners)).sum(axis=1) >= 3  # one may lie on the border
        broken &= (corners[:, :2] != corners[:, 2:]).all(axis=1)
        every = np.ones(len(rows), np.bool_)
        columns = (every, ordered, reach <= _SMALL, broken, reach >= _PIXELS)
        for column, flags in enumerate(columns):
            to[:, column] = self._sum(flags, place)

    def count_truths(self, ground_truth: GroundTruth, rows: Rows, to: Counts) -> None:
        """Count what ground truth alone has, and images."""
        corners, place = ground_truth.corners[rows], self.place[ground_truth.image[rows]]
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
            areas = [(c[:, 2:] - c[:, :2]).prod(axis=1) for c in (_turned(corners), corners)]
            near = np.abs(ground_truth.area[rows] - areas) <= 0.01 * areas[0]
            product: Flags = ~sized & near[0] & ~near[1]  # of a box at 0, 0 it is both
        for column, flags in (
            (Count.SIZED, sized),
            (Count.BEYOND, beyond),
            (Count.PRODUCTS, product),
        ):
            to[:, column] = self._sum(flags, place)

    def count_met(
        self,
        of_truth: tuple[GroundTruth, Rows],
        of_found: tuple[Detections, Rows],
        to: Counts,
        *,
        whole: bool,
    ) -> None:
        """Count how many best detections meet a ground truth of their class.

        The best is that of the highest score of each image and class that the ground truth has.
        """
        (truth, truths), (detections, rows) = of_truth, of_found
        classes = max(len(truth.classes), len(detections.classes))
        truths = truths[~truth.crowd[truths]]
        cell_of_truth = self.place[truth.image[truths]] * classes + truth.label[truths]
        due = np.zeros(len(self.images) * classes, np.bool_)
        due[cell_of_truth] = True
        cell = self.place[detections.image[rows]] * classes + detections.label[rows]
        rows, cell = rows[due[cell]], cell[due[cell]]
        order = np.lexsort((-detections.score[rows], cell))
        rows, cell = rows[order], cell[order]
        best = np.ones(len(cell), np.bool_)
        best[1:] = cell[1:] != cell[:-1]
        rows, cell = rows[best], cell[best]
        if not len(rows):
            return
        place = cell // classes
        to[:, Count.BEST] = np.bincount(place, minlength=len(self.images))
        pairs = _Pairs.of(cell, cell_of_truth)
        found, others = detections.corners[rows], truth.corners[truths]
        to[:, Count.MET] = self._sum(pairs.met(found, others), place)
        sums = to.sum(axis=0)
        if whole or any(map(_may_be_corners, (sums[Count.TRUTHS :], sums[Count.DETECTIONS :]))):
            for reading, one, other in (
                (Count.MET_IF_DETECTIONS_TURNED, _turned(found), others),
                (Count.MET_IF_TRUTHS_TURNED, found, _turned(others)),
                (Count.MET_IF_BOTH_TURNED, _turned(found), _turned(others)),
            ):
                to[:, reading] = self._sum(pairs.met(one, other), place)
        if truth.image_sizes is not None and (whole or _few_met(sums)):
            sizes = truth.image_sizes[self.images][place]
            for column, (mode, size) in enumerate(_SCALES, _FIRST_SCALE):
                scaled = _scaled_back(found, sizes, mode, size)
                to[:, column] = self._sum(pairs.met(scaled, others), place)


class _Pairs(NamedTuple):
    """The ground truths in the cell of each of V detections, which has at least one.

    Attributes
    ----------
    detection, truth : (P,) int64
    start : (V,) int64
    """

    detection: NDArray[np.int64]
    truth: NDArray[np.int64]
    start: NDArray[np.int64]

    @classmethod
    def of(cls, cell: NDArray[np.int64], cell_of_truth: NDArray[np.int64]) -> "_Pairs":
        """Return the pairs of rows that are in the same cell."""
        order = np.argsort(cell_of_truth, kind="stable")
        ordered = cell_of_truth[order]
        low = np.searchsorted(ordered, cell)
        count = np.searchsorted(ordered, cell, "right") - low
        start = np.cumsum(count) - count
        detection = np.repeat(np.arange(len(cell)), count)
        place = np.arange(len(detection)) - start[detection] + low[detection]
        return cls(detection, order[place], start)

    def met(self, detections: Floats, truths: Floats) -> Flags:
        """Return which detections have an IoU of 0.5 or more with a ground truth, (V,) bool."""
        one, other = detections[self.detection], truths[self.truth]
        with np.errstate(over="ignore", invalid="ignore"):
            sides = np.minimum(one[:, 2:], other[:, 2:]) - np.maximum(one[:, :2], other[:, :2])
            common = np.maximum(sides, 0).prod(axis=1)
            areas = [(boxes[:, 2:] - boxes[:, :2]).prod(axis=1) for boxes in (one, other)]
            meets = (common > 0) & (common >= _MEETS * (areas[0] + areas[1] - common))
        found: Flags = np.logical_or.reduceat(meets, self.start)
        return found


def _scaled_back(corners: Floats, sizes: Floats, mode: int, size: int) -> Floats:
    """Return boxes in the pixels of a network's square input in those of their images."""
    with np.errstate(over="ignore", invalid="ignore"):
        scale = size / sizes
        if mode == 2:
            return corners / np.hstack((scale, scale))
        ratio = scale.min(axis=1, keepdims=True)
        pad = (size - sizes * ratio) / 2 * (mode == 0)
        scaled: Floats = (corners - np.hstack((pad, pad))) / ratio
        return scaled


# --- judged


def _may_be_corners(side: Sequence[int] | Counts) -> bool:
    """Return whether nearly all boxes of a side may be two corners, by its counts."""
    return bool(side[1] >= _ORDERED * side[0])


def _few_met(sums: Sequence[int] | Counts) -> bool:
    """Return whether so few detections meet a ground truth that other scales are tried."""
    return bool(sums[Count.BEST] > 0 and sums[Count.MET] < _FINE * sums[Count.BEST])


class Suspicion(NamedTuple):
    """What looks wrong: the code of its warning, and the problem that it is."""

    code: str
    problem: Problem

    @property
    def note(self) -> Note:
        """The warning."""
        return Note(self.code, self.problem.message)


def suspicions_of(evidence: BoxEvidence, truth: str, detections: str) -> list[Suspicion]:
    """Return what looks wrong about boxes.

    Parameters
    ----------
    evidence : BoxEvidence
    truth, detections : str
        What messages call either input.
    """
    sums: list[int] = evidence.counts.sum(axis=0).tolist()
    return [*_fractions(sums, truth, detections)] or [*_conventions(sums, truth, detections)]


def _fractions(sums: Sequence[int], truth: str, detections: str) -> Iterator[Suspicion]:
    """Yield the sides in fractions where pixels are due.

    They are due where images, or the other side's boxes, are larger than a few pixels; and where
    neither is known to be, but ten boxes or more look so.
    """
    if sums[Count.TINY_IMAGE] and not sums[Count.LARGE_IMAGE]:
        return
    sides = (
        ("the ground truth", truth, sums[Count.TRUTHS :]),
        ("the detections", detections, sums[Count.DETECTIONS :]),
    )
    fractions = [
        (what, path, side[0])
        for what, path, side in sides
        if 0 < side[0] == side[2] and 2 * side[3] >= side[0]
    ]
    large = sums[Count.LARGE_IMAGE] + sums[Count.TRUTHS_FAR] + sums[Count.DETECTIONS_FAR]
    if large or sum(count for _, _, count in fractions) >= _ENOUGH:
        for what, path, _ in fractions:
            yield Suspicion("normalized-boxes", fractions_problem(path, what))


def _why_corners(sums: Sequence[int]) -> str:
    """Return why ground truths seem to be two corners each; empty if they do not."""
    truths, sized, beyond = (sums[k] for k in (Count.TRUTHS, Count.SIZED, Count.BEYOND))
    if truths < _FEWEST_TRUTHS or not _may_be_corners(sums[Count.TRUTHS :]):
        return ""
    if sized:
        return f"{beyond} of {sized} reach beyond their image" if beyond >= _BEYOND * sized else ""
    many = sums[Count.PRODUCTS] >= _ORDERED * truths
    return "their area is that of two corners" if many else ""


def _conventions(sums: Sequence[int], truth: str, detections: str) -> Iterator[Suspicion]:
    why = _why_corners(sums)
    as_read, turned = (
        (Count.MET_IF_TRUTHS_TURNED, Count.MET_IF_BOTH_TURNED)
        if why
        else (Count.MET, Count.MET_IF_DETECTIONS_TURNED)
    )
    found_turned = (
        sums[Count.DETECTIONS] >= _FEWEST_DETECTIONS
        and _may_be_corners(sums[Count.DETECTIONS :])
        and 0 < _CORNERS_GAIN * sums[Count.BEST] <= sums[turned] - sums[as_read]
    )
    options = ("--boxes", "--boxes") if why and found_turned else ("--gt-boxes", "--dt-boxes")
    if why:
        problem = _corners(truth, options[0], why)
        yield Suspicion("ground-truth-look-xyxy", problem)
    if found_turned:
        gain = f"{_shares(sums, as_read, turned)} as two corners"
        problem = _corners(detections, options[1], gain)
        yield Suspicion("detections-look-xyxy", problem)
    elif not why and _few_met(sums):
        yield from _scales(sums, detections)


def _corners(path: str, option: str, why: str) -> Problem:
    return Problem(
        path,
        "",
        f"boxes look like x1, y1, x2, y2, and are read as x, y, width, height: {why}",
        f"give {option} xyxy (boxes='xyxy'; of arrays, box_format='xyxy'); or, if they are x, y, "
        f"width, height, {INSIST}",
    )


def _shares(sums: Sequence[int], as_read: int, otherwise: int) -> str:
    read, changed = (100 * sums[column] / sums[Count.BEST] for column in (as_read, otherwise))
    return (
        f"{read:.0f} % of the best detections of an image and class have an IoU of {_MEETS:g} or "
        f"more with a ground truth as they are, {changed:.0f} %"
    )


def _scales(sums: Sequence[int], path: str) -> Iterator[Suspicion]:
    """Yield that detections are in the pixels of a network's input."""
    met, best = max(sums[_FIRST_SCALE:]), sums[Count.BEST]
    if met < _SCALED * best or met - sums[Count.MET] < _SCALE_GAIN * best:
        return
    column = sums.index(met, _FIRST_SCALE)
    mode, size = _SCALES[column - _FIRST_SCALE]
    name, formula, where = (text.replace("S", str(size)) for text in _MODES[mode])
    message = (
        f"boxes seem to be in pixels of a {size}x{size} {name} input: "
        f"{_shares(sums, Count.MET, column)} scaled back"
    )
    hint = f"scale them back to the pixels of their image: {formula}, {where}; or, if they are, "
    yield Suspicion(
        "detections-in-network-pixels", Problem(path, "", message, f"{hint}give {INSIST}")
    )


def check_boxes(
    ground_truth: GroundTruth | None, detections: Detections | None, *, boxes: bool
) -> tuple[Note, ...]:
    """Refuse boxes that look as if they were of another convention than they are read as.

    Parameters
    ----------
    ground_truth, detections : GroundTruth, Detections or None
        Numbered alike. Where either bears :data:`AS_IS`, warnings are returned instead, but those
        that a reader has given.
    boxes : bool
        Whether boxes are what is compared.

    Raises
    ------
    InputError
    """
    evidence = evidence_of(ground_truth, detections, boxes=boxes)
    notes = [
        note for table in (ground_truth, detections) if table is not None for note in table.notes
    ]
    paths = ("" if table is None else table.path for table in (ground_truth, detections))
    return warned(suspicions_of(evidence, *paths), notes)


def warned(
    suspicions: Sequence[Suspicion], notes: Iterable[Note], *, refuse: bool = True
) -> tuple[Note, ...]:
    """Refuse what looks wrong; or, of input that is taken as it is, return it as warnings.

    So it is returned of a part of the input, which is refused with the others.

    Those that a reader has given are left out.

    Raises
    ------
    InputError
    """
    given = [*notes]
    if refuse and suspicions and AS_IS not in given:
        raise InputError([suspicion.problem for suspicion in suspicions])
    said = {note.code for note in given}
    return tuple(suspicion.note for suspicion in suspicions if suspicion.code not in said)
