"""COCO files: instances JSON as ground truth, results JSON as detections.

References: the data format of the COCO API (pycocotools ``coco.py``, ``loadRes``).
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.errors import InputError, Note, Problem
from detap.formats.coco import prefetch
from detap.formats.coco._scan import ListsScan, ResultsScan, TruthScan, class_names
from detap.formats.coco.columns import (
    SHAPE_OF_RESULTS,
    DetectionColumns,
    TruthColumns,
)
from detap.formats.coco.prefetch import Handle
from detap.formats.coco.shift import category_shift
from detap.formats.reading._surveys import survey_boxes, survey_values
from detap.formats.reading.stream import DEFAULT_LIMITS, STDIN, Limits, shown
from detap.spelling import some
from detap.tables.detection import Detections, GroundTruth, Name, SourceFile
from detap.tables.doubts import AS_IS, INSIST, backward, backward_note, too_many, too_many_backward
from detap.tables.joining import distinct_name

Path = str | os.PathLike[str]

_OTHER_IDS = (TypeError, OverflowError, UnicodeError)
"""What a scan raises where ids are of another kind, beyond 64 bits, or no text."""

_TRUTH_NOTES = {
    "missing-annotation-ids": "annotations have no id; ids are only names, so they are not missed",
    "missing-area": "annotations have no area; their box's area is used",
    "missing-iscrowd": "annotations have no iscrowd; they count as no crowd",
}


def read_ground_truth(
    path: Path | Handle[TruthScan], *, as_is: bool = False, limits: Limits = DEFAULT_LIMITS
) -> GroundTruth:
    """Read an instances file.

    Images are numbered by ascending id, classes by ascending category id; rows stay in the order
    of the file. Images without annotations are kept.

    Parameters
    ----------
    path : str or path or Handle
        The file, gzip or not; ``"-"`` is standard input. A handle of
        :mod:`detap.formats.coco.prefetch` has its own limits.
    as_is : bool
        Whether boxes of a negative width or height count however many there are: as boxes that
        overlap nothing. By default one in twenty is an error.
    limits : Limits
        What is accepted at most.

    Raises
    ------
    InputError
        With every problem of the file, up to `limits.problems`.
    """
    handle = path if isinstance(path, Handle) else prefetch.ground_truth(path, limits)
    columns = scanned_truth(handle.result())
    if columns is None:
        from detap.formats.coco import careful

        columns = careful.read_truth(handle.content(), shown(handle.path), handle.limits)
    return _truth_table(handle, columns, as_is)


def scanned_truth(scan: TruthScan | None) -> TruthColumns | None:
    """Return what the fast reader read; None where the careful one must."""
    if scan is None:
        return None
    categories = _categories(scan.categories)
    if categories is None:
        return None
    counts = {
        "missing-annotation-ids": scan.without_id,
        "missing-area": scan.without_area,
        "missing-iscrowd": scan.without_crowd,
        "annotation-id-zero": scan.id_zero,
    }
    records = scan.count
    zero_row = scan.zero_row if scan.id_zero else -1
    try:
        columns = scan.columns(list(categories))
    except _OTHER_IDS:
        return None
    if columns is None:
        return None
    image_ids, *rest = columns
    sizes, image, label, corners, box_area, area, crowd, ignore, group_of = map(np.asarray, rest)
    return TruthColumns(
        image_ids=tuple(image_ids),
        image_sizes=sizes,
        class_ids=tuple(categories),
        class_names=tuple(categories.values()),
        image=image,
        label=label,
        corners=corners,
        box_area=box_area,
        area=area,
        crowd=crowd,
        ignore=ignore,
        group_of=group_of,
        records=records,
        zero_row=zero_row,
        origin=None,
        counts=counts,
    )


def _categories(listed: bytes) -> dict[Name, str | None] | None:
    """Return the name of each category by ascending id; None where the file needs care."""
    names: dict[Name, str | None] | None = class_names(listed)
    if names is None:
        from detap.formats.coco import careful

        names = careful.read_categories(listed)
    return names


def read_detections(
    path: Path | Handle[ResultsScan],
    truth: GroundTruth,
    *,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read a results file: a list of detections, or an object that holds one.

    Parameters
    ----------
    path : str or path or Handle
        The file, gzip or not; ``"-"`` is standard input. A handle of
        :mod:`detap.formats.coco.prefetch` has its own limits.
    truth : GroundTruth
        Its images and classes are what the rows are numbered by. Detections of a category that
        it does not list are left out, with a note.
    as_is : bool
        Whether to take category ids at their word that all look one off, with a warning, and
        negative sides as :func:`read_ground_truth` does.
    limits : Limits
        What is accepted at most.

    Raises
    ------
    InputError
        With every problem of the file, up to `limits.problems`.
    """
    handle = path if isinstance(path, Handle) else prefetch.detections(path, limits)
    _refuse_same_file(handle.path, truth)
    columns = scanned_detections(handle.result(), truth)
    if columns is None:
        from detap.formats.coco import careful

        file = shown(handle.path)
        columns = careful.read_results(handle.content(), file, handle.limits, truth)
    return _detection_table(handle, columns, truth, as_is)


