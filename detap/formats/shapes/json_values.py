"""Values of annotation files."""

import math
from collections.abc import Iterator
from types import UnionType
from typing import Any

from detap.errors import InputError
from detap.formats.by_name.problems import Problems
from detap.formats.coco.values import check_text
from detap.formats.json._fields import nesting
from detap.formats.text.lines import NUMBER, number_fault
from detap.io.json_text import LongInteger, NotJsonError, short_json, text_of
from detap.io.limits import Limits
from detap.io.problems import FaultError
from detap.io.problems import Problems as FileProblems
from detap.text_input import quote

_LONGEST_SIDE = 1e9


def json_value(
    data: bytes, file: str, problems: Problems, limits: Limits, expected: str
) -> tuple[Any, int] | None:
    """Return the content of a JSON file and its number of NaN; None after collecting a problem."""
    file_problems = FileProblems(file, limits.problems)
    value, constants = None, 0
    try:
        text = text_of(data, file_problems, limits, nesting, expected)
        try:
            text.peek()
            value, constants = text.value(""), text.constants
            text.finish()
        except NotJsonError as error:
            file_problems.add(*text.fault(error))
    except InputError as error:
        file_problems.listed = list(error.problems)
    problems.extend(*file_problems.listed)
    problems.count += file_problems.count - len(file_problems.listed)
    return None if file_problems.count else (value, constants)


def value_text(record: dict[str, Any], key: str) -> str:
    """Return the JSON text of a value, or "missing"."""
    return short_json(record[key]) if key in record else "missing"


def required(record: dict[str, Any], key: str, kind: type | UnionType, expected: str) -> Any:
    """Return the value under a key; raise FaultError if it is not of a type."""
    value = record.get(key)
    if not isinstance(value, kind):
        raise FaultError(f"{key} is {value_text(record, key)}", expected)
    return value


def object_of(value: Any) -> dict[str, Any]:
    """Return a JSON object; raise FaultError for other values."""
    if not isinstance(value, dict):
        raise FaultError(f"is {short_json(value)}", "expected an object")
    return value


def class_name(record: dict[str, Any], key: str) -> str:
    """Return the name of a class; raise FaultError if it is missing or blank."""
    name = record.get(key)
    if not isinstance(name, str) or not name.strip():
        raise FaultError(f"{key} is {value_text(record, key)}", "write the name of its class")
    check_text(key, name)
    return name


def finite_number(name: str, value: Any, hint: str = "use a finite number") -> float:
    """Return a finite number; raise FaultError for other values."""
    if isinstance(value, bool | LongInteger) or not isinstance(value, int | float):
        shown = "missing" if value is None else short_json(value)
        raise FaultError(f"{name} is {shown}", hint)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        message = f"{name} is {short_json(value)}, not a finite number"
        raise FaultError(message, "use a finite number")
    return number


def number_of(name: str, text: str) -> float:
    """Return the finite decimal number of a text; raise FaultError for other texts."""
    if NUMBER.fullmatch(text) and math.isfinite(value := float(text)):
        return value
    raise FaultError(f"{name} {quote(text)} {number_fault(text)}", "use a decimal number")


def numbers(record: dict[str, Any], *keys: str) -> Iterator[float]:
    """Yield the finite numbers under keys."""
    for key in keys:
        yield finite_number(key, record.get(key))


def positive_box(record: dict[str, Any]) -> tuple[float, float, float, float]:
    """Return x, y, width, height; raise FaultError for a negative size."""
    x, y, width, height = numbers(record, "x", "y", "width", "height")
    for name, side in (("width", width), ("height", height)):
        if side < 0:
            raise FaultError(f"{name} {side:g} is negative", "correct the box")
    return x, y, width, height


def points_of(value: Any, name: str = "points") -> list[list[float]]:
    """Return a list of points [x, y]; raise FaultError for other values."""
    if not isinstance(value, list) or not value:
        raise FaultError(f"{name} is {short_json(value)}", "write [[x, y], [x, y]]")
    for number, point in enumerate(value):
        if not isinstance(point, list) or len(point) != 2:
            raise FaultError(f"{name}[{number}] is {short_json(point)}", "write [x, y]")
    return [
        [finite_number(f"{name}[{number}][{axis}]", value) for axis, value in enumerate(point)]
        for number, point in enumerate(value)
    ]


def side_of(name: str, value: Any) -> float:
    """Return an image's width or height in pixels, NaN if it is None."""
    if value is None:
        return math.nan
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < _LONGEST_SIDE:
        raise FaultError(f"{name} is {short_json(value)}", "write pixels, or null if unknown")
    return float(value)
