"""Read JSON Lines: COCO's keys, one image per line."""

from dataclasses import replace

import numpy as np

from detap.checks._box_stats import survey_boxes
from detap.errors import InputError, Note, Problem
from detap.formats.by_name.notes import images_without_objects, nonzero_notes
from detap.formats.coco import id_mapping
from detap.formats.coco.assembly import Source, detection_table, refuse_same_file, truth_table
from detap.formats.coco.columns import DetectionColumns, TruthColumns
from detap.formats.coco.tables import goes_by_names
from detap.formats.coco.values import no_common_id
from detap.formats.jsonl.lines import FLAGS, Lines, read_lines
from detap.formats.text.class_names import ClassNames
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.tables.columns import indices_in, ordered
from detap.tables.detection import (
    Detections,
    Floats,
    GroundTruth,
    Integers,
    Name,
    SourceFile,
    encode_boxes,
)

_FEW = 20
"""One in so many boxes may extend beyond its image."""


def read_ground_truth(
    path: Path,
    *,
    boxes: str | None = None,
    class_names: Path | None = None,
    attributes: tuple[str, ...] = (),
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read ground truth from JSON Lines.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip. Each line is an image, named by ``image_id`` or else the stem of
        ``file_name``; ``objects`` is a list of objects, or an object of lists.
    boxes : {"xywh", "xyxy"}, optional
        Format of ``bbox``; by default "xywh". Required if the boxes do not fit their images as
        "xywh", or fit both formats.
    class_names : str or path, optional
        Names for class numbers from 0.
    attributes : tuple of str
        Further keys of objects to read, as `extra` columns of numbers or text.
    as_is : bool
        As in :func:`detap.formats.coco.tables.read_ground_truth`.
    limits : Limits
        Limits on the input size.

    Raises
    ------
    InputError
        If the file is invalid; lists every problem, up to `limits.problems`.
    """
    lines = read_lines(path, limits, scored=False, attributes=attributes)
    if not len(lines) and not limits.empty:
        message = f"no objects in its {len(lines.sizes)} images"
        hint = "use the annotations that belong to these detections"
        raise InputError(Problem(lines.path, "", message, hint))
    names = ClassNames.load(class_names, limits)
    images = tuple(_sorted(lines.path, "images", lines.sizes))
    classes = tuple(_sorted(lines.path, "classes", lines.classes))
    sizes = np.array([lines.sizes[image] for image in images], np.float64).reshape(-1, 2)
    image = indices_in(lines.sizes, images)[lines.image]
    corners, box_area, box_format = _boxes(lines, boxes, image, sizes)
    area = lines.area
    crowd, ignore, group_of, difficult = (lines.flags[name] for name in FLAGS)
    columns = TruthColumns(
        image_ids=images,
        image_sizes=sizes,
        class_ids=classes,
        class_names=tuple(_class_name(lines.path, name, names) for name in classes),
        image=image,
        label=indices_in(lines.classes, classes)[lines.label],
        corners=corners,
        box_area=box_area,
        area=np.where(np.isnan(area), box_area, area),
        crowd=crowd,
        ignore=ignore,
        group_of=group_of,
        difficult=difficult,
        records=len(lines),
        zero_row=-1,
        origin=None,
        counts={"missing-area": int(np.count_nonzero(np.isnan(area)))},
        extra=lines.attributes.columns(),
    )
    truth = truth_table(columns, _source(lines, limits, as_is, box_format))
    notes = (*truth.notes, *nonzero_notes(images_without_objects(len(images), image)))
    return replace(truth, notes=notes, files=(*truth.files, *names.source()))


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    boxes: str | None = None,
    class_names: Path | None = None,
    dt_class_names: Path | None = None,
    first_category_id: int | str | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read detections from JSON Lines, with a ``score`` for each object.

    Parameters
    ----------
    path, boxes, limits
        As in :func:`read_ground_truth`, with the same errors.
    ground_truth : GroundTruth
        The ground truth, for its images and classes.
    class_names, dt_class_names, first_category_id, as_is
        As in :func:`detap.formats.coco.tables.read_detections`.
    """
    refuse_same_file(path, ground_truth, "expected detections")
    lines = read_lines(path, limits, scored=True)
    names_file = class_names if dt_class_names is None else dt_class_names
    by_name = goes_by_names(ground_truth, names_file, first_category_id) or any(
        isinstance(name, str) for name in lines.classes
    )
    image = _image_indices(lines, ground_truth, limits)
    sizes = ground_truth.image_sizes
    corners, box_area, box_format = _boxes(lines, boxes, image, sizes)
    known = () if by_name else ground_truth.class_ids
    unknown_classes = [name for name in lines.classes if name not in set(known)]
    label = indices_in(lines.classes, (*known, *unknown_classes))[lines.label]
    counts = np.bincount(label, minlength=len(known) + len(unknown_classes))[len(known) :].tolist()
    columns = DetectionColumns(
        image=image,
        label=label,
        corners=corners,
        box_area=box_area,
        score=lines.score,
        unknown=dict(zip(unknown_classes, counts, strict=True)),
        file_names={},
    )
    names = ClassNames()
    notes: tuple[Note, ...] = ()
    if by_name:
        names, first = (
            ClassNames.load(names_file, limits),
            id_mapping.parse_first_id(first_category_id),
        )
        columns, notes = id_mapping.match_by_name(
            columns, ground_truth, id_mapping.CategoryMapping(lines.path, {}, names, first, as_is)
        )
    table = detection_table(columns, ground_truth, _source(lines, limits, as_is, box_format))
    return replace(table, notes=(*table.notes, *notes), files=(*table.files, *names.source()))


def _sorted(path: str, title: str, names: object) -> list[Name]:
    distinct: set[Name] = set(names)  # type: ignore[call-overload]
    if len({isinstance(name, str) for name in distinct}) > 1:
        message = f"{title} are partly numbers and partly text"
        raise InputError(Problem(path, "", message, "use one of the two"))
    return ordered(distinct)


def _class_name(path: str, name: Name, names: ClassNames) -> str | None:
    if isinstance(name, str):
        return name
    if not names.names:
        return None
    if not 0 <= name < len(names.names):
        message = f"class {name} is not in {names.file}, which has {len(names.names)} classes"
        raise InputError(Problem(path, "", message, "check the list; classes are numbered from 0"))
    return names.names[name]


def _boxes(
    lines: Lines, boxes: str | None, image: Integers, sizes: Floats | None
) -> tuple[Floats, Floats, str]:
    """Return corners, areas and the box format.

    Raises
    ------
    InputError
        If the box format is not given and unclear.
    """
    box = lines.box
    corners, area = encode_boxes(box, boxes or "xywh")
    if boxes is None and len(box) and (reason := _why_not_xywh(box, corners, image, sizes)):
        raise InputError(
            Problem(
                lines.path,
                "",
                f"box format of bbox is unknown: {reason}",
                "pass boxes='xywh' or 'xyxy' (--boxes)",
            )
        )
    return corners, area, boxes or "xywh"


def _why_not_xywh(box: Floats, corners: Floats, image: Integers, sizes: Floats | None) -> str:
    """Return the reason why boxes may not be xywh, or ""."""
    known = None if sizes is None or bool(np.isnan(sizes).all()) else sizes
    if known is not None:
        beyond = survey_boxes(corners, image, known, 1.0)[0]
        if beyond * _FEW >= len(box):
            return f"{beyond} of {len(box)} boxes extend beyond their image as x, y, width, height"
        return ""
    if (box[:, 2:] > box[:, :2]).all():
        return "without image width and height, boxes fit both formats"
    return ""


def _source(lines: Lines, limits: Limits, as_is: bool, box_format: str) -> Source:
    file = SourceFile(lines.path, len(lines), sha256=lines.sha256)
    return Source(file, limits, as_is, lines.location, box_format)


def _image_indices(lines: Lines, truth: GroundTruth, limits: Limits) -> Integers:
    """Return the ground truth's image of each box.

    Raises
    ------
    InputError
        If the ground truth lacks an image with boxes.
    """
    counts = np.diff(lines.end, prepend=0).tolist()
    names = [name for name, count in zip(lines.sizes, counts, strict=True) if count]
    known = id_mapping.image_indices(truth, set(names), lines.file_names)
    numbers = np.array([known.get(name, -1) for name in lines.sizes], np.int32)
    image = numbers[lines.image] if len(lines) else np.zeros(0, np.int32)
    unknown = np.flatnonzero(image < 0).tolist()
    if unknown and len(unknown) == len(lines):
        named = [
            name for name, count in zip(lines.sizes, counts, strict=True) for _ in range(count)
        ]
        message = no_common_id("image", named, truth.images)
        raise InputError(Problem(lines.path, "", message, "use results for the same images"))
    if unknown:
        every = [*lines.sizes]
        listed = unknown[: limits.problems]
        problems = [
            Problem(
                lines.path,
                lines.location(row),
                f"image {every[lines.image[row]]!r} is not in the ground truth",
                "use results for the same images",
            )
            for row in listed
        ]
        raise InputError(problems, len(unknown) - len(listed))
    return image
