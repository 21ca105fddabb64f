"""Interpolated precision at recall levels, without the repetitions.

A class of P ground truths has at most P hits, so its curve has at most P different values however
many levels there are. They are kept instead of the R values at the levels: slot 0 is what levels
have that no hit reaches, slot h that of hit h. A class of R ground truths or more has slots 1 to R,
one for each level.

Axes: T thresholds, R recall levels, K classes, A area ranges, M max dets, S slots.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _interpolated
from detap.core.params import MatchParams, recall_targets

Floats = NDArray[np.float64]


class Interpolated(NamedTuple):
    """Interpolated precision. Undefined is NaN.

    Attributes
    ----------
    values : (M, A, T, S) float64
    start : (K + 1,) int64
        The first slot of each class.
    positives : (A, K) int64
        Ground truths that count; no more matter than the class has slots for.
    slots : (R + 1, R) int32
        The slot of each level in a class, for each number of ground truths.
    """

    values: Floats
    start: NDArray[np.int64]
    positives: NDArray[np.int64]
    slots: NDArray[np.int32]

    @classmethod
    def undefined(
        cls,
        params: MatchParams,
        truths: NDArray[np.int64],
        positives: NDArray[np.int64],
        limits: int,
    ) -> "Interpolated":
        """Return room for classes of so many ground truths, where nothing is defined."""
        levels = len(params.levels)
        slots = np.empty((levels + 1, levels), np.int32)
        _interpolated.fill_slots(recall_targets(np.array(params.levels), params.summing), slots)
        start = np.zeros(len(truths) + 1, np.int64)
        np.cumsum(np.minimum(truths, levels) + 1, out=start[1:])
        shape = limits, len(params.area_ranges), len(params.thresholds), int(start[-1])
        return cls(np.full(shape, np.nan), start, positives, slots)

    @classmethod
    def joined(cls, parts: "Sequence[Interpolated]") -> "Interpolated":
        """Return the classes of one part after those of another."""
        sizes = np.concatenate([[0], *(np.diff(part.start) for part in parts)])
        return cls(
            np.concatenate([part.values for part in parts], axis=3),
            np.cumsum(sizes),
            np.concatenate([part.positives for part in parts], axis=1),
            parts[0].slots,
        )

    def select_classes(self, labels: Sequence[int]) -> "Interpolated":
        """Return some classes, in the order listed."""
        chosen = np.array(labels, np.intp)
        sizes = np.diff(self.start)[chosen]
        start = np.concatenate([[0], np.cumsum(sizes)])
        within = np.arange(start[-1]) - np.repeat(start[:-1], sizes)
        kept = np.repeat(self.start[chosen], sizes) + within
        return self._replace(
            values=self.values.take(kept, axis=3),
            start=start,
            positives=self.positives.take(chosen, axis=1),
        )

    def put(self, classes: slice, part: "Interpolated") -> None:
        """Write some classes in their place."""
        begin, end = self.start[[classes.start, classes.stop]].tolist()
        self.values[..., begin:end] = part.values
        self.positives[:, classes] = part.positives

    def copy(self) -> "Interpolated":
        """Return a copy to write to."""
        return self._replace(values=self.values.copy(), positives=self.positives.copy())

    def write(self, label: int, area: int, threshold: int, levels: Floats) -> None:
        """Write the precision of a class at each level, (R,) float64, at the largest limit."""
        begin, end = self.start[label : label + 2].tolist()
        slots = self.slots[min(int(self.positives[area, label]), end - begin - 1)]
        self.values[-1, area, threshold, begin + slots] = levels

    def filled(self, of_class: Floats) -> "Interpolated":
        """Return the same with a value of each class, (K,), in place of what is undefined."""
        values = np.repeat(of_class, np.diff(self.start))
        return self._replace(values=np.where(np.isnan(self.values), values, self.values))

    def dense(self) -> Floats:
        """Return the precision at each level, (T, R, K, A, M) float64."""
        limits, areas, thresholds, _ = self.values.shape
        out = np.empty((thresholds, self.slots.shape[1], len(self.start) - 1, areas, limits))
        _interpolated.fill_dense(self.values, self.start, self.positives, self.slots, out)
        return out

    def mean(self, area: int, thresholds: slice, labels: NDArray[np.int64]) -> float:
        """Return numpy's mean over thresholds, levels and classes, to the last bit.

        Parameters
        ----------
        area : int
        thresholds : slice
        labels : (C,) int64
            Of defined classes; NaN where there are none.
        """
        return self._levels(area, thresholds).mean(labels)

    def means(self, area: int, thresholds: slice) -> Floats:
        """Return the mean of each class over thresholds and levels, (K,) float64, likewise."""
        out = np.empty(len(self.start) - 1)
        self._levels(area, thresholds).fill_means(out)
        return out

    def _levels(self, area: int, thresholds: slice) -> _interpolated.Levels:
        values = self.values[-1, area, thresholds]
        return _interpolated.Levels(values, self.start, self.positives[area], self.slots)
