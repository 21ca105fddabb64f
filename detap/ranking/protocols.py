"""How rankings are scored, as data: every choice in which implementations differ is a field.

As for detection (:mod:`detap.protocols`), a preset has a name, and the signature names the preset,
every field that departs from it, and detap's version. No code asks for a protocol's name.
"""

from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, Literal, Self

from detap.errors import UsageError
from detap.protocols import RECALL_GRIDS, in_signature

Curve = Literal["non-interpolated", "all-point", "11-point", "101-point"]

DIVISORS = ("all", "hits", "min")
TIES = ("file", "trec", "expected")
CURVES = ("non-interpolated", "all-point", "11-point", "101-point")
SIMILARITIES = ("cosine", "dot", "euclidean")

ELEVEN = tuple(level / 10 for level in range(11))
"""The recall levels of the classic table; trec_eval's iprec_at_recall."""


def _check_choice(field: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(f"{field} {value!r} is unknown; choose from {', '.join(choices)}")


def _check_cutoffs(cutoffs: tuple[int, ...]) -> None:
    if any(k < 1 for k in cutoffs):
        raise UsageError(f"k is {min(cutoffs)}; it must be 1 or more")
    if list(cutoffs) != sorted(set(cutoffs)):
        raise UsageError("the k do not ascend")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    name: str

    def presets(self) -> dict[str, Any]:
        raise NotImplementedError  # pragma: no cover - both subclasses answer

    def as_dict(self) -> dict[str, Any]:
        """Return every field by name, for the report."""
        return asdict(self)

    def departures(self) -> dict[str, Any]:
        """Return the fields that differ from the preset of this name."""
        origin = self.presets()[self.name]
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != getattr(origin, field.name)
        }

    def signature(self, version: str) -> str:
        """Return the one line that makes a number reproducible.

        Parameters
        ----------
        version : str
            detap's own.
        """
        parts = [f"protocol:{self.name}", *self._always()]
        shown = {part.partition(":")[0] for part in parts}
        for name, value in self.departures().items():
            key = name.replace("_", "-")
            if key not in shown:
                parts.append(f"{key}:{in_signature(value)}")
        return "|".join([*parts, f"detap:{version}"])

    def _always(self) -> list[str]:
        raise NotImplementedError  # pragma: no cover - both subclasses answer

    def with_changes(self, **changes: Any) -> Self:
        """Return these rules with other values in some fields."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval(_Rules):
    """How a retrieval is scored.

    Attributes
    ----------
    name : str
        The preset that this is, or departs from.
    cutoffs : tuple of int
        The k of the measures at k, ascending.
    divisor : {"all", "hits", "min"}
        What AP@k divides by: all relevant items, those within k, or the lesser of k and all.
    ties : {"file", "trec", "expected"}
        Equal scores rank in the order of the file (or gallery), or as trec_eval ranks them: scores
        in single precision, then the names of items, falling; or every measure is its expected
        value over all orders of equal scores.
    no_relevant : {"zero", "left-out"}
        What becomes of a query whose measure is undefined, having no relevant item (or, with the
        divisor "hits", none within k): it counts as 0, or is left out of the mean.
    missing_queries : {"zero", "left-out"}
        What becomes of a query that is judged but has no ranking: it counts as 0, or is left out.
    relevant_from : float
        The least grade of a judgement that makes an item relevant.
    gain : {"linear", "exponential"}
        What a grade g is worth to nDCG: g, or 2^g - 1.
    similarity : {"cosine", "dot", "euclidean"}
        What embeddings are ranked by.
    exclude_self : bool
        Whether query i is item i of the gallery and takes no part in its own ranking.
    """

    name: str
    cutoffs: tuple[int, ...] = ()
    divisor: Literal["all", "hits", "min"] = "all"
    ties: Literal["file", "trec", "expected"] = "file"
    no_relevant: Literal["zero", "left-out"] = "zero"
    missing_queries: Literal["zero", "left-out"] = "zero"
    relevant_from: float = 1.0
    gain: Literal["linear", "exponential"] = "linear"
    similarity: Literal["cosine", "dot", "euclidean"] = "cosine"
    exclude_self: bool = False

    def __post_init__(self) -> None:
        _check_cutoffs(self.cutoffs)
        _check_choice("divisor", self.divisor, DIVISORS)
        _check_choice("ties", self.ties, TIES)
        _check_choice("no_relevant", self.no_relevant, ("zero", "left-out"))
        _check_choice("missing_queries", self.missing_queries, ("zero", "left-out"))
        _check_choice("gain", self.gain, ("linear", "exponential"))
        _check_choice("similarity", self.similarity, SIMILARITIES)
        if not self.relevant_from > 0:
            raise UsageError(f"relevant_from is {self.relevant_from}; it must be above 0")

    def presets(self) -> dict[str, "Retrieval"]:
        """Return the presets of retrieval."""
        return RETRIEVAL

    def _always(self) -> list[str]:
        # These three change numbers of the same name: every report says which were used.
        return [f"divisor:{self.divisor}", f"ties:{self.ties}", f"no-relevant:{self.no_relevant}"]


RETRIEVAL = {
    rules.name: rules
    for rules in (
        Retrieval(name="retrieval"),
        Retrieval(name="trec_eval", ties="trec", missing_queries="left-out"),
        Retrieval(name="ir_measures", ties="trec"),
        Retrieval(name="hashing", divisor="hits"),
        Retrieval(name="metric-learning", no_relevant="left-out", exclude_self=True),
    )
}
"""The presets of retrieval, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification(_Rules):
    """How a classification is scored.

    Attributes
    ----------
    name : str
        The preset that this is, or departs from.
    curve : {"non-interpolated", "all-point", "11-point", "101-point"}
        How the ranking of samples becomes a class's AP.
    recall_grid : str
        Who makes the recall levels of 11 or 101 points: a key of
        :data:`detap.protocols.RECALL_GRIDS`.
    absent_class : {"undefined", "zero"}
        The AP of a class without positive samples.
    cutoffs : tuple of int
        The k of AP@k per sample, ascending; none computes no such measure.
    divisor : {"all", "hits", "min"}
        What AP@k per sample divides by.
    no_relevant : {"zero", "left-out"}
        What becomes of a sample whose AP@k is undefined.
    """

    name: str
    curve: Curve = "all-point"
    recall_grid: str = "matlab"
    absent_class: Literal["undefined", "zero"] = "undefined"
    cutoffs: tuple[int, ...] = ()
    divisor: Literal["all", "hits", "min"] = "all"
    no_relevant: Literal["zero", "left-out"] = "zero"

    def __post_init__(self) -> None:
        _check_cutoffs(self.cutoffs)
        _check_choice("curve", self.curve, CURVES)
        _check_choice("divisor", self.divisor, DIVISORS)
        _check_choice("absent_class", self.absent_class, ("undefined", "zero"))
        _check_choice("no_relevant", self.no_relevant, ("zero", "left-out"))
        grid = RECALL_GRIDS.get(self.recall_grid)
        if grid is None:
            _check_choice("recall_grid", self.recall_grid, tuple(RECALL_GRIDS))
        elif self.curve.endswith("-point") and self.curve[0] == "1" and self.recall_levels is None:
            raise UsageError(
                f"recall_grid {self.recall_grid!r} has {len(grid)} levels, not {self.curve}"
            )

    def presets(self) -> dict[str, "Classification"]:
        """Return the presets of classification."""
        return CLASSIFICATION

    @property
    def recall_levels(self) -> tuple[float, ...] | None:
        """The levels at which precision is read; None for all points, or where the grid misfits."""
        grid = RECALL_GRIDS[self.recall_grid]
        return grid if self.curve == f"{len(grid)}-point" else None

    def with_curve(self, curve: Curve) -> "Classification":
        """Return these rules with another curve, and a grid that goes with it."""
        if curve == "101-point" and len(RECALL_GRIDS[self.recall_grid]) != 101:
            return replace(self, curve=curve, recall_grid="linspace")
        if curve == "11-point" and len(RECALL_GRIDS[self.recall_grid]) != 11:
            return replace(self, curve=curve, recall_grid="matlab")
        return replace(self, curve=curve)

    def _always(self) -> list[str]:
        parts = [f"curve:{self.curve}"]
        if self.cutoffs:
            parts += [f"divisor:{self.divisor}", f"no-relevant:{self.no_relevant}"]
        return parts


CLASSIFICATION = {
    rules.name: rules
    for rules in (
        Classification(name="voc2012"),
        Classification(name="voc2007", curve="11-point"),
        Classification(name="non-interpolated", curve="non-interpolated"),
    )
}
"""The presets of classification, by name."""


def retrieval(name: str) -> Retrieval:
    """Return a preset of retrieval.

    Raises
    ------
    UsageError
        Where there is none of this name, with near ones.
    """
    found: Retrieval = _preset(name, RETRIEVAL)
    return found


def classification(name: str) -> Classification:
    """Return a preset of classification.

    Raises
    ------
    UsageError
        Where there is none of this name, with near ones.
    """
    found: Classification = _preset(name, CLASSIFICATION)
    return found


def _preset(name: str, presets: dict[str, Any]) -> Any:
    if name not in presets:
        near = get_close_matches(name, presets, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"choose from {', '.join(presets)}"
        raise UsageError(f"protocol {name!r} is unknown; {hint}")
    return presets[name]
