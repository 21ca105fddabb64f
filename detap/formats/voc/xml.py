"""Read a VOC annotation with lxml, and report every problem."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from lxml import etree

from detap.errors import Problem
from detap.formats.reading.attributes import Attributes
from detap.formats.reading.xml_settings import SAFE
from detap.formats.text._ragged import RowColumns
from detap.formats.text.lines import box_fault, looks_like, number_fault
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.problems import FaultError, Problems
from detap.text_input import quote

_BLANK = " \t\r\n"
_EXPECTED = "expected an XML annotation"
_CORNERS = ("xmin", "ymin", "xmax", "ymax")


@cache
def _parser() -> Any:
    return etree.XMLParser(recover=False, **SAFE)


def read_annotation(
    data: bytes,
    file: str,
    rows: RowColumns,
    attributes: Attributes,
    problems: Problems,
    *,
    limits: Limits = DEFAULT_LIMITS,
    number: int = 0,
) -> tuple[tuple[float, float], int, int]:
    """Add the objects of one XML file to rows and attributes; collect the problems of objects.

    Return the size of the image, NaN if unknown, and the counts of objects inside others and of
    empty elements <difficult/>; raise FaultError for another kind of file.
    """
    root = _parsed(data, limits)
    objects = [child for child in root if child.tag == "object"]
    if root.find("imagesize") is not None or root.find("object/polygon") is not None:
        message = 'is XML of LabelMe\'s older tool ("LabelMe 3.0" in CVAT), not VOC'
        raise FaultError(message, "export COCO, Pascal VOC or CVAT for images")
    if not objects and root.tag != "annotation":
        note = " (an HTML page?)" if str(root.tag).lower().endswith("html") else ""
        message = f"not a VOC annotation: the root is <{root.tag}>{note}"
        raise FaultError(message, "expected <annotation>")
    for child in root:
        local = str(child.tag).rpartition("}")[2]
        if child.tag != "object" and local.lower() == "object":
            message = f"unexpected element <{child.tag}>"
            problems.add(file, f"line {child.sourceline}", message, "write <object>")
    size = math.nan, math.nan
    if rotated := sum(1 for _ in root.iter("robndbox")):
        message = "has <robndbox>, a rotated box of roLabelImg, which VOC lacks"
        hint = "write DOTA text (`cx cy w h angle class 0` a line, --angle-unit radians)"
        problems.add_first_of([Problem(file, "", message, hint)], rotated)
        return size, 0, 0
    for index, element in enumerate(objects, 1):
        row = _read_object(element, file, f"object {index}", problems, attributes)
        if row is not None:
            rows.add(number, index, *row)
    nested = sum(1 for _ in root.iter("object")) - len(objects) - (root.tag == "object")
    flags = (element.find("difficult") for element in objects)
    empty = sum(1 for flag in flags if flag is not None and not (flag.text or "").strip(_BLANK))
    if (sides := root.find("size")) is not None:
        size = _length(sides.find("width")), _length(sides.find("height"))
    return size, nested, empty


def _parsed(data: bytes, limits: Limits) -> Any:
    """Return the root of a safe XML; raise FaultError for other files."""
    if not data.strip():
        raise FaultError("is empty", _EXPECTED)
    try:
        root = etree.fromstring(data, _parser())
    except etree.XMLSyntaxError as error:
        kind = looks_like(data)
        if kind and kind != "XML":
            raise FaultError(f"looks like {kind}", _EXPECTED) from None
        message = f"invalid XML: {error.msg}"
        raise FaultError(message, "correct it", f"line {error.lineno}") from None
    except (ValueError, LookupError) as error:
        raise FaultError(f"invalid XML: {error}", "correct it") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise FaultError("contains a DOCTYPE, which is not allowed", "remove it")
    if next(root.iter(etree.Entity), None) is not None:
        raise FaultError("refers to an entity, which is not allowed", "write its text")
    depth = deepest = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        deepest = max(deepest, depth)
    if deepest > limits.nesting:
        message = f"XML is nested {deepest} levels deep, the limit is {limits.nesting}"
        raise FaultError(message, "raise the limit with --max-nesting")
    return root


def element_text(data: bytes, file: str, path: str) -> str | None:
    """Return the text of an annotation's element, such as ``source/database``, or None."""
    problems = Problems(1, file)
    element = None
    with problems.collected():
        element = _parsed(data, DEFAULT_LIMITS)
    problems.raise_any()
    for name in path.split("/"):
        element = next((child for child in element if child.tag == name), None)
        if element is None:
            return None
    return (element.text or "").strip() or None


def _length(element: Any) -> float:
    """Return the image's width or height in pixels, NaN if unknown or invalid."""
    text = (element.text or "").strip(_BLANK) if element is not None else ""
    return math.nan if number_fault(text) or not float(text) > 0 else float(text)


_Add = Callable[[Any, str, str], None]
"""Adds a problem of an element, given its message and hint."""


def _read_object(
    element: Any, file: str, location: str, problems: Problems, attributes: Attributes
) -> tuple[bytes, list[float], bool] | None:
    """Return the name, the corners and the flag of an object; None after collecting problems."""
    before = problems.count

    def add(faulty: Any, message: str, hint: str) -> None:
        problems.add(file, f"{location}, line {faulty.sourceline}", message, hint)

    name = _child_text(element, "name", add, required=True)
    if name == "":
        add(element, "empty name", "write the name of its class")
    difficult = _child_text(element, "difficult", add, required=False)
    if difficult not in {None, "", "0", "1"}:
        add(element.find("difficult"), f"difficult is {quote(str(difficult))}", "use 0 or 1")
    values = _box(element, add)
    if values is not None and (fault := box_fault(values, "xyxy")):
        add(element, fault, "correct the box")
    if problems.count > before or name is None or values is None:
        return None
    attributes.append(attributes.values(element.findtext))
    return name.encode(), values, difficult == "1"


def _child(element: Any, tag: str, add: _Add, *, required: bool) -> Any:
    """Return the only child with a tag, or None."""
    children = [child for child in element if child.tag == tag]
    if len(children) > 1:
        add(children[1], f"has {len(children)} elements <{tag}>", "keep one")
    elif not children and required:
        add(element, f"has no {tag}", f"add <{tag}>")
    return children[0] if len(children) == 1 else None


def _child_text(element: Any, tag: str, add: _Add, *, required: bool) -> str | None:
    child = _child(element, tag, add, required=required)
    if child is None:
        return None
    if len(child):
        add(child, f"has elements inside <{tag}>", "write only text there")
        return None
    return str(child.text or "").strip(_BLANK)


def _box(element: Any, add: _Add) -> list[float] | None:
    box = _child(element, "bndbox", add, required=True)
    values = []
    for corner in () if box is None else _CORNERS:
        text = _child_text(box, corner, add, required=True)
        fault = "" if text is None else number_fault(text)
        if fault:
            message = f"{corner} {quote(str(text))} {fault}"
            add(box.find(corner), message, "use a decimal number")
        elif text is not None:
            values.append(float(text))
    return values if len(values) == len(_CORNERS) else None
