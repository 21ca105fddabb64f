"""Read YOLO data sets and predictions.

A line is ``class xc yc w h``, optionally with keypoints, or a polygon ``class x y x y x y ...``,
all normalized; detections end with the confidence. The fast reader reads regular files and falls
back for others. Tests check that both readers give the same rows.

Reference: Ultralytics 8.3, ``data/utils.py`` (`verify_image_label`) and ``engine/results.py``
(`save_txt`).
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from detap.core.overlap import paired_overlaps
from detap.errors import InputError, Note, Problem, UsageError
from detap.formats.by_name.notes import (
    files_skipped,
    images_without_file,
    images_without_objects,
    nonzero_notes,
)
from detap.formats.by_name.objects import Objects, detections, ground_truth
from detap.formats.by_name.problems import Problems, refuse_empty
from detap.formats.text.class_names import ClassNames
from detap.formats.text.data_yaml import DataYaml
from detap.formats.text.folder import Folder, detections_folder
from detap.formats.text.rows import Rows
from detap.formats.yolo.boxes import Columns, confirm_order, in_pixels, order_of_columns
from detap.formats.yolo.dataset import (
    NAME_LISTS,
    DataSet,
    find_images,
    is_data_yaml,
    labels_folder,
    resolve_data_yaml,
    without_flattened_paths,
)
from detap.formats.yolo.lines import COLUMNS
from detap.formats.yolo.reader import LabelReader, Task
from detap.formats.yolo.sizes import GivenSizes, Size, refuse_unknown, sizes_of_images
from detap.formats.yolo.tasks import check_run, has_keypoints, task_of_run
from detap.io import stream as files
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import check_choice
from detap.protocols.fields import default_sigmas
from detap.tables.columns import indices_in, reindexed
from detap.tables.detection import (
    Detections,
    Floats,
    GroundTruth,
    Integers,
    SourceFile,
    encode_boxes,
)
from detap.tables.notes import POLYGONS_BOUNDED
from detap.text_input import is_whole, join_names, quote

_TRUTH = "the ground truth"


def read_ground_truth(
    path: Path,
    *,
    split: str | None = None,
    class_names: Path | None = None,
    task: str | None = None,
    shapes: str = "reject",
    boxes: str = "cxcywh",
    image_size: Size | None = None,
    image_sizes: Path | None = None,
    masks: bool = False,
    keypoints: bool = False,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read the ground truth of a YOLO data set.

    Parameters
    ----------
    path : str or path
        A `data.yaml`, or a folder with one label file per image.
    split : {"val", "test", "train"}, optional
        The split of a `data.yaml`; by default ``val``.
    class_names : str or path, optional
        Class names: one per line, or a `data.yaml`. By default those of the `data.yaml`, or of a
        ``classes.txt``, ``obj.names`` or ``data.yaml`` in the folder of the labels or the two above
        it; else the numbers are the names.
    task : {"detect", "segment", "pose", "obb"}, optional
        Meaning of the rows; by default from ``kpt_shape`` and the number of columns.
    shapes : {"reject", "bbox"}
        ``"bbox"`` reads oriented boxes as their bounding boxes, which protocols that compare boxes
        require. Segments are always read as bounding boxes or masks.
    boxes : {"cxcywh", "xywh", "xyxy"}
        Box format, normalized.
    image_size : str or (float, float), optional
        Width and height of every image, in pixels: ``"640x480"``.
    image_sizes : str or path, optional
        A table ``image,width,height``. Without both, sizes come from the image files. If the image
        folder of a `data.yaml` is missing, the table also lists its images.
    masks : bool
        If True, read polygons as masks; otherwise as bounding boxes or quadrilaterals.
    keypoints : bool
        If True, rows without keypoints are an error. Keypoints are read whenever ``kpt_shape`` is
        given.
    as_is : bool
        Accept boxes beyond their images or of negative size, and lists of names that differ.
    limits : Limits
        Limits on the input size.

    Returns
    -------
    GroundTruth
        Images sorted by name, the file name without folder and suffix; classes in the order of
        their list. Duplicate rows of a file are dropped, with a warning.

    Raises
    ------
    InputError
        If an input is invalid; lists every problem, up to the limit, without the content of files
        outside the folder of the `data.yaml`.
    """
    path = resolve_data_yaml(os.fspath(path))
    data_set = find_images(path, split, limits)
    given = GivenSizes(data_set.images, image_size, image_sizes, limits)
    data_set, listed = _with_listed_images(data_set, given)
    try:
        names = _names_of_truth(data_set, class_names, limits, as_is=as_is)
        shape = _keypoints([names, *_lists_of(data_set.data)])
        given_task = Task(task, shape, as_is, boxes, masks, keypoints, shapes)
        return _truth_of(path, data_set, names, given_task, given, limits=limits, listed=listed)
    except InputError as error:
        raise data_set.hide_outside(error, class_names) from None


