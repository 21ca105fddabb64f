"""CVAT for images 1.1: one XML file for all images.

A file may contain hundreds of thousands of images, so lxml removes each element when it has been
read. A DOCTYPE is an error, so there are no entities.

Reference: CVAT's documentation, "XML annotation format", version 1.1, for images.
"""

import codecs
import os
import re
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

from lxml import etree

from detap.errors import Note
from detap.formats.reading.sniffing import head
from detap.formats.reading.xml_settings import SAFE
from detap.formats.shapes.document import Box, Document, DocumentFormat, Image, Item
from detap.formats.shapes.values import check_points, nonzero_number, rotated_ellipse
from detap.formats.text.folder import Folder
from detap.formats.text.lines import looks_like, number_of
from detap.io.paths import shown
from detap.io.problems import FaultError
from detap.text_input import quote

CORNERS = ("xtl", "ytl", "xbr", "ybr")

_EXPORTED = "annotations.xml"
"""The file name in CVAT's archives."""
_ROOT = re.compile(rb"<(?![?!])\s*([A-Za-z_][\w.:-]*)")
_ENCODING = re.compile(rb"<\?xml[^>]+encoding\s*=\s*[\"']([\w.:-]+)")
_PROLOG = 1 << 12
_POINTS = {"polygon": 3, "polyline": 2, "points": 1}
_UNREAD = ("cuboid", "skeleton")
_SHAPES = (*_POINTS, *_UNREAD, "box", "ellipse", "mask")
_KIND = ""
"""The key of a shape's element among its attributes."""
_SHOWN = 60
_TEXT = "text()[normalize-space()]"
_TEXTS: Any = etree.XPath(f"{_TEXT} | */{_TEXT}")
"""Texts between the elements of an image."""
_DEEP: Any = etree.XPath("*/*/descendant::*[count(ancestor::*) >= $nesting]")
_AGAIN = "export the task again, as CVAT for images 1.1"

_Attributes = Mapping[str, str]


