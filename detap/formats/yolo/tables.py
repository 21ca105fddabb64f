"""Read YOLO data sets and predictions.

A line is ``class xc yc w h``, optionally with keypoints, or a polygon ``class x y x y x y ...``,
all normalized; detections end with the confidence. The fast reader reads regular files and falls
back for others. Tests check that both readers give the same rows.

Reference: Ultralytics 8.3, ``data/utils.py`` (`verify_image_label`) and ``engine/results.py``
(`save_txt`).
"""

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from detap.checks.tables import pair_key, repeats
from detap.core.overlap import paired_overlaps
from detap.core.polygons import bounds, box_polygons
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
from detap.formats.text.lines import LineForm
from detap.formats.text.reader import FolderReader
from detap.formats.text.rows import Rows
from detap.formats.yolo.boxes import (
    Columns,
    check_areas,
    check_fractions,
    confirm_order,
    in_pixels,
    order_of_columns,
)
from detap.formats.yolo.dataset import (
    NAME_LISTS,
    DataSet,
    find_images,
    is_data_yaml,
    labels_folder,
    resolve_data_yaml,
)
from detap.formats.yolo.lines import BOX, COLUMNS, CORNERS, YoloForm
from detap.formats.yolo.sizes import GivenSizes, Size, refuse_unknown, sizes_of_images
from detap.formats.yolo.tasks import (
    all_axis_aligned,
    form_of,
    has_keypoints,
    refuse_equal_lengths,
    refuse_other_polygons,
    storing,
)
from detap.io import stream as files
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import FaultError, check_choice
from detap.tables.columns import indices_in, reindexed
from detap.tables.detection import (
    Detections,
    Flags,
    Floats,
    GroundTruth,
    Integers,
    SourceFile,
    encode_boxes,
)
from detap.tables.notes import POLYGONS_BOUNDED
from detap.text_input import is_whole, join_names, quote

_TRUTH = "the ground truth"
_LABELS_REACH, _PREDICTIONS_REACH = 0.5, 1.0
"""Distance by which corners of oriented boxes may lie outside, relative to the image size."""


def read_ground_truth(
    path: Path,
    *,
    split: str | None = None,
    class_names: Path | None = None,
    task: str | None = None,
    boxes: str = "cxcywh",
    image_size: Size | None = None,
    image_sizes: Path | None = None,
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
    boxes : {"cxcywh", "xywh", "xyxy"}
        Box format, normalized.
    image_size : str or (float, float), optional
        Width and height of every image, in pixels: ``"640x480"``.
    image_sizes : str or path, optional
        A table ``image,width,height``. Without both, sizes come from the image files.
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
    try:
        names = _names_of_truth(data_set, class_names, limits, as_is=as_is)
        given_task = _Task(task, _keypoints([names, *_lists_of(data_set.data)]), as_is, boxes)
        return _truth_of(path, data_set, names, given_task, given, limits=limits)
    except InputError as error:
        raise data_set.hide_outside(error, class_names) from None


def _truth_of(
    path: str,
    data_set: DataSet,
    names: ClassNames,
    task: "_Task",
    given: GivenSizes,
    *,
    limits: Limits,
) -> GroundTruth:
    """Read the labels of a data set as ground truth."""
    labels = _Files(path, data_set.folder, names, limits, task, scored=False)
    rows = labels.rows
    missing = f"objects in the {len(data_set.labeled)} label files of its images"
    refuse_empty(path, len(rows), limits, missing, "labels")
    labels.check(rows.values)
    image = np.array(data_set.labeled, np.int32)[rows.file]
    sizes = sizes_of_images(data_set, given, image, as_is=task.as_is)
    classes = names.names or tuple(sorted(rows.names, key=lambda name: (len(name), name)))
    pixels = labels.pixels(rows.values, sizes[image])
    polygons = labels.polygons(pixels, sizes[image])
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
    )
    data_yaml = (SourceFile(path, len(data_set.images)),) if data_set.data else ()
    sources = _once((*data_yaml, *labels.sources(), *names.source(), *given.source))
    notes = _truth_notes(data_set, names, image, len(rows) - len(selected))
    notes = (*notes, *labels.notes("ground truth"))
    return ground_truth(objects, labels, sources, notes)


@dataclass(frozen=True, slots=True)
class _Task:
    """Options that determine the rows."""

    name: str | None
    keypoints: tuple[int, int] | None
    as_is: bool
    boxes: str