def _truth_of(
    path: str,
    data_set: DataSet,
    names: ClassNames,
    task: Task,
    given: GivenSizes,
    *,
    limits: Limits,
    listed: int,
) -> GroundTruth:
    """Read the labels of a data set as ground truth."""
    labels = LabelReader(path, data_set.folder, names, limits, task, scored=False)
    rows = labels.rows
    missing = f"objects in the {len(data_set.labeled)} label files of its images"
    refuse_empty(path, len(rows), limits, missing, "labels")
    labels.check(rows.values)
    image = np.array(data_set.labeled, np.int32)[rows.file]
    sizes = sizes_of_images(data_set, given, image, as_is=task.as_is)
    classes = names.names or tuple(sorted(rows.names, key=lambda name: (len(name), name)))
    pixels = labels.pixels(rows.values, sizes[image])
    polygons = labels.polygons(pixels, sizes[image])
    fields = labels.fields(pixels, sizes[image])
    area = _areas(fields)
    if labels.keypoints is not None:
        fields["sigmas"] = _sigmas(labels, [names, *_lists_of(data_set.data)])
    labels.selected = selected = np.flatnonzero(~labels.repeated())
    objects = Objects(
        images=data_set.images,
        classes=classes,
        image=image[selected],
        label=reindexed(rows.name, rows.names, classes)[selected],
        boxes=pixels[selected],
        box_format="xywh",
        sizes=sizes,
        polygons=None if polygons is None else polygons[selected],
        area=None if area is None else area[selected],
        fields={
            name: value if name in ("masks", "sigmas") else value[selected]
            for name, value in fields.items()
        },
    )
    data_yaml = (SourceFile(path, len(data_set.images)),) if data_set.data else ()
    sources = _once((*data_yaml, *labels.sources(), *names.source(), *given.source))
    notes = _truth_notes(data_set, names, image, len(rows) - len(selected), listed)
    notes = (*notes, *labels.notes("ground truth"))
    return ground_truth(objects, labels, sources, notes)


def _with_listed_images(data_set: DataSet, given: GivenSizes) -> tuple[DataSet, int]:
    """Add the images of a table of sizes if nothing names those of a `data.yaml`.

    Returns
    -------
    data_set : DataSet
    count : int
        The number of images added.
    """
    if not given.source or data_set.named or data_set.data is None:
        return data_set, 0
    added = sorted(given.table.keys() - set(data_set.images))
    data_set = data_set.with_images(added)
    given.use_for(data_set.images)
    return data_set, len(added)


def _areas(fields: dict[str, Any]) -> Floats | None:
    """Return the areas of masks, (N,); None without masks."""
    if "masks" not in fields:
        return None
    from detap.core.masks import pixel_counts

    return pixel_counts(fields["masks"].arrays).astype(np.float64)


def _sigmas(labels: LabelReader, lists: Sequence[ClassNames]) -> tuple[float, ...]:
    """Return the OKS sigmas of a `data.yaml`, or Ultralytics' default."""
    assert labels.keypoints is not None
    _, count, size = labels.keypoints.shape
    given = next((names.sigmas for names in lists if names.sigmas), ())
    return given or default_sigmas(count, visibility=size == 3)


