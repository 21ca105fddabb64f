"""What is asked of a run, how it was spelt, and what comes of it.

Apart from the judge, so that a command without gates imports no more than its options.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from detap.errors import Note, UsageError
from detap.protocols.summary import DEFAULT_FEWEST
from detap.records import Record, Value
from detap.text_input import parse_fraction

if TYPE_CHECKING:
    from detap.analysis.power import PowerAnalysis
    from detap.gates.checks import Gate, Limit
    from detap.gates.regressions import Regressions

DEFAULT_RESAMPLES = 1000
RESAMPLES = (100, 1_000_000)
"""From how few to how many."""
SEEDS = (0, 2**63 - 1)
_WHOLE_NUMBERS = {"resamples": RESAMPLES, "seed": SEEDS, "min_ground_truths": (0, SEEDS[1])}

Level = Literal["floor", "ceiling"]
Change = Literal["drop", "rise"]
Kind = Literal[Level, Change]

CHANGES = get_args(Change)
"""The kinds of limits that hold a number to what it was."""

LIMITS: Mapping[str, Kind] = {
    "fail_under": "floor",
    "fail_over": "ceiling",
    "max_drop": "drop",
    "max_rise": "rise",
}
"""What each kind of limit is asked for by."""

RELATIONS: Mapping[Kind, str] = {
    "floor": ">=",
    "ceiling": "<=",
    "drop": "drop <=",
    "rise": "rise <=",
}
"""The relation between a metric and its limit, as text."""


class OptionNames(Value):
    """How a caller spells what is asked for: as options of a command, or as arguments.

    Attributes
    ----------
    options : bool
        Whether ``max_drop`` is ``--max-drop``.
    earlier : str
        What intervals need.
    names : mapping
        What is called otherwise.
    """

    options: bool
    earlier: str
    names: Mapping[str, str]

    def __call__(self, name: str) -> str:
        """Return how something is spelt."""
        name = self.names.get(name, name)
        return f"--{name.replace('_', '-')}" if self.options else name

    def limit(self, asked: str, name: str, bound: str) -> str:
        """Return how a limit is asked for."""
        if not self.options:
            return f"{self(asked)}={{{name!r}: {bound!r}}}"
        from shlex import quote  # only where one is proposed

        return f"{self(asked)} {quote(f'{name}={bound}')}"


class GateConfig(Value):
    """What is asked of a run.

    Attributes
    ----------
    limits : tuple of Limit
    confidence : float or None
        Of the intervals that tell changes from noise.
    resamples, seed : int
        Of these intervals.
    fewest : int
        Drops and rises of classes with fewer ground truths only warn.
    allow_mismatch : bool
        Whether a baseline may be of another ground truth or protocol.
    spell : OptionNames
        How all of it was spelt.
    detectable_drop : float or None
        A wished-for drop: how many images would tell it from noise?
    """

    limits: "tuple[Limit, ...]"
    confidence: float | None
    resamples: int
    seed: int
    fewest: int
    allow_mismatch: bool
    spell: OptionNames
    detectable_drop: float | None = None

    @classmethod
    def of(
        cls,
        limits: "Sequence[Limit]",
        spell: OptionNames,
        *,
        baseline: bool,
        before: bool,
        confidence: float | None = None,
        resamples: int | None = None,
        seed: int | None = None,
        detectable_drop: float | None = None,
        fewest: int | None = None,
        allow_mismatch: bool = False,
    ) -> Self:
        """Return what is asked, with the defaults of what is not said.

        Parameters
        ----------
        limits : sequence of Limit
        spell : OptionNames
        baseline, before : bool
            Whether there is an earlier report, or an earlier detector or ranking.
        confidence, resamples, seed, detectable_drop, fewest, allow_mismatch
            As above; None is the default.

        Raises
        ------
        UsageError
            Where it contradicts itself, or one thing is of no use without another.
        """
        given = {
            "baseline": baseline,
            "baseline_detections": before,
            "confidence": confidence,
            "resamples": resamples,
            "seed": seed,
            "detectable_drop": detectable_drop,
            "min_ground_truths": fewest,
            "allow_mismatch": allow_mismatch or None,
        }
        changes = [limit.kind for limit in limits if limit.kind in CHANGES]
        _check_ranges(spell, given)
        _check_changes(spell, given, changes)
        _check_needs(spell, given, changes)
        return cls(
            tuple(limits),
            confidence,
            DEFAULT_RESAMPLES if resamples is None else resamples,
            seed or 0,
            (DEFAULT_FEWEST if confidence is not None else 0) if fewest is None else fewest,
            allow_mismatch,
            spell,
            detectable_drop,
        )


def _check_ranges(spell: OptionNames, given: Mapping[str, Any]) -> None:
    for name in ("confidence", "detectable_drop"):
        try:
            if given[name] is not None:
                parse_fraction(given[name])
        except ValueError as error:
            raise UsageError(f"{spell(name)}: {error}") from None
    for name, (least, most) in _WHOLE_NUMBERS.items():
        value = given[name]
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise UsageError(f"{spell(name)}: {value!r} is no whole number from {least} to {most}")


def _check_changes(spell: OptionNames, given: Mapping[str, Any], changes: Sequence[Kind]) -> None:
    """Refuse limits of changes without anything earlier, and the reverse."""
    kept, earlier = spell("baseline"), spell("baseline_detections")
    baseline, before = given["baseline"], given["baseline_detections"]
    if changes:
        if not (baseline or before):
            either = kept if kept == earlier else f"{kept} or {earlier}"
            raise UsageError(f"{spell(f'max_{changes[0]}')} needs {either} to compare with")
    elif baseline or (before and given["detectable_drop"] is None):
        raise UsageError(
            f"{kept if baseline else earlier} needs {spell('max_drop')} or {spell('max_rise')}, "
            "which says how much may be lost"
        )


def _check_needs(spell: OptionNames, given: Mapping[str, Any], changes: Sequence[Kind]) -> None:
    """Refuse what is of no use without another thing, which is not given."""
    baseline, before = given["baseline"], given["baseline_detections"]
    confidence, detectable_drop = given["confidence"], given["detectable_drop"]
    if confidence is not None and not before and (baseline or detectable_drop is None):
        raise UsageError(
            f"{spell('confidence')} needs {spell.earlier}: a report's numbers alone do not "
            "tell how noisy they are"
        )
    resampled = confidence is not None or detectable_drop is not None
    for name, useful, needed in (
        ("resamples", resampled, spell("confidence")),
        ("seed", resampled, spell("confidence")),
        ("min_ground_truths", changes or before, f"{spell('max_drop')} or {spell('max_rise')}"),
        ("allow_mismatch", baseline, spell("baseline")),
    ):
        if given[name] is not None and not useful:
            raise UsageError(f"{spell(name)} is of no use without {needed}")


class BaselineReport(Record):
    """An earlier report.

    Attributes
    ----------
    path : str
        Where it lies.
    record : dict
        As it is in JSON.
    """

    path: str
    record: dict[str, Any]


class GateResults(Record):
    """What came of the gates.

    Attributes
    ----------
    gates : tuple of Gate
    notes : tuple of Note
        What is to be said although it failed nothing.
    regressions : Regressions or None
        The classes and images behind the gates that did not pass.
    power : PowerAnalysis or None
        The minimum detectable drops.
    """

    gates: "tuple[Gate, ...]" = ()
    notes: tuple[Note, ...] = ()
    regressions: "Regressions | None" = None
    power: "PowerAnalysis | None" = None

    @property
    def failed(self) -> bool:
        """Whether any gate failed."""
        return any(gate.failed for gate in self.gates)