def scanned_detections(scan: ResultsScan | None, truth: GroundTruth) -> DetectionColumns | None:
    """Return what the fast reader read; None where the careful one must."""
    if scan is None:
        return None
    try:
        columns = scan.columns(truth.images, list(truth.class_ids))
    except _OTHER_IDS:
        return None
    if columns is None:
        return None
    *rest, unknown = columns
    image, label, corners, box_area, score = map(np.asarray, rest)
    file_names: dict[Name, str] = {}
    if scan.categories or scan.images:
        from detap.formats.coco import careful

        names = dict(zip(truth.class_ids, truth.classes, strict=True))
        used = {truth.class_ids[k] for k in np.unique(label) if k < len(names)}
        if any(careful.misnamed(careful.read_listed(scan.categories), used, names)):
            return None
        file_names = careful.file_names(careful.read_listed(scan.images))
    return DetectionColumns(
        image=image,
        label=label,
        corners=corners,
        box_area=box_area,
        score=score,
        unknown=unknown,
        file_names=file_names,
    )


def _refuse_same_file(path: Path, truth: GroundTruth) -> None:
    for source in truth.files:
        try:
            same = STDIN not in (os.fspath(path), source.path) and os.path.samefile(
                path, source.path
            )
        except (OSError, ValueError):
            continue  # reading it will say what is wrong with it
        if same:
            message = f"is the ground truth itself ({source.path})"
            raise InputError(Problem(shown(path), "", message, SHAPE_OF_RESULTS))


def _source(handle: Handle[Any], records: int) -> SourceFile:
    return SourceFile(handle.path, records, sha256=handle.sha256)


def _truth_table(handle: Handle[TruthScan], columns: TruthColumns, as_is: bool) -> GroundTruth:
    negative = _negative_sides("ground-truth", handle, columns, as_is)
    names, name_notes = _distinct_names(columns.class_ids, columns.class_names)
    return GroundTruth(
        image=columns.image,
        label=columns.label,
        corners=columns.corners,
        box_area=columns.box_area,
        images=columns.image_ids,
        classes=names,
        class_ids=columns.class_ids,
        files=(_source(handle, columns.records),),
        notes=(*_as_is(as_is), *_truth_notes(columns), *negative, *name_notes),
        area=columns.area,
        crowd=columns.crowd,
        difficult=np.zeros(len(columns.image), np.bool_),
        ignore=columns.ignore,
        group_of=columns.group_of,
        image_sizes=columns.image_sizes,
        zero_id=np.arange(len(columns.image)) == columns.zero_row,
    )


def _truth_notes(columns: TruthColumns) -> Iterator[Note]:
    counts = columns.counts
    for code, message in _TRUTH_NOTES.items():
        if counts.get(code):
            yield Note(code, message, counts[code])
    for part, ids in columns.repeated.items():
        if ids:
            message = f"{part} repeat an earlier one and are counted once: id {some(ids)}"
            yield Note(f"repeated-{part}", message, len(ids))
    if counts.get("annotation-id-zero"):
        message = (
            "annotations have the id 0: pycocotools takes a match with one for none, so its "
            "numbers may be lower; --protocol coco-strict gives them"
        )
        yield Note("annotation-id-zero", message, counts["annotation-id-zero"], warning=False)
    ignored = int(np.count_nonzero(columns.ignore))
    if ignored:
        message = "annotations set ignore, which has no effect, as in pycocotools"
        yield Note("ignore-without-effect", message, ignored)
    empty = survey_values(columns.box_area)[2]
    if empty:
        message = "ground truth boxes have no area: nothing can find them"
        yield Note("zero-area-ground-truth", message, empty)
    yield from _box_notes("ground truth boxes", "ground-truth", columns, columns.image_sizes)


