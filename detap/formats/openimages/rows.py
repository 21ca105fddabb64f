"""Read a CSV of boxes or image labels into columns, block by block.

The scanner takes regular lines; :meth:`Rows._odd` takes others and reports their problems. The file
is never in memory as a whole.
"""

import csv
import os
import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from detap.checks.tables import negative_size_error
from detap.errors import Note
from detap.formats.by_name import objects
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.by_name.problems import RowReader
from detap.formats.image_sizes import GivenSizes, refuse_unknown
from detap.formats.openimages._scan import Scanner
from detap.formats.openimages.labels import Descriptions, Hierarchy
from detap.formats.stem_matching import stem_of
from detap.formats.text.lines import has_columns, looks_like, number_fault
from detap.formats.text.reader import used_names
from detap.io.digest import started
from detap.io.json_text import decode
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path, SourceFile, shown
from detap.io.problems import FaultError, Problems
from detap.io.stream import Stream, refuse
from detap.tables.columns import indices_in
from detap.tables.detection import Floats, Integers
from detap.tables.notes import FRACTIONS, backward, exchanged, too_many
from detap.text_input import quote

CORNERS = ("XMin", "YMin", "XMax", "YMax")

_NAMES = ("ImageID", "LabelName")
_SCORE, _GROUP = "Score", "IsGroupOf"
_ROLES = {"ImageID": -2, "LabelName": -3, _GROUP: -4}
_GROUPS = {"0": 0, "1": 1, "-1": 2, "": 0}
FORM = "ImageID,LabelName,XMin,XMax,YMin,YMax"
FORM_SCORED = "ImageID,LabelName,Score,XMin,XMax,YMin,YMax"
FORM_LABELS = "ImageID,LabelName,Confidence"

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LONGEST_LINE = 1 << 20
_SLACK = 0.01
"""Rounding tolerance of normalized ground truth beyond the image."""
_FAR = 2.0
"""Detections beyond this are pixels."""
_MANY_ROWS = 1 << 20
"""A hierarchy may always expand to this many rows."""


