"""Columns of the ragged lists of a batch, which have one entry per image."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core.polygons import box_polygons
from detap.errors import UsageError
from detap.protocols import Protocol
from detap.tables.columns import Columns, Name, as_array
from detap.tables.detection import Floats, encode_boxes
from detap.tables.masks import Masks
from detap.tables.shapes import KINDS, Column, areas_of, boxes_of, refuse_other_shapes
from detap.text_input import suggest

BOX_FORMATS = ("xyxy", "xywh", "cxcywh")
FLAGS = ("crowd", "difficult", "ignore", "group_of")
_FRACTION = 2.0
"""Maximum coordinate of a normalized box; boxes may extend over the border."""

Ragged = Sequence[Any]
"""An array, tensor or list of values for each image of the batch."""


class ImageRows(Columns):
    """Reader of rows sorted by image; errors name the image, and the index within it."""

    names_column = "image_ids"

    def __init__(self, table: str, images: Sequence[Name], image: NDArray[Any]) -> None:
        super().__init__(table)
        self.images, self.image = images, image

    def location(self, row: int) -> str:
        """Return the image of a row, and its index within the image."""
        number = self.image[row]
        first = int(np.argmax(self.image == number))
        return f"image {self.images[number]!r}, row {row - first}"


class Batch(ImageRows):
    """Reader of the ragged lists of one table, with one entry for each of B images.

    `columns` has the rows; their `label` is an index into `label_names`.
    """

    def __init__(
        self, table: str, images: Sequence[Name], protocol: Protocol, box_format: str
    ) -> None:
        super().__init__(table, images, np.zeros(0, np.int32))
        self.protocol, self.box_format = protocol, box_format
        self.columns: dict[str, Column] = {}
        self.label_names: list[Name] = []
        self._first = ""

    def read_detections(self, given: Mapping[str, Any], sizes: Floats | None) -> "Batch":
        """Read the detections; `area` is a column only with shapes, NaN for that of the box."""
        shapes = self._read_rows(given, sizes)
        none = np.full(len(self.image), np.nan)
        scores = given["scores"]
        self.columns["score"] = none if scores is None else self._finite("scores", scores)
        if shapes_compared(self.protocol):
            areas = areas_of(shapes if given["boxes"] is None else {})
            self.columns["area"] = none if areas is None else areas
        return self

    def read_ground_truth(self, given: Mapping[str, Any], sizes: Floats | None) -> "Batch":
        """Read the ground truths; `area` is NaN for that of the box."""
        numbers = "area", *self.protocol.attributes
        accepted = ("boxes", "labels", *KINDS, *numbers, *FLAGS, "image_sizes")
        for name in given:
            if name not in accepted:
                hint = suggest(str(name), accepted) or f"choose from {', '.join(accepted)}"
                raise UsageError(f"ground_truth has an unknown key {name!r}; {hint}")
        areas = areas_of(self._read_rows(given, sizes))
        none = np.full(len(self.image), np.nan)
        for name in numbers:
            values = given.get(name)
            self.columns[name] = none if values is None else self._finite(name, values)
        for name in FLAGS:
            values = given.get(name)
            flags = np.zeros(len(none), np.bool_) if values is None else self._joined(name, values)
            self.columns[name] = self.flags(name, flags, len(none))
        area = self.columns["area"]
        self.refuse("area", area, area < 0, ">= 0")
        if areas is not None and given.get("area") is None:
            self.columns["area"] = areas
        return self

    def _read_rows(self, given: Mapping[str, Any], sizes: Floats | None) -> dict[str, Column]:
        """Read the boxes, shapes and labels; return the shapes.

        Boxes that are not given are those around the shapes.
        """
        boxes, columns = given.get("boxes"), self.columns
        parts = {name: given[name] for name in KINDS if given.get(name) is not None}
        self._check_shapes(parts, sizes)
        refuse_other_shapes(self, {"boxes": boxes, **parts})
        if boxes is not None or not parts:
            columns["boxes"] = self._boxes(boxes, sizes)
        shapes = {name: self._shapes(name, values) for name, values in parts.items()}
        as_corners = self.box_format == "xyxy"
        if boxes is None:
            columns["boxes"] = boxes_of(self, shapes)
            if as_corners:
                columns["boxes"][:, 2:] += columns["boxes"][:, :2]
        elif self.protocol.iou_type == "polygon":
            corners, _ = encode_boxes(columns["boxes"], "xyxy" if as_corners else "xywh")
            columns["polygons"] = box_polygons(corners)
        labels = self.index_names("labels", self._joined("labels", given.get("labels")))
        self.label_names = labels.distinct
        columns |= {**shapes, "image": self.image, "label": labels.number}
        return shapes

    def _check_shapes(self, given: Mapping[str, Any], sizes: Floats | None) -> None:
        """Raise UsageError for missing shapes, and for those that the protocol does not compare."""
        compared, name_of = shapes_compared(self.protocol), self.protocol.name
        for name in KINDS:
            if name in compared and name not in given and name != "polygons":
                hint = f"give those of the {self.table}, one entry per image"
                raise UsageError(f"protocol {name_of} compares {name}; {hint}")
            if name in given and name not in compared:
                hint = f"omit those of the {self.table}, or choose a protocol that does"
                raise UsageError(f"protocol {name_of} does not compare {name}; {hint}")
            if name in given and name != "masks" and sizes is not None:
                message = f"sizes does not apply to {name}; give boxes and {name} in pixels"
                raise UsageError(message)

    def _boxes(self, parts: Any, sizes: Floats | None) -> Floats:
        """Return boxes in pixels, (n, 4): as ``xyxy`` if given so, else as ``xywh``."""
        boxes = self._finite("boxes", parts, 4)
        if sizes is not None:
            too_large = np.asarray((np.abs(boxes) > _FRACTION).any(axis=1))
            if 2 * np.count_nonzero(too_large) > len(boxes):
                expected = "fractions of the image size, as sizes is given; omit sizes for pixels"
                self.refuse("boxes", boxes, too_large, expected)
            boxes *= np.tile(sizes, 2)[self.image]
        if self.box_format == "cxcywh":
            boxes[:, :2] -= boxes[:, 2:] / 2
        return boxes

    def _shapes(self, name: str, parts: Ragged) -> Column:
        """Return the masks, keypoints or polygons of the rows."""
        kind, keypoint_count = KINDS[name], len(self.protocol.sigmas) or None
        columns = [
            kind.read(Columns(self.table, f"image {image!r}"), part, keypoint_count)
            for image, part in zip(self.images, self._entries(name, parts), strict=True)
        ]
        self._count(name, columns)
        return joined([kind.read(self, [], keypoint_count), *columns])

    def _finite(self, name: str, parts: Any, *width: int) -> Floats:
        """Return a column of finite numbers, (n, *width) float64."""
        column = self._joined(name, parts, *width)
        values: Floats = self.numbers(name, column, column.shape)
        if not np.isfinite(values).all():
            by_row = np.isfinite(values).reshape(len(values), -1)
            self.refuse(name, values, np.asarray(~by_row.all(axis=1)), "a finite number")
        return values

    def _joined(self, name: str, parts: Any, *width: int) -> NDArray[Any]:
        """Return the values of all images as a column, (n, *width)."""
        arrays = [self._taken(name, as_array(part)) for part in self._entries(name, parts)]
        self._count(name, arrays)
        for index, array in enumerate(arrays):
            if len(array) and array.shape[1:] != width:
                expected = f"expected ({', '.join(['n', *map(str, width)]) if width else 'n,'})"
                location = f"image {self.images[index]!r}"
                self.fail(f"{name} has shape {array.shape}", expected, location)
        # Empty arrays have any dtype and shape.
        return np.concatenate([a for a in arrays if len(a)] or [np.zeros((0, *width))])

    def _entries(self, name: str, parts: Any) -> Iterable[Any]:
        """Return the entries of a ragged list, one per image."""
        if not isinstance(parts, Sized):
            given = "None" if parts is None else type(parts).__name__
            self.fail(f"{name}: expected a list with one entry per image, got {given}")
        if len(parts) != len(self.images):
            self.fail(
                f"{name} has {len(parts)} entries for {len(self.images)} images",
                "give one entry per image, an empty one for an image without rows",
            )
        return parts  # type: ignore[return-value]  # Sized, as checked above

    def _count(self, name: str, columns: Sequence[Sized]) -> None:
        """Set the image of each row by the first column; check the lengths of the others."""
        counts = np.array([len(column) for column in columns], np.intp)
        if not self._first:
            self._first, self._counts = name, counts
            self.image = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        for index in np.flatnonzero(counts != self._counts)[:1].tolist():
            message = f"{self._counts[index]} {self._first} and {counts[index]} {name}"
            hint = "give as many of each for an image"
            self.fail(message, hint, f"image {self.images[index]!r}")

    def _taken(self, name: str, values: Any) -> NDArray[Any]:
        # Arrays are used as they are; masked arrays, lists and others are checked.
        if type(values) is np.ndarray and values.ndim:
            return values
        return super()._taken(name, values)


def read_sizes(name: str, images: Sequence[Name], sizes: Any) -> Floats | None:
    """Return the width and height of each image of a batch, (B, 2); None if not given."""
    if sizes is None:
        return None
    reader = ImageRows("detections", images, np.arange(len(images)))
    values = reader.numbers(name, as_array(sizes), (len(images), 2))
    wrong = np.asarray(~(np.isfinite(values) & (values > 0)).all(axis=1))
    reader.refuse(name, values, wrong, "width and height in pixels")
    return values


def shapes_compared(protocol: Protocol) -> tuple[str, ...]:
    """Return the shapes that a protocol compares; boxes may stand for polygons."""
    return ("polygons",) if protocol.iou_type == "polygon" else (*protocol.reading,)


def joined(columns: Sequence[Column]) -> Column:
    """Concatenate columns of arrays or masks."""
    first = columns[0]
    return Masks.joined(columns) if isinstance(first, Masks) else np.concatenate(columns)
