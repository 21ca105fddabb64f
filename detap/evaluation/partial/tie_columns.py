"""Tie groups as columns.

Axes: C tie groups, B distinct bounds, S ties of all groups.
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
    """The tie groups of a block.

    Attributes
    ----------
    label, image, bounds_index : (C,) int64
        Indices into the block's classes and images, and into `bounds`.
    score : tuple of C (n,) float64
        The scores of each group's ties, descending.
    bounds : tuple of B TieBounds
    """

    label: NDArray[np.int64]
    image: NDArray[np.int64]
    bounds_index: NDArray[np.int64]
    score: tuple[Floats, ...]
    bounds: tuple[TieBounds, ...]

    @classmethod
    def of(cls, tie_groups: Sequence[TieGroup]) -> "Ties":
        """Return tie groups with each distinct bounds once, sorted."""
        keys = [_key(tie_group.bounds) for tie_group in tie_groups]
        distinct = {key: tie_group.bounds for key, tie_group in zip(keys, tie_groups, strict=True)}
        index = {key: number for number, key in enumerate(sorted(distinct))}
        return cls(
            np.array([tie_group.label for tie_group in tie_groups], np.int64),
            np.array([tie_group.image for tie_group in tie_groups], np.int64),
            np.array([index[key] for key in keys], np.int64),
            tuple(tie_group.score for tie_group in tie_groups),
            tuple(distinct[key] for key in index),
        )

    def tie_groups(self, labels: Integers, images: Integers) -> Iterator[TieGroup]:
        """Yield the tie groups, with class and image indices of a union."""
        rows = zip(
            self.label.tolist(), self.image.tolist(), self.bounds_index.tolist(), strict=True
        )
        for (label, image, bounds_index), score in zip(rows, self.score, strict=True):
            yield TieGroup(int(labels[label]), int(images[image]), score, self.bounds[bounds_index])

    def select_images(self, mask: Flags) -> "Ties":
        """Return the tie groups of some images, with unchanged indices."""
        return self._of_rows(np.flatnonzero(mask[self.image]))

    def select_classes(self, mask: Flags) -> "Ties":
        """Return the tie groups of some classes, with new indices."""
        selected = self._of_rows(np.flatnonzero(mask[self.label]))
        return selected._replace(label=(np.cumsum(mask) - 1)[selected.label])

    def _of_rows(self, rows: NDArray[np.int64]) -> "Ties":
        return self._replace(
            label=self.label[rows],
            image=self.image[rows],
            bounds_index=self.bounds_index[rows],
            score=tuple(self.score[row] for row in rows.tolist()),
        )

    def columns(self) -> Columns:
        """Return the columns that :meth:`read` takes."""
        bounds = [tie_bounds.bounds for tie_bounds in self.bounds]
        indices = [tie_bounds.bounds_index.ravel() + 1 for tie_bounds in self.bounds]
        values = [np.array(each, np.int64).ravel() for each in bounds]
        arrays = (
            self.label,
            self.image,
            self.bounds_index,
            np.concatenate([np.zeros(0), *self.score]),
            np.array([len(each[0]) for each in bounds], np.int64),
            np.array([len(each) for each in bounds], np.int64),
            np.concatenate([np.zeros(0, np.int64), *indices]),
            np.concatenate([np.zeros(0, np.int64), *values]),
        )
        return dict(zip(COLUMNS, arrays, strict=True))

    @classmethod
    def read(cls, columns: Columns, shape: tuple[int, int, int], counts: tuple[int, int]) -> "Ties":
        """Read tie groups from their columns.

        Parameters
        ----------
        columns : dict
        shape : (T, A, M)
            Shape of a bounds index.
        counts : (K, I)
            Numbers of classes and images.

        Raises
        ------
        ValueError
            If the columns are invalid.
        """
        label, image, bounds_index, score, ties, bounds, cells, spans = (
            columns[name] for name in COLUMNS
        )
        size = int(np.prod(shape))
        _require(len(label) == len(image) == len(bounds_index) and len(ties) == len(bounds))
        _require(
            _below(label, counts[0])
            and _below(image, counts[1])
            and _below(bounds_index, len(ties))
        )
        _require(len(cells) == len(ties) * size and bool(np.isfinite(score).all()))
        _require(_below(ties, len(spans) + 1) and _below(bounds, len(spans) + 1))
        _require(not len(ties) or int(min(ties.min(), bounds.min())) > 0)
        lengths = [t * b * _BOUNDS for t, b in zip(ties.tolist(), bounds.tolist(), strict=True)]
        _require(sum(lengths) == len(spans) and _below(spans, 1 << 31))
        distinct = []
        ends = np.cumsum([0, *lengths])
        for index, (count, bounds_count) in enumerate(
            zip(ties.tolist(), bounds.tolist(), strict=True)
        ):
            table = spans[ends[index] : ends[index + 1]].astype(np.int64)
            table = table.reshape(bounds_count, count, _BOUNDS)
            # All fields but the last are cumulative.
            _require(bool((np.diff(table[..., :-1], axis=1) >= 0).all()))
            indices = cells[index * size : (index + 1) * size]
            _require(_below(indices, bounds_count + 1))
            tie_bounds = tuple(tuple(map(CountBounds._make, each)) for each in table.tolist())
            distinct.append(
                TieBounds(indices.astype(np.int32).reshape(shape) - np.int32(1), tie_bounds)
            )
        sizes = ties[bounds_index].tolist()
        _require(sum(sizes) == len(score))
        ends_of_scores = np.cumsum([0, *sizes]).tolist()
        parts = tuple(score[low:high] for low, high in pairwise(ends_of_scores))
        _require(all((np.diff(part) < 0).all() for part in parts))
        return cls(
            label.astype(np.int64),
            image.astype(np.int64),
            bounds_index.astype(np.int64),
            parts,
            tuple(distinct),
        )


def _key(bounds: TieBounds) -> tuple[Any, ...]:
    return len(bounds.bounds[0]), bounds.bounds_index.tobytes(), bounds.bounds


def _below(column: NDArray[Any], count: int) -> bool:
    return not len(column) or int(column.max()) < count


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError("ties")
