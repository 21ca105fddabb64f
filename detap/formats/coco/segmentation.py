"""Segmentations read with care: polygons, and run lengths as a list or a string.

The scanner reads the same of regular files (``_shapes.pxd``) and is held to this.
"""

import math
from array import array
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.formats.coco.columns import Outlines
from detap.io.json_text import spelt
from detap.io.problems import FaultError
from detap.tables import _runs
from detap.tables.columns import FARTHEST
from detap.tables.masks import MOST_PIXELS

_HINT = "give polygons [[x, y, x, y, x, y, ...]] or run lengths {size, counts}"
_SIZE = "give [height, width], whole numbers above 0"
_LEAST = 6
"""Numbers of a polygon with pixels. pycocotools requires them of the first part only."""


def _wrong(message: str, hint: str = _HINT) -> FaultError:
    return FaultError(message, hint)


class Shape(NamedTuple):
    """One segmentation: polygons, of an image's size, or runs of their own."""

    height: int
    width: int
    rings: list[list[float]]
    runs: NDArray[np.uint32] | None
    listed: bool


class OutlinesReader:
    """The segmentations of a file, row by row."""

    def __init__(self) -> None:
        self.has = bytearray()
        self.sizes = array("i")
        self.run_start = array("q", [0])
        self.runs = array("I")
        self.ring_start = array("q", [0])
        self.ring_end = array("q")
        self.points = array("d")
        self.listed = 0

    def drawn(self, value: Any) -> Shape:
        """Return what a record has as its segmentation.

        Raises
        ------
        FaultError
        """
        if isinstance(value, dict):
            return _run_lengths(value)
        if not isinstance(value, list):
            raise _wrong(f"segmentation is {spelt(value)}")
        if not value:
            raise _wrong("segmentation is an empty list")
        rings = [_polygon(i, ring) for i, ring in enumerate(value)]
        return Shape(0, 0, [ring for ring in rings if len(ring) >= _LEAST], None, True)

    def add(self, shape: Shape | None) -> None:
        """Append the shape of the next row, or that it has none."""
        self.has.append(shape is not None)
        if shape is None:
            return
        self.sizes.extend((shape.height, shape.width))
        for ring in shape.rings:
            self.points.extend(ring)
            self.ring_end.append(len(self.points) // 2)
        if shape.runs is not None:
            self.runs.frombytes(shape.runs.tobytes())
        self.run_start.append(len(self.runs))
        self.ring_start.append(len(self.ring_end))
        self.listed += shape.listed

    def columns(self) -> Outlines:
        """Return what was added."""
        return Outlines(
            has=np.array(self.has, np.bool_),
            sizes=np.array(self.sizes, np.int32).reshape(-1, 2),
            run_start=np.array(self.run_start, np.int64),
            runs=np.array(self.runs, np.uint32),
            ring_start=np.array(self.ring_start, np.int64),
            ring_end=np.array(self.ring_end, np.int64),
            points=np.array(self.points, np.float64).reshape(-1, 2),
            listed=self.listed,
        )


def _polygon(number: int, ring: Any) -> list[float]:
    name = f"segmentation[{number}]"
    if not isinstance(ring, list):
        raise _wrong(f"{name} is {spelt(ring)}")
    for i, value in enumerate(ring):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _wrong(f"{name}[{i}] is {spelt(value)}", "give a number")
        if not abs(value) <= FARTHEST:
            shown = spelt(value)
            if isinstance(value, float) and not math.isfinite(value):
                shown = "NaN" if math.isnan(value) else "infinite"
            raise _wrong(f"{name}[{i}] is {shown}", "give a coordinate in pixels")
    if len(ring) % 2:
        raise _wrong(f"{name} has {len(ring)} numbers", "give an x and a y of each point")
    if len(ring) < _LEAST and number == 0:
        message = f"{name} has {len(ring)} numbers, and a polygon has three points or more"
        raise _wrong(message)
    return [float(value) for value in ring]


def _run_lengths(value: dict[str, Any]) -> Shape:
    for key in ("size", "counts"):
        if key not in value:
            raise _wrong(f"segmentation has no {key}")
    height, width = _size(value["size"])
    counts = value["counts"]
    if isinstance(counts, str):
        runs = _decoded(counts, height * width)
    elif isinstance(counts, list):
        runs = _listed_runs(counts)
    else:
        raise _wrong(f"counts is {spelt(counts)}", "give a list or a string of run lengths")
    total = int(runs.sum(dtype=np.uint64))
    if total != height * width:
        raise _wrong(
            f"counts sum to {total}, and an image of size [{height}, {width}] has "
            f"{height * width} pixels",
            "write the mask again; size is [height, width]",
        )
    return Shape(height, width, [], runs, isinstance(counts, list))


def _size(value: Any) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise _wrong(f"size is {spelt(value)}", _SIZE)
    for side in value:
        whole = isinstance(side, int | float) and not isinstance(side, bool) and side == side // 1
        if not (whole and 0 < side < 2**31):
            raise _wrong(f"size is {spelt(value)}", _SIZE)
    height, width = int(value[0]), int(value[1])
    if height * width > MOST_PIXELS:
        raise _wrong(f"size is {spelt(value)}: {height * width} pixels", _SIZE)
    return height, width


def _decoded(text: str, pixels: int) -> NDArray[np.uint32]:
    found = _runs.decoded(text.encode("utf-8", "replace"), MOST_PIXELS)
    if isinstance(found, str):
        raise _wrong(f"counts {found}", f"write the mask of {pixels} pixels again")
    return found


def _listed_runs(counts: list[Any]) -> NDArray[np.uint32]:
    for i, value in enumerate(counts):
        whole = isinstance(value, int | float) and not isinstance(value, bool)
        if not (whole and 0 <= value <= MOST_PIXELS and value == value // 1):
            message = f"counts[{i}] is {spelt(value)}"
            raise _wrong(message, "give whole numbers of pixels, 0 or more")
    return np.array(counts, np.uint32)