class Annotations(Document):
    """The images of an export; the location of a box is its line.

    The name of an image is its file name with folders and without the suffix. CVAT exports no
    scores. Other tools write them as ``score`` or ``confidence``, an XML attribute or an
    ``attribute`` element of the shape.
    """

    corner_names = CORNERS
    repeated = "keep one of them; export the tasks of a project one by one"
    noted = (Note("tags-skipped", "tags of whole images skipped: not boxes", severity="info"),)

    def folders(self) -> list[Folder]:
        """Return the file; in a folder, ``annotations.xml``."""
        if os.path.isdir(self.given):
            self.given = os.path.join(self.given, _EXPORTED)
            self.path = shown(self.given)
        return super().folders()

    # --- elements

    def parse(self, data: bytes) -> Any:
        """Return the content as it is."""
        if not data.strip():
            raise FaultError("is empty", "expected a CVAT export")
        return data

    def images_of(self, content: Any, file: str) -> Iterator[tuple[str, Any]]:
        """Yield the line and element of each image."""
        before = self.problems.count
        try:
            encoding = _ENCODING.search(content[:_PROLOG])
            name = "utf-8" if encoding is None else codecs.lookup(encoding[1].decode()).name
            # libxml2 knows fewer names of encodings than Python, and those of Unicode by itself.
            how = {**SAFE, "encoding": None if name.startswith("utf") else name}
            parser = etree.iterparse(BytesIO(content), ("start",), **how)
            _, root = next(parser)
            self._check_root(root, content)
            self._check_depth(root)
            parser = etree.iterparse(BytesIO(content), tag=("image", "track"), **how)
            for _, element in parser:
                if element.getparent().getparent() is None:
                    self._check_part(element)
                    yield f"line {element.sourceline}", element
                    previous = element.getprevious()
                    if previous is not None and previous.tag == "image":
                        element.getparent().remove(previous)
            for part in parser.root:
                if part.tag != "image":
                    self._check_part(part)
        except etree.XMLSyntaxError as error:
            faults = [fault for fault in parser.error_log if fault.level_name == "FATAL"]
            line, reason = (faults[0].line, faults[0].message) if faults else (1, error.msg)
            raise _fault(content, f"line {line}", reason) from None
        except (ValueError, LookupError) as error:
            raise _fault(content, "", str(error)) from None
        if self.problems.count == before and not self.images:
            raise FaultError("no <image> elements", _AGAIN)

    def _check_root(self, root: Any, data: bytes) -> None:
        if root.getroottree().docinfo.internalDTD is not None:
            line = data.partition(b"<!DOCTYPE")[0].count(b"\n") + 1
            message = "contains a DOCTYPE, which is not allowed"
            raise FaultError(message, "remove it", f"line {line}")
        if root.tag != "annotations":
            message = f"not a CVAT export: the root is <{root.tag[:_SHOWN]}>"
            raise FaultError(message, "expected <annotations>", f"line {root.sourceline}")

    def _check_depth(self, element: Any) -> None:
        """Raise FaultError if elements of one are nested too deeply."""
        nesting = self.limits.nesting
        for deep in _DEEP(element, nesting=nesting)[:1]:
            message = f"XML is nested {nesting + 1} levels deep, the limit is {nesting}"
            hint = "raise the limit with --max-nesting"
            raise FaultError(message, hint, f"line {deep.sourceline}")

    def _check_part(self, part: Any) -> None:
        """Check an element below the root."""
        self._check_depth(part)
        if part.tag == "image":
            for text in _TEXTS(part):
                self._check_text(text)
            return
        if part.tag == "track":
            message = "contains a <track>: this is CVAT for video, which has no image names"
            raise FaultError(message, _AGAIN, f"line {part.sourceline}")
        for child in part if part.tag != "meta" else ():
            if child.tag in _SHAPES:
                message = f"<{child.tag}> is in <{part.tag[:_SHOWN]}>, expected in <image>"
                self.problems.add_here(f"line {child.sourceline}", message, "export it again")

    def _check_text(self, text: Any) -> None:
        """Add the problem of a text between elements."""
        element = text.getparent()
        before = "".join(element.itertext()) if text.is_tail else ""
        line = element.sourceline + (before + text[: -len(text.lstrip())]).count("\n")
        message = f"has text between its elements: {quote(text.strip())}"
        hint = "remove it, or write it as an element"
        self.problems.add_here(f"line {line}", message, hint)

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of an element."""
        attributes = dict(record.items())
        width, height = (nonzero_number(k, attributes.get(k, "")) for k in ("width", "height"))
        shapes = [shape for shape in record if shape.tag != "tag"]
        self.counts["tags-skipped"] += len(record) - len(shapes)
        located = ((f"line {shape.sourceline}", _attributes(shape)) for shape in shapes)
        return Image(attributes.get("name"), located, width, height, attributes)

    def item_of(self, record: Any) -> Item:
        """Return the object of a shape."""
        label = record.get("label", "")
        if not label.strip():
            raise FaultError("has no label", "write the name of its class")
        return Item(label, self._box(record[_KIND], record), record)

    def score_number(self, name: str, value: Any) -> float:
        """Return a score as a number; raise FaultError for other text."""
        return number_of(name, value.strip())

    # --- shapes to boxes

    def _box(self, name: str, attributes: _Attributes) -> Box:
        """Return the box or the points of a shape."""
        if name == "box":
            box = left, top, right, bottom = _required(attributes, CORNERS)
            angle = nonzero_number("rotation", attributes.get("rotation", ""))
            measures = (left + right) / 2, (top + bottom) / 2, right - left, bottom - top
            return self.rotated(box, measures, angle or 0.0)
        if name not in _SHAPES or name in _UNREAD:
            message = "not supported" if name in _UNREAD else "an unknown shape"
            raise FaultError(f"<{name[:_SHOWN]}> is {message}", "remove it, or draw a box")
        self.refuse_shape(name)
        if name == "ellipse":
            x, y, across, down = _required(attributes, ("cx", "cy", "rx", "ry"))
            angle = nonzero_number("rotation", attributes.get("rotation", "")) or 0.0
            return rotated_ellipse(x, y, 2 * across, 2 * down, angle)
        if name == "mask":
            sides = ("left", "top", "width", "height")
            left, top, width, height = _required(attributes, sides)
            return [left, top, left + width, top + height]
        return _points(name, attributes)


class Cvat(DocumentFormat):
    """An export of CVAT for images 1.1: the XML, or the folder with ``annotations.xml``."""

    document = Annotations
    has_attributes = True
    coordinates = "xtl, ytl, xbr, ybr"

    def fits(self, path: str) -> bool:
        """Return True if a file, or a folder's ``annotations.xml``, is a CVAT export."""
        file = os.path.join(path, _EXPORTED) if os.path.isdir(path) else path
        root = _ROOT.search(head(file))
        return root is not None and root.group(1) == b"annotations"


def _fault(data: bytes, location: str, reason: str) -> FaultError:
    """Return the fault of a file that is not XML."""
    appearance = looks_like(data)
    if appearance and appearance != "XML":
        hint = f"expected a CVAT export, {_EXPORTED}"
        return FaultError(f"looks like {appearance}", hint)
    return FaultError(f"invalid XML: {reason}", "export it again", location)


def _attributes(shape: Any) -> dict[str, str]:
    """Return the attributes of a shape, and those of its ``attribute`` elements."""
    attributes = dict(shape.items())
    attributes[_KIND] = shape.tag
    for element in shape:
        if element.tag == "attribute" and (name := element.get("name")):
            attributes.setdefault(name, element.text or "")
    return attributes


def _required(attributes: _Attributes, names: tuple[str, ...]) -> list[float]:
    try:
        return [number_of(name, attributes[name]) for name in names]
    except KeyError as missing:
        hint = f"write {', '.join(names)}"
        raise FaultError(f"has no {missing.args[0]}", hint) from None


def _points(name: str, attributes: _Attributes) -> list[list[float]]:
    points = []
    for pair in filter(None, attributes.get("points", "").split(";")):
        numbers = pair.split(",")
        if len(numbers) != 2:
            raise FaultError(f"has a point {quote(pair)}", "write points as x,y;x,y")
        points.append([number_of("point", text.strip()) for text in numbers])
    check_points(points, f"<{name}>", _POINTS[name])
    return points
