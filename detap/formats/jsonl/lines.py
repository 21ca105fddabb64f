"""Read and check lines, each an image with its objects, into columns."""

import os
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from detap.formats.reading.attributes import Attributes
from detap.formats.stem_matching import base_name, without_suffix
from detap.io.digest import read_hashed
from detap.io.json_text import (
    HOLDS_CONSTANTS,
    JsonText,
    NotJsonError,
    decode,
    looks_like,
    short_json,
)
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.io.problems import FaultError, Problems
from detap.tables.columns import indices_in
from detap.tables.detection import Flags, Floats, Integers, Name

SHAPE = 'expected {"file_name": ..., "objects": {"bbox": [[...], ...], "category": [...]}}'
FLAGS = ("iscrowd", "ignore", "isgroupof", "difficult")
_CLASSES = ("category", "categories", "category_id", "label", "labels")
"""Keys for the list of classes."""


@dataclass(slots=True)
class Lines:
    """The content of a file: I images with N boxes of K classes.

    Attributes
    ----------
    path, sha256 : str
    sizes : dict of Name to (float, float)
        Width and height of each image, in file order; NaN if unknown.
    file_names : dict of Name to str
        Of the images that have one.
    numbers : (I,) int64
        The line of each image.
    end : (I,) int64
        The end of the rows of each image.
    classes : list of K Name
    label : (N,) int32
        Indices into `classes`.
    box : (N, 4) float64
        As written.
    area : (N,) float64
        NaN if a box has none of its own.
    score : (N,) float64
        0 for ground truth.
    flags : dict of str to (N,) bool
    attributes : Attributes
    """

    path: str
    sha256: str
    sizes: dict[Name, tuple[float, float]]
    file_names: dict[Name, str]
    numbers: NDArray[np.int64]
    end: NDArray[np.int64]
    classes: list[Name]
    label: Integers
    box: Floats
    area: Floats
    score: Floats
    flags: dict[str, Flags]
    attributes: Attributes

    def __len__(self) -> int:
        return len(self.label)

    @property
    def image(self) -> Integers:
        """The index of the image of each box, (N,) int32."""
        counts = np.diff(self.end, prepend=0)
        return np.repeat(np.arange(len(counts), dtype=np.int32), counts)

    def location(self, row: int) -> str:
        """Return the line of a box and its index there."""
        image = int(np.searchsorted(self.end, row, side="right"))
        first = int(self.end[image - 1]) if image else 0
        return f"line {self.numbers[image]}: objects[{row - first}]"


def read_lines(
    path: Path, limits: Limits, *, scored: bool, attributes: tuple[str, ...] = ()
) -> Lines:
    """Read a file.

    Parameters
    ----------
    path : str or path
    limits : Limits
        Limits on the input size.
    scored : bool
        Require a score for every box.
    attributes : tuple of str
        Further keys of objects to read.

    Raises
    ------
    InputError
        If the file is invalid; lists every problem, up to the limit.
    """
    file = os.fspath(path)
    data, digest = read_hashed(file, limits)
    lines = None if attributes else _scan(data, limits, scored)
    if lines is None:
        lines = _Reader(file, limits, scored, attributes).read(data)
    return replace(lines, path=file, sha256=digest)


def _scan(data: bytes, limits: Limits, scored: bool) -> Lines | None:
    """Read regular lines fast; return None for others."""
    from detap.formats.coco._scan import LinesScan

    scan = LinesScan(-1, BytesIO(data).read, len(data), limits.records, limits.nesting)
    if not scan.run(scored):
        return None
    try:
        images, written = scan.image_lines(), scan.classes()
    except UnicodeError:
        return None
    names: list[Name] = []
    file_names: dict[Name, str] = {}
    for identifier, file_name, _, _ in images:
        name = identifier
        if name is None:
            name = without_suffix(base_name(file_name)) if file_name else ""
        if file_name is not None:
            file_names[name] = file_name
        names.append(name)
    size, label, box, area, score, flags = map(np.asarray, scan.columns())
    sizes = dict(zip(names, _sizes(size), strict=True))
    if len(sizes) < len(names) or any(file_name == "" for _, file_name, _, _ in images):
        return None
    classes = [*dict.fromkeys(written)]
    if len(classes) < len(written):  # written in several ways, with escapes
        label = indices_in(written, classes)[label]
    numbers, end = np.array([image[2:] for image in images], np.int64).T
    by_name = {name: flags[:, k].copy() for k, name in enumerate(FLAGS)}
    return Lines(
        "",
        "",
        sizes,
        file_names,
        numbers,
        end,
        classes,
        label,
        box,
        area,
        score,
        by_name,
        Attributes(()),
    )


def _sizes(columns: Floats) -> list[tuple[float, float]]:
    """Return the usable widths and heights; NaN for others, as `size_of`."""
    usable = (columns > 0) & (columns < WHOLE_FLOATS)
    return [(width, height) for width, height in np.where(usable, columns, np.nan).tolist()]


