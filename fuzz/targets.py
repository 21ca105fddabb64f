"""Each target reads one input in every possible way, and reports disagreements.

Three things may not happen: an exception other than InputError, two readers that differ, and a
reader that differs from the plain one of `oracle`.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from detap.core.masks import areas_and_boxes
from detap.errors import InputError
from detap.formats.coco.results import ResultsFile
from detap.formats.coco.truth import TruthFile
from detap.formats.cvat import CORNERS as CVAT_CORNERS
from detap.formats.cvat import Annotations
from detap.formats.json._fields import Reader
from detap.formats.json.document import Document
from detap.formats.labelme import Shapes
from detap.formats.openimages import rows as open_images
from detap.formats.openimages._scan import Scanner
from detap.formats.reading.attributes import Attributes
from detap.formats.text.lines import LineForm
from detap.formats.text.reader import Rows, read_lines
from detap.formats.voc._scan import Annotations as Scanned
from detap.formats.voc.tables import plain_start
from detap.formats.voc.xml import read_annotation
from detap.formats.yolo.rows import YoloForm
from detap.io.limits import Limits
from detap.io.problems import FaultError, Problems
from detap.io.stream import Stream
from detap.tables.detection import GroundTruth
from fuzz import labelling as labelling_tools
from fuzz import oracle, seeds

LIMITS = Limits()


class Disagreement(Exception):  # noqa: N818 - what fuzzing looks for is no error of its own
    """Two readings of one input differ."""


def _reader(data: bytes, block: int) -> Reader:
    """Return a reader of `data` in blocks of a few bytes or at once."""
    rest = memoryview(data)

    def read(count: int) -> bytes:
        nonlocal rest
        part, rest = rest[: min(count, block)], rest[min(count, block) :]
        return bytes(part)

    return Reader(read, LIMITS.file_bytes, LIMITS.nesting)


def _block(data: bytes) -> int:
    """Return a block length that depends only on the input."""
    return (1, 2, 3, 7, 16, 64, 1 << 20, 1 << 20)[sum(data[:64]) % 8]


def _words() -> GroundTruth:
    empty = np.zeros(0)
    return GroundTruth(
        image=np.zeros(0, np.int32),
        label=np.zeros(0, np.int32),
        corners=np.zeros((0, 4)),
        box_area=empty,
        area=empty.copy(),
        crowd=np.zeros(0, np.bool_),
        difficult=np.zeros(0, np.bool_),
        ignore=np.zeros(0, np.bool_),
        group_of=np.zeros(0, np.bool_),
        images=seeds.IMAGES,
        classes=tuple(seeds.CATEGORIES.values()),
        class_ids=tuple(seeds.CATEGORIES),
    )


TRUTH = _words()


def _result_rows(columns: Any) -> list[tuple[Any, ...]]:
    return [
        (image, label, *corners, area, score)
        for image, label, corners, area, score in zip(
            columns.image.tolist(),
            columns.label.tolist(),
            columns.corners.tolist(),
            columns.box_area.tolist(),
            columns.score.tolist(),
            strict=True,
        )
    ]


def same(one: Any, other: Any) -> bool:
    """Compare to the last bit: -0.0 is not 0.0, NaN is NaN."""
    return repr(one) == repr(other)


def _both(file: Callable[[], Any], data: bytes, *truth: GroundTruth) -> Any:
    """Read a COCO file with each record by `json.loads`, or only the odd ones.

    Returns the columns, or None if both raise the same error.
    """
    outcomes: list[Any] = []
    for one_by_one in (False, True):
        reading = file()
        for fields in reading.fields:
            fields.each |= one_by_one
        try:
            reader = _reader(data, _block(data))
            reading.read(Document(reader, lambda: data, "x", LIMITS))
            outcomes.append(reading.columns(*truth))
        except InputError as error:
            check_message(error)
            outcomes.append(str(error))
    one, other = outcomes
    _differ(isinstance(one, str) != isinstance(other, str), "only one reading is refused")
    if isinstance(one, str):
        _differ(one != other, "the readings say different things")
        return None
    return outcomes


def coco_results(data: bytes) -> str:
    """Read results in three ways; return "valid" or "refused"."""
    both = _both(ResultsFile, data, TRUTH)
    plain = oracle.coco_results(data, seeds.IMAGES, seeds.CATEGORIES)
    _differ((both is None) != (plain is None), "the plain reader disagrees on what is valid")
    if both is None:
        return "refused"
    number = {name: i for i, name in enumerate(seeds.IMAGES)}
    label = {name: i for i, name in enumerate(seeds.CATEGORIES)}
    # Categories that the ground truth lacks are numbered behind its own, as they come.
    expected = [
        (number[row[0]], label.setdefault(row[1], len(label)), *row[2:]) for row in plain or []
    ]
    for columns in both:
        _differ(not same(_result_rows(columns), expected), "detap reads other values")
    _differ(both[0].class_ids != both[1].class_ids, "the readings have other categories")
    return "valid"


def _truth_rows(columns: Any) -> list[tuple[Any, ...]]:
    table = columns.table
    names = ("image", "label", "corners", "box_area", "area", "crowd", "ignore", "group_of")
    listed = [getattr(table, name).tolist() for name in names]
    return [
        (image, label, *corners, *rest)
        for image, label, corners, *rest in zip(*listed, strict=True)
    ]


def coco_truth(data: bytes) -> str:
    """Read ground truth in three ways; return "valid" or "refused"."""
    both = _both(TruthFile, data)
    plain = oracle.coco_truth(data)
    _differ((both is None) != (plain is None), "the plain reader disagrees on what is valid")
    if both is None:
        return "refused"
    images, categories, annotations = plain or ([], [], [])
    number = {row[0]: i for i, row in enumerate(images)}
    label = {row[0]: i for i, row in enumerate(categories)}
    expected = [(number[row[0]], label[row[1]], *row[2:]) for row in annotations]
    for columns in both:
        table = columns.table
        _differ(not same(_truth_rows(columns), expected), "detap reads other values")
        _differ(not same(list(table.images), [row[0] for row in images]), "other images")
        sizes = [list(row[1:]) for row in images]
        _differ(not same(table.image_sizes.tolist(), sizes), "other sizes")
        names = list(zip(table.class_ids, columns.class_names, strict=True))
        _differ(not same(names, categories), "other categories")
    one, other = both
    _differ(one.counts != other.counts or one.records != other.records, "different counts")
    return "valid"


def coco_result_masks(data: bytes) -> str:
    """Read results with their masks in both ways."""
    return _shaped(_both(partial(ResultsFile, masks=True), data, TRUTH), _result_rows)


def coco_truth_masks(data: bytes) -> str:
    """Read ground truth with its masks in both ways."""
    return _shaped(_both(partial(TruthFile, masks=True), data), _truth_rows)


def _shaped(both: Any, rows_of: Callable[[Any], Any]) -> str:
    """Compare two readings, and rasterize the masks."""
    if both is None:
        return "refused"
    one, other = both
    _differ(not same(rows_of(one), rows_of(other)), "the readings have different values")
    one, other = (getattr(of, "table", of) for of in both)
    masks, has = other.masks, other.mask >= 0
    _differ(not np.array_equal(one.mask, other.mask), "the readings have different masks")
    for name in vars(masks):
        ours, theirs = (getattr(of.masks, name) for of in (one, other))
        _differ(ours.dtype != theirs.dtype, f"{name} is of different kinds")
        _differ(ours.tobytes() != theirs.tobytes(), f"the readings have different {name}")
    sizes = np.where(masks.sizes == 0, np.array([48, 64], np.int32), masks.sizes)
    areas, boxes = areas_and_boxes(replace(masks, sizes=sizes).arrays)
    _differ(len(areas) != np.count_nonzero(has), "masks are not those of the rows")
    _differ(bool((areas > boxes[:, 2] * boxes[:, 3]).any()), "more pixels than their box has")
    return "valid"


# --- VOC


class _Files:
    """A folder in memory, if the system has one, with a file per input."""

    def __init__(self) -> None:
        shared = "/dev/shm"
        self.path = Path(tempfile.mkdtemp(dir=shared if os.access(shared, os.W_OK) else None))
        self.names: list[str] = []

    def __enter__(self) -> "_Files":
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path)

    def write(self, inputs: Iterable[bytes]) -> list[str]:
        self.names = []
        for number, data in enumerate(inputs):
            (self.path / str(number)).write_bytes(data)
            self.names.append(str(number))
        return self.names


def voc_xml(data: bytes) -> str:
    """Read an annotation by the scanner and with lxml; compare the latter with ElementTree too."""
    scanned = Scanned(LIMITS.nesting)
    scanned_size = scanned.read(plain_start(data), 0)
    problems, added = Problems(20), Scanned(LIMITS.nesting)
    size = (0.0, 0.0)
    with problems.collected(file="x"):
        size, _, _ = read_annotation(data, "x", added, Attributes(()), problems, limits=LIMITS)
    if problems.count:
        check_problems(problems.listed)
        _differ(scanned_size is not None, "the scanner accepts what lxml refuses")
        return "refused"
    slow = _objects_of(added)
    if scanned_size is not None:
        _differ(not same(_objects_of(scanned), slow), "the readers read different objects")
        _differ(not same(scanned_size, size), "the readers read different sizes")
    _compare_with_element_tree(data, slow)
    return "valid"


def _objects_of(scanned: Scanned) -> list[Any]:
    rows = Rows.of(scanned, str)
    columns = zip(rows.name.tolist(), rows.table(4).tolist(), rows.flag.tolist(), strict=True)
    return [(rows.names[word], box, flag) for word, box, flag in columns]


def _compare_with_element_tree(data: bytes, slow: list[Any]) -> None:
    """Compare with the standard library if it reads the input: it supports fewer encodings."""
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError):
        return
    expected = []
    for element in root.findall("object"):
        box = element.find("bndbox")
        name = element.findtext("name")
        _differ(box is None or name is None, "an object without name or box is accepted")
        assert box is not None
        assert name is not None
        texts = [
            (box.findtext(side) or "").strip(" \t\r\n") for side in ("xmin", "ymin", "xmax", "ymax")
        ]
        flag = (element.findtext("difficult") or "0").strip(" \t\r\n") == "1"
        expected.append((name.strip(" \t\r\n"), [float(text) for text in texts], flag))
    _differ(not same(slow, expected), "ElementTree reads different objects")


IMAGES = ("a", "b", "img_03")


def _resolve(word: str) -> str:
    if word not in IMAGES:
        raise FaultError(f"image {word!r} is unknown", "take another")
    return word


FORM = LineForm("image", True, "xyxy", _resolve)


def _number(word: str) -> str:
    if not (word.isascii() and word.isdigit()):
        raise FaultError(f"class {word!r} is no number", "write its number")
    return word


YOLO = YoloForm("class", True, "cxcywh", _number)


def voc_text(data: bytes) -> str:
    """Read a text file of VOC's detections."""
    return _text(data, FORM, oracle.voc_lines(data, IMAGES))


