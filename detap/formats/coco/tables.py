"""COCO files: instances JSON as ground truth, results JSON as detections.

References: the data format of the COCO API (pycocotools ``coco.py``, ``loadRes``).
"""

import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from detap.errors import InputError, Note, UsageError
from detap.formats.coco import prefetch
from detap.formats.coco._scan import ResultsScan, TruthScan, class_names
from detap.formats.coco.assembly import Source, detection_table, refuse_same_file, truth_table
from detap.formats.coco.columns import (
    LISTS,
    SHAPE_OF_RESULTS,
    DetectionColumns,
    Outlines,
    Poses,
    TruthColumns,
    groups_of,
    keypoints_of,
    listed_names,
    listed_pairs,
)
from detap.formats.coco.prefetch import Handle
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import STDIN, Path, shown
from detap.io.problems import check_choice
from detap.tables.detection import (
    BOX_ENCODINGS,
    Detections,
    GroundTruth,
    Name,
    SourceFile,
)
from detap.tables.notes import POLYGONS_BOUNDED

_BOUNDED = "segmentations of the detections are left out: their boxes are compared"
_OTHER_IDS = (TypeError, OverflowError, UnicodeError)
"""What a scan raises where ids are of another kind, beyond 64 bits, or no text."""


def read_ground_truth(
    path: Path | Handle[TruthScan],
    *,
    class_names: Path | None = None,
    boxes: str = "xywh",
    as_is: bool = False,
    masks: bool = False,
    keypoints: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read an instances file.

    Images are numbered by ascending id, classes by ascending category id; rows stay in the order
    of the file. Images without annotations are kept.

    Parameters
    ----------
    path : str or path or Handle
        The file, gzip or not; ``"-"`` is standard input. A handle of
        :mod:`detap.formats.coco.prefetch` has its own limits.
    class_names : str or path, optional
        Without effect: an instances file names its classes itself.
    boxes : {"xywh", "xyxy"}
        What the four numbers of a bbox are. A handle knows it already.
    as_is : bool
        Whether boxes of a negative width or height count however many there are: as boxes that
        overlap nothing. By default one in twenty is an error.
    masks : bool
        Whether the masks are read, which every annotation then has; one without a box has that of
        its mask. A handle knows it already.
    keypoints : bool
        Whether keypoints are, likewise.
    limits : Limits
        What is accepted at most.

    Raises
    ------
    InputError
        With every problem of the file, up to `limits.problems`.
    """
    del class_names
    check_choice("boxes", boxes, BOX_ENCODINGS)
    handle = (
        path
        if isinstance(path, Handle)
        else prefetch.ground_truth(path, limits, masks=masks, keypoints=keypoints, boxes=boxes)
    )
    columns = scanned_truth(handle.result())
    if columns is None:
        from detap.formats.coco import fallback_reader

        columns = fallback_reader.read_truth(
            handle.content(),
            shown(handle.path),
            handle.limits,
            masks=handle.masks,
            keypoints=handle.keypoints,
            boxes=handle.boxes,
        )
    origin = columns.origin

    def location(row: int) -> str:
        return f"annotations[{row if origin is None else origin[row]}]"

    file = SourceFile(handle.path, columns.records, sha256=handle.sha256)
    source = Source(file, handle.limits, as_is, location, handle.boxes)
    if columns.outlines is None:
        return truth_table(columns, source)
    from detap.formats.coco.masks import shaped_truth  # only where masks are scored

    return shaped_truth(columns, source)


def scanned_truth(scan: TruthScan | None) -> TruthColumns | None:
    """Return what the fast reader read; None where the careful one must."""
    if scan is None:
        return None
    categories: dict[Name, str | None] | None = class_names(scan.categories)
    if categories is None:
        from detap.formats.coco import fallback_reader

        categories = fallback_reader.read_categories(scan.categories)
        if categories is None:
            return None
    counts = {
        "missing-annotation-ids": scan.without_id,
        "missing-area": scan.without_area,
        "missing-iscrowd": scan.without_crowd,
        "annotation-id-zero": scan.id_zero,
        "missing-num-keypoints": scan.without_number,
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
    listed = scan.lists(list(categories))
    sizes, image, label, corners, box_area, area, crowd, ignore, group_of = map(np.asarray, rest)
    found = TruthColumns(
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
        groups=_groups(scan.categories) if b'"frequency"' in scan.categories else {},
        outlines=_outlines(scan, records),
        poses=_poses(scan, records),
    )
    for name, (lists, of_image, of_label) in zip(LISTS, listed, strict=True):
        if lists:
            found = listed_pairs(np.asarray(of_image), np.asarray(of_label), lists, name, found)
    return found


def _groups(listed: bytes) -> dict[Name, str]:
    """Return the group of each category that is in one."""
    from detap.formats.coco import fallback_reader

    return groups_of(fallback_reader.read_listed(listed))


def _outlines(scan: TruthScan | ResultsScan, rows: int) -> Outlines | None:
    found = scan.outlines_of(rows)
    if found is None:
        return None
    has, sizes, run_start, runs, ring_start, ring_end, points = map(np.asarray, found)
    return Outlines(has, sizes, run_start, runs, ring_start, ring_end, points, scan.listed)


def _poses(scan: TruthScan, rows: int) -> Poses | None:
    found = scan.poses_of(rows, truth=True)
    if found is None:
        return None
    values, sides, without = map(np.asarray, found)
    return Poses(values.reshape(rows, scan.keypoints, 3), sides, without)


def read_detections(
    path: Path | Handle[ResultsScan],
    truth: GroundTruth,
    *,
    class_names: Path | None = None,
    dt_class_names: Path | None = None,
    first_category_id: int | str | None = None,
    boxes: str = "xywh",
    as_is: bool = False,
    masks: bool = False,
    keypoints: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read a results file: a list of detections, or an object that holds one.

    Where no ``image_id`` is that of an image, ids may be the stems of the images' files, as text or
    number; the results' own list of images says which file each is of, if they have one. Where
    the ground truth calls classes by name, so do the results' own list of categories, or a file.

    Parameters
    ----------
    path : str or path or Handle
        The file, gzip or not; ``"-"`` is standard input. A handle of
        :mod:`detap.formats.coco.prefetch` has its own limits.
    truth : GroundTruth
        Its images and classes are what the rows are numbered by. Detections of a category that
        it does not list are left out, with a note.
    class_names : str or path, optional
        A file with one class a line, or a `data.yaml`: what the numbers in ``category_id`` stand
        for.
    dt_class_names : str or path, optional
        The same, before `class_names`, where that is the list of the ground truth alone.
    first_category_id : int, optional
        The number of its first class, 0 or 1; told by the ids or by the boxes where left out.
    boxes : {"xywh", "xyxy"}
        As :func:`read_ground_truth` has it.
    as_is : bool
        Whether to take category ids at their word that all look one off, with a warning, and
        negative sides as :func:`read_ground_truth` does.
    masks : bool
        Whether masks are read; a row without one then has its box as its mask. A row without a box
        has that of its mask, in any case, or that around its keypoints.
    keypoints : bool
        Whether keypoints are read, which every detection then has, as many as the ground truth.
    limits : Limits
        What is accepted at most.

    Raises
    ------
    InputError
        With every problem of the file, up to `limits.problems`.
    """
    check_choice("boxes", boxes, BOX_ENCODINGS)
    handle = (
        path
        if isinstance(path, Handle)
        else prefetch.detections(path, limits, masks=masks, keypoints=keypoints, boxes=boxes)
    )
    refuse_same_file(handle.path, truth, SHAPE_OF_RESULTS)
    listed = class_names if dt_class_names is None else dt_class_names
    by_name = goes_by_names(truth, listed, first_category_id)
    columns = scanned_detections(handle.result(), truth, by_name=by_name)
    file = shown(handle.path)
    if columns is None:
        from detap.formats.coco import fallback_reader

        columns = fallback_reader.read_results(
            handle.content(),
            file,
            handle.limits,
            truth,
            by_name=by_name,
            masks=handle.masks,
            keypoints=handle.keypoints,
            boxes=handle.boxes,
        )
    sources: tuple[SourceFile, ...] = ()
    notes: tuple[Note, ...] = ()
    if by_name:
        from detap.formats.coco import id_mapping
        from detap.formats.text.class_names import ClassNames

        names, first = ClassNames.load(listed, limits), id_mapping.first_of(first_category_id)
        naming = id_mapping.CategoryMapping(file, columns.categories, names, first, as_is)
        columns, notes = id_mapping.by_name(columns, truth, naming)
        sources = names.source()
    elif columns.categories:
        from detap.formats.coco import id_mapping

        columns, notes = id_mapping.named_alike(columns, truth, file)
    source_file = SourceFile(handle.path, len(columns.image), sha256=handle.sha256)
    source = Source(source_file, handle.limits, as_is, "[{}]".format, handle.boxes)
    if columns.outlines is None:
        table = detection_table(columns, truth, source)
    else:
        from detap.formats.coco.masks import masked_table  # only where there are masks

        table = masked_table(columns, truth, source, keep=handle.masks)
    if truth.polygons is not None and b'"segmentation"' in handle.content():
        notes += (Note(POLYGONS_BOUNDED, _BOUNDED, len(table), severity="info"),)
    if columns.file_names and not columns.by_file:
        notes += (*_file_name_notes(columns, truth),)
    return replace(table, notes=(*table.notes, *notes), files=(*table.files, *sources))


def goes_by_names(truth: GroundTruth, class_names: object, first: object) -> bool:
    """Return whether categories are to be looked up by name, rather than by id.

    Raises
    ------
    UsageError
        If the number of the first class name is given without the names.
    """
    if first is not None and class_names is None:
        raise UsageError(
            "first_category_id (--first-category-id) has no effect without class names: give "
            "class_names (--class-names), or leave it out"
        )
    called_by_text = bool(truth.class_ids) and isinstance(truth.class_ids[0], str)
    return class_names is not None or called_by_text


def scanned_detections(
    scan: ResultsScan | None, truth: GroundTruth, *, by_name: bool = False
) -> DetectionColumns | None:
    """Return what the fast reader read; None where the careful one must."""
    due = keypoints_of(truth) or 0
    if scan is None or 0 < scan.texts < scan.count or due not in (0, scan.keypoints or due):
        return None
    count = scan.count
    file_names: dict[Name, str] = {}
    categories: dict[Name, str] = {}
    if scan.categories or scan.images:
        from detap.formats.coco import fallback_reader

        categories = listed_names(fallback_reader.read_listed(scan.categories), "name")
        file_names = listed_names(fallback_reader.read_listed(scan.images), "file_name")
    images: tuple[Name, ...] | None = truth.images
    if scan.count and images and isinstance(images[0], str) != bool(scan.texts):
        from detap.formats.coco.id_mapping import images_in_order

        images = images_in_order(truth, bool(scan.texts), file_names)
    if images is None:
        return None
    try:
        columns = scan.columns(images, [] if by_name else list(truth.class_ids))
    except _OTHER_IDS:
        return None
    if columns is None:
        return None
    *rest, unknown = columns
    image, label, corners, box_area, score = map(np.asarray, rest)
    poses = scan.poses_of(count, truth=False)
    shape = count, scan.keypoints or due, 2  # as many as due where there are no rows
    return DetectionColumns(
        image=image,
        label=label,
        corners=corners,
        box_area=box_area,
        score=score,
        unknown=unknown,
        file_names=file_names,
        categories=categories,
        outlines=_outlines(scan, count),
        keypoints=None if poses is None else np.asarray(poses[0]).reshape(shape),
        by_file=images is not truth.images,
    )


def _file_name_notes(columns: DetectionColumns, truth: GroundTruth) -> Iterator[Note]:
    """Say where a results file that lists its images means others by the same ids."""
    if len(truth.files) != 1 or truth.files[0].path == STDIN:
        return
    from detap.formats.coco.metadata import listed_file_names  # seldom needed

    try:
        due = listed_file_names(truth.files[0].path)
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
