"""YOLO's data sets and predictions to tables.

A line is ``class xc yc w h``, also with keypoints behind, or a polygon ``class x y x y x y ...``,
in fractions of the image; behind it stands the confidence of a detection. Regular files are
scanned; what the scanner declines is read with care. Both give the same rows: tests hold them to
it.

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
from detap.core.polygons import bounds, rectangles
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
    in_pixels,
    order_of_columns,
    settle,
)
from detap.formats.yolo.dataset import (
    NAME_LISTS,
    DataSet,
    described,
    find_images,
    is_data_yaml,
    labels_folder,
)
from detap.formats.yolo.lines import BOX, COLUMNS, CORNERS, YoloForm
from detap.formats.yolo.sizes import GivenSizes, Size, refuse_unknown, sizes_of_images
from detap.formats.yolo.tasks import (
    form_of,
    has_keypoints,
    keeping,
    refuse_alike,
    refuse_no_quadrilaterals,
    upright,
)
from detap.io import stream as files
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import FaultError, check_choice
from detap.tables.columns import places, renumbered
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
"""How far the corners of oriented boxes may lie beyond the image, in its sides."""


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
    """Read the ground truth of a data set in YOLO's format.

    Parameters
    ----------
    path : str or path
        A `data.yaml`, or a folder with a file of labels for each image.
    split : {"val", "test", "train"}, optional
        Which part of a `data.yaml`; ``val`` where left out.
    class_names : str or path, optional
        What the classes are called: a name a line, or a `data.yaml`. Without it, what the
        `data.yaml` says, or a ``classes.txt``, ``obj.names`` or ``data.yaml`` in the folder of the
        labels or the two above it; else the numbers are the names.
    boxes : {"cxcywh", "xywh", "xyxy"}
        What the four numbers of a box are, in fractions of its image.
    image_size : str or (float, float), optional
        Width and height of every image, in pixels: ``"640x480"``.
    image_sizes : str or path, optional
        A table ``image,width,height``. Without either, sizes come from the images' files.
    as_is : bool
        Whether input is taken at its word that only looks wrong: boxes beyond their images, or
        that end before they begin, lists of names that differ.
    limits : Limits
        What is accepted at most.

    Returns
    -------
    GroundTruth
        Images sorted by name, which is their file's without folder and suffix; classes in the
        order of their list. A row that repeats another of its file is left out, with a warning.

    Raises
    ------
    InputError
        With every problem found, up to the limit. Nothing is quoted of files that lie outside the
        folder of the `data.yaml`.
    """
    path = described(os.fspath(path))
    data_set = find_images(path, split, limits)
    given = GivenSizes(data_set.images, image_size, image_sizes, limits)
    try:
        names = _names_of_truth(data_set, class_names, limits, as_is=as_is)
        given_task = _Task(task, _keypoints([names, *_lists_of(data_set.data)]), as_is, boxes)
        return _truth_of(path, data_set, names, given_task, given, limits=limits)
    except InputError as error:
        raise data_set.unquoted(error, class_names) from None


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
    what = f"objects in the {len(data_set.labelled)} label files of its images"
    refuse_empty(path, len(rows), limits, what, "labels")
    labels.check(rows.values)
    image = np.array(data_set.labelled, np.int32)[rows.file]
    sizes = sizes_of_images(data_set, given, image, as_is=task.as_is)
    classes = names.names or tuple(sorted(rows.names, key=lambda name: (len(name), name)))
    pixels = labels.pixels(rows.values, sizes[image])
    polygons = labels.polygons(pixels, sizes[image])
    labels.kept = kept = np.flatnonzero(~labels.repeated())
    objects = Objects(
        images=data_set.images,
        classes=classes,
        image=image[kept],
        label=renumbered(rows.name, rows.names, classes)[kept],
        boxes=pixels[kept],
        box_format="xywh",
        sizes=sizes,
        polygons=None if polygons is None else polygons[kept],
    )
    own = (SourceFile(path, len(data_set.images)),) if data_set.data else ()
    sources = _once((*own, *labels.sources(), *names.source(), *given.source))
    notes = _truth_notes(data_set, names, image, len(rows) - len(kept))
    notes = (*notes, *labels.notes("ground truth"))
    return ground_truth(objects, labels, sources, notes)


@dataclass(frozen=True, slots=True)
class _Task:
    """What is known of the rows before they are read."""

    name: str | None
    keypoints: tuple[int, int] | None
    as_is: bool
    boxes: str


class _Files(FolderReader):
    """Files of lines, and their rows: box or bounds, and a score.

    Attributes
    ----------
    task : _Task
    corners : (N, 8) float64 or None
        In fractions, where all polygons are quadrilaterals that are not upright boxes.
    by_name : bool
        Whether all rows give their class by name.
    kept : (n,) array of int or None
        The rows that tables have, where that is not all.
    """

    form: YoloForm
    kept: NDArray[np.intp] | None = None

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
        kinds: set[bool] = set()
        form = form_of(
            task.name,
            task.keypoints,
            scored=scored,
            resolve=_resolver(names, frozenset(known), kinds),
            path=folder.given,
            box_format=task.boxes,
        )
        rows = self.read(form)
        self.by_name = kinds == {True}
        if not form.counts and form.polygons == {CORNERS}:
            rows = self.read(keeping(form, CORNERS, len(BOX), CORNERS))
        elif form.polygons and rows.flag.all() and not (task.as_is or task.name):
            refuse_alike(form, self.location(0), lambda form: self.read(form).values)
        if self.form.kept == len(BOX):
            return
        corners, score = np.split(rows.values, (CORNERS,), axis=1)
        box = np.where(rows.flag[:, None], bounds(corners), corners[:, : len(BOX)])
        self.rows = replace(rows, values=np.hstack([box, score]))
        self.corners = None if upright(corners[rows.flag]) else corners

    def read(self, form: LineForm) -> Rows:
        """Read the rows; raise InputError with every line that cannot be read."""
        rows = super().read(form)
        self.problems.raise_any()
        return rows

    def location(self, row: int) -> tuple[str, str]:
        """Return the file of a row of tables, and its line."""
        return super().location(row if self.kept is None else int(self.kept[row]))

    def check(self, box: Floats) -> None:
        """Raise InputError where the boxes (N, 4) of the rows are no fractions."""
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
        found = np.where(
            polygon[:, None],
            self.corners * np.tile(size, (1, CORNERS // 2)),
            rectangles(encode_boxes(pixels, "xywh")[0]),
        )
        if self.task.name is None and not self.as_is:
            at = np.flatnonzero(polygon)
            refuse_no_quadrilaterals(
                self.corners[at],
                found[at],
                self.form.scored,
                lambda row: self.location(int(at[row])),
            )
        return found

    def repeated(self) -> Flags:
        """Return which rows are identical to an earlier one of their file."""
        rows = self.rows
        values = rows.values if self.corners is None else np.hstack([rows.values, self.corners])
        return repeats(2 * pair_key(rows.file, rows.name) + rows.flag, values)

    def notes(self, title: str) -> tuple[Note, ...]:
        """Say what of the rows is left out."""
        keypoints = len(self.rows) if has_keypoints(self.form) else 0
        bounded = 0 if self.form.counts else int(np.count_nonzero(self.rows.flag))
        return nonzero_notes(
            Note(
                "keypoints-left-out",
                f"rows of the {title} have keypoints, which are left out: their boxes are compared",
                keypoints,
                severity="info",
            ),
            Note(
                POLYGONS_BOUNDED,
                f"polygons of the {title} count as the boxes around them",
                bounded,
                severity="info",
            ),
        )


def _once(sources: Sequence[SourceFile]) -> tuple[SourceFile, ...]:
    """Return each file once: a `data.yaml` may be the list of names, too."""
    found: dict[str, SourceFile] = {}
    for source in sources:
        found.setdefault(source.path, source)
    return tuple(found.values())


def _truth_notes(
    data_set: DataSet, names: ClassNames, image: Integers, repeated: int
) -> tuple[Note, ...]:
    absent = sum(not path for path in data_set.image_files)
    listed = "images are listed twice; each counts once"
    return nonzero_notes(
        Note(
            "repeated-rows",
            "rows are identical to an earlier one of their file; they are left out, as trainers do",
            repeated,
        ),
        Note("images-listed-twice", listed, data_set.repeated),
        Note(
            "paths-outside-data-set",
            f"paths of data.yaml lie outside its folder: {join_names(data_set.outside)}",
            len(data_set.outside),
            severity="info",
        ),
        files_skipped(data_set.skipped, "labels"),
        images_without_objects(len(data_set.images), image),
        Note(
            "images-absent",
            "images are not where their labels say: their sizes are as given, and without label "
            "file none is known of",
            absent,
            severity="info",
        ),
        Note(
            "classes-without-names",
            "classes are called by their numbers, as no list names them",
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
    """Read predictions in YOLO's format, a file for each image that has any.

    Parameters
    ----------
    path : str or path
        A folder of such files, or the one that holds their folder ``labels``.
    ground_truth : GroundTruth
        What they are about: its images, and, where they are known, their sizes.
    class_names : str or path, optional
        What the classes are called, as :func:`read_ground_truth` has it. Without it they are
        numbered as the ground truth's.
    dt_class_names : str or path, optional
        The same of the predictions alone, where another list numbers them.
    columns : {"conf-last", "conf-first"}, optional
        Whether a line is ``class xc yc w h conf`` or ``class conf xc yc w h``; by default the
        first, unless its boxes do not fit their images and those of the second do.
    task : {"detect", "segment", "pose", "obb"}, optional
        As :func:`read_ground_truth` has it; ``kpt_shape`` is that of the ground truth or of
        `class_names`.
    boxes : {"cxcywh", "xywh", "xyxy"}
        As :func:`read_ground_truth` has it.
    image_size, image_sizes : optional
        As :func:`read_ground_truth` has them; for images whose size the ground truth does not have.
    as_is, limits
        As :func:`read_ground_truth` has them.

    Returns
    -------
    Detections
        Numbered as `ground_truth`; classes that it lacks are behind its own.

    Raises
    ------
    InputError
        With every problem found, up to the limit.
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
        _found(source.path, limits) for source in ground_truth.files if is_data_yaml(source.path)
    ]
    keypoints = _keypoints([names, ClassNames.load(class_names, limits), *described])
    known, given_task = ground_truth.classes, _Task(task, keypoints, as_is, boxes)
    found = _Files(path, folder, names, limits, given_task, scored=True, known=known)
    rows = found.rows
    if not names.names:
        _check_numbered(path, ground_truth, rows)
    given = GivenSizes(ground_truth.images, image_size, image_sizes, limits)
    size, without = _sizes_of_rows(found, ground_truth, given, path)
    order = _columns(found, ground_truth, size, columns, path)
    box, score = order.split(rows)
    found.check(box)
    pixels = found.pixels(box, size)
    objects = Objects(
        images=tuple(folder.members),
        classes=rows.names,
        image=rows.file,
        label=rows.name,
        boxes=pixels,
        box_format="xywh",
        score=score,
        polygons=found.polygons(pixels, size),
    )
    theirs = {source.path for source in ground_truth.files} | {_TRUTH}
    own = (source for source in (*names.source(), *given.source) if source.path not in theirs)
    notes = (*_detection_notes(folder, found, without), *order.note, *found.notes("detections"))
    return detections(objects, ground_truth, found, (*found.sources(), *own), notes)


