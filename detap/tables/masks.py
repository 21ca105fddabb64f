"""Masks beside a table of boxes: runs and polygons in flat arrays, never an object per mask."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Wide = NDArray[np.int64]
Arrays = tuple[NDArray[np.int32], Wide, NDArray[np.uint32], Wide, Wide, NDArray[np.float64]]


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
        return [self.points[here:there] for here, there in ends]

    @classmethod
    def none(cls) -> "Masks":
        """Return no masks."""
        start = np.zeros(1, np.int64)
        sizes, runs = np.zeros((0, 2), np.int32), np.zeros(0, np.uint32)
        return cls(sizes, start, runs, start, np.zeros(0, np.int64), np.zeros((0, 2)))

    @classmethod
    def joined(cls, parts: "Sequence[Masks]") -> "Masks":
        """Return the masks of several, one behind the other."""
        points = np.cumsum([0, *(len(part.points) for part in parts)])
        return cls(
            np.concatenate([part.sizes for part in parts]),
            _starts([part.run_start for part in parts]),
            np.concatenate([part.runs for part in parts]),
            _starts([part.ring_start for part in parts]),
            np.concatenate([p.ring_end + n for p, n in zip(parts, points, strict=False)]),
            np.concatenate([part.points for part in parts]),
        )


def _fits(start: Wide, count: int, entries: int) -> bool:
    return bool(
        len(start) == count + 1
        and start[0] == 0
        and start[-1] == entries
        and (np.diff(start) >= 0).all()
    )


def _starts(columns: Sequence[Wide]) -> Wide:
    """Return where the entries of several begin, one behind the other."""
    counts = np.concatenate([np.diff(column) for column in columns])
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
