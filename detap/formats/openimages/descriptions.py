"""The names of Open Images' classes: ``class-descriptions*.csv``."""

import csv
import os
from collections import Counter

from detap.formats.by_name.problems import Problems
from detap.formats.text.lines import looks_like
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.io.stream import read_bytes
from detap.tables.detection import SourceFile
from detap.text_input import quote

_HEADER = ("LabelName", "DisplayName")
_FORM = "lines `/m/0...,name`, one per class"


class Descriptions:
    """The names of labels.

    Parameters
    ----------
    path : str or path or None
        A CSV of label and name, with or without a header; without one, labels are names.
    problems : Problems
        Collects one problem per invalid line.
    limits : Limits
        Limits on the input size.
    """

    def __init__(self, path: Path | None, problems: Problems, limits: Limits) -> None:
        self.file = "" if path is None else os.fspath(path)
        self.names: dict[str, str] = {}
        if self.file:
            self._read(read_bytes(self.file, limits), problems)
        alike = Counter(self.names.values())
        # Labels of the same name stay separate classes.
        self.name_by_label = {
            label: name if alike[name] == 1 else f"{name} ({label})"
            for label, name in self.names.items()
        }
        self.known = set(self.name_by_label.values())

    def _read(self, data: bytes, problems: Problems) -> None:
        appearance = looks_like(data)
        if appearance:
            problems.add(self.file, "", f"looks like {appearance}", f"expected {_FORM}")
            return
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            problems.add(self.file, f"line {line}", "is not UTF-8", "save it as UTF-8")
            return
        lines = csv.reader(text.split("\n"), strict=True)
        try:
            for row in lines:
                self._take(row, f"line {lines.line_num}", problems)
        except csv.Error as error:
            location = f"line {lines.line_num}"
            problems.add(self.file, location, f"invalid CSV: {error}", "correct the line")
        if not self.names and not problems.count:
            problems.add(self.file, "", "no class names", f"write {_FORM}")

    def _take(self, row: list[str], location: str, problems: Problems) -> None:
        if not row or tuple(row[:2]) == _HEADER:
            return
        if len(row) < 2 or not all(row[:2]) or row[0] == _HEADER[0]:
            message = f"{quote(','.join(row))} is not a label and a name"
            problems.add(self.file, location, message, f"write {_FORM}")
        elif self.names.setdefault(row[0], row[1]) != row[1]:
            message = f"duplicate label {quote(row[0])} with another name"
            problems.add(self.file, location, message, "list each class once")

    def name(self, label: str) -> str | None:
        """Return the class name for a label or name; None if unknown."""
        if not self.file or label in self.known:
            return label
        return self.name_by_label.get(label)

    def source(self) -> tuple[SourceFile, ...]:
        """Return the file as an input source, if there is one."""
        return (SourceFile(self.file, len(self.names)),) if self.file else ()