def _sizes_of_rows(
    found: _Files, truth: GroundTruth, given: GivenSizes, path: str
) -> tuple[Floats, int]:
    """Return the size (N, 2) of each row's image, and how many images have no file."""
    sizes = given.sizes
    if truth.image_sizes is not None:
        given.check_against(truth.image_sizes, truth.images, path, "in the ground truth")
        sizes = np.where(np.isnan(truth.image_sizes), sizes, truth.image_sizes)
    of_file = places(found.folder.members, truth.images)
    image = of_file[found.rows.file]
    known = image[image >= 0]
    refuse_unknown(np.unique(known[np.isnan(sizes[known, 0])]), truth.images, path)
    size = np.ones((len(image), 2))  # rows of other images are refused afterwards
    size[image >= 0] = sizes[known]
    return size, len(truth.images) - int(np.count_nonzero(of_file >= 0))


def _columns(
    found: _Files, truth: GroundTruth, size: Floats, columns: str | None, path: str
) -> Columns:
    """Return where the confidence of predictions stands: as given, or as the rows tell."""
    rows, form = found.rows, found.form
    if has_keypoints(form):
        if columns == "conf-first":
            raise UsageError("--columns conf-first is for boxes; rows with keypoints end with it")
        return Columns("conf-last")
    if columns is not None:
        return Columns(columns)
    order = order_of_columns(rows, named=found.by_name, box_format=form.box_format)
    if not order.doubtful:
        return order
    last, first = (
        _greatest_overlaps(found, truth, in_pixels(box, rows.flag, size, form.box_format))
        for box in (rows.values[:, :4], rows.values[:, 1:])
    )
    return settle(order, last, first, path)


