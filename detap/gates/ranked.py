"""From rankings to gates: which numbers there are, and how noisy they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from detap.errors import UsageError
from detap.gates.judging import Demands
from detap.gates.names import Name, Numbers
from detap.gates.verdicts import Gate, Interval, Noise
from detap.names import printable

if TYPE_CHECKING:
    from detap.ranking.retrieval import RetrievalResult


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """What is judged of a ranking: a ``Subject`` of ``detap/gates/judging.py``.

    Attributes
    ----------
    summary : mapping of str to float
        The headline first.
    rows : sequence of mapping
        One a query, or a class.
    unit : {"query", "class"}
    result : RetrievalResult or None
        Of a retrieval, whose queries can be resampled.
    """

    summary: Mapping[str, float]
    rows: Sequence[Mapping[str, Any]]
    unit: str
    result: "RetrievalResult | None" = None

    def numbers(self) -> Numbers:
        """Return all that gates can name."""
        return Numbers(
            headline=next(iter(self.summary)),
            summary=self.summary,
            rows=self.rows,
            unit=self.unit,
        )

    def noise(self, before: "Ranked", demands: Demands) -> "QueryIntervals":
        """Return the intervals of the drops from an earlier ranking."""
        assert before.result is not None
        assert self.result is not None
        return QueryIntervals(before.result, self.result, demands)

    def blame(
        self,
        gates: Sequence[Gate],
        then: Numbers | None,
        before: "Ranked | None",
        noise: Noise | None,
    ) -> None:
        """Return nothing: the table has every query."""
        return


class QueryIntervals:
    """Intervals of drops of means over queries."""

    def __init__(self, then: "RetrievalResult", now: "RetrievalResult", demands: Demands) -> None:
        assert demands.confidence is not None
        self.confidence = demands.confidence
        self._then, self._now, self._demands = then, now, demands

    def interval(self, name: Name) -> Interval:
        """Return the interval of the drop of a number.

        Raises
        ------
        UsageError
            Where it is not a mean over queries.
        """
        from detap.ranking.bootstrap import drop_interval

        if name.row is not None or name.smallest:
            raise UsageError(
                f"{printable(name.text)!r} is of one query: it has no interval; leave it or "
                "--confidence out"
            )
        return drop_interval(
            self._then.contributions(name.measure),
            self._now.contributions(name.measure),
            confidence=self.confidence,
            resamples=self._demands.resamples,
            seed=self._demands.seed,
        )
