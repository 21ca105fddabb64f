"""JSON Lines as in Hugging Face datasets: COCO's keys, one image per line, its boxes in lists."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.errors import Note
from detap.formats.base import Format
from detap.formats.by_name.notes import images_without_objects, nonzero_notes
from detap.formats.by_name.problems import refuse_empty
from detap.formats.coco import id_mapping
from detap.formats.coco.assembly import Source, detection_table, refuse_same_file, truth_table
from detap.formats.coco.columns import TruthColumns, detections_of, image_sizes
from detap.formats.coco.format import goes_by_names
from detap.formats.coco.records import (
    Columns,
    Record,
    check_area,
    check_text,
    identifier_of,
    required,
    size_of,
    values_of,
)
from detap.formats.json._fields import PADDED, Fields
from detap.formats.json.document import Ids, RecordProblems
from detap.formats.reading.attributes import Attributes
from detap.formats.stem_matching import base_name, empty_ground_truth, without_suffix
from detap.formats.text.class_names import ClassNames
from detap.io.digest import read_hashed
from detap.io.file_kinds import BYTE_ORDER_MARK
from detap.io.json_text import (
    HOLDS_CONSTANTS,
    JsonText,
    NotJsonError,
    decode,
    integer,
    looks_like,
    refuse_utf16,
    short_json,
)
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path, SourceFile
from detap.io.problems import FaultError, Problems
from detap.io.stream import read_bytes, refuse
from detap.tables._loops import survey_boxes
from detap.tables.columns import check_scores, indices_in, ordered
from detap.tables.detection import (
    Detections,
    Flags,
    Floats,
    GroundTruth,
    Integers,
    Name,
    encode_boxes,
)

SHAPE = 'expected {"file_name": ..., "objects": {"bbox": [[...], ...], "category": [...]}}'
FLAGS = {"iscrowd": "crowd", "ignore": "ignore", "isgroupof": "group_of", "difficult": "difficult"}
_COLUMNS: Columns = [
    (("category", "categories", "category_id", "label", "labels"), "key"),
    *(("bbox", "box"), ("area", "area"), ("score", "score")),
    *((name, "flag") for name in FLAGS),
]
"""Columns of objects, with the keys for the list of classes."""


class Lines:
    """The content of a file: I images with N boxes of K classes, with a score if `scored`."""

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
    flags: dict[str, Any]  # (N,) bool, by the names of the table's columns

    def __init__(
        self, path: Path, limits: Limits, *, scored: bool, attributes: tuple[str, ...] = ()
    ) -> None:
        self.path, self.limits, self.scored = os.fspath(path), limits, scored
        self.problems = RecordProblems(limits.problems, self.path)
        self.attributes = Attributes(attributes)
        self.lines = Fields(
            [
                *(("image_id", "key"), ("file_name", "key"), ("objects", "span")),
                *(("width", "number"), ("height", "number")),
            ],
            [("objects",), ("image_id", "file_name")],
        )
        self.lines.each |= bool(attributes)
        self.objects = Fields(_COLUMNS, [("category",), ("bbox",)])
        self.objects.most = limits.records
        self._read()

    def _read(self) -> None:
        """Read all lines; raise InputError if the content is invalid."""
        data, self.sha256 = read_hashed(self.path, self.limits)
        refuse_utf16(data, self.path)
        at = len(BYTE_ORDER_MARK) if data.startswith(BYTE_ORDER_MARK) else 0
        self._size, self._text = len(data), data + b"\n" + bytes(PADDED)
        del data  # one copy is enough
        lines, objects, nesting = self.lines, self.objects, self.limits.nesting
        odd_ends: dict[int, int] = {}  # of the rows of odd lines
        skipped: list[int] = []  # lines without a row
        while True:
            at = lines.read_lines(objects, "objects", self._text, at, nesting)
            number = lines.rows + len(skipped)
            if at >= self._size or objects.rows > objects.most:
                break
            end, number = self._text.index(b"\n", at), number + 1
            at = end + 1 if self._read_odd(self._text[at:end], number) else self._size
            if lines.rows + len(skipped) == number:
                odd_ends[lines.rows - 1] = objects.rows
            else:
                skipped.append(number)
        if objects.rows > objects.most:
            self.problems.at(number, f"line {number}", *self.limits.exceeded)
        self._text = b""  # frees it before the tables are made
        self.numbers = np.delete(np.arange(1, number + 1), np.array(skipped, np.intp) - 1)
        self.end = lines.take("objects")
        self.end[[*odd_ends]] = [*odd_ends.values()]
        self._name_images()
        if not self.images and not self.problems.count:
            self.problems.add_here("", "is empty", SHAPE)
        self.sizes = image_sizes(lines.take("width"), lines.take("height"))
        label = Ids(objects, "category")
        self.classes, self.label = label.names, label.rows
        self.box = objects.take("bbox").reshape(-1, 4)
        self.area, self.score = (objects.take(name) for name in ("area", "score"))
        if not self.scored:
            scored = np.flatnonzero(~np.isnan(self.score)).tolist()
            message, hint = "has a score (detections?)", "use the ground truth"
            self.problems.add_rows(scored, self.located, message, hint)
            self.score = np.zeros(len(self.area))
        self.flags = {flag: objects.take(name) == 1 for name, flag in FLAGS.items()}
        self.problems.raise_any()

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

    def located(self, row: int) -> tuple[str, str]:
        """Return the file and the location of a box."""
        return self.path, self.location(row)

    def _read_odd(self, line: bytes, number: int) -> bool:
        """Read a line by `json.loads`; return False for a file of another kind."""
        try:
            text = line.decode()
        except UnicodeDecodeError:
            decode(self._text[: self._size], self.path)
            raise
        faults = Problems(1, "")
        cursor = JsonText(text, faults)
        try:
            if text.strip():
                value = cursor.only_value()
                if cursor.constants:
                    raise FaultError(*HOLDS_CONSTANTS)
                for problem in faults.listed:
                    self.problems.at(number, f"line {number}", problem.message, problem.hint)
                if not isinstance(value, dict):
                    raise FaultError(f"is {short_json(value)}, expected an object", SHAPE)
                self._append(value)
        except NotJsonError as error:
            name, hint = looks_like(self._text[: self._size]) if number == 1 else ("", "")
            if name and name != "JSON Lines":
                self.problems.add_first("", f"looks like {name}", hint)
                return False
            self._refuse(number, error)
        except FaultError as wrong:
            self._refuse(number, wrong)
        return True

    def _append(self, record: Record) -> None:
        """Append a line and its objects."""
        if "objects" not in record and "bbox" in record:
            message = "is a single box, expected an image with its objects"
            raise FaultError(message, f"{SHAPE}; for a list of results use COCO JSON")
        values: dict[str, Any] = {"image_id": image_of(record)}
        values |= {side: size_of(record.get(side)) for side in ("width", "height")}
        if isinstance(record.get("file_name"), str):
            values["file_name"] = record["file_name"]
        rows = []
        for index, item in enumerate(_objects(required(record, "objects"))):
            try:
                given = {name: value for name, value in item.items() if value is not None}
                check_area(given)
                row = values_of(given, _COLUMNS, "xywh", ("category", "bbox"))
                rows.append((row, self.attributes.values(item.get)))
            except FaultError as wrong:
                raise FaultError(f"objects[{index}]: {wrong.message}", wrong.hint) from None
        self.lines.append(values)
        for row, attributes in rows:
            self.objects.append(row)
            self.attributes.append(attributes)

    def _refuse(self, number: int, error: FaultError | NotJsonError) -> None:
        """Add the problem of a line."""
        self.problems.at(number, f"line {number}", error.message, error.hint)

    def _name_images(self) -> None:
        """Set the image of each line, and the file names; add problems of equal ones."""
        images: dict[Name, None] = {}
        self.file_names = {}
        for row, number in enumerate(self.numbers.tolist()):
            image = self.lines.key_of("image_id", row)
            name = self.lines.key_of("file_name", row)
            try:
                image = image_of({"file_name": name}) if image is None else image
                if image in images:
                    message = f"duplicate image {short_json(image)}"
                    raise FaultError(message, "keep one line per image")
            except FaultError as wrong:
                self._refuse(number, wrong)
                continue
            images[image] = None
            if isinstance(name, str):
                self.file_names[image] = name
        self.images = list(images)


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


# --- tables

_FEW = 20
"""One in so many boxes may extend beyond its image."""
_SUFFIXES = (".jsonl", ".jsonl.gz")


def read_ground_truth(
    path: Path,
    *,
    boxes: str | None = None,
    class_names: Path | None = None,
    attributes: tuple[str, ...] = (),
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read ground truth: each line is an image, with a list of objects or an object of lists.

    Boxes are xywh by default; `boxes` is required if they do not fit their images so, or fit as
    xyxy too. `class_names` are the names of class numbers from 0.
    """
    lines = Lines(path, limits, scored=False, attributes=attributes)
    missing = f"objects in its {len(lines.images)} images"
    refuse_empty(lines.path, len(lines), limits, missing, "annotations")
    names = ClassNames.load(class_names, limits)
    images = _sorted(lines.path, "images", lines.images)
    classes = _sorted(lines.path, "classes", lines.classes)
    sizes = lines.sizes[indices_in(images, lines.images)]
    image = indices_in(lines.images, images)[lines.image]
    corners, box_area, box_format = _boxes(lines, boxes, image, sizes)
    area = lines.area
    table = GroundTruth(
        image=image,
        label=indices_in(lines.classes, classes)[lines.label],
        corners=corners,
        box_area=box_area,
        images=images,
        image_sizes=sizes,
        classes=tuple(map(str, classes)),
        class_ids=classes,
        files=(),
        area=np.where(np.isnan(area), box_area, area),
        **lines.flags,
        extra=lines.attributes.columns(),
    )
    given = tuple(_class_name(lines.path, name, names) for name in classes)
    counts = {"missing-area": int(np.count_nonzero(np.isnan(area)))}
    columns = TruthColumns(table, given, counts, len(lines))
    truth = truth_table(columns, _source(lines, limits, as_is, box_format))
    notes = (*truth.notes, *nonzero_notes(images_without_objects(len(images), image)))
    return replace(truth, notes=notes, files=(*truth.files, *names.source()))


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    boxes: str | None = None,
    class_names: Path | None = None,
    dt_class_names: Path | None = None,
    first_category_id: int | str | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read detections: lines as those of ground truth, with a ``score`` for each object or none."""
    refuse_same_file(path, ground_truth, "expected detections")
    lines = Lines(path, limits, scored=True)
    check_scores(lines.score, lines.located)
    names_file = class_names if dt_class_names is None else dt_class_names
    by_name = goes_by_names(ground_truth, names_file, first_category_id) or any(
        isinstance(name, str) for name in lines.classes
    )
    image, extra, image_notes = _image_indices(lines, ground_truth, limits)
    sizes = ground_truth.image_sizes
    if sizes is not None:
        sizes = np.vstack([sizes, [np.nan, np.nan]])  # of unknown images
    of_sizes = image % np.int32(len(ground_truth.images) + 1)  # -1 is the last
    corners, box_area, box_format = _boxes(lines, boxes, of_sizes, sizes)
    known = () if by_name else ground_truth.class_ids
    unknown_classes = [name for name in lines.classes if name not in set(known)]
    label = indices_in(lines.classes, (*known, *unknown_classes))[lines.label]
    columns, rows = detections_of(
        ground_truth,
        known,
        unknown_classes,
        extra,
        image=image,
        label=label,
        corners=corners,
        box_area=box_area,
        score=lines.score,
        notes=image_notes,
    )
    names = ClassNames()
    notes: tuple[Note, ...] = ()
    if by_name:
        names = ClassNames.load(names_file, limits)
        first = None if first_category_id is None else int(first_category_id)
        mapping = id_mapping.CategoryMapping(lines.path, {}, names, first, as_is)
        columns, notes = id_mapping.match_by_name(columns, ground_truth, mapping)
    source = _source(lines, limits, as_is, box_format)
    source.record = lambda row: lines.location(int(rows[row]))
    table = detection_table(columns, ground_truth, source)
    return replace(table, notes=(*table.notes, *notes), files=(*table.files, *names.source()))


def _sorted(path: str, title: str, names: list[Name]) -> tuple[Name, ...]:
    if len({isinstance(name, str) for name in names}) > 1:
        refuse(path, f"{title} are partly numbers and partly text", "use one of the two")
    return tuple(ordered(names))


def _class_name(path: str, name: Name, names: ClassNames) -> str | None:
    if isinstance(name, str):
        return name
    if not names.names:
        return None
    if not 0 <= name < len(names.names):
        message = f"class {name} is not in {names.file}, which has {len(names.names)} classes"
        refuse(path, message, "check the list; classes are numbered from 0")
    return names.names[name]


def _boxes(
    lines: Lines, boxes: str | None, image: Integers, sizes: Floats | None
) -> tuple[Floats, Floats, str]:
    """Return corners, areas and the box format, which must be clear if it is not given."""
    box, reason = lines.box, ""
    corners, area = encode_boxes(box, boxes or "xywh")
    if sizes is None or np.isnan(sizes).all():
        if (box[:, 2:] > box[:, :2]).all():
            reason = "without image width and height, boxes fit both formats"
    elif (beyond := survey_boxes(corners, image, sizes, 1.0)[0]) * _FEW >= len(box):
        reason = f"{beyond} of {len(box)} boxes extend beyond their image as x, y, width, height"
    if boxes is None and len(box) and reason:
        hint = "pass boxes='xywh' or 'xyxy' (--boxes)"
        refuse(lines.path, f"box format of bbox is unknown: {reason}", hint)
    return corners, area, boxes or "xywh"


def _source(lines: Lines, limits: Limits, as_is: bool, box_format: str) -> Source:
    file = SourceFile(lines.path, len(lines), sha256=lines.sha256)
    return Source(file, limits, as_is, lines.location, box_format)


def _image_indices(
    lines: Lines, truth: GroundTruth, limits: Limits
) -> tuple[Integers, tuple[Flags, Note], tuple[Note, ...]]:
    """Return the image of each box, those to leave out, and notes; refuse unknown images."""
    filled = np.diff(lines.end, prepend=0) > 0
    names = list(compress(lines.images, filled.tolist()))
    known, notes = id_mapping.image_indices(truth, set(names), lines.file_names)
    numbers = np.array([known.get(name, -1) for name in lines.images], np.int32)
    image = numbers[lines.image] if len(lines) else np.zeros(0, np.int32)
    of_rows, problems = (lines.image, lines.images), lines.problems
    where = lines.location
    extra = id_mapping.check_images(image, of_rows, truth, problems, limits=limits, location=where)
    problems.raise_any()
    return image, extra, notes


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and classes named in detections."""
    lines = Lines(path, limits, scored=True)
    for name in options.keys() - {"as_is", "boxes", "limits"}:
        del options[name]
    return empty_ground_truth(lines.images, set(lines.classes))


class JsonLines(Format):
    """An image per line, with its objects."""

    by_ids = True
    has_attributes = True

    read_truth_file = staticmethod(read_ground_truth)
    read_detections_file = staticmethod(read_detections)
    placeholder = staticmethod(placeholder_ground_truth)

    def attribute_values(self, ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
        """Return the value of a key of the images' lines, from reading them again."""
        values = {}
        for source in ground_truth.files:
            if source.path.lower().endswith(_SUFFIXES):  # else a list of names
                for line in read_bytes(source.path).decode("utf-8-sig").split("\n"):
                    record = json.loads(line, parse_int=integer) if line.strip() else {}
                    if record.get(name) is not None:
                        values[image_of(record)] = record[name]
        return values

    def file_names(self, ground_truth: GroundTruth) -> dict[Name, str]:
        """Return the ``file_name`` of each image that has one."""
        return self.attribute_values(ground_truth, "file_name")
