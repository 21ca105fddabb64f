"""Convert normalized boxes to pixels, and check them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from detap.errors import InputError, Note, Problem
from detap.formats.by_name.problems import Problems
from detap.formats.yolo.lines import COLUMNS, TITLES
from detap.tables.detection import Flags, Floats, Integers
from detap.tables.notes import INSIST, too_many

LocationOf = Callable[[int], tuple[str, str]]
"""A function from a row to its file and line."""

LOWEST, HIGHEST = -0.01, 1.01
"""The allowed range; Ultralytics drops images with labels outside."""
LABELS_REACH, PREDICTIONS_REACH = 0.5, 1.0
"""Distance by which corners of oriented boxes may lie outside, relative to the image size."""
_POLYGON_BOUNDS = ("the lowest x", "the lowest y", "the highest x", "the highest y")
_PIXELS = 2.0


FEW = 20
"""Fewer rows may fit both orders of columns by chance."""
_FAR = 0.25
"""The required difference of the fractions of rows that overlap a ground truth."""


class Columns(NamedTuple):
    """The order of the columns of predictions.

    Attributes
    ----------
    order : {"conf-last", "conf-first"}
    note : tuple of Note
        Set if the order was inferred.
    unsure : bool
        True if so few rows may fit by chance that ground truths must confirm the order.
    """

    order: str
    note: tuple[Note, ...] = ()
    unsure: bool = False

    def split(self, values: Floats, polygon: Flags) -> tuple[Floats, Floats]:
        """Return the box (N, 4) and the confidence (N,) of rows (N, 5)."""
        last, score = values[:, :4], values[:, 4]
        if self.order == COLUMNS[0]:
            return last.copy(), score.copy()
        box = np.where(polygon[:, None], last, values[:, 1:])
        return box, np.where(polygon, score, values[:, 0])


def order_of_columns(values: Floats, *, named: bool, box_format: str) -> Columns:
    """Return the column order of boxes (N, 5): conf-last, unless they only fit conf-first.

    Rows with class names (`named`) are from Padilla's tools, which write the confidence first.
    """
    if not len(values):
        return Columns(COLUMNS[0])
    few = len(values) < FEW and not named
    last, first = (
        int(np.count_nonzero(~_fits(b, box_format))) for b in (values[:, :4], values[:, 1:])
    )
    if named:
        chosen = not first
        reason = "rows have class names"
    else:
        chosen = bool(last) and not first
        # A few boxes may extend beyond their images.
        chosen |= too_many(last, len(values)) and not too_many(first, len(values))
        reason = f"with the last, {last} of {len(values)} boxes would be outside their image"
    if chosen:
        message = f"the second column is read as confidence: {reason} (else --columns conf-last)"
        note = Note("columns-conf-first", message, len(values), severity="info")
        return Columns(COLUMNS[1], (note,), unsure=few and last > 0)
    return Columns(COLUMNS[0], unsure=few and last == first == 0)


def confirm_order(chosen: Columns, last: Floats, first: Floats, path: str) -> Columns:
    """Return the column order of few rows: as chosen, unless ground truths differ.

    `last` and `first` (N,) are the maximum IoU of each row with a ground truth of its class, in
    either order. An error if boxes fit both, and far more rows overlap a ground truth as
    conf-first.
    """
    last_fraction, first_fraction = (float(np.mean(iou > 0.5)) for iou in (last, first))
    if chosen.order != COLUMNS[0] and last_fraction < first_fraction + _FAR:
        return chosen
    if chosen.order == COLUMNS[0] and first_fraction >= last_fraction + _FAR:
        message = (
            "cannot detect whether the confidence is the last or the second column: boxes fit "
            f"either way, and {first_fraction:.0%} of {len(last)} have IoU > 0.5 with a "
            f"ground truth of their class as second, {last_fraction:.0%} as last"
        )
        hint = "use --columns conf-first (Padilla's tools) or --columns conf-last (Ultralytics)"
        raise InputError(Problem(path, "", message, hint))
    message = (
        "rows fit both `class xc yc w h conf`, which is used, and `class conf xc yc w h` "
        "(--columns conf-first)"
    )
    return Columns(COLUMNS[0], (Note("columns-conf-last", message, len(last), severity="info"),))


def _fits(box: Floats, box_format: str) -> Flags:
    """Return a mask of the boxes (N, 4) inside their images."""
    low, high = _corners(box, box_format)
    inside: Flags = (low >= LOWEST) & (high <= HIGHEST) & (high >= low)
    return inside[:, 0] & inside[:, 1]


def _corners(box: Floats, box_format: str) -> tuple[Floats, Floats]:
    """Return the first and last corners, (N, 2) each, of boxes (N, 4)."""
    first, second = box[:, :2], box[:, 2:]
    if box_format == "xyxy":
        return first, second
    if box_format == "xywh":
        return first, first + second
    return first - second / 2, first + second / 2


def check_fractions(
    box: Floats,
    polygon: Flags,
    location: LocationOf,
    problems: Problems,
    *,
    box_format: str,
    reach: float | None = None,
) -> None:
    """Collect problems of non-normalized numbers.

    `box` (N, 4) has the lowest and highest x and y of polygons. `reach` is how far polygons may
    extend beyond the image; by default like boxes.
    """
    outside = (box < LOWEST) | (box > HIGHEST)
    if reach is not None:
        far = (box < -reach) | (box > 1 + reach)
        outside = np.where(polygon[:, None], far, outside)
    outside_rows = np.flatnonzero(outside.any(axis=1))
    hint = f"correct it; if boxes do extend beyond their images, pass {INSIST}"
    if 2 * len(outside_rows) > len(box) and np.median(box[outside_rows].max(axis=1)) > _PIXELS:
        hint = (
            "boxes look like pixels: divide x and width by the image's width, y and height by its "
            "height; for lines `class x1 y1 x2 y2` or `class conf x1 y1 x2 y2` use --format voc"
        )
    for row in outside_rows[: problems.limit].tolist():
        column = int(outside[row].argmax())
        title = (_POLYGON_BOUNDS if polygon[row] else TITLES[box_format])[column]
        message = f"{title} {box[row, column]:.6g} is outside [0, 1]"
        problems.add(*location(row), message, hint)
    problems.count += max(0, len(outside_rows) - problems.limit)


def check_mixed(file: Integers, polygon: Flags, location: LocationOf, problems: Problems) -> None:
    """Collect the problems of files with boxes and polygons."""
    changes = np.flatnonzero(polygon[1:] != polygon[:-1]) + 1
    changes = changes[file[changes] == file[changes - 1]]
    _, first = np.unique(file[changes], return_index=True)
    for row in changes[first].tolist():
        shape, above = ("a polygon", "a box") if polygon[row] else ("a box", "a polygon")
        message = f"is {shape}, but the line above is {above}: a file has one kind of shape"
        problems.add(*location(row), message, "write all objects of an image as one kind")


def in_pixels(box: Floats, is_polygon: Flags, size: Floats, box_format: str = "cxcywh") -> Floats:
    """Return x, y, width and height (N, 4) in pixels, in images of the sizes (N, 2).

    Computed via the corners, like writers of COCO JSON do: another order of operations changes the
    last bits, and so IoUs at a threshold. `box` is as in :func:`check_fractions`.
    """
    polygon = is_polygon[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = box * np.tile(size, (1, 2))
        low, high = _corners(scaled, box_format)
        width_height = scaled[:, 2:] if box_format == "xywh" else high - low
        low = np.where(polygon, scaled[:, :2], low)
        width_height = np.where(polygon, scaled[:, 2:] - scaled[:, :2], width_height)
    pixels: Floats = np.concatenate([low, width_height], axis=1)
    return pixels


def check_areas(pixels: Floats, location: LocationOf, problems: Problems) -> None:
    """Collect problems of boxes (N, 4) whose area overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        fine = np.isfinite(pixels).all(axis=1) & np.isfinite(pixels[:, 2] * pixels[:, 3])
    for row in np.flatnonzero(~fine)[: problems.limit].tolist():
        problems.add(*location(row), "box area overflows", "correct the box")
