"""Text files of boxes, one a line, read with care: the reader that explains what is wrong.

The compiled scanner in `_scan.pyx` reads the same files when they are regular; it hands everything
else to this one, so that there is one place that knows what a line may be.
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
"""A decimal number in ASCII. float() would take ``2_63``, ``nan`` and full-width digits besides."""

XYWH = ("x", "y", "width", "height")

SWAPPED = "give x1 y1 x2 y2, or boxes='xywh' (--{}-boxes xywh) if these are x, y, width and height"
"""The remedy of corners in the wrong order that would be fine as x, y, width and height."""

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SEPARATOR = re.compile(r"[ \t]+")
_SHOWN = 60


def number_fault(text: str) -> str:
    """Return why `text` is not a finite decimal number, or an empty string where it is one."""
    if NUMBER.fullmatch(text):
        if math.isfinite(float(text)):
            return ""
        return "is too large for a number"
    if re.fullmatch(r"[+-]?[0-9]+,[0-9]+", text):
        return "is not a number (a point is due, not a comma)"
    if text.lower().lstrip("+-") in {"nan", "inf", "infinity"}:
        return "is not a finite number"
    return "is not a number" if text else "is empty where a number is due"


def box_fault(values: list[float], encoding: str) -> str:
    """Return why four finite numbers are no box, or an empty string where they are one."""
    first, second, third, fourth = values
    if encoding == "xywh":
        width, height = third, fourth
        if not (math.isfinite(first + third) and math.isfinite(second + fourth)):
            return "the far corner overflows"
    else:
        width, height = third - first, fourth - second
    return "" if math.isfinite(width * height) else "the area of the box overflows"


@dataclass(frozen=True, slots=True)
class LineForm:
    """What the columns of a line are.

    Attributes
    ----------
    key : {"image", "class"}
        What the first column names.
    scored : bool
        Whether a score follows it.
    encoding : {"xyxy", "xywh"}
        What the four numbers then are.
    resolve : callable
        Takes the first column and returns the name that it stands for, or raises
        :class:`FaultError`.
    known : sequence of str or None
        All that the first column may be; None where it may be anything that `resolve` takes.
    """

    key: str
    scored: bool
    encoding: str
    resolve: Callable[[str], str]
    known: Sequence[str] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        box = XYWH if self.encoding == "xywh" else CORNERS
        return (self.key, *(("score",) if self.scored else ()), *box)

    @property
    def scanned(self) -> dict[str, Any]:
        """The arguments of the scanner that describe these lines."""
        return {"sides": self.encoding == "xywh", "fractions": False}

    def read_line(self, text: str) -> tuple[str, list[float], bool]:
        """Return the name, the numbers and the flag of a line.

        Raises
        ------
        FaultError
            Where it cannot be read.
        """
        columns = columns_of(text)
        due = len(self.columns)
        difficult = not self.scored and len(columns) == due + 1 and columns[-1] == "difficult"
        if len(columns) != due + difficult:
            raise FaultError(*_wrong_count(columns, self))
        name = self.resolve(columns[0])
        values = numbers_of(self.columns[1:], columns[1:due])
        fault = box_fault(values[-4:], self.encoding)
        if fault:
            raise FaultError(fault, "correct the box")
        return name, values, difficult


@dataclass(slots=True)
class Lines:
    """The rows of one text file.

    Attributes
    ----------
    names : list of str
        What the first column of each row stands for.
    values : list of list of float
        The numbers of each row, in the order of its columns.
    flags : list of bool
        Whether the row ends with the word `difficult`, or is a polygon.
    location : list of int
        The number of each row's line.
    """

    names: list[str] = field(default_factory=list)
    values: list[list[float]] = field(default_factory=list)
    flags: list[bool] = field(default_factory=list)
    location: list[int] = field(default_factory=list)


def read_lines(data: bytes, file: str, form: LineForm, problems: Problems) -> Lines:
    """Read one text file, adding to `problems` whatever is wrong with it.

    Parameters
    ----------
    data : bytes
        The whole file, in UTF-8; a byte order mark is left aside.
    file : str
        Its path, for messages.
    form : LineForm
        What its columns are.
    problems : Problems
        Gets one entry per wrong line.
    """
    lines = Lines()
    appearance = looks_like(data)
    if appearance and not (appearance in _WEAK and _first_line_fits(data, form)):
        problems.add(file, "", f"looks like {appearance}", f"lines of `{_spelt(form)}` are due")
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
    """Return the lines of a list of names, each with its number; blank lines are left out."""
    appearance = looks_like(data)
    if appearance:
        problems.add(file, "", f"looks like {appearance}", "one name a line is due")
        return []
    return [(n, text.strip(" \t")) for n, text in decoded_lines(data, file, problems)]


def looks_like(data: bytes) -> str:
    """Return what a file holds that cannot be what is due, or an empty string.

    Parameters
    ----------
    data : bytes
        The file, or its beginning.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16 text (UTF-8 is due)"
    kind = kind_of(data)
    if kind:
        return _KINDS[kind]
    head = data[:4096].removeprefix(BYTE_ORDER_MARK).lstrip()
    bracket = {b"{": "JSON", b"[": "JSON", b"<": "XML"}.get(head[:1], "")
    return bracket or ("binary data" if b"\0" in head else "")


