"""Read a CSV of boxes or image labels into columns, block by block.

The fast reader takes regular blocks; the fallback reader takes others row by row and reports their
problems. The file is never in memory as a whole.
"""

import csv
import re
from collections.abc import Iterator, Sequence

import numpy as np

from detap.formats.by_name.problems import RowReader
from detap.formats.openimages._scan import Scanner
from detap.formats.text.lines import has_columns, looks_like, number_fault
from detap.formats.text.reader import used_names
from detap.io.digest import started
from detap.io.file_kinds import BYTE_ORDER_MARK
from detap.io.json_text import decode
from detap.io.limits import Limits
from detap.io.paths import shown
from detap.io.problems import FaultError, Problems
from detap.io.stream import Stream
from detap.tables.detection import Floats
from detap.text_input import quote

CORNERS = ("XMin", "YMin", "XMax", "YMax")

_NAMES = ("ImageID", "LabelName")
_SCORE, _CONFIDENCE = "Score", "Confidence"
_GROUP = "IsGroupOf"
_GROUPS = {"0": 0, "1": 1, "-1": 2, "": 0}
_FORM = "ImageID,LabelName,XMin,XMax,YMin,YMax"
_FORM_SCORED = "ImageID,LabelName,Score,XMin,XMax,YMin,YMax"
FORM_LABELS = "ImageID,LabelName,Confidence"

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LONGEST_LINE = 1 << 20
_SLACK = 0.01
"""Rounding tolerance of normalized ground truth beyond the image."""
_FAR = 2.0
"""Detections beyond this are pixels."""


