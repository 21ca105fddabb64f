"""The recipe of formats whose files name their images, each with a list of objects.

A format yields images with objects; the recipe makes the tables, their notes and the problems.
"""

import json
import math
import os
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np

from detap.core.polygons import box_polygons, is_self_intersecting
from detap.errors import InputError, Note, Problem
from detap.formats.base import Format
from detap.formats.by_name.notes import (
    angles_beyond_a_turn,
    files_skipped,
    images_without_file,
    images_without_objects,
    nonzero_notes,
)
from detap.formats.by_name.objects import Objects, detections, ground_truth, name_index
from detap.formats.by_name.problems import RowReader, refuse_empty
from detap.formats.coco.records import check_text
from detap.formats.content import (
    Content,
    exact_number,
    lost_areas,
    lost_flags,
    lost_unused,
    rows_of_images,
    sizes,
)
from detap.formats.image_sizes import read_image_sizes
from detap.formats.reading.attributes import Attributes
from detap.formats.reading.sniffing import first_files_fit
from detap.formats.shapes.values import (
    BBOX_HINT,
    FlagNames,
    as_xywh,
    bounds,
    finite_number,
    json_lines,
    json_value,
    located,
    object_of,
    required,
    rotated_box,
    side_of,
)
from detap.formats.stem_matching import base_name, empty_ground_truth, without_suffix
from detap.formats.text.class_names import ClassNames
from detap.formats.text.folder import Folder, contents, files_of, one_file
from detap.formats.text.lines import box_fault, decoded_lines, looks_like
from detap.io.file_kinds import BYTE_ORDER_MARK
from detap.io.json_text import HOLDS_CONSTANTS, short_json
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import STDIN, Path, SourceFile, shown
from detap.io.problems import FaultError, Problems
from detap.io.stream import refuse
from detap.tables.columns import check_scores, indices_in
from detap.tables.detection import Detections, Floats, GroundTruth, Name, encode_boxes
from detap.text_input import join_names, quote

SCORES = ("score", "confidence")
Box = list[Any]
"""Four numbers in the document's `box_format`, or points: two corners, the four of a rotated box,
or those of another shape, whose bounds are read."""
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Image(NamedTuple):
    """An image of a file; the recipe checks its name and size."""

    name: Any  # of its file
    objects: Iterable[tuple[str, Any]]  # location and content of each object
    width: Any = None  # in pixels, None if unknown
    height: Any = None
    attributes: Mapping[str, Any] = _NOTHING  # for slices
    stem: str | None = None  # its name in tables, if not `name` without suffix
    file: str | None = None  # its file, if not `name`; "" if unknown


class Item(NamedTuple):
    """An object of a file."""

    label: str
    box: Box
    attributes: Mapping[str, Any] = _NOTHING  # may be flags or the score


