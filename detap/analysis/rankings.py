"""AP of detections without scores over the rankings that they could have.

No ranking is right: the bounds hold for all of them (:mod:`detap.evaluation.tie_range`), and the
mean is over random ones, drawn by NumPy's PCG64.
"""

from dataclasses import replace
from math import sqrt

import numpy as np

from detap import metrics
from detap.evaluation.results import Result
from detap.evaluation.scoring import score_tables
from detap.evaluation.tie_range import tie_range

ORDERS = 100


def over_rankings(result: Result) -> dict[str, dict[str, float]]:
    """Return AP at all areas of detections without scores: bounds, value in file order, mean."""
    protocol = result.protocol.with_ranking()
    table, truth = result.detections, result.ground_truth
    tied = score_tables(truth, replace(table, score=np.ones(len(table))), protocol)
    names = [
        spec.name
        for spec in metrics.summary(protocol)
        if spec.metric.accumulated == "precision" and spec.area == 0 and not spec.group
    ]
    random = np.random.Generator(np.random.PCG64(0))
    drawn = []
    for _ in range(ORDERS):
        ranked = replace(table, score=random.permutation(len(table)).astype(np.float64))
        one = score_tables(truth, ranked, protocol, threads=result._run.threads)
        drawn.append([one.metric(name) for name in names])
    bounds, values = tie_range(tied), np.array(drawn).reshape(ORDERS, len(names))
    means, errors = values.mean(axis=0), values.std(axis=0, ddof=1) / sqrt(ORDERS)
    return {
        name: bounds[name]._asdict() | {"mean": mean, "standard_error": error, "orders": ORDERS}
        for name, mean, error in zip(names, means.tolist(), errors.tolist(), strict=True)
    }
