"""Read masks and keypoints from callers, with boxes or instead of them.

Each kind is a class in :data:`KINDS`, under the name that readers, tables and ``Protocol.reading``
use.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from detap.tables import _runs
from detap.tables.columns import FARTHEST, Columns, as_array
from detap.tables.masks import MOST_PIXELS, Masks

Floats = NDArray[np.float64]
Column = Any
"""N shapes: an array, or Masks."""


class Kind(Protocol):
    """One kind of shape; those of N rows are a column."""

    key: str
    """Key of COCO records."""

    one: str
    """Singular noun."""

    def read(self, columns: Columns, values: Any, keypoint_count: int | None) -> Column:
        """Return the column of what is given, or refuse it in the name of `columns`.

        Parameters
        ----------
        keypoint_count : int, optional
            How many keypoints each row has.

        Raises
        ------
        InputError
        """

    def boxes(self, columns: Columns, column: Column) -> Floats:
        """Return x, y, width, height of the boxes around them, (N, 4), or refuse."""

    def areas(self, column: Column) -> Floats | None:
        """Return their own areas, (N,); None where those of their boxes count."""

    def fields(self, column: Column) -> dict[str, Any]:
        """Return the fields of a table that hold the shapes."""


# --- masks

_FORMS = "give bitmaps (n, H, W), or a list of run lengths {'size', 'counts'}"
_FLAGS = "give bool, or uint8 of 0 and 1, such as masks > 0.5"
_SIZE = "give [height, width], whole numbers above 0"


class _Masks:
    """Bitmaps, or run lengths as COCO has them, which become runs."""

    key = "segmentation"
    one = "mask"

    def read(self, columns: Columns, values: Any, keypoint_count: int | None) -> Masks:
        """As :meth:`Kind.read`: (n, H, W), or a list of (H, W) and of run lengths."""
        del keypoint_count
        if isinstance(values, Masks):
            return values
        values = as_array(values)
        if _is_array(values):
            return _of_bitmaps(columns, columns.array("masks", values), columns.whole)
        if not isinstance(values, Sequence) or isinstance(values, str | bytes):
            columns.fail(f"masks is a {type(values).__name__}", _FORMS, columns.whole)
        parts = [_of_row(columns, value, columns.location(row)) for row, value in enumerate(values)]
        return Masks.joined(parts) if parts else Masks.none()

    def boxes(self, columns: Columns, column: Masks) -> Floats:
        """As :meth:`Kind.boxes`; zeros where a mask has no pixel."""
        del columns
        return column.measured()[1]

    def areas(self, column: Masks) -> Floats:
        """As :meth:`Kind.areas`: their pixels."""
        return column.measured()[0]

    def fields(self, column: Masks) -> dict[str, Any]:
        """As :meth:`Kind.fields`."""
        return {"masks": column, "mask": np.arange(len(column), dtype=np.int32)}


def _is_array(values: Any) -> bool:
    return hasattr(values, "shape") or hasattr(values, "__array__")


def _of_row(columns: Columns, value: Any, location: str) -> Masks:
    """Return the one mask of a row."""
    if isinstance(value, Mapping):
        return _run_lengths(columns, value, location)
    value = as_array(value)
    if not _is_array(value):
        columns.fail(f"masks is a {type(value).__name__}", _FORMS, location)
    array = columns.array("masks", value)
    if array.ndim != 2:
        columns.fail(f"masks has the shape {array.shape}", "give (H, W)", location)
    return _of_bitmaps(columns, array[None], location)


def _of_bitmaps(columns: Columns, bits: NDArray[Any], location: str) -> Masks:
    """Return the masks of bitmaps (n, H, W)."""
    if not len(bits):
        return Masks.none()
    if bits.ndim != 3:
        above = " > 0.5" if bits.dtype.kind == "f" else ""
        hint = f", such as masks[:, 0]{above}" if bits.ndim == 4 and bits.shape[1] == 1 else ""
        columns.fail(f"masks has the shape {bits.shape}", f"give (n, H, W){hint}", location)
    if bits.dtype not in (np.bool_, np.uint8):
        columns.fail(f"masks are of the type {bits.dtype}", _FLAGS, location)
    height, width = bits.shape[1:]
    if not 0 < height * width <= MOST_PIXELS:
        message = f"masks are {height} high and {width} wide"
        columns.fail(message, f"give bitmaps of 1 to {MOST_PIXELS} pixels", location)
    masks = Masks.of_bitmaps(np.ascontiguousarray(bits).view(np.uint8))
    if masks is None:
        columns.fail(f"masks has the value {bits[bits > 1][0]}", _FLAGS, location)
    return masks


def _run_lengths(columns: Columns, value: Mapping[str, Any], location: str) -> Masks:
    """Return the mask of COCO's run lengths: `counts` is text, bytes or a list."""
    for key in ("size", "counts"):
        if key not in value:
            columns.fail(f"masks has no {key}", _FORMS, location)
    size = np.array(value["size"], object).ravel().tolist()
    valid = all(isinstance(s, int | np.integer) and not isinstance(s, bool) for s in size)
    if len(size) != 2 or not valid or min(size) < 1 or size[0] * size[1] > MOST_PIXELS:
        columns.fail(f"size is {value['size']!r:.60}", _SIZE, location)
    height, width = map(int, size)
    runs = _decoded(columns, value["counts"], location)
    total = int(runs.sum(dtype=np.uint64))
    if total != height * width:
        what = f"counts sum to {total}, and a mask of size [{height}, {width}] has {height * width}"
        columns.fail(f"{what} pixels", "write the mask again; size is [height, width]", location)
    return Masks.of_runs([(height, width)], [runs])


