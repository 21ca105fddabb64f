"""Columns of the ragged lists of a batch, which have one entry per image."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core.polygons import box_polygons
from detap.errors import UsageError
from detap.protocols import PRESETS, Protocol
from detap.tables.columns import Columns, Name, Names, as_array
from detap.tables.detection import Flags, Floats, Integers, encode_boxes
from detap.tables.masks import UNKNOWN, Masks, refuse_sizes, sizes_by_image
from detap.tables.shapes import KINDS, Column, areas_of, boxes_of, refuse_other_shapes
from detap.text_input import suggest

BOX_FORMATS = ("xyxy", "xywh", "cxcywh")
FLAGS = ("crowd", "difficult", "ignore", "group_of")
_FRACTION = 2.0
"""Maximum coordinate of a normalized box; boxes may extend over the border."""

Ragged = Sequence[Any]
"""An array, tensor or list of values for each image of the batch."""


class Rows(NamedTuple):
    """The rows of a batch in one table, sorted by image.

    Attributes
    ----------
    counts : (B,) int
        The number of rows per image.
    columns : dict of str to (n, ...) array or Masks
        The columns by name, without the labels.
    labels : Names
        The class names or ids of the rows.
    image_sizes : (B, 2) float64 or None
        Width and height of each image of a batch with ground truths, if given.
    """

    counts: NDArray[np.intp]
    columns: dict[str, Column]
    labels: Names
    image_sizes: Floats | None = None

    def mask_sizes(self) -> tuple[Integers, Flags]:
        """Return the mask size of each image, (B, 2), and True for masks of another size, (n,)."""
        image = np.repeat(np.arange(len(self.counts)), self.counts)
        return sizes_by_image(image, self.columns["masks"].sizes, len(self.counts))


class Batch(Columns):
    """Reader of the ragged columns of one table.

    Parameters
    ----------
    table : str
        The name used in error messages.
    images : sequence of int or str
        The names of the B images.
    """

    names_column = "image_ids"

    def __init__(self, table: str, images: Sequence[Name]) -> None:
        super().__init__(table)
        self.images = images
        self.counts = np.zeros(len(images), np.intp)
        self._first = ""

    def location(self, row: int) -> str:
        """Return the image of a row, and its index within the image."""
        ends = np.cumsum(self.counts)
        index = int(np.searchsorted(ends, row, side="right"))
        return f"image {self.images[index]!r}, row {row - int(ends[index] - self.counts[index])}"

    def boxes(self, parts: Ragged, box_format: str, sizes: object) -> Floats:
        """Return boxes in pixels, (n, 4) float64: as ``xyxy`` if given so, else as ``xywh``."""
        arrays = [self._taken("boxes", as_array(part)) for part in self._entries("boxes", parts)]
        self._count("boxes", arrays)
        for index, array in enumerate(arrays):
            if len(array) and array.shape[1:] != (4,):
                self._refuse_shape("boxes", index, array, "(n, 4)")
        column = _joined(arrays, (0, 4))
        boxes = self.numbers("boxes", column, (len(column), 4))
        self._check_finite("boxes", boxes)
        if sizes is not None:
            boxes *= self._scale(boxes, sizes)
        if box_format == "cxcywh":
            boxes[:, :2] -= boxes[:, 2:] / 2
        return boxes

    def shapes(self, name: str, parts: Ragged, keypoint_count: int | None) -> Column:
        """Return the masks or keypoints of the rows."""
        kind, entries = KINDS[name], enumerate(self._entries(name, parts))
        columns = [
            kind.read(_ImageColumns(self, index), part, keypoint_count) for index, part in entries
        ]
        self._count(name, columns)
        return joined([kind.read(self, [], keypoint_count), *columns])

    def values(self, name: str, parts: Ragged) -> Floats:
        """Return a column of finite numbers, (n,) float64."""
        column = self._column(name, parts)
        values = self.numbers(name, column, (len(column),))
        self._check_finite(name, values)
        return values

    def mask(self, name: str, parts: Ragged) -> Flags:
        """Return a column of flags, (n,) bool."""
        column = self._column(name, parts)
        return self.flags(name, column, len(column))

    def labels(self, parts: Ragged) -> Names:
        """Return the class names or ids of the rows."""
        return self.index_names("labels", self._column("labels", parts))

    def _check_finite(self, name: str, values: Floats) -> None:
        finite = np.isfinite(values)
        if not finite.all():
            invalid = ~finite if values.ndim == 1 else np.asarray(~finite.all(axis=1))
            self.refuse(name, values, invalid, "a finite number")

    def _column(self, name: str, parts: Ragged) -> NDArray[Any]:
        """Return a column with one value per row, (n,)."""
        arrays = [self._taken(name, as_array(part)) for part in self._entries(name, parts)]
        self._count(name, arrays)
        for index, array in enumerate(arrays):
            if len(array) and array.ndim != 1:
                self._refuse_shape(name, index, array, "(n,)")
        return _joined(arrays, (0,))

    def _count(self, name: str, columns: Sequence[Sized]) -> None:
        """Set the number of rows per image from the first column; check the others."""
        counts = np.array([len(column) for column in columns], np.intp)
        if not self._first:
            self.counts, self._first = counts, name
        for index in np.flatnonzero(counts != self.counts)[:1].tolist():
            singular = {"boxes": "box"}.get(self._first) or KINDS[self._first].one
            message = f"{self.counts[index]} {self._first} and {counts[index]} {name}"
            self.fail(message, f"give one for each {singular}", f"image {self.images[index]!r}")

    def _entries(self, name: str, parts: object) -> Iterable[Any]:
        """Return the entries of a ragged list, one per image."""
        if not isinstance(parts, Sized):
            self.fail(f"{name}: expected a list with one entry per image, got {_type_of(parts)}")
        if len(parts) != len(self.images):
            self.fail(
                f"{name} has {len(parts)} entries for {len(self.images)} images",
                "give one entry per image, an empty one for an image without rows",
            )
        return parts  # type: ignore[return-value]  # Sized, as checked above

    def _taken(self, name: str, values: Any) -> NDArray[Any]:
        # Arrays are used as they are; masked arrays, lists and others are checked.
        if type(values) is np.ndarray and values.ndim:
            return values
        return super()._taken(name, values)

    def _refuse_shape(self, name: str, index: int, array: NDArray[Any], expected: str) -> None:
        location = f"image {self.images[index]!r}"
        self.fail(f"{name} has shape {array.shape}", f"expected {expected}", location)

    def image_sizes(self, name: str, sizes: object) -> Floats:
        """Return the sizes of the images of the batch, (B, 2)."""
        image_sizes: Floats = self.numbers(name, as_array(sizes), (len(self.images), 2))
        invalid = ~(np.isfinite(image_sizes) & (image_sizes > 0)).all(axis=1)
        if invalid.any():
            index = int(np.argmax(invalid))
            location = f"image {self.images[index]!r}"
            self.fail(
                f"{name} is {image_sizes[index].tolist()}",
                "give width and height in pixels",
                location,
            )
        return image_sizes

    def _scale(self, boxes: Floats, sizes: object) -> Floats:
        """Return the factors of normalized boxes, (n, 4)."""
        image_sizes = self.image_sizes("sizes", sizes)
        too_large = np.asarray((np.abs(boxes) > _FRACTION).any(axis=1))
        if 2 * np.count_nonzero(too_large) > len(boxes):
            expected = "fractions of the image size, as sizes is given; omit sizes for pixels"
            self.refuse("boxes", boxes, too_large, expected)
        scale: Floats = np.repeat(np.tile(image_sizes, 2), self.counts, axis=0)
        return scale


class _ImageColumns(Columns):
    """Reader of the rows of one image, which errors name."""

    def __init__(self, batch: Batch, index: int) -> None:
        super().__init__(batch.table)
        self.whole = f"image {batch.images[index]!r}"

    def location(self, row: int) -> str:
        """Return the image and the index of the row."""
        return f"{self.whole}, row {row}"


class BatchFormat(NamedTuple):
    """Box format and protocol of the batches.

    Attributes
    ----------
    box_format : {"xyxy", "xywh", "cxcywh"}
        The box format.
    protocol : Protocol
        The protocol, which decides the shapes of the rows.
    """

    box_format: str
    protocol: Protocol

    @property
    def shapes(self) -> tuple[str, ...]:
        """The shapes that the protocol compares; boxes may stand for polygons."""
        return ("polygons",) if self.protocol.iou_type == "polygon" else (*self.protocol.reading,)

    def select_shapes(self, given: Mapping[str, Any], template: str) -> dict[str, Ragged]:
        """Return the shapes that the protocol compares."""
        for name in KINDS:
            compared, is_given = name in self.shapes, given.get(name) is not None
            if compared and not is_given and name != "polygons":
                hint = f"give {template.format(name)}, one entry per image"
                raise UsageError(f"protocol {self.protocol.name} compares {name}; {hint}")
            if is_given and not compared:
                presets = (
                    preset.name
                    for preset in PRESETS.values()
                    if name in self._replace(protocol=preset).shapes
                )
                raise UsageError(
                    f"protocol {self.protocol.name} does not compare {name}; omit "
                    f"{template.format(name)}, or choose a protocol that does, such as "
                    f"{next(presets)}"
                )
        return {name: given[name] for name in self.shapes if given.get(name) is not None}

    def read_shapes(
        self, batch: Batch, boxes: Ragged | None, shapes: Mapping[str, Ragged], sizes: object
    ) -> dict[str, Column]:
        """Return the boxes and shapes of a batch by name.

        Boxes that are not given are the bounding boxes of the shapes.
        """
        if boxes is None and not shapes:
            batch.fail("boxes: expected a list with one entry per image, got None")
        unscaled = next((name for name in ("keypoints", "polygons") if name in shapes), "")
        if sizes is not None and unscaled:
            message = f"sizes does not apply to {unscaled}; give boxes and {unscaled} in pixels"
            raise UsageError(message)
        refuse_other_shapes(batch, {"boxes": boxes, **shapes})
        columns = {} if boxes is None else {"boxes": batch.boxes(boxes, self.box_format, sizes)}
        keypoint_count = len(self.protocol.sigmas) or None
        columns |= {
            name: batch.shapes(name, parts, keypoint_count) for name, parts in shapes.items()
        }
        if boxes is None:
            columns["boxes"] = boxes_of(batch, {name: columns[name] for name in shapes})
            if self.box_format == "xyxy":
                columns["boxes"][:, 2:] += columns["boxes"][:, :2]
        elif "polygons" in self.shapes:
            box_format = "xyxy" if self.box_format == "xyxy" else "xywh"
            columns["polygons"] = box_polygons(encode_boxes(columns["boxes"], box_format)[0])
        return columns


def joined(columns: Sequence[Column]) -> Column:
    """Concatenate columns of arrays or masks."""
    first = columns[0]
    return Masks.joined(columns) if isinstance(first, Masks) else np.concatenate(columns)


def detection_rows(
    images: Sequence[Name],
    boxes: Ragged | None,
    scores: Ragged,
    labels: Ragged,
    *,
    shapes: Mapping[str, Ragged],
    batch_format: BatchFormat,
    sizes: object,
) -> Rows:
    """Return the detections of a batch as rows.

    `shapes` comes from :meth:`BatchFormat.select_shapes`, and `area` is a column only with shapes:
    NaN stands for the area of the box.
    """
    batch = Batch("detections", images)
    columns = batch_format.read_shapes(batch, boxes, shapes, sizes)
    columns["score"] = batch.values("scores", scores)
    if batch_format.shapes:
        shape_areas = areas_of({name: columns[name] for name in shapes}) if boxes is None else None
        columns["area"] = (
            np.full(len(columns["boxes"]), np.nan) if shape_areas is None else shape_areas
        )
    return Rows(batch.counts, columns, batch.labels(labels))


def truth_rows(
    images: Sequence[Name],
    ground_truth: Mapping[str, Any],
    *,
    batch_format: BatchFormat,
    sizes: object,
) -> Rows:
    """Return the ground truths of a batch as rows.

    A NaN in the column `area` stands for the area of the box.
    """
    protocol = batch_format.protocol
    attributes = protocol.attributes
    shape_names = batch_format.shapes
    accepted = ("boxes", "labels", "area", *FLAGS, "image_sizes", *attributes, *shape_names)
    for name in ground_truth:
        if name not in (*accepted, *KINDS):
            hint = suggest(str(name), accepted) or f"choose from {', '.join(accepted)}"
            raise UsageError(f"ground_truth has an unknown key {name!r}; {hint}")
    shapes = batch_format.select_shapes(ground_truth, "ground_truth[{!r}]")
    for name in ("labels",) if {"masks", "polygons"} & {*shapes} else ("boxes", "labels"):
        if name not in ground_truth:
            raise UsageError(f"ground_truth has no {name!r}; give a list of arrays, one per image")
    batch = Batch("ground truth", images)
    columns = batch_format.read_shapes(batch, ground_truth.get("boxes"), shapes, sizes)
    shape_areas = areas_of({name: columns[name] for name in shapes})
    if "area" in ground_truth:
        columns["area"] = batch.values("area", ground_truth["area"])
        batch.refuse("area", columns["area"], columns["area"] < 0, ">= 0")
    else:
        columns["area"] = (
            np.full(len(columns["boxes"]), np.nan) if shape_areas is None else shape_areas
        )
    for flag in FLAGS:
        values = ground_truth.get(flag)
        columns[flag] = (
            np.zeros(len(columns["boxes"]), np.bool_)
            if values is None
            else batch.mask(flag, values)
        )
    for name in attributes:
        values = ground_truth.get(name)
        columns[name] = (
            np.full(len(columns["boxes"]), np.nan) if values is None else batch.values(name, values)
        )
    image_sizes = None
    for name, given in (("sizes", sizes), ("image_sizes", ground_truth.get("image_sizes"))):
        if given is not None:
            image_sizes = batch.image_sizes(name, given)
    return Rows(batch.counts, columns, batch.labels(ground_truth["labels"]), image_sizes)


def check_sizes(
    images: Sequence[Name], rows: Rows, known_sizes: Integers | None, table: str
) -> Integers:
    """Check that all masks of an image have the same size, and return the sizes."""
    sizes, mismatched = rows.mask_sizes()
    if mismatched.any():
        row = int(np.argmax(mismatched))
        index = int(np.repeat(np.arange(len(images)), rows.counts)[row])
        refuse_sizes(table, images[index], rows.columns["masks"].sizes[row], sizes[index])
    if known_sizes is None:
        return sizes
    differs = ((sizes != known_sizes) & (sizes != UNKNOWN) & (known_sizes != UNKNOWN)).any(axis=1)
    for index in np.flatnonzero(differs)[:1].tolist():
        refuse_sizes(table, images[index], sizes[index], known_sizes[index])
    return np.where(known_sizes == UNKNOWN, sizes, known_sizes)


def _joined(arrays: Sequence[NDArray[Any]], empty: tuple[int, ...]) -> NDArray[Any]:
    """Concatenate arrays without the empty ones, whose dtype is arbitrary.

    If all are empty, return an array of the shape `empty`.
    """
    nonempty = [array for array in arrays if len(array)]
    return np.concatenate(nonempty) if nonempty else np.zeros(empty)


def _type_of(value: object) -> str:
    return "None" if value is None else type(value).__name__