def _once(sources: Sequence[SourceFile]) -> tuple[SourceFile, ...]:
    """Return each file once: a `data.yaml` may also be the list of names."""
    by_path: dict[str, SourceFile] = {}
    for source in sources:
        by_path.setdefault(source.path, source)
    return tuple(by_path.values())


def _truth_notes(
    data_set: DataSet, names: ClassNames, image: Integers, repeated: int, listed: int
) -> tuple[Note, ...]:
    missing = sum(not path for path in data_set.image_files)
    known = (
        "those with a label file and those listed with a size"
        if listed
        else "those with a label file"
    )
    repeated_images = "images are listed twice; each counts once"
    return nonzero_notes(
        Note(
            "repeated-rows",
            "duplicate rows of their file are dropped, as in training",
            repeated,
        ),
        Note("images-listed-twice", repeated_images, data_set.repeated),
        Note(
            "paths-outside-data-set",
            f"paths of data.yaml are outside its folder: {join_names(data_set.outside)}",
            len(data_set.outside),
            severity="info",
        ),
        files_skipped(data_set.skipped, "labels"),
        images_without_objects(len(data_set.images), image),
        Note(
            "images-absent",
            f"image files are missing: sizes are as given, and images are {known}",
            missing,
            severity="info",
        ),
        Note(
            "classes-without-names",
            "classes have no names; numbers are used",
            0 if names.names else 1,
            severity="info",
        ),
    )


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    class_names: Path | None = None,
    dt_class_names: Path | None = None,
    columns: str | None = None,
    task: str | None = None,
    shapes: str = "reject",
    boxes: str = "cxcywh",
    image_size: Size | None = None,
    image_sizes: Path | None = None,
    masks: bool = False,
    keypoints: bool = False,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read YOLO predictions: one file per image with detections.

    Parameters
    ----------
    path : str or path
        The folder of the files, or the one with their folder ``labels``.
    ground_truth : GroundTruth
        The ground truth, for its images and their sizes, if known.
    class_names : str or path, optional
        Class names, as in :func:`read_ground_truth`; by default those of the ground truth.
    dt_class_names : str or path, optional
        The same for the predictions only, if they use another list.
    columns : {"conf-last", "conf-first"}, optional
        ``class xc yc w h conf`` or ``class conf xc yc w h``; by default the first, unless only the
        boxes of the second fit their images.
    task : {"detect", "segment", "pose", "obb"}, optional
        As in :func:`read_ground_truth`; ``kpt_shape`` comes from the ground truth or from
        `class_names`.
    shapes : {"reject", "bbox"}
        As in :func:`read_ground_truth`.
    boxes : {"cxcywh", "xywh", "xyxy"}
        As in :func:`read_ground_truth`.
    image_size, image_sizes : optional
        As in :func:`read_ground_truth`, for images whose size the ground truth lacks.
    masks, keypoints : bool
        As in :func:`read_ground_truth`.
    as_is, limits
        As in :func:`read_ground_truth`.

    Returns
    -------
    Detections
        Numbered as `ground_truth`; classes that it lacks follow.

    Raises
    ------
    InputError
        If an input is invalid; lists every problem, up to the limit.
    """
    if columns is not None:
        check_choice("columns", columns, COLUMNS)
    path = os.fspath(path)
    folder, flattened = without_flattened_paths(predictions_folder(path), ground_truth)
    if dt_class_names is None:
        names = _names_of_detections(folder, ground_truth, class_names, limits, as_is=as_is)
    else:
        names = ClassNames.load(dt_class_names, limits)
    described = [
        _read_if_valid(source.path, limits)
        for source in ground_truth.files
        if is_data_yaml(source.path)
    ]
    shape = _keypoints([names, ClassNames.load(class_names, limits), *described])
    if not as_is:
        task = check_run(task_of_run(folder.path), task, shape)
    if any(note.code == POLYGONS_BOUNDED for note in ground_truth.notes):
        shapes = "bbox"  # as those of the ground truth
    known, keep_corners = ground_truth.classes, ground_truth.polygons is not None
    given_task = Task(
        task, shape, as_is, boxes, masks, keypoints, shapes, keep_corners=keep_corners
    )
    reader = LabelReader(path, folder, names, limits, given_task, scored=True, known=known)
    rows = reader.rows
    if not names.names:
        _check_numbered(path, ground_truth, rows)
    given = GivenSizes(ground_truth.images, image_size, image_sizes, limits)
    size, missing_files = _sizes_of_rows(reader, ground_truth, given, path)
    order = _columns(reader, ground_truth, size, columns, path)
    box, score = order.split(rows)
    reader.check(box)
    pixels = reader.pixels(box, size)
    fields = reader.fields(pixels, size)
    objects = Objects(
        images=tuple(folder.members),
        classes=rows.names,
        image=rows.file,
        label=rows.name,
        boxes=pixels,
        box_format="xywh",
        score=score,
        polygons=reader.polygons(pixels, size),
        area=_areas(fields),
        fields=fields,
    )
    known_paths = {source.path for source in ground_truth.files} | {_TRUTH}
    options = (*names.source(), *given.source)
    new_sources = (source for source in options if source.path not in known_paths)
    notes = (
        *_detection_notes(folder, reader, missing_files, flattened),
        *order.note,
        *reader.notes("detections"),
    )
    return detections(objects, ground_truth, reader, (*reader.sources(), *new_sources), notes)


def _sizes_of_rows(
    reader: LabelReader, truth: GroundTruth, given: GivenSizes, path: str
) -> tuple[Floats, int]:
    """Return the size (N, 2) of each row's image, and the number of missing files."""
    sizes = given.sizes
    if truth.image_sizes is not None:
        given.check_against(truth.image_sizes, truth.images, path, "in the ground truth")
        sizes = np.where(np.isnan(truth.image_sizes), sizes, truth.image_sizes)
    image_by_file = indices_in(reader.folder.members, truth.images)
    image = image_by_file[reader.rows.file]
    known = image[image >= 0]
    refuse_unknown(np.unique(known[np.isnan(sizes[known, 0])]), truth.images, path)
    size = np.ones((len(image), 2))  # rows of unknown images are refused later
    size[image >= 0] = sizes[known]
    return size, len(truth.images) - int(np.count_nonzero(image_by_file >= 0))


