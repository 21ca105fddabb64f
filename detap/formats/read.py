"""Read an input of one format.

If ground truth and detections have different formats, images are matched by file stem
(:mod:`detap.formats.stem_matching`) and classes by name.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any
from unicodedata import normalize

from detap.errors import InputError, Note, Problem, UsageError
from detap.formats.base import Format
from detap.formats.catalogue import FORMATS, options
from detap.formats.detection import matching_formats
from detap.formats.options import (
    AS_IS,
    BOXES,
    DETECTIONS,
    EXTRA_IMAGES,
    GEOMETRIES,
    KEYS,
    LAYOUT,
    MISSING_SCORES,
    SPLIT,
    TREATMENTS,
    TRUTH,
    named_coordinates,
)
from detap.formats.stem_matching import (
    base_name,
    by_stem,
    empty_ground_truth,
    restore_ids,
    without_suffix,
)
from detap.io.limits import DEFAULT_LIMITS
from detap.io.paths import STDIN
from detap.io.problems import check_choice
from detap.io.stream import refuse
from detap.tables.detection import Detections, GroundTruth, Table
from detap.tables.notes import EXTRA_IMAGES as LEFT_OUT
from detap.tables.notes import UNICODE_FORM
from detap.text_input import quote

_ADDED = re.compile(
    r"_(?:jpe?g|png|bmp|webp)\.rf\.[0-9a-f]{32}$|(?:(?<=/)|^)[0-9a-f]{8}-(?=[^/]+$)"
)
"""Additions to image names: Roboflow exports ``a.jpg`` as ``a_jpg.rf.<32 hexadecimal digits>.jpg``,
Label Studio as ``<8 hexadecimal digits>-a.jpg``."""


_EXPORTED = Note(
    "exported-names-matched",
    "image names of an export matched without the part that it added",
    severity="info",
)


def ground_truth_from(file_format: Format, path: Any, reading: Mapping[str, Any]) -> GroundTruth:
    """Read ground truth; options for detections alone are ignored."""
    given = reader_options(file_format, TRUTH, reading)
    with _suggesting(file_format, path, TRUTH):
        truth = file_format.read_truth_file(path, **given)
    truth = replace(truth, format=file_format.name)
    return _with_options(file_format, truth, TRUTH, reading, given.get(BOXES.name))


def detections_from(
    file_format: Format, path: Any, ground_truth: GroundTruth | None, reading: Mapping[str, Any]
) -> Detections:
    """Read detections with the indices of their ground truth, or of the names that they have."""
    given = reader_options(file_format, DETECTIONS, reading)
    if ground_truth is None:
        if os.fspath(getattr(path, "path", path)) == STDIN:
            raise UsageError("detections cannot come from stdin without --gt")
        if not hasattr(file_format, "placeholder"):
            raise UsageError(f"{file_format.title} detections require --gt")
        if isinstance(path, str | os.PathLike):
            path = file_format.source(os.fspath(path))  # read once, where the format can
        ground_truth = file_format.placeholder(path, given, given.get("limits", DEFAULT_LIMITS))
    with _suggesting(file_format, path, DETECTIONS):
        detections = _read_named(file_format, path, ground_truth, given)
    boxes = given.get(BOXES.name)
    detections = _with_options(file_format, detections, DETECTIONS, reading, boxes)
    return with_missing_scores(detections, reading.get(MISSING_SCORES))


def with_missing_scores(detections: Detections, treatment: Any) -> Detections:
    """Return detections with what an evaluation takes in place of missing scores."""
    check_choice(MISSING_SCORES, treatment or "none", TREATMENTS)
    if treatment in (None, "none") or detections.has_scores:
        return detections
    if treatment == "error":
        message = f"none of the {len(detections)} detections has a score"
        refuse(detections.path, message, "add them, or leave out --missing-scores error")
    return replace(detections, missing_scores=treatment)


def _read_named(
    file_format: Format, path: Any, truth: GroundTruth, given: dict[str, Any]
) -> Detections:
    """Read detections by the names of images that match most of them."""
    gt_format = FORMATS.get(truth.format, file_format)  # arrays have no format
    same_ids = gt_format.by_ids and file_format.by_ids
    same_names = gt_format is file_format or same_ids or file_format.same_names
    read: list[Detections] = []
    refused: InputError | None = None
    try:
        named = truth if same_names else _by_stem(gt_format, truth)
        table = file_format.read_detections_file(path, named, **given)
        read.append(table if same_names else restore_ids(table, truth))
    except InputError as error:
        refused = error
    if getattr(path, "path", path) != STDIN and (refused or _left_out(read[0])):
        try:
            read += [*_read_renamed(file_format, path, truth, given, same_ids=same_ids)]
        except InputError as error:
            refused = refused and error
    if refused and not read:
        raise refused
    return max(read, key=len)


def _left_out(detections: Detections) -> bool:
    """Return True if detections of unknown images are left out."""
    return any(note.code == LEFT_OUT for note in detections.notes)


def _by_stem(gt_format: Format, truth: GroundTruth) -> GroundTruth:
    """Return ground truth with file stems as image names."""
    return by_stem(truth, gt_format.file_names(truth) if gt_format.by_ids else {})


def _read_renamed(
    file_format: Format, path: Any, truth: GroundTruth, given: dict[str, Any], *, same_ids: bool
) -> Iterator[Detections]:
    """Read detections that name the images or classes in another form than the ground truth."""
    try:
        named = _by_stem(FORMATS.get(truth.format, file_format), truth)
    except (InputError, ValueError, KeyError, TypeError):
        return  # the ground truth cannot be read again
    path = getattr(path, "path", path)
    named = replace(named, class_ids=truth.class_ids, format="") if same_ids else named
    names = [*map(str, named.images)]
    versions = Counter(_without_addition(name) for name in names)
    for originals, in_form, note in _renamings(named, names, file_format, (path, given)):
        if len({*originals}) == len(originals):
            renamed = replace(in_form, images=tuple(originals))
        else:
            by_id = dict(zip(in_form.class_ids, in_form.classes, strict=True))
            renamed = empty_ground_truth(dict.fromkeys(originals), by_id, by_id)
        try:
            detections = file_format.read_detections_file(path, renamed, **given)
        except InputError:
            continue
        if len({*originals}) < len(originals):
            name, count = versions.most_common(1)[0]
            message = f"the export has {count} versions of image {quote(name)}"
            hint = "predict on the exported images, or export without augmentation"
            refuse(truth.path, message, hint)
        notes = (*detections.notes, replace(note, count=len(originals)))
        yield restore_ids(replace(detections, notes=notes), truth)
        if not _left_out(detections):
            return


def _renamings(
    named: GroundTruth, names: list[str], file_format: Format, source: tuple[Any, dict[str, Any]]
) -> Iterator[tuple[list[str], GroundTruth, Note]]:
    """Yield other names of the images, the ground truth with other class names, and a note."""
    path, given = source
    gt_has_ids = named.class_ids != named.classes
    originals = [_without_addition(name) for name in names]
    if originals != names:
        yield originals, named, _EXPORTED
    for form in ("NFC", "NFD"):
        forms = [normalize(form, name) for name in names]
        classes = tuple(normalize(form, name) for name in named.classes)
        if forms != names or classes != named.classes:
            class_ids = named.class_ids if gt_has_ids else classes
            yield forms, replace(named, class_ids=class_ids, classes=classes), UNICODE_FORM
    for table in _names_in(file_format, path, given):
        added = {_original(name): name for name in map(str, table.images)}
        uploaded = [added.get(name, name) for name in names]
        if len(added) == len(table.images) and uploaded != names:
            yield uploaded, named, _EXPORTED


def _names_in(file_format: Format, path: Any, given: dict[str, Any]) -> Iterator[GroundTruth]:
    """Yield the images and classes that detections name, by each layout that they may have."""
    layouts = [{"layout": name} for name in LAYOUT.choices] if LAYOUT in file_format.options else []
    for layout in layouts or [{}]:
        with suppress(InputError, UsageError, AttributeError):
            limits = given.get("limits", DEFAULT_LIMITS)
            yield file_format.placeholder(path, layout | given, limits)


def _original(name: str) -> str:
    """Return the stem of an image without an export's addition, or the name if it has none."""
    stem = without_suffix(base_name(name))
    original = _without_addition(stem)
    return name if original == stem else original


