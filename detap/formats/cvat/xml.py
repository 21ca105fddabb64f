"""Stream the XML of CVAT for images 1.1.

A file may contain hundreds of thousands of images, so the standard library's expat reads it element
by element without a tree. A DOCTYPE is an error, so there are no entities.

Reference: CVAT's documentation, "XML annotation format", version 1.1, for images.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any
from xml.parsers import expat

from detap.formats.shapes.flags import BBOX_HINT, bounds, rotated_box, rotated_ellipse
from detap.formats.shapes.reader import ShapeReader, number_of
from detap.formats.stem_matching import without_suffix
from detap.formats.text.lines import looks_like
from detap.io.digest import started
from detap.io.limits import Limits
from detap.io.problems import FaultError
from detap.io.stream import Stream
from detap.text_input import quote

CORNERS = ("xtl", "ytl", "xbr", "ybr")

_POINTS = {"polygon": 3, "polyline": 2, "points": 1}
_UNREAD = ("cuboid", "skeleton")
_SHAPES = (*_POINTS, *_UNREAD, "box", "ellipse", "mask")
_SHOWN = 60
_SCORES = ("score", "confidence")

Attributes = Mapping[str, str]


class _StopError(Exception):
    """Reading stops; a problem has been collected."""


class Annotations(ShapeReader):
    """Reader of a CVAT file; the location of a box is its line.

    Parameters
    ----------
    path : str
        The XML.
    limits, shapes, flags, **how
        As in :class:`ShapeReader`.

    Attributes
    ----------
    attributes : dict of str to dict of str to str
        Attributes of each image's element.
    lines : dict of str to int
        The line of each image.
    tags : int
        Number of tags of whole images.
    sha256 : str
        Of the file, if `limits` asks for digests and it is not compressed.
    """

    corner_names = CORNERS

    def __init__(
        self,
        path: str,
        limits: Limits,
        shapes: str = "reject",
        flags: str | None = None,
        **how: Any,
    ) -> None:
        super().__init__(path, limits, shapes, flags, **how)
        self.attributes: dict[str, dict[str, str]] = {}
        self.lines: dict[str, int] = {}
        self.tags = 0
        self.sha256 = ""
        self._depth = 0
        self._part = ""
        self._shape: tuple[str, Attributes, int] | None = None
        self._extra: dict[str, str] = {}
        self._name = ""
        self._parser = self._new_parser()

    def _new_parser(self) -> Any:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._doctype
        return parser

    def location(self, row: int) -> tuple[str, str]:
        """Return the file and line of a box."""
        return self.path, f"line {self.positions[row]}"

    def read(self) -> "Annotations":
        """Read the file and collect its problems."""
        head = b""
        with Stream(self.given, self.limits) as stream:
            digest = started(stream)
            try:
                while block := stream.read():
                    head = head or block
                    if digest is not None:
                        digest.update(block)
                    self._parser.Parse(block, False)
                self._parser.Parse(b"", True)
                stream.check_unchanged()
            except _StopError:
                digest = None
            except expat.ExpatError as error:
                self._add_xml_problem(head, f"line {error.lineno}", expat.ErrorString(error.code))
            except (ValueError, LookupError) as error:
                self._add_xml_problem(head, "", str(error))
        self.sha256 = digest.hexdigest() if digest is not None else ""
        if not self.problems.count and not self.lines:
            self._add("", "no <image> elements", "export the task again, as CVAT for images 1.1")
        return self

    def _add_xml_problem(self, head: bytes, location: str, reason: str) -> None:
        appearance = looks_like(head)
        if not head.strip():
            self._add("", "is empty", "expected a CVAT export")
        elif appearance and appearance != "XML":
            self._add("", f"looks like {appearance}", "expected a CVAT export, annotations.xml")
        else:
            self._add(location, f"invalid XML: {reason}", "export it again")

    def _add(self, location: str, message: str, hint: str) -> None:
        self.problems.add(self.path, location, message, hint)

    def _here(self) -> str:
        return f"line {self._parser.CurrentLineNumber}"

    def _stop(self, message: str, hint: str) -> None:
        self._add(self._here(), message, hint)
        raise _StopError

    # --- expat handlers

    def _doctype(self, *_: object) -> None:
        self._stop("contains a DOCTYPE, which is not allowed", "remove it")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > self.limits.nesting:
            self._stop(
                f"XML is nested {self._depth} levels deep, the limit is {self.limits.nesting}",
                "raise the limit with --max-nesting",
            )
        if self._depth == 1:
            self._start_root(name)
        elif self._depth == 2:
            self._start_part(name, attributes)
        elif self._depth == 3 and self._part == "image":
            self._shape = name, attributes, self._parser.CurrentLineNumber
            self._extra = {}
        elif self._depth == 3 and self._part != "meta" and name in _SHAPES:
            message = f"<{name}> is in <{self._part[:_SHOWN]}>, expected in <image>"
            self._add(self._here(), message, "export it again")
        elif self._depth == 4 and self._shape is not None and name == "attribute":
            self._name = attributes.get("name", "")
            self._extra[self._name] = ""

    def _text(self, text: str) -> None:
        if self._depth == 4 and self._name:
            self._extra[self._name] += text
        elif self._part == "image" and self._depth < 4 and text.strip():
            # expat reports the line of the end of the text.
            line = self._parser.CurrentLineNumber - text.lstrip().count("\n")
            message = f"has text between its elements: {quote(text.strip())}"
            self._add(f"line {line}", message, "remove it, or write it as an element")

    def _end(self, _: str) -> None:
        if self._depth == 4:
            self._name = ""
        elif self._depth == 3 and self._shape is not None:
            self._take(*self._shape)
            self._shape = None
        elif self._depth == 2:
            self._part = ""
        self._depth -= 1

    def _start_root(self, name: str) -> None:
        if name == "annotations":
            return
        note = {
            "annotation": ", as in VOC annotations (read their folder with --format voc)",
            "html": " (an HTML page?)",
        }.get(name.lower(), "")
        self._stop(
            f"not a CVAT export: the root is <{name[:_SHOWN]}>{note}",
            "expected <annotations>",
        )

    def _start_part(self, name: str, attributes: dict[str, str]) -> None:
        self._part = name
        if name == "track":
            self._stop(
                "contains a <track>: this is CVAT for video, which has no image names",
                "export the task again, as CVAT for images 1.1",
            )
        if name != "image":
            return
        line = self._parser.CurrentLineNumber
        file = attributes.get("name", "")
        stem = without_suffix(file.replace("\\", "/"))
        if not stem.strip():
            self._add(f"line {line}", "<image> has no name", "write its file name")
        elif stem in self.lines:
            other = self.attributes[stem]["name"]
            note = "" if other == file else f", as {quote(other)}"
            self._add(
                f"line {line}",
                f"duplicate image {quote(file)} (also at line {self.lines[stem]}{note})",
                "keep one of them; export the tasks of a project one by one",
            )
        # Boxes of an unnamed or duplicate image are read only to report their problems.
        self.lines.setdefault(stem, line)
        self.attributes.setdefault(stem, attributes)
        try:
            size = _side("width", attributes), _side("height", attributes)
        except FaultError as fault:
            size = math.nan, math.nan
            self._add(f"line {line}", f"image {quote(file)}: {fault.message}", fault.hint)
        self.images.setdefault(stem, size)

    def _take(self, name: str, attributes: Attributes, line: int) -> None:
        if name == "tag":
            self.tags += 1
            return
        try:
            label = attributes.get("label", "")
            if not label.strip():
                raise FaultError("has no label", "write the name of its class")
            box, corners = _READERS.get(name, _read_points)(name, attributes, self.shapes)
            flags = [flag for item in self._extra.items() if (flag := self._flag(*item))]
            score = self._score(attributes) if self.scored else 0.0
            self.add(line, label, box, score, flags, corners=corners)
            values = self.object_attributes.values(
                lambda attribute: self._extra.get(attribute, attributes.get(attribute))
            )
            self.object_attributes.append(values)
        except FaultError as fault:
            self._add(f"line {line}", f"<{name[:_SHOWN]}> {fault.message}", fault.hint)
        if self.too_many():
            raise _StopError

    def _flag(self, name: str, value: str) -> str:
        try:
            return self.flags.flag_of(name, value)
        except ValueError:
            raise FaultError(
                f"flag {quote(name)} is {quote(value)}",
                "expected true or false, yes or no, 1 or 0",
            ) from None

    def _score(self, attributes: Attributes) -> float:
        for name in _SCORES:
            text = attributes.get(name, self._extra.get(name))
            if text is not None:
                return number_of(name, text.strip())
        raise FaultError(
            "has no score (ground truth?)",
            "write an attribute score or confidence",
        )


# --- shapes to boxes


def _side(name: str, attributes: Attributes) -> float:
    """Return the image's width or height in pixels, NaN if unknown."""
    text = attributes.get(name, "")
    value = number_of(name, text) if text else math.nan
    if value < 0:
        raise FaultError(f"{name} {value:g} is negative", "write the size in pixels")
    return value or math.nan


