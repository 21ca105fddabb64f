"""What both readers of COCO files hand over: checked columns, not yet tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.protocols.summary import FREQUENCIES
from detap.records import Record
from detap.tables.detection import Flags, Floats, GroundTruth, Integers, Name

SHAPE_OF_TRUTH = "ground truth is an object with images, annotations and categories"
SHAPE_OF_RESULTS = "results are a list of objects with image_id, category_id, bbox and score"


class Outlines(Record):
    """The segmentations of a file, M of its N rows having one.

    Attributes
    ----------
    has : (N,) bool
        Whether a row has one.
    sizes : (M, 2) int32
        Height and width as run lengths give them; 0 for polygons.
    run_start, runs, ring_start, ring_end, points
        As :class:`detap.tables.masks.Masks` has them.
    listed : int
        How many are polygons, or run lengths as a list.
    """

    has: Flags
    sizes: Integers
    run_start: NDArray[np.int64]
    runs: NDArray[np.uint32]
    ring_start: NDArray[np.int64]
    ring_end: NDArray[np.int64]
    points: Floats
    listed: int


class Poses(Record):
    """The keypoints of G annotations, P each.

    Attributes
    ----------
    keypoints : (G, P, 3) float64
    sides : (G, 2) float64
    without : (G,) bool
        As :class:`detap.tables.detection.GroundTruth` has them, `without` as ``no_keypoints``.
    """

    keypoints: Floats
    sides: Floats
    without: Flags


class TruthColumns(Record):
    """An instances file; G annotations in file order, I images and K categories by ascending id.

    Attributes
    ----------
    image_ids : tuple of int or str
        I of them.
    image_sizes : (I, 2) float64
        Width and height in pixels; NaN where the file gives none that can be used.
    class_ids : tuple of int or str
        K of them.
    class_names : tuple of str or None
        K of them; None where the file gives none.
    image, label : (G,) int32
        Index into `image_ids` and `class_ids`.
    corners : (G, 4) float64
        x, y, x + w, y + h.
    box_area : (G,) float64
        w * h; NaN where the row has no box, but a mask.
    area : (G,) float64
        As annotated; w * h where the file gives none.
    crowd, ignore, group_of : (G,) bool
        The flags `iscrowd`, `ignore` and `isgroupof`.
    records : int
        Annotations in the file, repeated ones too.
    zero_row : int
        The row of the annotation whose id is 0; -1 where there is none.
    origin : (G,) int64 or None
        The record of each row; None where rows are records.
    counts : dict of str to int
        How many records lack or have something worth a note, by the note's code.
    repeated : dict of str to sequence of int or str
        The ids of the images, annotations and categories that repeat an earlier record.
    difficult : (G,) bool or None
        The flag of that name, which no COCO file has.
    listed : mapping of str to (P, 2) int32
        As :class:`detap.tables.detection.GroundTruth` has it.
    groups : mapping of int or str to str
        Likewise.
    outlines : Outlines or None
        Where masks are wanted; each row has one.
    poses : Poses or None
        Where keypoints are wanted.
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
    outlines: Outlines | None = None
    poses: Poses | None = None


class DetectionColumns(Record):
    """A results file; N detections in file order.

    Attributes
    ----------
    image : (N,) int32
        Index into the images of the ground truth.
    label : (N,) int32
        Index into its K classes; from K on, into `unknown`.
    corners : (N, 4) float64
        x, y, x + w, y + h.
    box_area : (N,) float64
        w * h; NaN where the row has no box, but a mask.
    score : (N,) float64
    unknown : dict of int or str to int
        How many detections each category has that the ground truth does not list, in the order
        in which they first occur.
    file_names : dict of int or str to str
        What the results file itself calls each image, if it lists any; else empty.
    categories : dict of int or str to str
        What it calls each category.
    outlines : Outlines or None
        Where masks are wanted, or a row has no box.
    keypoints : (N, P, 2) float64 or None
        Where keypoints are wanted.
    by_file : bool
        Whether images were matched by the names of their files, not by id.
    """

    image: Integers
    label: Integers
    corners: Floats
    box_area: Floats
    score: Floats
    unknown: dict[Name, int]
    file_names: Mapping[Name, str]
    categories: Mapping[Name, str] = field(default_factory=dict)
    outlines: Outlines | None = None
    keypoints: Floats | None = None
    by_file: bool = False


def keypoints_of(truth: GroundTruth) -> int | None:
    """Return how many keypoints a row of ground truth has; None where none says it."""
    if truth.keypoints is None or not len(truth):
        return None
    return int(truth.keypoints.shape[1])


LISTS = {"negative": "neg_category_ids", "not_exhaustive": "not_exhaustive_category_ids"}
"""What images list of categories, and under which key."""


def listed_pairs(
    image: Integers, label: Integers, lists: int, name: str, columns: "TruthColumns"
) -> "TruthColumns":
    """Return the columns with what images list of categories; what is unknown is left out.

    Parameters
    ----------
    image, label : (P,) int32
        By number; -1 of categories that are not known.
    lists : int
        How many images have a list.
    name : str
        Of the list, a key of :data:`LISTS`.
    columns : TruthColumns
    """
    known, width = label >= 0, len(columns.class_ids)
    distinct = np.unique(image[known] * np.int64(width) + label[known])
    pairs = np.stack(np.divmod(distinct, max(width, 1)), axis=1).astype(np.int32)
    counts = {
        f"{name}-of-unknown-categories": int(np.count_nonzero(~known)),
        f"images-without-{name}": len(columns.image_ids) - lists,
    }
    return replace(
        columns, listed={**columns.listed, name: pairs}, counts={**columns.counts, **counts}
    )


def groups_of(categories: Iterable[Any]) -> dict[Name, str]:
    """Return the group of each category that says how frequent it is, as LVIS does."""
    letters = listed_names(categories, "frequency").items()
    return {name: FREQUENCIES[letter] for name, letter in letters if letter in FREQUENCIES}


def listed_names(records: Iterable[Any], key: str) -> dict[Name, str]:
    """Return what a list of images or categories says of each id, under a key for text."""
    return {
        record["id"]: record[key]
        for record in records
        if isinstance(record, dict)
        and isinstance(record.get("id"), int | str)
        and isinstance(record.get(key), str)
    }
