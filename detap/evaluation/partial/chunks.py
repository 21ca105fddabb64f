"""A class that is too large to be put together at once: a stretch of its rows after another."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from detap.core.packing import narrow
from detap.evaluation.partial.blocks import BlockSlice, ClassColumns, Order, Words
from detap.tables.detection import Floats

Part = tuple[BlockSlice, ClassColumns, NDArray[np.uint32]]
Bins = Callable[[BlockSlice, ClassColumns, slice], NDArray[np.int64]]
"""From rows to numbers in whose order stretches come; rows of one number are in one stretch."""

_BITS = 20
"""Scores are told apart by so many bits of their order."""


def by_score(parts: Sequence[Part], label: int, most: int) -> Iterator[Callable[[], list[Part]]]:
    """Yield what returns the detections of a class by falling score, some at a time.

    Parameters
    ----------
    parts : sequence of (BlockSlice, ClassColumns, (P,) uint32)
        As :func:`detap.evaluation.partial.blocks.gather` takes them.
    label : int
        The class, which is alone and 0 in what is yielded.
    most : int
        So many detections at a time, or those whose scores are next to equal.
    """
    return _chunks(
        parts, label, most, (lambda _, side, rows: _falling(side.score[rows]), 1 << _BITS)
    )


def by_group(parts: Sequence[Part], label: int, most: int, order: Order) -> Iterator[list[Part]]:
    """Yield the rows of a class in the union's order, some groups of images at a time.

    Parameters
    ----------
    parts, label, most
        As for :func:`by_score`.
    order : Order
    """

    def group(piece: BlockSlice, side: ClassColumns, rows: slice) -> NDArray[np.int64]:
        return order.group[piece.images[side.image[rows]]].astype(np.int64)

    for chunk in _chunks(parts, label, most, (group, order.groups)):
        yield chunk()


def _chunks(
    parts: Sequence[Part], label: int, most: int, bins: tuple[Bins, int]
) -> Iterator[Callable[[], list[Part]]]:
    number_of, count = bins
    owners = [(part, _rows_of(part, label)) for part in parts]
    counts = np.zeros(count, np.int64)
    for (piece, side, _), rows in owners:
        for some in _cut(rows, most):
            counts += np.bincount(number_of(piece, side, some), minlength=count)
    number = _numbered(counts, most)
    numbers = []
    for (piece, side, _), rows in owners:
        of_rows = [number[number_of(piece, side, some)] for some in _cut(rows, most)]
        numbers.append(np.concatenate([number[:0], *of_rows]))
    for chunk in range(int(number.max(initial=0)) + 1):
        yield partial(_chosen, owners, numbers, chunk)


def _chosen(
    owners: Sequence[tuple[Part, slice]], numbers: Sequence[Words], chunk: int
) -> list[Part]:
    chosen = []
    for ((piece, side, code), place), which in zip(owners, numbers, strict=True):
        rows = np.flatnonzero(which == chunk) + place.start
        start = np.array([0, len(rows)], np.int64)
        score = side.score[rows] if len(side.score) else side.score
        few = ClassColumns(start, side.image[rows], side.code[rows], score)
        chosen.append((piece._replace(labels=np.zeros(1, np.int32)), few, code))
    return chosen


def _rows_of(part: Part, label: int) -> slice:
    """Return where the rows of a class stand; a block has each class once."""
    piece, side, _ = part
    for place in np.flatnonzero(piece.labels == label).tolist():
        return slice(int(side.start[place]), int(side.start[place + 1]))
    return slice(0, 0)


def _cut(rows: slice, most: int) -> Iterator[slice]:
    for begin in range(rows.start, rows.stop, most):
        yield slice(begin, min(begin + most, rows.stop))


def _numbered(counts: NDArray[np.int64], most: int) -> Words:
    """Return the number of the stretch that each bin is in."""
    number, held = 0, 0
    numbers = np.zeros(len(counts), np.uint32)
    for place in np.flatnonzero(counts).tolist():
        count = int(counts[place])
        if held and held + count > most:
            number, held = number + 1, 0
        held += count
        numbers[place] = number
    return numbers.astype(narrow(number))


def _falling(score: Floats) -> NDArray[np.int64]:
    """Return numbers that rise as scores fall: the first bits of their order, (n,) int64."""
    bits = (score + 0.0).view(np.uint64)  # -0.0 ties with 0.0
    sign = np.uint64(1 << 63)
    falling = np.where(bits >= sign, bits, ~(bits | sign))
    return (falling >> np.uint64(64 - _BITS)).astype(np.int64)
