"""Decode segmentations to masks, and check their sizes."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from detap.checks.masks import oversized_masks
from detap.core.masks import areas_and_boxes
from detap.errors import InputError, Note, Problem
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.coco.assembly import Source
from detap.tables.columns import FARTHEST
from detap.tables.detection import Detections, Floats, GroundTruth, Integers, Table
from detap.tables.masks import UNKNOWN, Masks

Sizes = NDArray[np.int64]
_MAX_SQUARE = 2**16 - 1
"""Side of the largest square mask, used for unknown sizes to avoid cropping."""
_MAX_SIDE = 2.0**31


def masked_ground_truth(table: GroundTruth, source: Source) -> GroundTruth:
    """Return the ground truth with boxes, whose masks must have the sizes of their images."""
    table = _sized(table, _listed_sizes(table), source)
    no_box = np.isnan(table.box_area)
    if not no_box.any():
        return table
    table, _ = _boxes_of_masks(table, no_box)
    return replace(table, area=np.where(np.isnan(table.area), table.box_area, table.area))


def masked_detections(
    table: Detections, truth: GroundTruth, source: Source, polygons: int | None
) -> tuple[Detections, tuple[Note, ...]]:
    """Return detections with boxes and, given the number of `polygons`, masks; and notes."""
    sizes = _listed_sizes(truth)
    if truth.masks is not None:
        _fill_sizes(sizes, truth)
    if not len(truth):  # a placeholder has no image sizes
        _fill_sizes(sizes, table)
        sizes[(sizes == UNKNOWN).any(axis=1)] = _MAX_SQUARE
    table = _sized(table, sizes, source)
    no_box = np.isnan(table.box_area)
    if no_box.any():
        table, area = _boxes_of_masks(table, no_box)
        table = replace(table, area=area)
    if polygons is None:
        return replace(table, mask=None, masks=None), ()
    missing = int(np.count_nonzero(_masks_of(table)[0] < 0))
    boxes = "segmentation missing; using the bbox as mask"
    message = "polygons or uncompressed RLE in results, which pycocotools does not accept"
    notes = nonzero_notes(
        Note("boxes-as-masks", boxes, missing),
        Note("results-not-compressed", message, polygons, severity="info"),
    )
    return _masks_of_boxes(table, sizes, source), notes


def _masks_of(table: GroundTruth | Detections) -> tuple[Integers, Masks]:
    """Return the mask of each row, or -1, and the masks."""
    assert table.mask is not None
    assert table.masks is not None
    return table.mask, table.masks


def _boxes_of_masks(table: Table, no_box: NDArray[np.bool_]) -> tuple[Table, Floats]:
    """Set missing boxes to those of the masks; return the areas."""
    mask, masks = _masks_of(table)
    pixels, boxes = areas_and_boxes(masks.arrays)
    of_masks = boxes[mask[no_box]]
    corners, box_area = table.corners.copy(), table.box_area.copy()
    corners[no_box, :2] = of_masks[:, :2]
    corners[no_box, 2:] = of_masks[:, :2] + of_masks[:, 2:]
    box_area[no_box] = of_masks[:, 2] * of_masks[:, 3]
    area = box_area.copy()
    area[no_box] = pixels[mask[no_box]]
    return replace(table, corners=corners, box_area=box_area), area


def _masks_of_boxes(table: Detections, sizes: Sizes, source: Source) -> Detections:
    """Set missing masks to the box as a polygon, as pycocotools does."""
    mask, masks = _masks_of(table)
    missing = np.flatnonzero(mask < 0)
    if not len(missing):
        return table
    unknown = missing[(sizes[table.image[missing]] == UNKNOWN).any(axis=1)]
    _refuse(((int(row), *_NO_SIZE) for row in unknown), source)
    left, top, right, bottom = np.clip(table.corners[missing], -FARTHEST, FARTHEST).T
    points = np.stack([left, top, left, bottom, right, bottom, right, top], axis=1)
    count = len(missing)
    boxes = Masks(
        sizes[table.image[missing]].astype(np.int32),
        np.zeros(count + 1, np.int64),
        np.zeros(0, np.uint32),
        np.arange(count + 1),
        4 * np.arange(1, count + 1),
        points.reshape(-1, 2),
    )
    index = mask.copy()
    index[missing] = len(masks) + np.arange(count, dtype=np.int32)
    masks = Masks.joined([masks, boxes])
    rows = np.concatenate([np.flatnonzero(mask >= 0), missing])
    limit = source.limits.mask_runs
    _refuse(oversized_masks(rows, masks, table.image[rows], limit), source)
    return replace(table, masks=masks, mask=index)


def _listed_sizes(truth: GroundTruth) -> Sizes:
    """Return height and width of each image, (I, 2); UNKNOWN unless positive integers."""
    if truth.image_sizes is None:
        return np.full((len(truth.images), 2), UNKNOWN, np.int64)
    sides = truth.image_sizes[:, ::-1]
    usable = ((sides > 0) & (sides < _MAX_SIDE) & (sides == np.floor(sides))).all(axis=1)
    return np.where(usable[:, None], sides, UNKNOWN).astype(np.int64)


def _fill_sizes(sizes: Sizes, table: GroundTruth | Detections) -> None:
    """Set unknown image sizes to that of the image's first mask with a size, such as RLE."""
    mask, masks = _masks_of(table)
    has_size = masks.sizes[:, 0] > 0
    image = table.image[np.flatnonzero(mask >= 0)[has_size]]
    first = np.unique(image, return_index=True)[1]
    rows = first[(sizes[image[first]] == UNKNOWN).any(axis=1)]
    sizes[image[rows]] = masks.sizes[has_size][rows]


_NO_SIZE = (
    "image has no width and height, required for polygons and boxes as masks",
    "add both to images of the ground truth",
)


def _sized(table: Table, sizes: Sizes, source: Source) -> Table:
    """Return the table, whose masks get the sizes of their images, which are set if unknown."""
    mask, masks = _masks_of(table)
    rows = np.flatnonzero(mask >= 0)
    _fill_sizes(sizes, table)
    image = table.image[rows]
    expected, is_rle = sizes[image], masks.sizes[:, 0] > 0
    unknown = rows[~is_rle & (expected == UNKNOWN).any(axis=1)].tolist()
    wrong = [(row, *_NO_SIZE) for row in unknown]
    for index in np.flatnonzero(is_rle & (masks.sizes != expected).any(axis=1)).tolist():
        size, image_size = masks.sizes[index].tolist(), expected[index].tolist()
        hint = "size is [height, width]" if size == image_size[::-1] else ""
        message = f"segmentation has size {size}, expected {image_size} of image "
        wrong.append((int(rows[index]), message + repr(table.images[image[index]]), hint))
    _refuse(wrong, source)
    masks = replace(masks, sizes=expected.astype(np.int32))
    _refuse(oversized_masks(rows, masks, image, source.limits.mask_runs), source)
    return replace(table, masks=masks)


def _refuse(problems: Iterable[tuple[int, str, str]], source: Source) -> None:
    listed = [Problem(*source.location(row), text, hint) for row, text, hint in problems]
    if listed:
        limit = source.limits.problems
        raise InputError(listed[:limit], max(len(listed) - limit, 0))
