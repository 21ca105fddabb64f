"""Contests of ties, as columns: class, image and scores of each, and what comes of it once for all.

Axes: C contests, B distinct courses, S ties of all contests.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core.tie_orders import CountBounds
from detap.evaluation.tie_groups import TieBounds, TieGroup
from detap.tables.detection import Flags, Floats, Integers

Columns = dict[str, NDArray[Any]]

_BOUNDS = len(CountBounds._fields)

COLUMNS = (
    "tie_label",
    "tie_image",
    "tie_bounds",
    "tie_score",
    "bounds_ties",
    "bounds_count",
    "bounds_index",
    "bounds_values",
)


class Ties(NamedTuple):
    """The contests of a block.

    Attributes
    ----------
    label, image, bounds_index : (C,) int64
        Indices into the block's classes and images, and into `bounds`.
    score : tuple of C (n,) float64
        Of the ties of each, falling.
    bounds : tuple of B TieBounds
    """

    label: NDArray[np.int64]
    image: NDArray[np.int64]
    bounds_index: NDArray[np.int64]
    score: tuple[Floats, ...]
    bounds: tuple[TieBounds, ...]

    @classmethod
    def of(cls, tie_groups: Sequence[TieGroup]) -> "Ties":
        """Return contests with each distinct course once, in order."""
        keys = [_key(tie_group.bounds) for tie_group in tie_groups]
        courses = {key: tie_group.bounds for key, tie_group in zip(keys, tie_groups, strict=True)}
        place = {key: number for number, key in enumerate(sorted(courses))}
        return cls(
            np.array([tie_group.label for tie_group in tie_groups], np.int64),
            np.array([tie_group.image for tie_group in tie_groups], np.int64),
            np.array([place[key] for key in keys], np.int64),
            tuple(tie_group.score for tie_group in tie_groups),
            tuple(courses[key] for key in place),
        )

    def tie_groups(self, labels: Integers, images: Integers) -> Iterator[TieGroup]:
        """Yield the contests, by the numbers of classes and images in a union."""
        rows = zip(
            self.label.tolist(), self.image.tolist(), self.bounds_index.tolist(), strict=True
        )
        for (label, image, course), score in zip(rows, self.score, strict=True):
            yield TieGroup(int(labels[label]), int(images[image]), score, self.bounds[course])

    def select_images(self, kept: Flags) -> "Ties":
        """Return the contests of some images, which keep their numbers."""
        return self._of_rows(np.flatnonzero(kept[self.image]))

    def select_classes(self, kept: Flags) -> "Ties":
        """Return the contests of some classes, which are numbered anew."""
        few = self._of_rows(np.flatnonzero(kept[self.label]))
        return few._replace(label=(np.cumsum(kept) - 1)[few.label])

    def _of_rows(self, rows: NDArray[np.int64]) -> "Ties":
        return self._replace(
            label=self.label[rows],
            image=self.image[rows],
            bounds_index=self.bounds_index[rows],
            score=tuple(self.score[row] for row in rows.tolist()),
        )

    def columns(self) -> Columns:
        """Return what :meth:`read` takes."""
        spans = [course.bounds for course in self.bounds]
        cells = [course.bounds_index.ravel() + 1 for course in self.bounds]
        flat = [np.array(each, np.int64).ravel() for each in spans]
        arrays = (
            self.label,
            self.image,
            self.bounds_index,
            np.concatenate([np.zeros(0), *self.score]),
            np.array([len(each[0]) for each in spans], np.int64),
            np.array([len(each) for each in spans], np.int64),
            np.concatenate([np.zeros(0, np.int64), *cells]),
            np.concatenate([np.zeros(0, np.int64), *flat]),
        )
        return dict(zip(COLUMNS, arrays, strict=True))

    @classmethod
    def read(cls, columns: Columns, shape: tuple[int, int, int], counts: tuple[int, int]) -> "Ties":
        """Return contests from their columns.

        Parameters
        ----------
        columns : dict
        shape : (T, A, M)
            Of the cells of a course.
        counts : (K, I)
            Of classes and images.

        Raises
        ------
        ValueError
            Where these are no columns of contests.
        """
        label, image, course, score, ties, bounds, cells, spans = (
            columns[name] for name in COLUMNS
        )
        size = int(np.prod(shape))
        _need(len(label) == len(image) == len(course) and len(ties) == len(bounds))
        _need(_below(label, counts[0]) and _below(image, counts[1]) and _below(course, len(ties)))
        _need(len(cells) == len(ties) * size and bool(np.isfinite(score).all()))
        _need(_below(ties, len(spans) + 1) and _below(bounds, len(spans) + 1))
        _need(not len(ties) or int(min(ties.min(), bounds.min())) > 0)
        lengths = [t * b * _BOUNDS for t, b in zip(ties.tolist(), bounds.tolist(), strict=True)]
        _need(sum(lengths) == len(spans) and _below(spans, 1 << 31))
        courses = []
        ends = np.cumsum([0, *lengths])
        for place, (count, most) in enumerate(zip(ties.tolist(), bounds.tolist(), strict=True)):
            table = spans[ends[place] : ends[place + 1]].astype(np.int64)
            table = table.reshape(most, count, _BOUNDS)
            # Totals so far, all but the last.
            _need(bool((np.diff(table[..., :-1], axis=1) >= 0).all()))
            of_cells = cells[place * size : (place + 1) * size]
            _need(_below(of_cells, most + 1))
            known = tuple(tuple(map(CountBounds._make, each)) for each in table.tolist())
            courses.append(TieBounds(of_cells.astype(np.int32).reshape(shape) - np.int32(1), known))
        sizes = ties[course].tolist()
        _need(sum(sizes) == len(score))
        places = np.cumsum([0, *sizes]).tolist()
        parts = tuple(score[low:high] for low, high in pairwise(places))
        _need(all((np.diff(part) < 0).all() for part in parts))
        return cls(
            label.astype(np.int64),
            image.astype(np.int64),
            course.astype(np.int64),
            parts,
            tuple(courses),
        )


def _key(course: TieBounds) -> tuple[Any, ...]:
    return len(course.bounds[0]), course.bounds_index.tobytes(), course.bounds


def _below(column: NDArray[Any], count: int) -> bool:
    return not len(column) or int(column.max()) < count


def _need(condition: bool) -> None:
    if not condition:
        raise ValueError("ties")
