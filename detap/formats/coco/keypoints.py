"""Keypoints of COCO records."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from detap.formats.coco._spans import Outlines
from detap.formats.coco.records import as_spans, keypoints_of, partial_keypoints
from detap.formats.json.document import RecordList, loaded
from detap.io.problems import FaultError
from detap.tables.detection import Floats


class KeypointLists:
    """The keypoints of a list of records, under a key."""

    def __init__(self, records: RecordList, key: str) -> None:
        self._records, self._key = records, key
        self._numbers = Outlines(keypoints=True)

    def drain(self) -> None:
        """Decode the spans of the next rows."""
        fields, key = self._records.fields, self._key
        if not fields.holds(key):
            return
        spans = fields.spans(key)
        while (row := self._numbers.read(fields.drained, *spans)) >= 0:
            numbers = None
            try:
                numbers = keypoints_of(loaded(fields, key, row), key)
            except FaultError as error:
                self._records.fault_of_row(row, error)
            if self._numbers.read(row, *as_spans(numbers)) >= 0:
                raise AssertionError("plain JSON is never odd")  # pragma: no cover

    def finish(self, count: int | None = None, *, pairs: bool = False, same: bool = True) -> None:
        """Add problems; if `same`, rows need `count` keypoints.

        With `pairs`, rows with a box may have x and y without v, which then is 1.
        """
        records, key = self._records, self._key
        rows, _, ends, self._values = self._numbers.columns()
        self._starts = np.append(0, ends)[np.append(0, rows[:, 3])]
        lengths = np.diff(self._starts)  # 0 of refused rows
        self._pairs = np.zeros(len(lengths), np.bool_)
        if pairs and count is not None:
            has_box = ~np.isnan(np.frombuffer(records.fields.bytes_of("bbox")).reshape(-1, 4)[:, 0])
            self._pairs = (lengths == 2 * count) & has_box
        counts, rest = np.divmod(lengths, 3)
        is_whole = (lengths > 0) & (rest == 0) & ~self._pairs
        for row in np.flatnonzero((rest > 0) & ~self._pairs).tolist():
            records.fault_of_row(row, partial_keypoints(key, lengths[row]))
        self.count = count if count is not None else next(iter(counts[is_whole].tolist()), 0)
        reference = "in earlier records" if count is None else "as in the ground truth"
        for row in np.flatnonzero(is_whole & (counts != self.count)).tolist() if same else ():
            message = f"{key} has {counts[row]} keypoints, expected {self.count} {reference}"
            records.fault_of_row(row, FaultError(message))

    def array(self) -> Floats:
        """Return x, y, v of the keypoints, (N, P, 3), if there were no problems."""
        rows, count = len(self._starts) - 1, self.count
        if not self._pairs.any():
            return self._values.reshape(rows, count, 3)
        of_pairs = np.repeat(self._pairs, np.diff(self._starts))
        points = np.ones((rows, count, 3))
        points[self._pairs, :, :2] = self._values[of_pairs].reshape(-1, count, 2)
        points[~self._pairs] = self._values[~of_pairs].reshape(-1, count, 3)
        return points

    def extents(self, rows: NDArray[np.bool_]) -> tuple[NDArray[np.intp], Floats]:
        """Return those of the rows that have keypoints, and their bounding boxes, xywh."""
        lengths = np.diff(self._starts)
        given = np.flatnonzero(rows[: len(lengths)] & (lengths > 0))
        if not len(given):
            return given, np.zeros((0, 4))
        points = self._values[np.repeat(rows, lengths)].reshape(-1, 3)
        starts = np.append(0, np.cumsum(lengths[given] // 3)[:-1])
        low, high = (
            ufunc.reduceat(points[:, :2], starts, axis=0) for ufunc in (np.minimum, np.maximum)
        )
        return given, np.hstack([low, high - low])


def joined_keypoints(lists: Sequence[KeypointLists]) -> Floats:
    """Return the keypoints of several keys, one key after the other, (N, P, 3)."""
    return np.concatenate([of_key.array() for of_key in lists], axis=1)