def _distinct_names(
    ids: tuple[Name, ...], names: tuple[str | None, ...]
) -> tuple[tuple[str, ...], list[Note]]:
    """Return a name for every class, no two alike, and what is to be said of them."""
    notes = []
    nameless = sum(name is None for name in names)
    if nameless:
        message = "categories have no name; their id is used"
        notes.append(Note("missing-category-names", message, nameless))
    given = [
        str(identifier) if name is None else name
        for identifier, name in zip(ids, names, strict=True)
    ]
    equal = {name for name, count in Counter(given).items() if count > 1}
    distinct = given
    while shared := {name for name, count in Counter(distinct).items() if count > 1}:
        distinct = [
            distinct_name(name, identifier) if name in shared else name
            for identifier, name in zip(ids, distinct, strict=True)
        ]
    if equal:
        bearers = sum(name in equal for name in given)
        message = "categories share a name with another; their id is added to it"
        notes.append(Note("equal-category-names", message, bearers))
    folded = Counter(name.casefold() for name in set(given))
    alike = sum(count for count in folded.values() if count > 1)
    if alike:
        message = "category names differ from another's in case only; they are distinct classes"
        notes.append(Note("names-differ-in-case", message, alike))
    return tuple(distinct), notes


def _detection_table(
    handle: Handle[ResultsScan], columns: DetectionColumns, truth: GroundTruth, as_is: bool
) -> Detections:
    records = len(columns.image)
    notes = [
        *_as_is(as_is),
        *_negative_sides("detections", handle, columns, as_is),
        *_check_labels(handle.path, columns, truth, as_is),
        *_detection_notes(columns, truth),
        *_file_name_notes(columns, truth),
    ]
    table = Detections(
        image=columns.image,
        label=columns.label,
        corners=columns.corners,
        box_area=columns.box_area,
        images=truth.images,
        classes=truth.classes,
        class_ids=truth.class_ids,
        files=(_source(handle, records),),
        score=columns.score,
    )
    if columns.unknown:
        table = table.select(columns.label < len(truth.class_ids))
    return replace(table, notes=tuple(notes))


def _check_labels(
    path: str, columns: DetectionColumns, truth: GroundTruth, as_is: bool
) -> Iterator[Note]:
    """Refuse detections of which no category is known, or all are one off.

    The latter is a suspicion: a warning where ids are to be taken `as_is`.
    """
    remedy = "use the ground truth's category ids"
    unknown = sum(columns.unknown.values())
    if unknown and unknown == len(columns.label) and not as_is:
        from detap.formats.coco.careful import describe_ids  # only for this

        message = (
            "no category in common with the ground truth: category_id is "
            f"{describe_ids(list(columns.unknown))} here, {describe_ids(truth.class_ids)} there"
        )
        remedy += f"; or, if all are of other classes indeed, give {INSIST}"
        raise InputError(Problem(shown(path), "", message, remedy))
    shift = category_shift(columns, truth)
    if shift and not as_is:
        remedy += f"; or, if the detector is as wrong as that, give {INSIST}"
        raise InputError(Problem(shown(path), "", shift, remedy))
    if shift:
        yield Note("class-shift", shift)


def _as_is(insisted: bool) -> tuple[Note, ...]:
    return (AS_IS,) if insisted else ()


