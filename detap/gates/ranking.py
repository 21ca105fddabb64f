"""Gates for rankings: metrics of results, and their bootstrap intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from detap.gates.checks import Gate
from detap.gates.config import GateConfig
from detap.gates.metric_names import Metrics
from detap.gates.query_intervals import QueryIntervals
from detap.ranking.retrieval import RetrievalResult


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """The metrics of a ranking: a ``Subject`` of detap/gates/evaluate.py.

    Attributes
    ----------
    summary : mapping of str to float
        The primary metric first.
    rows : sequence of mapping
        One per query or class.
    unit : {"query", "class"}
    result : RetrievalResult or None
        Of a retrieval; its queries can be resampled.
    """

    summary: Mapping[str, float]
    rows: Sequence[Mapping[str, Any]]
    unit: str
    result: RetrievalResult | None = None

    def metrics(self) -> Metrics:
        """Return the metrics that gates can name."""
        return Metrics(
            primary_metric=next(iter(self.summary)),
            summary=self.summary,
            rows=self.rows,
            unit=self.unit,
        )

    def resample(self, baseline: "Ranked | None", config: GateConfig) -> QueryIntervals:
        """Resample the drops from a baseline, or the metrics if there is none."""
        assert self.result is not None
        return QueryIntervals(None if baseline is None else baseline.result, self.result, config)

    def intervals(self, config: GateConfig) -> None:
        """Return None: means over queries have intervals of their drops only."""
        return

    def find_regressions(
        self, gates: Sequence[Gate], baseline_metrics: Metrics | None, baseline: "Ranked | None"
    ) -> None:
        """Return None: the table lists every query."""
        return
