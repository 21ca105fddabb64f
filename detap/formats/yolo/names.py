"""Class names and ``kpt_shape`` of YOLO data sets and predictions; Darknet's ``obj.data``."""

import os
from collections.abc import Sequence
from contextlib import suppress

from detap.errors import InputError
from detap.formats.text.class_names import ClassNames, is_data_yaml
from detap.formats.text.folder import Folder
from detap.formats.text.lines import plain_lines
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.io.problems import Problems
from detap.io.stream import read_bytes, refuse
from detap.tables.detection import GroundTruth
from detap.text_input import is_whole, quote

TRUTH = "the ground truth"
"""The file of names that come from a ground truth, in messages."""
NAME_LISTS = ("classes.txt", "obj.names", "data.yaml")
"""Files of class names next to labels."""
OBJ_DATA = "obj.data"
PREFIX = "data/"
"""CVAT writes paths below this folder, which its archives do not have."""
_OTHER_KEYS = frozenset({"classes", "names", "backup", "eval", "results"})


def read_obj_data(file: str, limits: Limits) -> ClassNames:
    """Read the ``obj.data`` of CVAT's "YOLO 1.1" exports as if it were a `data.yaml`."""
    problems = Problems(limits.problems)
    values: dict[str, str] = {}
    for number, text in plain_lines(read_bytes(file, limits), file, problems):
        key, separator, value = (part.strip() for part in text.partition("="))
        if text.startswith("#"):
            continue
        if not separator or not key or not value:
            message = f"{quote(text)} is not `key = value`"
            problems.add(file, f"line {number}", message, "correct it")
        elif key in values:
            message = f"duplicate key {quote(key)}"
            problems.add(file, f"line {number}", message, "keep one of them")
        values.setdefault(key, value)
    problems.raise_any()
    if "names" not in values:
        refuse(file, "has no `names =`", "add the file with one class name per line")
    folder = os.path.dirname(file) or "."
    given = values["names"]
    paths = [os.path.join(folder, name) for name in (given, given.removeprefix(PREFIX))]
    path = paths[0] if "\0" in given else next(filter(os.path.exists, paths), paths[0])
    # Otherwise any file of the machine could be shown as names.
    if os.path.relpath(path, folder).startswith(os.pardir):
        refuse(file, f"names = {quote(given)} is outside its folder", "move it")
    names = ClassNames.load(path, limits)
    count = values.get("classes")
    if count is not None and (not is_whole(count) or int(count[:9]) != len(names.names)):
        message = f"classes is {quote(count)}, but {names.file} has {len(names.names)} names"
        refuse(file, message, "correct one of them")
    splits = {key: (value,) for key, value in values.items() if key not in _OTHER_KEYS}
    if not splits:
        refuse(file, "no list of images", "add one, such as `train = train.txt`")
    return ClassNames(file, names.names, splits=splits)


def kpt_shape(lists: Sequence[ClassNames]) -> tuple[int, int] | None:
    """Return the ``kpt_shape`` of the files; raise InputError if two differ."""
    given = {names.keypoints: names.file for names in lists if names.keypoints is not None}
    if len(given) > 1:
        (one, first), (other, second) = sorted(given.items())[:2]
        message = f"kpt_shape is [{other[0]}, {other[1]}], and [{one[0]}, {one[1]}] in {first}"
        refuse(second, message, "correct one of them")
    return next(iter(given), None)


def names_of_labels(
    data: ClassNames, labels: str, given: Path | None, limits: Limits, *, as_is: bool
) -> ClassNames:
    """Return the list of class names of a data set with a `data.yaml`, empty if unknown.

    All lists that exist in and above `labels` must be equal.
    """
    lists = [ClassNames.load(given, limits), data]
    folder = labels
    for _ in range(3):
        lists += [read_if_valid(os.path.join(folder, name), limits) for name in NAME_LISTS]
        folder = os.path.normpath(os.path.join(folder, os.pardir))
    return _single_list(lists, as_is=as_is)


def names_of_detections(
    folder: Folder, truth: GroundTruth, given: Path | None, limits: Limits, *, as_is: bool
) -> ClassNames:
    """Return the list of class names of predictions, or none if unknown.

    A list next to them must equal that of the ground truth or the given one.
    """
    lists = [ClassNames.load(given, limits)]
    paths = [source.path for source in truth.files]
    name_files = [p for p in paths if is_data_yaml(p) or os.path.basename(p) in NAME_LISTS]
    _single_list([read_if_valid(file, limits) for file in name_files])  # of several data sets
    if given is None and truth.format == "yolo" and not all(map(is_whole, truth.classes)):
        lists.append(ClassNames(next(iter(name_files), TRUTH), truth.classes))
    lists += [read_if_valid(os.path.join(folder.path, name), limits) for name in NAME_LISTS]
    return _single_list(lists, as_is=as_is)


def read_if_valid(path: str, limits: Limits) -> ClassNames:
    """Return the names that a file lists, or none if it is missing or invalid."""
    if os.path.isfile(path):
        with suppress(InputError):
            return ClassNames.load(path, limits)
    return ClassNames()


def _single_list(lists: Sequence[ClassNames], *, as_is: bool = False) -> ClassNames:
    """Return the first list that is not empty; raise InputError if another one differs."""
    existing = [names for names in lists if names.names]
    for other in [] if as_is else existing[1:]:
        existing[0].check_same(other)
    return existing[0] if existing else ClassNames()


def check_numbered(path: str, truth: GroundTruth, names: Sequence[str]) -> None:
    """Raise InputError for class numbers if the ground truth has names."""
    if any(map(str.isdigit, names)) and not all(map(is_whole, truth.classes)):
        example = f"(e.g. {quote(truth.classes[0])})"
        message = f"the ground truth has class names {example}, the results have numbers"
        hint = "pass --class-names FILE: data.yaml, obj.names or classes.txt"
        refuse(path, message, hint)
