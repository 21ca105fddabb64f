"""Bootstrap intervals of ranking metrics: means over queries, which are resampled."""

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
    """Confidence intervals of the drops of means over queries."""

    unit = "query"

    def __init__(
        self, baseline: RetrievalResult | None, current: RetrievalResult, config: GateConfig
    ) -> None:
        self.confidence = LEVEL if config.confidence is None else config.confidence
        self.paired = baseline is not None
        self._baseline, self._current = baseline, current
        self._means = cache(partial(_means_of, resamples=config.resamples, seed=config.seed))

    def interval(self, name: MetricName) -> Interval:
        """Return the confidence interval of the drop of a metric."""
        drops = self.drops(name)
        if drops is None or self._baseline is None:
            raise UsageError(
                f"{escape(name.text)!r} has no interval: the metric of one query cannot be "
                "resampled; remove it or --confidence"
            )
        before, after = (
            left_out_means(result.contributions(name.metric))
            for result in (self._baseline, self._current)
        )
        return interval(drops, self.confidence, before - after)

    def drops(self, name: MetricName) -> Floats | None:
        """Return the drop of a metric in each resample; None if it has none."""
        before, after = self._series(name, self._baseline), self._series(name, self._current)
        return None if before is None or after is None else before - after

    def values(self, name: MetricName) -> Floats | None:
        """Return a metric in each resample; None if it is not a mean over queries."""
        return self._series(name, self._current)

    def _series(self, name: MetricName, result: RetrievalResult | None) -> Floats | None:
        if result is None or name.in_rows:
            return None
        return self._means(result, name.metric)

    def count(self, tag: str | None) -> int:
        """Return the number of queries."""
        return len(self._current.queries)


def _means_of(result: RetrievalResult, metric: str, *, resamples: int, seed: int) -> Floats:
    return resampled_means(result.contributions(metric), resamples=resamples, seed=seed)