def _greatest_overlaps(found: _Files, truth: GroundTruth, pixels: Floats) -> Floats:
    """Return the greatest IoU of each of a few boxes with ground truths of its image and class."""
    rows = found.rows
    image = places(tuple(found.folder.members), truth.images)[rows.file]
    label = places(rows.names, truth.classes)[rows.name]
    own, other = np.nonzero((image[:, None] == truth.image) & (label[:, None] == truth.label))
    corners, areas = encode_boxes(pixels, "xywh")
    greatest = np.zeros(len(rows))
    overlap = paired_overlaps(
        corners[own],
        truth.corners[other],
        detection_areas=areas[own],
        truth_areas=truth.box_area[other],
    )
    np.maximum.at(greatest, own, overlap)
    return greatest


def _detection_notes(folder: Folder, found: _Files, without: int) -> tuple[Note, ...]:
    return nonzero_notes(
        Note(
            "repeated-rows",
            "rows are identical to an earlier one of their file, and all count: was the detector "
            "run twice into one folder? (save_txt appends to what is there)",
            int(np.count_nonzero(found.repeated())),
        ),
        files_skipped(folder.skipped, "detections"),
        images_without_file(without),
    )


def predictions_folder(path: str) -> Folder:
    """Return the text files of a folder of predictions, without lists of names among them."""
    if is_data_yaml(path):
        files.refuse(path, "is a data.yaml, where predictions are due", "give their folder")
    folder = detections_folder(labels_folder(path))
    if os.path.isdir(path):
        for name in NAME_LISTS:
            if name in folder.members.values():
                del folder.members[os.path.splitext(name)[0]]
    return folder


