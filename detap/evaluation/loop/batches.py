"""Tables from the ragged lists of a batch, which have one entry per image."""

from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core.polygons import box_polygons
from detap.errors import UsageError
from detap.protocols import Protocol
from detap.tables.columns import Columns, Name, as_array
from detap.tables.detection import Detections, Floats, GroundTruth, finite_boxes
from detap.tables.masks import Masks
from detap.tables.shapes import READERS, Column, areas_of, boxes_of, fields_of, refuse_other_shapes
from detap.text_input import suggest

BOX_FORMATS = ("xyxy", "xywh", "cxcywh")
FLAGS = ("crowd", "difficult", "ignore", "group_of")
_FRACTION = 2.0  # maximum coordinate of a normalized box; boxes may extend over the border

Ragged = Sequence[Any]  # an array, tensor or list of values for each image of the batch
Table = GroundTruth | Detections


class Batch(Columns):
    """Reader of the ragged lists of one table, with one entry for each of B images.

    Errors name the image of a row, and the index within it.
    """

    names_column = "image_ids"

    def __init__(self, table: str, images: Sequence[Name], protocol: Protocol) -> None:
        super().__init__(table)
        self.images, self.image = images, np.zeros(0, np.int32)
        self.protocol, self._first = protocol, ""

    def location(self, row: int) -> str:
        """Return the image of a row, and its index within the image."""
        number = self.image[row]
        first = int(np.argmax(self.image == number))
        return f"image {self.images[number]!r}, row {row - first}"

    def read_sizes(self, name: str, sizes: Any) -> Floats:
        """Return the width and height of each image, (B, 2)."""
        self.image = np.arange(len(self.images), dtype=np.int32)  # a row is an image
        values = self.numbers(name, as_array(sizes), (len(self.images), 2))
        wrong = np.asarray(~(np.isfinite(values) & (values > 0)).all(axis=1))
        self.refuse(name, values, wrong, "width and height in pixels")
        return values

    def read(self, given: Mapping[str, Any], box_format: str, sizes: Floats | None) -> Table:
        """Return the table of the rows; its `class_ids` are the labels, without `classes`."""
        of_truth, boxes = self.table == "ground truth", given.get("boxes")
        others = ("area", *self.protocol.attributes, *FLAGS) if of_truth else ("scores",)
        parts = self._checked_shapes(given, others, sizes)
        if boxes is not None or not parts:
            boxes = self._boxes(boxes, sizes)
        shapes = {name: self._shapes(name, values) for name, values in parts.items()}
        areas = areas_of(shapes if of_truth or boxes is None else {})
        if boxes is None:
            boxes, box_format = boxes_of(self, shapes), "xywh"
        corners, box_area = finite_boxes(self, boxes, box_format)
        if self.protocol.iou_type == "polygon" and not shapes:
            shapes["polygons"] = box_polygons(corners)
            areas = None if of_truth else areas_of(shapes)  # as of a table of boxes, to the bit
        labels = self.index_names("labels", self._joined("labels", given.get("labels")))
        columns: dict[str, Any] = {"image": self.image, "label": labels.number, "corners": corners}
        columns |= {"box_area": box_area, **fields_of(shapes)}
        columns |= {"images": tuple(self.images), "classes": (), "class_ids": (*labels.distinct,)}
        area, none = box_area if areas is None else areas, np.full(len(corners), np.nan)

        def column(name: str, read: Callable[[str, Any], Any], default: Any) -> Any:
            return default if given.get(name) is None else read(name, given[name])

        if not of_truth:
            score = column("scores", self._finite, none)
            return Detections(**columns, score=score, area=area if shapes else None)
        if given.get("area") is not None:
            area = self._finite("area", given["area"])
            self.refuse("area", area, area < 0, ">= 0")
        for name in FLAGS:
            flags = column(name, self._joined, np.zeros(len(area)))
            columns[name] = self.flags(name, flags, len(area))
        extra = {name: column(name, self._finite, none) for name in self.protocol.attributes}
        if "keypoints" in shapes:
            columns["width_height"] = boxes[:, 2:] - (boxes[:, :2] if box_format == "xyxy" else 0)
        return GroundTruth(**columns, area=area, extra=extra)

    def _checked_shapes(
        self, given: Mapping[str, Any], others: Sequence[str], sizes: Floats | None
    ) -> dict[str, Any]:
        """Return the shapes; raise UsageError if some are missing, or a key does not apply."""
        accepted = ("boxes", "labels", *READERS, *others, "image_sizes")
        for name in given:
            if name not in accepted:
                hint = suggest(str(name), accepted) or f"choose from {', '.join(accepted)}"
                raise UsageError(f"ground_truth has an unknown key {name!r}; {hint}")
        parts = {name: given[name] for name in READERS if given.get(name) is not None}
        protocol = self.protocol
        subject, shapes = f"protocol {protocol.name}", f"those of the {self.table}"
        for name in protocol.reading:
            if name not in parts:
                raise UsageError(f"{subject} compares {name}; give {shapes}, one entry per image")
        compared = ("polygons",) if protocol.iou_type == "polygon" else (*protocol.reading,)
        for name in parts:
            if name not in compared:
                hint = f"omit {shapes}, or choose a protocol that does"
                raise UsageError(f"{subject} does not compare {name}; {hint}")
            if name != "masks" and sizes is not None:
                raise UsageError(f"sizes does not apply to {name}; give boxes and {name} in pixels")
        refuse_other_shapes(self, {"boxes": given.get("boxes"), **parts})
        return parts

    def _boxes(self, parts: Any, sizes: Floats | None) -> Floats:
        """Return boxes in pixels, (n, 4)."""
        boxes = self._finite("boxes", parts, 4)
        if sizes is not None:
            too_large = np.asarray((np.abs(boxes) > _FRACTION).any(axis=1))
            if 2 * np.count_nonzero(too_large) > len(boxes):
                expected = "fractions of the image size, as sizes is given; omit sizes for pixels"
                self.refuse("boxes", boxes, too_large, expected)
            boxes *= np.tile(sizes, 2)[self.image]
        return boxes

    def _shapes(self, name: str, parts: Any) -> Column:
        """Return the masks, keypoints or polygons of the rows."""
        reader, keypoint_count = READERS[name], len(self.protocol.sigmas) or None

        def read(image: Name, part: Any) -> Column:
            nonlocal keypoint_count
            column = reader(Columns(self.table, f"image {image!r}"), part, keypoint_count)
            if name == "keypoints" and len(column):
                keypoint_count = column.shape[1]
            return column

        columns = [column for column in self._each(name, parts, read) if len(column)]
        columns = columns or [reader(self, [], keypoint_count)]
        return Masks.joined(columns) if name == "masks" else np.concatenate(columns)

    def _finite(self, name: str, parts: Any, *width: int) -> Floats:
        """Return a column of finite numbers, (n, *width) float64."""
        column = self._joined(name, parts, *width)
        return self.finite(name, column, column.shape)

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