def _decoded(columns: Columns, counts: Any, location: str) -> NDArray[np.uint32]:
    if isinstance(counts, str | bytes):
        text = counts.encode("utf-8", "replace") if isinstance(counts, str) else counts
        decoded = _runs.decoded(text, MOST_PIXELS)
        if isinstance(decoded, str):
            columns.fail(f"counts {decoded}", "write the mask again", location)
        return decoded
    lengths = np.array(counts, object).ravel()
    valid = [isinstance(n, int | np.integer) and 0 <= n <= MOST_PIXELS for n in lengths.tolist()]
    if not all(valid):
        hint = "give whole numbers of pixels, 0 or more, or a run-length string"
        columns.fail(f"counts is {counts!r:.60}", hint, location)
    return lengths.astype(np.uint32)


# --- keypoints


class _Keypoints:
    """x, y and v of keypoints; of detections x and y alone count."""

    key = "keypoints"
    one = "row"

    def read(self, columns: Columns, values: Any, keypoint_count: int | None) -> Floats:
        """As :meth:`Kind.read`: (n, P, 3), or of detections (n, P, 2)."""
        given = columns.array("keypoints", values)
        of_truth = columns.table == "ground truth"
        if not len(given):
            return np.zeros((0, keypoint_count or 0, 3 if of_truth else 2))
        widths = (3,) if of_truth else (3, 2)
        fits = given.ndim == 3 and given.shape[1] and given.shape[2] in widths
        if not fits or keypoint_count not in (None, given.shape[1]):
            points = "P" if keypoint_count is None else keypoint_count
            hint = f"give ({len(given)}, {points}, 3): x, y and v"
            columns.fail(f"keypoints has the shape {given.shape}", hint, columns.whole)
        rows = given.reshape(len(given), -1)
        keypoints = columns.numbers("keypoints", rows, rows.shape).reshape(given.shape)
        in_range = np.abs(keypoints) <= FARTHEST
        if not in_range.all():
            row = int(np.argmin(in_range.all(axis=(1, 2))))
            message = f"keypoints has {keypoints[row][~in_range[row]][0].item()}"
            columns.fail(message, "give coordinates in pixels", columns.location(row))
        return keypoints if of_truth else np.ascontiguousarray(keypoints[:, :, :2])

    def boxes(self, columns: Columns, column: Floats) -> Floats:
        """As :meth:`Kind.boxes`; OKS goes by the area of an object, which no keypoints tell."""
        if columns.table == "ground truth":
            columns.fail("keypoints stand without boxes", "give boxes too", columns.whole)
        if not len(column):
            return np.zeros((0, 4))
        low, high = column[:, :, :2].min(axis=1), column[:, :, :2].max(axis=1)
        return np.hstack([low, high - low])

    def areas(self, column: Floats) -> None:
        """As :meth:`Kind.areas`."""
        del column

    def fields(self, column: Floats) -> dict[str, Any]:
        """As :meth:`Kind.fields`."""
        fields: dict[str, Any] = {"keypoints": column}
        if column.shape[2] == 3:
            fields["no_keypoints"] = ~(column[:, :, 2] > 0).any(axis=1)
        return fields


KINDS: Mapping[str, Kind] = {"masks": _Masks(), "keypoints": _Keypoints()}


def read_shapes(columns: Columns, given: Mapping[str, Any], count: int) -> dict[str, Column]:
    """Return the columns of what is given of `count` rows; what is None is not.

    Raises
    ------
    InputError
    """
    columns_by_kind = {}
    for name, values in given.items():
        if values is not None:
            columns_by_kind[name] = KINDS[name].read(columns, values, None)
            if len(columns_by_kind[name]) != count:
                message = f"{count} rows and {len(columns_by_kind[name])} {name}"
                columns.fail(message, "give one for each row", columns.whole)
    return columns_by_kind


def boxes_of(columns: Columns, shapes: Mapping[str, Column]) -> Floats:
    """Return the boxes x, y, width, height (N, 4) of rows that have no other; one kind is there.

    Raises
    ------
    InputError
        If boxes are required as well.
    """
    name, column = next(iter(shapes.items()))
    return KINDS[name].boxes(columns, column)


def areas_of(shapes: Mapping[str, Column]) -> Floats | None:
    """Return the areas (N,) of shapes; None if the boxes' areas are used."""
    all_areas = (KINDS[name].areas(column) for name, column in shapes.items())
    return next((areas for areas in all_areas if areas is not None), None)


def fields_of(shapes: Mapping[str, Column]) -> dict[str, Any]:
    """Return the fields of a table that hold the shapes."""
    table_fields: dict[str, Any] = {}
    for name, column in shapes.items():
        table_fields |= KINDS[name].fields(column)
    return table_fields
