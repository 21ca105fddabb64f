"""Validated columns of COCO files, as returned by both readers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.protocols.summary import FREQUENCIES
from detap.tables.detection import Flags, Floats, GroundTruth, Integers, Name

SHAPE_OF_TRUTH = "expected an object with images, annotations, categories"
SHAPE_OF_RESULTS = "expected a results list with image_id, category_id, bbox, score"


@dataclass(frozen=True, slots=True, eq=False)
class Segmentations:
    """The segmentations of N rows; M rows have one.

    Attributes
    ----------
    has : (N,) bool
        True if the row has one.
    sizes : (M, 2) int32
        Height and width of RLE; 0 for polygons.
    run_start, runs, ring_start, ring_end, points
        As in :class:`detap.tables.masks.Masks`.
    listed : int
        Number of polygons and uncompressed RLE.
    """

    has: Flags
    sizes: Integers
    run_start: NDArray[np.int64]
    runs: NDArray[np.uint32]
    ring_start: NDArray[np.int64]
    ring_end: NDArray[np.int64]
    points: Floats
    listed: int


@dataclass(frozen=True, slots=True, eq=False)
class KeypointColumns:
    """The keypoints of G annotations, P each.

    Attributes
    ----------
    points : (G, P, 3) float64
        x, y, v.
    width_height : (G, 2) float64
        Size of the bbox.
    no_keypoints : (G,) bool
        True if the annotation has no labeled keypoint.
    """

    points: Floats
    width_height: Floats
    no_keypoints: Flags


@dataclass(frozen=True, slots=True, eq=False)
class TruthColumns:
    """An instances file: G annotations in file order; I images, K categories by id.

    Attributes
    ----------
    image_ids : tuple of int or str, length I
    image_sizes : (I, 2) float64
        Width and height in pixels; NaN if missing or unusable.
    class_ids : tuple of int or str, length K
    class_names : tuple of str or None, length K
        None if missing.
    image, label : (G,) int32
        Index into `image_ids` and `class_ids`.
    corners : (G, 4) float64
        x, y, x + w, y + h.
    box_area : (G,) float64
        w * h; NaN if the row has a mask and no box.
    area : (G,) float64
        Annotated area, or w * h.
    crowd, ignore, group_of : (G,) bool
        The flags `iscrowd`, `ignore` and `isgroupof`.
    records : int
        Annotations in the file, including repeated ones.
    zero_row : int
        Row of the annotation with id 0, or -1.
    origin : (G,) int64 or None
        Record index of each row; None if they are equal.
    counts : dict of str to int
        Counts of the notes, by code.
    repeated : dict of str to sequence of int or str
        Ids of repeated images, annotations and categories.
    difficult : (G,) bool or None
        The flag of other formats that use these columns.
    listed : mapping of str to (P, 2) int32
        As in :class:`detap.tables.detection.GroundTruth`.
    groups : mapping of int or str to str
        As in :class:`detap.tables.detection.GroundTruth`.
    segmentations : Segmentations or None
        If masks are read; every row has one.
    keypoints : KeypointColumns or None
        If keypoints are read.
    extra : mapping of str to (G,) array
        Further attributes, of numbers or text.
    """

    image_ids: tuple[Name, ...]
    image_sizes: Floats
    class_ids: tuple[Name, ...]
    class_names: tuple[str | None, ...]
    image: Integers
    label: Integers
    corners: Floats
    box_area: Floats
    area: Floats
    crowd: Flags
    ignore: Flags
    group_of: Flags
    records: int
    zero_row: int
    origin: NDArray[np.int64] | None
    counts: dict[str, int]
    repeated: Mapping[str, Sequence[Name]] = field(default_factory=dict)
    difficult: Flags | None = None
    listed: Mapping[str, Integers] = field(default_factory=dict)
    groups: Mapping[Name, str] = field(default_factory=dict)
    segmentations: Segmentations | None = None
    keypoints: KeypointColumns | None = None
    extra: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class DetectionColumns:
    """A results file: N detections in file order.

    Attributes
    ----------
    image : (N,) int32
        Index into the images of the ground truth.
    label : (N,) int32
        Index into its K classes; from K on, into `unknown`.
    corners : (N, 4) float64
        x, y, x + w, y + h.
    box_area : (N,) float64
        w * h; NaN if the row has a mask and no box.
    score : (N,) float64
    unknown : dict of int or str to int
        Number of detections by category that is not in the ground truth, in order of occurrence.
    file_names : dict of int or str to str
        File names in the results' own list of images.
    categories : dict of int or str to str
        Names in the results' own list of categories.
    segmentations : Segmentations or None
        If masks are read, or a row has no box.
    keypoints : (N, P, 2) float64 or None
        If keypoints are read.
    polygons : (N, 8) float64 or None
        Corners of oriented boxes, if a row has them instead of a box.
    by_file : bool
        True if images were matched by file name, not by id.
    """

    image: Integers
    label: Integers
    corners: Floats
    box_area: Floats
    score: Floats
    unknown: dict[Name, int]
    file_names: Mapping[Name, str]
    categories: Mapping[Name, str] = field(default_factory=dict)
    segmentations: Segmentations | None = None
    keypoints: Floats | None = None
    polygons: Floats | None = None
    by_file: bool = False


def keypoints_of(truth: GroundTruth) -> int | None:
    """Return the number of keypoints per ground truth; None if unknown."""
    if truth.keypoints is None or not len(truth):
        return None
    return int(truth.keypoints.shape[1])


LISTS = {"negative": "neg_category_ids", "not_exhaustive": "not_exhaustive_category_ids"}
"""Keys of the category lists in image records."""


def listed_pairs(
    image: Integers, label: Integers, lists: int, name: str, columns: "TruthColumns"
) -> "TruthColumns":
    """Add a category list of the images to the columns, without unknown categories.

    Parameters
    ----------
    image, label : (P,) int32
        Indices; -1 for an unknown category.
    lists : int
        Number of images with a list.
    name : str
        A key of :data:`LISTS`.
    columns : TruthColumns
    """
    known, width = label >= 0, len(columns.class_ids)
    keys = np.sort(image[known] * np.int64(width) + label[known])
    distinct = keys[np.diff(keys, prepend=-1) > 0]  # np.unique would import numpy.ma
    pairs = np.stack(np.divmod(distinct, width), axis=1).astype(np.int32)
    counts = {
        f"{name}-of-unknown-categories": int(np.count_nonzero(~known)),
        f"images-without-{name}": len(columns.image_ids) - lists,
    }
    return replace(
        columns, listed={**columns.listed, name: pairs}, counts={**columns.counts, **counts}
    )


def groups_of(categories: Iterable[Any]) -> dict[Name, str]:
    """Return the LVIS frequency group of each category."""
    letters = listed_names(categories, "frequency").items()
    return {name: FREQUENCIES[letter] for name, letter in letters if letter in FREQUENCIES}


def listed_names(records: Iterable[Any], key: str) -> dict[Name, str]:
    """Return the text under a key by id, from a list of images or categories."""
    return {
        record["id"]: record[key]
        for record in records
        if isinstance(record, dict)
        and isinstance(record.get("id"), int | str)
        and isinstance(record.get(key), str)
    }
