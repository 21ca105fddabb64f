"""Values of annotation files: JSON values, shapes as boxes, flags in attributes."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Any

from detap.errors import Note, UsageError
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.coco import records
from detap.formats.json._fields import nesting
from detap.formats.text.lines import number_of
from detap.io.json_text import JsonText, NotJsonError, looks_like, short_json, text_of
from detap.io.limits import Limits
from detap.io.problems import FaultError, Problems
from detap.text_input import quote


def json_value(data: bytes, problems: Problems, limits: Limits, expected: str) -> tuple[Any, int]:
    """Return the content of a JSON file and its number of NaN; raise FaultError for other text."""
    text = text_of(data, problems, limits, nesting, expected)
    try:
        return text.only_value(), text.constants
    except NotJsonError as error:
        where, message, hint = text.fault(error)
        raise FaultError(message, hint, where) from None


def json_lines(
    data: bytes, problems: Problems, limits: Limits, expected: str
) -> tuple[list[tuple[str, Any]], int]:
    """Return the location and value of each line of JSON, and the number of NaN."""
    records, constants = [], 0
    lines = text_of(data, problems, limits, nesting, expected).text.split("\n")
    for number, line in enumerate(lines, 1):
        where, text = f"line {number}", JsonText(line, problems)
        try:
            records += [(where, text.only_value(where))] if line.strip() else []
        except NotJsonError as error:
            kind, hint = looks_like(data) if number == 1 else ("", "")
            if kind not in ("", "JSON Lines"):
                raise FaultError(f"looks like {kind}", hint) from None
            where += f", column {error.index + 1}"
            problems.add_here(where, error.message, error.hint)
        constants += text.constants
    return records, constants


def value_text(record: dict[str, Any], key: str) -> str:
    """Return the JSON text of a value, or "missing"."""
    return short_json(record[key]) if key in record else "missing"


def required(
    record: dict[str, Any], key: str, kind: type | UnionType, expected: str, location: str = ""
) -> Any:
    """Return the value under a key; raise FaultError if it is not of a type."""
    value = record.get(key)
    if not isinstance(value, kind):
        raise FaultError(f"{key} is {value_text(record, key)}", expected, location)
    return value


def list_in(record: dict[str, Any], key: str) -> list[Any]:
    """Return the list under a key, empty if missing or null; raise FaultError for other values."""
    values: list[Any] = required({key: record.get(key) or []}, key, list, "expected a list")
    return values


def object_of(value: Any, expected: str = "expected an object") -> dict[str, Any]:
    """Return a JSON object; raise FaultError for other values."""
    if not isinstance(value, dict):
        raise FaultError(f"is {short_json(value)}", expected)
    return value


def class_name(record: dict[str, Any], key: str) -> str:
    """Return the name of a class; raise FaultError if it is missing or blank."""
    name = record.get(key)
    if not isinstance(name, str) or not name.strip():
        raise FaultError(f"{key} is {value_text(record, key)}", "write the name of its class")
    records.check_text(key, name)
    return name


def finite_number(name: str, value: Any) -> float:
    """Return a finite number; raise FaultError for other values."""
    if value is None:
        raise FaultError(f"{name} is missing", "use a finite number")
    return records.number_of(name, value)


def numbers(record: dict[str, Any], *keys: str) -> Iterator[float]:
    """Yield the finite numbers under keys."""
    for key in keys:
        yield finite_number(key, record.get(key))


def list_of_numbers(record: dict[str, Any], key: str) -> list[float]:
    """Return the finite numbers of a list under a key."""
    values = required(record, key, list, "expected a list of numbers")
    return [finite_number(f"{key}[{n}]", value) for n, value in enumerate(values)]


def four_numbers(record: dict[str, Any], key: str) -> list[float]:
    """Return x, y, width, height in a list under a key; raise FaultError for other values."""
    values = list_of_numbers(record, key)
    if len(values) != 4:
        raise FaultError(f"{key} has {len(values)} numbers", "write [x, y, width, height]")
    return values


def positive_box(record: dict[str, Any]) -> tuple[float, float, float, float]:
    """Return x, y, width, height; raise FaultError for a negative size."""
    x, y, width, height = numbers(record, "x", "y", "width", "height")
    for name, side in (("width", width), ("height", height)):
        if side < 0:
            raise FaultError(f"{name} {side:g} is negative", "correct the box")
    return x, y, width, height


def located(where: str, items: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the location and value of each item of a list."""
    return ((f"{where}[{number}]", item) for number, item in enumerate(items))