class Document(RowReader):
    """The files of one input.

    A subclass overrides :meth:`image_of`, :meth:`item_of`, and :meth:`images_of` or :meth:`parse`,
    by default the content of a JSON file; for a folder of files :meth:`folders`, which names them.
    """

    box_format = "xyxy"  # of the boxes of `item_of`
    fixed_boxes = True
    expected = ""  # the hint for other content
    objects_key = ""  # of the objects in a file that is the record of one image
    repeated = "keep one of them"  # the hint for an image that occurs twice
    missing = "boxes in its {} images"  # what an input without boxes lacks
    content = "annotations"  # of the files of a folder, for messages
    score_names: tuple[str, ...] = SCORES
    in_file_order = False  # True to list images and classes as the files do, not sorted by name
    sizes_of_detections = False  # True if detections use a table of image sizes
    noted: tuple[Note, ...] = ()  # {} stands for `kinds`; `counts` has numbers of their codes

    def __init__(
        self,
        path: Path,
        limits: Limits = DEFAULT_LIMITS,
        *,
        scored: bool = False,
        as_is: bool = False,
        truth: GroundTruth | None = None,
        shapes: str = "reject",
        attribute_flags: str | None = None,
        attributes: tuple[str, ...] = (),
        score_attribute: str | None = None,
        class_names: Path | None = None,
        dt_class_names: Path | None = None,
        image_sizes: Path | None = None,
    ) -> None:
        self.given = os.fspath(path)
        self.path = shown(self.given)
        self.limits, self.scored, self.as_is, self.shapes = limits, scored, as_is, shapes
        self.truth = truth
        names_file = class_names if dt_class_names is None else dt_class_names
        self.class_names = ClassNames.load(names_file, limits)
        self.size_table: dict[str, Any] = {}  # of images, by stem
        self.size_file = None if scored and not self.sizes_of_detections else image_sizes
        if self.size_file is not None:
            self.size_table |= read_image_sizes(self.size_file, limits)
        self.flags = FlagNames(attribute_flags)
        self.object_attributes = Attributes(attributes, texts=True)
        self.score_attribute = score_attribute
        if score_attribute:
            self.score_names = (score_attribute,)
        self.problems = Problems(limits.problems)
        self.images: dict[str, tuple[float, float]] = {}  # sizes, NaN if unknown
        self.classes: dict[str, None] = {}  # that the input lists, also those without boxes
        self.file_names: dict[Name, str] = {}
        self.attributes: dict[Name, Mapping[str, Any]] = {}
        self.images_only = False  # if True, `attributes` are read instead of objects
        self.name = ""  # of the file that is read, in its folder
        self.skipped: list[str] = []
        self.counts: Counter[str] = Counter()  # of notes, by code
        self.kinds: dict[str, None] = {}  # of what is skipped, for notes
        self._first: dict[str, tuple[str, str]] = {}
        self._sources: list[SourceFile] = []
        self._files: list[str] = []  # of images
        self._locations: list[str] = []
        self._image = array("i")
        self._labels: list[str] = []
        self._numbers = array("d")
        self._corners: dict[int, Box] = {}
        self._flagged: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self._image)

    # --- what a format overrides

    def folders(self) -> list[Folder]:
        """Return the folders with the files; by default the path is the only file."""
        return [Folder(self.given, "", "", {"": ""})]

    def parse(self, data: bytes) -> Any:
        """Return the content of a file; raise FaultError for another kind of file."""
        content, self.constants = json_value(data, self.problems, self.limits, self.expected)
        return content

    def images_of(self, content: Any, file: str) -> Iterator[tuple[str, Any]]:
        """Yield the location and record of each image; raise FaultError for other content."""
        if self.objects_key:
            required(object_of(content, self.expected), self.objects_key, list, self.expected)
            content = [("", content)]
        yield from content

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of a record."""
        raise NotImplementedError

    def item_of(self, record: Any) -> Item | None:
        """Return the object of a record; None skips it."""
        raise NotImplementedError

    def notes(self) -> tuple[Note, ...]:
        """Return notes about the files."""
        kinds = join_names(self.kinds)
        return tuple(
            replace(note, message=note.message.format(kinds), count=self.counts[note.code])
            for note in self.noted
        )

    # --- reading

    def read(self, *, check: bool = True) -> Self:
        """Read the files; raise all problems if `check`."""
        for folder in self.folders():
            before = len(self)
            self.skipped += folder.skipped
            names, members = [*folder.members], [*folder.members.values()]
            for number, path, data in contents(folder, members, self.problems, self.limits):
                self.read_data(data, path if members[number] else self.path, names[number])
                if len(self) > self.limits.records:
                    break
            self._sources.append(folder.source(folder.members.values(), len(self) - before))
        if check:
            self.problems.raise_any()
        return self

    def read_data(self, data: bytes, file: str, name: str = "") -> None:
        """Read one file, with its name in the folder, and collect its problems."""
        self.name, self.problems.file, self.constants = name, file, 0
        before = self.problems.count
        with self.problems.collected():
            content = self.parse(data)
            if self.problems.count == before:
                for location, record in self.images_of(content, file):
                    self.read_image(file, location, record)
                    if len(self) > self.limits.records:
                        self.problems.add(self.path, "", *self.limits.exceeded)
                        break
        if self.constants and self.problems.count == before:
            self.problems.add_here("", *HOLDS_CONSTANTS)

    def read_image(self, file: str, location: str, record: Any) -> None:
        """Read one image and collect its problems."""
        objects: Iterable[tuple[str, Any]] = ()
        with self.problems.collected(location):
            image = self.image_of(location, record, file)
            stem = self._begin(image, file, location)
            width, height = side_of("width", image.width), side_of("height", image.height)
            self.images[stem] = width, height
            self._files.append(file)
            objects = image.objects
        for where, item in () if self.images_only else objects:
            with self.problems.collected(where):
                self.take(item, where)

    def _begin(self, image: Image, file: str, location: str) -> str:
        """Return the stem of a new image."""
        is_text = isinstance(image.name, str)
        stem = without_suffix(image.name.replace("\\", "/")) if is_text else ""
        if not stem.strip():
            shown = "missing" if image.name is None else short_json(image.name)
            raise FaultError(f"image name is {shown}", "write its file name")
        if image.stem is None:
            check_text("image name", stem)
        else:
            stem = image.stem
        if stem in self._first:
            other, where = self._first[stem]
            note = "" if other == image.name else f", as {quote(other)}"
            message = f"duplicate image {quote(image.name)} (also at {where}{note})"
            raise FaultError(message, self.repeated)
        self._first[stem] = image.name, location or file
        file_name = image.name if image.file is None else image.file
        if file_name:
            self.file_names[stem] = file_name
        if self.images_only:
            self.attributes[stem] = image.attributes
        return stem

    def take(self, record: Any, location: str) -> None:
        """Add an object of the last image; raise FaultError if it is invalid."""
        item = self.item_of(object_of(record))
        if item is None:
            return
        score = self.score_of(item.attributes) if self.scored else 0.0
        extra = self.object_attributes
        values = extra.values(item.attributes.get) if extra.names else ()
        flags = self.flags_of(item.attributes)
        box, points = item.box, item.box if isinstance(item.box[0], Sequence) else []
        if points:
            box = as_xywh(bounds(points)) if self.box_format == "xywh" else bounds(points)
        if fault := box_fault(box, self.box_format):
            raise FaultError(fault, "correct the box")
        if len(points) == 4 and self.shapes != "bbox":
            if is_self_intersecting(np.array(points).reshape(1, 8)).any():
                raise FaultError("sides of its corners cross", "list the corners in order around")
            self._corners[len(self)] = points
        for flag in flags:
            self._flagged.setdefault(flag, []).append(len(self))
        extra.append(values)
        self._locations.append(location)
        self._image.append(len(self.images) - 1)
        self._labels.append(item.label)
        self._numbers.extend((score, *box))

    def score_of(self, attributes: Mapping[str, Any]) -> float:
        """Return the score of an object, NaN if it has none."""
        for name in self.score_names:
            if attributes.get(name) is not None:
                return self.score_number(name, attributes[name])
        return math.nan

    def score_number(self, name: str, value: Any) -> float:
        """Return a score as a number; raise FaultError for other values."""
        return finite_number(name, value)

    def flags_of(self, attributes: Mapping[str, Any]) -> set[str]:
        """Return the flags that an object has."""
        return self.flags.of(attributes)

    def location(self, row: int) -> tuple[str, str]:
        """Return the file and location of a box."""
        return self._files[self._image[row]], self._locations[row]

    # --- shapes as boxes

    def refuse_shape(self, kind: str) -> None:
        """Raise FaultError for a shape that is not a box, unless its bounds are read."""
        if self.shapes != "bbox":
            article = "an" if kind[0] in "aeiou" else "a"
            raise FaultError(f"is {article} {kind}, not a box", BBOX_HINT)

    def rotated(
        self,
        box: list[float],
        measures: tuple[float, float, float, float],
        degrees: float,
        *,
        about: float = 0.5,
    ) -> Box:
        """Return the corners of a box that :func:`rotated_box` rotates, or the box if upright."""
        self.counts["angles"] += abs(degrees) > 360
        return rotated_box(*measures, degrees, about=about) if degrees % 360 else box

    # --- tables

    def objects(self) -> Objects:
        """Return all boxes, with images and classes sorted by name or `in_file_order`."""
        arrange = list if self.in_file_order else sorted
        images = arrange(self.images)
        index = indices_in(self.images, images)
        listed = self.classes | dict.fromkeys(self._labels)
        classes, label = name_index(self._labels, arrange(listed))
        values: Floats = np.array(self._numbers, np.float64).reshape(-1, 5)
        polygons: Floats | None = None  # quadrilaterals, boxes among them, unless all are boxes
        if self._corners:
            polygons = box_polygons(encode_boxes(values[:, 1:], self.box_format)[0])
            polygons[[*self._corners]] = np.reshape([*self._corners.values()], (-1, 8))
        image, every = np.array(self._image, np.int32), np.arange(len(self))
        return Objects(
            images=tuple(images),
            classes=classes,
            image=index[image],
            label=label,
            boxes=values[:, 1:].copy(),
            box_format=self.box_format,
            polygons=polygons,
            score=values[:, 0].copy() if self.scored else None,
            flags={flag: np.isin(every, rows) for flag, rows in self._flagged.items()},
            extra=self.object_attributes.columns(),
            sizes=np.array([self.images[name] for name in images], np.float64).reshape(-1, 2),
        )

    def sources(self) -> tuple[SourceFile, ...]:
        """Return the input sources."""
        path, table = self.size_file, self.size_table
        sizes = () if path is None else (SourceFile(os.fspath(path), len(table)),)
        return (*self._sources, *sizes, *self.class_names.source())

    def ground_truth(self) -> GroundTruth:
        """Return all boxes as ground truth; raise InputError if there are none."""
        missing = self.missing.format(len(self.images))
        refuse_empty(self.path, len(self), self.limits, missing, "annotations")
        empty = images_without_objects(len(self.images), np.array(self._image))
        notes = (*self.flags.notes(), *self._notes(), *nonzero_notes(empty))
        return ground_truth(self.objects(), self, self.sources(), notes)

    def detections(self, truth: GroundTruth) -> Detections:
        """Return the boxes as detections, numbered as the ground truth."""
        objects = self.objects()
        assert objects.score is not None
        check_scores(objects.score, self.location)
        if self.score_attribute and np.isnan(objects.score).any():
            message = f"no object has {quote(self.score_attribute)}"
            hint = "correct --score-attribute, or omit it if there are no scores"
            raise InputError(Problem(self.path, "", message, hint))
        objects = objects._replace(images=self.matched(objects.images, truth.images))
        return detections(objects, truth, self, self.sources(), self._notes())

    def _notes(self) -> tuple[Note, ...]:
        files = files_skipped(self.skipped, self.content)
        return nonzero_notes(*self.notes(), files, angles_beyond_a_turn(self.counts["angles"]))

    def matched(self, images: Sequence[Name], known: Sequence[Name]) -> tuple[Name, ...]:
        """Replace names of unknown images by the known ones of their stems, if unique."""
        stems: dict[Name, Name] = {base_name(str(name)): name for name in known}
        ours = [base_name(str(name)) for name in images]
        if set(images) <= set(known) or len(stems) < len(known) or len(set(ours)) < len(ours):
            return tuple(images)
        return tuple(stems.get(stem, name) for stem, name in zip(ours, images, strict=True))

    @classmethod
    def images_again(cls, truth: GroundTruth) -> Iterator[Self]:
        """Read only the images of each input of a ground truth again, unchecked."""
        for path in dict.fromkeys(source.path for source in truth.files):
            reader = cls(path)
            reader.images_only = True
            with suppress(InputError):  # a list of names
                reader.read(check=False)
            yield reader


class LinesDocument(Document):
    """A file with the JSON of an image per line, or with a list of them."""

    def parse(self, data: bytes) -> Any:
        """Return the location and record of each line, or item of the list."""
        if data.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"["):
            return [*located("", super().parse(data))]
        records, self.constants = json_lines(data, self.problems, self.limits, self.expected)
        return records


AS_DETECTIONS = (
    "give it as detections (--dt); for a ground truth of another format, use --dt-format"
)
"""Hint for ground truth in a format of detections, which --format names for both."""


class OutputOfModel(Document):
    """Detections of a model, in a file or a folder with a file an image."""

    sizes_of_detections = True

    def folders(self) -> list[Folder]:
        """Return the folder of the files."""
        return [json_folder(self.given, self.content, self.content)]

    def notes(self) -> tuple[Note, ...]:
        """Return notes about the images."""
        images = 0 if self.truth is None else len(self.truth.images)
        return (images_without_file(max(0, images - len(self.images))),)


class NumbersDocument(Document):
    """Text files with numbers, separated by commas, in each line."""

    def parse(self, data: bytes) -> Any:
        """Return the location and the numbers of each line; collect problems."""
        if kind := looks_like(data):
            raise FaultError(f"looks like {kind}", self.expected)
        rows = []
        for number, line in decoded_lines(data, self.problems.file, self.problems):
            with self.problems.collected(f"line {number}"):
                rows.append((f"line {number}", self.numbers_of(words_of(line))))
        return rows

    def numbers_of(self, words: list[str]) -> Any:
        """Return the values of a line; raise FaultError if it is invalid."""
        raise NotImplementedError


def words_of(line: str) -> list[str]:
    """Return the words of a line between commas, of which one may be at the end."""
    words = [word.strip() for word in line.split(",")]
    return words if words[-1] else words[:-1]


def json_folder(path: str, files: str, missing: str, *, nested: bool = False) -> Folder:
    """Return the JSON files of a folder, or a single file; `files` and `missing` name them."""
    refuse_stdin(path, files)
    folder = one_file(path) or files_of(path, "", ".json", nested=nested)
    if not folder.members:
        hint = "use the folder with the files"
        refuse(path, f"no {missing}: no file ends with .json", hint)
    return folder


def json_line(value: Any) -> bytes:
    """Return a value as the JSON of a file."""
    return (json.dumps(value, ensure_ascii=False) + "\n").encode()


def json_list(records: Iterable[Any]) -> bytes:
    """Return records as the JSON of a file, one a line."""
    lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    return f"[\n{lines}\n]\n".encode()


def json_with_list(head: Mapping[str, Any], key: str, records: Iterable[Any]) -> bytes:
    """Return an object as the JSON of a file, with a list of records under a last key."""
    start = json_line(head).removesuffix(b"}\n")
    return start + f",\n{json.dumps(key)}: ".encode() + json_list(records).rstrip() + b"}\n"


def exact_xywh(box: Iterable[float]) -> dict[str, float]:
    """Return a box as an object to write."""
    return dict(zip(("x", "y", "width", "height"), map(exact_number, box), strict=True))


def written_images(
    content: Content, table: GroundTruth | Detections
) -> Iterator[tuple[str, tuple[float, float] | None, list[int]]]:
    """Yield the file, the size and the rows of each image."""
    rows = (rows.tolist() for rows in rows_of_images(table))
    return zip(map(content.file_name, content.images), sizes(content), rows, strict=True)


def refuse_stdin(path: str, files: str) -> None:
    """Raise InputError for standard input, which has no file names."""
    if path == STDIN:
        refuse(path, f"cannot provide {files}: file names are needed", "use a folder")


class DocumentFormat(Format):
    """A format whose files name their images, each with a list of objects."""

    document: ClassVar[type[Document]]
    written: ClassVar[tuple[str, str]] = ("annotations.json", "detections.json")  # by `write`
    lost_flags: ClassVar[tuple[str, ...]] = ("crowd", "difficult", "ignore", "group_of")
    writes_unused_classes: ClassVar[bool] = False  # True if files list their classes

    def fits(self, path: str) -> bool:
        """Return True if a file, or the first few of a folder, are of the format."""
        if os.path.isdir(path):
            return self.line.folders and first_files_fit(path, self.fits_file)
        return self.fits_file(path)

    def fits_file(self, path: str) -> bool:
        """Return True if the content of a file is of this format; raise nothing."""
        return False

    def read_truth_file(self, path: Path, **options: Any) -> GroundTruth:
        """Return the boxes; images and classes sorted by name, rows as in the files."""
        return self.document(path, **options).read().ground_truth()

    def read_detections_file(self, path: Path, truth: GroundTruth, **options: Any) -> Detections:
        """Return boxes, numbered as the ground truth; further classes sorted by name."""
        return self.document(path, scored=True, truth=truth, **options).read().detections(truth)

    def placeholder(self, path: Path, options: Mapping[str, Any], limits: Limits) -> GroundTruth:
        """Return the images and classes named in detections, unchecked."""
        options = {**options, "limits": limits}
        objects = self.document(path, scored=True, **options).read(check=False).objects()
        return empty_ground_truth(objects.images, objects.classes)

    def attribute_values(self, ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
        """Return an attribute of the images; files are read again."""
        known = set(ground_truth.images)
        return {
            image: attributes[name]
            for reader in self.document.images_again(ground_truth)
            for image, attributes in reader.attributes.items()
            if image in known and attributes.get(name) is not None
        }

    def file_names(self, ground_truth: GroundTruth) -> dict[Name, str]:
        """Return the file of each image; files are read again."""
        readers = self.document.images_again(ground_truth)
        return {image: name for reader in readers for image, name in reader.file_names.items()}

    def write(self, content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
        """Yield names and contents of files; add notes on lost data."""
        for table in (content.ground_truth, content.detections):
            if isinstance(table, GroundTruth):
                notes += self.lost(table)
            if table is not None:
                yield from self.files(content, table, notes)

    def lost(self, truth: GroundTruth) -> tuple[Note, ...]:
        """Return notes on data of a ground truth that files cannot hold."""
        unused = () if self.writes_unused_classes else lost_unused(truth, self.title)
        return (
            *lost_flags(truth, self.lost_flags, self.title),
            *lost_areas(truth, self.title),
            *unused,
        )

    def files(
        self, content: Content, table: GroundTruth | Detections, notes: list[Note]
    ) -> Iterator[tuple[str, bytes]]:
        """Yield the files of a table; by default one."""
        yield self.written[isinstance(table, Detections)], self.text(content, table, notes)

    def text(self, content: Content, table: GroundTruth | Detections, notes: list[Note]) -> bytes:
        """Return the file of a table."""
        raise NotImplementedError


class ModelFormat(DocumentFormat):
    """A format of a model's output, which has no ground truth."""

    def read_truth_file(self, path: Path, **_: object) -> NoReturn:
        """Refuse the output of a model as ground truth."""
        refuse(os.fspath(path), f"holds {self.document.content} of a model", AS_DETECTIONS)