def _columns(
    reader: LabelReader, truth: GroundTruth, size: Floats, columns: str | None, path: str
) -> Columns:
    """Return the column order of predictions, as given or detected."""
    rows, form = reader.rows, reader.form
    if has_keypoints(form):
        if columns == "conf-first":
            raise UsageError(
                "--columns conf-first is for boxes; rows with keypoints end with the confidence"
            )
        return Columns("conf-last")
    if columns is not None:
        return Columns(columns)
    order = order_of_columns(rows, named=reader.by_name, box_format=form.box_format)
    if not order.unsure:
        return order
    last, first = (
        _max_ious(reader, truth, in_pixels(box, rows.flag, size, form.box_format))
        for box in (rows.values[:, :4], rows.values[:, 1:])
    )
    return confirm_order(order, last, first, path)


def _max_ious(reader: LabelReader, truth: GroundTruth, pixels: Floats) -> Floats:
    """Return the maximum IoU of each box with ground truths of its image and class."""
    rows = reader.rows
    image = indices_in(tuple(reader.folder.members), truth.images)[rows.file]
    label = indices_in(rows.names, truth.classes)[rows.name]
    row, gt = np.nonzero((image[:, None] == truth.image) & (label[:, None] == truth.label))
    corners, areas = encode_boxes(pixels, "xywh")
    max_iou = np.zeros(len(rows))
    iou = paired_overlaps(
        corners[row],
        truth.corners[gt],
        detection_areas=areas[row],
        truth_areas=truth.box_area[gt],
    )
    np.maximum.at(max_iou, row, iou)
    return max_iou


