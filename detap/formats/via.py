"""VGG Image Annotator (VIA) 1 to 3: JSON, project or CSV.

References: VGG Image Annotator (VIA) 2.0.12, its export and import of annotations; VIA 3, the
project file of its image and video annotator.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from detap.errors import Note
from detap.formats.content import Content, scores_of
from detap.formats.reading.sniffing import head, json_paths
from detap.formats.shapes.document import (
    Document,
    DocumentFormat,
    Image,
    Item,
    json_line,
    written_images,
)
from detap.formats.shapes.values import (
    as_xywh,
    bounds,
    class_name,
    finite_number,
    numbers,
    object_of,
    required,
    rotated_ellipse,
    value_text,
)
from detap.formats.text.csv_rows import Row, read_csv
from detap.formats.text.lines import number_of
from detap.formats.xywh import to_xywh
from detap.io.file_kinds import BYTE_ORDER_MARK
from detap.io.json_text import integer, short_json
from detap.io.problems import FaultError, Problems
from detap.tables.detection import Detections, GroundTruth
from detap.text_input import join_names, quote

_COLUMNS = (
    *("filename", "file_size", "file_attributes", "region_count", "region_id"),
    *("region_shape_attributes", "region_attributes"),
)
_PROJECT = "_via_img_metadata"
_POINTS = {"polygon": 3, "polyline": 2}
_RADII = {"point": (), "circle": ("r",), "ellipse": ("rx", "ry")}
_XYWH = ("x", "y", "width", "height")
_SKIPPED = "segments of videos, and shapes that enclose nothing, are left out"
_EXPECTED = "export the annotations again, as CSV"


class Regions(Document):
    """The regions of a file; the name of an image is its ``filename`` without the suffix."""

    box_format = "xywh"
    expected = "expected VIA's annotations in JSON or CSV, or its project"
    noted = (Note("tags-skipped", _SKIPPED, severity="info"),)

    def __init__(self, *arguments: Any, class_attribute: str | None = None, **how: Any) -> None:
        super().__init__(*arguments, **how)
        self.class_attribute = class_attribute or ""  # by default the only one

    def parse(self, data: bytes) -> Any:
        """Return the records of the images: a list of location and record."""
        if not data.removeprefix(BYTE_ORDER_MARK).lstrip().startswith((b"{", b"[")):
            return _records_of(*read_csv(data, self.problems, self.expected), self.problems)
        content = super().parse(data)
        if isinstance(content, dict) and {"file", "metadata"} <= content.keys():
            return self._records_of_project(content)
        images = content.get(_PROJECT, content) if isinstance(content, dict) else content
        records = object_of(images, self.expected).items()
        return [(short_json(key), record) for key, record in records]

    def _records_of_project(self, content: dict[str, Any]) -> list[tuple[str, Any]]:
        """Return the location and record of each image of VIA 3, as VIA 2 has them.

        A metadata is a shape in the image of a view, or a segment of a video. The keys of
        ``regions`` are their locations.
        """
        files, views, shapes, attributes = (
            {key: object_of(value, self.expected) for key, value in members.items()}
            for members in (
                object_of(content.get(name) or {}, self.expected)
                for name in ("file", "view", "metadata", "attribute")
            )
        )
        regions: dict[str, dict[str, Any]] = {number: {} for number in files}
        for key, metadata in shapes.items():
            where = f"metadata[{short_json(key)}]"
            with self.problems.collected(where):
                number = _file_of(metadata, views, files)
                shape = _shape_of(required(metadata, "xy", list, "expected the numbers of a shape"))
                if shape is None or metadata.get("z"):
                    self.counts["tags-skipped"] += 1
                    continue
                chosen = object_of(metadata.get("av") or {})
                named = (_named(name, attributes.get(name, {}), chosen[name]) for name in chosen)
                region = {"shape_attributes": shape, "region_attributes": dict(named)}
                regions[number][where] = region
        records = {n: {"filename": files[n].get("fname"), "regions": regions[n]} for n in files}
        return [(f"file {short_json(number)}", record) for number, record in records.items()]

    def images_of(self, content: Any, file: str) -> Iterator[tuple[str, Any]]:
        """Yield the location and record of each image; find the class attribute."""
        names = sorted({name for _, record in content for name in _attributes(record)})
        if not self.class_attribute and not self.images_only:
            if len(names) > 1:
                message = f"regions have several attributes: {join_names(names)}"
                raise FaultError(message, "choose that of the class with --class-attribute")
            self.class_attribute = "".join(names)
        yield from content

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of a record."""
        regions = required(object_of(record), "regions", dict | list, "expected a list")
        attributes = object_of(record.get("file_attributes") or {})
        items = regions.items() if isinstance(regions, dict) else enumerate(regions)
        is_located = location.startswith(("line ", "file "))  # the keys of regions are locations
        prefix, end = ("", "") if is_located else (f"{location}.regions[", "]")
        objects = ((f"{prefix}{n}{end}", item) for n, item in items)
        return Image(record.get("filename"), objects, attributes=attributes)

    def item_of(self, record: Any) -> Item:
        """Return the object of a region."""
        attributes = required(record, "region_attributes", dict, "expected an object")
        shape = required(record, "shape_attributes", dict, "expected an object")
        label, kind = self._label(attributes), shape.get("name")
        if kind == "rect":
            return Item(label, [*numbers(shape, *_XYWH)], attributes)
        if kind not in (*_POINTS, *_RADII):
            raise FaultError(f"shape is {value_text(shape, 'name')}", "use rect")
        self.refuse_shape(kind)
        return Item(label, _points(kind, shape), attributes)

    def score_number(self, name: str, value: Any) -> float:
        """Return a score as a number; attributes are text."""
        read = number_of if isinstance(value, str) else super().score_number
        return read(name, value)

    def _label(self, attributes: dict[str, Any]) -> str:
        name = self.class_attribute
        if not name:
            raise FaultError("has no region attribute", "set one that names its class")
        value = attributes.get(name)
        if isinstance(value, dict):  # a checkbox
            value = [option for option, is_set in value.items() if is_set is True]
            if len(value) != 1:
                message = f"{name} has {len(value)} options set"
                raise FaultError(message, "set exactly one")
            attributes = {name: value[0]}
        return class_name(attributes, name)


