"""Map image and category ids of results to the ground truth.

Some detectors write file stems as image ids, as numbers if they are digits (Ultralytics'
``predictions.json``). If the ground truth has class names, category ids require a list of names.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import compress
from typing import NamedTuple
from unicodedata import normalize

import numpy as np

from detap.checks.box_stats import found_classes
from detap.checks.boxes import image_keys
from detap.errors import InputError, Note, Problem
from detap.formats.catalogue import FORMATS
from detap.formats.coco.records import no_common_id, other_name, other_type
from detap.formats.stem_matching import ImageNames, stem_of
from detap.formats.text.class_names import DATA_YAML, ClassNames
from detap.io.json_text import short_json
from detap.io.limits import Limits
from detap.io.problems import Problems
from detap.io.stream import refuse
from detap.tables.detection import (
    SAMPLED_IMAGES,
    Detections,
    Flags,
    GroundTruth,
    Integers,
    Name,
    distinct_name,
)
from detap.tables.notes import INSIST, SAME_IMAGES, extra_images_note, extra_images_problem
from detap.text_input import is_whole, join_names

_MIN_RATIO = 4
"""Minimum ratio of the overlapped ground truths of two interpretations."""
_MIN_SUPPORT = 5
"""Minimum number of overlapped ground truths."""
_MIN_SUPPORT_OF_PART = 20
"""The same for one of several inputs."""
_CLASS_DIGITS = 7
"""Digits of class numbers that may be listed."""
_MAX_DIGITS = 18
"""Digits that always fit into int64."""
_MAX_TRUTHS = 32
"""Ground truths sampled per image."""
_MIN_IOU = 0.5


# --- categories of overlapping boxes


class CategoryPairs(NamedTuple):
    """Classes of overlapping ground truths and detections in a sample of images."""

    images: tuple[tuple[int, list[tuple[int, int]]], ...]  # by key, ascending
    pairs: list[tuple[int, int]]  # of all images
    ground_truths: int  # that were sampled


def sample_categories(columns: Detections, truth: GroundTruth) -> CategoryPairs:
    """Sample the classes of overlapping ground truths and detections."""
    images = np.flatnonzero(truth.images_with_rows & columns.images_with_rows)
    keys = image_keys([truth.images[image] for image in images.tolist()])
    first = np.lexsort((keys,))[:SAMPLED_IMAGES]
    by_image, count = [], 0
    sampled = np.zeros(len(truth.images), np.bool_)
    sampled[images[first]] = True
    truth_rows = np.flatnonzero(sampled[truth.image] & ~truth.crowd)
    detection_rows = np.flatnonzero(sampled[columns.image])
    for key, image in zip(keys[first].tolist(), images[first].tolist(), strict=True):
        gt = truth_rows[truth.image[truth_rows] == image]
        gt = gt[:: -(-len(gt) // _MAX_TRUTHS) or 1]
        dt = detection_rows[columns.image[detection_rows] == image]
        count += len(gt)
        pairs = found_classes(
            truth.corners[gt], truth.label[gt], columns.corners[dt], columns.label[dt], _MIN_IOU
        )
        by_image.append((key, pairs))
    return CategoryPairs(tuple(by_image), [p for _, pairs in by_image for p in pairs], count)


# --- images


def _file_names(truth: GroundTruth) -> Mapping[Name, str]:
    """Return the files of images; none if they cannot be read again."""
    source = FORMATS.get(truth.format)
    if source is None or not source.by_ids:
        return {name: name for name in truth.images if isinstance(name, str)}
    with suppress(InputError, ValueError, KeyError, TypeError):
        return source.file_names(truth)
    return {}


def _named_images(truth: GroundTruth) -> ImageNames:
    """Return the images by file name; none if names are unknown: "7" is not the id 7."""
    files = _file_names(truth)
    return ImageNames(truth.images if files.keys() >= set(truth.images) else (), files)


def image_indices(
    truth: GroundTruth, used: Collection[Name], listed: Mapping[Name, str], *, compare: bool = False
) -> tuple[dict[Name, int], tuple[Note, ...]]:
    """Return the image index of each id `used` in results, which may list its file; and a note.

    With `compare`, files listed for known ids may differ from those of the ground truth.
    """
    by_id = {identifier: index for index, identifier in enumerate(truth.images)}
    if by_id.keys() >= set(used):
        expected = _file_names(truth) if compare and listed else {}
        other = sum(
            stem_of(name) != stem_of(expected[identifier])
            for identifier, name in listed.items()
            if identifier in expected
        )
        if not other:
            return by_id, ()
        find = ImageNames(truth.images, expected).find_file
        by_file = {name: find(listed[name]) if name in listed else -1 for name in used}
        if min(by_file.values(), default=0) < 0:
            return by_id, (Note("images-of-other-names", _OTHER_NAMES, other),)
        return by_file, (Note("images-matched-by-name", _BY_NAME, other, severity="info"),)
    names = _named_images(truth)
    by_stem = {} if listed else _indices_by_number(names)
    files = listed or {name: name for name in used if isinstance(name, str)}
    by_stem |= {name: row for name, file in files.items() if (row := names.find_file(file)) >= 0}
    stem_count, id_count = (sum(name in ids for name in used) for ids in (by_stem, by_id))
    if stem_count < len(used):
        by_text = {name: by_id.get(_number_in(name), -1) for name in used}
        if min(by_text.values()) >= 0:
            return by_text, (Note("image-ids-as-text", _AS_TEXT, len(used), severity="info"),)
    return by_stem if stem_count > id_count else by_id, ()


_OTHER_NAMES = "image ids have different file names in results and ground truth; same images?"
_BY_NAME = "image ids of the results differ; matched by file_name"
_AS_TEXT = "image ids are text; read as the numbers of the ground truth"


def _number_in(name: Name) -> int:
    """Return the number that is written as text, or -1."""
    is_number = isinstance(name, str) and is_whole(name) and len(name) <= _MAX_DIGITS
    return int(name) if is_number else -1


def _indices_by_number(names: ImageNames) -> dict[Name, int]:
    """Return the image index of each number that is the stem of one image only."""
    stems = map(_number_in, map(stem_of, names.names))
    numbers = {index: number for index, number in enumerate(stems) if number >= 0}
    counts = Counter(numbers.values())
    return {number: index for index, number in numbers.items() if counts[number] == 1}


def check_images(
    image: Integers,
    names: tuple[Integers, Sequence[Name]],
    truth: GroundTruth,
    problems: Problems,
    *,
    limits: Limits,
    location: Callable[[int], str],
) -> tuple[Flags, Note]:
    """Return the flags of rows of unknown images, -1, and their note; or add their problem.

    `names` are the index (N,) of each row's image among those of the results, and their names.
    """
    unknown, (rows, ids) = np.flatnonzero(image < 0), names
    counts = len(unknown), len({*rows[unknown].tolist()})  # np.unique would import numpy.ma
    left_out = image < 0, extra_images_note(*counts)
    if not limits.refuses_images(len(unknown), len(image)):
        return left_out
    if len(unknown) == len(image):
        problems.instead(no_common_id("image_id", ids, truth.images), SAME_IMAGES)
        return left_out
    name = ids[rows[unknown[0]]]
    other = other_type(name, truth.images)
    message = f"image_id {short_json(name)} is not in the ground truth{other}"
    stems = any(type(ids[row]) is type(name) for row in np.unique(rows[image >= 0]))
    hint = _ambiguous_number(name, truth.images) or ("" if other and not stems else SAME_IMAGES)
    located = problems.file, location(int(unknown[0]))
    problems.extend(extra_images_problem(located, message, *counts, hint))
    return left_out


def _ambiguous_number(identifier: Name, images: Sequence[Name]) -> str:
    """Return the hint for a number that is the stem of several images, or ""."""
    same = [
        name
        for name in images
        if isinstance(identifier, int)
        and isinstance(name, str)
        and is_whole(name)
        and name.lstrip("0") == str(identifier).lstrip("0")
    ]
    if len(same) < 2:
        return ""
    return f"it is the number of {join_names(same)}: write results with file_name"


def check_image_ids(
    columns: Detections, truth: GroundTruth, path: str, by_id: int, *, part: bool
) -> None:
    """Raise InputError if many more ground truths than `by_id` are overlapped by ids as stems."""
    index_by_number = _indices_by_number(_named_images(truth))
    by_number = np.array([index_by_number.get(name, -1) for name in truth.images], np.int32)
    image = by_number[columns.image]
    if (image < 0).any() or (image == columns.image).all():
        return
    by_stem = len(sample_categories(replace(columns, image=image), truth).pairs)
    if by_stem < (_MIN_SUPPORT_OF_PART if part else _MIN_SUPPORT) or by_stem < _MIN_RATIO * by_id:
        return
    message = "image_id looks like the number in the file name, expected the ground truth's id: "
    message += f"in a sample, {by_stem} ground truths would be overlapped instead of {by_id}"
    refuse(path, message, f"use the ground truth's image ids, or pass {INSIST}")


# --- classes


CLASS_NAMES_AS_IDS = Note(
    "categories-matched-by-name",
    "results have class names instead of category ids; matched by name",
    severity="info",
)
"""Note of results whose ``category_id`` or ``category_name`` is a class name."""

_SEPARATORS = str.maketrans("", "", "_- ")
_SAME_CATEGORIES = "use the ground truth's category ids or names"


def match_by_listed_name(
    columns: Detections,
    truth: GroundTruth,
    listed: Mapping[Name, str],
    path: str,
    *,
    any_names: bool = False,
) -> tuple[Detections, tuple[Note, ...]]:
    """Match categories by name if the results have `listed` other names for the ids.

    Unless `any_names`, an id with names that the other file lacks is an error.
    """
    ids = columns.class_ids
    counts = np.bincount(columns.label, minlength=len(ids)).tolist()
    used = list(dict.fromkeys(compress(ids, counts)))
    label_by_id = _labels_by_name(used, ids[len(truth.class_ids) :], listed, truth)
    if not label_by_id:
        return columns, ()
    known = {} if any_names else dict(zip(truth.class_ids, truth.classes, strict=True))
    folded = set(map(_fold, listed.values()))
    problems = [
        Problem(path, "categories", other_name(name, listed[name], known[name]), _SAME_CATEGORIES)
        for name, k in label_by_id.items()
        if k < 0 and name in known and _fold(known[name]) not in folded
    ]
    if problems:
        raise InputError(problems)
    missing = [name for name in used if label_by_id.get(name, -1) < 0]
    labels = [label_by_id.get(name, -1) if name in used else 0 for name in ids]
    changed = _relabeled(columns, truth, labels, ids)
    return changed, tuple(_name_notes(label_by_id, missing, listed, truth))


def _relabeled(
    table: Detections, truth: GroundTruth, labels: Sequence[int], names: Sequence[Name]
) -> Detections:
    """Return detections with the label of each class in the ground truth; -1: under its name."""
    unknown = dict.fromkeys(name for name, k in zip(names, labels, strict=True) if k < 0)
    number = {name: len(truth.classes) + k for k, name in enumerate(unknown)}
    new_label = [number[name] if k < 0 else k for name, k in zip(names, labels, strict=True)]
    return replace(
        table,
        label=np.array(new_label, np.int32)[table.label],
        classes=(*truth.classes, *map(str, unknown)),
        class_ids=(*truth.class_ids, *unknown),
    )


def _labels_by_name(
    used: Iterable[Name], unknown: Iterable[Name], listed: Mapping[Name, str], truth: GroundTruth
) -> dict[Name, int]:
    """Return the class index by category id, -1 for none; empty if names give that of the ids."""
    same_name = {
        identifier: k
        for k, (identifier, name) in enumerate(zip(truth.class_ids, truth.classes, strict=True))
        if identifier in listed
        and name in (listed[identifier], distinct_name(listed[identifier], identifier))
    }
    # Names that are unique without case and separators.
    counts = [Counter(map(_fold, set(group))) for group in (truth.classes, listed.values())]
    folded = {_fold(name): k for k, name in enumerate(truth.classes)}
    unique = {name for name in folded if all(count[name] == 1 for count in counts)}
    by_name = {name: folded[_fold(name)] for name in listed.values() if _fold(name) in unique}
    by_name |= {name: k for k, name in enumerate(truth.classes)}
    labels = {
        name: same_name.get(name, by_name.get(listed[name], -1)) for name in used if name in listed
    }
    by_id = dict.fromkeys(unknown, -1) | same_name
    return {} if labels.items() <= by_id.items() else labels


def _fold(name: str) -> str:
    return normalize("NFC", name).casefold().translate(_SEPARATORS)


def _name_notes(
    labels: Mapping[Name, int],
    missing: Sequence[Name],
    listed: Mapping[Name, str],
    truth: GroundTruth,
) -> Iterator[Note]:
    matched = {name: k for name, k in labels.items() if k >= 0}
    other = sum(truth.class_ids[k] != name for name, k in matched.items())
    if other:
        message = "category ids of the results differ; matched by name"
        yield Note("categories-matched-by-name", message, other, severity="info")
    similar = [
        f"{listed[name]} as {truth.classes[k]}"
        for name, k in matched.items()
        if truth.classes[k] not in (listed[name], distinct_name(listed[name], truth.class_ids[k]))
    ]
    if similar:
        message = f"category names differ in case or separators; matched: {join_names(similar)}"
        yield Note("category-names-alike", message, len(similar))
    names = {*listed.values(), *(truth.classes[k] for k in matched.values())}
    absent = [name for name in truth.classes if name not in names]
    unknown = [listed.get(name, f"id {name}") for name in missing]
    if absent or unknown:
        parts = [
            f"only in the {role}: {join_names(group)}"
            for group, role in ((unknown, "results"), (absent, "ground truth"))
            if group
        ]
        message = f"unmatched category names ({'; '.join(parts)})"
        yield Note("categories-unmatched", message, len(absent) + len(unknown))


class CategoryMapping(NamedTuple):
    """Mapping from category ids to names."""

    path: str  # of the results
    listed: Mapping[Name, str]  # in the results
    names: ClassNames  # from a file
    first: int | None  # id of the first of `names`, if given
    as_is: bool  # accept `first` even if the boxes contradict it
    default: int | None = None  # of `first`, if ids do not decide, and too few boxes do

    def error(self, message: str, hint: str) -> InputError:
        """Return an error about the results."""
        return InputError(Problem(self.path, "", message, hint))


def names_in_order(truth: GroundTruth) -> ClassNames:
    """Return the classes of a YOLO data set, whose `predictions.json` counts them from 1."""
    path = next((file.path for file in truth.files if file.path.endswith(DATA_YAML)), truth.path)
    names = truth.classes
    if names and all(is_whole(name) and len(name) < _CLASS_DIGITS for name in names):
        names = tuple(map(str, range(max(map(int, names)) + 1)))
    return ClassNames(path, names)


def match_by_name(
    columns: Detections, truth: GroundTruth, mapping: CategoryMapping
) -> tuple[Detections, tuple[Note, ...]]:
    """Match categories to a ground truth that has class names instead of ids."""
    ids = columns.class_ids
    known = dict(zip(truth.class_ids, truth.classes, strict=True))
    for identifier in ids:
        name, expected = mapping.listed.get(identifier), known.get(identifier)
        comparable = isinstance(identifier, str) and None not in (name, expected)
        if comparable and expected not in (name, distinct_name(str(name), identifier)):
            raise mapping.error(other_name(identifier, name, expected), _SAME_CATEGORIES)
    numbers = [name for name in ids if isinstance(name, int) and name not in mapping.listed]
    names = {name: mapping.listed.get(name, name) for name in ids if name not in numbers}
    notes: tuple[Note, ...] = ()
    if numbers:
        first = _first_id(columns, truth, mapping, numbers)
        names |= {name: mapping.names.names[name - first] for name in numbers}
        if mapping.first is None:
            message = f"category_id {first} is the first name of {mapping.names.file}"
            notes = (Note("categories-counted", message, len(numbers), severity="info"),)
    return _with_labels(columns, truth, [str(names[name]) for name in ids]), notes


def _with_labels(columns: Detections, truth: GroundTruth, names: Sequence[str]) -> Detections:
    """Return the detections, whose labels index `names`, with the ground truth's labels."""
    label_by_name: dict[Name, int] = {name: k for k, name in enumerate(truth.classes)}
    label_by_name |= {name: k for k, name in enumerate(truth.class_ids) if isinstance(name, str)}
    return _relabeled(columns, truth, [label_by_name.get(name, -1) for name in names], names)


