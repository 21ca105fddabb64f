"""The lines of a file of answers, and their images."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from detap.errors import InputError, Problem
from detap.formats.responses.answer import collapse
from detap.formats.stem_matching import base_name, without_suffix
from detap.io.digest import read_hashed
from detap.io.json_text import check_text, decode, integer, short_json
from detap.io.limits import Limits
from detap.io.paths import Path, shown
from detap.io.problems import FaultError, Problems
from detap.tables.detection import GroundTruth, Name
from detap.text_input import nearest, quote

_LONGEST_SIDE = 1e9
SHAPE = 'expected {"image": "a.jpg", "response": "..."}'


class Line(NamedTuple):
    """An answer with its image."""

    location: str
    image: Name  # as the file names it
    response: str
    label: str = ""
    input_size: tuple[float, float] | None = None


def read_lines(path: Path, limits: Limits) -> tuple[list[Line], str]:
    """Return the lines of a file, and its sha256; raise InputError if one is invalid."""
    file = os.fspath(path)
    data, sha256 = read_hashed(file, limits)
    text = decode(data, file)
    problems = Problems(limits.problems, shown(file))
    lines = []
    for location, record in _records(text, problems):
        try:
            lines.append(_line(location, record))
        except FaultError as fault:
            problems.add_here(location, fault.message, fault.hint)
        if len(lines) > limits.records:
            problems.add_here(location, *limits.exceeded)
            break
    if not lines and not problems.count:
        problems.add_here("", "has no answers", SHAPE)
    problems.raise_any()
    return lines, sha256


def _records(text: str, problems: Problems) -> Iterator[tuple[str, Any]]:
    """Yield the location and record of each line, or of each item of an array."""
    if text.lstrip().startswith("["):
        array = _value("", text, problems)
        for index, record in enumerate(array or []):
            yield f"[{index}]", record
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            record = _value(f"line {number}", line, problems)
            if record is not None:
                yield f"line {number}", record


def _value(location: str, text: str, problems: Problems) -> Any:
    """Return a JSON value; add a problem and return None if it is none."""
    hint = "write one JSON object per line" if location else "write a JSON array"
    try:
        value = json.loads(text, parse_int=integer)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        where = where if not location else f"column {error.colno}"
        problems.add_here(location, f"is not JSON: {error.msg} ({where})", hint)
    except RecursionError:
        problems.add_here(location, "is nested too deeply", hint)
    else:
        if value is None:
            problems.add_here(location, "is null", SHAPE)
        return value
    return None


def _line(location: str, record: Any) -> Line:
    """Return the line of a record; raise FaultError if a key is missing or wrong."""
    if not isinstance(record, dict):
        raise FaultError(f"is {short_json(record)}, expected an object", SHAPE)
    for key in ("image", "response"):
        if key not in record:
            raise FaultError(f"{key} is missing", SHAPE)
    image, response = record["image"], record["response"]
    is_name = isinstance(image, str) and image.strip()
    if not is_name and (isinstance(image, bool) or not isinstance(image, int)):
        raise FaultError(f"image is {short_json(image)}, expected a file name or an id", SHAPE)
    if not isinstance(response, str):
        message = f"response is {short_json(response)}, expected text"
        raise FaultError(message, 'write "" where the model gave no answer')
    label = record.get("label")
    if label is not None and not isinstance(label, str):
        raise FaultError(f"label is {short_json(label)}, expected text", "write a class name")
    try:
        check_text([image, label])
    except UnicodeEncodeError:
        raise FaultError("image or label has half a surrogate pair", "write valid text") from None
    size = _input_size(record)
    return Line(location, image, response, collapse(label or ""), size)


def _input_size(record: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the width and height of the resized input, if a line has them."""
    sides: dict[str, Any] = {name: record.get(name) for name in ("input_width", "input_height")}
    if all(side is None for side in sides.values()):
        return None
    for name, side in sides.items():
        is_number = isinstance(side, int | float) and not isinstance(side, bool)
        if not is_number or not 0 < side <= _LONGEST_SIDE:
            hint = "write the width and height of the resized input, or neither"
            raise FaultError(f"{name} is {short_json(side)}, expected a number above 0", hint)
    width, height = sides.values()
    return float(width), float(height)


class ImageNames:
    """The images of a ground truth, by id and by file name with or without folder and suffix."""

    def __init__(self, truth: GroundTruth, file_names: Mapping[Name, str]) -> None:
        self.names = [str(file_names.get(name, name)) for name in truth.images]
        self._index: dict[str, int] = {}
        for forms in zip(*map(_forms, self.names), strict=True):
            counts = Counter(forms)
            for row, form in enumerate(forms):
                if counts[form] == 1:
                    self._index.setdefault(form, row)
        self._ids = {name: row for row, name in enumerate(truth.images)}
        self._ids |= {str(name): row for row, name in enumerate(truth.images)}

    def find(self, image: Name) -> int | None:
        """Return the index of an image; None if it is unknown or not clear."""
        forms = _forms(str(image))
        known = (self._index.get(form) for form in forms)
        located = (self._ids.get(image), *known, self._ids.get(forms[-1]))
        return next((row for row in located if row is not None), None)

    def find_all(self, lines: list[Line], path: str) -> list[int]:
        """Return the image of each line; raise InputError if one is unknown."""
        rows = [self.find(line.image) for line in lines]
        unknown = [line for line, row in zip(lines, rows, strict=True) if row is None]
        if unknown:
            more = f", nor are those of {len(unknown) - 1} other lines" if len(unknown) > 1 else ""
            first = unknown[0]
            message = f"image {quote(first.image)} is not in the ground truth{more}"
            similar = nearest(str(first.image), self.names)
            hint = f"did you mean {' or '.join(map(quote, similar))}?" if similar else ""
            hint = hint or "use answers for the same images"
            raise InputError(Problem(shown(path), first.location, message, hint))
        return [row for row in rows if row is not None]


def _forms(name: str) -> tuple[str, ...]:
    """Return a name, and without suffix, without folder, and without both."""
    name = name.replace("\\", "/")
    base = base_name(name)
    return name, without_suffix(name), base, without_suffix(base)
