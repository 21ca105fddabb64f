"""Read YOLO data sets and predictions.

A line is ``class xc yc w h``, optionally with keypoints, or a polygon ``class x y x y x y ...``,
all normalized; detections end with the confidence.

Reference: Ultralytics 8.3, ``data/utils.py`` (`verify_image_label`) and ``engine/results.py``
(`save_txt`).
"""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from detap.core.masks import pixel_counts
from detap.core.overlap import paired_overlaps
from detap.errors import InputError, Note, UsageError
from detap.formats.by_name.notes import (
    files_skipped,
    images_without_file,
    images_without_objects,
    nonzero_notes,
)
from detap.formats.by_name.objects import Objects, detections, ground_truth
from detap.formats.by_name.problems import refuse_empty
from detap.formats.text.class_names import ClassNames
from detap.formats.text.folder import Folder, detections_folder
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
from detap.formats.yolo.names import (
    TRUTH,
    check_numbered,
    kpt_shape,
    names_of_data,
    names_of_detections,
    names_of_truth,
    read_if_valid,
)
from detap.formats.yolo.reader import LabelReader, Task
from detap.formats.yolo.sizes import GivenSizes, Size, refuse_unknown, sizes_of_images
from detap.formats.yolo.tasks import check_run, task_of_run
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
from detap.text_input import join_names


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
    """Read the ground truth of a YOLO data set: a `data.yaml`, or a folder with a file per image.

    Class names are those of `class_names`, the `data.yaml`, or a ``classes.txt``, ``obj.names`` or
    ``data.yaml`` in the folder of the labels or the two above it; else the numbers are the names.
    `task` is by default detected from ``kpt_shape`` and the number of columns. With `masks`,
    polygons are read as masks; otherwise as bounding boxes or quadrilaterals. With `keypoints`,
    rows without keypoints are an error. Sizes of images come from `image_size` (``"640x480"``), the
    table `image_sizes`, which also lists the images if their folder is missing, or their files.

    Images are sorted by name, the file name without folder and suffix; classes are in the order of
    their list. Duplicate rows of a file are dropped, with a warning. Errors do not have the content
    of files outside the folder of the `data.yaml`.
    """
    path = resolve_data_yaml(os.fspath(path))
    data_set = find_images(path, split, limits)
    given = GivenSizes(data_set.images, image_size, image_sizes, limits)
    data_set, listed = _with_listed_images(data_set, given)
    try:
        names = names_of_truth(data_set, class_names, limits, as_is=as_is)
        shape = kpt_shape([names, *names_of_data(data_set.data)])
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
    labels.check(labels.values)
    image = np.array(data_set.labeled, np.int32)[rows.file]
    sizes = sizes_of_images(data_set, given, image, as_is=task.as_is)
    classes = names.names or tuple(sorted(rows.names, key=lambda name: (len(name), name)))
    pixels = labels.pixels(labels.values, sizes[image])
    polygons = labels.polygons(pixels, sizes[image])
    fields = labels.fields(pixels, sizes[image])
    area = _areas(fields)
    if labels.keypoints is not None:
        fields["sigmas"] = _sigmas(labels, [names, *names_of_data(data_set.data)])
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
    """Add the images of a table of sizes if nothing names those of a `data.yaml`; count them."""
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

    Options are as in :func:`read_ground_truth`; class names and ``kpt_shape`` are by default those
    of the ground truth. `columns` is the order of the columns; by default conf-last, unless only
    the boxes of conf-first fit their images.
    """
    if columns is not None:
        check_choice("columns", columns, COLUMNS)
    path = os.fspath(path)
    folder, flattened = without_flattened_paths(predictions_folder(path), ground_truth)
    if dt_class_names is None:
        names = names_of_detections(folder, ground_truth, class_names, limits, as_is=as_is)
    else:
        names = ClassNames.load(dt_class_names, limits)
    described = [
        read_if_valid(source.path, limits)
        for source in ground_truth.files
        if is_data_yaml(source.path)
    ]
    shape = kpt_shape([names, ClassNames.load(class_names, limits), *described])
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
        check_numbered(path, ground_truth, rows.names)
    given = GivenSizes(ground_truth.images, image_size, image_sizes, limits)
    size, missing_files = _sizes_of_rows(reader, ground_truth, given, path)
    order = _columns(reader, ground_truth, size, columns, path)
    box, score = order.split(reader.values, reader.polygon)
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
    known_paths = {source.path for source in ground_truth.files} | {TRUTH}
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
    if reader.form.keypoints:
        if columns == "conf-first":
            raise UsageError(
                "--columns conf-first is for boxes; rows with keypoints end with the confidence"
            )
        return Columns("conf-last")
    if columns is not None:
        return Columns(columns)
    values, polygon, box_format = reader.values, reader.polygon, reader.form.box_format
    order = order_of_columns(values[~polygon], named=reader.by_name, box_format=box_format)
    if not order.unsure:
        return order
    last, first = (
        _max_ious(reader, truth, in_pixels(box, polygon, size, box_format))
        for box in (values[:, :4], values[:, 1:])
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
