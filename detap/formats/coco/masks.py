"""Segmentations that were read become masks: each of its image's size, or refused."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from detap.core.masks import measured, most_runs
from detap.errors import InputError, Note, Problem
from detap.formats.coco.assembly import Source, detection_table, truth_table
from detap.formats.coco.columns import DetectionColumns, Outlines, TruthColumns
from detap.io.paths import shown
from detap.tables.columns import FARTHEST
from detap.tables.detection import Detections, Floats, GroundTruth, Integers, Name
from detap.tables.masks import MOST_PIXELS, Masks

Sizes = NDArray[np.int64]
Columns = TypeVar("Columns", TruthColumns, DetectionColumns)
UNKNOWN = -1
_WIDEST = 2**16 - 1
"""The side of the largest square that is a mask: nothing is cut off at its borders."""
_MOST = 2.0**31


def shaped_truth(columns: TruthColumns, source: Source) -> GroundTruth:
    """Return the table of ground truths that have masks.

    Raises
    ------
    InputError
        Where a mask is of another size than its image, or a polygon's image of none; and as
        :func:`detap.formats.coco.assembly.truth_table` does.
    """
    assert columns.outlines is not None
    sizes = _listed_sizes(columns.image_ids, columns.image_sizes)
    masks = _masks(columns.outlines, columns.image, sizes, columns.image_ids, source)
    mask = np.arange(len(masks), dtype=np.int32)
    boxless = np.isnan(columns.box_area)
    if boxless.any():
        columns, _ = _boxed(columns, boxless, mask, masks)
        area = np.where(np.isnan(columns.area), columns.box_area, columns.area)
        columns = replace(columns, area=area)
    return replace(truth_table(columns, source), masks=masks, mask=mask)


def masked_table(
    columns: DetectionColumns, truth: GroundTruth, source: Source, *, keep: bool
) -> Detections:
    """Return the table of detections some of which have masks.

    Parameters
    ----------
    columns, truth, source
        As :func:`detap.formats.coco.assembly.detection_table` has them.
    keep : bool
        Whether the table has masks; otherwise they only give boxes to rows that have none.

    Raises
    ------
    InputError
        As for ground truth, and as that function does.
    """
    outlines = columns.outlines
    assert outlines is not None
    sizes = _listed_sizes(truth.images, truth.image_sizes)
    if truth.masks is not None and truth.mask is not None:
        _learn(sizes, truth.image, truth.masks.sizes[truth.mask].astype(np.int64))
    if not len(truth):  # detections by themselves: nobody else says what the sizes are
        _learn_of_runs(sizes, outlines, columns.image)
        sizes[(sizes == UNKNOWN).any(axis=1)] = _WIDEST
    masks = _masks(outlines, columns.image, sizes, truth.images, source)
    mask = np.cumsum(outlines.has, dtype=np.int32) - np.int32(1)
    extra: dict[str, Any] = {}
    boxless = np.isnan(columns.box_area)
    if boxless.any():
        columns, extra["area"] = _boxed(columns, boxless, mask, masks)
    if keep:
        masks, extra["mask"] = _with_boxes(masks, mask, columns, sizes, source)
        extra["masks"] = masks
    table = detection_table(columns, truth, source, **extra)
    return replace(table, notes=(*table.notes, *_notes(outlines))) if keep else table


def _boxed(
    columns: Columns, boxless: NDArray[np.bool_], mask: Integers, masks: Masks
) -> tuple[Columns, NDArray[np.float64]]:
    """Give rows without a box that of their mask; return their pixels, of others the box's, too."""
    pixels, boxes = measured(masks.arrays)
    own = boxes[mask[boxless]]
    corners, box_area = columns.corners.copy(), columns.box_area.copy()
    corners[boxless, :2] = own[:, :2]
    corners[boxless, 2:] = own[:, :2] + own[:, 2:]
    box_area[boxless] = own[:, 2] * own[:, 3]
    area = box_area.copy()
    area[boxless] = pixels[mask[boxless]]
    return replace(columns, corners=corners, box_area=box_area), area


def _with_boxes(
    masks: Masks, mask: Integers, table: DetectionColumns, sizes: Sizes, source: Source
) -> tuple[Masks, Integers]:
    """Let rows without a mask have their box as a polygon, as pycocotools draws it."""
    assert table.outlines is not None
    bare = np.flatnonzero(~table.outlines.has)
    if not len(bare):
        return masks, mask
    unknown = bare[(sizes[table.image[bare]] == UNKNOWN).any(axis=1)]
    _refuse(((int(row), *_UNSIZED) for row in unknown), source)
    left, top, right, bottom = np.clip(table.corners[bare], -FARTHEST, FARTHEST).T
    points = np.stack([left, top, left, bottom, right, bottom, right, top], axis=1)
    count = len(bare)
    drawn = Masks(
        sizes[table.image[bare]].astype(np.int32),
        np.zeros(count + 1, np.int64),
        np.zeros(0, np.uint32),
        np.arange(count + 1, dtype=np.int64),
        4 * np.arange(1, count + 1, dtype=np.int64),
        points.reshape(-1, 2),
    )
    number = mask.copy()
    number[bare] = len(masks) + np.arange(count, dtype=np.int32)
    masks = Masks.joined([masks, drawn])
    rows = np.concatenate([np.flatnonzero(table.outlines.has), bare])
    _refuse(_endless(rows, masks, table.image[rows], source), source)
    return masks, number


