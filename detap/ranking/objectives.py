"""Training losses and decomposability gaps of a retrieval, per query."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core.ranking import QUERIES
from detap.display import Brief
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
"""The losses with their published parameters, by the key of the report."""

PARAMETERS = {
    "smooth_ap": {"tau": 0.01},
    "sup_ap": {"tau": 0.01, "delta": 0.05, "rho": 100.0, "offset": 1.44, "tie": 1.0},
    "quantized_ap": {"bins": 20, "low": -1.0, "high": 1.0},
    "quantized_tie_ap": {"bins": 20, "low": -1.0, "high": 1.0},
    "fast_ap": {"bins": 10},
    "calibration": {"alpha": 0.9, "beta": 0.6},
    "roadmap": {"weight": 0.5},
}
"""The parameters of the losses, for the report."""

GAPS = ("gap", "bound", "calibrated_bound", "worst_bound")
"""The numbers of :class:`detap.ranking.losses.Gap`."""


@dataclass(frozen=True, repr=False, slots=True, eq=False, kw_only=True)
class Objectives(Brief):
    """The losses and gaps of Q queries."""

    losses: dict[str, Floats]  # loss by key of `LOSSES`; NaN if no relevant item is ranked
    batches: int | None  # number of batches for the gap
    gaps: dict[str, Floats]  # number by name of `GAPS`; empty without batches
    applies: NDArray[np.bool_]  # (Q,) the bounds apply to the query; empty without batches


def objectives(
    table: Run | Gallery,
    protocol: Retrieval,
    *,
    with_losses: bool = True,
    batches: int | None = None,
) -> Objectives:
    """Compute the losses of a retrieval, and its decomposability gaps."""
    # The score of codes of B bits at Hamming distance d is 1 - 2 d / B, their cosine. For a run
    # only ranked items are used, as others do not have a score.
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
            batch = np.arange(len(scores)) * batches // len(scores)
            gap = losses.decomposability_gap(scores, relevant, batch)
            for name in GAPS:
                gaps[name][query] = getattr(gap, name)
            applies[query] = gap.applies
    return Objectives(losses=loss_values, batches=batches, gaps=gaps, applies=applies)


Scored = tuple[int, Floats, NDArray[np.bool_]]
"""Index of a query, and scores and relevance of its items."""


def _of_run(run: Run, protocol: Retrieval) -> Iterator[Scored]:
    """Yield the ranked items of each query of a run."""
    for query in range(len(run.queries)):
        rows = slice(run.start[query], run.start[query + 1])
        yield query, run.score[rows], run.grade[rows] >= protocol.relevant_from


def _of_gallery(table: Gallery, protocol: Retrieval) -> Iterator[Scored]:
    """Yield the items of the gallery for each query."""
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
        labels, of_query = table.gallery_labels, table.query_labels[query]
        shared = labels == of_query if labels.ndim == 1 else (labels & of_query).any(axis=1)
        relevant = np.asarray(shared, np.bool_)
        if protocol.exclude_self:
            mask = np.arange(len(labels)) != query
            scores, relevant = scores[mask], relevant[mask]
        yield query, scores, relevant
