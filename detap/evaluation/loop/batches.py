"""Columns of the ragged lists of a batch, which have one entry per image."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core.polygons import box_polygons
from detap.errors import UsageError
from detap.protocols import PRESETS, Protocol
from detap.tables.columns import Columns, Name, Names, as_array
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
    """Reader of the ragged lists of one table in a batch of B images."""

    labels: Names
    image_sizes: Floats | None = None
    """Width and height of each image, (B, 2), if given."""

    def __init__(
        self, table: str, images: Sequence[Name], protocol: Protocol, box_format: str
    ) -> None:
        super().__init__(table, images, np.zeros(0, np.intp))
        self.protocol, self.box_format = protocol, box_format
        self.columns: dict[str, Column] = {}
        self.counts = np.zeros(len(images), np.intp)
        self._first = ""

    def read_detections(
        self,
        boxes: Ragged | None,
        scores: Ragged | None,
        labels: Ragged,
        shapes: Mapping[str, Ragged],
        sizes: object,
    ) -> "Batch":
        """Read the detections; `area` is a column only with shapes, NaN for that of the box."""
        self._read_boxes(boxes, shapes, sizes)
        if scores is None:
            self.columns["score"] = np.full(len(self.columns["boxes"]), np.nan)
        else:
            self.columns["score"] = self._finite("scores", scores)
        if shapes_compared(self.protocol):
            self.columns["area"] = self._shape_areas(shapes if boxes is None else ())
        self.labels = self._labels(labels)
        return self

    def read_ground_truth(self, given: Mapping[str, Any], sizes: object) -> "Batch":
        """Read the ground truths; `area` is NaN for that of the box."""
        attributes = self.protocol.attributes
        compared = shapes_compared(self.protocol)
        accepted = ("boxes", "labels", "area", *FLAGS, "image_sizes", *attributes, *compared)
        for name in given:
            if name not in (*accepted, *KINDS):
                hint = suggest(str(name), accepted) or f"choose from {', '.join(accepted)}"
                raise UsageError(f"ground_truth has an unknown key {name!r}; {hint}")
        shapes = given_shapes(self.protocol, given, "ground_truth[{!r}]")
        for name in ("labels",) if {"masks", "polygons"} & {*shapes} else ("boxes", "labels"):
            if name not in given:
                message = f"ground_truth has no {name!r}; give a list of arrays, one per image"
                raise UsageError(message)
        self._read_boxes(given.get("boxes"), shapes, sizes)
        columns, count = self.columns, len(self.columns["boxes"])
        if given.get("area") is not None:
            columns["area"] = self._finite("area", given["area"])
            self.refuse("area", columns["area"], columns["area"] < 0, ">= 0")
        else:
            columns["area"] = self._shape_areas(shapes)
        for name in FLAGS:
            columns[name] = np.zeros(count, np.bool_)
            if given.get(name) is not None:
                columns[name] = self.flags(name, self._joined(name, given[name]), count)
        for name in attributes:
            columns[name] = np.full(count, np.nan)
            if given.get(name) is not None:
                columns[name] = self._finite(name, given[name])
        if sizes is not None:
            self.image_sizes = self._image_sizes("sizes", sizes)
        if given.get("image_sizes") is not None:
            self.image_sizes = self._image_sizes("image_sizes", given["image_sizes"])
        self.labels = self._labels(given["labels"])
        return self

    def block(self) -> dict[str, Column]:
        """Return the columns with the positions of each row's image and label."""
        image = self.image.astype(np.int32)
        return {"image": image, "label": self.labels.number, **self.columns}

    def _read_boxes(
        self, boxes: Ragged | None, shapes: Mapping[str, Ragged], sizes: object
    ) -> None:
        """Read boxes and shapes; boxes that are not given are those around the shapes."""
        if boxes is None and not shapes:
            self.fail("boxes: expected a list with one entry per image, got None")
        for name in ("keypoints", "polygons"):
            if sizes is not None and name in shapes:
                message = f"sizes does not apply to {name}; give boxes and {name} in pixels"
                raise UsageError(message)
        refuse_other_shapes(self, {"boxes": boxes, **shapes})
        columns, as_corners = self.columns, self.box_format == "xyxy"
        if boxes is not None:
            columns["boxes"] = self._boxes(boxes, sizes)
        columns |= {name: self._shapes(name, parts) for name, parts in shapes.items()}
        if boxes is None:
            columns["boxes"] = boxes_of(self, {name: columns[name] for name in shapes})
            if as_corners:
                columns["boxes"][:, 2:] += columns["boxes"][:, :2]
        elif self.protocol.iou_type == "polygon":
            corners, _ = encode_boxes(columns["boxes"], "xyxy" if as_corners else "xywh")
            columns["polygons"] = box_polygons(corners)

    def _boxes(self, parts: Ragged, sizes: object) -> Floats:
        """Return boxes in pixels, (n, 4): as ``xyxy`` if given so, else as ``xywh``."""
        boxes = self._finite("boxes", parts, 4)
        if sizes is not None:
            image_sizes = self._image_sizes("sizes", sizes)
            too_large = np.asarray((np.abs(boxes) > _FRACTION).any(axis=1))
            if 2 * np.count_nonzero(too_large) > len(boxes):
                expected = "fractions of the image size, as sizes is given; omit sizes for pixels"
                self.refuse("boxes", boxes, too_large, expected)
            boxes *= np.tile(image_sizes, 2)[self.image]
        if self.box_format == "cxcywh":
            boxes[:, :2] -= boxes[:, 2:] / 2
        return boxes

    def _shapes(self, name: str, parts: Ragged) -> Column:
        """Return the masks or keypoints of the rows."""
        keypoint_count = len(self.protocol.sigmas) or None
        columns = [
            KINDS[name].read(Columns(self.table, f"image {image!r}"), part, keypoint_count)
            for image, part in zip(self.images, self._entries(name, parts), strict=True)
        ]
        self._count(name, columns)
        return joined([KINDS[name].read(self, [], keypoint_count), *columns])

    def _shape_areas(self, shapes: Iterable[str]) -> Floats:
        """Return the areas of the given shapes, (n,); NaN without any."""
        areas = areas_of({name: self.columns[name] for name in shapes})
        return np.full(len(self.columns["boxes"]), np.nan) if areas is None else areas

    def _labels(self, parts: Ragged) -> Names:
        return self.index_names("labels", self._joined("labels", parts))

    def _image_sizes(self, name: str, sizes: object) -> Floats:
        """Return the sizes of the images of the batch, (B, 2)."""
        image_sizes: Floats = self.numbers(name, as_array(sizes), (len(self.images), 2))
        invalid = ~(np.isfinite(image_sizes) & (image_sizes > 0)).all(axis=1)
        for index in np.flatnonzero(invalid)[:1].tolist():
            message = f"{name} is {image_sizes[index].tolist()}"
            location = f"image {self.images[index]!r}"
            self.fail(message, "give width and height in pixels", location)
        return image_sizes

    def _finite(self, name: str, parts: Ragged, *width: int) -> Floats:
        """Return a column of finite numbers, (n, *width) float64."""
        column = self._joined(name, parts, *width)
        values: Floats = self.numbers(name, column, column.shape)
        if not np.isfinite(values).all():
            by_row = np.isfinite(values).reshape(len(values), -1)
            invalid = np.asarray(~by_row.all(axis=1))
            self.refuse(name, values, invalid, "a finite number")
        return values

    def _joined(self, name: str, parts: Ragged, *width: int) -> NDArray[Any]:
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
        """Set the number of rows per image from the first column; check the others."""
        counts = np.array([len(column) for column in columns], np.intp)
        if not self._first:
            self.counts, self._first = counts, name
            self.image = np.repeat(np.arange(len(counts)), counts)
        for index in np.flatnonzero(counts != self.counts)[:1].tolist():
            singular = "box" if self._first == "boxes" else KINDS[self._first].one
            message = f"{self.counts[index]} {self._first} and {counts[index]} {name}"
            self.fail(message, f"give one for each {singular}", f"image {self.images[index]!r}")

    def _taken(self, name: str, values: Any) -> NDArray[Any]:
        # Arrays are used as they are; masked arrays, lists and others are checked.
        if type(values) is np.ndarray and values.ndim:
            return values
        return super()._taken(name, values)


def shapes_compared(protocol: Protocol) -> tuple[str, ...]:
    """Return the shapes that a protocol compares; boxes may stand for polygons."""
    return ("polygons",) if protocol.iou_type == "polygon" else (*protocol.reading,)


def given_shapes(protocol: Protocol, given: Mapping[str, Any], template: str) -> dict[str, Ragged]:
    """Return the given shapes, which are those that the protocol compares."""
    shapes = {name: given[name] for name in KINDS if given.get(name) is not None}
    compared = shapes_compared(protocol)
    for name in KINDS:
        if name in compared and name not in shapes and name != "polygons":
            hint = f"give {template.format(name)}, one entry per image"
            raise UsageError(f"protocol {protocol.name} compares {name}; {hint}")
        if name in shapes and name not in compared:
            presets = (p.name for p in PRESETS.values() if name in shapes_compared(p))
            raise UsageError(
                f"protocol {protocol.name} does not compare {name}; omit "
                f"{template.format(name)}, or choose a protocol that does, such as {next(presets)}"
            )
    return shapes


def joined(columns: Sequence[Column]) -> Column:
    """Concatenate columns of arrays or masks."""
    first = columns[0]
    return Masks.joined(columns) if isinstance(first, Masks) else np.concatenate(columns)
