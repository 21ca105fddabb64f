"""How noisy numbers of a ranking are: means over queries, which are resampled."""

from functools import cache, partial

from detap.analysis.bootstrap import interval
from detap.analysis.power import LEVEL
from detap.errors import UsageError
from detap.escaping import escape
from detap.gates.checks import Interval
from detap.gates.config import GateConfig
from detap.gates.metric_names import MetricName
from detap.ranking.bootstrap import left_out_means, resampled_means
from detap.ranking.retrieval import RetrievalResult
from detap.tables.detection import Floats


class QueryIntervals:
    """Intervals of drops of means over queries."""

    unit = "query"

    def __init__(
        self, then: RetrievalResult | None, now: RetrievalResult, demands: GateConfig
    ) -> None:
        self.confidence = LEVEL if demands.confidence is None else demands.confidence
        self.paired = then is not None
        self._then, self._now = then, now
        # Of one ranking each mean is drawn once, for interval and spread.
        self._means = cache(partial(_means_of, resamples=demands.resamples, seed=demands.seed))

    def interval(self, name: MetricName) -> Interval:
        """Return the interval of the drop of a number.

        Raises
        ------
        UsageError
            Where it is not a mean over queries.
        """
        drops = self.drop(name)
        if drops is None or self._then is None:
            raise UsageError(
                f"{escape(name.text)!r} is of one query: it has no interval; leave it or "
                "--confidence out"
            )
        before, after = (
            left_out_means(result.contributions(name.measure)) for result in (self._then, self._now)
        )
        return interval(drops, self.confidence, before - after)

    def drop(self, name: MetricName) -> Floats | None:
        """Return the drop of a number in each resample; None where it has none."""
        before, after = self._series(name, self._then), self._series(name, self._now)
        return None if before is None or after is None else before - after

    def number(self, name: MetricName) -> Floats | None:
        """Return a number in each resample; None where it is not a mean over queries."""
        return self._series(name, self._now)

    def _series(self, name: MetricName, result: RetrievalResult | None) -> Floats | None:
        if result is None or name.in_rows:
            return None
        return self._means(result, name.measure)

    def count(self, tag: str | None) -> int:
        """Return how many queries there are."""
        return len(self._now.queries)


def _means_of(result: RetrievalResult, measure: str, *, resamples: int, seed: int) -> Floats:
    return resampled_means(result.contributions(measure), resamples=resamples, seed=seed)
