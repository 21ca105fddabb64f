"""Supervisely: a JSON file per image, in the ``ann`` folder of a data set.

Reference: Supervisely's documentation, "Annotation JSON format" and "Project structure".
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from detap.errors import Note
from detap.formats.content import (
    Content,
    check_file_names,
    rounded_areas,
    scores_of,
)
from detap.formats.reading.sniffing import first_files_fit, json_paths
from detap.formats.shapes.document import (
    SCORES,
    Document,
    DocumentFormat,
    Image,
    Item,
    json_line,
    refuse_stdin,
    written_images,
)
from detap.formats.shapes.values import (
    check_points,
    class_name,
    json_value,
    list_in,
    located,
    object_of,
    points_of,
    points_text,
    required,
    value_text,
)
from detap.formats.stem_matching import base_name, without_suffix
from detap.formats.text.folder import Folder, files_of, one_file
from detap.io.problems import FaultError
from detap.io.stream import read_bytes, refuse
from detap.tables.detection import Detections, GroundTruth

_FOLDER, _META = "ann", "meta.json"
_TAGS = {"crowd": "iscrowd", "difficult": "difficult", "ignore": "ignore"}
_POINTS = {"polygon": 3, "line": 2, "point": 1}


class Annotations(Document):
    """The files of a project, a data set, its folder ``ann``, or one file.

    The name of an image is that of its JSON without suffixes, with the folder of its data set if
    two data sets have the same name. Tags are attributes.
    """

    expected = 'expected {"size": {"height": ..., "width": ...}, "objects": [...]}'
    objects_key = "objects"

    def folders(self) -> list[Folder]:
        """Return the annotation files of each data set; read the classes of the project."""
        folders = _folders(self.given)
        self.problems.file = file = os.path.join(self.given, _META)
        with self.problems.collected():
            data = read_bytes(file, self.limits) if os.path.isfile(file) else b"{}"
            read, _ = json_value(data, self.problems, self.limits, "export it again")
            classes = read.get("classes") if isinstance(read, dict) else None
            for where, record in located("classes", classes if isinstance(classes, list) else ()):
                with self.problems.collected(where):
                    self.classes[class_name(object_of(record), "title")] = None
        return folders

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of a file."""
        size = object_of(record.get("size") or {})
        objects = located("objects", record["objects"])
        return Image(self.name, objects, size.get("width"), size.get("height"), _tags(record))

    def item_of(self, record: Any) -> Item:
        """Return the object of a record."""
        label = class_name(record, "classTitle")
        kind = record.get("geometryType")
        points = required(record, "points", dict, "expected {exterior, interior}")
        if kind not in ("rectangle", *_POINTS):
            message = f"geometryType is {value_text(record, 'geometryType')}"
            raise FaultError(message, "use rectangle or polygon")
        corners = points_of(points.get("exterior"), "points.exterior")
        if kind == "rectangle" and len(corners) != 2:
            raise FaultError(f"has {points_text(corners)} as a rectangle", "expected two corners")
        if kind != "rectangle":
            self.refuse_shape(kind)
            check_points(corners, kind, _POINTS[kind])
        return Item(label, corners, _tags(record))


class Supervisely(DocumentFormat):
    """Supervisely's projects; detections may have a tag with their score."""

    document = Annotations
    has_attributes = True
    coordinates = "points"
    image_folders = ("../img", ".")
    written = ("annotations", "detections")
    lost_flags = ("group_of",)
    writes_unused_classes = True

    def fits(self, path: str) -> bool:
        """Return True if a file, or the first few of a folder, are Supervisely's annotations.

        The folder is a project with ``meta.json``, a data set with ``ann``, or ``ann``.
        """
        if not os.path.isdir(path):
            paths = json_paths(path)
            sized = {".size.height", ".size.width"} <= paths
            return ".objects" in paths and (sized or ".objects[].classTitle" in paths)
        if ".classes[].title" in json_paths(os.path.join(path, _META)):
            return True
        inside = os.path.join(path, _FOLDER)
        return first_files_fit(inside if os.path.isdir(inside) else path, self.fits)

    def files(
        self, content: Content, table: GroundTruth | Detections, notes: list[Note]
    ) -> Iterator[tuple[str, bytes]]:
        """Yield the files of a project; flags and scores are tags."""
        suffixes = [
            base_name(content.file_name(name)).rpartition(".")[2] for name in content.images
        ]
        names = [f"{stem}.{end}" for stem, end in zip(content.stems(), suffixes, strict=True)]
        check_file_names(content, names, "image")
        notes += rounded_areas(table, "boxes")
        folder = self.written[isinstance(table, Detections)]
        classes = [{"title": name, "shape": "rectangle"} for name in table.classes]
        yield f"{folder}/meta.json", json_line({"classes": classes, "tags": []})
        corners, labels = table.corners.tolist(), table.label.tolist()
        flags: dict[str, list[Any]] = {}
        if isinstance(table, GroundTruth):
            flags = {tag: getattr(table, name).tolist() for name, tag in _TAGS.items()}
        scores = scores_of(table)

        def item(row: int) -> dict[str, Any]:
            values: dict[str, Any] = dict.fromkeys(tag for tag in flags if flags[tag][row])
            values |= {} if scores is None else {"confidence": scores[row]}
            return {
                "classTitle": table.classes[labels[row]],
                "geometryType": "rectangle",
                "tags": [{"name": tag, "value": value} for tag, value in values.items()],
                "points": {"exterior": [corners[row][:2], corners[row][2:]], "interior": []},
            }

        images = written_images(content, table)
        for name, (_, size, rows) in zip(names, images, strict=True):
            sides = {} if size is None else {"size": {"height": size[1], "width": size[0]}}
            record = {"tags": [], **sides, "objects": [*map(item, rows)]}
            yield f"{folder}/ds0/ann/{name}.json", json_line(record)


def _tags(record: dict[str, Any]) -> dict[str, Any]:
    """Return the values of tags by name; True for a tag without value."""
    values = {}
    for tag in map(object_of, list_in(record, "tags")):
        value = tag.get("value")
        name = class_name(tag, "name")
        values[name] = True if value is None and name not in SCORES else value
    return values


def _folders(path: str) -> list[Folder]:
    """Return the annotation files of each data set, or a single file."""
    refuse_stdin(path, "Supervisely's files")
    if file := one_file(path):
        return [file]
    inside = []
    for above, names, _ in os.walk(path):
        if _FOLDER in names:
            inside.append(os.path.relpath(os.path.join(above, _FOLDER), path))
            names[:] = {*names} - {_FOLDER, "img"}
    if not inside and not os.path.isfile(os.path.join(path, _META)):
        inside = [""]
    folders = [files_of(path, name, ".json") for name in sorted(inside)]
    if not any(folder.members for folder in folders):
        message = f"no annotations: no file in a folder {_FOLDER} ends with .json"
        refuse(path, message, "use the folder of the project or data set")
    counts = Counter(without_suffix(name) for folder in folders for name in folder.members)
    for n, folder in enumerate(folders):  # names that repeat get that of their data set
        data_set = os.path.basename(os.path.dirname(folder.path))
        members = {
            f"{data_set}/{name}" if counts[without_suffix(name)] > 1 else name: member
            for name, member in folder.members.items()
        }
        folders[n] = replace(folder, members=members)
    return folders