class Rows(RowReader):
    """The rows of a CSV of boxes or image labels, N of them in its order.

    `image` and `label` (N,) index `images` and `labels`, the words in input order; `stems` are the
    images without suffix. `line` is (N,). `corners` (N, 4) are x1, y1, x2, y2, normalized. `score`
    (N,) is NaN without one; of image labels it is 1 if the class is present, else 0.
    `without_scores` is True if the file has no column of scores, and `commas` if numbers have
    decimal commas. `group_of` (N,) are the group flags, `unknown` counts the unknown ones. `sha256`
    is set if `limits` asks for digests and the file is not compressed. `origin` is the row of each
    box or label, several of which a hierarchy may expand from one; `number` is the index of each
    into `classes`. `sizes` are those of images.
    """

    corner_names = CORNERS

    def __init__(
        self,
        path: Path,
        form: str,
        limits: Limits = DEFAULT_LIMITS,
        class_descriptions: Path | None = None,
        image_sizes: Path | None = None,
        *,
        as_is: bool = False,
        check: bool = True,
    ) -> None:
        """Read a file of a form; its columns are named in its first line.

        With `as_is`, normalized numbers that look like pixels are accepted. Rows of labels have a
        confidence and no box. With `check`, problems are raised and names known.
        """
        self.given, self.as_is, self.limits, self.form = os.fspath(path), as_is, limits, form
        self.path, self.problems = shown(self.given), Problems(limits.problems)
        self.descriptions = Descriptions(class_descriptions, self.problems, limits)
        if check:
            self.problems.raise_any()
        self.sizes = GivenSizes.read(None, image_sizes, limits)
        low, high = (-_SLACK, 1 + _SLACK) if form == FORM else (-_FAR, _FAR)
        self.low, self.high = (-np.inf, np.inf) if as_is else (low, high)
        self.numeric = [name for name in (_SCORE, "Confidence", *CORNERS) if name in form]
        self.header: list[str] = []
        self.scanner = Scanner(self._odd, self.low, self.high)
        with Stream(self.given, limits) as stream:
            self.digest = started(stream)
            with self.problems.collected(file=self.path):
                self._read(stream)
                stream.check_unchanged()
        self._take_columns()
        if check:
            self.problems.raise_any()
            self._check_stems()
            self._name_classes()
            if form == FORM_LABELS:
                self._check_confidences()
            if not as_is:
                self._check_order()

    def __len__(self) -> int:
        return len(self.image)

    def _read(self, stream: Stream) -> None:
        rest = b""
        while True:
            block = stream.read()
            if self.digest is not None:
                self.digest.update(block)
            if not self.scanner.line and (kind := looks_like(block)):
                hint = f"expected a CSV with the header `{self.form}`"
                raise FaultError(f"looks like {kind}", hint)
            lines, newline, rest = (rest + (block or b"\n")).rpartition(b"\n")
            self.scanner.read(lines + newline)
            if len(rest) > _LONGEST_LINE:
                message, location = f"is longer than {_LONGEST_LINE} bytes", self.scanner.line + 1
                raise FaultError(message, "write one row per line", f"line {location}")
            if len(self.scanner) > self.limits.records:
                raise FaultError(*self.limits.exceeded)
            if not block:
                return

    def _odd(self, number: int, line: bytes) -> tuple[bytes, bytes, list[float], int] | None:
        """Return a row; None for the header, a blank line, and after collecting problems."""
        try:
            text = decode(line, self.path, number)
            fields = next(csv.reader([text], strict=True, skipinitialspace=True))
        except csv.Error as error:
            location = f"line {number}"
            raise FaultError(f"invalid CSV: {error}", "correct the line", location) from None
        if not self.header:
            self._read_header(fields)
        elif fields:
            with self.problems.collected(f"line {number}", self.path):
                return self._row(fields)
        return None

    def _read_header(self, header: list[str]) -> None:
        """Find the role of each column."""
        if self.form == FORM_SCORED and _SCORE not in header:
            self.numeric = [*CORNERS]
        required = [*_NAMES, *self.numeric]
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
        if self.form == FORM and _SCORE in header:
            message = "has a column Score (detections?)"
            raise FaultError(message, "use the ground truth", "line 1")
        for name in (*required, _GROUP):
            if header.count(name) > 1:
                raise FaultError(f"duplicate column {name}", "keep one", "line 1")
        roles = _ROLES | {name: index for index, name in enumerate(self.numeric)}
        self.scanner.expect([roles.get(name, -1) for name in header], len(self.numeric))
        self.header = header

    def _row(self, fields: list[str]) -> tuple[bytes, bytes, list[float], int]:
        """Return the image, the label, the numbers and the flag of a row, or raise FaultError."""
        if len(fields) != len(self.header):
            message = f"{has_columns(len(fields))}, expected {len(self.header)}"
            raise FaultError(message, "write as many as the header has; quote decimal commas")
        row = dict(zip(self.header, fields, strict=True))
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
        return image, label, values, _GROUPS[group]

    def _number(self, name: str, text: str) -> float:
        """Return a number, NaN for a missing score."""
        if name == _SCORE and not text:
            return np.nan
        comma = "," in text
        point = not comma and "." in text
        if (comma and self.scanner.points) or (point and self.scanner.commas):
            used, other = ("comma", "point") if comma else ("point", "comma")
            message = f"{name} {quote(text)} has a decimal {used}, but others have a {other}"
            raise FaultError(message, "write every number of the file with a point")
        self.scanner.commas |= comma
        self.scanner.points |= point
        plain = text.replace(",", ".", 1)
        if fault := number_fault(plain):
            raise FaultError(f"{name} {quote(text)} {fault}", "use a decimal number")
        if name != _SCORE and not self.low <= float(plain) <= self.high:
            side = "width" if name[0] == "X" else "height"
            hint = f"write pixels divided by the {side}; or pass as_is=True (--as-is)"
            raise FaultError(f"{name} {quote(text)} is outside [0, 1]", hint)
        return float(plain)

    def _take_columns(self) -> None:
        image, self.line, label, group, _, numbers, words = self.scanner.columns()
        values = numbers.reshape(-1, len(self.numeric))
        self.images, self.image = used_names(image, words, str)
        self.labels, self.label = used_names(label, words, str)
        self.without_scores = self.numeric == [*CORNERS]
        self.commas = self.scanner.commas
        del self.scanner  # it refers to this reader
        self.score: Floats = np.full(len(values), np.nan)
        if not self.without_scores:
            self.score, values = values[:, 0].copy(), values[:, 1:]
        self.corners: Floats = np.ascontiguousarray(values)
        self.group_of, self.unknown = group == 1, int(np.count_nonzero(group == 2))
        self.sha256 = "" if self.digest is None else self.digest.hexdigest()
        self.stems = [stem_of(word) for word in self.images]
        self.origin = np.arange(len(values))

    def _refuse(self, rows: NDArray[np.intp], message: Callable[[int], str], hint: str) -> None:
        """Raise InputError for rows, if there are any."""
        self.problems.add_rows(rows.tolist(), self.location, message, hint)
        self.problems.raise_any()

    def _refuse_names(self, column: Integers, faults: dict[int, str], hint: str) -> None:
        """Raise InputError for names, with messages by index, at the first row of each."""
        if faults:
            first = np.unique(column, return_index=True)[1]
            self._refuse(first[[*faults]], lambda row: faults[int(column[row])], hint)

    def _check_stems(self) -> None:
        """Raise InputError for images that differ only in the suffix."""
        first: dict[str, str] = {}
        faults = {}
        for number, (word, stem) in enumerate(zip(self.images, self.stems, strict=True)):
            other = word if word == stem else first.setdefault(stem, word)
            if other != word:
                faults[number] = f"image {quote(word)} and {quote(other)} differ only in the suffix"
        self._refuse_names(self.image, faults, "rename one of them")

    def _name_classes(self) -> None:
        names = [self.descriptions.name(label) for label in self.labels]
        faults = {
            number: f"label {quote(self.labels[number])} is not in {self.descriptions.file}"
            for number, name in enumerate(names)
            if name is None
        }
        self._refuse_names(self.label, faults, "use the list that belongs to this file")
        self.classes, number_of = objects.name_index([name or "" for name in names])
        self.number = number_of[self.label]

    def _check_confidences(self) -> None:
        """Raise InputError for labels that are not human-verified, or contradict each other."""
        score = self.score
        self._refuse(
            np.flatnonzero(~np.isin(score, (0.0, 1.0))),
            lambda row: f"Confidence {score[row]:g} is not 0 or 1",
            "use the human-verified labels",
        )
        image = objects.name_index(self.stems)[1]  # an image may have its suffix in some rows
        pair = image[self.image].astype(np.int64) * max(len(self.classes), 1) + self.number
        _, first, entry = np.unique(pair, return_index=True, return_inverse=True)
        earlier = first[entry]
        self._refuse(
            np.flatnonzero(score != score[earlier]),
            lambda row: (
                f"class {quote(self.classes[self.number[row]])} of image "
                f"{quote(self.images[self.image[row]])} has Confidence {score[row]:g}, and "
                f"{score[earlier[row]]:g} in line {self.line[earlier[row]]}"
            ),
            "keep one of them",
        )

    def expand(self, tree: Hierarchy) -> None:
        """Repeat rows for the ancestors of their class; labels of absence, for the descendants.

        The copies of a row replace it in place, its own class first.
        """
        faults = {
            number: f"class {quote(name)} is not in {tree.file}"
            for number, name in enumerate(self.classes)
            if name not in tree.above
        }
        hint = "use the hierarchy of these classes; its root is not a class"
        self._refuse_names(self.number, faults, hint)
        # The ancestors of each class, followed by the descendants of each.
        relatives = [[*tree.above[name]] for name in self.classes]
        relatives += [[*tree.below[name]] for name in self.classes]
        classes, numbers = objects.name_index([name for names in relatives for name in names])
        sizes = np.array([len(names) for names in relatives], np.intp)
        entry = self.number.astype(np.intp)
        entry[self.score == 0] += len(self.classes)
        count = sizes[entry]
        rows, limit = int(count.sum()), max(self.limits.expansion * len(self), _MANY_ROWS)
        if rows > min(limit, self.limits.records):
            message = f"the hierarchy expands {len(self)} rows to {rows}"
            hint = "raise the limits with --max-expansion and --max-records"
            refuse(self.path, message, hint)
        nth = np.arange(rows) - np.repeat(np.cumsum(count) - count, count)
        self.number = numbers[np.repeat((np.cumsum(sizes) - sizes)[entry], count) + nth]
        self.origin = np.repeat(self.origin, count)
        used, label = np.unique(self.number, return_inverse=True)
        self.number = label.astype(np.int32)
        self.classes = tuple(classes[number] for number in used.tolist())

    def listed(self, images: list[str], classes: Sequence[str]) -> dict[str, Integers]:
        """Return the distinct labels as the ``positive`` and ``negative`` lists of a table."""
        image = indices_in(self.stems, images)[self.image[self.origin]]
        pairs = np.stack([image, indices_in(self.classes, classes)[self.number]], axis=1)
        present = self.score[self.origin] == 1
        lists = {"negative": ~present, "positive": present}
        return {name: np.unique(pairs[rows], axis=0) for name, rows in lists.items()}

    def _check_order(self) -> None:
        """Raise InputError if many normalized boxes have negative size."""
        corners = self.corners
        width, height = (corners[:, 2:] - corners[:, :2]).T
        rows = backward(corners, width * height)
        if len(rows) and too_many(len(rows), len(corners)):
            listed = self.box_problems(corners, rows[: self.limits.problems], "xyxy")
            looks = exchanged(corners, self.corner_names)[0]
            raise negative_size_error(self.path, len(rows), len(corners), listed, looks)

    def box_rows(self, images: list[str], sizes: Floats | None) -> objects.Objects:
        """Return the boxes, in pixels where sizes (I, 2) are known."""
        image = indices_in(self.stems, images)[self.image[self.origin]]
        boxes = self.corners[self.origin]
        if sizes is not None:
            refuse_unknown(sizes, image, images, self.path)
            boxes = boxes * np.tile(sizes, 2)[image]
        return objects.Objects(tuple(images), self.classes, image, self.number, boxes)

    def location(self, row: int) -> tuple[str, str]:
        """Return the file and line of a box."""
        return self.path, f"line {self.line[self.origin[row]]}"

    def sources(self) -> tuple[SourceFile, ...]:
        """Return the input sources."""
        return (
            SourceFile(self.given, len(self), sha256=self.sha256),
            *self.descriptions.source(),
            *self.sizes.source,
        )

    def notes(self, sizes: Floats | None) -> tuple[Note, ...]:
        """Return notes about the file."""
        unknown = (FRACTIONS,) if sizes is None else ()
        commas = len(self) * self.commas
        note = Note("decimal-commas", "rows have decimal commas", commas, severity="info")
        return (*unknown, *nonzero_notes(note))
