"""Segmentations that the fast decoder refuses: polygons and RLE, compressed or not."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.formats.coco.values import format_infinite
from detap.io.json_text import short_json
from detap.io.problems import FaultError
from detap.tables import _runs
from detap.tables.columns import FARTHEST
from detap.tables.masks import MOST_PIXELS

_LAYOUT = "polygons [[x, y, x, y, x, y, ...]] or RLE {size, counts}"
_SIZE = "[height, width] as integers > 0"
_MIN_VALUES = 6
"""Values of a polygon with an area; pycocotools requires them of the first only."""


class Segmentation(NamedTuple):
    """One segmentation: polygons, with size 0, or runs with their own size."""

    height: int
    width: int
    rings: list[list[float]]
    runs: NDArray[np.uint32] | None
    listed: bool


def parse_segmentation(value: Any) -> Segmentation:
    """Parse a record's segmentation.

    Raises
    ------
    FaultError
    """
    if isinstance(value, dict):
        return _parse_rle(value)
    if not isinstance(value, list):
        raise FaultError(f"segmentation is {short_json(value)}, expected {_LAYOUT}")
    if not value:
        raise FaultError(f"segmentation is empty, expected {_LAYOUT}")
    rings = [_parse_polygon(i, ring) for i, ring in enumerate(value)]
    return Segmentation(0, 0, [ring for ring in rings if len(ring) >= _MIN_VALUES], None, True)


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


def _parse_rle(value: dict[str, Any]) -> Segmentation:
    for key in ("size", "counts"):
        if key not in value:
            raise FaultError(f"segmentation has no {key}, expected {_LAYOUT}")
    height, width = _parse_size(value["size"])
    counts = value["counts"]
    if isinstance(counts, str):
        runs = _parse_compressed(counts)
    elif isinstance(counts, list):
        runs = _parse_uncompressed(counts)
    else:
        raise FaultError(f"counts is {short_json(counts)}, expected a list or a string")
    total = int(runs.sum(dtype=np.uint64))
    if total != height * width:
        raise FaultError(
            f"counts sum to {total}, expected {height * width} for size [{height}, {width}]",
            "size is [height, width]",
        )
    return Segmentation(height, width, [], runs, isinstance(counts, list))


def _parse_size(value: Any) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise FaultError(f"size is {short_json(value)}, expected {_SIZE}")
    for number in value:
        is_integer = (
            isinstance(number, int | float)
            and not isinstance(number, bool)
            and number == number // 1
        )
        if not (is_integer and 0 < number < 2**31):
            raise FaultError(f"size is {short_json(value)}, expected {_SIZE}")
    height, width = int(value[0]), int(value[1])
    if height * width > MOST_PIXELS:
        pixels = height * width
        raise FaultError(
            f"size is {short_json(value)} ({pixels} pixels), the limit is {MOST_PIXELS}"
        )
    return height, width


def _parse_compressed(text: str) -> NDArray[np.uint32]:
    runs = _runs.decoded(text.encode("utf-8", "replace"), MOST_PIXELS)
    if isinstance(runs, str):
        raise FaultError(f"counts {runs}", "encode the mask again")
    return runs


def _parse_uncompressed(counts: list[Any]) -> NDArray[np.uint32]:
    for i, value in enumerate(counts):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (is_number and 0 <= value <= MOST_PIXELS and value == value // 1):
            raise FaultError(f"counts[{i}] is {short_json(value)}, expected an integer >= 0")
    return np.array(counts, np.uint32)