def _listed_sizes(images: tuple[Name, ...], listed: Floats | None) -> Sizes:
    """Return height and width of each image, (I, 2); unknown where they are no whole numbers."""
    found = np.full((len(images), 2), UNKNOWN, np.int64)
    if listed is not None:
        sides = listed[:, ::-1]
        with np.errstate(invalid="ignore"):
            usable = ((sides > 0) & (sides < _MOST) & (sides == np.floor(sides))).all(axis=1)
        found[usable] = sides[usable].astype(np.int64)
    return found


def _learn(sizes: Sizes, image: Integers, of_masks: Sizes) -> None:
    """Take the sizes of images that no list has from the first of their masks."""
    first = np.unique(image, return_index=True)[1]
    rows = first[(sizes[image[first]] == UNKNOWN).any(axis=1)]
    sizes[image[rows]] = of_masks[rows]


def _learn_of_runs(sizes: Sizes, outlines: Outlines, image: Integers) -> None:
    """Take those that no list has from the first run lengths of the image."""
    own = outlines.sizes.astype(np.int64)
    ran = own[:, 0] > 0
    _learn(sizes, image[np.flatnonzero(outlines.has)[ran]], own[ran])


_UNSIZED = (
    "lies on an image without width and height, which polygons and boxes as masks need",
    "give both under images of the ground truth",
)


_FEWER_RUNS = "simplify the polygons, or raise the limit (--max-mask-runs) if that is meant"


def _masks(
    outlines: Outlines, image: Integers, sizes: Sizes, images: tuple[Name, ...], source: Source
) -> Masks:
    rows = np.flatnonzero(outlines.has)
    own = outlines.sizes.astype(np.int64)
    _learn_of_runs(sizes, outlines, image)
    due = sizes[image[rows]]
    _refuse(_misfits(rows, own, due, images, image), source)
    masks = Masks(
        due.astype(np.int32),
        outlines.run_start,
        outlines.runs,
        outlines.ring_start,
        outlines.ring_end,
        outlines.points,
    )
    _refuse(_endless(rows, masks, image[rows], source), source)
    return masks


def _endless(
    rows: NDArray[np.intp], masks: Masks, image: Integers, source: Source
) -> Iterator[tuple[int, str, str]]:
    """Yield polygons that would take more memory than the limits allow, the largest of an image."""
    pixels = masks.sizes.astype(np.int64).prod(axis=1)
    polygons = np.diff(masks.ring_start) > 0
    for place in np.flatnonzero(polygons & (pixels > MOST_PIXELS)).tolist():
        height, width = masks.sizes[place].tolist()
        message = f"lies on an image {height} high and {width} wide: {pixels[place]} pixels"
        hint = f"masks have at most {MOST_PIXELS}; give the image its size"
        yield int(rows[place]), message, hint
    limit = source.limits.mask_runs
    runs = most_runs(masks.arrays)
    totals = np.bincount(image, runs)
    for large in np.flatnonzero(totals > limit).tolist():
        of_image = np.flatnonzero(image == large)
        place = of_image[np.argmax(runs[of_image])]
        message = (
            f"segmentation may become {runs[place]} runs of pixels, and all of its image "
            f"{int(totals[large])}: above the limit of {limit}"
        )
        yield int(rows[place]), message, _FEWER_RUNS


def _misfits(
    rows: NDArray[np.intp], own: Sizes, due: Sizes, images: tuple[Name, ...], image: Integers
) -> Iterator[tuple[int, str, str]]:
    """Yield what is wrong with the sizes of masks: the row, the fault and its remedy."""
    ran = own[:, 0] > 0
    for place in np.flatnonzero(~ran & (due == UNKNOWN).any(axis=1)).tolist():
        yield int(rows[place]), *_UNSIZED
    for place in np.flatnonzero(ran & (own != due).any(axis=1)).tolist():
        row = int(rows[place])
        (height, width), (high, wide) = own[place].tolist(), due[place].tolist()
        hint = "give the mask the size of its image"
        if (height, width) == (wide, high):
            hint = "size is [height, width], in this order"
        yield (
            row,
            f"segmentation has the size [{height}, {width}], and image {images[image[row]]!r} is "
            f"{high} high and {wide} wide",
            hint,
        )


def _refuse(faults: Iterable[tuple[int, str, str]], source: Source) -> None:
    file = shown(source.file.path)
    found = [Problem(file, source.location(row), message, hint) for row, message, hint in faults]
    if found:
        most = source.limits.problems
        raise InputError(found[:most], max(len(found) - most, 0))


def _notes(outlines: Outlines) -> Iterator[Note]:
    bare = int(np.count_nonzero(~outlines.has))
    if bare:
        message = "detections have a bbox and no segmentation; the box is their mask"
        yield Note("boxes-as-masks", message, bare)
    if outlines.listed:
        message = (
            "detections have polygons, or run lengths as a list: they are read, and pycocotools "
            "reads none of the kind in results"
        )
        yield Note("results-not-compressed", message, outlines.listed, severity="info")
