"""Training losses of a retrieval, query by query."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core.ranking import QUERIES
from detap.protocols.ranking import Retrieval
from detap.ranking import losses
from detap.ranking.similarity import Similarities
from detap.tables.ranking import Gallery, Run

Floats = NDArray[np.float64]


LOSSES: dict[str, Callable[[Floats, NDArray[np.bool_]], losses.Value]] = {
    "ap": losses.ap_loss,
    "smooth_ap": losses.smooth_ap_loss,
    "sup_ap": losses.sup_ap_loss,
    "quantized_ap": losses.quantized_ap_loss,
    "quantized_tie_ap": partial(losses.quantized_ap_loss, form="tie-aware"),
    "fast_ap": losses.fast_ap_loss,
    "calibration": losses.calibration_loss,
    "roadmap": losses.roadmap_loss,
}
"""The losses by the key of the report, in their published settings."""

PARAMETERS = {
    "smooth_ap": {"tau": 0.01},
    "sup_ap": {"tau": 0.01, "delta": 0.05, "rho": 100.0, "offset": 1.44, "tie": 1.0},
    "quantized_ap": {"bins": 20, "low": -1.0, "high": 1.0},
    "quantized_tie_ap": {"bins": 20, "low": -1.0, "high": 1.0},
    "fast_ap": {"bins": 10},
    "calibration": {"alpha": 0.9, "beta": 0.6},
    "roadmap": {"weight": 0.5},
}
"""These settings, for the report."""

GAPS = ("gap", "bound", "calibrated_bound", "worst_bound")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Objectives:
    """The losses and gaps of Q queries.

    Attributes
    ----------
    losses : dict of str to (Q,) float64
        By key of :data:`LOSSES`; NaN where a query has no relevant item that is ranked.
    batches : int or None
        Number of batches for the gap.
    gaps : dict of str to (Q,) float64
        By name of :data:`GAPS`; empty without batches.
    applies : (Q,) bool
        True if the bounds apply to the query; empty without batches.
    """

    losses: dict[str, Floats]
    batches: int | None
    gaps: dict[str, Floats]
    applies: NDArray[np.bool_]


def objectives(
    table: Run | Gallery,
    protocol: Retrieval,
    *,
    with_losses: bool = True,
    batches: int | None = None,
) -> Objectives:
    """Return the losses of a retrieval, and its decomposability gap.

    Codes have the score ``1 - 2 d / B`` for a Hamming distance d of B bits, their cosine. Of a run
    only the items that are ranked take part: the others have no score.

    Parameters
    ----------
    table : Run or Gallery
        The ranked items.
    protocol : Retrieval
        Which similarity, which grades are relevant, and whether queries meet themselves.
    with_losses : bool
        True to compute losses as well as gaps.
    batches : int, optional
        Number of nearly equal batches into which each query's items are split, in file order.
    """
    count = len(table.queries)
    loss_values = {key: np.full(count, nan) for key in (LOSSES if with_losses else ())}
    gaps = {name: np.full(count, nan) for name in (GAPS if batches else ())}
    applies = np.zeros(count if batches else 0, np.bool_)
    lists = _of_run(table, protocol) if isinstance(table, Run) else _of_gallery(table, protocol)
    for query, scores, relevant in lists:
        if not relevant.any():
            continue
        for key, values in loss_values.items():
            values[query] = LOSSES[key](scores, relevant).value
        if batches:
            parts = np.arange(len(scores)) * batches // len(scores)
            gap = losses.decomposability_gap(scores, relevant, parts)
            for name in GAPS:
                gaps[name][query] = getattr(gap, name)
            applies[query] = gap.applies
    return Objectives(losses=loss_values, batches=batches, gaps=gaps, applies=applies)


Scored = tuple[int, Floats, NDArray[np.bool_]]


def _of_run(run: Run, protocol: Retrieval) -> Iterator[Scored]:
    for query in range(len(run.queries)):
        rows = slice(run.start[query], run.start[query + 1])
        yield query, run.score[rows], run.grade[rows] >= protocol.relevant_from


def _of_gallery(table: Gallery, protocol: Retrieval) -> Iterator[Scored]:
    similarities = None if table.kind == "codes" else Similarities(table, protocol)
    signs = table.gallery * np.float32(2) - np.float32(1) if similarities is None else None
    block: NDArray[Any] = np.zeros((0, 0))
    for query in range(len(table.queries)):
        if similarities is not None:
            if query % QUERIES == 0:
                block = similarities.block(query, min(query + QUERIES, len(table.queries)))
            scores = block[query % QUERIES].astype(np.float64)
        else:
            code = table.query[query] * np.float32(2) - np.float32(1)
            scores = (signs @ code).astype(np.float64) / table.query.shape[1]
        labels = table.gallery_labels
        shared = table.query_labels[query] == labels
        if labels.ndim == 2:
            shared = (table.query_labels[query] & labels).any(axis=1)
        relevant = np.asarray(shared, np.bool_)
        if protocol.exclude_self:
            kept = np.arange(len(labels)) != query
            scores, relevant = scores[kept], relevant[kept]
        yield query, scores, relevant
