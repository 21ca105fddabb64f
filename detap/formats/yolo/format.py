"""Read YOLO data sets and predictions.

A line is ``class xc yc w h``, optionally with keypoints, or a polygon ``class x y x y x y ...``,
all normalized; detections end with the confidence.

Reference: Ultralytics 8.3, ``data/utils.py`` (`verify_image_label`) and ``engine/results.py``
(`save_txt`).
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from glob import iglob
from itertools import islice
from types import MappingProxyType
from typing import Any

import numpy as np

from detap.errors import InputError, Note, UsageError
from detap.formats.base import Format
from detap.formats.by_name.notes import (
    files_skipped,
    images_without_file,
    images_without_objects,
    nonzero_notes,
)
from detap.formats.by_name.objects import detections, ground_truth
from detap.formats.by_name.problems import refuse_empty
from detap.formats.content import Content
from detap.formats.image_folders import ImageFolder
from detap.formats.image_sizes import GivenSizes, Size, refuse_unknown
from detap.formats.options import GEOMETRIES
from detap.formats.reading.image_headers import IMAGE_SUFFIXES
from detap.formats.reading.sniffing import HEAD_BYTES, head
from detap.formats.stem_matching import empty_ground_truth
from detap.formats.text.class_names import ClassNames, is_data_yaml
from detap.formats.text.folder import (
    Folder,
    detections_folder,
    files_of,
    name_of_member,
    named_as_images,
)
from detap.formats.text.lines import are_numbers
from detap.formats.text.reader import first_words
from detap.formats.yolo.dataset import (
    DataSet,
    common_folder,
    label_folder_of,
    labels_folder,
    resolve_data_yaml,
    sizes_of_images,
    without_flattened_paths,
)
from detap.formats.yolo.labels import LabelReader, box_and_score
from detap.formats.yolo.names import (
    NAME_LISTS,
    TRUTH,
    check_numbered,
    kpt_shape,
    names_of_detections,
    names_of_labels,
    read_if_valid,
)
from detap.formats.yolo.rows import (
    BOX,
    CORNERS,
    all_axis_aligned,
    class_number,
    task_of_predictions,
)
from detap.io import stream as files
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path, SourceFile
from detap.protocols.fields import default_sigmas
from detap.tables.columns import indices_in, reindexed
from detap.tables.detection import Detections, Floats, GroundTruth
from detap.tables.notes import POLYGONS_BOUNDED
from detap.text_input import is_whole, join_names

_GEOMETRY_OF_TASK = {"pose": "keypoints", "obb": "polygons"}
_FITTING_FILES, _FITTING_LINES = 16, 64


def read_ground_truth(
    path: Path,
    *,
    split: str | None = None,
    class_names: Path | None = None,
    image_size: Size | None = None,
    image_sizes: Path | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    **options: Any,
) -> GroundTruth:
    """Read the ground truth of a `data.yaml`, ``obj.data``, or a folder with a file per image.

    `options` are those of `LabelReader`; the task is by default detected from ``kpt_shape`` and
    the number of columns. Errors do not have the content of files outside the folder of the
    `data.yaml`.
    """
    path = resolve_data_yaml(os.fspath(path))
    given = GivenSizes.read(image_size, image_sizes, limits)
    data_set = DataSet(path, split, limits, given.table)
    try:
        labels = data_set.folder.given
        names = names_of_labels(data_set.data, labels, class_names, limits, as_is=as_is)
        options |= {"scored": False, "as_is": as_is}
        shape = kpt_shape([names, data_set.data])
        reader = LabelReader(path, data_set.folder, names, limits, shape, **options)
        return _truth_of(reader, data_set, names, given)
    except InputError as error:
        raise data_set.hide_outside(error, class_names) from None


def _truth_of(
    reader: LabelReader, data_set: DataSet, names: ClassNames, given: GivenSizes
) -> GroundTruth:
    """Return the labels of a data set as ground truth."""
    rows = reader.rows
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
        _, count, size = reader.keypoints.shape
        given_sigmas = names.sigmas or data_set.data.sigmas
        sigmas = given_sigmas or default_sigmas(count, visibility=size == 3)
        objects = objects._replace(fields={**objects.fields, "sigmas": sigmas})
    data_yaml = (SourceFile(reader.path, len(data_set.images)),) if data_set.data.file else ()
    sources: dict[str, SourceFile] = {}  # a data.yaml may also be the list of names
    for source in (*data_yaml, *reader.sources(), *names.source(), *given.source):
        sources.setdefault(source.path, source)
    missing_files = sum(not path for path in data_set.image_files)
    listed = not data_set.named and len(data_set.labeled) < len(data_set.images)
    known = "those with a label file" + " and those listed with a size" * listed
    repeated = "duplicate rows of their file are dropped, as in training"
    outside = f"paths of data.yaml are outside its folder: {join_names(data_set.outside)}"
    absent = f"image files are missing: sizes are as given, and images are {known}"
    unnamed = "classes have no names; numbers are used"
    notes = nonzero_notes(
        Note("repeated-rows", repeated, int(np.count_nonzero(dropped))),
        Note("images-listed-twice", "images are listed twice; each counts once", data_set.repeated),
        Note("paths-outside-data-set", outside, len(data_set.outside), severity="info"),
        files_skipped(data_set.folder.skipped, "labels"),
        images_without_objects(len(data_set.images), image),
        Note("images-absent", absent, missing_files, severity="info"),
        Note("classes-without-names", unnamed, int(not names.names), severity="info"),
        *reader.notes("ground truth"),
    )
    return ground_truth(objects, reader, tuple(sources.values()), notes)


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    class_names: Path | None = None,
    dt_class_names: Path | None = None,
    columns: str | None = None,
    image_size: Size | None = None,
    image_sizes: Path | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    **options: Any,
) -> Detections:
    """Read YOLO predictions: one file per image with detections; `options` are `LabelReader`'s."""
    path = os.fspath(path)
    folder, flattened = without_flattened_paths(
        named_as_images(_predictions_folder(path), ground_truth.images), ground_truth
    )
    if dt_class_names is None:
        names = names_of_detections(folder, ground_truth, class_names, limits, as_is=as_is)
    else:
        names = ClassNames.load(dt_class_names, limits)
    data_yamls = [source.path for source in ground_truth.files if is_data_yaml(source.path)]
    described = [read_if_valid(file, limits) for file in data_yamls]
    shape = kpt_shape([names, ClassNames.load(class_names, limits), *described])
    if not as_is:
        options["task"] = task_of_predictions(folder.path, options.get("task"), shape)
    if any(note.code == POLYGONS_BOUNDED for note in ground_truth.notes):
        options["shapes"] = "bbox"  # as those of the ground truth
    options |= {"scored": True, "as_is": as_is, "known": ground_truth.classes}
    options["keep_corners"] = ground_truth.polygons is not None
    reader = LabelReader(path, folder, names, limits, shape, **options)
    rows = reader.rows
    if not names.names:
        check_numbered(path, ground_truth, rows.names)
    known_paths = {source.path for source in ground_truth.files} | {TRUTH}
    if ground_truth.format == "yolo" and str(image_sizes) in known_paths:
        image_sizes = None  # the ground truth has the sizes of this file
    given = GivenSizes.read(image_size, image_sizes, limits)
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
    sources = (*names.source(), *given.source)
    new_sources = (source for source in sources if source.path not in known_paths)
    repeated = (
        "duplicate rows of their file all count; detector run twice into one folder? (save_txt "
        "appends)"
    )
    by_path = "files are named by the path of their image (a_1.txt for a/1.jpg)"
    notes = nonzero_notes(
        Note("repeated-rows", repeated, int(np.count_nonzero(reader.repeated()))),
        Note("paths-flattened", by_path, flattened, severity="info"),
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
    sizes = given.of(truth.images)
    if truth.image_sizes is not None:
        given.check_against(truth.image_sizes, truth.images, reader.path, "in the ground truth")
        sizes = np.where(np.isnan(truth.image_sizes), sizes, truth.image_sizes)
    image_by_file = indices_in(reader.folder.members, truth.images)
    image = image_by_file[reader.rows.file]
    known = image[image >= 0]
    refuse_unknown(sizes, known, truth.images, reader.path)
    size = np.ones((len(image), 2))  # rows of unknown images are refused later
    size[image >= 0] = sizes[known]
    return size, len(truth.images) - int(np.count_nonzero(image_by_file >= 0))


def _predictions_folder(path: str) -> Folder:
    """Return the text files of a folder of predictions, without lists of names."""
    if is_data_yaml(path):
        files.refuse(path, "is a data.yaml, expected predictions", "use their folder")
    folder = detections_folder(labels_folder(path))
    if os.path.isdir(path):
        if {*folder.members.values()} <= {*NAME_LISTS}:  # the files may be in sub-folders
            folder = files_of(folder.path, "", ".txt", nested=True)
        for name, member in list(folder.members.items()):
            if os.path.basename(member) in NAME_LISTS:
                del folder.members[name]
    return folder


class Yolo(Format):
    """Text files of boxes in fractions of the image, with a `data.yaml`."""

    geometries = GEOMETRIES
    geometry_protocols = MappingProxyType(
        {"keypoints": "ultralytics-pose", "polygons": "coco-polygon"}
    )

    read_truth_file = staticmethod(read_ground_truth)
    read_detections_file = staticmethod(read_detections)

    def placeholder(self, path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
        """Return the images and classes named in files, unchecked."""
        folder = _predictions_folder(os.fspath(path))
        names_file = options.get("dt_class_names") or options.get("class_names")
        paths = [names_file or "", *(os.path.join(folder.path, name) for name in NAME_LISTS)]
        classes = {*next(filter(None, (read_if_valid(p, limits).names for p in paths)), ())}
        if not classes:
            words = {class_number(word) for words in first_words(folder, limits) for word in words}
            classes = {word.lstrip("0") or "0" for word in words if is_whole(word)}
        return empty_ground_truth(folder.members, classes)

    def fits(self, path: str) -> bool:
        """Return True for a `data.yaml`, ``obj.data``, its folder, or a class and fractions."""
        if path.lower().endswith((".yaml", ".yml", ".data")):
            return True
        with suppress(OSError, ValueError):
            if any(os.path.isfile(os.path.join(path, name)) for name in ("data.yaml", "obj.data")):
                return True
            lines = [line for file in _text_files(path) for line in _first_lines(file)]
            return bool(lines) and 2 * sum(map(_is_row, lines)) > len(lines)
        return False

    def geometry(self, path: str, reading: Mapping[str, Any]) -> str:
        """Return "keypoints", "polygons" for oriented boxes, or "" for boxes and other polygons.

        Oriented boxes are recognized by the rows up to the first that is not upright; the reader
        checks all.
        """
        task = reading.get("task") or _task_of_rows(path, reading)
        geometry = _GEOMETRY_OF_TASK.get(task, "")
        return "" if geometry == "polygons" and reading.get("shapes") == "bbox" else geometry

    def image_files(self, ground_truth: GroundTruth) -> tuple[list[ImageFolder], Mapping[str, str]]:
        """Return the image folders of the label folders, and file names if they have several.

        Links out of the common folder of labels and images are not followed. A `data.yaml` may name
        any folder, so then images outside its parent folder are not used either.
        """
        folders: dict[str, ImageFolder] = {}
        names: dict[str, str] = {}
        data_yaml, known = "", frozenset(map(str, ground_truth.images))
        for source in ground_truth.files:
            if is_data_yaml(source.path):
                data_yaml = os.path.abspath(source.path)
            if not source.members:
                continue
            label_folders = {os.path.dirname(os.path.join(source.path, m)) for m in source.members}
            image_folders = [label_folder_of(f, "labels", "images") for f in sorted(label_folders)]
            images = common_folder(image_folders)
            top = common_folder([source.path, images])
            if data_yaml:
                top = os.path.dirname(os.path.dirname(data_yaml))
            for path, root in ((images, top), (source.path, top if data_yaml else source.path)):
                folders.setdefault(path, ImageFolder(path, os.path.realpath(root)))
            for folder in image_folders if len(image_folders) > 1 else ():
                below = os.path.relpath(folder, images)
                for file in iglob("*", root_dir=folder):
                    member = os.path.normpath(os.path.join(below, file))
                    name = name_of_member(member, known)
                    if name and file.lower().endswith(IMAGE_SUFFIXES):
                        names[name] = member
        return list(folders.values()), names

    def write(self, content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
        """Yield `data.yaml`, a list of images, labels and predictions."""
        from detap.formats.yolo import writer  # only to convert

        return writer.files(content, notes)


def _text_files(path: str) -> list[str]:
    """Return a file, or a few text files of a folder, of its `labels` or other sub-folders."""
    if os.path.isfile(path):
        return [path]
    for pattern in ("*.txt", "labels/*.txt", "*/*.txt"):
        names = iglob(pattern, root_dir=path)
        labels = (name for name in names if not name.endswith("classes.txt"))
        if first := list(islice(labels, _FITTING_FILES)):
            return [os.path.join(path, name) for name in first]
    return []


def _first_lines(path: str) -> list[list[str]]:
    """Return the columns of the first lines of a file."""
    text = head(path)
    complete = text if len(text) < HEAD_BYTES else text.rpartition(b"\n")[0]
    lines = map(bytes.split, complete.split(b"\n")[:_FITTING_LINES])
    return [[column.decode("latin-1") for column in line] for line in lines if line]


def _is_row(columns: list[str]) -> bool:
    """Return True for a class and fractions."""
    word, *numbers = columns
    if len(numbers) > len(BOX) and is_whole(numbers[-1]):  # a track id
        numbers.pop()
    if not is_whole(class_number(word)) or len(numbers) < 4 or not all(are_numbers(numbers)):
        return False
    return all(abs(float(text)) <= 2 for text in numbers) and "." in "".join(numbers)


def _task_of_rows(path: str, reading: Mapping[str, Any]) -> str:
    """Return "pose", "obb" or "" for a data set, by its ``kpt_shape`` and first rows."""
    with suppress(OSError, ValueError, InputError, UsageError):
        limits, path = reading.get("limits", DEFAULT_LIMITS), resolve_data_yaml(path)
        data_set = DataSet(path, reading.get("split") if os.path.isfile(path) else None, limits)
        folder, given = data_set.folder, reading.get("class_names")
        names = names_of_labels(data_set.data, folder.given, given, limits, as_is=True)
        if kpt_shape([names, data_set.data]):
            return "pose"
        for member in folder.members.values():
            rows = _first_lines(folder.file(member))
            if any(len(row) != 1 + CORNERS for row in rows):
                return ""
            with np.errstate(invalid="ignore"):  # the reader refuses infinite numbers
                if not all_axis_aligned(np.array([row[1:] for row in rows], np.float64)):
                    return "obb"
    return ""
