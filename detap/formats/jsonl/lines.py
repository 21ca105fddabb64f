"""Read and check lines, each an image with its objects, into columns."""

import json
import math
import os
from bisect import bisect_right
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.formats.coco.records import attribute_column
from detap.formats.coco.values import (
    WHOLE_FLOATS,
    Record,
    area_of,
    box_of,
    check_text,
    flag_of,
    identifier_of,
    required,
    score_of,
    size_of,
)
from detap.formats.json._fields import DONE, ODD, Fields, Reader
from detap.formats.json.document import Ids, RecordProblems, loaded
from detap.formats.reading.attributes import Attributes
from detap.formats.stem_matching import base_name, without_suffix
from detap.io.digest import read_hashed
from detap.io.json_text import (
    HOLDS_CONSTANTS,
    JsonText,
    NotJsonError,
    decode,
    looks_like,
    refuse_utf16,
    short_json,
)
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.io.problems import FaultError, Problems
from detap.tables.detection import Flags, Floats, Integers, Name

SHAPE = 'expected {"file_name": ..., "objects": {"bbox": [[...], ...], "category": [...]}}'
FLAGS = ("iscrowd", "ignore", "isgroupof", "difficult")
_CLASSES = ("category", "categories", "category_id", "label", "labels")
"""Keys for the list of classes."""


