"""Fallback reader of keypoints; must agree with ``_keypoints.pxd``."""

from array import array
from typing import Any

import numpy as np

from detap.formats.coco.columns import KeypointColumns
from detap.formats.coco.values import Record, number_of
from detap.io.json_text import short_json
from detap.io.problems import FaultError
from detap.tables.columns import FARTHEST
from detap.tables.detection import Floats

_LAYOUT = "[x, y, v, x, y, v, ...]"


class KeypointsReader:
    """Collects the keypoints of a file.

    Parameters
    ----------
    count : int, optional
        Keypoints per row; by default those of the first row.
    pairs : bool
        Accept x and y without v, if `count` is given.
    """

    def __init__(self, count: int | None = None, *, pairs: bool = False) -> None:
        self._count = count
        self._pairs = pairs and count is not None
        self._reference = "in earlier records" if count is None else "as in the ground truth"
        self.values = array("d")
        self.width_height = array("d")
        self.no_keypoints = bytearray()
        self.without_count = 0

    def parse(self, record: Record) -> list[float]:
        """Return the keypoints of a record as (x, y, v) values.

        Raises
        ------
        FaultError
            If they are invalid, or their number differs from earlier rows.
        """
        given = record.get("keypoints")
        if self._pairs and isinstance(given, list) and len(given) == 2 * (self._count or 0):
            values = [
                1 if k == 2 else given[2 * p + k] for p in range(len(given) // 2) for k in range(3)
            ]
            record = {"keypoints": values}
        values = keypoints_of_result(record)
        count = len(values) // 3
        if self._count is None:
            self._count = count
        if count != self._count:
            raise FaultError(
                f"keypoints has {count} keypoints, expected {self._count} {self._reference}"
            )
        return values

    def add(self, values: list[float]) -> None:
        """Append a row's keypoints; ground truths have v."""
        self.values.extend(values)

    def add_annotation(
        self, values: list[float], num_keypoints: int | None, width_height: tuple[float, float]
    ) -> None:
        """Append the keypoints of an annotation, its `num_keypoints` and box size."""
        self.add(values)
        self.width_height.extend(width_height)
        self.without_count += num_keypoints is None
        labeled = sum(v > 0 for v in values[2::3]) if num_keypoints is None else num_keypoints
        self.no_keypoints.append(labeled == 0)

    def points(self, size: int) -> Floats:
        """Return the keypoints as an array (N, P, size)."""
        return np.array(self.values).reshape(-1, self._count or 0, size)

    def columns(self) -> KeypointColumns:
        """Return the columns of the annotations."""
        return KeypointColumns(
            self.points(3) if self.no_keypoints else np.zeros((0, self._count or 0, 3)),
            np.array(self.width_height).reshape(-1, 2),
            np.array(self.no_keypoints, np.bool_),
        )


def keypoints_of_result(record: Record) -> list[float]:
    """Return the keypoints of a record as (x, y, v) values.

    Raises
    ------
    FaultError
    """
    if "keypoints" not in record:
        raise FaultError("keypoints is missing", "add it, or use --iou-type bbox")
    values = record["keypoints"]
    if not isinstance(values, list):
        raise FaultError(f"keypoints is {short_json(values)}, expected {_LAYOUT}")
    if not values:
        raise FaultError(f"keypoints is empty, expected {_LAYOUT}")
    numbers = [number_of(f"keypoints[{i}]", value) for i, value in enumerate(values)]
    if len(numbers) % 3:
        message = f"keypoints has {len(numbers)} values, expected {_LAYOUT}"
        hint = "x, y without v (kpt_shape [K, 2]) need ground truth with a data.yaml"
        raise FaultError(message, hint if len(numbers) % 2 == 0 else "")
    for i, number in enumerate(numbers):
        if not abs(number) <= FARTHEST:
            raise FaultError(f"keypoints[{i}] is {short_json(values[i])}, expected pixels")
    return numbers


def number_of_keypoints(record: Record) -> int | None:
    """Return the `num_keypoints` of a record; None if it is absent.

    Raises
    ------
    FaultError
    """
    if "num_keypoints" not in record:
        return None
    value: Any = record["num_keypoints"]
    number = number_of("num_keypoints", value)
    if number < 0 or number != int(number) or number >= 2.0**53:
        raise FaultError(f"num_keypoints is {short_json(value)}, expected an integer >= 0")
    return int(number)


def extent_of(values: list[float]) -> tuple[float, float, float, float]:
    """Return the bounding box of keypoints: x, y, width, height."""
    x, y = values[0::3], values[1::3]
    return min(x), min(y), max(x) - min(x), max(y) - min(y)


def drop_visibility(values: list[float]) -> list[float]:
    """Return x and y of each keypoint."""
    return [value for i, value in enumerate(values) if i % 3 < 2]