def yolo_text(data: bytes) -> str:
    """Read the lines of a text file of YOLO predictions, of any length."""
    return _text(data, YOLO, oracle.yolo_lines(data))


def _text(data: bytes, form: LineForm, plain: oracle.Rows | None) -> str:
    """Read a text file, and compare it with the oracle."""
    problems = Problems(20)
    rows = read_lines([(0, "x", data)], form, problems, LIMITS.records)
    if problems.count:
        check_problems(problems.listed)
        _differ(plain is not None, "the reader refuses what is valid")
        return "refused"
    _differ(plain is None, "the reader accepts what is not valid")
    numbers, starts = rows.numbers.tolist(), [0, *rows.ends.tolist()]
    read = [
        (rows.names[name], *numbers[start:end])
        for name, (start, end) in zip(rows.name.tolist(), pairwise(starts), strict=True)
    ]
    _differ(not same(read, plain), "the reader reads other values")
    return "valid"


def cvat(data: bytes) -> str:
    """Read an export of CVAT; compare it with ElementTree."""
    with _Files() as files:
        path = str(files.path / files.write([data])[0])
        read = Annotations(path, LIMITS).read(check=False)
    check_problems(read.problems.listed)
    if read.problems.count:
        return "refused"
    objects = read.objects()
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        # lxml accepts unbound prefixes, and more letters in names (XML 1.0, fifth edition).
        letters = data[:2] in (b"\xff\xfe", b"\xfe\xff") and "invalid token" in str(error)
        _differ("unbound prefix" not in str(error) and not letters, f"ElementTree: {error}")
        return "valid"
    boxes = [box for image in root.findall("image") for box in image.findall("box")]
    plain = [
        []
        if float(box.get("rotation") or 0) % 360
        else [float(box.get(side, "")) for side in CVAT_CORNERS]
        for box in boxes
    ]
    boxes_read = labelling_tools.unrotated(read, objects.boxes.tolist())
    _differ(boxes_read != plain, "ElementTree reads other boxes")
    labels = [box.get("label") for box in boxes]
    _differ([objects.classes[n] for n in objects.label] != labels, "ElementTree reads other labels")
    return "valid"


