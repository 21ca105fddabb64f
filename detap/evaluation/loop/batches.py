"""Columns of the ragged lists of a batch, which have one entry per image."""

from collections.abc import Callable, Mapping, Sequence, Sized
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


class Batch(Columns):
    """Reader of the ragged lists of one table, with one entry for each of B images.

    `columns` has the rows; their `label` is an index into `label_names`. Errors name the image of a
    row, and the index within it.
    """

    names_column = "image_ids"

    def __init__(
        self, table: str, images: Sequence[Name], protocol: Protocol, box_format: str
    ) -> None:
        super().__init__(table)
        self.images, self.image = images, np.arange(len(images), dtype=np.int32)
        self.protocol, self.box_format = protocol, box_format
        self.columns: dict[str, Column] = {}
        self.label_names: list[Name] = []
        self._first = ""

    def location(self, row: int) -> str:
        """Return the image of a row, and its index within the image."""
        number = self.image[row]
        first = int(np.argmax(self.image == number))
        return f"image {self.images[number]!r}, row {row - first}"

    def read_sizes(self, name: str, sizes: Any) -> Floats:
        """Return the width and height of each image, (B, 2); no other column has been read."""
        values = self.numbers(name, as_array(sizes), (len(self.images), 2))
        wrong = np.asarray(~(np.isfinite(values) & (values > 0)).all(axis=1))
        self.refuse(name, values, wrong, "width and height in pixels")
        return values

    def read(self, given: Mapping[str, Any], sizes: Floats | None) -> "Batch":
        """Read the columns; `area` is NaN for that of the box."""
        of_truth, columns = self.table == "ground truth", self.columns
        numbers = ("area", *self.protocol.attributes) if of_truth else ("scores",)
        flags = FLAGS if of_truth else ()
        accepted = ("boxes", "labels", *KINDS, *numbers, *flags, "image_sizes")
        for name in given:
            if name not in accepted:
                hint = suggest(str(name), accepted) or f"choose from {', '.join(accepted)}"
                raise UsageError(f"ground_truth has an unknown key {name!r}; {hint}")
        shapes = self._read_rows(given, sizes)
        none = np.full(len(self.image), np.nan)
        for name in numbers:
            values = given.get(name)
            columns[name] = none if values is None else self._finite(name, values)
        for name in flags:
            values = given.get(name)
            column = np.zeros(len(none)) if values is None else self._joined(name, values)
            columns[name] = self.flags(name, column, len(none))
        if given.get("area") is None and (of_truth or shapes_compared(self.protocol)):
            areas = areas_of(shapes if of_truth or given["boxes"] is None else {})
            columns["area"] = none if areas is None else areas
        if of_truth:
            self.refuse("area", columns["area"], columns["area"] < 0, ">= 0")
        else:
            columns["score"] = columns.pop("scores")
        return self

    def _read_rows(self, given: Mapping[str, Any], sizes: Floats | None) -> dict[str, Column]:
        """Read the boxes, by default those around the shapes, and labels; return the shapes."""
        boxes, columns = given.get("boxes"), self.columns
        parts = {name: given[name] for name in KINDS if given.get(name) is not None}
        self._check_shapes(parts, sizes)
        refuse_other_shapes(self, {"boxes": boxes, **parts})
        if boxes is not None or not parts:
            columns["boxes"] = self._boxes(boxes, sizes)
        shapes = {name: self._shapes(name, values) for name, values in parts.items()}
        if boxes is None:
            columns["boxes"] = boxes_of(self, shapes)
            if self.box_format == "xyxy":
                columns["boxes"][:, 2:] += columns["boxes"][:, :2]
        elif self.protocol.iou_type == "polygon":
            as_read = "xyxy" if self.box_format == "xyxy" else "xywh"
            corners, _ = encode_boxes(columns["boxes"], as_read)
            columns["polygons"] = box_polygons(corners)
        labels = self.index_names("labels", self._joined("labels", given.get("labels")))
        self.label_names = labels.distinct
        columns |= {**shapes, "image": self.image, "label": labels.number}
        return shapes

    def _check_shapes(self, given: Mapping[str, Any], sizes: Floats | None) -> None:
        """Raise UsageError for missing shapes, and for those that the protocol does not compare."""
        protocol, shapes = f"protocol {self.protocol.name}", f"those of the {self.table}"
        for name in self.protocol.reading:
            if name not in given:
                raise UsageError(f"{protocol} compares {name}; give {shapes}, one entry per image")
        for name in given:
            if name not in shapes_compared(self.protocol):
                hint = f"omit {shapes}, or choose a protocol that does"
                raise UsageError(f"{protocol} does not compare {name}; {hint}")
            if name != "masks" and sizes is not None:
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

    def _shapes(self, name: str, parts: Any) -> Column:
        """Return the masks, keypoints or polygons of the rows."""
        kind, keypoint_count = KINDS[name], len(self.protocol.sigmas) or None

        def read(image: Name, part: Any) -> Column:
            return kind.read(Columns(self.table, f"image {image!r}"), part, keypoint_count)

        return joined([kind.read(self, [], keypoint_count), *self._each(name, parts, read)])

    def _finite(self, name: str, parts: Any, *width: int) -> Floats:
        """Return a column of finite numbers, (n, *width) float64."""
        column = self._joined(name, parts, *width)
        values: Floats = self.numbers(name, column, column.shape)
        finite = np.isfinite(values)
        if not finite.all():
            wrong = np.asarray(~finite.all(axis=tuple(range(1, values.ndim))))
            self.refuse(name, values, wrong, "a finite number")
        return values

    def _joined(self, name: str, parts: Any, *width: int) -> NDArray[Any]:
        """Return the values of all images as a column, (n, *width)."""

        def read(image: Name, part: Any) -> NDArray[Any]:
            array: NDArray[Any] = as_array(part)
            if type(array) is not np.ndarray or not array.ndim:  # the checks of lists take longer
                array = self._taken(name, array)
            if len(array) and array.shape[1:] != width:
                expected = f"expected ({', '.join(['n', *map(str, width)]) if width else 'n,'})"
                self.fail(f"{name} has shape {array.shape}", expected, f"image {image!r}")
            return array

        # Empty arrays have any dtype and shape.
        arrays = [array for array in self._each(name, parts, read) if len(array)]
        return np.concatenate(arrays or [np.zeros((0, *width))])

    def _each(self, name: str, parts: Any, read: Callable[[Name, Any], Column]) -> list[Column]:
        """Read the entry of each image, given its name; all lists have as many rows of one."""
        if not isinstance(parts, Sized):
            given = "None" if parts is None else type(parts).__name__
            self.fail(f"{name}: expected a list with one entry per image, got {given}")
        if len(parts) != len(self.images):
            hint = "give one entry per image, an empty one for an image without rows"
            self.fail(f"{name} has {len(parts)} entries for {len(self.images)} images", hint)
        columns = [*map(read, self.images, parts)]  # type: ignore[call-overload]  # not only Sized
        counts = np.array([*map(len, columns)], np.intp)
        if not self._first:
            self._first, self._counts = name, counts
            self.image = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        for index in np.flatnonzero(counts != self._counts)[:1].tolist():
            message = f"{self._counts[index]} {self._first} and {counts[index]} {name}"
            hint = "give as many of each for an image"
            self.fail(message, hint, f"image {self.images[index]!r}")
        return columns


def shapes_compared(protocol: Protocol) -> tuple[str, ...]:
    """Return the shapes that a protocol compares; boxes may stand for polygons."""
    return ("polygons",) if protocol.iou_type == "polygon" else (*protocol.reading,)


def joined(columns: Sequence[Column]) -> Column:
    """Concatenate columns of arrays or masks."""
    first = columns[0]
    return Masks.joined(columns) if isinstance(first, Masks) else np.concatenate(columns)
