"""A sample of overlaps: images, spread evenly, so that its cost is bounded whatever the tables."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core.overlap import overlaps
from detap.tables.detection import Detections, Flags, Floats, GroundTruth, Name

Rows = NDArray[np.intp]

MEETS = 0.5
"""The overlap from which a detection is taken to mean an object."""

MOST_MET = 0.5
"""Where more ground truths than this are met, boxes are what they should be."""

_TIGHT = 0.75
"""An overlap that boxes of different objects seldom have."""

_FAR = 1e150
"""Corners are looked at no further out, so that no area overflows."""

_PAIRS = 1_000_000
"""Pairs of boxes that a sample may have, and any one image of it."""

_IMAGES = 1_000


class _Image(NamedTuple):
    """The rows of one image, and what overlaps."""

    truths: Rows
    found: Rows


class Sample:
    """Images, spread evenly, that have both ground truths and detections.

    Attributes
    ----------
    rows : (G,) int
        The ground truths in them; crowds, which are no single object, are left out.
    """

    def __init__(self, ground_truth: GroundTruth, detections: Detections) -> None:
        self.ground_truth = ground_truth
        self.detections = detections
        self._parts = list(_sampled(ground_truth, detections))
        self.rows = _joined([part.truths for part in self._parts])

    @property
    def images(self) -> int:
        """How many there are."""
        return len(self._parts)

    @property
    def best(self) -> tuple[Floats, Rows, Floats]:
        """For each ground truth (G,): its largest overlap with any detection, that detection's
        row, and its largest overlap with one of its own class.
        """  # noqa: D205 - three columns
        return self._seen[:3]

    @property
    def right(self) -> tuple[Rows, Flags]:
        """The detections (N,) of these images, and whether each meets one of its own class."""
        return self._seen[3:]

    @cached_property
    def _seen(self) -> tuple[Floats, Rows, Floats, Rows, Flags]:
        areas, at, own, right = [], [], [], []
        for part, overlap in self._overlaps():
            winner = overlap.argmax(axis=0)
            areas.append(overlap[winner, np.arange(overlap.shape[1])])
            at.append(part.found[winner])
            alike = self._alike(part, overlap)
            own.append(alike.max(axis=0))
            right.append(alike.max(axis=1) >= MEETS)
        found = [part.found for part in self._parts]
        return (
            _joined(areas, np.float64),
            _joined(at),
            _joined(own, np.float64),
            _joined(found),
            _joined(right, np.bool_),
        )

    def _alike(self, part: _Image, overlap: Floats) -> Floats:
        """Return the overlaps of one class, 0 where classes differ."""
        alike = self.detections.label[part.found][:, None] == self.ground_truth.label[part.truths]
        return np.where(alike, overlap, 0.0)

    @property
    def met(self) -> Flags:
        """Whether each ground truth (G,) is met by a detection of any class."""
        return self.best[0] >= MEETS

    @property
    def met_by_class(self) -> Flags:
        """Whether each ground truth (G,) is met by one of its class."""
        return self.best[2] >= MEETS

    def met_if(
        self,
        of_found: "Change | None" = None,
        of_truths: "Change | None" = None,
        parts: "Sequence[_Image] | None" = None,
    ) -> Flags:
        """Return whether each ground truth would be met if boxes meant something else.

        Parameters
        ----------
        of_found, of_truths : Change, optional
            What the detections and the ground truths would mean; by default what they say.
        parts : sequence, optional
            Other pairs of rows than those of each image.
        """
        overlaps_of = self._overlaps(of_found, of_truths, parts)
        met: Flags = _joined([overlap.max(axis=0) >= MEETS for _, overlap in overlaps_of], np.bool_)
        return met

    def tight(self) -> NDArray[np.intp]:
        """Return how many ground truths of each image each image's detections fit, (I, I).

        They fit one of their own class at an overlap of :data:`_TIGHT`.
        """
        count = self.images
        fits = np.zeros((count, count), np.intp)
        for j, other in enumerate(self._parts):
            mixed = [_Image(part.truths, other.found) for part in self._parts]
            for i, (part, overlap) in enumerate(self._overlaps(parts=mixed)):
                fits[i, j] = np.count_nonzero(self._alike(part, overlap).max(axis=0) >= _TIGHT)
        return fits

    def name(self, number: int) -> Name:
        """Return the name of one of the images looked at."""
        return self.ground_truth.images[int(self.ground_truth.image[self._parts[number].truths[0]])]

    def chance(self, of_found: "Change | None" = None, of_truths: "Change | None" = None) -> float:
        """Return the share of ground truths met by the detections of other images than theirs.

        Parameters
        ----------
        of_found, of_truths : Change, optional
            As for :meth:`met_if`.
        """
        most = _PAIRS // max(1, self.images)
        mixed = [
            _Image(_thinned(part.truths, len(other.found), most), other.found)
            for step in range(1, min(4, self.images))
            for part, other in zip(
                self._parts, self._parts[step:] + self._parts[:step], strict=True
            )
        ]
        return share_of(self.met_if(of_found, of_truths, mixed))

    def _overlaps(
        self,
        of_found: "Change | None" = None,
        of_truths: "Change | None" = None,
        parts: "Sequence[_Image] | None" = None,
    ) -> Iterator[tuple[_Image, Floats]]:
        for part in self._parts if parts is None else parts:
            one = _boxes(self._read(self.detections, part.found, of_found))
            other = _boxes(self._read(self.ground_truth, part.truths, of_truths))
            yield part, overlaps(one, other, detection_areas=_areas(one), truth_areas=_areas(other))

    def _read(self, table: GroundTruth | Detections, rows: Rows, change: "Change | None") -> Floats:
        corners = table.corners[rows]
        if change is None:
            return corners
        sizes = self.ground_truth.image_sizes
        known = np.full((len(rows), 2), np.nan) if sizes is None else sizes[table.image[rows]]
        return change(corners, known)


def share_of(flags: Flags) -> float:
    """Return which share of flags are set; 0 where there is none."""
    return float(flags.mean()) if len(flags) else 0.0


def beyond_chance(count: float, share: float, of: int) -> bool:
    """Return whether a count is more than three standard deviations above what is expected.

    Parameters
    ----------
    count : float
    share : float
        The share that is expected.
    of : int
        How many there are.
    """
    expected = share * of
    return bool(count > expected + 3 * (expected + 1) ** 0.5)


def _joined(parts: list[Any], kind: Any = np.intp) -> Any:
    return np.concatenate(parts) if parts else np.zeros(0, kind)


def _boxes(corners: Floats) -> Floats:
    """Return boxes of which none ends before it begins: such have no area instead."""
    corners = np.clip(np.nan_to_num(corners), -_FAR, _FAR)
    corners[:, 2:] = np.maximum(corners[:, 2:], corners[:, :2])
    return corners


def _areas(corners: Floats) -> Floats:
    # Never quite 0, so that nothing divides by it.
    sides = corners[:, 2:] - corners[:, :2]
    areas: Floats = np.maximum(sides[:, 0] * sides[:, 1], 1e-300)
    return areas


def _sampled(truth: GroundTruth, detections: Detections) -> Iterator[_Image]:
    images = len(truth.images)
    truths = np.bincount(truth.image[~truth.crowd], minlength=images)
    found = np.bincount(detections.image, minlength=images)
    both = np.flatnonzero((truths > 0) & (found > 0))
    if not len(both):
        return
    pairs = int(np.minimum(truths[both].astype(np.int64) * found[both], _PAIRS).sum())
    step = max(1, -(-len(both) // _IMAGES), -(-pairs // _PAIRS))
    chosen = both[::step]
    wanted = np.zeros(images, np.bool_)
    wanted[chosen] = True
    rows = [_by_image(table.image, wanted) for table in (truth, detections)]
    for image in chosen.tolist():
        of_truth, of_found = (
            order[np.searchsorted(image_of, image) : np.searchsorted(image_of, image, "right")]
            for order, image_of in rows
        )
        of_truth = of_truth[~truth.crowd[of_truth]]
        yield _Image(_thinned(of_truth, len(of_found), _PAIRS), of_found)


def _thinned(truths: Rows, found: int, most: int) -> Rows:
    """Return ground truths, evenly spread, that make at most so many pairs; at least one.

    All detections stay: a ground truth is met or not by any of them.
    """
    return truths[:: max(1, -(-len(truths) * found // max(1, most)))]


def _by_image(image: NDArray[np.int32], wanted: Flags) -> tuple[Rows, NDArray[np.int32]]:
    """Return the rows of the images that are wanted, sorted by image, and their images."""
    rows = np.flatnonzero(wanted[image])
    rows = rows[np.argsort(image[rows], kind="stable")]
    return rows, image[rows]


Change = Callable[[Floats, Floats], Floats]
"""From corners (n, 4) and the image sizes (n, 2) of their rows to the corners that were meant."""
