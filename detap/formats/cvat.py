"""CVAT for images 1.1: one XML file for all images.

A file may contain hundreds of thousands of images, so lxml parses it block by block, and elements
are removed when they have been read. A DOCTYPE is an error, so there are no entities.

Reference: CVAT's documentation, "XML annotation format", version 1.1, for images.
"""

import codecs
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Self

from detap.errors import Note
from detap.formats.reading.sniffing import head
from detap.formats.reading.xml_settings import SAFE
from detap.formats.shapes.document import SCORES, Document, DocumentFormat, Image
from detap.formats.shapes.values import (
    BBOX_HINT,
    bounds,
    number_of,
    points_text,
    rotated_box,
    rotated_ellipse,
)
from detap.formats.stem_matching import base_name, without_suffix
from detap.formats.text.lines import looks_like
from detap.io.digest import started
from detap.io.paths import SourceFile, shown
from detap.io.problems import FaultError
from detap.io.stream import Stream
from detap.tables.detection import Name
from detap.text_input import quote

CORNERS = ("xtl", "ytl", "xbr", "ybr")

_EXPORTED = "annotations.xml"
"""The file name in CVAT's archives."""
_ROOT = re.compile(rb"<(?![?!])\s*([A-Za-z_][\w.:-]*)")
_ENCODING = re.compile(rb"<\?xml[^>]+encoding\s*=\s*[\"']([\w.:-]+)")
_PROLOG = 1 << 12
"""Bytes in which the root element is expected; else it is checked later."""
_POINTS = {"polygon": 3, "polyline": 2, "points": 1}
_UNREAD = ("cuboid", "skeleton")
_SHAPES = (*_POINTS, *_UNREAD, "box", "ellipse", "mask")
_SHOWN = 60

_Attributes = Mapping[str, str]


class _StopError(Exception):
    """Reading stops; a problem has been collected."""


