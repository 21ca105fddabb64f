"""Gates for rankings: metrics of results, and resampled means over queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from detap.analysis.bootstrap import Draws
from detap.errors import UsageError
from detap.escaping import escape
from detap.gates.checks import Interval
from detap.gates.config import GateConfig
from detap.gates.evaluate import Subject
from detap.gates.metric_names import MetricName, Metrics
from detap.gates.power import Resamples
from detap.ranking.bootstrap import left_out_means, resampled_means
from detap.ranking.retrieval import RetrievalResult


@dataclass(frozen=True, slots=True, eq=False)
class Ranked(Subject):
    """The metrics of a ranking; its table lists every query, and means have no intervals."""

    summary: Mapping[str, float]  # the primary metric first
    rows: Sequence[Mapping[str, Any]]  # one per query or class
    unit: str
    result: RetrievalResult | None = None  # of a retrieval; its queries can be resampled

    def metrics(self) -> Metrics:
        """Return the metrics that gates can name."""
        return Metrics(next(iter(self.summary)), self.summary, self.rows, self.unit)

    def resample(self, baseline: "Ranked | None", config: GateConfig) -> "QueryResamples":
        """Resample the drops from a baseline, or the metrics if there is none."""
        assert self.result is not None
        return QueryResamples(None if baseline is None else baseline.result, self.result, config)


class QueryResamples(Resamples):
    """Means over resampled queries, and their drops."""

    unit = "query"

    def __init__(
        self, baseline: RetrievalResult | None, current: RetrievalResult, config: GateConfig
    ) -> None:
        super().__init__(config, paired=baseline is not None)
        self._baseline, self._current = baseline, current

        @cache
        def means(result: RetrievalResult, metric: str) -> Draws:
            values = result.contributions(metric)
            drawn = resampled_means(values, resamples=config.resamples, seed=config.seed)
            return Draws(drawn, left_out_means(values))

        self._means = means

    def interval(self, name: MetricName) -> Interval:
        """Return the confidence interval of the drop of a metric."""
        if self.drops(name) is None:
            raise UsageError(
                f"{escape(name.text)!r} has no interval: the metric of one query cannot be "
                "resampled; remove it or --confidence"
            )
        return super().interval(name)

    def draws(self, name: MetricName, *, earlier: bool = False) -> Draws | None:
        """Return a metric, or that of the baseline; None if it is not a mean over queries."""
        result = self._baseline if earlier else self._current
        return None if result is None or name.in_rows else self._means(result, name.metric)

    def count(self, tag: str | None) -> int:
        """Return the number of queries."""
        return len(self._current.queries)
