"""Class names and ``kpt_shape`` of YOLO data sets and predictions."""

import os
from collections.abc import Sequence
from contextlib import suppress

from detap.errors import InputError, Problem
from detap.formats.by_name.problems import Problems
from detap.formats.text.class_names import ClassNames
from detap.formats.text.data_yaml import DataYaml
from detap.formats.text.folder import Folder
from detap.formats.yolo.dataset import NAME_LISTS, DataSet, is_data_yaml
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.tables.detection import GroundTruth
from detap.text_input import is_whole, quote

TRUTH = "the ground truth"
"""The file of names that come from a ground truth, in messages."""


def names_of_data(data: DataYaml | None) -> list[ClassNames]:
    """Return the names of a `data.yaml`, if there is one."""
    if data is None:
        return []
    return [ClassNames(data.file, data.names, data.keypoints, data.sigmas)]


def kpt_shape(lists: Sequence[ClassNames]) -> tuple[int, int] | None:
    """Return the ``kpt_shape`` of the files; raise InputError if two differ."""
    given = {names.keypoints: names.file for names in lists if names.keypoints is not None}
    if len(given) > 1:
        (one, first), (other, second) = sorted(given.items())[:2]
        message = f"kpt_shape is [{other[0]}, {other[1]}], and [{one[0]}, {one[1]}] in {first}"
        raise InputError(Problem(second, "", message, "correct one of them"))
    return next(iter(given), None)


def names_of_truth(
    data_set: DataSet, given: Path | None, limits: Limits, *, as_is: bool
) -> ClassNames:
    """Return the list of class names; all existing lists must be equal."""
    lists = [ClassNames.load(given, limits)]
    if data_set.data is not None:
        lists += names_of_data(data_set.data)
    above = data_set.folder.given
    for _ in range(3):
        lists += [read_if_valid(os.path.join(above, name), limits) for name in NAME_LISTS]
        above = os.path.normpath(os.path.join(above, os.pardir))
    return _single_list(lists, as_is=as_is)


def read_if_valid(path: str, limits: Limits) -> ClassNames:
    """Return the names that a file lists, or none if it is missing or invalid."""
    if os.path.isfile(path):
        problems = Problems(1)
        with suppress(InputError):
            names = ClassNames.read(path, problems, limits)
            return ClassNames() if problems.count else names
    return ClassNames()


def _single_list(lists: Sequence[ClassNames], *, as_is: bool = False) -> ClassNames:
    """Return the first list that is not empty; raise InputError if another one differs."""
    existing = [names for names in lists if names.names]
    if not as_is:
        for other in existing[1:]:
            existing[0].check_same(other)
    return existing[0] if existing else ClassNames()


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
    if given is None and truth.format == "yolo" and not _are_numbers(truth.classes):
        lists.append(ClassNames(next(iter(name_files), TRUTH), truth.classes))
    lists += [read_if_valid(os.path.join(folder.path, name), limits) for name in NAME_LISTS]
    return _single_list(lists, as_is=as_is)


def _are_numbers(names: Sequence[str]) -> bool:
    return all(map(is_whole, names))


def check_numbered(path: str, truth: GroundTruth, names: Sequence[str]) -> None:
    """Raise InputError for class numbers if the ground truth has names."""
    if any(map(str.isdigit, names)) and not _are_numbers(truth.classes):
        raise InputError(
            Problem(
                path,
                "",
                f"the ground truth has class names (e.g. {quote(truth.classes[0])}), the results "
                "have numbers",
                "pass --class-names FILE: data.yaml, obj.names or classes.txt",
            )
        )
