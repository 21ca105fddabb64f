"""Masks of a table as run lengths and polygons, in flat arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.display import Brief
from detap.errors import InputError, Problem
from detap.io.json_text import short_json
from detap.io.problems import FaultError
from detap.tables import _runs

Wide = NDArray[np.int64]
Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Arrays = tuple[Integers, Wide, NDArray[np.uint32], Wide, Wide, Floats]

MOST_PIXELS = 2**32 - 1
"""Maximal number of pixels of a mask."""

UNKNOWN = -1

_LISTS = (list, tuple, np.ndarray)


@dataclass(frozen=True, eq=False, repr=False)
class Masks(Brief):
    """M masks, each as runs or as the union of polygons.

    Rows of a table refer to masks by index, so that selecting rows copies no mask.
    """

    sizes: NDArray[np.int32]  # (M, 2): height and width of the image, in pixels
    # (M + 1,): the runs of mask m are `runs[run_start[m] : run_start[m + 1]]`
    run_start: Wide
    # (R,): COCO's RLE: lengths of alternating runs of 0 and 1, in column-major order
    runs: NDArray[np.uint32]
    # (M + 1,): the polygons of mask m are `ring_start[m] : ring_start[m + 1]`; without any,
    # its runs are used
    ring_start: Wide
    # (Q,): end of the points of each polygon; a polygon begins at the end of the one before
    ring_end: Wide
    points: NDArray[np.float64]  # (P, 2): x and y

    def __post_init__(self) -> None:
        rings, points = len(self.ring_end), len(self.points)
        fits = _fits(self.run_start, len(self), len(self.runs))
        fits = fits and _fits(self.ring_start, len(self), rings)
        if not (fits and _fits(np.concatenate([[0], self.ring_end]), rings, points)):
            raise ValueError("run_start, ring_start or ring_end does not ascend from 0 to the end")
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

    def tobytes(self) -> bytes:
        """Return the bytes of all columns."""
        return b"".join(column.tobytes() for column in self.arrays)

    def measured(self) -> tuple[Floats, Floats]:
        """Return the pixel counts (M,) and bounding boxes x, y, width, height (M, 4)."""
        return _runs.measured(self.sizes, self.run_start, self.runs)

    @property
    def arrays(self) -> "Arrays":
        """All columns, in the order of the attributes."""
        columns = self.sizes, self.run_start, self.runs
        return (*columns, self.ring_start, self.ring_end, self.points)

    def rings_of(self, number: int) -> list[NDArray[np.float64]]:
        """Return the polygons of a mask, (n, 2) each; none if it has runs."""
        first, last = self.ring_start[number : number + 2].tolist()
        begin = self.ring_end[first - 1].tolist() if first else 0
        ends = pairwise([begin, *self.ring_end[first:last].tolist()])
        return [self.points[first_point:last_point] for first_point, last_point in ends]

    @classmethod
    def none(cls) -> "Masks":
        """Return an empty column of masks."""
        return cls.of_runs((), ())

    @classmethod
    def of_bitmaps(cls, bits: NDArray[np.uint8]) -> "Masks":
        """Return the masks of bitmaps (M, H, W) of 0 and 1, as pycocotools."""
        sizes = np.full((len(bits), 2), bits.shape[1:], np.int32)
        return cls._of(sizes, *_runs.encoded(bits))

    @classmethod
    def of_runs(cls, sizes: Sequence[tuple[int, int]], runs: Sequence[Any]) -> "Masks":
        """Return masks of the given sizes (height, width) and runs, (n,) uint32 each."""
        start = np.cumsum([0, *map(len, runs)]).astype(np.int64)
        flat = np.concatenate([np.zeros(0, np.uint32), *runs])
        return cls._of(np.array(sizes, np.int32).reshape(-1, 2), start, flat)

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


def read_rle(size: Any, counts: Any) -> tuple[list[int], NDArray[np.uint32]]:
    """Return height and width, and the runs, of COCO's RLE; raise FaultError if it is invalid."""
    sides = list(size) if isinstance(size, _LISTS) else []
    if len(sides) != 2 or not all(_is_whole(side) and 0 < side < 2**31 for side in sides):
        raise FaultError(f"size is {short_json(size)}, expected [height, width] as integers > 0")
    height, width = map(int, sides)
    if height * width > MOST_PIXELS:
        pixels = f"size is {short_json(size)} ({height * width} pixels)"
        raise FaultError(f"{pixels}, the limit is {MOST_PIXELS}")
    if isinstance(counts, str | bytes):
        text = counts.encode("utf-8", "replace") if isinstance(counts, str) else counts
        runs = _runs.decoded(text, MOST_PIXELS)
        if isinstance(runs, str):
            raise FaultError(f"counts {runs}", "encode the mask again")
    elif isinstance(counts, _LISTS):
        for i, value in enumerate(counts):
            if not (_is_whole(value) and 0 <= value <= MOST_PIXELS):
                raise FaultError(f"counts[{i}] is {short_json(value)}, expected an integer >= 0")
        runs = np.array(counts).astype(np.uint32)
    else:
        raise FaultError(f"counts is {short_json(counts)}, expected a list or a string")
    total = int(runs.sum(dtype=np.uint64))
    if total != height * width:
        expected = f"expected {height * width} for size [{height}, {width}]"
        raise FaultError(f"counts sum to {total}, {expected}", "size is [height, width]")
    return [height, width], runs


def _is_whole(value: Any) -> bool:
    is_number = isinstance(value, int | float | np.integer) and not isinstance(value, bool)
    return is_number and bool(value == value // 1)


def check_sizes(images: Sequence[int | str], *tables: tuple[str, Integers, Integers]) -> None:
    """Raise InputError for a mask that differs in size from the first of its image.

    Each table has a title, and the image (n,) and the height and width (n, 2) of each mask.
    """
    titles, of_tables, sizes_of_tables = zip(*tables, strict=True)
    image, sizes = np.concatenate(of_tables), np.concatenate(sizes_of_tables)
    of_image = np.empty((len(images), 2), np.int32)
    of_image[image[::-1]] = sizes[::-1]  # the first one of an image is written last
    expected = of_image[image]
    for row in np.flatnonzero((sizes != expected).any(axis=1))[:1].tolist():
        ends = np.cumsum([*map(len, of_tables)])
        table = titles[int(np.searchsorted(ends, row, side="right"))]
        message = f"mask size {sizes[row].tolist()} differs from {expected[row].tolist()} of "
        hint = "use the size of the annotated image for all its masks"
        location = f"image {images[image[row]]!r}"
        raise InputError(Problem(table, location, f"{message}another mask", hint))


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