def labelme_shapes(data: bytes) -> str:
    """Read a file of LabelMe; compare it with the standard library."""
    read = Shapes("x", LIMITS)
    read.read_data(data, "x", "x")
    check_problems(read.problems.listed)
    if read.problems.count:
        return "refused"
    objects = read.objects()
    plain = []
    for shape in json.loads(data.removeprefix(b"\xef\xbb\xbf"))["shapes"]:
        across, down = ([float(point[axis]) for point in shape["points"]] for axis in (0, 1))
        plain.append([min(across), min(down), max(across), max(down)])
    _differ(objects.boxes.tolist() != plain, "json reads other boxes")
    return "valid"


def labelling(name: str) -> Callable[[bytes], str]:
    """Return a target that compares a reader of a labelling tool with the standard library."""

    def read(data: bytes) -> str:
        problems, boxes, plain = labelling_tools.both(name, data)
        check_problems(problems)
        if boxes is None:
            return "refused"
        _differ(boxes != plain, "the standard library reads other boxes")
        return "valid"

    return read


class _FallingBack(Scanner):
    """Leaves every line to the fallback reader."""

    def expect(self, columns: list[int], numbers: int) -> None:
        del columns, numbers


def open_images_rows(data: bytes) -> str:
    """Read a CSV of boxes with both readers, in blocks of a few bytes or at once."""
    read = Stream.read
    both = []
    with _Files() as files:
        path = str(files.path / files.write([data])[0])
        for reader in (Scanner, _FallingBack):
            vars(open_images)["Scanner"] = reader
            Stream.read = lambda self: read(self, _block(data))  # type: ignore[method-assign, misc, assignment]
            try:
                rows = open_images.Rows(path, open_images.FORM, LIMITS, check=False)
            finally:
                vars(open_images)["Scanner"] = Scanner
                Stream.read = read  # type: ignore[method-assign]
            check_problems(rows.problems.listed)
            both.append((rows, list(map(str, rows.problems.listed))))
    (fast, said), (slow, said_with_care) = both
    _differ(said != said_with_care, "the readers say different things")
    if said:
        return "refused"
    words = [
        ([rows.images[n] for n in rows.image], [rows.labels[n] for n in rows.label])
        for rows in (fast, slow)
    ]
    _differ(words[0] != words[1], "the readers read different words")
    _differ(fast.corners.tobytes() != slow.corners.tobytes(), "the readers read different boxes")
    _differ(fast.group_of.tobytes() != slow.group_of.tobytes(), "other groups")
    lines_ = [(rows.unknown, *rows.line.tolist()) for rows in (fast, slow)]
    _differ(lines_[0] != lines_[1], "the readers count lines differently")
    return "valid"


