"""The lines of a file, each an image with its objects: checked, and put in columns."""

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
from detap.formats.stem_matching import base_name, without_suffix
from detap.io.digest import read_hashed
from detap.io.json_text import HOLDS_CONSTANTS, JsonText, NotJsonError, decode, looks_like, spelt
from detap.io.limits import MORE_RECORDS, Limits
from detap.io.paths import Path
from detap.io.problems import FaultError, Problems
from detap.tables.detection import Name

SHAPE = 'a line is {"file_name": ..., "objects": {"bbox": [[...], ...], "category": [...]}}'
FLAGS = ("iscrowd", "ignore", "isgroupof", "difficult")
_CLASSES = ("category", "categories", "category_id", "label", "labels")
"""What sets call the list of classes."""


@dataclass(slots=True)
class Lines:
    """What a file holds; N boxes, each with its place, and the images in the order of the file.

    `area` is NaN where a box has none of its own.
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


def read_lines(path: Path, limits: Limits, *, scored: bool) -> Lines:
    """Read a file.

    Parameters
    ----------
    path : str or path
    limits : Limits
        What is accepted at most.
    scored : bool
        Whether every box has a score.

    Raises
    ------
    InputError
        With every problem, up to the limit.
    """
    file = os.fspath(path)
    problems = Problems(file, limits.problems)
    data, digest = read_hashed(file, limits)
    lines = Lines(file, digest)
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
            problems.add(location, f"more than {limits.records} boxes", MORE_RECORDS)
            break
    if not lines.sizes and not problems.count:
        problems.add("", "has no line", SHAPE)
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
        raise FaultError(f"is {spelt(value)}, where an object is due", SHAPE)
    return value


def _take(lines: Lines, record: Record, location: str, scored: bool) -> None:
    if "objects" not in record and "bbox" in record:
        message = "is a single box, where an image with its objects is due"
        raise FaultError(message, f"{SHAPE}; a list of results is COCO's JSON")
    image = _image(record)
    if image in lines.sizes:
        raise FaultError(f"image {spelt(image)} stands in an earlier line", "give it one line")
    objects = list(_objects(required(record, "objects")))
    lines.sizes[image] = size_of(record.get("width")), size_of(record.get("height"))
    if isinstance(record.get("file_name"), str):
        lines.file_names[image] = record["file_name"]
    for number, one in enumerate(objects):
        try:
            _take_object(lines, image, one, scored)
        except FaultError as wrong:
            raise FaultError(f"objects[{number}]: {wrong.message}", wrong.hint) from None
        lines.location.append(f"{location}: objects[{number}]")


def _image(record: Record) -> Name:
    """Return the image's id, or the stem of its file where there is none."""
    if "image_id" in record:
        return identifier_of(record, "image_id")
    name = record.get("file_name")
    if not isinstance(name, str) or not name:
        raise FaultError("has neither image_id nor file_name", SHAPE)
    check_text("file_name", name)
    return without_suffix(base_name(name))


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Give each object, of a list of them or of lists of what they have."""
    if isinstance(value, list):
        for one in value:
            if not isinstance(one, dict):
                raise FaultError(f"objects holds {spelt(one)}", SHAPE)
            yield one
        return
    if not isinstance(value, dict) or not isinstance(value.get("bbox"), list):
        raise FaultError(f"objects is {spelt(value)}", SHAPE)
    lists = {name: one for name, one in value.items() if isinstance(one, list)}
    count = len(value["bbox"])
    for name, one in lists.items():
        if len(one) != count:
            raise FaultError(
                f"objects.{name} has {len(one)} entries, objects.bbox {count}",
                "give each object all of them",
            )
    for number in range(count):
        yield {name: one[number] for name, one in lists.items()}


def _take_object(lines: Lines, image: Name, one: Mapping[str, Any], scored: bool) -> None:
    record = {name: value for name, value in one.items() if value is not None}
    key = next((name for name in _CLASSES if name in record), "category")
    label = identifier_of(record, key)
    box = box_of(record)
    area = area_of(record, 1.0, float("nan"))
    flags = [name in record and flag_of(record, name) for name in FLAGS]
    score = score_of(required(record, "score")) if scored else 0.0
    if not scored and "score" in record:
        raise FaultError("has a score, as detections have", "give the ground truth")
    lines.image.append(image)
    lines.label.append(label)
    lines.box.extend(box)
    lines.area.append(area)
    lines.score.append(score)
    for name, flag in zip(FLAGS, flags, strict=True):
        lines.flags[name].append(flag)
