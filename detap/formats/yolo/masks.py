"""Polygons of YOLO rows as masks.

Ultralytics writes predicted masks as contours: their corners are the centers of the mask's border
pixels (OpenCV's ``findContours``). Labels are outlines, as in COCO.

Reference: Ultralytics 8.4.190, ``masks2segments``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.checks.masks import oversized_masks
from detap.core.masks import contour_runs
from detap.errors import InputError, Note, Problem
from detap.formats.by_name.problems import RowReader
from detap.formats.text.rows import Rows
from detap.tables.detection import Floats, Integers
from detap.tables.masks import Masks

_NEAR, _ROUNDED = 0.002, 1e-6
"""Distance in pixels of contours from whole numbers, and rounding to six digits."""


class Outlines(NamedTuple):
    """The polygons of N rows.

    Attributes
    ----------
    points : (P, 2) float64
        Normalized x and y.
    ends : (N,) int64
        End of the points of each row.
    joined : list of int
        Once drawn as contours of pixels, the number of those with parts joined by lines; -1 once
        drawn as outlines.
    """

    points: Floats
    ends: NDArray[np.int64]
    joined: list[int]

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of points of each row, (N,)."""
        return np.diff(self.ends, prepend=0)

    def bounds(self) -> Floats:
        """Return the lowest x and y and the highest x and y of each row, (N, 4)."""
        starts = self.ends - self.counts
        low, high = (f.reduceat(self.points, starts) for f in (np.minimum, np.maximum))
        return np.hstack([low, high])

    def notes(self, title: str) -> tuple[Note, ...]:
        """Note how predicted polygons were drawn."""
        if not self.joined:
            return ()
        code, message = "outlines", "drawn as outlines: vertices are not centers of pixels"
        if self.joined[0] >= 0:
            code, message = "contours", "contours of pixels, filled with their border"
        if self.joined[0] > 0:
            message += f"; lines join the parts of {self.joined[0]}"
        text = f"polygons of the {title} are {message}; predictions.json has exact masks"
        return (Note(code, text, len(self.ends), severity="info"),)


def outlines_of(rows: Rows, *, scored: bool) -> Outlines:
    """Return the coordinates of all rows as points."""
    numbers, ends = rows.numbers, rows.ends
    if scored:
        numbers, ends = np.delete(numbers, ends - 1), ends - np.arange(1, len(rows) + 1)
    return Outlines(numbers.reshape(-1, 2), ends // 2, [])


def masks_of(
    outlines: Outlines, size: Floats, image: Integers, reader: RowReader, *, scored: bool
) -> Masks:
    """Return the masks of polygons, in images of the sizes (N, 2).

    `image` (N,) is the index of the image of each polygon.
    """
    if not len(size):
        return Masks.none()
    fractional = np.flatnonzero((size != np.floor(size)).any(axis=1))
    if len(fractional):
        row = int(fractional[0])
        message = f"image size {size[row].tolist()} is not in whole pixels, required for masks"
        raise InputError(Problem(*reader.location(row), message, "correct the size of the image"))
    sizes = size[:, ::-1].astype(np.int32)
    scale = np.repeat(size, outlines.counts, axis=0)
    points = outlines.points * scale
    if scored:
        if _are_contours(points, scale):
            return _filled(np.rint(points).astype(np.int32), outlines, sizes)
        outlines.joined.append(-1)
    short = np.flatnonzero(outlines.counts < 3)
    if len(short):
        message = "is a box or a line among polygons, whose vertices are not pixels"
        raise InputError(Problem(*reader.location(int(short[0])), message, "write a polygon"))
    count = len(sizes)
    masks = Masks(
        sizes,
        np.zeros(count + 1, np.int64),
        np.zeros(0, np.uint32),
        np.arange(count + 1, dtype=np.int64),
        outlines.ends,
        points,
    )
    large = oversized_masks(np.arange(count), masks, image, reader.limits.mask_runs)
    problems = [Problem(*reader.location(row), *words) for row, *words in large]
    if problems:
        raise InputError(problems)
    return masks


def _are_contours(points: Floats, scale: Floats) -> bool:
    """Return True if all points are centers of pixels of their image."""
    nearest = np.rint(points)
    near = np.abs(points - nearest) <= np.maximum(_NEAR, _ROUNDED * scale)
    return bool((near & (nearest >= 0) & (nearest < scale)).all())


def _filled(points: NDArray[np.int32], outlines: Outlines, sizes: NDArray[np.int32]) -> Masks:
    shapes = [(height, width) for height, width in sizes.tolist()]
    contours = np.split(points, outlines.ends[:-1])
    outlines.joined.append(sum(map(_has_joining_line, contours)))
    runs = [contour_runs(ring, shape) for ring, shape in zip(contours, shapes, strict=True)]
    return Masks.of_runs(shapes, runs)


def _has_joining_line(ring: NDArray[np.int32]) -> bool:
    """Return True if an edge is neither horizontal, vertical nor diagonal."""
    across, down = np.abs(np.roll(ring, -1, axis=0) - ring).T
    return bool(((across > 0) & (down > 0) & (across != down)).any())
