"""Values of records, and of those that `json.loads` parsed because they are odd."""

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from detap.io.json_text import short_json
from detap.io.problems import FaultError
from detap.tables.columns import EXACT, name_of
from detap.tables.detection import Name
from detap.tables.notes import BOX_LAYOUTS

Record = dict[str, Any]


def identifier_of(record: Record, key: str) -> Name:
    """Return the id under `key`: an integer or a string."""
    value = required(record, key)
    name = name_of(value)
    if name is None:
        raise FaultError(f"{key} is {short_json(value)}, expected an integer or a string")
    if isinstance(name, str):
        check_text(key, name)
    return name


def check_text(key: str, value: str) -> None:
    """Raise FaultError if text cannot be encoded as UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise FaultError(f"{key} has an unpaired surrogate", "write it as UTF-8") from None


def number_of(name: str, value: Any) -> float:
    """Return a finite number as a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FaultError(f"{name} is {short_json(value)}, expected a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        text = "NaN" if math.isnan(number) else "infinite"
        text = short_json(value) if isinstance(value, int) else text
        raise FaultError(f"{name} is {text}, expected a finite number")
    return number


def score_of(value: Any, key: str = "score") -> float:
    """Return a score; raise FaultError if float64 rounds it, which could create a tie."""
    number = number_of(key, value)
    if isinstance(value, int) and number != value:
        raise FaultError(
            f"{key} is {short_json(value)}, which float64 rounds to {number:.0f}",
            "use scores that float64 represents exactly, such as integers below 2^53",
        )
    return number


def required(record: Record, key: str) -> Any:
    """Return the value under `key`; raise FaultError if it is missing."""
    if key not in record:
        raise FaultError(f"{key} is missing")
    return record[key]


def box_of(record: Record, box_format: str = "xywh") -> tuple[float, float, float, float]:
    """Return the four values of the bbox, in the file's format."""
    layout = BOX_LAYOUTS[box_format]
    if "bbox" not in record:
        raise FaultError(f"bbox is missing, expected {layout}")
    value = record["bbox"]
    if not isinstance(value, list):
        raise FaultError(f"bbox is {short_json(value)}, expected {layout}")
    if len(value) != 4:
        raise FaultError(f"bbox has {len(value)} values, expected 4: {layout}")
    x, y, third, fourth = (number_of(f"bbox[{i}]", number) for i, number in enumerate(value))
    far = (third, fourth) if box_format == "xyxy" else (x + third, y + fourth)
    sides = (third - x, fourth - y) if box_format == "xyxy" else (third, fourth)
    if not all(map(math.isfinite, (sides[0] * sides[1], *far))):
        raise FaultError(f"bbox {short_json(value)} overflows, expected finite corners and area")
    return x, y, third, fourth


def flag_of(record: Record, key: str) -> bool:
    """Return a flag: 0, 1, true or false."""
    value = record[key]
    if isinstance(value, bool | int | float) and value in (0, 1):
        return bool(value)
    raise FaultError(f"{key} is {short_json(value)}, expected 0 or 1")


def size_of(value: Any) -> float:
    """Return a usable width or height, else NaN."""
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    if usable and 0 < value < EXACT:
        return float(value)
    return math.nan


def check_area(record: Record, box_area: float = math.nan) -> None:
    """Raise FaultError for a negative area, other than that of a box of negative size."""
    area = number_of("area", record.get("area", 0))
    if area < 0 and area != box_area:
        raise FaultError(f"area is {short_json(record['area'])}, expected a number >= 0")


def no_common_id(key: str, ids: Sequence[Name], known: Sequence[Name]) -> str:
    """Return the message for results without any id of the ground truth."""
    return (
        f"no {key} of the results is in the ground truth (results: {_format_range(ids)}; ground "
        f"truth: {_format_range(known)})"
    )


def _format_range(ids: Sequence[Name]) -> str:
    """Return the first and last id of the first id's type."""
    if not ids:
        return "none"
    same_type = [name for name in ids if isinstance(name, str) == isinstance(ids[0], str)]
    low, high = short_json(min(same_type)), short_json(max(same_type))
    return low if low == high else f"{low}\N{EN DASH}{high}"


def other_name(identifier: Name, name: str | None, expected: str | None) -> str:
    """Return the message for a category that has another name in the ground truth."""
    return (
        f"category {short_json(identifier)} has the name {short_json(name)}, expected "
        f"{short_json(expected)} as in the ground truth"
    )


def other_type(name: Name, known: Sequence[Name]) -> str:
    """Return the end of a message on an unknown id of another type than the known ones."""
    if not known or isinstance(known[0], str) == isinstance(name, str):
        return ""
    return " (ids are strings)" if isinstance(known[0], str) else " (ids are numbers)"


# --- records

LISTS = {"negative": "neg_category_ids", "not_exhaustive": "not_exhaustive_category_ids"}
"""Keys of the category lists in image records."""

Values = Mapping[str, Any]
Columns = Sequence[tuple[str | tuple[str, ...], str]]
"""Columns of `Fields`: their keys and kind."""
FLAGS = ("iscrowd", "ignore", "isgroupof")
_GEOMETRIES = ("segmentation", "keypoints", "poly")
_MOST_DEGREES = 1e6


def values_of(record: Record, columns: Columns, boxes: str, keys: Sequence[str]) -> dict[str, Any]:
    """Return the values of the columns that a record has, or must have: the `keys`."""
    values: dict[str, Any] = {}
    for names, kind in columns:
        name, *others = (names,) if isinstance(names, str) else names
        key = next((key for key in (name, *others) if key in record), name)
        if kind == "box" and (key in record or key in keys):
            values[name] = box_of(record, boxes)
        elif key in record or key in keys:
            values[name] = _READERS[kind](record, key)
    return values


def category_ids(key: str, values: Any) -> list[Name]:
    """Return a list of category ids of an image record."""
    if not isinstance(values, list):
        raise FaultError(f"{key} is {short_json(values)}, expected a list of category ids")
    return [identifier_of({key: value}, key) for value in values]


def annotation_values(
    record: Record, columns: Columns, boxes: str, *, keys: Sequence[str]
) -> Values:
    """Return the values of an annotation, which must have the `keys`."""
    record = present(record, "bbox", *keys)
    if "bbox" not in keys and has_no_box(record):
        record.pop("bbox", None)
    values = values_of(record, columns, boxes, keys)
    x, y, width, height = values.get("bbox", (math.nan,) * 4)
    sides = (width - x, height - y) if boxes == "xyxy" else (width, height)
    check_area(record, math.prod(sides))
    return values


def result_values(
    record: Record, columns: Columns, boxes: str, *, shapes: Collection[str], keys: Sequence[str]
) -> Values:
    """Return the values of a detection, which must have the `keys`, and a box or shape."""
    no_box = has_no_box(record)
    named = tuple(keys)
    if no_box and all(record.get(key) is None for key in _GEOMETRIES):
        named += _GEOMETRIES  # by the message of a record without any
    record = present(record, "bbox", *named)
    if "category_id" not in record and isinstance(record.get("category_name"), str):
        record["category_id"] = record["category_name"]
    if not isinstance(record.get("file_name"), str):
        record.pop("file_name", None)
    if no_box and record.keys().isdisjoint(shapes):
        keys = (*keys, "bbox" if "keypoints" in shapes else "segmentation")
    if no_box and "bbox" not in keys:
        record.pop("bbox", None)
    return values_of(record, columns, boxes, keys)


def has_no_box(record: Record) -> bool:
    """Return True if a record has no bbox, or an empty list, as in pycocotools."""
    return record.get("bbox") in (None, [])


def present(record: Record, *kept: str) -> Record:
    """Return a record without its null values, except of the keys that are `kept`."""
    return {key: value for key, value in record.items() if value is not None or key in kept}


def rotation_of(attributes: Any) -> float:
    """Return CVAT's rotation of a box in degrees; 0 if there is none."""
    degrees = attributes.get("rotation") if isinstance(attributes, dict) else None
    if isinstance(degrees, bool) or not isinstance(degrees, int | float):
        return 0.0
    return float(degrees) if abs(degrees) < _MOST_DEGREES and degrees % 360 else 0.0


def attribute_column(name: str) -> str:
    """Return the column of an attribute; no key of JSON text has a NUL."""
    return f"\0{name}"


def _span(record: Record, key: str) -> bytes:
    if key not in record:
        hint = "add it, or use --iou-type bbox" if "bbox" in record else "add it"
        raise FaultError(f"{key} is missing", hint)
    return json.dumps(record[key]).encode()


def _count(record: Record, key: str) -> float:
    number = number_of(key, record[key])
    if number < 0 or not number.is_integer() or number >= EXACT:
        raise FaultError(f"{key} is {short_json(record[key])}, expected an integer >= 0")
    return number


_READERS: Mapping[str, Callable[[Record, str], Any]] = {
    "key": identifier_of,
    "number": lambda record, key: size_of(record[key]),
    "score": lambda record, key: score_of(record[key], key),
    "area": lambda record, key: number_of(key, record[key]),
    "count": _count,
    "flag": flag_of,
    "span": _span,
}
"""The function that reads the value of a kind of column."""