class _Reader:
    """Reader of any valid file, which collects the problems of an invalid one."""

    def __init__(
        self, path: str, limits: Limits, scored: bool, attributes: tuple[str, ...]
    ) -> None:
        self.limits, self.scored = limits, scored
        self.problems = Problems(path, limits.problems)
        self.sizes: dict[Name, tuple[float, float]] = {}
        self.file_names: dict[Name, str] = {}
        self.numbers, self.end = array("q"), array("q")
        self.label: list[Name] = []
        self.box, self.area, self.score = array("d"), array("d"), array("d")
        self.flags: dict[str, list[bool]] = {name: [] for name in FLAGS}
        self.attributes = Attributes(attributes)

    def read(self, data: bytes) -> Lines:
        """Return the content; raise InputError if it is invalid."""
        problems = self.problems
        for number, text in enumerate(decode(data, problems).split("\n"), 1):
            if not text.strip():
                continue
            location = f"line {number}"
            try:
                self._take(self._record(text, location), number)
            except NotJsonError as error:
                name, hint = looks_like(data) if number == 1 else ("", "")
                if name and name != "JSON Lines":
                    problems.lead("", f"looks like {name}", hint)
                    break
                problems.add(location, error.message, error.hint)
            except FaultError as wrong:
                problems.add(location, wrong.message, wrong.hint)
            if len(self.label) > self.limits.records:
                problems.add(location, *self.limits.exceeded)
                break
        if not self.sizes and not problems.count:
            problems.add("", "is empty", SHAPE)
        problems.raise_any()
        classes = [*dict.fromkeys(self.label)]
        return Lines(
            path="",
            sha256="",
            sizes=self.sizes,
            file_names=self.file_names,
            numbers=np.array(self.numbers, np.int64),
            end=np.array(self.end, np.int64),
            classes=classes,
            label=indices_in(self.label, classes),
            box=np.array(self.box, np.float64).reshape(-1, 4),
            area=np.array(self.area, np.float64),
            score=np.array(self.score, np.float64),
            flags={name: np.array(values, np.bool_) for name, values in self.flags.items()},
            attributes=self.attributes,
        )

    def _record(self, text: str, location: str) -> Record:
        faults = Problems("", 1)
        cursor = JsonText(text, faults)
        cursor.peek()
        value = cursor.value("")
        cursor.finish()
        if cursor.constants:
            raise FaultError(*HOLDS_CONSTANTS)
        for problem in faults.listed:
            self.problems.add(location, problem.message, problem.hint)
        if not isinstance(value, dict):
            raise FaultError(f"is {short_json(value)}, expected an object", SHAPE)
        return value

    def _take(self, record: Record, number: int) -> None:
        if "objects" not in record and "bbox" in record:
            message = "is a single box, expected an image with its objects"
            raise FaultError(message, f"{SHAPE}; for a list of results use COCO JSON")
        image = _image(record)
        if image in self.sizes:
            raise FaultError(f"duplicate image {short_json(image)}", "keep one line per image")
        objects = list(_objects(required(record, "objects")))
        self.sizes[image] = size_of(record.get("width")), size_of(record.get("height"))
        if isinstance(record.get("file_name"), str):
            self.file_names[image] = record["file_name"]
        for index, item in enumerate(objects):
            try:
                self._take_object(item)
            except FaultError as wrong:
                raise FaultError(f"objects[{index}]: {wrong.message}", wrong.hint) from None
        self.numbers.append(number)
        self.end.append(len(self.label))

    def _take_object(self, item: Mapping[str, Any]) -> None:
        record = {name: value for name, value in item.items() if value is not None}
        key = next((name for name in _CLASSES if name in record), "category")
        label = identifier_of(record, key)
        box = box_of(record)
        area = area_of(record, 1.0, float("nan"))
        flags = [name in record and flag_of(record, name) for name in FLAGS]
        score = score_of(required(record, "score")) if self.scored else 0.0
        if not self.scored and "score" in record:
            raise FaultError("has a score (detections?)", "use the ground truth")
        self.attributes.append(self.attributes.values(record.get))
        self.label.append(label)
        self.box.extend(box)
        self.area.append(area)
        self.score.append(score)
        for name, flag in zip(FLAGS, flags, strict=True):
            self.flags[name].append(flag)


def _image(record: Record) -> Name:
    """Return the image's id, or the stem of its file name."""
    if "image_id" in record:
        return identifier_of(record, "image_id")
    name = record.get("file_name")
    if not isinstance(name, str) or not name:
        raise FaultError("has neither image_id nor file_name", SHAPE)
    check_text("file_name", name)
    return without_suffix(base_name(name))


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield each object of a list of objects or of an object of lists."""
    if isinstance(value, list):
        for item in value:
            if not isinstance(item, dict):
                raise FaultError(f"objects contains {short_json(item)}", SHAPE)
            yield item
        return
    if not isinstance(value, dict) or not isinstance(value.get("bbox"), list):
        raise FaultError(f"objects is {short_json(value)}", SHAPE)
    lists = {name: values for name, values in value.items() if isinstance(values, list)}
    count = len(value["bbox"])
    for name, values in lists.items():
        if len(values) != count:
            raise FaultError(
                f"objects.{name} has {len(values)} values, objects.bbox has {count}",
                "write one value per object",
            )
    for number in range(count):
        yield {name: values[number] for name, values in lists.items()}
