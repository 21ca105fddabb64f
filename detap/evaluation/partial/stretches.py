"""A class that is too large to be ranked at once, a stretch of its scores after another."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from detap.core.packing import narrow
from detap.evaluation.partial.blocks import Piece, Rowwise, Words
from detap.tables.detection import Floats

Part = tuple[Piece, Rowwise, NDArray[np.uint32]]

_BITS = 20
"""Scores are told apart by so many bits of their order; stretches end between these."""


def stretches(parts: Sequence[Part], label: int, most: int) -> Iterator[list[Part]]:
    """Yield the detections of a class by falling score, some at a time.

    Parameters
    ----------
    parts : sequence of (Piece, Rowwise, (P,) uint32)
        As :func:`detap.evaluation.partial.blocks.gather` takes them.
    label : int
        The class, which is alone and 0 in what is yielded.
    most : int
        So many detections at a time, or those whose scores are next to equal.
    """
    owners = [(part, *_rows_of(part, label)) for part in parts]
    counts = np.zeros(1 << _BITS, np.int64)
    for (_, side, _), low, high in owners:
        for begin in range(low, high, most):
            here = side.score[begin : min(begin + most, high)]
            counts += np.bincount(_bins(here), minlength=len(counts))
    number = _numbered(counts, most)
    numbers = [_of_rows(side.score[low:high], number, most) for (_, side, _), low, high in owners]
    for stretch in range(int(number.max()) + 1):
        chosen = []
        for ((piece, side, code), low, _), which in zip(owners, numbers, strict=True):
            rows = np.flatnonzero(which == stretch) + low
            start = np.array([0, len(rows)], np.int64)
            few = Rowwise(start, side.image[rows], side.code[rows], side.score[rows])
            alone = piece._replace(labels=np.zeros(1, np.int32))
            chosen.append((alone, few, code))
        yield chosen


def _rows_of(part: Part, label: int) -> tuple[int, int]:
    """Return where the rows of a class begin and end; a block has each class once."""
    piece, side, _ = part
    for place in np.flatnonzero(piece.labels == label).tolist():
        return int(side.start[place]), int(side.start[place + 1])
    return 0, 0


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


def _of_rows(score: Floats, number: Words, most: int) -> Words:
    found = np.empty(len(score), number.dtype)
    for begin in range(0, len(score), most):
        found[begin : begin + most] = number[_bins(score[begin : begin + most])]
    return found


def _bins(score: Floats) -> NDArray[np.int64]:
    """Return numbers that rise as scores fall: the first bits of their order, (n,) int64."""
    bits = (score + 0.0).view(np.uint64)  # -0.0 ties with 0.0
    sign = np.uint64(1 << 63)
    falling = np.where(bits >= sign, bits, ~(bits | sign))
    return (falling >> np.uint64(64 - _BITS)).astype(np.int64)
