"""Columns of whole images by class, gathered in the order of a union of images.

A detection is its score, its image, and an index into the table of distinct match flags; a ground
truth is its image, and an index into the table of kinds. Rows of a class are in tie-break order.

Axes: N detections, G ground truths, I images, K classes, A area ranges, M max dets,
P and Q distinct match flags of detections and kinds of ground truths.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from detap.core.jaccard import JaccardCounts
from detap.core.match_table import MatchFlags, MatchTable, empty_bits
from detap.core.packing import group_rows, is_sorted, narrowest_dtype, number_columns, rank_columns
from detap.core.params import MatchParams
from detap.evaluation.partial.jaccard_columns import select_classes, select_images
from detap.evaluation.partial.tie_columns import Ties
from detap.tables.detection import Flags, Floats, Integers

Bits = NDArray[np.unsignedinteger[Any]]
Rows = NDArray[np.int64]


class GroundTruthKinds(NamedTuple):
    """The Q distinct kinds of ground truths.

    Attributes
    ----------
    positive : (A, Q) bool
        True if not ignored.
    covered : (A * M, Q) unsigned
        Thresholds, as bits, at which a proposal matches them; (0, Q) unless matching is by IoU.
    """

    positive: Flags
    covered: Bits


Tables = TypeVar("Tables", MatchFlags, GroundTruthKinds)


class ClassColumns(NamedTuple):
    """The columns of detections or ground truths, sorted by class.

    Attributes
    ----------
    start : (K + 1,) int64
        The first row of each class.
    image, code : (n,) unsigned
        Indices into the block's images, and into its table of match flags or kinds.
    score : (n,) float64
        (0,) of ground truths.
    iou : (C, n) float64
        The IoU of each true positive with its ground truth, at the area ranges and thresholds of
        :func:`detap.metrics.of_matched_iou`; 0 for others.
    """

    start: Rows
    image: Bits
    code: Bits
    score: Floats
    iou: Floats = np.zeros((0, 0))

    def select_images(self, mask: Flags) -> "ClassColumns":
        """Return the rows of some images, with unchanged indices."""
        return self.select_rows(mask[self.image])

    def select_rows(self, mask: Flags) -> "ClassColumns":
        """Return some rows, with unchanged indices."""
        start = np.concatenate([[0], np.cumsum(mask, dtype=np.int64)])[self.start]
        return self._select(start, mask)

    def select_classes(self, mask: Flags) -> "ClassColumns":
        """Return the rows of some classes, with new indices."""
        counts = np.diff(self.start)
        start = np.concatenate([[0], np.cumsum(counts[mask], dtype=np.int64)])
        return self._select(start, np.repeat(mask, counts))

    def _select(self, start: Rows, rows: Flags) -> "ClassColumns":
        score = self.score[rows] if len(self.score) else self.score
        iou = self.iou[:, rows] if len(self.iou) else self.iou
        return ClassColumns(start, self.image[rows], self.code[rows], score, iou)


class Block(NamedTuple):
    """Detections and ground truths of whole images.

    Attributes
    ----------
    detections, ground_truths : ClassColumns
    match_flags : MatchFlags
    kinds : GroundTruthKinds
    proposals : (I,) unsigned
        The number per image; (0,) unless matching is by IoU.
    ties : Ties or None
        The tie groups, if kept.
    jaccard : tuple of JaccardCounts
        At the thresholds of :func:`detap.metrics.of_jaccard_counts`.
    """

    detections: ClassColumns
    ground_truths: ClassColumns
    match_flags: MatchFlags
    kinds: GroundTruthKinds
    proposals: Bits
    ties: Ties | None = None
    jaccard: tuple[JaccardCounts, ...] = ()


class BlockSlice(NamedTuple):
    """A block with the indices of its images and classes in a union.

    Attributes
    ----------
    block : Block
    images : (I,) int32
        The index in the union of each image of the block; -1 if dropped.
    labels : (K,) int32
        The index in the union of each class.
    """

    block: Block
    images: Integers
    labels: Integers

    @classmethod
    def full(cls, block: Block, images: int) -> "BlockSlice":
        """Return a block as the only one of a union."""
        classes = len(block.detections.start) - 1
        return cls(block, np.arange(images, dtype=np.int32), np.arange(classes, dtype=np.int32))

    def select_images(self, new_index: Integers) -> "BlockSlice":
        """Return the slice of some images: new index of each, or -1."""
        images = np.append(new_index, np.int32(-1))[self.images]
        mask = images >= 0
        block = self.block
        if not mask.all():
            block = block._replace(
                detections=block.detections.select_images(mask),
                ground_truths=block.ground_truths.select_images(mask),
                ties=None if block.ties is None else block.ties.select_images(mask),
                jaccard=tuple(select_images(counts, mask) for counts in block.jaccard),
            )
        return self._replace(block=block, images=images)

    def select_classes(self, new_index: Integers) -> "BlockSlice":
        """Return the slice of some classes: new index of each, or -1."""
        labels = new_index[self.labels]
        mask, block = labels >= 0, self.block
        if not mask.all():
            block = block._replace(
                detections=block.detections.select_classes(mask),
                ground_truths=block.ground_truths.select_classes(mask),
                ties=None if block.ties is None else block.ties.select_classes(mask),
                jaccard=tuple(select_classes(counts, mask) for counts in block.jaccard),
            )
        return self._replace(block=block, labels=labels[mask])


class Gathered(NamedTuple):
    """Rows of some classes of a union, in the union's order.

    Attributes
    ----------
    label, image : (n,) int32
        The class is relative to the first one; ascending.
    code : (n,) uint32
        Indices into the union's table of match flags or kinds.
    score : (n,) float64
        (0,) of ground truths.
    """

    label: Integers
    image: Integers
    code: NDArray[np.uint32]
    score: Floats


class Order(NamedTuple):
    """Order of the rows within a class: by group of images, then as in the block.

    Attributes
    ----------
    group : (I,) int32
        Group of each image of the union.
    groups : int
    """

    group: Integers
    groups: int


def block_of(match_table: MatchTable, iou: Sequence[Floats] = (), *, by_image: bool) -> Block:
    """Return the block of a match table.

    Parameters
    ----------
    match_table : MatchTable
    iou : sequence of C (N,) float64
        As in :class:`ClassColumns`.
    by_image : bool
        If True, ties break by image and then by row; otherwise by row.
    """
    match_flags, match_code = _distinct_columns(match_table.match_flags)
    rows = group_rows(match_table.image, match_table.images).order if by_image else None
    start, order = group_rows(match_table.label, match_table.classes, rows)
    image = match_table.image.astype(narrowest_dtype(max(match_table.images - 1, 0)))
    ground_truths, kinds = _ground_truths(
        (match_table.truth_label, match_table.truth_image),
        GroundTruthKinds(
            match_table.positive, no_bits(match_table.params, len(match_table.truth_label))
        ),
        (match_table.classes, match_table.images),
    )
    score = match_table.score[order] + 0.0  # -0.0 ties with 0.0
    columns = np.array([column[order] for column in iou]).reshape(len(iou), len(order))
    detections = ClassColumns(start, image[order], match_code[order], score, columns)
    return Block(detections, ground_truths, match_flags, kinds, np.zeros(0, np.uint8))


def block_of_proposals(
    bits: NDArray[np.uint64], counted: Flags, image: Integers, proposals: Rows, params: MatchParams
) -> Block:
    """Return the block of ground truths matched to proposals by IoU.

    Parameters
    ----------
    bits, counted, proposals
        As from :meth:`detap.evaluation.run.EvaluationRun.match_by_iou`.
    image : (G,) int32
        Image of each ground truth.
    params : MatchParams
    """
    empty = np.zeros(0, np.uint8)
    areas_and_limits = bits.shape[0] * bits.shape[1]
    narrower = bits.reshape(areas_and_limits, len(image)).astype(empty_bits(params, 0).dtype)
    ground_truths, kinds = _ground_truths(
        (np.zeros_like(image), image), GroundTruthKinds(counted, narrower), (1, len(proposals))
    )
    return Block(
        ClassColumns(np.zeros(2, np.int64), empty, empty, np.zeros(0)),
        ground_truths,
        no_match_flags(params),
        kinds,
        proposals.astype(narrowest_dtype(int(proposals.max(initial=0)))),
    )


def no_bits(params: MatchParams, ground_truths: int) -> Bits:
    """Return empty bits of matched proposals, (0, G)."""
    return empty_bits(params, ground_truths)[:0]


def no_match_flags(params: MatchParams) -> MatchFlags:
    """Return an empty table of match flags."""
    bits = empty_bits(params, 0)
    return MatchFlags(np.zeros(0, np.uint8), bits, bits, np.zeros(0, np.bool_))


def _ground_truths(
    labels_and_images: tuple[Integers, Integers], tables: GroundTruthKinds, counts: tuple[int, int]
) -> tuple[ClassColumns, GroundTruthKinds]:
    (label, image), (classes, images) = labels_and_images, counts
    kinds, kind = _distinct_columns(tables)
    by_kind = group_rows(kind.astype(np.int32), kinds.positive.shape[1]).order
    start, order = group_rows(label, classes, group_rows(image, images, by_kind).order)
    narrower = image.astype(narrowest_dtype(max(images - 1, 0)))
    return ClassColumns(start, narrower[order], kind[order], np.zeros(0)), kinds


def _distinct_columns(tables: Tables) -> tuple[Tables, Bits]:
    """Return the sorted distinct columns of tables, and the index of each column."""
    code, first = number_columns(*tables)
    few, (rank,) = merge_tables(
        [type(tables)._make(table.take(first, axis=-1) for table in tables)]
    )
    return few, rank.astype(narrowest_dtype(max(len(rank) - 1, 0)))[code]


def merge_tables(parts: Sequence[Tables]) -> tuple[Tables, list[NDArray[np.uint32]]]:
    """Return the sorted distinct columns of several tables, and their new indices.

    Parameters
    ----------
    parts : sequence of MatchFlags, or of GroundTruthKinds
        At least one.
    """
    merged = [np.concatenate(tables, axis=-1) for tables in zip(*parts, strict=True)]
    rank, columns = rank_columns(
        np.concatenate([np.atleast_2d(table).astype(np.uint64) for table in merged])
    )
    ends = np.cumsum([part[0].shape[-1] for part in parts])[:-1]
    return type(parts[0])._make(table.take(columns, axis=-1) for table in merged), np.split(
        rank.astype(np.uint32), ends
    )


def gather(
    parts: Sequence[tuple[BlockSlice, ClassColumns, NDArray[np.uint32]]],
    classes: range,
    order: Order,
) -> Gathered:
    """Return rows of some classes of a union, in the union's order.

    Parameters
    ----------
    parts : sequence of (BlockSlice, ClassColumns, (P,) uint32)
        Each slice, its detections or ground truths, and the merged indices of its table's
        entries.
    classes : range
        The classes of the union.
    order : Order
    """
    gathered = [_select_rows(*part, classes) for part in parts]
    merged = gathered[0]
    if len(gathered) > 1:
        merged = Gathered._make(map(np.concatenate, zip(*gathered, strict=True)))
    group = order.group[merged.image]
    if is_sorted(merged.label, group):
        return merged
    by_group = group_rows(group, order.groups).order
    moved = group_rows(merged.label, len(classes), by_group).order
    return Gathered._make(column[moved] if len(column) else column for column in merged)


def _select_rows(
    block_slice: BlockSlice, columns: ClassColumns, code: NDArray[np.uint32], classes: range
) -> Gathered:
    """Return the rows of some classes of one slice."""
    indices = np.flatnonzero(
        (block_slice.labels >= classes.start) & (block_slice.labels < classes.stop)
    )
    counts = np.diff(columns.start)[indices]
    label = np.repeat(block_slice.labels[indices] - np.int32(classes.start), counts)
    if not len(indices):
        rows: Any = slice(0, 0)
    elif len(indices) == indices[-1] - indices[0] + 1:
        rows = slice(columns.start[indices[0]], columns.start[indices[-1] + 1])
    else:
        ends = columns.start[indices], columns.start[indices + 1]
        rows = np.concatenate([np.arange(*each) for each in zip(*ends, strict=True)])
    image = block_slice.images[columns.image[rows]]
    score = columns.score[rows] if len(columns.score) else columns.score
    return Gathered(label, image, code[columns.code[rows]], score)