def _negative_sides(
    kind: str, handle: Handle[Any], columns: TruthColumns | DetectionColumns, as_is: bool
) -> tuple[Note, ...]:
    """Warn of boxes of negative width or height; refuse them where they are many."""
    at = backward(columns.corners, columns.box_area)
    if not len(at):
        return ()
    if as_is or not too_many(len(at), len(columns.image)):
        place, box, _ = _negative(columns, int(at[0]))
        return (backward_note(kind, len(at), f"{place}, {box}"),)
    file = shown(handle.path)
    listed = []
    for row in at[: handle.limits.problems].tolist():
        place, box, side = _negative(columns, row)
        listed.append(
            Problem(file, place, f"bbox has a negative {side}: {box}", "give [x, y, width, height]")
        )
    raise too_many_backward(file, len(at), len(columns.image), listed)


def _negative(columns: TruthColumns | DetectionColumns, row: int) -> tuple[str, str, str]:
    """Return where a box stands, what it is, and which of its sides is negative."""
    x, y, right, bottom = columns.corners[row].tolist()
    box = ", ".join(f"{value:g}" for value in (x, y, right - x, bottom - y))
    place = f"[{row}]"
    if isinstance(columns, TruthColumns):
        place = f"annotations[{row if columns.origin is None else columns.origin[row]}]"
    return place, f"[{box}]", "width" if right < x else "height"


def _detection_notes(columns: DetectionColumns, truth: GroundTruth) -> Iterator[Note]:
    if not len(columns.image):
        yield Note("no-detections", "there is no detection: every AP is 0")
        return
    if columns.unknown:
        from detap.formats.json.text import spelt  # only for this

        names = ", ".join(map(spelt, sorted(columns.unknown, key=str)[:5]))
        more = f" and {len(columns.unknown) - 5} more" if len(columns.unknown) > 5 else ""
        message = (
            f"detections are of categories that the ground truth does not list ({names}{more}); "
            "they are left out"
        )
        yield Note("unknown-categories", message, sum(columns.unknown.values()))
    low, high, _, outside = survey_values(columns.score)
    if outside:
        message = f"scores lie outside 0 to 1 ({low:.6g} to {high:.6g}); only their order counts"
        yield Note("scores-outside-unit", message, outside, warning=False)
    empty = survey_values(columns.box_area)[2]
    if empty:
        message = "detections have no area: they are false positives"
        yield Note("zero-area-detections", message, empty, warning=False)
    yield from _box_notes("detections", "detections", columns, truth.image_sizes)


def _file_name_notes(columns: DetectionColumns, truth: GroundTruth) -> Iterator[Note]:
    """Say where a results file that lists its images means others by the same ids."""
    if not columns.file_names or len(truth.files) != 1 or truth.files[0].path == STDIN:
        return
    from detap.formats.coco import careful

    try:
        lists = Handle(truth.files[0].path, ListsScan, DEFAULT_LIMITS)
        scan = lists.result()
        if scan is None:
            due = careful.read_file_names(lists.content())
        else:
            due = careful.file_names(careful.read_listed(scan.images))
    except (InputError, ValueError, KeyError, TypeError):
        return  # ground truth of another format
    other = sum(
        _stem(name) != _stem(due[identifier])
        for identifier, name in columns.file_names.items()
        if identifier in due
    )
    if other:
        message = (
            "images are of another file name in the results than in the ground truth, by the same "
            "id: the ids may mean different images"
        )
        yield Note("images-of-other-names", message, other)


def _stem(name: str) -> str:
    return os.path.splitext(name.replace("\\", "/").rpartition("/")[2])[0]


_BEYOND = 1.0
"""Pixels by which a box must leave its image to be counted: annotations are rounded."""


def _box_notes(
    what: str,
    code: str,
    columns: TruthColumns | DetectionColumns,
    sizes: NDArray[np.float64] | None,
) -> Iterator[Note]:
    """Say how many boxes reach beyond their image, and whether they look like corners."""
    if sizes is None or not len(columns.image) or bool(np.isnan(sizes).all()):
        return
    beyond, fitting = survey_boxes(columns.corners, columns.image, sizes, _BEYOND)
    if not beyond:
        return
    if beyond * 2 > len(columns.image) and fitting * 10 >= beyond * 9:
        message = (
            f"{what} look like x1, y1, x2, y2 where x, y, width, height is due: most reach beyond "
            "their image, and would fit it as corners"
        )
        yield Note(f"{code}-look-like-corners", message, beyond)
    yield Note(f"{code}-beyond-image", f"{what} reach beyond their image; none is clipped", beyond)