class Rows(RowReader):
    """The rows of a CSV of boxes or image labels, N of them in its order.

    `image` and `label` (N,) index `images` and `labels`, the words in input order; `line` is (N,).
    `corners` (N, 4) are x1, y1, x2, y2, normalized. `score` (N,) is NaN without one; of image
    labels it is 1 if the class is present, else 0. `without_scores` is True if the file has no
    column of scores, and `commas` if numbers have decimal commas. `group_of` (N,) are the group
    flags, `unknown` counts the unknown ones. `sha256` is set if `limits` asks for digests and the
    file is not compressed.
    """

    corner_names = CORNERS

    def __init__(
        self,
        path: str,
        problems: Problems,
        limits: Limits,
        *,
        scored: bool,
        as_is: bool = False,
        labels: bool = False,
    ) -> None:
        """Read a file, with columns by the names in its first line; collect problems.

        With `as_is`, normalized numbers that look like pixels are accepted. Rows of `labels` have a
        confidence and no box.
        """
        self.given, self.path, self.as_is = path, shown(path), as_is
        self.problems, self.limits, self.scored = problems, limits, scored
        self.form = FORM_LABELS if labels else _FORM_SCORED if scored else _FORM
        low, high = (-_FAR, _FAR) if scored else (-_SLACK, 1 + _SLACK)
        self.low, self.high = (-np.inf, np.inf) if as_is or labels else (low, high)
        self.numeric = (_CONFIDENCE,) if labels else (*((_SCORE,) if scored else ()), *CORNERS)
        self.columns: dict[str, int] = {}  # index by name
        self.width = 0
        self.scanner = Scanner([], len(self.numeric), self.low, self.high)
        self.decimal_mark = ""
        self.line_number = 0
        with Stream(path, limits) as stream:
            self.digest = started(stream)
            with problems.collected(file=self.path):
                self._read(stream)
                stream.check_unchanged()
        self._take_columns()

    def __len__(self) -> int:
        return len(self.image)

    def _blocks(self, stream: Stream) -> Iterator[bytes]:
        """Yield blocks of complete lines."""
        line_start, first = b"", True
        while block := stream.read():
            if self.digest is not None:
                self.digest.update(block)
            if first:
                block = block.removeprefix(BYTE_ORDER_MARK)
                if kind := looks_like(block):
                    hint = f"expected a CSV with the header `{self.form}`"
                    raise FaultError(f"looks like {kind}", hint)
                first = False
            lines, newline, remainder = block.rpartition(b"\n")
            if newline:
                yield line_start + lines + newline
                line_start = b""
            line_start += remainder
            if len(line_start) > _LONGEST_LINE:
                message = f"is longer than {_LONGEST_LINE} bytes"
                raise FaultError(message, "write one row per line", f"line {self.line_number + 1}")
        if line_start:
            yield line_start + b"\n"

    def _read(self, stream: Stream) -> None:
        for block in self._blocks(stream):
            lines = block
            if not self.columns:
                first, _, lines = block.partition(b"\n")
                self._header(next(self._fields(first)))
                self.line_number = 1
                if not lines:
                    continue
            # The fast reader supports only decimal points.
            if self.decimal_mark != "," and self.scanner.scan(lines, self.line_number + 1):
                self.line_number += lines.count(b"\n")
                self.decimal_mark = "." if self.scanner.has_points else self.decimal_mark
            else:
                self._read_fallback(lines)
            if len(self.scanner) > self.limits.records:
                raise FaultError(*self.limits.exceeded)
        if not self.columns:
            self._header([])

    # --- fallback reader

    def _fields(self, data: bytes) -> Iterator[list[str]]:
        """Yield the fields of each line; `line_number` is its number."""
        text = decode(data, self.path, self.line_number + 1)
        lines_before = self.line_number
        rows = csv.reader(text.split("\n"), strict=True, skipinitialspace=True)
        try:
            for number, row in enumerate(rows, 1):
                self.line_number = lines_before + rows.line_num
                if rows.line_num != number:
                    message = "a quoted field spans several lines"
                    raise FaultError(message, "write one row per line", f"line {self.line_number}")
                yield row
        except csv.Error as error:
            location = f"line {lines_before + rows.line_num}"
            raise FaultError(f"invalid CSV: {error}", "correct the line", location) from None

    def _read_fallback(self, lines: bytes) -> None:
        for fields in self._fields(lines.removesuffix(b"\n")):
            with self.problems.collected(f"line {self.line_number}", self.path):
                if fields:
                    self._add(fields)

    def _header(self, header: Sequence[str]) -> None:
        """Find the index of each column."""
        if self.scored and _SCORE not in header and _CONFIDENCE not in self.numeric:
            self.numeric = CORNERS
        required = (*_NAMES, *self.numeric)
        hint = f"begin with the line `{self.form}`"
        if not header:
            raise FaultError("is empty", hint)
        if header[0].count(";") + header[0].count("\t") >= len(required) - 1:
            raise FaultError("columns are not separated by commas", "use commas", "line 1")
        missing = [name for name in required if name not in header]
        if missing:
            message = f"has no column {missing[0]}: its first line is {quote(','.join(header))}"
            raise FaultError(message, hint, "line 1")
        if self.form == FORM_LABELS and set(CORNERS) <= set(header):
            raise FaultError("has box columns", "use the image labels", "line 1")
        if not self.scored and _SCORE in header:
            message = "has a column Score (detections?)"
            raise FaultError(message, "use the ground truth", "line 1")
        duplicates = [name for name in (*required, _GROUP) if header.count(name) > 1]
        if duplicates:
            raise FaultError(f"duplicate column {duplicates[0]}", "keep one", "line 1")
        self.columns = {name: header.index(name) for name in (*required, _GROUP) if name in header}
        self.width = len(header)
        roles = {_NAMES[0]: -2, _NAMES[1]: -3, _GROUP: -4}
        roles |= {name: index for index, name in enumerate(self.numeric)}
        column_roles = [roles.get(name, -1) for name in header]
        self.scanner = Scanner(column_roles, len(self.numeric), self.low, self.high)

    def _add(self, fields: list[str]) -> None:
        """Add a row; raise FaultError if it is invalid."""
        if len(fields) != self.width:
            message = f"{has_columns(len(fields))}, expected {self.width}"
            raise FaultError(message, "write as many as the header has; quote decimal commas")
        row = {name: fields[k] for name, k in self.columns.items()}
        for name in _NAMES:
            if not row[name].strip():
                raise FaultError(f"has no {name}", "add it")
            if control := _CONTROL.search(row[name]):
                message = f"{name} contains control character {control.group()!r}"
                raise FaultError(message, "remove it")
        values = [self._number(name, row[name]) for name in self.numeric]
        group = row.get(_GROUP, "")
        if group not in _GROUPS:
            raise FaultError(f"{_GROUP} is {quote(group)}", "expected 1, 0, or -1 for unknown")
        image, label = (row[name].encode() for name in _NAMES)
        image_index = self.scanner.image(image)
        self.scanner.add(image_index, self.line_number, label, values, _GROUPS[group])

    def _number(self, name: str, text: str) -> float:
        """Return a number, NaN for a missing score."""
        if name == _SCORE and not text:
            return np.nan
        mark = "," if "," in text else "." if "." in text else ""
        self.decimal_mark = self.decimal_mark or mark
        if mark and mark != self.decimal_mark:
            used, other = ("comma", "point") if mark == "," else ("point", "comma")
            message = f"{name} {quote(text)} has a decimal {used}, but others have a {other}"
            raise FaultError(message, "write every number of the file with a point")
        plain = text.replace(",", ".", 1) if mark == "," else text
        if fault := number_fault(plain):
            raise FaultError(f"{name} {quote(text)} {fault}", "use a decimal number")
        if name != _SCORE and not self.low <= float(plain) <= self.high:
            side = "width" if name[0] == "X" else "height"
            hint = f"write pixels divided by the {side}; or pass as_is=True (--as-is)"
            raise FaultError(f"{name} {quote(text)} is outside [0, 1]", hint)
        return float(plain)

    def _take_columns(self) -> None:
        image, self.line, label, group, _, numbers, labels = self.scanner.columns()
        values = numbers.reshape(-1, len(self.numeric))
        # Words of a partly scanned block may have no rows.
        self.images, self.image = used_names(image, self.scanner.images(), str)
        self.labels, self.label = used_names(label, labels, str)
        self.without_scores = self.numeric == CORNERS
        self.score: Floats = np.full(len(values), np.nan)
        if not self.without_scores:
            self.score, values = values[:, 0].copy(), values[:, 1:]
        self.corners: Floats = np.ascontiguousarray(values)
        self.group_of, self.unknown = group == 1, int(np.count_nonzero(group == 2))
        self.commas = self.decimal_mark == ","
        self.sha256 = "" if self.digest is None else self.digest.hexdigest()
