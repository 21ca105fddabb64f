"""Validated values of COCO records."""

import math
from collections.abc import Sequence
from typing import Any

from detap.io.json_text import LongInteger, short_json
from detap.io.problems import FaultError
from detap.tables.columns import FARTHEST
from detap.tables.detection import Name
from detap.tables.notes import BOX_LAYOUTS

Record = dict[str, Any]

WHOLE_FLOATS = 2.0**53
"""From here on, float64 does not represent every integer: an id is ambiguous."""


def identifier_of(record: Record, key: str) -> Name:
    """Return the id under `key`: an integer or a string."""
    if key not in record:
        raise FaultError(f"{key} is missing")
    value = record[key]
    if type(value) is int:
        return value
    if isinstance(value, str):
        check_text(key, value)
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < WHOLE_FLOATS:
        return int(value)
    raise FaultError(f"{key} is {short_json(value)}, expected an integer or a string")


def check_text(key: str, value: str) -> None:
    """Raise FaultError if text cannot be encoded as UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise FaultError(f"{key} has an unpaired surrogate", "write it as UTF-8") from None


def number_of(name: str, value: Any) -> float:
    """Return a finite number as a float."""
    if type(value) is float and math.isfinite(value):
        return value
    if not isinstance(value, LongInteger) and (
        isinstance(value, bool) or not isinstance(value, int | float)
    ):
        raise FaultError(f"{name} is {short_json(value)}, expected a number")
    try:
        number = math.inf if isinstance(value, LongInteger) else float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise FaultError(f"{name} is {format_infinite(value)}, expected a finite number")
    return number


def score_of(value: Any) -> float:
    """Return a score; raise FaultError if float64 rounds it, which could create a tie."""
    number = number_of("score", value)
    if isinstance(value, int) and number != value:
        raise FaultError(
            f"score is {short_json(value)}, which float64 rounds to {number:.0f}",
            "use scores that float64 represents exactly, such as integers below 2^53",
        )
    return number


def format_infinite(value: object) -> str:
    """Return the text of NaN, infinity or an integer beyond float64."""
    if not isinstance(value, float):
        return short_json(value)
    return "NaN" if math.isnan(value) else "infinite"


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
    far = (x + third, y + fourth) if box_format == "xywh" else (third, fourth)
    sides = (third, fourth) if box_format == "xywh" else (third - x, fourth - y)
    if not all(map(math.isfinite, (sides[0] * sides[1], *far))):
        raise FaultError(f"bbox {short_json(value)} overflows, expected finite corners and area")
    return x, y, third, fourth


def polygon_of(record: Record) -> list[float]:
    """Return the eight values of a `poly`: the corners of an oriented box."""
    values = record["poly"]
    if not isinstance(values, list) or len(values) != 8:
        raise FaultError(f"poly is {short_json(values)}, expected [x1, y1, x2, y2, ..., y4]")
    polygon = [number_of(f"poly[{i}]", value) for i, value in enumerate(values)]
    if not all(abs(value) <= FARTHEST for value in polygon):
        raise FaultError(f"poly is {short_json(values)}, expected pixels")
    return polygon


def bounds_of(polygon: list[float]) -> tuple[float, float, float, float]:
    """Return the lowest x and y, and the highest x and y."""
    x, y = polygon[0::2], polygon[1::2]
    return min(x), min(y), max(x), max(y)


def flag_of(record: Record, key: str) -> bool:
    """Return a flag: 0, 1, true or false."""
    value = record[key]
    if isinstance(value, bool | int | float) and value in (0, 1):
        return bool(value)
    raise FaultError(f"{key} is {short_json(value)}, expected 0 or 1")


def size_of(value: Any) -> float:
    """Return a usable width or height, else NaN."""
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    if usable and 0 < value < WHOLE_FLOATS:
        return float(value)
    return math.nan


def area_of(record: Record, width: float, height: float) -> float:
    """Return the annotated area or that of the box; negative only for a box of negative size."""
    if "area" not in record:
        return width * height
    area = number_of("area", record["area"])
    if area < 0 and area != width * height:
        raise FaultError(f"area is {short_json(record['area'])}, expected a number >= 0")
    return area


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
