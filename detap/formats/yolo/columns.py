"""The order of the columns of predictions: the confidence is the last or the second."""

import numpy as np

from detap.core.overlap import paired_overlaps
from detap.errors import InputError, Note, Problem, UsageError
from detap.formats.yolo.labels import LabelReader
from detap.formats.yolo.shapes import HIGHEST, LOWEST, in_pixels, two_corners
from detap.tables.columns import indices_in
from detap.tables.detection import Flags, Floats, GroundTruth, encode_boxes
from detap.tables.notes import too_many

COLUMNS = LAST, FIRST = ("conf-last", "conf-first")
"""The order of Ultralytics and that of Padilla's tools."""

_FEW = 20
"""Fewer rows may fit both orders of columns by chance."""
_FAR = 0.25
"""The required difference of the fractions of rows that overlap a ground truth."""

Order = tuple[str, tuple[Note, ...]]


def box_and_score(
    reader: LabelReader, truth: GroundTruth, size: Floats, columns: str | None
) -> tuple[Floats, Floats, tuple[Note, ...]]:
    """Return the box (N, 4) and confidence (N,) of rows, and notes; `columns` may be detected."""
    order: Order = (columns or LAST, ())
    if reader.form.keypoints and columns == FIRST:
        message = "--columns conf-first is for boxes; rows with keypoints end with the confidence"
        raise UsageError(message)
    if columns is None and not reader.form.keypoints:
        order = _detected_order(reader, truth, size)
    box, score = reader.values[:, :4], reader.values[:, 4]
    if order[0] == LAST:
        return box.copy(), score.copy(), order[1]
    polygon = reader.polygon
    box = np.where(polygon[:, None], box, reader.values[:, 1:])
    return box, np.where(polygon, score, reader.values[:, 0]), order[1]


def _detected_order(reader: LabelReader, truth: GroundTruth, size: Floats) -> Order:
    """Return the column order: conf-last, unless boxes only fit conf-first.

    Rows with class names are from Padilla's tools, which write the confidence first. Ground truths
    must confirm the order if so few rows may fit by chance.
    """
    values, box_format = reader.values[~reader.polygon], reader.form.box_format
    if not len(values):
        return LAST, ()
    last, first = (
        int(np.count_nonzero(~_fits(b, box_format))) for b in (values[:, :4], values[:, 1:])
    )
    if reader.by_name:
        is_first = not first
        reason = "rows have class names"
    else:
        is_first = bool(last) and not first
        # A few boxes may extend beyond their images.
        is_first |= too_many(last, len(values)) and not too_many(first, len(values))
        reason = f"with the last, {last} of {len(values)} boxes would be outside their image"
    order: Order = (LAST, ())
    if is_first:
        message = f"the second column is read as confidence: {reason} (else --columns conf-last)"
        order = FIRST, (Note("columns-conf-first", message, len(values), severity="info"),)
    by_chance = last > 0 if is_first else last == first == 0
    if len(values) < _FEW and not reader.by_name and by_chance:
        return _confirmed_order(order, reader, truth, size)
    return order


def _confirmed_order(order: Order, reader: LabelReader, truth: GroundTruth, size: Floats) -> Order:
    """Return the column order of few rows: as chosen, unless ground truths differ.

    An error if boxes fit both, and far more rows overlap a ground truth as conf-first.
    """
    values, polygon, box_format = reader.values, reader.polygon, reader.form.box_format
    last, first = (
        float(np.mean(_max_ious(reader, truth, in_pixels(box, polygon, size, box_format)) > 0.5))
        for box in (values[:, :4], values[:, 1:])
    )
    if order[0] == FIRST and last < first + _FAR:
        return order
    if order[0] == LAST and first >= last + _FAR:
        message = (
            "cannot detect whether the confidence is the last or the second column: boxes fit "
            f"either way, and {first:.0%} of {len(values)} have IoU > 0.5 with a ground truth of "
            f"their class as second, {last:.0%} as last"
        )
        hint = "use --columns conf-first (Padilla's tools) or --columns conf-last (Ultralytics)"
        raise InputError(Problem(reader.path, "", message, hint))
    message = (
        "rows fit both `class xc yc w h conf`, which is used, and `class conf xc yc w h` "
        "(--columns conf-first)"
    )
    return LAST, (Note("columns-conf-last", message, len(values), severity="info"),)


def _fits(box: Floats, box_format: str) -> Flags:
    """Return a mask of the boxes (N, 4) inside their images."""
    low, high = two_corners(box, box_format)
    return np.asarray(((low >= LOWEST) & (high <= HIGHEST) & (high >= low)).all(axis=1))


def _max_ious(reader: LabelReader, truth: GroundTruth, pixels: Floats) -> Floats:
    """Return the maximum IoU of each box with ground truths of its image and class."""
    rows = reader.rows
    image = indices_in(tuple(reader.folder.members), truth.images)[rows.file]
    label = indices_in(rows.names, truth.classes)[rows.name]
    row, gt = np.nonzero((image[:, None] == truth.image) & (label[:, None] == truth.label))
    corners, areas = encode_boxes(pixels, "xywh")
    iou = paired_overlaps(
        corners[row],
        truth.corners[gt],
        detection_areas=areas[row],
        truth_areas=truth.box_area[gt],
    )
    max_iou = np.zeros(len(rows))
    np.maximum.at(max_iou, row, iou)
    return max_iou