def _attributes(record: Any) -> Iterator[str]:
    """Yield the names of attributes of an image's regions, unchecked."""
    regions = record.get("regions") if isinstance(record, dict) else None
    items = [*regions.values()] if isinstance(regions, dict) else regions
    for region in items if isinstance(items, list) else ():
        attributes = region.get("region_attributes") if isinstance(region, dict) else None
        yield from attributes if isinstance(attributes, dict) else ()


def _points(kind: str, shape: dict[str, Any]) -> list[list[float]]:
    """Return the points of a shape, or the corners of the box around it."""
    if kind in _POINTS:
        across, down = (required(shape, f"all_points_{k}", list, "expected a list") for k in "xy")
        if len(across) != len(down) or len(across) < _POINTS[kind]:
            message = f"has {len(across)} x and {len(down)} y of points"
            raise FaultError(message, f"expected at least {_POINTS[kind]} of each")
        return [
            [finite_number(f"all_points[{n}]", value) for value in point]
            for n, point in enumerate(zip(across, down, strict=True))
        ]
    x, y = numbers(shape, "cx", "cy")
    radii = dict(zip(_RADII[kind], numbers(shape, *_RADII[kind]), strict=True))
    for name, radius in radii.items():
        if radius < 0:
            raise FaultError(f"{name} {radius:g} is negative", "use a positive radius")
    rx, ry = ([*radii.values()] * 2 or [0.0, 0.0])[:2]
    angle = finite_number("theta", shape.get("theta", 0))  # in radians
    return rotated_ellipse(x, y, 2 * rx, 2 * ry, math.degrees(angle))


# --- VIA 3

_SHAPES_3 = {
    2: ("rect", ("x", "y", "width", "height")),
    3: ("circle", ("cx", "cy", "r")),
    4: ("ellipse", ("cx", "cy", "rx", "ry")),
}
"""The shapes with a fixed number of numbers, as VIA 2 names them."""
_POLYGON, _EXTREME = 7, 8  # a rectangle by points on its sides


def _file_of(metadata: dict[str, Any], views: dict[str, Any], files: dict[str, Any]) -> str:
    """Return the only file of a metadata's view."""
    view = views.get(str(metadata.get("vid")))
    if view is None:
        raise FaultError(f"vid is {value_text(metadata, 'vid')}", "expected the key of a view")
    shown = [str(number) for number in required(view, "fid_list", list, "expected a list")]
    if len(shown) != 1 or shown[0] not in files:
        raise FaultError(f"its view has the files {short_json(shown)}", "expected one")
    return shown[0]


def _named(number: str, attribute: dict[str, Any], value: Any) -> tuple[str, Any]:
    """Return the name and value of an attribute; the chosen options of several as an object."""
    name, options = str(attribute.get("aname", number)), attribute.get("options")
    if not isinstance(options, dict) or not isinstance(value, str):
        return name, value
    keys = [key for key in value.split(",") if key in options]
    if len(keys) > 1:
        return name, {str(options[key]): True for key in keys}
    return name, options.get(value, value)


