"""Keypoints of COCO records."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.formats.coco._spans import Outlines
from detap.formats.coco.records import as_spans, keypoint_values, keypoints_of_result
from detap.formats.json.document import RecordList, loaded
from detap.io.problems import FaultError
from detap.tables.detection import Floats


class KeypointLists:
    """The keypoints of a list of records; `pairs` may be without v where the record has a box."""

    def __init__(self, records: RecordList, key: str = "keypoints", *, pairs: bool = False) -> None:
        self._records, self._key = records, key
        self._may_be_pairs = pairs
        self._numbers = Outlines(keypoints=True)
        self._refused: dict[int, tuple[Any, FaultError]] = {}

    def drain(self) -> None:
        """Decode the spans of the next rows."""
        fields = self._records.fields
        key = self._key
        if not fields.holds(key):
            return
        spans = fields.spans(key)
        while (row := self._numbers.read(fields.drained, *spans)) >= 0:
            value, numbers = loaded(fields, key, row), None
            may_be_pairs = False
            try:
                keypoint_values(value, key)
                may_be_pairs = self._may_be_pairs and fields.has_box(row)
                numbers = keypoints_of_result(value, key)
            except FaultError as error:
                if may_be_pairs:
                    self._refused[row] = value, error
                else:
                    self._refused[row] = None, error
                    self._records.fault_of_row(row, error)
            if self._numbers.read(row, *as_spans(numbers)) >= 0:
                raise AssertionError("plain JSON is never odd")  # pragma: no cover

    def finish(self, count: int | None = None, *, pairs: bool = False, same: bool = True) -> None:
        """Add problems; if `same`, rows need `count` keypoints; `pairs` are x and y without v."""
        rows, _, ends, self._values = self._numbers.columns()
        self._starts = np.append(0, ends)[np.append(0, rows[:, 3])]
        reference = "in earlier records" if count is None else "as in the ground truth"
        pairs = pairs and count is not None
        self._pairs = self._pairs_of(count or 0) if pairs else {}
        for row, (_, error) in self._refused.items():
            if row not in self._pairs and row not in self._records.faulty:
                self._records.fault_of_row(row, error)
        lengths = np.diff(self._starts) // 3
        read = np.ones(len(lengths), np.bool_)
        read[list(self._refused)] = False
        first = lengths[read]
        self.count = count if count is not None else int(first[0]) if len(first) else 0
        for row in np.flatnonzero(read & (lengths != self.count)).tolist() if same else ():
            if row not in self._pairs:
                message = f"{self._key} has {lengths[row]} keypoints, expected {self.count}"
                self._records.fault_of_row(row, FaultError(f"{message} {reference}"))

    def _pairs_of(self, count: int) -> dict[int, list[float]]:
        """Return the values of rows with x and y without v; they get v = 1."""
        lengths = np.diff(self._starts)
        given = {row: value for row, (value, _) in self._refused.items()}
        for row in np.flatnonzero(lengths == 2 * count).tolist():
            given[row] = self._values[self._starts[row] : self._starts[row + 1]].tolist()
        triplets_by_row = {}
        for row, value in given.items():
            if isinstance(value, list) and len(value) == 2 * count:
                pairs = zip(value[0::2], value[1::2], strict=True)
                triplets = [value for x, y in pairs for value in (x, y, 1)]
                try:
                    triplets_by_row[row] = keypoints_of_result(triplets)
                except FaultError as error:
                    self._refused[row] = value, error
        return triplets_by_row

    def array(self) -> Floats:
        """Return x, y, v of the keypoints, (N, P, 3), if there were no problems."""
        rows = len(self._starts) - 1
        if self._pairs:
            lists = [
                self._pairs.get(row, self._values[self._starts[row] : self._starts[row + 1]])
                for row in range(rows)
            ]
            return np.array(lists, np.float64).reshape(rows, self.count, 3)
        return self._values.reshape(rows, self.count, 3)

    def extents(self, rows: NDArray[np.bool_]) -> tuple[NDArray[np.intp], Floats]:
        """Return those of the rows that have keypoints, and their bounding boxes, xywh."""
        every = np.flatnonzero(np.diff(self._starts) > 0)
        given = every[rows[every]]
        if not len(given):
            return given, np.zeros((0, 4))
        starts = self._starts[every] // 3
        x, y = self._values[0::3], self._values[1::3]
        low = [np.minimum.reduceat(values, starts) for values in (x, y)]
        high = [np.maximum.reduceat(values, starts) for values in (x, y)]
        boxes = np.stack([*low, high[0] - low[0], high[1] - low[1]], axis=1)
        return given, boxes[np.isin(every, given)]


def joined_keypoints(lists: Sequence[KeypointLists]) -> Floats:
    """Return the keypoints of several keys, one key after the other, (N, P, 3)."""
    return np.concatenate([of_key.array() for of_key in lists], axis=1)
