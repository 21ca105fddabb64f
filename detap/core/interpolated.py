"""Interpolated precision at recall levels, stored without repetitions.

A class of P ground truths has at most P hits, so its curve has at most P distinct values. These are
stored instead of R values per curve: slot 0 for levels that no hit reaches, slot h for hit h. A
class of R ground truths or more has slots 1 to R, one per level.

Axes: T thresholds, R recall levels, K classes, A area ranges, M max dets, S slots.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core.params import MatchParams, Summing, recall_targets

Floats = NDArray[np.float64]

_BLOCK = 1 << 17
"""Values that a mean reads at once: all of 20,000 classes would take 160 MB."""


class Interpolated(NamedTuple):
    """Interpolated precision; undefined is NaN."""

    values: Floats  # (M, A, T, S)
    start: NDArray[np.int64]  # (K + 1,) first slot of each class
    positives: NDArray[np.int64]  # (A, K) counted ground truths
    slots: NDArray[np.int32]  # (R + 1, R)

    @classmethod
    def undefined(
        cls,
        params: MatchParams,
        truth_counts: NDArray[np.int64],
        positives: NDArray[np.int64],
        n_max_dets: int,
    ) -> "Interpolated":
        """Allocate undefined values for classes with these numbers of ground truths."""
        levels = len(params.levels)
        start = np.zeros(len(truth_counts) + 1, np.int64)
        np.cumsum(np.minimum(truth_counts, levels) + 1, out=start[1:])
        shape = n_max_dets, len(params.area_ranges), len(params.thresholds), int(start[-1])
        return cls(np.full(shape, np.nan), start, positives, _slots(params.levels, params.summing))

    @classmethod
    def concatenate(cls, parts: "Sequence[Interpolated]") -> "Interpolated":
        """Concatenate the classes of several parts."""
        sizes = np.concatenate([[0], *(np.diff(part.start) for part in parts)])
        return cls(
            np.concatenate([part.values for part in parts], axis=3),
            np.cumsum(sizes),
            np.concatenate([part.positives for part in parts], axis=1),
            parts[0].slots,
        )

    def select_classes(self, labels: Sequence[int]) -> "Interpolated":
        """Select classes, in the order listed."""
        indices = np.array(labels, np.intp)
        sizes = np.diff(self.start)[indices]
        start = np.concatenate([[0], np.cumsum(sizes)])
        offset = np.arange(start[-1]) - np.repeat(start[:-1], sizes)
        slots = np.repeat(self.start[indices], sizes) + offset
        return self._replace(
            values=self.values.take(slots, axis=3),
            start=start,
            positives=self.positives.take(indices, axis=1),
        )

    def set_classes(self, classes: slice, part: "Interpolated") -> None:
        """Write the values of some classes."""
        begin, end = self.start[[classes.start, classes.stop]].tolist()
        self.values[..., begin:end] = part.values
        self.positives[:, classes] = part.positives

    def copy(self) -> "Interpolated":
        """Return a writable copy."""
        return self._replace(values=self.values.copy(), positives=self.positives.copy())

    def write(self, label: int, area: int, threshold: int, levels: Floats) -> None:
        """Write a class's precision at each level, (R,) float64, at the largest max dets."""
        begin, end = self.start[label : label + 2].tolist()
        slots = self.slots[min(int(self.positives[area, label]), end - begin - 1)]
        self.values[-1, area, threshold, begin + slots] = levels

    def fill_undefined(self, class_values: Floats) -> "Interpolated":
        """Replace undefined values of all areas by one value per class, (K,)."""
        values, by_slot = self.values.copy(), np.repeat(class_values, np.diff(self.start))
        np.copyto(values[:, 0], by_slot, where=np.isnan(values[:, 0]))
        return self._replace(values=values)

    def dense(self) -> Floats:
        """Return the precision at each level, (T, R, K, A, M) float64."""
        labels = np.arange(len(self.start) - 1)
        areas = [
            values[:, :, self._slots_of(a, labels)]
            for a, values in enumerate(self.values.swapaxes(0, 1))
        ]
        return np.ascontiguousarray(np.stack(areas, axis=-1).transpose(1, 3, 2, 4, 0))

    def at(self, area: int, thresholds: slice, labels: NDArray[np.int64]) -> Floats:
        """Return the precision of classes at the largest max dets, (T, k, R) float64."""
        values = self.values[-1, area, thresholds]
        return values.take(self._slots_of(area, labels), axis=1)

    def mean(self, area: int, thresholds: slice, labels: NDArray[np.int64]) -> float:
        """Return numpy's mean over thresholds, levels and classes, to the last bit."""
        values = self.values[-1, area, thresholds]
        slots = self._slots_of(area, labels).T.ravel()

        def total(begin: int, end: int) -> float:
            if end - begin > _BLOCK:  # halved as numpy.sum halves
                half = (end - begin) // 2
                middle = begin + half - half % 8
                return total(begin, middle) + total(middle, end)
            row, column = np.divmod(np.arange(begin, end), len(slots))
            return float(values[row, slots[column]].sum())

        count = len(values) * len(slots)
        return total(0, count) / count if count else math.nan

    def _slots_of(self, area: int, labels: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the slot of each class and level, (k, R)."""
        row = np.minimum(self.positives[area], np.diff(self.start) - 1)[labels]
        slots: NDArray[np.int32] = self.slots[row]
        slots += self.start[labels, None].astype(np.int32)
        return slots


@lru_cache(maxsize=8)
def _slots(levels: tuple[float, ...], summing: Summing) -> NDArray[np.int32]:
    """Return the slot of each level for each number of ground truths, (R + 1, R)."""
    targets = recall_targets(np.array(levels), summing)
    slots = np.empty((len(levels) + 1, len(levels)), np.int32)
    for positives, slot in enumerate(slots):
        slot[:] = np.searchsorted(np.arange(1, positives + 1) / max(positives, 1), targets) + 1
        slot[slot > positives] = 0  # a level that no hit reaches
    slots[-1] = np.arange(1, len(levels) + 1)
    return slots
