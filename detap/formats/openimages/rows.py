"""The rows of a CSV of boxes, or of labels of images, as columns, a block of lines at a time.

What is regular is taken by a compiled scanner; a block with anything else in it is gone through row
by row, which knows what to say of it. The file is never held whole.
"""

import csv
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from detap.formats.by_name.problems import Problems
from detap.formats.openimages._scan import Scanner
from detap.formats.text.lines import looks_like, number_fault
from detap.formats.text.rows import used_names
from detap.io.digest import started
from detap.io.file_kinds import BYTE_ORDER_MARK
from detap.io.limits import Limits
from detap.io.paths import shown
from detap.io.stream import Stream
from detap.tables.detection import Flags, Floats, Integers
from detap.text_input import quote

CORNERS = ("XMin", "YMin", "XMax", "YMax")

_NAMES = ("ImageID", "LabelName")
_SCORE = "Score"
_CONFIDENCE = "Confidence"
_GROUP = "IsGroupOf"
_GROUPS = {"0": 0, "1": 1, "-1": 2, "": 0}
_FORM = "ImageID,LabelName,XMin,XMax,YMin,YMax"
_FORM_SCORED = "ImageID,LabelName,Score,XMin,XMax,YMin,YMax"
_FORM_LABELS = "ImageID,LabelName,Confidence"

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LONGEST_LINE = 1 << 20
_SLACK = 0.01
"""How far ground truth may reach beyond the image, by rounding; in fractions of its size."""
_FAR = 2.0
"""No detector's box reaches as far beyond: these are pixels."""


class _StopError(Exception):
    """Nothing more is to be read: a problem has been added."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The boxes of a file, N of them in its order.

    Attributes
    ----------
    image, label : (N,) int32
        Index into `images` and `labels`.
    images, labels : tuple of str
        The words of the file, in the order met.
    corners : (N, 4) float64
        x1, y1, x2, y2 in fractions of the image's size.
    score : (N,) float64 or None
        Of labels of images, whether the class is there: 1 or 0.
    group_of : (N,) bool
    unknown : int
        Of how many rows the file says that it does not know whether they are groups.
    commas : bool
        Whether its numbers have decimal commas.
    blanks : list of int
        The rows that stand behind a blank line, one for each such line.
    sha256 : str
        Of the file, where the limits want digests and it is not compressed.
    """

    image: Integers
    label: Integers
    images: tuple[str, ...]
    labels: tuple[str, ...]
    corners: Floats
    score: Floats | None
    group_of: Flags
    unknown: int
    commas: bool
    blanks: list[int] = field(default_factory=list)
    sha256: str = ""

    def __len__(self) -> int:
        return len(self.image)

    def line(self, row: int) -> int:
        """Return the line of a row, counted from 1."""
        return row + 2 + bisect_right(self.blanks, row)


def read_rows(
    path: str,
    problems: Problems,
    limits: Limits,
    *,
    scored: bool,
    as_is: bool = False,
    labels: bool = False,
) -> Rows:
    """Read a CSV of boxes; columns go by the names in its first line, others are left alone.

    Parameters
    ----------
    path : str
        The file, or ``"-"``.
    problems : Problems
        Gets one entry per wrong line.
    limits : Limits
        What is accepted at most.
    scored : bool
        Whether rows have a score: of detections.
    as_is : bool
        Whether numbers that look like pixels are fractions.
    labels : bool
        Whether rows are labels of whole images, which have a confidence and no box.
    """
    with Stream(path, limits) as stream:
        reader = _Reader(
            stream, problems, limits, scored=scored, as_is=as_is or labels, labels=labels
        )
        try:
            reader.read()
            stream.check_unchanged()
        except _StopError:
            pass
        return reader.rows()


