"""The fallback reader for text files with one box per line; it reports every problem.

The fast reader in `_scan.pyx` reads regular files and falls back to this one for all others.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from detap.formats.by_name.problems import CORNERS, Problems
from detap.io.file_kinds import BYTE_ORDER_MARK, kind_of
from detap.io.problems import FaultError
from detap.text_input import quote

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A decimal number in ASCII; float() also accepts ``2_63``, ``nan`` and full-width digits."""

XYWH = ("x", "y", "width", "height")

SWAPPED = "use x1 y1 x2 y2, or boxes='xywh' (--{}-boxes xywh) if these are x, y, width and height"
"""The hint for swapped corners that are valid as x, y, width and height."""

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SEPARATOR = re.compile(r"[ \t]+")
_SHOWN = 60


def number_fault(text: str) -> str:
    """Return the fault of a text that is not a finite decimal number, or ""."""
    if NUMBER.fullmatch(text):
        if math.isfinite(float(text)):
            return ""
        return "is too large for a number"
    if re.fullmatch(r"[+-]?[0-9]+,[0-9]+", text):
        return "is not a number (use a decimal point, not a comma)"
    if text.lower().lstrip("+-") in {"nan", "inf", "infinity"}:
        return "is not a finite number"
    return "is not a number" if text else "is empty, expected a number"


def box_fault(values: list[float], box_format: str) -> str:
    """Return the fault of four finite numbers that are not a box, or ""."""
    first, second, third, fourth = values
    if box_format == "xywh":
        width, height = third, fourth
        if not (math.isfinite(first + third) and math.isfinite(second + fourth)):
            return "box corner overflows"
    else:
        width, height = third - first, fourth - second
    return "" if math.isfinite(width * height) else "box area overflows"


@dataclass(frozen=True, slots=True)
class LineForm:
    """The columns of a line.

    Attributes
    ----------
    key : {"image", "class"}
        The kind of name in the first column.
    scored : bool
        True if a score follows.
    box_format : {"xyxy", "xywh"}
        Format of the four numbers that follow.
    resolve : callable
        Returns the name for the first column, or raises :class:`FaultError`.
    known : sequence of str or None
        All valid first columns; None if `resolve` decides.
    """

    key: str
    scored: bool
    box_format: str
    resolve: Callable[[str], str]
    known: Sequence[str] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        box = XYWH if self.box_format == "xywh" else CORNERS
        return (self.key, *(("score",) if self.scored else ()), *box)

    @property
    def scanned(self) -> dict[str, Any]:
        """The scanner's arguments for these lines."""
        return {"xywh": self.box_format == "xywh", "fractions": False}

    def read_line(self, text: str) -> tuple[str, list[float], bool]:
        """Return the name, the numbers and the flag of a line.

        Raises
        ------
        FaultError
            If it cannot be read.
        """
        columns = columns_of(text)
        expected = len(self.columns)
        difficult = not self.scored and len(columns) == expected + 1 and columns[-1] == "difficult"
        if len(columns) != expected + difficult:
            raise FaultError(*_wrong_count(columns, self))
        name = self.resolve(columns[0])
        values = numbers_of(self.columns[1:], columns[1:expected])
        fault = box_fault(values[-4:], self.box_format)
        if fault:
            raise FaultError(fault, "correct the box")
        return name, values, difficult


@dataclass(slots=True)
class Lines:
    """The rows of one text file.

    Attributes
    ----------
    names : list of str
        The name from the first column of each row.
    values : list of list of float
        The numbers of each row, in the order of its columns.
    flags : list of bool
        True if the row ends with `difficult` or is a polygon.
    location : list of int
        The line number of each row.
    """

    names: list[str] = field(default_factory=list)
    values: list[list[float]] = field(default_factory=list)
    flags: list[bool] = field(default_factory=list)
    location: list[int] = field(default_factory=list)


