"""JSON Lines: COCO's keys, one image per line."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from detap.errors import InputError, Note, Problem
from detap.formats.base import Format
from detap.formats.by_name.notes import images_without_objects, nonzero_notes
from detap.formats.coco import id_mapping
from detap.formats.coco.assembly import Source, detection_table, refuse_same_file, truth_table
from detap.formats.coco.columns import DetectionColumns, TruthColumns
from detap.formats.coco.tables import goes_by_names
from detap.formats.coco.values import Record, no_common_id
from detap.formats.jsonl.lines import FLAGS, Lines, image_of
from detap.formats.reading.placeholder import empty_ground_truth
from detap.formats.text.class_names import ClassNames
from detap.io.json_text import integer
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path, SourceFile
from detap.io.stream import read_bytes
from detap.tables._loops import survey_boxes
from detap.tables.columns import indices_in, ordered
from detap.tables.detection import Detections, Floats, GroundTruth, Integers, Name, encode_boxes

_FEW = 20
"""One in so many boxes may extend beyond its image."""
_SUFFIXES = (".jsonl", ".jsonl.gz")


def read_ground_truth(
    path: Path,
    *,
    boxes: str | None = None,
    class_names: Path | None = None,
    attributes: tuple[str, ...] = (),
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read ground truth: each line is an image, with a list of objects or an object of lists.

    Boxes are xywh by default; `boxes` is required if they do not fit their images so, or fit as
    xyxy too. `class_names` are the names of class numbers from 0.
    """
    lines = Lines(path, limits, scored=False, attributes=attributes)
    if not len(lines) and not limits.empty:
        message = f"no objects in its {len(lines.images)} images"
        hint = "use the annotations that belong to these detections"
        raise InputError(Problem(lines.path, "", message, hint))
    names = ClassNames.load(class_names, limits)
    images = _sorted(lines.path, "images", lines.images)
    classes = _sorted(lines.path, "classes", lines.classes)
    sizes = lines.sizes[indices_in(images, lines.images)]
    image = indices_in(lines.images, images)[lines.image]
    corners, box_area, box_format = _boxes(lines, boxes, image, sizes)
    area = lines.area
    crowd, ignore, group_of, difficult = (lines.flags[name] for name in FLAGS)
    table = GroundTruth(
        image=image,
        label=indices_in(lines.classes, classes)[lines.label],
        corners=corners,
        box_area=box_area,
        images=images,
        image_sizes=sizes,
        classes=tuple(map(str, classes)),
        class_ids=classes,
        files=(),
        area=np.where(np.isnan(area), box_area, area),
        crowd=crowd,
        ignore=ignore,
        group_of=group_of,
        difficult=difficult,
        extra=lines.attributes.columns(),
    )
    given = tuple(_class_name(lines.path, name, names) for name in classes)
    counts = {"missing-area": int(np.count_nonzero(np.isnan(area)))}
    columns = TruthColumns(table, given, counts, len(lines))
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
    """Read detections: lines as those of ground truth, with a ``score`` for each object."""
    refuse_same_file(path, ground_truth, "expected detections")
    lines = Lines(path, limits, scored=True)
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
        names = ClassNames.load(names_file, limits)
        first = id_mapping.parse_first_id(first_category_id)
        mapping = id_mapping.CategoryMapping(lines.path, {}, names, first, as_is)
        columns, notes = id_mapping.match_by_name(columns, ground_truth, mapping)
    table = detection_table(columns, ground_truth, _source(lines, limits, as_is, box_format))
    return replace(table, notes=(*table.notes, *notes), files=(*table.files, *names.source()))


def _sorted(path: str, title: str, names: list[Name]) -> tuple[Name, ...]:
    if len({isinstance(name, str) for name in names}) > 1:
        message = f"{title} are partly numbers and partly text"
        raise InputError(Problem(path, "", message, "use one of the two"))
    return tuple(ordered(names))


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
    """Return corners, areas and the box format, which must be clear if it is not given."""
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
    """Return the ground truth's image of each box; refuse unknown images with boxes."""
    filled = np.diff(lines.end, prepend=0) > 0
    names = list(compress(lines.images, filled.tolist()))
    known = id_mapping.image_indices(truth, set(names), lines.file_names)
    numbers = np.array([known.get(name, -1) for name in lines.images], np.int32)
    image = numbers[lines.image] if len(lines) else np.zeros(0, np.int32)
    unknown = np.flatnonzero(image < 0).tolist()
    if unknown and len(unknown) == len(lines):
        message = no_common_id("image", names, truth.images)
        raise InputError(Problem(lines.path, "", message, "use results for the same images"))
    if unknown:
        listed = unknown[: limits.problems]
        problems = [
            Problem(
                lines.path,
                lines.location(row),
                f"image {lines.images[lines.image[row]]!r} is not in the ground truth",
                "use results for the same images",
            )
            for row in listed
        ]
        raise InputError(problems, len(unknown) - len(listed))
    return image


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and classes named in detections."""
    lines = Lines(path, limits, scored=True)
    for name in options.keys() - {"as_is", "boxes", "limits"}:
        del options[name]
    return empty_ground_truth(lines.images, set(lines.classes))


def _records(truth: GroundTruth) -> Iterator[Record]:
    """Yield the lines of the files, from reading them again."""
    for source in truth.files:
        if source.path.lower().endswith(_SUFFIXES):  # else a list of names
            for line in read_bytes(source.path).decode("utf-8-sig").split("\n"):
                if line.strip():
                    yield json.loads(line, parse_int=integer)


class JsonLines(Format):
    """An image per line, with its objects."""

    by_ids = True
    has_attributes = True

    read_truth_file = staticmethod(read_ground_truth)
    read_detections_file = staticmethod(read_detections)
    placeholder = staticmethod(placeholder_ground_truth)

    def attribute_values(self, ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
        """Return the value of a key of the images' lines."""
        records = _records(ground_truth)
        return {image_of(line): line[name] for line in records if line.get(name) is not None}

    def file_names(self, ground_truth: GroundTruth) -> dict[Name, str]:
        """Return the ``file_name`` of each image that has one."""
        return self.attribute_values(ground_truth, "file_name")
