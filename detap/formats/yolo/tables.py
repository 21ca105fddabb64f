"""Read YOLO data sets and predictions.

A line is ``class xc yc w h``, optionally with keypoints, or a polygon ``class x y x y x y ...``,
all normalized; detections end with the confidence.

Reference: Ultralytics 8.3, ``data/utils.py`` (`verify_image_label`) and ``engine/results.py``
(`save_txt`).
"""

import os

import numpy as np

from detap.errors import InputError, Note
from detap.formats.by_name.notes import (
    files_skipped,
    images_without_file,
    images_without_objects,
    nonzero_notes,
)
from detap.formats.by_name.objects import detections, ground_truth
from detap.formats.by_name.problems import refuse_empty
from detap.formats.text.class_names import ClassNames, is_data_yaml
from detap.formats.text.folder import Folder, detections_folder
from detap.formats.yolo.columns import COLUMNS, box_and_score
from detap.formats.yolo.dataset import (
    DataSet,
    find_images,
    labels_folder,
    resolve_data_yaml,
    without_flattened_paths,
)
from detap.formats.yolo.labels import LabelReader, Task
from detap.formats.yolo.names import (
    NAME_LISTS,
    TRUTH,
    check_numbered,
    kpt_shape,
    names_of_detections,
    names_of_truth,
    read_if_valid,
)
from detap.formats.yolo.rows import check_run, task_of_run
from detap.formats.yolo.sizes import GivenSizes, Size, refuse_unknown, sizes_of_images
from detap.io import stream as files
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path, SourceFile
from detap.io.problems import check_choice
from detap.protocols.fields import default_sigmas
from detap.tables.columns import indices_in, reindexed
from detap.tables.detection import Detections, Floats, GroundTruth
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
        labels = data_set.folder.given
        names = names_of_truth(data_set.data, labels, class_names, limits, as_is=as_is)
        lists = [names, data_set.data or ClassNames()]
        given_task = Task(task, kpt_shape(lists), as_is, boxes, masks, keypoints, shapes)
        reader = LabelReader(path, data_set.folder, names, limits, given_task, scored=False)
        return _truth_of(reader, data_set, lists, given, listed=listed)
    except InputError as error:
        raise data_set.hide_outside(error, class_names) from None


def _truth_of(
    reader: LabelReader, data_set: DataSet, lists: list[ClassNames], given: GivenSizes, listed: int
) -> GroundTruth:
    """Return the labels of a data set as ground truth."""
    rows, names = reader.rows, lists[0]
    missing = f"objects in the {len(data_set.labeled)} label files of its images"
    refuse_empty(reader.path, len(rows), reader.limits, missing, "labels")
    reader.check(reader.values)
    image = np.array(data_set.labeled, np.int32)[rows.file]
    sizes = sizes_of_images(data_set, given, image, as_is=reader.as_is)
    classes = names.names or tuple(sorted(rows.names, key=lambda name: (len(name), name)))
    dropped = reader.repeated()
    objects = reader.objects(
        reader.values,
        sizes[image],
        dropped=dropped,
        images=data_set.images,
        classes=classes,
        image=image,
        label=reindexed(rows.name, rows.names, classes),
        sizes=sizes,
    )
    if reader.keypoints is not None:
        objects = objects._replace(fields={**objects.fields, "sigmas": _sigmas(reader, lists)})
    data_yaml = (SourceFile(reader.path, len(data_set.images)),) if data_set.data else ()
    sources: dict[str, SourceFile] = {}  # a data.yaml may also be the list of names
    for source in (*data_yaml, *reader.sources(), *names.source(), *given.source):
        sources.setdefault(source.path, source)
    missing_files = sum(not path for path in data_set.image_files)
    known = "those with a label file" + " and those listed with a size" * bool(listed)
    notes = nonzero_notes(
        Note(
            "repeated-rows",
            "duplicate rows of their file are dropped, as in training",
            int(np.count_nonzero(dropped)),
        ),
        Note("images-listed-twice", "images are listed twice; each counts once", data_set.repeated),
        Note(
            "paths-outside-data-set",
            f"paths of data.yaml are outside its folder: {join_names(data_set.outside)}",
            len(data_set.outside),
            severity="info",
        ),
        files_skipped(data_set.folder.skipped, "labels"),
        images_without_objects(len(data_set.images), image),
        Note(
            "images-absent",
            f"image files are missing: sizes are as given, and images are {known}",
            missing_files,
            severity="info",
        ),
        Note(
            "classes-without-names",
            "classes have no names; numbers are used",
            int(not names.names),
            severity="info",
        ),
        *reader.notes("ground truth"),
    )
    return ground_truth(objects, reader, tuple(sources.values()), notes)


