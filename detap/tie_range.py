"""How far the numbers move with the order of equally scored detections.

Scores that tie leave their order open: the file decides, or the image, and no tool says so. Here
the detections are scored again in two other orders that the scores allow: among equal scores, those
that were true positives first, and those last.

No order of equal scores gives a higher (or lower) AP than these two where tied detections do not
compete for the same ground truth. Where they do, which of them wins changes with the order too, and
an order may exist that goes a little further: finding it would mean trying them all.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from detap.detection import score_tables
from detap.results import Result
from detap.tables import Integers


class TieRange(NamedTuple):
    """A number as it is, and at its lowest and highest over the orders tried."""

    lowest: float
    value: float
    highest: float


def tie_range(result: Result, *, threads: int | None = None) -> dict[str, TieRange]:
    """Return how far each number of the summary moves with the order of equal scores.

    Parameters
    ----------
    result : Result
        Of any protocol in which scores rank.
    threads : int, optional
        As for :func:`detap.detection.evaluate`.
    """
    others = [
        score_tables(
            result.ground_truth,
            result.detections.select(order),
            replace(result.protocol, ties="file"),
            threads=threads,
        ).summary
        for order in _orders(result)
    ]
    found = {}
    for name, value in result.summary.items():
        values = [value, *(other[name] for other in others)]
        found[name] = TieRange(min(values), value, max(values))
    return found


def _orders(result: Result) -> tuple[Integers, Integers]:
    """Return the rows with the true positives of each tie first, and with them last."""
    matches = result.with_matches().matches
    if matches is None:  # proposals: scores do not rank
        rows = np.arange(len(result.detections), dtype=np.int32)
        return rows, rows
    won = ((matches.ground_truth[0] >= 0) & ~matches.neutral[0]).sum(axis=0)
    score = result.detections.score
    return (
        np.lexsort((-won, -score)).astype(np.int32),
        np.lexsort((won, -score)).astype(np.int32),
    )