def _detection_notes(
    folder: Folder, reader: LabelReader, missing_files: int, flattened: int
) -> tuple[Note, ...]:
    return nonzero_notes(
        Note(
            "repeated-rows",
            "duplicate rows of their file all count; detector run twice into one folder? (save_txt "
            "appends)",
            int(np.count_nonzero(reader.repeated())),
        ),
        Note(
            "paths-flattened",
            "files are named by the path of their image (a_1.txt for a/1.jpg)",
            flattened,
            severity="info",
        ),
        files_skipped(folder.skipped, "detections"),
        images_without_file(missing_files),
    )


def predictions_folder(path: str) -> Folder:
    """Return the text files of a folder of predictions, without lists of names."""
    if is_data_yaml(path):
        files.refuse(path, "is a data.yaml, expected predictions", "use their folder")
    folder = detections_folder(labels_folder(path))
    if os.path.isdir(path):
        for name in NAME_LISTS:
            if name in folder.members.values():
                del folder.members[os.path.splitext(name)[0]]
    return folder


# --- class names


def _lists_of(data: DataYaml | None) -> list[ClassNames]:
    if data is None:
        return []
    return [ClassNames(data.file, data.names, data.keypoints, data.sigmas)]


def _keypoints(lists: Sequence[ClassNames]) -> tuple[int, int] | None:
    """Return the ``kpt_shape`` of the files; raise InputError if two differ."""
    given = {names.keypoints: names.file for names in lists if names.keypoints is not None}
    if len(given) > 1:
        (one, first), (other, second) = sorted(given.items())[:2]
        message = f"kpt_shape is [{other[0]}, {other[1]}], and [{one[0]}, {one[1]}] in {first}"
        raise InputError(Problem(second, "", message, "correct one of them"))
    return next(iter(given), None)


def _names_of_truth(
    data_set: DataSet, given: Path | None, limits: Limits, *, as_is: bool
) -> ClassNames:
    """Return the list of class names; all existing lists must be equal."""
    lists = [ClassNames.load(given, limits)]
    if data_set.data is not None:
        lists += _lists_of(data_set.data)
    above = data_set.folder.given
    for _ in range(3):
        lists += [_read_if_valid(os.path.join(above, name), limits) for name in NAME_LISTS]
        above = os.path.normpath(os.path.join(above, os.pardir))
    return _single_list(lists, as_is=as_is)


def _read_if_valid(path: str, limits: Limits) -> ClassNames:
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


def _names_of_detections(
    folder: Folder, truth: GroundTruth, given: Path | None, limits: Limits, *, as_is: bool
) -> ClassNames:
    """Return the list of class names of predictions, or none if unknown.

    A list next to them must equal that of the ground truth or the given one.
    """
    lists = [ClassNames.load(given, limits)]
    paths = [source.path for source in truth.files]
    name_files = [p for p in paths if is_data_yaml(p) or os.path.basename(p) in NAME_LISTS]
    _single_list([_read_if_valid(file, limits) for file in name_files])  # of several data sets
    if given is None and truth.format == "yolo" and not _are_numbers(truth.classes):
        lists.append(ClassNames(next(iter(name_files), _TRUTH), truth.classes))
    lists += [_read_if_valid(os.path.join(folder.path, name), limits) for name in NAME_LISTS]
    return _single_list(lists, as_is=as_is)


def _are_numbers(names: Sequence[str]) -> bool:
    return all(map(is_whole, names))


def _check_numbered(path: str, truth: GroundTruth, rows: Rows) -> None:
    """Raise InputError for class numbers if the ground truth has names."""
    if any(map(str.isdigit, rows.names)) and not _are_numbers(truth.classes):
        raise InputError(
            Problem(
                path,
                "",
                f"the ground truth has class names (e.g. {quote(truth.classes[0])}), the results "
                "have numbers",
                "pass --class-names FILE: data.yaml, obj.names or classes.txt",
            )
        )