def _first_id(
    columns: Detections, truth: GroundTruth, mapping: CategoryMapping, ids: Sequence[int]
) -> int:
    """Return the id of the first name: as given, or detected from the ids or boxes."""
    names, low, high = mapping.names, min(ids), max(ids)
    if not names.names:
        example = f" (e.g. {short_json(truth.classes[0])})" if truth.classes else ""
        raise mapping.error(
            f"category_id {low} is a number, but the ground truth has class names{example}",
            "pass class_names (--class-names FILE), one name per line in the order of the ids",
        )
    possible = [
        first
        for first in ((0, 1) if mapping.first is None else (mapping.first,))
        if low >= first and high < len(names.names) + first
    ]
    if not possible:
        start = "0 or 1" if mapping.first is None else str(mapping.first)
        raise mapping.error(
            f"category_id ranges from {low} to {high}, but {names.file} has {len(names.names)} "
            f"name{'s' * (len(names.names) != 1)}, counted from {start}",
            "use the class names of the detector",
        )
    if len(possible) == 1 and mapping.first is None:
        return possible[0]
    detected = _detect_first_id(columns, truth, mapping)
    if mapping.first is not None:
        if detected not in (None, mapping.first) and not mapping.as_is:
            raise mapping.error(
                f"first_category_id looks like {detected}, not {mapping.first}: the boxes then "
                "overlap ground truths of their class",
                f"pass first_category_id={detected} (--first-category-id {detected}), or {INSIST}",
            )
        return mapping.first
    if detected is None:
        raise mapping.error(
            f"category_id ranges from {low} to {high}, so the {len(names.names)} names of "
            f"{names.file} may be counted from 0 or 1, and too few boxes overlap to decide",
            "pass first_category_id (--first-category-id)",
        )
    return detected


def _detect_first_id(
    columns: Detections, truth: GroundTruth, mapping: CategoryMapping
) -> int | None:
    """Return the first id for which boxes overlap their class; the default if few overlap any."""
    names = mapping.names.names
    agreeing, overlapping = [], 0
    for first in (0, 1):
        shifted = [
            names[name - first]
            if isinstance(name, int) and 0 <= name - first < len(names)
            else str(mapping.listed.get(name, name))
            for name in columns.class_ids
        ]
        pairs = sample_categories(_with_labels(columns, truth, shifted), truth).pairs
        agreeing.append(sum(gt == dt for gt, dt in pairs))
        overlapping = len(pairs)
    best = int(agreeing[1] > agreeing[0])
    enough = agreeing[best] >= _MIN_SUPPORT and agreeing[best] >= _MIN_RATIO * agreeing[1 - best]
    if enough or mapping.default is None:
        return best if enough else None
    agree = overlapping < _MIN_SUPPORT or 2 * agreeing[mapping.default] >= overlapping
    return mapping.default if agree else None
