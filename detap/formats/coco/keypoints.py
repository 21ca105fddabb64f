"""Keypoints read with care.

The scanner reads the same of regular files (``_poses.pxd``) and is held to this.
"""

from array import array
from typing import Any

import numpy as np

from detap.formats.coco.columns import Poses
from detap.formats.coco.values import Record, number_of
from detap.io.json_text import spelt
from detap.io.problems import FaultError
from detap.tables.columns import FARTHEST
from detap.tables.detection import Floats

_HINT = "give [x, y, v, x, y, v, ...]"
_COUNT = "give how many are labelled, a whole number"


class PosesReader:
    """The keypoints of a file, row by row.

    Parameters
    ----------
    due : int, optional
        How many each row has; by default as many as the first.
    """

    def __init__(self, due: int | None = None) -> None:
        self._due = due
        self._first = "those before have" if due is None else "the ground truth has"
        self.values = array("d")
        self.sides = array("d")
        self.without = bytearray()
        self.unnumbered = 0

    def posed(self, record: Record) -> list[float]:
        """Return the numbers of a record's keypoints, of which there are as many as in others.

        Raises
        ------
        FaultError
        """
        values = pose_of(record)
        count = len(values) // 3
        if self._due is None:
            self._due = count
        if count != self._due:
            raise FaultError(
                f"keypoints has {count} keypoints, and {self._first} {self._due}",
                "give every object the same skeleton",
            )
        return values

    def add(self, values: list[float]) -> None:
        """Append the keypoints of the next row, of ground truth with v."""
        self.values.extend(values)

    def add_truth(
        self, values: list[float], number: int | None, sides: tuple[float, float]
    ) -> None:
        """Append those of a ground truth, with its `num_keypoints` and the sides of its box."""
        self.add(values)
        self.sides.extend(sides)
        self.unnumbered += number is None
        labelled = sum(v > 0 for v in values[2::3]) if number is None else number
        self.without.append(labelled == 0)

    def keypoints(self, each: int) -> Floats:
        """Return what was added, (N, P, each)."""
        return np.array(self.values, np.float64).reshape(-1, self._due or 0, each)

    def columns(self) -> Poses:
        """Return what was added of ground truth."""
        return Poses(
            self.keypoints(3) if self.without else np.zeros((0, self._due or 0, 3)),
            np.array(self.sides, np.float64).reshape(-1, 2),
            np.array(self.without, np.bool_),
        )


def pose_of(record: Record) -> list[float]:
    """Return the numbers of a record's keypoints, three each.

    Raises
    ------
    FaultError
    """
    if "keypoints" not in record:
        raise FaultError(
            "keypoints is missing",
            "give every object its keypoints, or score boxes: --iou-type bbox",
        )
    values = record["keypoints"]
    if not isinstance(values, list):
        raise FaultError(f"keypoints is {spelt(values)}", _HINT)
    if not values:
        raise FaultError("keypoints is an empty list", _HINT)
    found = [number_of(f"keypoints[{i}]", value) for i, value in enumerate(values)]
    if len(found) % 3:
        raise FaultError(f"keypoints has {len(found)} numbers", "give an x, a y and a v of each")
    for i, value in enumerate(found):
        if not abs(value) <= FARTHEST:
            message = f"keypoints[{i}] is {spelt(values[i])}"
            raise FaultError(message, "give a coordinate in pixels")
    return found


def number_of_keypoints(record: Record) -> int | None:
    """Return how many keypoints a record says are labelled; None where it does not say.

    Raises
    ------
    FaultError
    """
    if "num_keypoints" not in record:
        return None
    value: Any = record["num_keypoints"]
    number = number_of("num_keypoints", value)
    if number < 0 or number != int(number) or number >= 2.0**53:
        raise FaultError(f"num_keypoints is {spelt(value)}", _COUNT)
    return int(number)


def extent_of(values: list[float]) -> tuple[float, float, float, float]:
    """Return the box around keypoints: x, y, width, height."""
    x, y = values[0::3], values[1::3]
    return min(x), min(y), max(x) - min(x), max(y) - min(y)


def without_v(values: list[float]) -> list[float]:
    """Return x and y of each keypoint."""
    return [value for i, value in enumerate(values) if i % 3 < 2]
