"""Masks of a table as run lengths and polygons, in flat arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from detap.errors import InputError, Problem
from detap.tables import _runs

Wide = NDArray[np.int64]
Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Arrays = tuple[Integers, Wide, NDArray[np.uint32], Wide, Wide, Floats]

MOST_PIXELS = 2**32 - 1
"""Maximal number of pixels of a mask."""

UNKNOWN = -1


@dataclass(frozen=True, eq=False, repr=False)
class Masks:
    """M masks, each as its runs or as polygons whose union it is.

    Rows of a table say which is theirs by its number, so that choosing rows copies none.

    Attributes
    ----------
    sizes : (M, 2) int32
        Height and width of the image, in pixels.
    run_start : (M + 1,) int64
        The runs of mask m are ``runs[run_start[m] : run_start[m + 1]]``.
    runs : (R,) uint32
        Pixels column by column, from the top of the left one: so many without, so many within, and
        so on.
    ring_start : (M + 1,) int64
        Its polygons are ``ring_start[m]`` to ``ring_start[m + 1]``; where there are none, the runs
        hold.
    ring_end : (Q,) int64
        Behind the last point of each polygon; each begins where the one before ends.
    points : (P, 2) float64
        x and y.
    """

    sizes: NDArray[np.int32]
    run_start: Wide
    runs: NDArray[np.uint32]
    ring_start: Wide
    ring_end: Wide
    points: NDArray[np.float64]

    def __post_init__(self) -> None:
        rings, points = len(self.ring_end), len(self.points)
        fits = _fits(self.run_start, len(self), len(self.runs))
        fits = fits and _fits(self.ring_start, len(self), rings)
        if not (fits and _fits(np.concatenate([[0], self.ring_end]), rings, points)):
            raise ValueError("runs or polygons do not start mask by mask, from 0 to their number")
        for column in vars(self).values():
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, rows: Any) -> "Masks":
        """Select masks by a slice, indices or (M,) bool."""
        numbers = np.arange(len(self))[rows]
        run_start, runs = _gathered(self.run_start, numbers)
        ring_start, rings = _gathered(self.ring_start, numbers)
        ring_end, points = _gathered(np.concatenate([[0], self.ring_end]), rings)
        return Masks(
            self.sizes[numbers],
            run_start,
            self.runs[runs],
            ring_start,
            ring_end[1:],
            self.points[points],
        )

    @property
    def nbytes(self) -> int:
        """Size of all columns in bytes."""
        return sum(column.nbytes for column in self.arrays)

    def tobytes(self) -> bytes:
        """Return the bytes of all columns."""
        return b"".join(column.tobytes() for column in self.arrays)

    def measured(self) -> tuple[Floats, Floats]:
        """Return the pixels of each, (M,), and x, y, width, height (M, 4); none has polygons."""
        return _runs.measured(self.sizes, self.run_start, self.runs)

    @property
    def arrays(self) -> "Arrays":
        """All columns, in the order above, as core takes them."""
        columns = self.sizes, self.run_start, self.runs
        return (*columns, self.ring_start, self.ring_end, self.points)

    def rings_of(self, number: int) -> list[NDArray[np.float64]]:
        """Return the polygons of one mask, (n, 2) each; none where it has runs."""
        first, last = self.ring_start[number : number + 2].tolist()
        begin = self.ring_end[first - 1].tolist() if first else 0
        ends = pairwise([begin, *self.ring_end[first:last].tolist()])
        return [self.points[first_point:last_point] for first_point, last_point in ends]

    @classmethod
    def none(cls) -> "Masks":
        """Return an empty column of masks."""
        return cls._of(np.zeros((0, 2), np.int32), np.zeros(1, np.int64), np.zeros(0, np.uint32))

    @classmethod
    def of_bitmaps(cls, bits: NDArray[np.uint8]) -> "Masks | None":
        """Return the masks of bitmaps (M, H, W) of 0 and 1; None where a value is another.

        H * W is 1 to :data:`MOST_PIXELS`. The runs are those of ``pycocotools.mask.encode``.
        """
        encoded = _runs.encoded(bits)
        if encoded is None:
            return None
        return cls._of(np.full((len(bits), 2), bits.shape[1:], np.int32), *encoded)

    @classmethod
    def of_runs(cls, sizes: Sequence[tuple[int, int]], runs: Sequence[Any]) -> "Masks":
        """Return masks of heights and widths, and the runs (n,) uint32 of each."""
        if not sizes:
            return cls.none()
        start = np.cumsum([0, *map(len, runs)]).astype(np.int64)
        return cls._of(np.array(sizes, np.int32), start, np.concatenate(runs))

    @classmethod
    def _of(cls, sizes: Integers, start: Wide, runs: NDArray[np.uint32]) -> "Masks":
        none = np.zeros(len(sizes) + 1, np.int64)
        return cls(sizes, start, runs, none, np.zeros(0, np.int64), np.zeros((0, 2)))

    @classmethod
    def joined(cls, parts: "Sequence[Masks]") -> "Masks":
        """Concatenate masks."""
        points = np.cumsum([0, *(len(part.points) for part in parts)])
        return cls(
            np.concatenate([part.sizes for part in parts]),
            _starts([part.run_start for part in parts]),
            np.concatenate([part.runs for part in parts]),
            _starts([part.ring_start for part in parts]),
            np.concatenate([p.ring_end + n for p, n in zip(parts, points, strict=False)]),
            np.concatenate([part.points for part in parts]),
        )


def sizes_by_image(
    image: NDArray[Any], sizes: Integers, count: int
) -> tuple[Integers, NDArray[np.bool_]]:
    """Return the height and width of images, those of the first mask of each.

    Parameters
    ----------
    image : (n,) int
        The image of each mask, below `count`.
    sizes : (n, 2) int32

    Returns
    -------
    sizes_of_images : (count, 2) int32
        :data:`UNKNOWN` where an image has no mask.
    others : (n,) bool
        Which masks are of another size than their image.
    """
    sizes_of_images = np.full((count, 2), UNKNOWN, np.int32)
    sizes_of_images[image[::-1]] = sizes[::-1]
    return sizes_of_images, (sizes != sizes_of_images[image]).any(axis=1)


def refuse_sizes(table: str, image: int | str, size: Integers, expected: Integers) -> NoReturn:
    """Raise the InputError of masks of another height and width (2,) than those before them."""
    (height, width), (high, wide) = size.tolist(), expected.tolist()
    message = f"a mask is {height} high and {width} wide, and others of its image {high} and {wide}"
    hint = "give all the size of the image that was annotated"
    raise InputError(Problem(table, f"image {image!r}", message, hint))


def _gathered(start: Wide, rows: NDArray[Any]) -> tuple[Wide, NDArray[Any]]:
    """Return the start of each row's entries in a compact copy, and the entries."""
    counts = np.diff(start)[rows]
    begin = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return begin, np.arange(begin[-1]) + np.repeat(start[rows] - begin[:-1], counts)


def _fits(start: Wide, count: int, entries: int) -> bool:
    return bool(
        len(start) == count + 1
        and start[0] == 0
        and start[-1] == entries
        and (np.diff(start) >= 0).all()
    )


def _starts(columns: Sequence[Wide]) -> Wide:
    """Return the start of each row's entries in a concatenated array."""
    counts = np.concatenate([np.diff(column) for column in columns])
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