class _WithInput:
    """Adds the input to any exception."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is not None:
            error.add_note(repr(self.data))


# --- what every message must be


def check_message(error: InputError) -> None:
    check_problems(error.problems)


def check_problems(problems: Iterable[Any]) -> None:
    """A message is one line of text that a terminal cannot take for anything else, and short."""
    for problem in problems:
        text = str(problem)
        _differ(len(text) > 1000, f"a message of {len(text)} characters")
        _differ(not problem.message, "an empty message")


def _differ(wrong: bool, how: str) -> None:
    if wrong:
        raise Disagreement(how)


def one_by_one(function: Callable[[bytes], str]) -> Callable[[Sequence[bytes]], list[str]]:
    def all_of(inputs: Sequence[bytes]) -> list[str]:
        outcomes = []
        for data in inputs:
            with _WithInput(data):
                outcomes.append(function(data))
        return outcomes

    return all_of


TARGETS: dict[str, Callable[[Sequence[bytes]], list[str]]] = {
    "coco-results": one_by_one(coco_results),
    "coco-truth": one_by_one(coco_truth),
    "coco-result-masks": one_by_one(coco_result_masks),
    "coco-truth-masks": one_by_one(coco_truth_masks),
    "voc-xml": one_by_one(voc_xml),
    "voc-text": one_by_one(voc_text),
    "yolo-text": one_by_one(yolo_text),
    "cvat": one_by_one(cvat),
    "labelme": one_by_one(labelme_shapes),
    "open-images": one_by_one(open_images_rows),
    **{name: one_by_one(labelling(name)) for name in labelling_tools.READERS},
}
"""Functions that read a batch of inputs and return the validity of each."""
