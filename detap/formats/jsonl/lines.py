"""Read and check lines, each an image with its objects, into columns."""

import os
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from detap.formats.coco.values import (
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
from detap.tables.detection import Name

SHAPE = 'expected {"file_name": ..., "objects": {"bbox": [[...], ...], "category": [...]}}'
FLAGS = ("iscrowd", "ignore", "isgroupof", "difficult")
_CLASSES = ("category", "categories", "category_id", "label", "labels")
"""Keys for the list of classes."""


@dataclass(slots=True)
class Lines:
    """The content of a file: its images, and N boxes with their locations.

    `area` is NaN if a box has none of its own.
    """

    path: str
    sha256: str = ""
    sizes: dict[Name, tuple[float, float]] = field(default_factory=dict)
    file_names: dict[Name, str] = field(default_factory=dict)
    image: list[Name] = field(default_factory=list)
    label: list[Name] = field(default_factory=list)
    box: "array[float]" = field(default_factory=lambda: array("d"))
    area: "array[float]" = field(default_factory=lambda: array("d"))
    score: "array[float]" = field(default_factory=lambda: array("d"))
    flags: dict[str, list[bool]] = field(default_factory=lambda: {name: [] for name in FLAGS})
    location: list[str] = field(default_factory=list)
    attributes: Attributes = field(default_factory=lambda: Attributes(()))


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
    problems = Problems(file, limits.problems)
    data, digest = read_hashed(file, limits)
    lines = Lines(file, digest, attributes=Attributes(attributes))
    for number, text in enumerate(decode(data, problems).split("\n"), 1):
        if not text.strip():
            continue
        location = f"line {number}"
        try:
            _take(lines, _record(text, file, location, problems), location, scored)
        except NotJsonError as error:
            name, hint = looks_like(data) if number == 1 else ("", "")
            if name and name != "JSON Lines":
                problems.lead("", f"looks like {name}", hint)
                break
            problems.add(location, error.message, error.hint)
        except FaultError as wrong:
            problems.add(location, wrong.message, wrong.hint)
        if len(lines.location) > limits.records:
            problems.add(location, *limits.exceeded)
            break
    if not lines.sizes and not problems.count:
        problems.add("", "is empty", SHAPE)
    problems.raise_any()
    return lines


def _record(text: str, file: str, location: str, problems: Problems) -> Record:
    faults = Problems(file, 1)
    cursor = JsonText(text, faults)
    cursor.peek()
    value = cursor.value("")
    cursor.finish()
    if cursor.constants:
        raise FaultError(*HOLDS_CONSTANTS)
    for problem in faults.listed:
        problems.add(location, problem.message, problem.hint)
    if not isinstance(value, dict):
        raise FaultError(f"is {short_json(value)}, expected an object", SHAPE)
    return value


def _take(lines: Lines, record: Record, location: str, scored: bool) -> None:
    if "objects" not in record and "bbox" in record:
        message = "is a single box, expected an image with its objects"
        raise FaultError(message, f"{SHAPE}; for a list of results use COCO JSON")
    image = _image(record)
    if image in lines.sizes:
        raise FaultError(f"duplicate image {short_json(image)}", "keep one line per image")
    objects = list(_objects(required(record, "objects")))
    lines.sizes[image] = size_of(record.get("width")), size_of(record.get("height"))
    if isinstance(record.get("file_name"), str):
        lines.file_names[image] = record["file_name"]
    for number, record_of_object in enumerate(objects):
        try:
            _take_object(lines, image, record_of_object, scored)
        except FaultError as wrong:
            raise FaultError(f"objects[{number}]: {wrong.message}", wrong.hint) from None
        lines.location.append(f"{location}: objects[{number}]")


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


def _take_object(lines: Lines, image: Name, item: Mapping[str, Any], scored: bool) -> None:
    record = {name: value for name, value in item.items() if value is not None}
    key = next((name for name in _CLASSES if name in record), "category")
    label = identifier_of(record, key)
    box = box_of(record)
    area = area_of(record, 1.0, float("nan"))
    flags = [name in record and flag_of(record, name) for name in FLAGS]
    score = score_of(required(record, "score")) if scored else 0.0
    if not scored and "score" in record:
        raise FaultError("has a score (detections?)", "use the ground truth")
    lines.attributes.append(lines.attributes.values(record.get))
    lines.image.append(image)
    lines.label.append(label)
    lines.box.extend(box)
    lines.area.append(area)
    lines.score.append(score)
    for name, flag in zip(FLAGS, flags, strict=True):
        lines.flags[name].append(flag)