def _without_addition(name: str) -> str:
    return _ADDED.sub("", name) or name


@contextmanager
def _suggesting(file_format: Format, path: Any, role: str) -> Iterator[None]:
    """Precede the problems of an input by its format, if the content is of another one."""
    try:
        yield
    except InputError as error:
        is_path = isinstance(path, str | os.PathLike)  # else a stream that has begun
        file = os.fspath(path) if is_path else error.problems[0].file
        names = [name for name in matching_formats(file) if FORMATS.lines[name].fits]
        if file_format.name in names or len(names) != 1:
            raise
        option = "--gt-format" if role == TRUTH else "--dt-format"
        message = f"is {FORMATS.lines[names[0]].title}, read as {file_format.title}"
        hint = f"use {option} {names[0]} (format= in Python)"
        first = Problem(file, "", message, hint)
        raise InputError([first, *error.problems], error.omitted) from None


def _with_options(
    file_format: Format, table: Table, role: str, reading: Mapping[str, Any], boxes: str | None
) -> Table:
    """Record the reader options in the table's files, and whether `boxes` can be another."""
    given = {
        option.name: option.recorded(reading[option.name])
        for option in file_format.options
        if role in option.roles and option.name in reading
    }
    if reading.get(AS_IS):
        given[AS_IS] = "yes"
    recorded = tuple(sorted((name, text) for name, text in given.items() if text is not None))
    # Formats with ids of images read x, y, width, height by default, the others do not.
    fixed = bool(file_format.coordinates) or (boxes or file_format.by_ids * "xywh") != "xywh"
    files = (file._replace(reading=recorded, fixed_boxes=fixed) for file in table.files)
    return replace(table, files=tuple(files))


