"""Segmentations and keypoints of COCO records, decoded by `_spans.pyx`."""

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.formats.coco._spans import Outlines
from detap.formats.coco.records import format_infinite, number_of
from detap.formats.json.document import RecordList, loaded
from detap.io.json_text import short_json
from detap.io.problems import FaultError
from detap.tables.columns import FARTHEST
from detap.tables.detection import Floats, Integers
from detap.tables.masks import Masks, read_rle

_KEYPOINTS = "[x, y, v, x, y, v, ...]"
_SEGMENTATION = "polygons [[x, y, x, y, x, y, ...]] or RLE {size, counts}"
_MIN_VALUES = 6
"""Values of a polygon with an area; pycocotools requires them of the first only."""


def _plain_keypoints(values: Any, key: str) -> list[float]:
    """Return the numbers of keypoints, of any count."""
    if not isinstance(values, list):
        raise FaultError(f"{key} is {short_json(values)}, expected {_KEYPOINTS}")
    if not values:
        raise FaultError(f"{key} is empty, expected {_KEYPOINTS}")
    numbers = [number_of(f"{key}[{i}]", value) for i, value in enumerate(values)]
    for i, number in enumerate(numbers):
        if not abs(number) <= FARTHEST:
            raise FaultError(f"{key}[{i}] is {short_json(values[i])}, expected pixels")
    return numbers


def _partial_keypoints(key: str, length: int) -> FaultError:
    """Return the error for a number of values other than that of triplets."""
    hint = "x, y without v (kpt_shape [K, 2]) need ground truth with a data.yaml"
    message = f"{key} has {length} values, expected {_KEYPOINTS}"
    return FaultError(message, hint if length % 2 == 0 else "")


def _plain_segmentation(value: Any, _key: str) -> Any:
    """Return a record's segmentation as `_spans.pyx` reads it: numbers are floats or integers."""
    if isinstance(value, dict):
        return _plain_rle(value)
    if not isinstance(value, list):
        raise FaultError(f"segmentation is {short_json(value)}, expected {_SEGMENTATION}")
    if not value:
        raise FaultError(f"segmentation is empty, expected {_SEGMENTATION}")
    rings = [_parse_polygon(i, ring) for i, ring in enumerate(value)]
    return [ring for ring in rings if len(ring) >= _MIN_VALUES]


def _parse_polygon(index: int, ring: Any) -> list[float]:
    name = f"segmentation[{index}]"
    if not isinstance(ring, list):
        raise FaultError(
            f"{name} is {short_json(ring)}, expected a polygon [x, y, x, y, x, y, ...]"
        )
    for i, value in enumerate(ring):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FaultError(f"{name}[{i}] is {short_json(value)}, expected a number")
        if not abs(value) <= FARTHEST:
            finite = not isinstance(value, float) or math.isfinite(value)
            text = short_json(value) if finite else format_infinite(value)
            raise FaultError(f"{name}[{i}] is {text}, expected pixels")
    if len(ring) % 2:
        raise FaultError(f"{name} has {len(ring)} values, expected x and y of each point")
    if len(ring) < _MIN_VALUES and index == 0:
        raise FaultError(f"{name} has {len(ring)} values, expected three points or more")
    return [float(value) for value in ring]


def _plain_rle(value: dict[str, Any]) -> dict[str, Any]:
    for key in ("size", "counts"):
        if key not in value:
            raise FaultError(f"segmentation has no {key}, expected {_SEGMENTATION}")
    size, runs = read_rle(value["size"], value["counts"])
    is_text = isinstance(value["counts"], str)
    return {"size": size, "counts": value["counts"] if is_text else runs.tolist()}


class _Outlines:
    """The values of a list of records under a key; `plain` checks odd ones."""

    plain: Any
    are_keypoints = False

    def __init__(self, records: RecordList, key: str) -> None:
        self._records, self._key = records, key
        self._outlines = Outlines(keypoints=self.are_keypoints)

    def drain(self) -> None:
        """Decode the spans of the next rows."""
        fields, key = self._records.fields, self._key
        spans = fields.spans(key)
        while (row := self._outlines.read(fields.drained, *spans)) >= 0:
            text = b""
            try:
                text = json.dumps(self.plain(loaded(fields, key, row), key)).encode() + b","
            except FaultError as error:
                self._records.fault_of_row(row, error)
            span = text + bytes(128), np.int64(len(text)).tobytes()
            if self._outlines.read(row, *span) >= 0:
                raise AssertionError("plain JSON is never odd")  # pragma: no cover


class SegmentationLists(_Outlines):
    """The segmentations of a list of records."""

    plain = staticmethod(_plain_segmentation)

    @property
    def listed(self) -> int:
        """Number of polygons and uncompressed RLE."""
        return self._outlines.listed

    def columns(self) -> tuple[Integers, Masks]:
        """Return the mask of each row, or -1, and masks, whose sizes are 0 for polygons; once."""
        rows, runs, ring_end, points = self._outlines.columns()
        has = rows[:, 0] >= 0
        mask = np.where(has, np.cumsum(has, dtype=np.int32) - np.int32(1), np.int32(-1))
        sizes = rows[has, :2].astype(np.int32)
        run_start, ring_start = np.vstack([np.zeros((1, 2), np.int64), rows[has, 2:]]).T.copy()
        masks = Masks(sizes, run_start, runs, ring_start, ring_end // 2, points.reshape(-1, 2))
        return mask, masks


class KeypointLists(_Outlines):
    """The keypoints of a list of records, under a key."""

    plain = staticmethod(_plain_keypoints)
    are_keypoints = True

    def finish(self, count: int | None = None, *, pairs: bool = False, same: bool = True) -> None:
        """Add problems; if `same`, rows need `count` keypoints.

        With `pairs`, rows with a box may have x and y without v, which then is 1.
        """
        records, key = self._records, self._key
        rows, _, ends, self._values = self._outlines.columns()
        self._starts = np.append(0, ends)[np.append(0, rows[:, 3])]
        lengths = np.diff(self._starts)  # 0 of refused rows
        self._pairs = np.zeros(len(lengths), np.bool_)
        if pairs and count is not None:
            has_box = ~np.isnan(np.frombuffer(records.fields.bytes_of("bbox")).reshape(-1, 4)[:, 0])
            self._pairs = (lengths == 2 * count) & has_box
        counts, rest = np.divmod(lengths, 3)
        is_whole = (lengths > 0) & (rest == 0) & ~self._pairs
        for row in np.flatnonzero((rest > 0) & ~self._pairs).tolist():
            records.fault_of_row(row, _partial_keypoints(key, lengths[row]))
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
