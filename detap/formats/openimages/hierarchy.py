"""The class hierarchy of Open Images, in JSON."""

import os
from typing import Any

from detap.errors import InputError, Problem
from detap.formats.openimages.descriptions import Descriptions
from detap.io.json_text import JsonText, NotJsonError, decode, short_json
from detap.io.limits import Limits
from detap.io.paths import Path, shown
from detap.io.problems import Problems
from detap.io.stream import read_bytes
from detap.tables.detection import SourceFile

_NAME, _BELOW = "LabelName", "Subcategory"
_FORM = 'expected `{"LabelName": ..., "Subcategory": [{"LabelName": ...}, ...]}`'
_MAX_DEPTH = 100


class Hierarchy:
    """The ancestors and descendants of each class; the root is not a class.

    A class that occurs several times has the ancestors and descendants of all occurrences. Parts
    (``Part``) of a class are not its descendants.

    Parameters
    ----------
    path : str or path
        As ``bbox_labels_*_hierarchy.json``.
    descriptions : Descriptions
        The names of labels; other labels keep their label.
    limits : Limits
        Limits on the input size.

    Attributes
    ----------
    above, below : dict of str to dict of str to None
        Ordered sets by class name, each with the class itself first.

    Raises
    ------
    InputError
        If the file is not such a hierarchy.

    References
    ----------
    oid_hierarchical_labels_expansion.py of TensorFlow's object detection library.
    """

    def __init__(self, path: Path, descriptions: Descriptions, limits: Limits) -> None:
        self.file = os.fspath(path)
        self.descriptions = descriptions
        self.above: dict[str, dict[str, None]] = {}
        self.below: dict[str, dict[str, None]] = {}
        problems = Problems(shown(self.file), limits.problems)
        root = _json(read_bytes(path, limits), problems)
        problems.raise_any()
        for child in self._children(root, ""):
            self._add(child, (), "")
        if not self.above:
            self._refuse("", "no classes below the root")

    def _refuse(self, location: str, message: str) -> None:
        raise InputError(Problem(shown(self.file), location, message, _FORM))

    def _children(self, node: dict[str, Any], location: str) -> list[Any]:
        children = node.get(_BELOW, [])
        if not isinstance(children, list):
            self._refuse(location, f"{_BELOW} is {short_json(children)}, not a list")
        nodes: list[Any] = children
        return nodes

    def _add(self, node: Any, ancestors: tuple[str, ...], location: str) -> None:
        """Add a class and its descendants; the nearest ancestor comes first."""
        label = node.get(_NAME) if isinstance(node, dict) else None
        if not isinstance(label, str) or not label:
            self._refuse(location, f"class without a {_NAME}")
        assert isinstance(label, str)
        name = self.descriptions.name(label) or label
        location = f"class {label!r}"
        if name in ancestors:
            self._refuse(location, "is its own descendant")
        if len(ancestors) > _MAX_DEPTH:
            self._refuse(location, f"is more than {_MAX_DEPTH} levels deep")
        self.above.setdefault(name, {name: None}).update(dict.fromkeys(ancestors))
        for above in (name, *ancestors):
            self.below.setdefault(above, {above: None})[name] = None
        for child in self._children(node, location):
            self._add(child, (name, *ancestors), location)

    def source(self) -> SourceFile:
        """Return the file as an input source."""
        return SourceFile(self.file, len(self.above))


def _json(data: bytes, problems: Problems) -> dict[str, Any]:
    text = JsonText(decode(data, problems), problems)
    value = None
    try:
        text.peek()
        value = text.value("hierarchy")
        text.finish()
    except NotJsonError as error:
        problems.add(*text.fault(error))
        return {}
    if not isinstance(value, dict) or _BELOW not in value:
        problems.add("", f"not a hierarchy: no {_BELOW}", _FORM)
        return {}
    return value