def _with_listed_images(data_set: DataSet, given: GivenSizes) -> tuple[DataSet, int]:
    """Add the images of a table of sizes if nothing names those of a `data.yaml`; count them."""
    if not given.source or data_set.named or data_set.data is None:
        return data_set, 0
    added = sorted(given.table.keys() - set(data_set.images))
    data_set = data_set.with_images(added)
    given.use_for(data_set.images)
    return data_set, len(added)


def _sigmas(reader: LabelReader, lists: list[ClassNames]) -> tuple[float, ...]:
    """Return the OKS sigmas of a `data.yaml`, or Ultralytics' default."""
    assert reader.keypoints is not None
    _, count, size = reader.keypoints.shape
    given = next((names.sigmas for names in lists if names.sigmas), ())
    return given or default_sigmas(count, visibility=size == 3)


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
    data_yamls = [source.path for source in ground_truth.files if is_data_yaml(source.path)]
    described = [read_if_valid(file, limits) for file in data_yamls]
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
    size, missing_files = _sizes_of_rows(reader, ground_truth, given)
    box, score, order_notes = box_and_score(reader, ground_truth, size, columns)
    reader.check(box)
    objects = reader.objects(
        box,
        size,
        images=tuple(folder.members),
        classes=rows.names,
        image=rows.file,
        label=rows.name,
        score=score,
    )
    known_paths = {source.path for source in ground_truth.files} | {TRUTH}
    options = (*names.source(), *given.source)
    new_sources = (source for source in options if source.path not in known_paths)
    repeated = (
        "duplicate rows of their file all count; detector run twice into one folder? (save_txt "
        "appends)"
    )
    notes = nonzero_notes(
        Note("repeated-rows", repeated, int(np.count_nonzero(reader.repeated()))),
        Note(
            "paths-flattened",
            "files are named by the path of their image (a_1.txt for a/1.jpg)",
            flattened,
            severity="info",
        ),
        files_skipped(folder.skipped, "detections"),
        images_without_file(missing_files),
        *order_notes,
        *reader.notes("detections"),
    )
    return detections(objects, ground_truth, reader, (*reader.sources(), *new_sources), notes)


def _sizes_of_rows(
    reader: LabelReader, truth: GroundTruth, given: GivenSizes
) -> tuple[Floats, int]:
    """Return the size (N, 2) of each row's image, and the number of missing files."""
    sizes = given.sizes
    if truth.image_sizes is not None:
        given.check_against(truth.image_sizes, truth.images, reader.path, "in the ground truth")
        sizes = np.where(np.isnan(truth.image_sizes), sizes, truth.image_sizes)
    image_by_file = indices_in(reader.folder.members, truth.images)
    image = image_by_file[reader.rows.file]
    known = image[image >= 0]
    unknown = np.unique(known[np.isnan(sizes[known, 0])])
    refuse_unknown(unknown, truth.images, reader.path)
    size = np.ones((len(image), 2))  # rows of unknown images are refused later
    size[image >= 0] = sizes[known]
    return size, len(truth.images) - int(np.count_nonzero(image_by_file >= 0))


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
