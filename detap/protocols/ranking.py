"""Protocols of retrieval and classification: fields and presets."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from detap.errors import UsageError
from detap.protocols.fields import (
    RECALL_GRIDS,
    Cutoffs,
    Number,
    ProtocolBase,
    Whole,
    protocol_field,
)

ELEVEN = tuple(level / 10 for level in range(11))
"""The 11 recall levels of trec_eval's iprec_at_recall."""

Divisor = Literal["all", "hits", "min"]
Undefined = Literal["zero", "exclude"]
Curve = Literal["non-interpolated", "all-point", "11-point", "101-point"]


@dataclass(frozen=True, repr=False, kw_only=True)
class _AtK(ProtocolBase):
    """Fields of metrics at k."""

    cutoffs: tuple[int, ...] = protocol_field(
        (),
        "Report metrics at k too: 5, or 1,5,10. Repeatable.",
        kind=Cutoffs(Whole(1, 10**9, or_none=False), "`5`; `1,5,10`"),
        option="--k",
    )
    divisor: Divisor = protocol_field(
        "all", "Divisor of AP@k: all relevant items, hits within k, or the smaller of k and all."
    )
    no_relevant: Undefined = protocol_field(
        "zero",
        "Count queries without relevant items (or hits within k, with --divisor hits) as 0, or "
        "exclude them.",
    )


@dataclass(frozen=True, repr=False, kw_only=True)
class Retrieval(_AtK):
    """A retrieval protocol.

    The fields are the settings in which implementations differ
    (docs/commands/rank.md). `name` is the preset that the other fields start from.
    """

    tie_break: Literal["file", "trec", "expected"] = protocol_field(
        "file",
        "Rank equal scores in file order, or as trec_eval does, or report expected values over "
        "all orders.",
        "`file` is the order of the gallery; trec_eval compares in float32, then item names "
        "descending.",
    )
    missing_queries: Undefined = protocol_field(
        "zero", "Count judged queries without a ranking as 0, or exclude them."
    )
    relevant_from: float = protocol_field(
        1.0, "Minimum grade of a relevant item.", kind=Number(0, above=True, metavar="GRADE")
    )
    gain: Literal["linear", "exponential"] = protocol_field(
        "linear", "Gain of a grade g in nDCG: g, or 2^g - 1."
    )
    similarity: Literal["cosine", "dot", "euclidean"] = protocol_field(
        "cosine", "Similarity of embeddings."
    )
    exclude_self: bool = protocol_field(
        False,
        "Exclude item i of the gallery from the ranking of query i.",
        "Without it, a gallery equal to the queries gives a warning.",
    )

    def always_in_signature(self) -> tuple[str, ...]:
        """Return the fields that are always in the signature, as no metric name shows them."""
        return ("divisor", "tie_break", "no_relevant")


Retrieval.presets = {
    protocol.name: protocol
    for protocol in (
        Retrieval(name="retrieval"),
        Retrieval(name="trec_eval", tie_break="trec", missing_queries="exclude"),
        Retrieval(name="ir_measures", tie_break="trec"),
        Retrieval(name="hashing", divisor="hits"),
        Retrieval(name="metric-learning", no_relevant="exclude", exclude_self=True),
    )
}


@dataclass(frozen=True, repr=False, kw_only=True)
class Classification(_AtK):
    """A classification protocol.

    The fields are the settings in which implementations differ
    (docs/commands/rank.md). `name` is the preset that the other fields start from.
    """

    curve: Curve = protocol_field(
        "all-point", "Interpolation of the precision-recall curve.", option="--interpolation"
    )
    recall_grid: Literal["matlab", "arange", "linspace", "hundredths"] = protocol_field(
        "matlab", "Floating-point values of the recall levels."
    )
    absent_class: Literal["undefined", "zero"] = protocol_field(
        "undefined", "AP of a class without positive samples."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.curve in ("11-point", "101-point") and self.recall_levels is None:
            levels = f"{len(RECALL_GRIDS[self.recall_grid])} levels, not {self.curve}"
            raise UsageError(f"recall_grid {self.recall_grid!r} has {levels}")

    @property
    def recall_levels(self) -> tuple[float, ...] | None:
        """The recall levels of the curve; None for all points, or if the grid does not fit."""
        grid = RECALL_GRIDS[self.recall_grid]
        return grid if self.curve == f"{len(grid)}-point" else None

    def always_in_signature(self) -> tuple[str, ...]:
        """Return the fields that are always in the signature, as no metric name shows them."""
        return ("curve", *(("divisor", "no_relevant") if self.cutoffs else ()))

    def _idle(self) -> dict[str, str]:
        unused: dict[str, str] = {}
        if self.recall_levels is None:
            unused["recall_grid"] = f"--interpolation {self.curve} uses no recall levels"
        if not self.cutoffs:
            unused |= dict.fromkeys(("divisor", "no_relevant"), "it requires --k")
        return unused

    def with_changes(self, **changes: Any) -> "Classification":
        """Return this protocol with other values, and a recall grid that fits the curve."""
        grids = {"11-point": "matlab", "101-point": "linspace"}
        curve = changes.get("curve", "")
        if curve in grids and curve != f"{len(RECALL_GRIDS[self.recall_grid])}-point":
            changes = {"recall_grid": grids[curve]} | changes
        return replace(self, **changes)


Classification.presets = {
    protocol.name: protocol
    for protocol in (
        Classification(name="voc2012"),
        Classification(name="voc2007", curve="11-point"),
        Classification(name="non-interpolated", curve="non-interpolated"),
    )
}

retrieval = Retrieval.preset
classification = Classification.preset
