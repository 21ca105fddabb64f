"""From evidence to counts, precision and recall.

Axes: T thresholds, R recall levels, K classes, A area ranges, M detection limits. Undefined is NaN.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core import _finishing
from detap.core.evidence import Evidence
from detap.core.rules import Rules
from detap.core.threads import share, thread_count

Floats = NDArray[np.float64]


class Scores(NamedTuple):
    """What scoring gives.

    Attributes
    ----------
    precision : (M, A, T, R, K) float64
        Interpolated; M is 1, the largest limit, unless all limits were asked for.
    average : (T, K, A) float64
        Average precision at the largest limit.
    recall : (T, K, A, M) float64
        Final recall.
    positives : (A, K) int64
        Ground truths that count.
    counts : (7, K) int64
        At the first threshold and area range and the largest limit: ground truths that count,
        neutral ones, all detections, true positives, false positives, duplicates among those,
        and detections within the limit.
    evidence : Evidence or None
        What these come from, where it was asked for.
    """

    precision: Floats
    average: Floats
    recall: Floats
    positives: NDArray[np.int64]
    counts: NDArray[np.int64]
    evidence: Evidence | None = None

    @classmethod
    def undefined(cls, rules: Rules, classes: int, *, all_limits: bool) -> "Scores":
        """Return room for scores, where nothing is defined and all counts are 0."""
        t, a, m = len(rules.thresholds), len(rules.area_ranges), len(rules.limits)
        return cls(
            precision=np.full((m if all_limits else 1, a, t, len(rules.levels), classes), np.nan),
            average=np.full((t, classes, a), np.nan),
            recall=np.full((t, classes, a, m), np.nan),
            positives=np.zeros((a, classes), np.int64),
            counts=np.zeros((7, classes), np.int64),
        )


def finish(evidence: Evidence, *, threads: int | None = None, all_limits: bool = False) -> Scores:
    """Return the scores that evidence comes to, the very bits that matching and scoring give.

    Parameters
    ----------
    evidence : Evidence
        Of one table, or concatenated.
    threads : int, optional
        The result does not depend on it.
    all_limits : bool
        Whether precision is wanted at every detection limit, not only the largest.
    """
    scores = Scores.undefined(evidence.rules, evidence.classes, all_limits=all_limits)
    scores.positives[:] = evidence.positives
    replay = _finishing.Replay(evidence, scores, all_limits)
    wanted = threads or thread_count(len(evidence))
    share(replay.work, min(wanted, max(evidence.classes, 1)))
    truths = np.bincount(evidence.truth_label, minlength=evidence.classes)
    scores.counts[1] = truths - scores.positives[0]
    scores.counts[2] = np.bincount(evidence.label, minlength=evidence.classes)
    return scores._replace(evidence=evidence)