class Annotations(Document):
    """The images of an export; the location of a box is its line.

    The name of an image is its file name with folders and without the suffix. CVAT exports no
    scores. Other tools write them as ``score`` or ``confidence``, an XML attribute or an
    ``attribute`` element of the shape.
    """

    corner_names = CORNERS
    repeated = "keep one of them; export the tasks of a project one by one"

    def __init__(self, *arguments: Any, **how: Any) -> None:
        super().__init__(*arguments, **how)
        if "\0" not in self.given and os.path.isdir(self.given):
            self.given = os.path.join(self.given, _EXPORTED)
            self.path = shown(self.given)
        self._tags = 0
        self._sha256 = ""
        self.begin(self.path)

    def location_text(self, location: Any) -> str:
        """Return the text of a line."""
        return f"line {location}"

    def sources(self) -> tuple[SourceFile, ...]:
        """Return the input source."""
        return (SourceFile(self.given, len(self), sha256=self._sha256),)

    def notes(self) -> tuple[Note, ...]:
        """Return notes about the file."""
        message = "tags of whole images skipped: not boxes"
        return (Note("tags-skipped", message, self._tags, severity="info"),)

    def matched(self, images: Sequence[Name], known: Sequence[Name]) -> tuple[Name, ...]:
        """Return the names, without folders if the ground truth has none."""
        files = tuple(base_name(str(name)) for name in images)
        has_folders = any("/" in str(name) for name in known)
        return tuple(images) if has_folders or len(set(files)) < len(files) else files

    def read(self, *, check: bool = True) -> Self:
        """Read the file; raise all problems if `check`."""
        from lxml import etree  # takes 0.02 s

        parser: Any = None
        first = b""
        with Stream(self.given, self.limits) as stream:
            digest = started(stream)
            root = None
            try:
                while block := stream.read():
                    if not first:
                        first = block
                        parser = _parser(block, "annotations")
                        self._check_root(*_begin(block))
                    if digest is not None:
                        digest.update(block)
                    parser.feed(block)
                    begun = [element for _, element in parser.read_events()]
                    root = begun[0] if root is None and begun else root
                    self._take_parts(root, 1)
                if first:
                    self._check_root(parser.close(), first)
                    self._take_parts(root, 0)
                else:
                    self._add_fault(first, "", "")
                stream.check_unchanged()
            except _StopError:
                digest = None
            except etree.XMLSyntaxError as error:
                self._stop_at_fault(error, parser, root, first)
            except (ValueError, LookupError) as error:
                self._add_fault(first, "", str(error))
        self._sha256 = digest.hexdigest() if digest is not None else ""
        if not self.problems.count and not self.images:
            self._add("", "no <image> elements", "export the task again, as CVAT for images 1.1")
        if check:
            self.problems.raise_any()
        return self

    def read_again(self, file: str) -> None:
        """Read the attributes of the images."""
        reader = Annotations(file)
        reader.images_only = True
        reader.read(check=False)
        self.attributes |= reader.attributes
        self.file_names |= reader.file_names

    # --- problems

    def _add(self, location: str, message: str, hint: str) -> None:
        self.problems.add(self.path, location, message, hint)

    def _stop(self, line: int, message: str, hint: str) -> None:
        self._add(f"line {line}", message, hint)
        raise _StopError

    def _stop_at_fault(self, error: Any, parser: Any, root: Any, first: bytes) -> None:
        """Add the problem of invalid XML, after those of the elements before."""
        try:
            self._take_parts(root, 1)
        except _StopError:
            return
        line, reason = error.lineno, error.msg
        for fault in parser.feed_error_log:
            if fault.level_name == "FATAL":
                line, reason = fault.line, fault.message
                break
        self._add_fault(first, f"line {line}", reason)

    def _add_fault(self, first: bytes, location: str, reason: str) -> None:
        appearance = looks_like(first)
        if not first.strip():
            self._add("", "is empty", "expected a CVAT export")
        elif appearance and appearance != "XML":
            self._add("", f"looks like {appearance}", "expected a CVAT export, annotations.xml")
        else:
            self._add(location, f"invalid XML: {reason}", "export it again")

    def _check_root(self, root: Any, prolog: bytes) -> None:
        if root is None:
            return
        if root.getroottree().docinfo.internalDTD is not None:
            line = prolog.partition(b"<!DOCTYPE")[0].count(b"\n") + 1
            self._stop(line, "contains a DOCTYPE, which is not allowed", "remove it")
        if root.tag == "annotations":
            return
        note = {
            "annotation": ", as in VOC annotations (read their folder with --format voc)",
            "html": " (an HTML page?)",
        }.get(root.tag.lower(), "")
        self._stop(
            root.sourceline,
            f"not a CVAT export: the root is <{root.tag[:_SHOWN]}>{note}",
            "expected <annotations>",
        )

    def _check_depth(self, element: Any, depth: int) -> None:
        """Stop if elements below one are nested too deeply."""
        if depth > self.limits.nesting:
            self._stop(
                element.sourceline,
                f"XML is nested {depth} levels deep, the limit is {self.limits.nesting}",
                "raise the limit with --max-nesting",
            )
        for child in element:
            self._check_depth(child, depth + 1)

    def _check_text(self, text: str | None, line: int) -> None:
        """Add a problem for text between elements that begins in a line."""
        if text and (words := text.strip()):
            line += text[: text.index(words[0])].count("\n")
            message = f"has text between its elements: {quote(words)}"
            self._add(f"line {line}", message, "remove it, or write it as an element")

    # --- elements

    def _take_parts(self, root: Any, kept: int) -> None:
        """Read and remove the elements below the root but the last, which may be incomplete."""
        if root is None:
            return
        while len(root) > kept:
            self._take_part(root[0])
            del root[0]
        for part in root:
            self._check_depth(part, 2)

    def _take_part(self, part: Any) -> None:
        if part.tag == "image":
            self._take_image(part)
            return
        if part.tag == "track":
            self._stop(
                part.sourceline,
                "contains a <track>: this is CVAT for video, which has no image names",
                "export the task again, as CVAT for images 1.1",
            )
        self._check_depth(part, 2)
        for child in part if part.tag != "meta" else ():
            if child.tag in _SHAPES:
                message = f"<{child.tag}> is in <{part.tag[:_SHOWN]}>, expected in <image>"
                self._add(f"line {child.sourceline}", message, "export it again")

    def _take_image(self, image: Any) -> None:
        if _unusual()(image):
            self._check_image(image)
        self.read_image(self.path, f"line {image.sourceline}", image)
        if self.too_many():
            raise _StopError

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of an element."""
        attributes = dict(record.items())
        name = attributes.get("name", "")
        if not without_suffix(name.replace("\\", "/")).strip():
            raise FaultError("<image> has no name", "write its file name")
        try:
            width, height = _side("width", attributes), _side("height", attributes)
        except FaultError as fault:
            width = height = None
            message = f"image {quote(name)}: {fault.message}"
            self.problems.add(file, location, message, fault.hint)
        shapes = [shape for shape in record if shape.tag != "tag"]
        self._tags += len(record) - len(shapes)
        located = ((shape.sourceline, shape) for shape in shapes)
        return Image(name, located, width, height, attributes)

    def _check_image(self, image: Any) -> None:
        """Check the nesting of elements, and the text between them."""
        self._check_depth(image, 2)
        self._check_text(image.text, image.sourceline)
        for shape in image:
            self._check_text(shape.text, shape.sourceline)
            for element in (*shape, shape):
                self._check_text(element.tail, _end_line(element))

    def take(self, record: Any, location: Any) -> None:
        """Add the box of a shape; raise FaultError if it is invalid."""
        try:
            self._take_shape(record)
        except FaultError as fault:
            message = f"<{record.tag[:_SHOWN]}> {fault.message}"
            raise FaultError(message, fault.hint) from None
        self._locations.append(location)

    def _take_shape(self, shape: Any) -> None:
        attributes = dict(shape.items())
        inner = {
            name: element.text or ""
            for element in shape
            if element.tag == "attribute" and (name := element.get("name"))
        }
        label = attributes.get("label", "")
        if not label.strip():
            raise FaultError("has no label", "write the name of its class")
        box, corners = self._box(shape.tag, attributes)
        flags = [flag for item in inner.items() if (flag := self._flag(*item))]
        score = self._score({**inner, **attributes}) if self.scored else 0.0
        self.add(label, box, score, flags, corners)
        if self.object_attributes.names:
            values = self.object_attributes.values({**attributes, **inner}.get)
            self.object_attributes.append(values)

    def _flag(self, name: str, value: str) -> str:
        try:
            return self.flags.flag_of(name, value)
        except ValueError:
            message = f"flag {quote(name)} is {quote(value)}"
            hint = "expected true or false, yes or no, 1 or 0"
            raise FaultError(message, hint) from None

    def _score(self, attributes: _Attributes) -> float:
        for name in SCORES:
            if name in attributes:
                return number_of(name, attributes[name].strip())
        hint = "write an attribute score or confidence"
        raise FaultError("has no score (ground truth?)", hint)

    # --- shapes to boxes

    def _box(
        self, name: str, attributes: _Attributes
    ) -> tuple[list[float], list[list[float]] | None]:
        """Return the bounding box of a shape, and the corners if it is a rotated box."""
        if name == "box":
            angle = _rotation(attributes)
            box = _required(attributes, CORNERS)
            if not angle % 360:
                return box, None
            left, top, right, bottom = box
            center = (left + right) / 2, (top + bottom) / 2
            corners = rotated_box(*center, right - left, bottom - top, angle)
            return bounds(corners), corners
        if name not in _SHAPES or name in _UNREAD:
            message = "is not supported" if name in _UNREAD else "is an unknown shape"
            raise FaultError(message, "remove it, or draw a box")
        if self.shapes != "bbox":
            raise FaultError("is not a box", BBOX_HINT)
        if name == "ellipse":
            x, y, across, down = _required(attributes, ("cx", "cy", "rx", "ry"))
            return rotated_ellipse(x, y, 2 * across, 2 * down, _rotation(attributes)), None
        if name == "mask":
            sides = ("left", "top", "width", "height")
            left, top, width, height = _required(attributes, sides)
            return [left, top, left + width, top + height], None
        return bounds(_points(name, attributes)), None


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


def _parser(block: bytes, tag: str | None = None) -> Any:
    """Return a safe parser that begins with a block; raise LookupError for its encoding."""
    from lxml import etree

    encoding = _ENCODING.search(block[:_PROLOG])
    name = encoding.group(1).decode() if encoding is not None else "utf-8"
    known = codecs.lookup(name).name  # libxml2 has fewer names
    return etree.XMLPullParser(
        ("start",),
        tag=tag,
        encoding=None if known.startswith("utf") else known,
        **SAFE,
    )


def _begin(block: bytes) -> tuple[Any, bytes]:
    """Return the root element, None if it does not begin in the first bytes, and these."""
    from lxml import etree

    parser, prolog = _parser(block), block[:_PROLOG]
    with suppress(etree.XMLSyntaxError):  # reading the file reports it
        parser.feed(prolog)
    return next((element for _, element in parser.read_events()), None), prolog


@cache
def _unusual() -> Any:
    """Return the test whether an image has text between elements, or elements in attributes."""
    from lxml import etree

    text = "text()[normalize-space()]"
    return etree.XPath(f"boolean({text} | */{text} | */*/*)")


def _end_line(element: Any) -> int:
    return int(element.sourceline) + "".join(element.itertext()).count("\n")


def _side(name: str, attributes: _Attributes) -> float | None:
    """Return the image's width or height in pixels, None if unknown."""
    text = attributes.get(name, "")
    value = number_of(name, text) if text else 0.0
    if value < 0:
        raise FaultError(f"{name} {value:g} is negative", "write the size in pixels")
    return value or None


def _required(attributes: _Attributes, names: tuple[str, ...]) -> list[float]:
    values = []
    for name in names:
        if name not in attributes:
            raise FaultError(f"has no {name}", f"write {', '.join(names)}")
        values.append(number_of(name, attributes[name]))
    return values


def _rotation(attributes: _Attributes) -> float:
    """Return the clockwise rotation about the center, in degrees."""
    text = attributes.get("rotation")
    return number_of("rotation", text) if text else 0.0


def _points(name: str, attributes: _Attributes) -> list[list[float]]:
    points = []
    for pair in filter(None, attributes.get("points", "").split(";")):
        numbers = pair.split(",")
        if len(numbers) != 2:
            raise FaultError(f"has a point {quote(pair)}", "write points as x,y;x,y")
        points.append([number_of("point", text.strip()) for text in numbers])
    if len(points) < _POINTS[name]:
        message = f"has {points_text(points)}, expected {_POINTS[name]}"
        raise FaultError(message, "draw it again")
    return points