class _Reader:
    """A file being read."""

    def __init__(
        self,
        stream: Stream,
        problems: Problems,
        limits: Limits,
        *,
        scored: bool,
        as_is: bool,
        labels: bool,
    ) -> None:
        self.stream = stream
        self.form = _FORM_LABELS if labels else _FORM_SCORED if scored else _FORM
        self.problems = problems
        self.limits = limits
        self.scored = scored
        low, high = (-_FAR, _FAR) if scored else (-_SLACK, 1 + _SLACK)
        self.low, self.high = (-np.inf, np.inf) if as_is else (low, high)
        self.digest = started(stream)
        self.numeric = (_CONFIDENCE,) if labels else (*((_SCORE,) if scored else ()), *CORNERS)
        self.at: dict[str, int] = {}
        self.width = 0
        self.scanner = Scanner([], len(self.numeric), self.low, self.high)
        self.mark = ""
        self.line = 0
        self.blanks: list[int] = []

    def _add(self, location: str, message: str, hint: str) -> None:
        self.problems.add(shown(self.stream.path), location, message, hint)

    def _stop(self, location: str, message: str, hint: str) -> None:
        self._add(location, message, hint)
        raise _StopError

    # --- bytes to lines

    def _blocks(self) -> Iterator[bytes]:
        """Give whole lines, each with its end, one block after the other."""
        rest = b""
        first = True
        while block := self.stream.read():
            if self.digest is not None:
                self.digest.update(block)
            if first:
                block = block.removeprefix(BYTE_ORDER_MARK)
                if appearance := looks_like(block):
                    due = f"a CSV with the header `{self.form}` is due"
                    self._stop("", f"looks like {appearance}", due)
                first = False
            whole, newline, behind = block.rpartition(b"\n")
            if newline:
                yield rest + whole + newline
                rest = b""
            rest += behind
            if len(rest) > _LONGEST_LINE:
                here = f"line {self.line + 1}"
                self._stop(here, f"is longer than {_LONGEST_LINE} bytes", "a row a line is due")
        if rest:
            yield rest + b"\n"

    def read(self) -> None:
        """Read the whole file; problems are added."""
        for block in self._blocks():
            lines = block
            if not self.at:
                first, _, lines = block.partition(b"\n")
                self._header(next(self._fields(first)))
                self.line = 1
                if not lines:
                    continue
            # Scanned numbers have points: what has commas so far is for the careful reader.
            if self.mark != "," and self.scanner.scan(lines):
                self.line += lines.count(b"\n")
                self.mark = "." if self.scanner.has_points else self.mark
            else:
                self._read_with_care(lines)
            if len(self.scanner) > self.limits.records:
                self._stop("", *self.limits.exceeded)
        if not self.at:
            self._header([])

    # --- the careful reader

    def _fields(self, data: bytes) -> Iterator[list[str]]:
        """Give the fields of each line; `line` is then the one that was read."""
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            broken = self.line + 1 + data.count(b"\n", 0, error.start)
            self._stop(f"line {broken}", "is not UTF-8", "save it as UTF-8")
        before = self.line
        rows = csv.reader(text.split("\n"), strict=True, skipinitialspace=True)
        try:
            for number, row in enumerate(rows, 1):
                self.line = before + rows.line_num
                if rows.line_num != number:
                    here = f"line {self.line}"
                    self._stop(here, "ends a field that another line begins", "write a row a line")
                yield row
        except csv.Error as error:
            here = f"line {before + rows.line_num}"
            self._stop(here, f"is no CSV: {error}", "correct the line")

    def _read_with_care(self, lines: bytes) -> None:
        for row in self._fields(lines.removesuffix(b"\n")):
            if not row:
                self.blanks.append(len(self.scanner))
            elif fault := self._fault(row):
                self._add(f"line {self.line}", *fault)
            elif not self.problems.count:
                texts = [row[self.at[name]] for name in self.numeric]
                image, label = (row[self.at[name]].encode() for name in _NAMES)
                group = _GROUPS[row[self.at[_GROUP]]] if _GROUP in self.at else 0
                values = [float(text.replace(",", ".")) for text in texts]
                self.scanner.add(image, label, values, group)

    def _header(self, header: Sequence[str]) -> None:
        """Find the place of each column that is read."""
        due = (*_NAMES, *self.numeric)
        hint = f"begin with the line `{self.form}`"
        if not header:
            self._stop("", "is empty", hint)
        if header[0].count(";") + header[0].count("\t") >= len(due) - 1:
            self._stop("line 1", "is not separated by commas", "separate columns by commas")
        absent = [name for name in due if name not in header]
        if absent:
            self._stop("line 1", f"has no column {absent[0]}{_why(header, absent)}", hint)
        if self.form == _FORM_LABELS and set(CORNERS) <= set(header):
            self._stop("line 1", "has columns of boxes", "give the labels of whole images")
        if not self.scored and _SCORE in header:
            self._stop("line 1", "has a column Score, as in detections", "give the ground truth")
        twice = [name for name in (*due, _GROUP) if header.count(name) > 1]
        if twice:
            self._stop("line 1", f"has two columns {twice[0]}", "keep one")
        self.at = {name: header.index(name) for name in (*due, _GROUP) if name in header}
        self.width = len(header)
        roles = {_NAMES[0]: -2, _NAMES[1]: -3, _GROUP: -4}
        roles |= {name: place for place, name in enumerate(self.numeric)}
        held = [roles.get(name, -1) for name in header]
        self.scanner = Scanner(held, len(self.numeric), self.low, self.high)

    def _fault(self, row: list[str]) -> tuple[str, str] | None:
        """Return what is wrong with a row, and what to do; None where nothing is."""
        at, width = self.at, self.width
        if len(row) != width:
            columns = f"has {len(row)} column{'s' * (len(row) != 1)}, expected {width}"
            return columns, "write as many as the header; decimal commas stand in quotes"
        for name in _NAMES:
            word = row[at[name]]
            if not word.strip():
                return f"has no {name}", "name it"
            if control := _CONTROL.search(word):
                return f"{name} contains control character {control.group()!r}", "remove it"
        for name in self.numeric:
            fault = self._number_fault(name, row[at[name]])
            if fault:
                return fault
        if _GROUP in at and row[at[_GROUP]] not in _GROUPS:
            return f"{_GROUP} is {quote(row[at[_GROUP]])}", "1, 0, or -1 for unknown, is due"
        return None

    def _number_fault(self, name: str, text: str) -> tuple[str, str] | None:
        mark = "," if "," in text else "." if "." in text else ""
        self.mark = self.mark or mark
        if mark and mark != self.mark:
            ours, theirs = ("comma", "point") if mark == "," else ("point", "comma")
            message = f"{name} {quote(text)} has a decimal {ours}, though others have a {theirs}"
            return message, "write every number of the file with a point"
        plain = text.replace(",", ".", 1) if mark == "," else text
        fault = number_fault(plain)
        if fault:
            return f"{name} {quote(text)} {fault}", "use a decimal number"
        if name != _SCORE and not self.low <= float(plain) <= self.high:
            side = "width" if name[0] == "X" else "height"
            insist = "; or give as_is=True (--as-is)"
            return (
                f"{name} {quote(text)} is no fraction of the image's {side}",
                f"write pixels divided by the {side}{insist}",
            )
        return None

    def rows(self) -> Rows:
        """Return what was read."""
        image, label, images, labels, group, numbers = self.scanner.columns_of_rows()
        values = numbers.reshape(-1, len(self.numeric))
        # Words of a block that was declined half-way may have no row.
        found, image = used_names(image, images, str)
        known, label = used_names(label, labels, str)
        return Rows(
            image,
            label,
            found,
            known,
            np.ascontiguousarray(values[:, 1:] if self.scored else values),
            values[:, 0].copy() if self.scored else None,
            group == 1,
            int(np.count_nonzero(group == 2)),
            self.mark == ",",
            self.blanks,
            self.digest.hexdigest() if self.digest is not None else "",
        )


def _why(header: Sequence[str], absent: Sequence[str]) -> str:
    """Return what a file may be instead, that lacks those columns."""
    lower = {name.lower() for name in header}
    if "predictionstring" in lower:
        return ": this is a submission of Kaggle, with all boxes of an image in one text"
    if absent == [_SCORE]:
        return ", as ground truth has none"
    if set(absent) >= set(CORNERS) and {"imageid", "labelname"} <= lower:
        return ": these are labels of whole images"
    if absent[0].lower() in lower:
        return ", by these letters"
    return f": its first line is {quote(','.join(header))}"