_KINDS = {
    "git-lfs": "a Git LFS pointer (fetch it with git lfs pull)",
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
"""Told by one byte, which a line may have by a fault, or even rightly, as its class's first."""


def _first_line_fits(data: bytes, form: LineForm) -> bool:
    return len(data.lstrip().split(b"\n", 1)[0].split()) == len(form.columns)


def _spelt(form: LineForm) -> str:
    return " ".join(form.columns)


def decoded_lines(data: bytes, file: str, problems: Problems) -> Iterator[tuple[int, str]]:
    """Give the lines that are not blank, with their numbers from 1."""
    for number, raw in enumerate(data.removeprefix(BYTE_ORDER_MARK).split(b"\n"), 1):
        line = raw.removesuffix(b"\r")
        if not line.strip(b" \t"):
            continue
        try:
            text = line.decode()
        except UnicodeDecodeError:
            problems.add(file, f"line {number}", f"{line[:_SHOWN]!r} is not UTF-8", "save it so")
            continue
        control = _CONTROL.search(text)
        if control:
            message = f"has the control character {control.group()!r}"
            problems.add(file, f"line {number}", message, "remove it")
            continue
        yield number, text


def columns_of(text: str) -> list[str]:
    """Return the columns of a line."""
    return _SEPARATOR.split(text.strip(" \t"))


def numbers_of(titles: Sequence[str], columns: Sequence[str]) -> list[float]:
    """Return the numbers that columns are.

    Raises
    ------
    FaultError
        Where one is none.
    """
    for title, column in zip(titles, columns, strict=True):
        fault = number_fault(column)
        if fault:
            raise FaultError(f"{title} {quote(column)} {fault}", "give a decimal number")
    return [float(column) for column in columns]


def _wrong_count(columns: list[str], form: LineForm) -> tuple[str, str]:
    due = len(form.columns)
    message = f"has {len(columns)} column{'s' * (len(columns) != 1)}, {due} are due"
    hint = f"write `{_spelt(form)}`"
    numbers = [NUMBER.fullmatch(column) is not None for column in columns]
    if any("," in column or ";" in column for column in columns):
        hint += ", separated by spaces"
    elif form.scored and len(columns) == due - 1 and all(numbers[1:]):
        message += ": its score is missing, as in ground truth"
    elif not form.scored and len(columns) == due + 1 and all(numbers[1:]):
        message += ": it has a score, as detections have"
    elif len(columns) > due and all(numbers[1 - due :]):
        hint += f", the {form.key} without spaces"
    return message, hint