def _shape_of(xy: list[Any]) -> dict[str, Any] | None:
    """Return a shape as VIA 2 writes it; None if it encloses nothing."""
    kind = next(iter(xy), None)
    values = [finite_number(f"xy[{n}]", value) for n, value in enumerate(xy[1:], 1)]
    if kind in (_POLYGON, _EXTREME):
        if len(values) % 2 or len(values) < 4:
            message = f"xy has {len(values)} coordinates"
            raise FaultError(message, "write x1, y1, x2, y2, ...")
        across, down = values[::2], values[1::2]
        if kind == _POLYGON:
            return {"name": "polygon", "all_points_x": across, "all_points_y": down}
        kind, values = 2, as_xywh(bounds([*zip(across, down, strict=True)]))
    if kind not in _SHAPES_3:
        return None
    name, keys = _SHAPES_3[kind]
    if len(values) != len(keys):
        message = f"xy has {len(values)} numbers after the kind of shape"
        raise FaultError(message, f"expected {len(keys)}")
    return {"name": name, **dict(zip(keys, values, strict=True))}


# --- CSV


def _records_of(header: list[str], rows: list[Row], problems: Problems) -> list[tuple[str, Any]]:
    """Return the location and record of each image; the keys of ``regions`` are locations."""
    missing = [name for name in _COLUMNS if name not in header]
    for name in missing:
        problems.add_here("line 1", f"has no column {name}", _EXPECTED)
    images: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in [] if missing else rows:
        images[row.values["filename"], row.values["file_size"]].append(row)
    records = []
    for (name, _), of_image in images.items():
        where = f"line {of_image[0].line}"
        with problems.collected(where):
            record = {"filename": name, "file_attributes": _cell(of_image[0], "file_attributes")}
            count = of_image[0].values["region_count"]
            if count != str(len(of_image)) and (count, len(of_image)) != ("0", 1):
                message = f"region_count of {quote(name)} is {quote(count)}, rows: {len(of_image)}"
                raise FaultError(message, _EXPECTED)
            record["regions"] = {
                f"line {row.line}": {
                    "shape_attributes": _cell(row, "region_shape_attributes"),
                    "region_attributes": _cell(row, "region_attributes"),
                }
                for row in (of_image if count != "0" else ())
            }
            records.append((where, record))
    return records


def _cell(row: Row, name: str) -> Any:
    """Return the JSON object in a cell."""
    text = row.values[name]
    try:
        value = json.loads(text, parse_int=integer)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        message = f"{name} of line {row.line} is {quote(text[:60])}"
        raise FaultError(message, "expected a JSON object")
    return value


class Via(DocumentFormat):
    """VIA's annotations in JSON or CSV, or a project; image sizes are unknown."""

    document = Regions
    has_attributes = True
    boxes = ("xywh",)
    coordinates = "x, y, width, height"
    image_folders = (".", "images")
    written = ("via_region_data.json", "via_detections.json")

    def fits(self, path: str) -> bool:
        """Return True if a CSV has VIA's header, or a JSON file its keys."""
        if path.lower().endswith((".csv", ".csv.gz")):
            line = head(path).removeprefix(BYTE_ORDER_MARK).lstrip(b"# ").partition(b"\n")[0]
            return {b"filename", b"region_shape_attributes"} <= {*line.strip().split(b",")}
        paths = json_paths(path)
        ends = (".regions", ".base64_img_data")
        images = (name.rpartition(".")[0] for name in paths if name.endswith(ends))
        return (
            "._via_settings" in paths
            or f".{_PROJECT}" in paths
            or {".project", ".config"} <= paths
            or (".file" in paths and any(name.endswith(".fname") for name in paths))
            or any(f"{one}.filename" in paths for one in images if one and "[]" not in one)
        )

    def text(self, content: Content, table: GroundTruth | Detections, notes: list[Note]) -> bytes:
        """Return the file; the size of image files is unknown and written as 0."""
        if scores_of(table) is not None:
            raise content.refuse("VIA cannot hold scores", "convert the ground truth alone")
        boxes = to_xywh(table.corners, table.box_area)[0].tolist()
        labels = table.label.tolist()

        def region(row: int) -> dict[str, Any]:
            shape = {"name": "rect", **dict(zip(_XYWH, boxes[row], strict=True))}
            label = {"label": table.classes[labels[row]]}
            return {"shape_attributes": shape, "region_attributes": label}

        return json_line(
            {
                f"{file}0": {
                    "filename": file,
                    "size": 0,
                    "regions": [*map(region, rows)],
                    "file_attributes": {},
                }
                for file, _, rows in written_images(content, table)
            }
        )
