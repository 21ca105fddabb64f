"""COCO files: instances JSON as ground truth, results JSON as detections.

References: the data format of the COCO API (pycocotools ``coco.py``, ``loadRes``).
"""

from dataclasses import replace

from detap.errors import InputError, Note, UsageError
from detap.formats.coco import id_mapping, prefetch
from detap.formats.coco.assembly import Source, detection_table, refuse_same_file, truth_table
from detap.formats.coco.columns import SHAPE_OF_RESULTS, DetectionColumns
from detap.formats.coco.exports import as_exported
from detap.formats.coco.masks import masked_detections, masked_ground_truth
from detap.formats.coco.metadata import listed_file_names
from detap.formats.coco.prefetch import Handle
from detap.formats.coco.read import ResultsFile, TruthFile
from detap.formats.text.class_names import ClassNames
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import STDIN, Path, shown
from detap.io.problems import SHAPES, check_choice
from detap.tables.detection import BOX_FORMATS, Detections, GroundTruth, SourceFile
from detap.tables.notes import POLYGONS_BOUNDED

_BOUNDED = "segmentations of the detections are replaced by their boxes"


def read_ground_truth(
    path: Path | Handle[TruthFile],
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
    document = handle.result()
    columns, notes = as_exported(document.columns(), document, path=handle.path, shapes=shapes)
    origin = columns.origin

    def location(row: int) -> str:
        return f"annotations[{row if origin is None else origin[row]}]"

    file = SourceFile(handle.path, columns.records, sha256=handle.sha256)
    source = Source(file, handle.limits, as_is, location, document.boxes)
    if columns.segmentations is None:
        table = truth_table(columns, source)
    else:
        table = masked_ground_truth(columns, source)
    return replace(table, notes=(*table.notes, *notes)) if notes else table


def read_detections(
    path: Path | Handle[ResultsFile],
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
    document, file = handle.result(), shown(handle.path)
    columns = document.columns(ground_truth, by_name=by_name)
    sources: tuple[SourceFile, ...] = ()
    notes: tuple[Note, ...] = ()
    if by_name:
        names = ClassNames.load(listed, limits)
        sources = names.source()
        default = None
        if not names.names and ground_truth.format == "yolo":
            names, default = id_mapping.names_in_order(ground_truth), 1
        first = id_mapping.parse_first_id(first_category_id)
        mapping = id_mapping.CategoryMapping(file, columns.categories, names, first, as_is, default)
        columns, notes = id_mapping.match_by_name(columns, ground_truth, mapping)
    elif columns.categories:
        columns, notes = id_mapping.match_by_listed_name(columns, ground_truth, file)
    if columns.file_names and not columns.by_file:
        columns, image_notes = _match_images(columns, ground_truth)
        notes += image_notes
    source_file = SourceFile(handle.path, len(columns.image), sha256=handle.sha256)
    source = Source(source_file, handle.limits, as_is, "[{}]".format, document.boxes)
    if columns.segmentations is None:
        table = detection_table(columns, ground_truth, source)
    else:
        table = masked_detections(columns, ground_truth, source, keep=document.masks)
    document.release()
    if shapes == "bbox":
        table = replace(table, polygons=None)
    if ground_truth.polygons is not None and document.has_segmentations:
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


def _match_images(
    columns: DetectionColumns, truth: GroundTruth
) -> tuple[DetectionColumns, tuple[Note, ...]]:
    """Match images by file name if the results list other names for the ids."""
    if len(truth.files) != 1 or truth.files[0].path == STDIN:
        return columns, ()
    try:
        expected = listed_file_names(truth.files[0].path)
    except (InputError, ValueError, KeyError, TypeError):
        return columns, ()  # ground truth of another format
    return id_mapping.match_by_listed_file(columns, truth, expected)
