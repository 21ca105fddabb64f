"""The values of a record of COCO: each checked, or an error that says what is wrong with it."""

import math
from collections.abc import Sequence
from typing import Any, NoReturn

from detap.io.json_text import LongInteger, spelt
from detap.io.problems import FaultError
from detap.tables.detection import Name

Record = dict[str, Any]

_WHOLE_FLOATS = 2.0**53
"""From here on, not every integer is a float: a float no longer says which id was meant."""

_BOX_REMEDIES = {"xywh": "give [x, y, width, height]", "xyxy": "give [x1, y1, x2, y2]"}


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
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE_FLOATS:
        return int(value)
    raise FaultError(f"{key} is {spelt(value)}", "give a whole number or a string")


def check_text(key: str, value: str) -> None:
    """Refuse text that no UTF-8 can spell."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise FaultError(f"{key} holds half of a surrogate pair", "write it as UTF-8") from None


def number_of(name: str, value: Any) -> float:
    """Return a finite number as a float."""
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, LongInteger):
        raise FaultError(f"{name} is {spelt(value)}, beyond every float", "give a finite number")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FaultError(f"{name} is {spelt(value)}", "give a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise FaultError(f"{name} is {_kind_of_infinity(value)}", "give a finite number")
    return number


def score_of(value: Any) -> float:
    """Return a score, none of whose order is lost: float64 rounds whole numbers from 2^53 on."""
    number = number_of("score", value)
    if isinstance(value, int) and number != value:
        raise FaultError(
            f"score is {spelt(value)}, which float64 rounds to {number:.0f}",
            "give scores that float64 holds, such as whole numbers below 2^53",
        )
    return number


def _kind_of_infinity(value: float) -> str:
    if isinstance(value, int):
        return f"{spelt(value)}, beyond every float"
    return "NaN" if math.isnan(value) else "infinite (as 1e999 is)"


def required(record: Record, key: str) -> Any:
    """Return the value under `key`, which must be there."""
    if key not in record:
        raise FaultError(f"{key} is missing")
    return record[key]


def box_of(record: Record, encoding: str = "xywh") -> tuple[float, float, float, float]:
    """Return x, y, width, height; or, of ``encoding="xyxy"``, two corners."""
    if "bbox" not in record:
        raise FaultError("bbox is missing", _BOX_REMEDIES[encoding])
    value = record["bbox"]
    if not isinstance(value, list):
        raise FaultError(f"bbox is {spelt(value)}", _BOX_REMEDIES[encoding])
    if len(value) != 4:
        raise FaultError(f"bbox has {len(value)} numbers: {spelt(value)}", _BOX_REMEDIES[encoding])
    if not all(type(side) is float for side in value):
        value = [number_of(f"bbox[{i}]", side) for i, side in enumerate(value)]
    x, y, width, height = value
    far = (x + width, y + height)
    if encoding == "xyxy":
        far = (width, height)
        width, height = width - x, height - y
    if not (math.isfinite(width * height) and all(map(math.isfinite, far))):
        _refuse_box(record["bbox"])
    return x, y, value[2], value[3]


def _refuse_box(box: list[Any]) -> NoReturn:
    """Say what is wrong with a box of which something is."""
    for i, side in enumerate(box):
        number_of(f"bbox[{i}]", side)
    raise FaultError(f"bbox overflows: {spelt(box)}", "give a box of finite area and corners")


def flag_of(record: Record, key: str) -> bool:
    """Return a flag that is there."""
    value = record[key]
    if isinstance(value, bool | int | float) and value in (0, 1):
        return bool(value)
    raise FaultError(f"{key} is {spelt(value)}", "give 0 or 1")


def size_of(value: Any) -> float:
    """Return a width or height that can be used, else NaN."""
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    if usable and 0 < value < _WHOLE_FLOATS:
        return float(value)
    return math.nan


def area_of(record: Record, width: float, height: float) -> float:
    """Return the annotated area; the box's where there is none.

    A negative one is an error, unless it is that of a negative width or height.
    """
    if "area" not in record:
        return width * height
    area = number_of("area", record["area"])
    if area < 0 and area != width * height:
        raise FaultError(f"area is {spelt(record['area'])}", "give the area of the object, >= 0")
    return area


def nothing_in_common(what: str, verb: str, ids: Sequence[Name], known: Sequence[Name]) -> str:
    """Return that no image or category of results is one of those known to the ground truth."""
    return (
        f"no {what} in common with the ground truth: {verb} {_describe(ids)} here, "
        f"{_describe(known)} there"
    )


def _describe(ids: Sequence[Name]) -> str:
    """Return in few words what a set of ids looks like."""
    if not ids:
        return "none"
    kind = "strings" if isinstance(ids[0], str) else "numbers"
    alike = [name for name in ids if isinstance(name, str) == isinstance(ids[0], str)]
    low, high = min(alike), max(alike)
    if len(alike) == 1:
        return spelt(low)
    return f"one of {len(ids)} {kind} from {spelt(low)} to {spelt(high)}"
