"""How rankings are scored, as data: the axes and presets of retrieval and classification."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from detap.errors import UsageError
from detap.protocols.fields import RECALL_GRIDS, Cutoffs, Number, ProtocolBase, protocol_field

ELEVEN = tuple(level / 10 for level in range(11))
"""The recall levels of the classic table; trec_eval's iprec_at_recall."""

Divisor = Literal["all", "hits", "min"]
Undefined = Literal["zero", "exclude"]
Curve = Literal["non-interpolated", "all-point", "11-point", "101-point"]


class _AtK(ProtocolBase, kw_only=True):
    """The axes of measures at k."""

    cutoffs: tuple[int, ...] = protocol_field(
        (), "Measures at k as well: 5, or 1,5,10. Repeatable.", kind=Cutoffs(), option="--k"
    )
    divisor: Divisor = protocol_field(
        "all",
        "What AP@k divides by: all relevant items, the hits within k, or the lesser of k and all.",
    )
    no_relevant: Undefined = protocol_field(
        "zero",
        "Where nothing is relevant, or by --divisor hits nothing within k: counts as 0, or is "
        "left out of the mean.",
    )


class Retrieval(_AtK, kw_only=True):
    """How a retrieval is scored.

    Each field is an axis on which implementations differ; its text stands beside it, and
    docs/ranking.md has them as a table. `name` is the preset that this is, or departs from.
    """

    presets: ClassVar[Mapping[str, "Retrieval"]] = {}

    tie_break: Literal["file", "trec", "expected"] = protocol_field(
        "file",
        "Equal scores rank in the order of the file, or as trec_eval ranks them, or every measure "
        "is its expected value over their orders.",
        "Equal scores rank in the order of the file (or gallery); or as trec_eval ranks them: "
        "scores in single precision, then the names of items, falling; or every measure is its "
        "expected value over all orders of equal scores.",
    )
    missing_queries: Undefined = protocol_field(
        "zero", "Judged queries without a ranking: count as 0, or are left out of the mean."
    )
    relevant_from: float = protocol_field(
        1.0,
        "The least grade that makes an item relevant.",
        kind=Number(0, above=True, metavar="GRADE"),
    )
    gain: Literal["linear", "exponential"] = protocol_field(
        "linear", "What a grade g is worth to nDCG: g, or 2^g - 1."
    )
    similarity: Literal["cosine", "dot", "euclidean"] = protocol_field(
        "cosine", "What embeddings are ranked by."
    )
    exclude_self: bool = protocol_field(
        False,
        "Query i is item i of the gallery, and takes no part in its own ranking.",
        "Query i is item i of the gallery, and takes no part in its own ranking. Where queries and "
        "gallery are the same and this is not given, a warning says so: each query finds itself.",
    )

    def always_in_signature(self) -> tuple[str, ...]:
        """Return the axes that change numbers of the same name: every report says them."""
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


class Classification(_AtK, kw_only=True):
    """How a classification is scored.

    Each field is an axis on which implementations differ; its text stands beside it, and
    docs/ranking.md has them as a table. `name` is the preset that this is, or departs from.
    """

    presets: ClassVar[Mapping[str, "Classification"]] = {}

    curve: Curve = protocol_field(
        "all-point",
        "How a class's ranking becomes its average precision.",
        option="--interpolation",
    )
    recall_grid: Literal["matlab", "arange", "linspace", "hundredths"] = protocol_field(
        "matlab", "Who makes the recall levels of 11 or 101 points."
    )
    absent_class: Literal["undefined", "zero"] = protocol_field(
        "undefined", "The AP of a class without positive samples."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        levels = len(RECALL_GRIDS[self.recall_grid])
        if self.curve in ("11-point", "101-point") and self.recall_levels is None:
            raise UsageError(
                f"recall_grid {self.recall_grid!r} has {levels} levels, not {self.curve}"
            )

    @property
    def recall_levels(self) -> tuple[float, ...] | None:
        """The levels at which precision is read; None for all points, or where the grid misfits."""
        grid = RECALL_GRIDS[self.recall_grid]
        return grid if self.curve == f"{len(grid)}-point" else None

    def always_in_signature(self) -> tuple[str, ...]:
        """Return the axes that change numbers of the same name: every report says them."""
        return ("curve", *(("divisor", "no_relevant") if self.cutoffs else ()))

    def check_effect(self, changed: Iterable[str]) -> None:
        """Refuse fields that were changed and have no effect on any number.

        Raises
        ------
        UsageError
        """
        idle: dict[str, str] = {}
        if self.recall_levels is None:
            idle["recall_grid"] = f"--interpolation {self.curve} takes no recall levels"
        if not self.cutoffs:
            idle |= dict.fromkeys(("divisor", "no_relevant"), "it is for measures at k: give --k")
        for name in sorted(idle.keys() & {*changed}):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} has no effect: {idle[name]}; or leave out {option}")

    def with_curve(self, curve: Curve) -> "Classification":
        """Return these rules with another curve, and a grid that goes with it."""
        fitting: dict[str, Any] = {"11-point": "matlab", "101-point": "linspace"}
        fits = curve not in fitting or curve == f"{len(RECALL_GRIDS[self.recall_grid])}-point"
        return replace(self, curve=curve, recall_grid=self.recall_grid if fits else fitting[curve])

    def with_changes(self, **changes: Any) -> "Classification":
        """Return these rules with other values in some fields, and a grid that fits the curve."""
        protocol = self.with_curve(changes.pop("curve")) if "curve" in changes else self
        return replace(protocol, **changes)


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
