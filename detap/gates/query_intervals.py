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
        self, baseline: RetrievalResult | None, current: RetrievalResult, config: GateConfig
    ) -> None:
        self.confidence = LEVEL if config.confidence is None else config.confidence
        self.paired = baseline is not None
        self._then, self._now = baseline, current
        # Of one ranking each mean is drawn once, for interval and spread.
        self._means = cache(partial(_means_of, resamples=config.resamples, seed=config.seed))

    def interval(self, name: MetricName) -> Interval:
        """Return the interval of the drop of a number.

        Raises
        ------
        UsageError
            Where it is not a mean over queries.
        """
        drops = self.drops(name)
        if drops is None or self._then is None:
            raise UsageError(
                f"{escape(name.text)!r} is of one query: it has no interval; leave it or "
                "--confidence out"
            )
        before, after = (
            left_out_means(result.contributions(name.metric)) for result in (self._then, self._now)
        )
        return interval(drops, self.confidence, before - after)

    def drops(self, name: MetricName) -> Floats | None:
        """Return the drop of a number in each resample; None where it has none."""
        before, after = self._series(name, self._then), self._series(name, self._now)
        return None if before is None or after is None else before - after

    def values(self, name: MetricName) -> Floats | None:
        """Return a number in each resample; None where it is not a mean over queries."""
        return self._series(name, self._now)

    def _series(self, name: MetricName, result: RetrievalResult | None) -> Floats | None:
        if result is None or name.in_rows:
            return None
        return self._means(result, name.metric)

    def count(self, tag: str | None) -> int:
        """Return how many queries there are."""
        return len(self._now.queries)


def _means_of(result: RetrievalResult, metric: str, *, resamples: int, seed: int) -> Floats:
    return resampled_means(result.contributions(metric), resamples=resamples, seed=seed)