# --- what classes are called


def _resolver(names: ClassNames, known: frozenset[str], by_name: set[bool]) -> Callable[[str], str]:
    """Return what turns the number of a class into its name; words that are known stay.

    `by_name` gets whether a class was given by its name, or by its number.
    """

    def resolve(word: str) -> str:
        named = word in known and not word.isdigit()
        by_name.add(named)
        if named:
            return word
        if not is_whole(word):
            raise FaultError(
                f"class {quote(word)} is no whole number from 0", "write the number of the class"
            )
        return names.resolve(word) if names.names else word.lstrip("0") or "0"

    return resolve


def _lists_of(data: DataYaml | None) -> list[ClassNames]:
    return [] if data is None else [ClassNames(data.file, data.names, data.keypoints)]


def _keypoints(lists: Sequence[ClassNames]) -> tuple[int, int] | None:
    """Return the ``kpt_shape`` that files give; refuse two that differ."""
    given = {names.keypoints: names.file for names in lists if names.keypoints is not None}
    if len(given) > 1:
        (one, first), (other, second) = sorted(given.items())[:2]
        message = f"kpt_shape is [{other[0]}, {other[1]}], and [{one[0]}, {one[1]}] in {first}"
        raise InputError(Problem(second, "", message, "correct one of them"))
    return next(iter(given), None)


def _names_of_truth(
    data_set: DataSet, given: Path | None, limits: Limits, *, as_is: bool
) -> ClassNames:
    """Return the list that names the classes: all that there are must be the same."""
    lists = [ClassNames.load(given, limits)]
    if data_set.data is not None:
        lists += _lists_of(data_set.data)
    above = data_set.folder.given
    for _ in range(3):
        lists += [_found(os.path.join(above, name), limits) for name in NAME_LISTS]
        above = os.path.normpath(os.path.join(above, os.pardir))
    return _the_same(lists, as_is=as_is)


def _found(path: str, limits: Limits) -> ClassNames:
    """Return the names that a file lists that happens to be there; none where it does not."""
    if os.path.isfile(path):
        problems = Problems(1)
        with suppress(InputError):
            names = ClassNames.read(path, problems, limits)
            return ClassNames() if problems.count else names
    return ClassNames()


def _the_same(lists: Sequence[ClassNames], *, as_is: bool = False) -> ClassNames:
    there = [names for names in lists if names.names]
    if not as_is:
        for other in there[1:]:
            there[0].check_same(other)
    return there[0] if there else ClassNames()


def _names_of_detections(
    folder: Folder, truth: GroundTruth, given: Path | None, limits: Limits, *, as_is: bool
) -> ClassNames:
    """Return the list that numbers the classes of predictions; none where none is known.

    That beside them must be the ground truth's, or the one that is given.
    """
    lists = [ClassNames.load(given, limits)]
    paths = [source.path for source in truth.files]
    beside = [p for p in paths if is_data_yaml(p) or os.path.basename(p) in NAME_LISTS]
    _the_same([_found(file, limits) for file in beside])  # of several data sets
    if given is None and truth.format == "yolo" and not _are_numbers(truth.classes):
        lists.append(ClassNames(next(iter(beside), _TRUTH), truth.classes))
    lists += [_found(os.path.join(folder.path, name), limits) for name in NAME_LISTS]
    return _the_same(lists, as_is=as_is)


def _are_numbers(names: Sequence[str]) -> bool:
    return all(map(is_whole, names))


def _check_numbered(path: str, truth: GroundTruth, rows: Rows) -> None:
    """Refuse numbers where the ground truth has names."""
    if any(map(str.isdigit, rows.names)) and not _are_numbers(truth.classes):
        raise InputError(
            Problem(
                path,
                "",
                "numbers its classes, which the ground truth calls by names, such as "
                f"{quote(truth.classes[0])}",
                "give the list that the predictions are numbered by: data.yaml, obj.names or "
                "classes.txt (--class-names FILE)",
            )
        )
