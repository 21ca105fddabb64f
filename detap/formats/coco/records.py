"""Values of records that `json.loads` parsed, because the compiled reader found them odd."""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.formats.coco.columns import LISTS
from detap.formats.coco.values import (
    Record,
    area_of,
    box_of,
    flag_of,
    format_infinite,
    identifier_of,
    number_of,
    polygon_of,
    required,
    score_of,
    size_of,
)
from detap.formats.reading.attributes import Attributes
from detap.io.json_text import short_json
from detap.io.problems import FaultError
from detap.tables import _runs
from detap.tables.columns import FARTHEST
from detap.tables.detection import Name
from detap.tables.masks import MOST_PIXELS

Values = Mapping[str, Any]
FLAGS = ("iscrowd", "ignore", "isgroupof")
_MOST_DEGREES = 1e6
_KEYPOINTS = "[x, y, v, x, y, v, ...]"
_SEGMENTATION = "polygons [[x, y, x, y, x, y, ...]] or RLE {size, counts}"
_SIZE = "[height, width] as integers > 0"
_MIN_VALUES = 6
"""Values of a polygon with an area; pycocotools requires them of the first only."""


def image_values(record: Record) -> Values:
    """Return the values of an image of ground truth."""
    identifier = identifier_of(record, "id")
    lists = {key: _json(category_ids(key, record[key])) for key in LISTS.values() if key in record}
    sizes = {side: size_of(record.get(side)) for side in ("width", "height")}
    return {"id": identifier, **sizes, **lists}


def category_ids(key: str, values: Any) -> list[Name]:
    """Return a list of category ids of an image record."""
    if not isinstance(values, list):
        raise FaultError(f"{key} is {short_json(values)}, expected a list of category ids")
    if all(type(value) is int for value in values):
        return values
    return [identifier_of({key: value}, key) for value in values]


def annotation_values(
    record: Record, boxes: str, attributes: Attributes, *, masks: bool, keypoints: bool
) -> Values:
    """Return the values of an annotation."""
    values: dict[str, Any] = {"id": identifier_of(record, "id") if "id" in record else None}
    values |= {key: identifier_of(record, key) for key in ("image_id", "category_id")}
    if not (masks and has_no_box(record)):
        values["bbox"] = box_of(record, boxes)
    if "area" in record:
        values["area"] = area_of(record, *_sides(values.get("bbox"), boxes))
    if masks:
        if "segmentation" not in record:
            raise FaultError("segmentation is missing", "add it, or use --iou-type bbox")
        parse_segmentation(record["segmentation"])
        values["segmentation"] = _json(record["segmentation"])
    if keypoints:
        keypoints_of_result(record)
        values["keypoints"] = _json(record["keypoints"])
        values["num_keypoints"] = number_of_keypoints(record)
    values |= {name: flag_of(record, name) for name in FLAGS if name in record}
    attributes.values(record.get)
    values |= {
        attribute_column(name): _json(record[name]) for name in attributes.names if name in record
    }
    if isinstance(record.get("attributes"), dict):
        values["attributes"] = _json(record["attributes"])
    values["score"] = b"0" if "score" in record else None
    return values


def result_values(record: Record, boxes: str, *, masks: bool, keypoints: bool) -> Values:
    """Return the values of a detection."""
    values: dict[str, Any] = {}
    values |= {key: identifier_of(record, key) for key in ("image_id", "category_id")}
    if isinstance(record.get("file_name"), str):
        values["file_name"] = record["file_name"]
    if keypoints:
        keypoint_values(record)
        values["keypoints"] = _json(record["keypoints"])
    no_box = has_no_box(record)
    if "segmentation" in record and (masks or (no_box and not keypoints)):
        parse_segmentation(record["segmentation"])
        values["segmentation"] = _json(record["segmentation"])
    if not no_box:
        values["bbox"] = box_of(record, boxes)
    elif "segmentation" not in values:
        if "keypoints" in record:
            keypoints_of_result(record)
            values["keypoints"] = _json(record["keypoints"])
        elif "poly" not in record:
            box_of(record, boxes)
    values["score"] = score_of(required(record, "score"))
    if no_box and "poly" in record:
        values["poly"] = _json(polygon_of(record))
    values["id"] = _json(record["id"]) if isinstance(record.get("id"), int | str) else None
    return values


def has_no_box(record: Record) -> bool:
    """Return True if a record has no bbox, or an empty list, as in pycocotools."""
    return bool(record.get("bbox", []) == [])


def rotation_of(attributes: Any) -> float:
    """Return CVAT's rotation of a box in degrees; 0 if there is none."""
    degrees = attributes.get("rotation") if isinstance(attributes, dict) else None
    if isinstance(degrees, bool) or not isinstance(degrees, int | float):
        return 0.0
    return float(degrees) if abs(degrees) < _MOST_DEGREES and degrees % 360 else 0.0


def attribute_column(name: str) -> str:
    """Return the column of an attribute; no key of JSON text has a NUL."""
    return f"\0{name}"


def _sides(box: Any, boxes: str) -> tuple[float, float]:
    if box is None:
        return float("nan"), float("nan")
    x, y, width, height = box
    return (width, height) if boxes == "xywh" else (width - x, height - y)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


# --- keypoints


def keypoints_of_result(record: Record) -> list[float]:
    """Return the keypoints of a record as (x, y, v) values."""
    numbers, values = keypoint_values(record), record["keypoints"]
    if len(numbers) % 3:
        message = f"keypoints has {len(numbers)} values, expected {_KEYPOINTS}"
        hint = "x, y without v (kpt_shape [K, 2]) need ground truth with a data.yaml"
        raise FaultError(message, hint if len(numbers) % 2 == 0 else "")
    for i, number in enumerate(numbers):
        if not abs(number) <= FARTHEST:
            raise FaultError(f"keypoints[{i}] is {short_json(values[i])}, expected pixels")
    return numbers


def keypoint_values(record: Record) -> list[float]:
    """Return the keypoints of a record as numbers, of any count."""
    if "keypoints" not in record:
        raise FaultError("keypoints is missing", "add it, or use --iou-type bbox")
    values = record["keypoints"]
    if not isinstance(values, list):
        raise FaultError(f"keypoints is {short_json(values)}, expected {_KEYPOINTS}")
    if not values:
        raise FaultError(f"keypoints is empty, expected {_KEYPOINTS}")
    return [number_of(f"keypoints[{i}]", value) for i, value in enumerate(values)]


def number_of_keypoints(record: Record) -> int | None:
    """Return the `num_keypoints` of a record; None if it is absent."""
    if "num_keypoints" not in record:
        return None
    value: Any = record["num_keypoints"]
    number = number_of("num_keypoints", value)
    if number < 0 or number != int(number) or number >= 2.0**53:
        raise FaultError(f"num_keypoints is {short_json(value)}, expected an integer >= 0")
    return int(number)


# --- segmentations


class Segmentation(NamedTuple):
    """One segmentation: polygons, with size 0, or runs with their own size."""

    height: int
    width: int
    rings: list[list[float]]
    runs: NDArray[np.uint32] | None
    listed: bool


def parse_segmentation(value: Any) -> Segmentation:
    """Parse a record's segmentation."""
    if isinstance(value, dict):
        return _parse_rle(value)
    if not isinstance(value, list):
        raise FaultError(f"segmentation is {short_json(value)}, expected {_SEGMENTATION}")
    if not value:
        raise FaultError(f"segmentation is empty, expected {_SEGMENTATION}")
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
            raise FaultError(f"segmentation has no {key}, expected {_SEGMENTATION}")
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