class Lines:
    """The content of a file: I images with N boxes of K classes, in file order.

    Lines are read into columns, the odd ones by `json.loads`. Objects have a score if `scored`.
    """

    images: list[Name]
    file_names: dict[Name, str]  # of the images that have one
    sizes: Floats  # (I, 2): width and height, NaN if unknown
    numbers: NDArray[np.int64]  # (I,): the line of each image
    end: NDArray[np.int64]  # (I,): the end of the rows of each image
    classes: list[Name]
    label: Integers  # index into `classes`
    box: Floats  # as written
    area: Floats  # NaN if a box has none of its own
    score: Floats  # 0 for ground truth
    flags: dict[str, Flags]

    def __init__(
        self, path: Path, limits: Limits, *, scored: bool, attributes: tuple[str, ...] = ()
    ) -> None:
        self.path, self.limits, self.scored = os.fspath(path), limits, scored
        self.data, self.sha256 = read_hashed(self.path, limits)
        self.problems = RecordProblems(limits.problems, self.path)
        self.attributes = Attributes(attributes)
        self.faulty: set[int] = set()
        self.lines = Fields(
            [
                *(("image_id", "key"), ("file_name", "key"), ("objects", "span")),
                *(("width", "number"), ("height", "number")),
            ],
            [("objects",), ("image_id", "file_name")],
        )
        self.objects = Fields(
            [
                *((_CLASSES, "key"), ("bbox", "box"), ("area", "area"), ("score", "score")),
                *((name, "flag") for name in FLAGS),
                *(((attribute_column(name), name), "span") for name in attributes),
            ],
            [("category",), ("bbox",), *((("score",),) if scored else ())],
            forbidden=() if scored else ("score",),
        )
        self.objects.most = limits.records
        self.objects.each |= not {*_CLASSES, "bbox", "area", "score", *FLAGS}.isdisjoint(attributes)
        self._read()

    def _read(self) -> None:
        """Read all lines; raise InputError if the content is invalid."""
        refuse_utf16(self.data, self.path)
        reader = Reader(BytesIO(self.data).read, len(self.data), self.limits.nesting)
        reader.begin()
        state = None
        while state != DONE and self.objects.rows <= self.limits.records:
            state = reader.walk_lines(self.lines)
            self._read_objects()
            if state == ODD and not self._read_odd(reader.rest_of_line(), reader.line):
                break
        self._name_images()
        if not self.images and not self.problems.count:
            self.problems.add_here("", "is empty", SHAPE)
        self.problems.raise_any()
        self._take_columns()

    def __len__(self) -> int:
        return len(self.label)

    @property
    def image(self) -> Integers:
        """The index of the image of each box."""
        counts = np.diff(self.end, prepend=0)
        return np.repeat(np.arange(len(counts), dtype=np.int32), counts)

    def location(self, row: int) -> str:
        """Return the line of a box and its index there."""
        image = int(np.searchsorted(self.end, row, side="right"))
        first = int(self.end[image - 1]) if image else 0
        return f"line {self.numbers[image]}: objects[{row - first}]"

    def _read_objects(self) -> None:
        """Read the objects of the next rows of lines."""
        lines, objects, nesting = self.lines, self.objects, self.limits.nesting
        while not objects.read_nested(lines, "objects", nesting) and self._has_room():
            row = objects.mark_total
            try:
                self._append_objects(_objects(loaded(lines, "objects", row)))
            except FaultError as wrong:
                self._refuse_row(row, wrong)
            objects.mark(objects.rows)
            if not self._has_room():
                break
        self._drain()

    def _has_room(self) -> bool:
        """Return False, and add a problem, if there are too many objects."""
        if self.objects.rows <= self.limits.records:
            return True
        line = self.lines.mark_at(self.objects.mark_total - 1)
        self.problems.at(line, f"line {line}", *self.limits.exceeded)
        return False

    def _drain(self) -> None:
        """Read the attributes of the next objects."""
        objects, names = self.objects, self.attributes.names
        for row in range(objects.drained, objects.rows if names else 0):
            record = {name: loaded(objects, attribute_column(name), row) for name in names}
            try:
                self.attributes.append(self.attributes.values(record.get))
            except FaultError as wrong:
                ends = [objects.mark_at(k) for k in range(objects.mark_total)]
                group = bisect_right(ends, row)
                first = ends[group - 1] if group else 0
                self._refuse_row(group, _within(row - first, wrong))
        self.lines.drain()
        objects.drain()

    def _read_odd(self, line: bytes, number: int) -> bool:
        """Read a line by `json.loads`; return False if nothing after it is to be read."""
        try:
            text = line.decode()
        except UnicodeDecodeError:
            decode(self.data, self.path)
            raise
        if not text.strip():
            return True
        try:
            self._append(self._record(text, number), number)
        except NotJsonError as error:
            name, hint = looks_like(self.data) if number == 1 else ("", "")
            if name and name != "JSON Lines":
                self.problems.add_first("", f"looks like {name}", hint)
                return False
            self.problems.at(number, f"line {number}", error.message, error.hint)
        except FaultError as wrong:
            self._refuse(number, wrong)
        return self._has_room() if self.objects.mark_total else True

    def _record(self, text: str, number: int) -> Record:
        faults = Problems(1, "")
        cursor = JsonText(text, faults)
        cursor.peek()
        value = cursor.value("")
        cursor.finish()
        if cursor.constants:
            raise FaultError(*HOLDS_CONSTANTS)
        for problem in faults.listed:
            self.problems.at(number, f"line {number}", problem.message, problem.hint)
        if not isinstance(value, dict):
            raise FaultError(f"is {short_json(value)}, expected an object", SHAPE)
        return value

    def _append(self, record: Record, number: int) -> None:
        """Append a line and its objects."""
        if "objects" not in record and "bbox" in record:
            message = "is a single box, expected an image with its objects"
            raise FaultError(message, f"{SHAPE}; for a list of results use COCO JSON")
        values: dict[str, Any] = {"image_id": image_of(record)}
        objects = _objects(required(record, "objects"))
        values |= {side: size_of(record.get(side)) for side in ("width", "height")}
        if isinstance(record.get("file_name"), str):
            values["file_name"] = record["file_name"]
        self.lines.append(values)
        self.lines.mark(number)
        try:
            self._append_objects(objects)
        finally:
            self.objects.mark(self.objects.rows)
            self._drain()

    def _append_objects(self, objects: list[Mapping[str, Any]]) -> None:
        for index, item in enumerate(objects):
            try:
                self.objects.append(self._values(item))
            except FaultError as wrong:
                raise _within(index, wrong) from None

    def _values(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of an object; null is no value."""
        record = {name: value for name, value in item.items() if value is not None}
        key = next((name for name in _CLASSES if name in record), "category")
        values: dict[str, Any] = {"category": identifier_of(record, key), "bbox": box_of(record)}
        if "area" in record:
            values["area"] = area_of(record, 1.0, math.nan)
        values |= {name: flag_of(record, name) for name in FLAGS if name in record}
        if self.scored:
            values["score"] = score_of(required(record, "score"))
        elif "score" in record:
            raise FaultError("has a score (detections?)", "use the ground truth")
        self.attributes.values(record.get)
        names = (name for name in self.attributes.names if name in record)
        return values | {
            attribute_column(name): json.dumps(record[name]).encode() for name in names
        }

    def _refuse(self, number: int, error: FaultError) -> None:
        """Add the first problem of a line."""
        if number in self.faulty:
            return
        self.faulty.add(number)
        self.problems.at(number, f"line {number}", error.message, error.hint)

    def _refuse_row(self, row: int, error: FaultError) -> None:
        """Add a problem of the objects of a line, unless its image has one."""
        try:
            self._image(row)
        except FaultError as first:
            error = first
        self._refuse(self.lines.mark_at(row), error)

    def _image(self, row: int) -> Name:
        image: Name | None = self.lines.key_of("image_id", row)
        return (
            image_of({"file_name": self.lines.key_of("file_name", row)}) if image is None else image
        )

    def _name_images(self) -> None:
        """Set the image of each line, and the file names; add problems of equal ones."""
        images: dict[Name, None] = {}
        self.file_names = {}
        for row in range(self.lines.rows):
            try:
                image = self._image(row)
                if image in images:
                    message = f"duplicate image {short_json(image)}"
                    raise FaultError(message, "keep one line per image")
            except FaultError as wrong:
                self._refuse(self.lines.mark_at(row), wrong)
                continue
            images[image] = None
            name = self.lines.key_of("file_name", row)
            if isinstance(name, str):
                self.file_names[image] = name
        self.images = list(images)

    def _take_columns(self) -> None:
        self.data = b""  # frees it before the tables are made
        lines, objects = self.lines, self.objects
        sides = [np.asarray(lines.take(side)) for side in ("width", "height")]
        self.sizes = np.stack(sides, axis=1)
        with np.errstate(invalid="ignore"):
            self.sizes[~((self.sizes > 0) & (self.sizes < WHOLE_FLOATS))] = np.nan
        self.numbers, self.end = np.asarray(lines.marks()), np.asarray(objects.marks())
        label = Ids(objects, "category")
        self.classes, self.label = label.names, label.rows
        self.box = np.asarray(objects.take("bbox")).reshape(-1, 4)
        self.area, self.score = (np.asarray(objects.take(name)) for name in ("area", "score"))
        if not self.scored:
            self.score = np.zeros(len(self.area))
        self.flags = {name: np.asarray(objects.take(name)) for name in FLAGS}


def _within(index: int, error: FaultError) -> FaultError:
    return FaultError(f"objects[{index}]: {error.message}", error.hint)


def image_of(record: Record) -> Name:
    """Return the image's id, or the stem of its file name."""
    if "image_id" in record:
        return identifier_of(record, "image_id")
    name = record.get("file_name")
    if not isinstance(name, str) or not name:
        raise FaultError("has neither image_id nor file_name", SHAPE)
    check_text("file_name", name)
    return without_suffix(base_name(name))


def _objects(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects of a list of objects or of an object of lists."""
    if isinstance(value, list):
        for item in value:
            if not isinstance(item, dict):
                raise FaultError(f"objects contains {short_json(item)}", SHAPE)
        return value
    if not isinstance(value, dict) or not isinstance(value.get("bbox"), list):
        raise FaultError(f"objects is {short_json(value)}", SHAPE)
    lists = {name: values for name, values in value.items() if isinstance(values, list)}
    rows = len(value["bbox"])
    for name, values in lists.items():
        if len(values) != rows:
            raise FaultError(
                f"objects.{name} has {len(values)} values, objects.bbox has {rows}",
                "write one value per object",
            )
    return [{name: values[row] for name, values in lists.items()} for row in range(rows)]
