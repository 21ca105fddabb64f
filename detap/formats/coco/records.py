"""Values of odd records, which the fast reader hands to Python."""

import json
from collections.abc import Mapping
from typing import Any

from detap.formats.coco.columns import LISTS
from detap.formats.coco.keypoints import keypoint_values, keypoints_of_result, number_of_keypoints
from detap.formats.coco.segmentation import parse_segmentation
from detap.formats.coco.values import (
    Record,
    area_of,
    box_of,
    flag_of,
    identifier_of,
    polygon_of,
    required,
    score_of,
    size_of,
)
from detap.formats.reading.attributes import Attributes
from detap.io.json_text import short_json
from detap.io.problems import FaultError
from detap.tables.detection import Name

Values = Mapping[str, Any]
FLAGS = ("iscrowd", "ignore", "isgroupof")
ROTATION = "attributes.rotation"


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
    """Return the values of an annotation.

    Raises
    ------
    FaultError
    """
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
    values[ROTATION] = rotation_of(record.get("attributes"))
    values["score"] = b"0" if "score" in record else None
    return values


def result_values(record: Record, boxes: str, *, masks: bool, keypoints: bool) -> Values:
    """Return the values of a detection.

    Raises
    ------
    FaultError
    """
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


def rotation_of(attributes: Any) -> float | None:
    """Return CVAT's rotation of a box in degrees; None if there is none."""
    degrees = attributes.get("rotation") if isinstance(attributes, dict) else None
    if isinstance(degrees, bool) or not isinstance(degrees, int | float):
        return None
    return float(degrees) if abs(degrees) < 1e300 else None


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
