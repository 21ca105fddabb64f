"""Chunks of a class that is too large to gather at once."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from detap.core.packing import narrowest_dtype
from detap.evaluation.partial.blocks import Bits, BlockSlice, ClassColumns, Order
from detap.tables.detection import Floats

Part = tuple[BlockSlice, ClassColumns, NDArray[np.uint32]]
Bins = Callable[[BlockSlice, ClassColumns, slice], NDArray[np.int64]]
"""Function from rows to bins; chunks follow the bins, and a bin is never split."""

_BITS = 20
"""Leading bits of a score that select its bin."""


def chunks_by_score(
    parts: Sequence[Part], label: int, max_rows: int
) -> Iterator[Callable[[], list[Part]]]:
    """Yield loaders for chunks of a class's detections, best scores first.

    Parameters
    ----------
    parts : sequence of (BlockSlice, ClassColumns, (P,) uint32)
        As for :func:`detap.evaluation.partial.blocks.gather`.
    label : int
        The class, which has index 0 in the chunks.
    max_rows : int
        The maximum rows of a chunk, unless one bin has more.
    """
    return _chunks(
        parts,
        label,
        max_rows,
        (lambda _, columns, rows: _descending_bins(columns.score[rows]), 1 << _BITS),
    )


def chunks_by_group(
    parts: Sequence[Part], label: int, max_rows: int, order: Order
) -> Iterator[list[Part]]:
    """Yield chunks of a class's rows in the union's order.

    Parameters
    ----------
    parts, label, max_rows
        As for :func:`chunks_by_score`.
    order : Order
    """

    def group(block_slice: BlockSlice, columns: ClassColumns, rows: slice) -> NDArray[np.int64]:
        return order.group[block_slice.images[columns.image[rows]]].astype(np.int64)

    for chunk in _chunks(parts, label, max_rows, (group, order.groups)):
        yield chunk()


def _chunks(
    parts: Sequence[Part], label: int, max_rows: int, bins: tuple[Bins, int]
) -> Iterator[Callable[[], list[Part]]]:
    bin_of, count = bins
    owners = [(part, _rows_of(part, label)) for part in parts]
    counts = np.zeros(count, np.int64)
    for (block_slice, columns, _), rows in owners:
        for row_slice in _split_rows(rows, max_rows):
            counts += np.bincount(bin_of(block_slice, columns, row_slice), minlength=count)
    chunk_of_bin = _chunk_of_bin(counts, max_rows)
    chunk_of_rows = []
    for (block_slice, columns, _), rows in owners:
        of_rows = [
            chunk_of_bin[bin_of(block_slice, columns, row_slice)]
            for row_slice in _split_rows(rows, max_rows)
        ]
        chunk_of_rows.append(np.concatenate([chunk_of_bin[:0], *of_rows]))
    for chunk in range(int(chunk_of_bin.max(initial=0)) + 1):
        yield partial(_select_chunk, owners, chunk_of_rows, chunk)


def _select_chunk(
    owners: Sequence[tuple[Part, slice]], chunk_of_rows: Sequence[Bits], chunk: int
) -> list[Part]:
    parts = []
    for ((block_slice, columns, code), index), chunks_of_rows in zip(
        owners, chunk_of_rows, strict=True
    ):
        rows = np.flatnonzero(chunks_of_rows == chunk) + index.start
        start = np.array([0, len(rows)], np.int64)
        score = columns.score[rows] if len(columns.score) else columns.score
        selected = ClassColumns(start, columns.image[rows], columns.code[rows], score)
        parts.append((block_slice._replace(labels=np.zeros(1, np.int32)), selected, code))
    return parts


def _rows_of(part: Part, label: int) -> slice:
    """Return the rows of a class; a block has each class once."""
    block_slice, columns, _ = part
    for index in np.flatnonzero(block_slice.labels == label).tolist():
        return slice(int(columns.start[index]), int(columns.start[index + 1]))
    return slice(0, 0)


def _split_rows(rows: slice, max_rows: int) -> Iterator[slice]:
    for begin in range(rows.start, rows.stop, max_rows):
        yield slice(begin, min(begin + max_rows, rows.stop))


def _chunk_of_bin(counts: NDArray[np.int64], max_rows: int) -> Bits:
    """Return the chunk index of each bin."""
    number, size = 0, 0
    numbers = np.zeros(len(counts), np.uint32)
    for index in np.flatnonzero(counts).tolist():
        count = int(counts[index])
        if size and size + count > max_rows:
            number, size = number + 1, 0
        size += count
        numbers[index] = number
    return numbers.astype(narrowest_dtype(number))


def _descending_bins(score: Floats) -> NDArray[np.int64]:
    """Return score bins, best scores first, (n,) int64."""
    bits = (score + 0.0).view(np.uint64)  # -0.0 ties with 0.0
    sign = np.uint64(1 << 63)
    descending = np.where(bits >= sign, bits, ~(bits | sign))
    return (descending >> np.uint64(64 - _BITS)).astype(np.int64)
