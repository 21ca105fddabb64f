"""COCO files: instances JSON as ground truth, results JSON as detections.

References: the data format of the COCO API (pycocotools ``coco.py``, ``loadRes``).
"""

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
    KeypointColumns,
    Segmentations,
    TruthColumns,
    groups_of,
    keypoints_of,
    listed_names,
    listed_pairs,
    read_listed,
)
from detap.formats.coco.prefetch import Handle
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import STDIN, Path, shown
from detap.io.problems import SHAPES, check_choice
from detap.tables.detection import (
    BOX_FORMATS,
    Detections,
    GroundTruth,
    Name,
    SourceFile,
)
from detap.tables.notes import POLYGONS_BOUNDED

_BOUNDED = "segmentations of the detections are replaced by their boxes"
_OTHER_IDS = (TypeError, OverflowError, UnicodeError)
"""Errors of a scan for ids of another type, beyond 64 bits, or of invalid text."""


def read_ground_truth(
    path: Path | Handle[TruthScan],
    *,
    class_names: Path | None = None,
    boxes: str = "xywh",
    as_is: bool = False,
    masks: bool = False,
    keypoints: bool = False,
    attributes: tuple[str, ...] = (),
    shapes: str = "reject",
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read an instances file.

    Images and classes are in ascending order of id, rows in file order. Images without annotations
    are kept.

    Parameters
    ----------
    path : str or path or Handle
        The file, gzip or not; ``"-"`` is standard input. A handle of
        :mod:`detap.formats.coco.prefetch` has its own `boxes`, `masks`, `keypoints`, `attributes`
        and `limits`.
    class_names : str or path, optional
        No effect: an instances file has class names.
    boxes : {"xywh", "xyxy"}
        Format of the bbox.
    as_is : bool
        If True, accept any number of boxes of negative width or height, which overlap nothing. By
        default, one in twenty is an error.
    masks : bool
        If True, read masks, which every annotation must have. They also give missing boxes.
    keypoints : bool
        If True, read keypoints, which every annotation must have.
    attributes : tuple of str
        Further keys of annotations to read, as `extra` columns of numbers or text.
    shapes : {"reject", "bbox"}
        Reject boxes that CVAT's ``attributes.rotation`` rotates, or read their bounding boxes.
    limits : Limits
        Limits on the input.

    Raises
    ------
    InputError
        With all problems of the file, up to `limits.problems`.
    """
    del class_names
    check_choice("boxes", boxes, BOX_FORMATS)
    handle = (
        path
        if isinstance(path, Handle)
        else prefetch.ground_truth(
            path, limits, masks=masks, keypoints=keypoints, boxes=boxes, attributes=attributes
        )
    )
    scan = handle.result()
    columns = scanned_truth(scan)
    scan = None if columns is None else scan
    if columns is None:
        from detap.formats.coco import fallback_reader

        columns = fallback_reader.read_truth(
            handle.content(),
            shown(handle.path),
            handle.limits,
            masks=handle.masks,
            keypoints=handle.keypoints,
            boxes=handle.boxes,
            attributes=handle.attributes,
        )
    notes: tuple[Note, ...] = ()
    may_be_exported = columns.zero_row >= 0 or columns.class_ids[:1] == (0,)
    if may_be_exported or scan is None or scan.with_attributes or shapes != "reject":
        from detap.formats.coco.exports import as_exported

        columns, notes = as_exported(columns, scan, handle.content, path=handle.path, shapes=shapes)
    origin = columns.origin

    def location(row: int) -> str:
        return f"annotations[{row if origin is None else origin[row]}]"

    file = SourceFile(handle.path, columns.records, sha256=handle.sha256)
    source = Source(file, handle.limits, as_is, location, handle.boxes)
    if columns.segmentations is None:
        table = truth_table(columns, source)
    else:
        from detap.formats.coco.masks import masked_ground_truth

        table = masked_ground_truth(columns, source)
    return replace(table, notes=(*table.notes, *notes)) if notes else table


def scanned_truth(scan: TruthScan | None) -> TruthColumns | None:
    """Return the columns of the fast reader; None if it falls back."""
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
    truth = TruthColumns(
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
        groups=groups_of(read_listed(scan.categories)) if b'"frequency"' in scan.categories else {},
        segmentations=_segmentations(scan, records),
        keypoints=_keypoints(scan, records),
    )
    for name, (lists, of_image, of_label) in zip(LISTS, listed, strict=True):
        if lists:
            truth = listed_pairs(np.asarray(of_image), np.asarray(of_label), lists, name, truth)
    return truth


def _segmentations(scan: TruthScan | ResultsScan, rows: int) -> Segmentations | None:
    columns = scan.outlines_of(rows)
    if columns is None:
        return None
    has, sizes, run_start, runs, ring_start, ring_end, points = map(np.asarray, columns)
    return Segmentations(has, sizes, run_start, runs, ring_start, ring_end, points, scan.listed)


def _keypoints(scan: TruthScan, rows: int) -> KeypointColumns | None:
    columns = scan.poses_of(rows, truth=True)
    if columns is None:
        return None
    values, width_height, no_keypoints = map(np.asarray, columns)
    return KeypointColumns(values.reshape(rows, scan.keypoints, 3), width_height, no_keypoints)


def read_detections(
    path: Path | Handle[ResultsScan],
    ground_truth: GroundTruth,
    *,
    class_names: Path | None = None,
    dt_class_names: Path | None = None,
    first_category_id: int | str | None = None,
    boxes: str = "xywh",
    as_is: bool = False,
    masks: bool = False,
    keypoints: bool = False,
    shapes: str = "reject",
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read a results file: a list of detections, or an object with one.

    An ``image_id`` may also be a file stem, as text or number. If the ground truth has class names
    instead of ids, names come from the results' own list of categories or from `class_names`.

    Parameters
    ----------
    path : str or path or Handle
        As in :func:`read_ground_truth`.
    ground_truth : GroundTruth
        Defines the image and class indices. Detections of other categories are ignored, with a
        note.
    class_names : str or path, optional
        Names of the category ids: a file with one name per line, or a `data.yaml`.
    dt_class_names : str or path, optional
        The same, overriding `class_names`.
    first_category_id : int, optional
        Id of the first name, 0 or 1; by default detected from the ids or boxes.
    boxes : {"xywh", "xyxy"}
        Format of the bbox.
    as_is : bool
        If True, accept offset category ids with a warning, and negative sizes as
        :func:`read_ground_truth`.
    masks : bool
        If True, read masks; the box replaces a missing one. In any case, a missing box is that of
        the mask or of the keypoints.
    keypoints : bool
        If True, read keypoints, which every detection must have, as many as the ground truth.
    shapes : {"reject", "bbox"}
        ``"bbox"`` reads a `poly` as its bounding box, which protocols that compare boxes require.
    limits : Limits
        Limits on the input.

    Raises
    ------
    InputError
        With all problems of the file, up to `limits.problems`.
    """
    check_choice("shapes", shapes, SHAPES)
    check_choice("boxes", boxes, BOX_FORMATS)
    handle = (
        path
        if isinstance(path, Handle)
        else prefetch.detections(path, limits, masks=masks, keypoints=keypoints, boxes=boxes)
    )
    refuse_same_file(handle.path, ground_truth, SHAPE_OF_RESULTS)
    listed = class_names if dt_class_names is None else dt_class_names
    by_name = goes_by_names(ground_truth, listed, first_category_id)
    columns = scanned_detections(handle.result(), ground_truth, by_name=by_name)
    file = shown(handle.path)
    if columns is None:
        from detap.formats.coco import fallback_reader

        columns = fallback_reader.read_results(
            handle.content(),
            file,
            handle.limits,
            ground_truth,
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

        names = ClassNames.load(listed, limits)
        sources = names.source()
        default = None
        if not names.names and ground_truth.format == "yolo":
            names, default = id_mapping.names_in_order(ground_truth), 1
        first = id_mapping.parse_first_id(first_category_id)
        mapping = id_mapping.CategoryMapping(file, columns.categories, names, first, as_is, default)
        columns, notes = id_mapping.match_by_name(columns, ground_truth, mapping)
    elif columns.categories:
        from detap.formats.coco import id_mapping

        columns, notes = id_mapping.match_by_listed_name(columns, ground_truth, file)
    if columns.file_names and not columns.by_file:
        columns, image_notes = _match_images(columns, ground_truth)
        notes += image_notes
    source_file = SourceFile(handle.path, len(columns.image), sha256=handle.sha256)
    source = Source(source_file, handle.limits, as_is, "[{}]".format, handle.boxes)
    if columns.segmentations is None:
        table = detection_table(columns, ground_truth, source)
    else:
        from detap.formats.coco.masks import masked_detections

        table = masked_detections(columns, ground_truth, source, keep=handle.masks)
    if shapes == "bbox":
        table = replace(table, polygons=None)
    if ground_truth.polygons is not None and b'"segmentation"' in handle.content():
        notes += (Note(POLYGONS_BOUNDED, _BOUNDED, len(table), severity="info"),)
    return replace(table, notes=(*table.notes, *notes), files=(*table.files, *sources))


def goes_by_names(truth: GroundTruth, class_names: object, first: object) -> bool:
    """Return True if categories are matched by name instead of id.

    Raises
    ------
    UsageError
        If the id of the first class name is given without names.
    """
    if first is not None and class_names is None and truth.format != "yolo":
        raise UsageError(
            "first_category_id (--first-category-id) requires class_names (--class-names)"
        )
    has_names = bool(truth.class_ids) and isinstance(truth.class_ids[0], str)
    return class_names is not None or has_names


def scanned_detections(
    scan: ResultsScan | None, ground_truth: GroundTruth, *, by_name: bool = False
) -> DetectionColumns | None:
    """Return the columns of the fast reader; None if it falls back."""
    expected = keypoints_of(ground_truth) or 0
    if scan is None or 0 < scan.texts < scan.count:
        return None
    if expected not in (0, scan.keypoints or expected):
        return None
    count = scan.count
    file_names: dict[Name, str] = {}
    categories: dict[Name, str] = {}
    if scan.categories or scan.images:
        categories = listed_names(read_listed(scan.categories), "name")
        file_names = listed_names(read_listed(scan.images), "file_name")
    images: tuple[Name, ...] | None = ground_truth.images
    if scan.count and images and isinstance(images[0], str) != bool(scan.texts):
        from detap.formats.coco.id_mapping import images_in_order

        images = images_in_order(ground_truth, bool(scan.texts), file_names)
    if images is None:
        return None
    try:
        columns = scan.columns(images, [] if by_name else list(ground_truth.class_ids))
    except _OTHER_IDS:
        return None
    if columns is None:
        return None
    *rest, unknown = columns
    image, label, corners, box_area, score = map(np.asarray, rest)
    keypoints = scan.poses_of(count, truth=False)
    shape = count, scan.keypoints or expected, 2
    return DetectionColumns(
        image=image,
        label=label,
        corners=corners,
        box_area=box_area,
        score=score,
        unknown=unknown,
        file_names=file_names,
        categories=categories,
        segmentations=_segmentations(scan, count),
        keypoints=None if keypoints is None else np.asarray(keypoints[0]).reshape(shape),
        by_file=images is not ground_truth.images,
    )


def _match_images(
    columns: DetectionColumns, truth: GroundTruth
) -> tuple[DetectionColumns, tuple[Note, ...]]:
    """Match images by file name if the results list other names for the ids."""
    if len(truth.files) != 1 or truth.files[0].path == STDIN:
        return columns, ()
    from detap.formats.coco.id_mapping import match_by_listed_file
    from detap.formats.coco.metadata import listed_file_names

    try:
        expected = listed_file_names(truth.files[0].path)
    except (InputError, ValueError, KeyError, TypeError):
        return columns, ()  # ground truth of another format
    return match_by_listed_file(columns, truth, expected)