def read_lines(data: bytes, file: str, form: LineForm, problems: Problems) -> Lines:
    """Read one text file and collect its problems.

    Parameters
    ----------
    data : bytes
        The whole file in UTF-8; a byte order mark is skipped.
    file : str
        Its path, for messages.
    form : LineForm
        The format of its lines.
    problems : Problems
        Collects one problem per invalid line.
    """
    lines = Lines()
    appearance = looks_like(data)
    if appearance and not (appearance in _WEAK and _first_line_fits(data, form)):
        problems.add(file, "", f"looks like {appearance}", f"expected lines `{_usage(form)}`")
        return lines
    for number, text in decoded_lines(data, file, problems):
        try:
            name, values, flag = form.read_line(text)
        except FaultError as fault:
            problems.add(file, f"line {number}", fault.message, fault.hint)
            continue
        lines.names.append(name)
        lines.values.append(values)
        lines.flags.append(flag)
        lines.location.append(number)
    return lines


def plain_lines(data: bytes, file: str, problems: Problems) -> list[tuple[int, str]]:
    """Return the line numbers (from 1) and names of a list of names."""
    kind = looks_like(data)
    if kind:
        problems.add(file, "", f"looks like {kind}", "expected one name per line")
        return []
    return [(n, text.strip(" \t")) for n, text in decoded_lines(data, file, problems)]


def looks_like(data: bytes) -> str:
    """Return the kind of a file that is not plain text, or "".

    Parameters
    ----------
    data : bytes
        The file, or its beginning.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16 text (expected UTF-8)"
    kind = kind_of(data)
    if kind:
        return _KINDS[kind]
    head = data[:4096].removeprefix(BYTE_ORDER_MARK).lstrip()
    bracket = {b"{": "JSON", b"[": "JSON", b"<": "XML"}.get(head[:1], "")
    return bracket or ("binary data" if b"\0" in head else "")


_KINDS = {
    "git-lfs": "a Git LFS pointer (download it with git lfs pull)",
    "pickle": "a Python pickle",
    "gzip": "gzip data",
    "zip": "a zip archive",
    "numpy": "a NumPy array",
    "png": "a PNG image",
    "jpeg": "a JPEG image",
    "pdf": "a PDF document",
    "html": "an HTML page (a download that failed?)",
    "merge": "a file with unresolved merge markers",
}


_WEAK = ("JSON", "XML", "binary data")
"""Detected by one byte, which may also begin a class name."""


def _first_line_fits(data: bytes, form: LineForm) -> bool:
    return len(data.lstrip().split(b"\n", 1)[0].split()) == len(form.columns)


def _usage(form: LineForm) -> str:
    return " ".join(form.columns)


def decoded_lines(data: bytes, file: str, problems: Problems) -> Iterator[tuple[int, str]]:
    """Yield the nonblank lines with their numbers, from 1."""
    for number, raw in enumerate(data.removeprefix(BYTE_ORDER_MARK).split(b"\n"), 1):
        line = raw.removesuffix(b"\r")
        if not line.strip(b" \t"):
            continue
        try:
            text = line.decode()
        except UnicodeDecodeError:
            problems.add(
                file, f"line {number}", f"{line[:_SHOWN]!r} is not UTF-8", "save it as UTF-8"
            )
            continue
        control = _CONTROL.search(text)
        if control:
            message = f"contains control character {control.group()!r}"
            problems.add(file, f"line {number}", message, "remove it")
            continue
        yield number, text


def columns_of(text: str) -> list[str]:
    """Return the columns of a line."""
    return _SEPARATOR.split(text.strip(" \t"))


def numbers_of(titles: Sequence[str], columns: Sequence[str]) -> list[float]:
    """Return the columns as numbers.

    Raises
    ------
    FaultError
        If one is not a number.
    """
    for title, column in zip(titles, columns, strict=True):
        fault = number_fault(column)
        if fault:
            raise FaultError(f"{title} {quote(column)} {fault}", "use a decimal number")
    return [float(column) for column in columns]


def _wrong_count(columns: list[str], form: LineForm) -> tuple[str, str]:
    expected = len(form.columns)
    message = f"has {len(columns)} column{'s' * (len(columns) != 1)}, expected {expected}"
    hint = f"write `{_usage(form)}`"
    numbers = [NUMBER.fullmatch(column) is not None for column in columns]
    if any("," in column or ";" in column for column in columns):
        hint += ", separated by spaces"
    elif form.scored and len(columns) == expected - 1 and all(numbers[1:]):
        message += ": no score (ground truth?)"
    elif not form.scored and len(columns) == expected + 1 and all(numbers[1:]):
        message += ": has a score (detections?)"
    elif len(columns) > expected and all(numbers[1 - expected :]):
        hint += f", the {form.key} without spaces"
    return message, hint
