"""What every format ends in that calls images and classes by name: rows, and tables of them."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from detap.errors import InputError, Note, Problem
from detap.formats.by_name.notes import class_notes, detection_notes, ground_truth_notes, told
from detap.formats.by_name.problems import Problems, RowReader, negative_sides
from detap.tables.columns import places
from detap.tables.detection import (
    Detections,
    Flags,
    Floats,
    GroundTruth,
    Integers,
    Name,
    SourceFile,
    encode_boxes,
)
from detap.tables.notes import AS_IS, INSIST, backward
from detap.text_input import is_whole, join_names, quote

_FLAGS = ("crowd", "difficult", "ignore", "group_of")


class Objects(NamedTuple):
    """Boxes as files have them: N rows, in the order of the input.

    Attributes
    ----------
    images : tuple of str (or of int, where they are those of a ground truth)
        All I of them, those without any row too, in the order wanted.
    classes : tuple of str
        All K of them, in the order wanted.
    image, label : (N,) int32
        Index into `images` and `classes`.
    boxes : (N, 4) float64
        In pixels.
    encoding : {"xyxy", "xywh"}
        What the four numbers are.
    score : (N,) float64 or None
        Of detections.
    flags : mapping of str to (N,) bool
        Those of ``crowd``, ``difficult``, ``ignore`` and ``group_of`` that the format has.
    sizes : (I, 2) float64 or None
        Width and height of each image in pixels, NaN where unknown.
    box_area : (N,) float64 or None
        Width times height in the file's own encoding, where that is another than `encoding`.
    polygons : (N, 8) float64 or None
        Four corners of each row, around which the box is, and of which the area is.
    extra : mapping of str to (N,) float64
        Further columns of ground truth, as the table has them.
    """

    images: tuple[Name, ...]
    classes: tuple[str, ...]
    image: Integers
    label: Integers
    boxes: Floats
    encoding: str = "xyxy"
    score: Floats | None = None
    flags: Mapping[str, Flags] = MappingProxyType({})
    sizes: Floats | None = None
    box_area: Floats | None = None
    polygons: Floats | None = None
    extra: Mapping[str, Floats] = MappingProxyType({})

    def tabled(self) -> dict[str, Any]:
        """Return the columns that both tables have: corners, areas, and the two numbers."""
        corners, areas = encode_boxes(self.boxes, self.encoding)
        return {
            "image": self.image,
            "label": self.label,
            "corners": corners,
            "box_area": areas if self.box_area is None else self.box_area,
            "polygons": self.polygons,
        }


def numbered(
    words: Sequence[str], order: Sequence[str] | None = None
) -> tuple[tuple[str, ...], Integers]:
    """Return the names that words are, sorted or in another order, and the number of each word.

    Parameters
    ----------
    words : sequence of str
        N of them.
    order : sequence of str, optional
        All names there may be; those of `words`, sorted, where left out.

    Returns
    -------
    names : tuple of str
    number : (N,) int32
    """
    names = tuple(sorted(set(words)) if order is None else order)
    return names, places(words, names)


def ground_truth(
    objects: Objects,
    reader: RowReader,
    files: tuple[SourceFile, ...],
    notes: tuple[Note, ...] = (),
) -> GroundTruth:
    """Return the table of what was read, with all that is to be said of it.

    Parameters
    ----------
    objects : Objects
    reader : RowReader
        Says where they reader.
    files : tuple of SourceFile
        What was read.
    notes : tuple of Note
        What the reader has noticed.

    Raises
    ------
    InputError
        Where too many boxes end before they begin.
    """
    columns = objects.tabled()
    if objects.polygons is None:
        area = columns["box_area"].copy()
    else:
        from detap.core.polygons import polygon_areas  # seldom needed

        area = polygon_areas(objects.polygons)
    at = backward(columns["corners"], columns["box_area"])
    negative = negative_sides("ground-truth", reader, objects.boxes, objects.encoding, at)
    none = np.zeros(len(objects.image), np.bool_)
    flags: dict[str, Any] = {name: objects.flags.get(name, none) for name in _FLAGS}
    return GroundTruth(
        **columns,
        **flags,
        images=objects.images,
        classes=objects.classes,
        class_ids=objects.classes,
        area=area,
        image_sizes=objects.sizes,
        extra=objects.extra,
        files=files,
        notes=(
            *((AS_IS,) if reader.as_is else ()),
            *notes,
            *class_notes(objects.classes),
            *negative,
            *ground_truth_notes(
                objects.image, objects.label, columns["corners"], objects.sizes, objects.encoding
            ),
        ),
    )


def detections(
    objects: Objects,
    truth: GroundTruth,
    reader: RowReader,
    files: tuple[SourceFile, ...],
    notes: tuple[Note, ...] = (),
) -> Detections:
    """Return the table of what was read, numbered as its ground truth, with all that is to be said.

    Classes that the ground truth lacks stand behind its own, sorted by name.

    Parameters
    ----------
    objects, reader, files, notes
        As :func:`ground_truth` has them.
    truth : GroundTruth

    Raises
    ------
    InputError
        Where detections are on other images, or all of other classes, or too many boxes end before
        they begin.
    """
    same_images = objects.images is truth.images
    image = objects.image if same_images else _image(objects, truth, reader)
    strangers = sorted(set(objects.classes) - set(truth.classes))
    classes = truth.classes + tuple(strangers)
    label = places(objects.classes, classes)[objects.label]
    stray = int(np.count_nonzero(label >= len(truth.classes)))
    if len(label) and stray == len(label) and not (reader.as_is or reader.limits.part):
        _refuse_strangers(reader.path, truth, strangers)
    columns = objects.tabled() | {"image": image, "label": label}
    at = backward(columns["corners"], columns["box_area"])
    negative = negative_sides("detections", reader, objects.boxes, objects.encoding, at)
    score = np.zeros(0) if objects.score is None else objects.score
    unknown = f"detections are of classes that the ground truth lacks: {join_names(strangers)}"
    return Detections(
        **columns,
        images=truth.images,
        classes=classes,
        class_ids=truth.class_ids + tuple(strangers),
        score=score,
        files=files,
        notes=(
            *((AS_IS,) if reader.as_is else ()),
            *notes,
            *told(Note("unknown-classes", unknown, stray)),
            *(class_notes(classes) if strangers else ()),
            *negative,
            *detection_notes(truth, image, columns["corners"], score, objects.encoding),
        ),
    )


def _image(objects: Objects, truth: GroundTruth, reader: RowReader) -> Integers:
    """Return the image of each row as the ground truth numbers it."""
    place = places(objects.images, truth.images)
    image = place[objects.image] if len(objects.image) else objects.image
    rows = np.flatnonzero(image < 0)
    if len(rows):
        problems = Problems(reader.limits.problems)
        if len(rows) == len(image):
            problems.lead = nothing_in_common(reader.path, objects.images, truth)
        for row in rows.tolist():
            name = objects.images[objects.image[row]]
            problems.add(
                *reader.location(row),
                f"image {quote(str(name))} is not in the ground truth",
                "score the detections of the images that the ground truth has",
            )
        problems.raise_any()
    return image


def nothing_in_common(path: str, images: Collection[Name], truth: GroundTruth) -> Problem:
    """Return the problem of detections on other images than those of the ground truth."""
    theirs, ours = join_names(map(str, images)), join_names(map(str, truth.images))
    return Problem(
        path,
        "",
        f"has no image in common with the ground truth: its images are {theirs}, the ground "
        f"truth's {ours}",
        "check that both are of the same data",
    )


def _refuse_strangers(path: str, truth: GroundTruth, strangers: Sequence[str]) -> None:
    are_numbers = all(map(is_whole, strangers))
    hint = (
        "give the file that names the classes, one a line (dt_class_names, --dt-class-names)"
        if are_numbers
        else "check that both are of the same data"
    )
    raise InputError(
        Problem(
            path,
            "",
            "has no detection of a class of the ground truth: its classes are "
            f"{join_names(strangers)}, the ground truth's {join_names(truth.classes)}",
            f"{hint}; or, if all are of other classes indeed, give {INSIST}",
        )
    )
