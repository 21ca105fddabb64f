"""Labels of Open Images: their names, and the hierarchy of classes."""

import csv
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any, NoReturn

from detap.formats.shapes.values import json_value
from detap.formats.text.lines import looks_like
from detap.io.json_text import decode, short_json
from detap.io.limits import Limits
from detap.io.paths import Path, SourceFile, shown
from detap.io.problems import FaultError, Problems
from detap.io.stream import read_bytes, refuse
from detap.text_input import quote

_HEADER = ("LabelName", "DisplayName")
_LINES = "lines `/m/0...,name`, one per class"
_NAME, _BELOW = "LabelName", "Subcategory"
_TREE = 'expected `{"LabelName": ..., "Subcategory": [{"LabelName": ...}, ...]}`'


class Descriptions:
    """The names of labels, of ``class-descriptions*.csv``; without a file, labels are names."""

    def __init__(self, path: Path | None, problems: Problems, limits: Limits) -> None:
        self.file = "" if path is None else os.fspath(path)
        self.problems = problems
        self.names: dict[str, str] = {}
        if self.file:
            with problems.collected(file=self.file):
                self._read(read_bytes(self.file, limits))
        alike = Counter(self.names.values())
        # Labels of the same name stay separate classes.
        named = {
            label: name if alike[name] == 1 else f"{name} ({label})"
            for label, name in self.names.items()
        }
        self.class_names = named | {name: name for name in named.values()}

    def _read(self, data: bytes) -> None:
        if appearance := looks_like(data):
            raise FaultError(f"looks like {appearance}", f"expected {_LINES}")
        lines = csv.reader(decode(data, self.file, 1).split("\n"), strict=True)
        try:
            for row in lines:
                location = f"line {lines.line_num}"
                if not row or tuple(row[:2]) == _HEADER:
                    continue
                if len(row) < 2 or not all(row[:2]) or row[0] == _HEADER[0]:
                    message = f"{quote(','.join(row))} is not a label and a name"
                    self.problems.add(self.file, location, message, f"write {_LINES}")
                elif self.names.setdefault(row[0], row[1]) != row[1]:
                    message = f"duplicate label {quote(row[0])} with another name"
                    self.problems.add(self.file, location, message, "list each class once")
        except csv.Error as error:
            location = f"line {lines.line_num}"
            raise FaultError(f"invalid CSV: {error}", "correct the line", location) from None
        if not self.names and not self.problems.count:
            raise FaultError("no class names", f"write {_LINES}")

    def name(self, label: str) -> str | None:
        """Return the class name for a label or name; None if unknown."""
        return self.class_names.get(label) if self.file else label

    def source(self) -> tuple[SourceFile, ...]:
        """Return the file as an input source, if there is one."""
        return (SourceFile(self.file, len(self.names)),) if self.file else ()


class Hierarchy:
    """The ancestors and descendants of each class, of ``bbox_labels_*_hierarchy.json``.

    The root is not a class. A class that occurs several times has the relatives of all
    occurrences. Parts (``Part``) of a class are not its descendants. `above` and `below` have an
    ordered set by class name, with the class itself first.

    Reference: oid_hierarchical_labels_expansion.py of TensorFlow's object detection library.
    """

    def __init__(self, path: Path, descriptions: Descriptions, limits: Limits) -> None:
        self.file = os.fspath(path)
        self.descriptions = descriptions
        self.above: dict[str, dict[str, None]] = {}
        self.below: dict[str, dict[str, None]] = {}
        problems = Problems(limits.problems, shown(self.file))
        root = None
        with problems.collected():
            root, _ = json_value(read_bytes(path, limits), problems, limits, _TREE)
        problems.raise_any()
        if not isinstance(root, dict) or _BELOW not in root:
            self._refuse("", f"not a hierarchy: no {_BELOW}")
        for child in self._children(root, ""):
            self._add(child, (), "")
        if not self.above:
            self._refuse("", "no classes below the root")

    def _refuse(self, location: str, message: str) -> NoReturn:
        refuse(self.file, message, _TREE, location)

    def _children(self, node: dict[str, Any], location: str) -> Iterator[Any]:
        children = node.get(_BELOW, [])
        if not isinstance(children, list):
            self._refuse(location, f"{_BELOW} is {short_json(children)}, not a list")
        yield from children

    def _add(self, node: Any, ancestors: tuple[str, ...], location: str) -> None:
        """Add a class and its descendants; the nearest ancestor comes first."""
        label = node.get(_NAME) if isinstance(node, dict) else None
        if not isinstance(label, str) or not label:
            self._refuse(location, f"class without a {_NAME}")
        name = self.descriptions.name(label) or label
        location = f"class {label!r}"
        if name in ancestors:
            self._refuse(location, "is its own descendant")
        self.above.setdefault(name, {name: None}).update(dict.fromkeys(ancestors))
        for above in (name, *ancestors):
            self.below.setdefault(above, {above: None})[name] = None
        for child in self._children(node, location):
            self._add(child, (name, *ancestors), location)