def located_objects(
    where: str, items: Iterable[Any], expected: str = "expected an object"
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the location and content of each object of a list; raise FaultError for others."""
    for at, item in located(where, items):
        if not isinstance(item, dict):
            raise FaultError(f"is {short_json(item)}", expected, at)
        yield at, item


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


def check_points(points: Sequence[Any], kind: str, least: int) -> None:
    """Raise FaultError for fewer points than a shape has."""
    if len(points) < least:
        raise FaultError(f"has {points_text(points)} as a {kind}", f"expected {least}")


def points_text(points: Sequence[Any]) -> str:
    """Return the number of points."""
    return f"{len(points)} point{'s' * (len(points) != 1)}"


def side_of(name: str, value: Any) -> float:
    """Return an image's width or height in pixels, NaN if it is None."""
    if value is None:
        return math.nan
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < 1e9:
        raise FaultError(f"{name} is {short_json(value)}", "write pixels, or null if unknown")
    return float(value)


def nonzero_number(name: str, text: str) -> float | None:
    """Return the number of a text; None if it is empty or 0, such as an unknown width."""
    return number_of(name, text) or None if text else None


# --- shapes and flags

BBOX_HINT = "pass shapes='bbox' (--shapes bbox) to read its bounding box"
"""The hint for a shape that is not a box."""

_FLAG_OF = {"difficult": "difficult"} | dict.fromkeys(("crowd", "iscrowd", "is_crowd"), "crowd")
_FLAGS = ("difficult", "crowd", "ignore")
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def bounds(points: Sequence[Sequence[float]]) -> list[float]:
    """Return the smallest box around points, as x1, y1, x2, y2."""
    across, down = zip(*points, strict=True)
    return [min(across), min(down), max(across), max(down)]


def as_xywh(corners: Sequence[float]) -> list[float]:
    """Convert x1, y1, x2, y2 to x, y, width, height."""
    x1, y1, x2, y2 = corners
    return [x1, y1, x2 - x1, y2 - y1]


def rotated_ellipse(
    x: float, y: float, width: float, height: float, degrees: float
) -> list[list[float]]:
    """Return the corners of the smallest box around an ellipse rotated about x, y."""
    angle = math.radians(degrees % 360)
    cos, sin = math.cos(angle), math.sin(angle)
    across = math.hypot(width * cos, height * sin) / 2
    down = math.hypot(width * sin, height * cos) / 2
    return [[x - across, y - down], [x + across, y + down]]


def rotated_box(
    x: float, y: float, width: float, height: float, degrees: float, *, about: float = 0.5
) -> list[list[float]]:
    """Return the corners, in order around, of a box rotated clockwise about the point x, y of it.

    `about` is the position of the point in the box: 0.5 for the center, 0 for the top-left corner.
    """
    angle = math.radians(degrees % 360)
    cos, sin = math.cos(angle), math.sin(angle)
    before, after = -about, 1 - about
    return [
        [x + i * width * cos - j * height * sin, y + i * width * sin + j * height * cos]
        for i, j in ((before, before), (after, before), (after, after), (before, after))
    ]


class FlagNames:
    """Maps attributes of an object to flags: ``NAME`` or ``NAME=FLAG``, separated by commas.

    `unmapped` counts objects with a true attribute that is named like a flag but not mapped.
    """

    def __init__(self, text: str | None) -> None:
        self.flags: dict[str, str] = {}
        self.unmapped: Counter[str] = Counter()
        for option in filter(None, (text or "").split(",")):
            name, _, flag = option.partition("=")
            flag = flag or _FLAG_OF.get(name.lower(), "")
            if flag not in _FLAGS or not name:
                choices = " or ".join(f"{name or 'NAME'}={flag}" for flag in _FLAGS)
                raise UsageError(f"attribute flag {option!r} names no flag; use {choices}")
            self.flags[name] = flag

    def of(self, attributes: Mapping[str, Any]) -> set[str]:
        """Return the flags that attributes set; raise FaultError for no truth value."""
        flags = set()
        for name in sorted(n for n in attributes if n in self.flags or n.lower() in _FLAG_OF):
            text = str(attributes[name])
            is_set = _TRUTH.get(text.strip().lower())
            if name not in self.flags:
                self.unmapped[name] += is_set is True
            elif is_set:
                flags.add(self.flags[name])
            elif is_set is None and attributes[name] is not None:
                message = f"flag {quote(name)} is {quote(text)}"
                raise FaultError(message, "expected true or false, yes or no, 1 or 0")
        return flags

    def notes(self) -> tuple[Note, ...]:
        """Note the attributes that are named like flags but not mapped."""
        names = ",".join(sorted(+self.unmapped))
        message = "objects have an unmapped attribute named like a flag; map it with "
        message += f"--attribute-flags {names}"
        return nonzero_notes(Note("flags-not-mapped", message, self.unmapped.total()))