def _required(attributes: Attributes, names: tuple[str, ...]) -> list[float]:
    values = []
    for name in names:
        if name not in attributes:
            raise FaultError(f"has no {name}", f"write {', '.join(names)}")
        values.append(number_of(name, attributes[name]))
    return values


def _rotation(attributes: Attributes) -> float:
    """Return the clockwise rotation about the center, in degrees."""
    text = attributes.get("rotation")
    return number_of("rotation", text) if text else 0.0


def _refuse_shape(shapes: str) -> None:
    if shapes != "bbox":
        raise FaultError("is not a box", BBOX_HINT)


BoxAndCorners = tuple[list[float], list[list[float]] | None]
"""A bounding box, and the corners if it is that of a rotated box."""


def _read_box(_: str, attributes: Attributes, __: str) -> BoxAndCorners:
    angle = _rotation(attributes)
    box = _required(attributes, CORNERS)
    if not angle % 360:
        return box, None
    left, top, right, bottom = box
    center = (left + right) / 2, (top + bottom) / 2
    corners = rotated_box(*center, right - left, bottom - top, angle)
    return bounds(corners), corners


def _read_ellipse(_: str, attributes: Attributes, shapes: str) -> BoxAndCorners:
    _refuse_shape(shapes)
    x, y, across, down = _required(attributes, ("cx", "cy", "rx", "ry"))
    return rotated_ellipse(x, y, 2 * across, 2 * down, _rotation(attributes)), None


def _read_mask(_: str, attributes: Attributes, shapes: str) -> BoxAndCorners:
    _refuse_shape(shapes)
    left, top, width, height = _required(attributes, ("left", "top", "width", "height"))
    return [left, top, left + width, top + height], None


def _read_points(name: str, attributes: Attributes, shapes: str) -> BoxAndCorners:
    if name not in _POINTS:
        message = "is not supported" if name in _UNREAD else "is an unknown shape"
        raise FaultError(message, "remove it, or draw a box")
    _refuse_shape(shapes)
    points = []
    for pair in filter(None, attributes.get("points", "").split(";")):
        numbers = pair.split(",")
        if len(numbers) != 2:
            raise FaultError(f"has a point {quote(pair)}", "write points as x,y;x,y")
        points.append([number_of("point", text.strip()) for text in numbers])
    if len(points) < _POINTS[name]:
        message = f"has {len(points)} points, expected {_POINTS[name]}"
        raise FaultError(message, "draw it again")
    return bounds(points), None


_READERS: dict[str, Callable[[str, Attributes, str], BoxAndCorners]] = {
    "box": _read_box,
    "ellipse": _read_ellipse,
    "mask": _read_mask,
}
