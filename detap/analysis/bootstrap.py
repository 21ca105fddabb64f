"""How sure a number is: paired resamples of the images a detector was scored on.

See docs/bootstrap.md for the method, what it assumes, and how its coverage was tested.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from detap.core.evidence import Evidence
from detap.core.resampling import Wanted, Weights, detected_classes, draw_weights, resample
from detap.decimals import settled
from detap.errors import UsageError
from detap.evaluation.results import Result, averages_of_absent
from detap.tables.columns import MOST_ROWS, check_threads
from detap.tables.detection import Floats

__all__ = ["Resampled", "Weights", "draw_weights", "interval", "resampled"]


@dataclass(frozen=True, slots=True, eq=False)
class Resampled:
    """Numbers of one detector in B resamples of its images.

    Attributes
    ----------
    overall : dict of str to (B,) float64
        The mean over the classes that have a ground truth in the resample, by name.
    by_class : dict of str to (K, B) float64
        NaN where a class has none.
    """

    overall: dict[str, Floats]
    by_class: dict[str, Floats]


def resampled(
    result: Result,
    weights: Weights,
    names: Sequence[str],
    *,
    threads: int | None = None,
) -> Resampled:
    """Return numbers of a result in each resample of its images.

    Parameters
    ----------
    result : Result
        Of :func:`detap.evaluate`.
    weights : Weights
        As from :func:`draw_weights`. For a paired comparison, the same for both results.
    names : sequence of str
        As ``Protocol.measure`` knows them.
    threads : int, optional
        The result does not depend on it.

    Raises
    ------
    UsageError
        Where the protocol ranks no detections, which could be resampled.
    KeyError
        Where the protocol has no such number.
    """
    check_threads(threads)
    rules = result.protocol
    rules.refuse_unranked("use another --protocol, or leave out --confidence and --resolve-drop")
    measures = [rules.measure(name) for name in names]
    every = tuple(range(len(rules.iou_thresholds)))
    wanted = [
        Wanted(
            m.quantity == "AP", every if m.threshold is None else (m.threshold,), m.area, m.limit
        )
        for m in measures
    ]
    if not wanted:
        return Resampled({}, {})
    _check_weight(result.evidence, weights)
    values = resample(result.evidence, weights, wanted, threads=threads)
    if rules.absent_class != "undefined":
        absent = averages_of_absent(rules, detected_classes(result.evidence, weights))
        for entry, table in zip(wanted, values, strict=True):
            if entry.precision:
                np.copyto(table, absent, where=np.isnan(table))
    for measure, table in zip(measures, values, strict=True):
        if measure.group:
            table[~result.in_group(measure.group)] = np.nan
    return Resampled(
        {name: _mean(table) for name, table in zip(names, values, strict=True)},
        dict(zip(names, values, strict=True)),
    )


def interval(values: Floats, confidence: float) -> tuple[float, float]:
    """Return the percentile interval of resampled numbers; NaN where none is defined.

    Its ends are the resampled numbers of ranks ``B * (1 - confidence) / 2`` from below and from
    above, interpolated linearly. An end that is only rounding away from 0 is 0.

    Parameters
    ----------
    values : (B,) float64
        NaN entries, where the number was undefined in a resample, are left out.
    confidence : float
        Between 0 and 1.

    References
    ----------
    Efron and Tibshirani, An Introduction to the Bootstrap, 1993, section 13.3.
    """
    defined = values[~np.isnan(values)]
    if not len(defined):
        return float("nan"), float("nan")
    tail = (1 - confidence) / 2
    low, high = np.quantile(defined, [tail, 1 - tail]).tolist()
    return settled(low, 0.0), settled(high, 0.0)


def _check_weight(evidence: Evidence, weights: Weights) -> None:
    """Refuse resamples that hold more rows, drawn as often as their images, than int32 counts."""
    for image in (evidence.image, evidence.truth_image):
        if len(image) * weights.heaviest <= MOST_ROWS:
            continue
        per_image = np.bincount(image, minlength=evidence.images)
        heaviest = max(int((per_image @ block).max()) for block in weights.blocks)
        if heaviest > MOST_ROWS:
            raise UsageError(
                f"a resample of the images holds {heaviest} boxes; at most {MOST_ROWS} can be "
                "counted: leave out the confidence"
            )


def _mean(table: Floats) -> Floats:
    """Return the mean over classes of what is defined, (B,) float64."""
    defined = ~np.isnan(table)
    counts = defined.sum(axis=0)
    sums: Floats = np.where(defined, table, 0.0).sum(axis=0)
    means = np.full(len(sums), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means