class _Files(FolderReader):
    """Reader of label files; rows have a box or bounds, and a score.

    Attributes
    ----------
    task : _Task
    corners : (N, 8) float64 or None
        Normalized, if all polygons are quadrilaterals and not all are axis-aligned.
    by_name : bool
        True if all rows have class names.
    selected : (n,) array of int or None
        The rows in tables, if not all.
    """

    form: YoloForm
    selected: NDArray[np.intp] | None = None

    def __init__(
        self,
        path: str,
        folder: Folder,
        names: ClassNames,
        limits: Limits,
        task: _Task,
        *,
        scored: bool,
        known: Collection[str] = (),
    ) -> None:
        super().__init__(folder, task.as_is, limits)
        self.path = path
        self.task = task
        self.corners: Floats | None = None
        name_kinds: set[bool] = set()
        form = form_of(
            task.name,
            task.keypoints,
            scored=scored,
            resolve=_resolver(names, frozenset(known), name_kinds),
            path=folder.given,
            box_format=task.boxes,
        )
        rows = self.read(form)
        self.by_name = name_kinds == {True}
        if not form.counts and form.polygons == {CORNERS}:
            rows = self.read(storing(form, CORNERS, len(BOX), CORNERS))
        elif form.polygons and rows.flag.all() and not (task.as_is or task.name):
            refuse_equal_lengths(form, self.location(0), lambda form: self.read(form).values)
        if self.form.stored == len(BOX):
            return
        corners, score = np.split(rows.values, (CORNERS,), axis=1)
        box = np.where(rows.flag[:, None], bounds(corners), corners[:, : len(BOX)])
        self.rows = replace(rows, values=np.hstack([box, score]))
        self.corners = None if all_axis_aligned(corners[rows.flag]) else corners

    def read(self, form: LineForm) -> Rows:
        """Read the rows; raise InputError with every invalid line."""
        rows = super().read(form)
        self.problems.raise_any()
        return rows

    def location(self, row: int) -> tuple[str, str]:
        """Return the file and line of a row in tables."""
        return super().location(row if self.selected is None else int(self.selected[row]))

    def check(self, box: Floats) -> None:
        """Raise InputError if boxes (N, 4) are not normalized."""
        reach = None
        if self.corners is not None:
            reach = _PREDICTIONS_REACH if self.form.scored else _LABELS_REACH
        rows, location, box_format = self.rows, self.location, self.form.box_format
        check_fractions(
            rows, box, location, self.problems, as_is=self.as_is, box_format=box_format, reach=reach
        )
        self.problems.raise_any()

    def pixels(self, box: Floats, size: Floats) -> Floats:
        """Return the boxes (N, 4) in pixels, in images of the sizes (N, 2)."""
        pixels = in_pixels(box, self.rows.flag, size, self.task.boxes)
        check_areas(pixels, self.location, self.problems)
        self.problems.raise_any()
        return pixels

    def polygons(self, pixels: Floats, size: Floats) -> Floats | None:
        """Return the quadrilaterals (N, 8) in pixels, boxes among them; None if all are boxes.

        Raises
        ------
        InputError
            If they look like polygons or keypoints, and no task is given.
        """
        if self.corners is None:
            return None
        polygon = self.rows.flag
        corners = np.where(
            polygon[:, None],
            self.corners * np.tile(size, (1, CORNERS // 2)),
            box_polygons(encode_boxes(pixels, "xywh")[0]),
        )
        if self.task.name is None and not self.as_is:
            polygon_rows = np.flatnonzero(polygon)
            refuse_other_polygons(
                self.corners[polygon_rows],
                corners[polygon_rows],
                self.form.scored,
                lambda row: self.location(int(polygon_rows[row])),
            )
        return corners

    def repeated(self) -> Flags:
        """Return a mask of rows that equal an earlier one of their file."""
        rows = self.rows
        values = rows.values if self.corners is None else np.hstack([rows.values, self.corners])
        return repeats(2 * pair_key(rows.file, rows.name) + rows.flag, values)

    def notes(self, title: str) -> tuple[Note, ...]:
        """Return notes about ignored parts of the rows."""
        keypoints = len(self.rows) if has_keypoints(self.form) else 0
        bounded = 0 if self.form.counts else int(np.count_nonzero(self.rows.flag))
        return nonzero_notes(
            Note(
                "keypoints-left-out",
                f"keypoints of the {title} are ignored; boxes are evaluated",
                keypoints,
                severity="info",
            ),
            Note(
                POLYGONS_BOUNDED,
                f"polygons of the {title} are read as their bounding boxes",
                bounded,
                severity="info",
            ),
        )


def _once(sources: Sequence[SourceFile]) -> tuple[SourceFile, ...]:
    """Return each file once: a `data.yaml` may also be the list of names."""
    by_path: dict[str, SourceFile] = {}
    for source in sources:
        by_path.setdefault(source.path, source)
    return tuple(by_path.values())


def _truth_notes(
    data_set: DataSet, names: ClassNames, image: Integers, repeated: int
) -> tuple[Note, ...]:
    missing = sum(not path for path in data_set.image_files)
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
            "image files are missing: their sizes are as given, and only images with a label file "
            "are known",
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
    boxes: str = "cxcywh",
    image_size: Size | None = None,
    image_sizes: Path | None = None,
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
    boxes : {"cxcywh", "xywh", "xyxy"}
        As in :func:`read_ground_truth`.
    image_size, image_sizes : optional
        As in :func:`read_ground_truth`, for images whose size the ground truth lacks.
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
    folder = predictions_folder(path)
    if dt_class_names is None:
        names = _names_of_detections(folder, ground_truth, class_names, limits, as_is=as_is)
    else:
        names = ClassNames.load(dt_class_names, limits)
    described = [
        _read_if_valid(source.path, limits)
        for source in ground_truth.files
        if is_data_yaml(source.path)
    ]
    keypoints = _keypoints([names, ClassNames.load(class_names, limits), *described])
    known, given_task = ground_truth.classes, _Task(task, keypoints, as_is, boxes)
    reader = _Files(path, folder, names, limits, given_task, scored=True, known=known)
    rows = reader.rows
    if not names.names:
        _check_numbered(path, ground_truth, rows)
    given = GivenSizes(ground_truth.images, image_size, image_sizes, limits)
    size, missing_files = _sizes_of_rows(reader, ground_truth, given, path)
    order = _columns(reader, ground_truth, size, columns, path)
    box, score = order.split(rows)
    reader.check(box)
    pixels = reader.pixels(box, size)
    objects = Objects(
        images=tuple(folder.members),
        classes=rows.names,
        image=rows.file,
        label=rows.name,
        boxes=pixels,
        box_format="xywh",
        score=score,
        polygons=reader.polygons(pixels, size),
    )
    known_paths = {source.path for source in ground_truth.files} | {_TRUTH}
    options = (*names.source(), *given.source)
    new_sources = (source for source in options if source.path not in known_paths)
    notes = (
        *_detection_notes(folder, reader, missing_files),
        *order.note,
        *reader.notes("detections"),
    )
    return detections(objects, ground_truth, reader, (*reader.sources(), *new_sources), notes)


def _sizes_of_rows(
    reader: _Files, truth: GroundTruth, given: GivenSizes, path: str
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
    reader: _Files, truth: GroundTruth, size: Floats, columns: str | None, path: str
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


def _max_ious(reader: _Files, truth: GroundTruth, pixels: Floats) -> Floats:
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


def _detection_notes(folder: Folder, reader: _Files, missing_files: int) -> tuple[Note, ...]:
    return nonzero_notes(
        Note(
            "repeated-rows",
            "duplicate rows of their file all count; detector run twice into one folder? (save_txt "
            "appends)",
            int(np.count_nonzero(reader.repeated())),
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


def _resolver(names: ClassNames, known: frozenset[str], by_name: set[bool]) -> Callable[[str], str]:
    """Return a function from class numbers to names; known names are kept.

    `by_name` gets True for names and False for numbers.
    """

    def resolve(word: str) -> str:
        named = word in known and not word.isdigit()
        by_name.add(named)
        if named:
            return word
        if not is_whole(word):
            raise FaultError(
                f"class {quote(word)} is not a whole number >= 0", "write the class number"
            )
        return names.resolve(word) if names.names else word.lstrip("0") or "0"

    return resolve


def _lists_of(data: DataYaml | None) -> list[ClassNames]:
    return [] if data is None else [ClassNames(data.file, data.names, data.keypoints)]


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
