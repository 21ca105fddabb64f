"""Segmentations and keypoints of COCO records, decoded by `_spans.pyx`."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core.polygons import box_polygons
from detap.formats.coco._spans import Outlines
from detap.formats.coco.records import number_of
from detap.formats.json.document import RecordList, loaded
from detap.io.json_text import short_json
from detap.io.problems import FaultError
from detap.tables.columns import FARTHEST
from detap.tables.detection import Floats, Integers
from detap.tables.masks import Masks, read_rle

_MIN_VALUES = 6
"""Values of a polygon with an area; pycocotools requires them of the first only."""


def _pixels(values: list[Any], name: str) -> list[float]:
    """Return the numbers of a list of coordinates."""
    numbers = [number_of(f"{name}[{i}]", value) for i, value in enumerate(values)]
    for i, number in enumerate(numbers):
        if not abs(number) <= FARTHEST:
            raise FaultError(f"{name}[{i}] is {short_json(values[i])}, expected pixels")
    return numbers


class _Outlines:
    """The values of a list of records under a key."""

    expected: str
    are_lists = True  # of numbers

    def __init__(self, records: RecordList, key: str = "segmentation") -> None:
        self._records, self._key = records, key
        self._outlines = Outlines(keypoints=self.are_lists)

    def plain(self, value: Any) -> Any:
        """Return a value as `_spans.pyx` reads it, or raise FaultError."""
        if not isinstance(value, list):
            raise FaultError(f"{self._key} is {short_json(value)}, expected {self.expected}")
        if not value:
            raise FaultError(f"{self._key} is empty, expected {self.expected}")
        return _pixels(value, self._key)

    def drain(self) -> None:
        """Decode the spans of the next rows."""
        fields, key = self._records.fields, self._key
        spans = fields.spans(key)
        while (row := self._outlines.read(fields.drained, *spans)) >= 0:
            text = b""
            try:
                text = json.dumps(self.plain(loaded(fields, key, row))).encode() + b","
            except FaultError as error:
                self._records.fault_of_row(row, error)
            span = text + bytes(128), np.int64(len(text)).tobytes()
            if self._outlines.read(row, *span) >= 0:
                raise AssertionError("plain JSON is never odd")  # pragma: no cover


class SegmentationLists(_Outlines):
    """The segmentations of a list of records."""

    expected = "polygons [[x, y, x, y, x, y, ...]] or RLE {size, counts}"
    are_lists = False

    def plain(self, value: Any) -> Any:
        """Return polygons of three points or more, or RLE."""
        if isinstance(value, list) and value:
            rings = []
            for index, ring in enumerate(value):
                name = f"segmentation[{index}]"
                if not isinstance(ring, list):
                    expected = "a polygon [x, y, x, y, x, y, ...]"
                    raise FaultError(f"{name} is {short_json(ring)}, expected {expected}")
                rings.append(_pixels(ring, name))
                has = f"{name} has {len(ring)} values, expected"
                if len(ring) % 2:
                    raise FaultError(f"{has} x and y of each point")
                if len(ring) < _MIN_VALUES and index == 0:
                    raise FaultError(f"{has} three points or more")
            return [ring for ring in rings if len(ring) >= _MIN_VALUES]
        if not isinstance(value, dict):
            return super().plain(value)
        for key in ("size", "counts"):
            if key not in value:
                raise FaultError(f"segmentation has no {key}, expected {self.expected}")
        size, runs = read_rle(value["size"], value["counts"])
        is_text = isinstance(value["counts"], str)
        return {"size": size, "counts": value["counts"] if is_text else runs.tolist()}

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


class _Points(_Outlines):
    """The points of a list of records, of `width` numbers each."""

    width: int

    def _take(self) -> NDArray[np.int64]:
        """Take the numbers; return how many each row has, 0 of refused rows."""
        rows, _, ends, self._values = self._outlines.columns()
        self._starts = np.append(0, ends)[np.append(0, rows[:, 3])]
        lengths: NDArray[np.int64] = np.diff(self._starts)
        return lengths

    def corners(self, rows: NDArray[np.bool_]) -> tuple[NDArray[np.intp], Floats, Floats]:
        """Return those of the rows that have points, and their lowest and highest x and y."""
        lengths = np.diff(self._starts)
        rows = rows[: len(lengths)]  # no row has points if none was read
        given = np.flatnonzero(rows & (lengths > 0))
        points = self._values[np.repeat(rows, lengths)].reshape(-1, self.width)[:, :2]
        counts = lengths[given] // self.width
        starts = np.cumsum(counts) - counts
        low, high = (ufunc.reduceat(points, starts, axis=0) for ufunc in (np.minimum, np.maximum))
        return given, low, high


class Quadrilaterals(_Points):
    """The corners of oriented boxes."""

    expected = "[x1, y1, x2, y2, ..., y4]"
    width = 2

    def finish(self) -> None:
        """Add problems of rows without four corners."""
        lengths = self._take()
        for row in np.flatnonzero((lengths > 0) & (lengths != 8)).tolist():
            message = f"{self._key} has {lengths[row]} values, expected {self.expected}"
            self._records.fault_of_row(row, FaultError(message))
        self.rows = np.flatnonzero(lengths)

    def array(self, boxes: Floats) -> Floats | None:
        """Return the quadrilaterals (N, 8), `boxes` (N, 4) among them; None if all are boxes."""
        if not len(self.rows):
            return None
        polygons: Floats = box_polygons(boxes)
        polygons[self.rows] = self._values.reshape(-1, 8)
        return polygons


class KeypointLists(_Points):
    """The keypoints of a list of records, under a key."""

    expected = "[x, y, v, x, y, v, ...]"
    width = 3

    def finish(self, count: int | None = None, *, pairs: bool = False, same: bool = True) -> None:
        """Add problems; if `same`, rows need `count` keypoints.

        With `pairs`, rows with a box may have x and y without v, which then is 1.
        """
        records, key = self._records, self._key
        lengths = self._take()
        self._pairs = np.zeros(len(lengths), np.bool_)
        if pairs and count is not None:
            has_box = ~np.isnan(np.frombuffer(records.fields.bytes_of("bbox")).reshape(-1, 4)[:, 0])
            self._pairs = (lengths == 2 * count) & has_box
        counts, rest = np.divmod(lengths, 3)
        is_whole = (lengths > 0) & (rest == 0) & ~self._pairs
        for row in np.flatnonzero((rest > 0) & ~self._pairs).tolist():
            hint = "x, y without v (kpt_shape [K, 2]) need ground truth with a data.yaml"
            message = f"{key} has {lengths[row]} values, expected {self.expected}"
            records.fault_of_row(row, FaultError(message, "" if lengths[row] % 2 else hint))
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