def reader_options(file_format: Format, role: str, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of the reader of a role; those of other formats are ignored."""
    for name in (*GEOMETRIES, *(KEYS if role == DETECTIONS else KEYS[:1])):
        if reading.get(name) and name not in file_format.geometries:
            others = (f for f in FORMATS.values() if name in f.geometries and not f.same_names)
            titles = " and ".join(other.title for other in others)
            verb = "are read from" if name in GEOMETRIES else "applies to"
            raise UsageError(f"{name} {verb} {titles} files; these are read as {file_format.name}")
    available = [option for option in file_format.options if role in option.roles]
    if file_format.subsets:  # the path is that of the subset
        available = [option for option in available if option is not SPLIT]
    ignored = {option.name for option in options()} - {option.name for option in available}
    given = {name: value for name, value in reading.items() if name not in ignored}
    given.pop(MISSING_SCORES, None)
    if role == TRUTH:
        given.pop("result_score_key", None)
    if role != TRUTH or not file_format.has_attributes:
        given.pop("attributes", None)
    for option in available:
        if option.choices and given.get(option.name) is not None:
            check_choice(option.name, str(given[option.name]), option.choices)
        if option.keyword and option.name in given:
            given[option.keyword] = given.pop(option.name)
    if given.pop(EXTRA_IMAGES.name, None) == "drop":
        limits = given.get("limits", DEFAULT_LIMITS)
        given["limits"] = replace(limits, drop_extra_images=True)
    coordinates = file_format.coordinates
    if coordinates and (value := given.pop(BOXES.name, None)) not in (None, *file_format.boxes):
        raise UsageError(named_coordinates(file_format.title, coordinates, role, value))
    return given
