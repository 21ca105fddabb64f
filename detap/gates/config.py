"""What is asked of a run, how it was spelt, and what comes of it.

Apart from the judge, so that a command without gates imports no more than its options.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from detap.errors import Note, UsageError
from detap.protocols.summary import DEFAULT_MIN_GROUND_TRUTHS
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
_INTEGERS = {"resamples": RESAMPLES, "seed": SEEDS, "min_ground_truths": (0, SEEDS[1])}

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
    interval_source : str
        What intervals need.
    names : mapping
        What is called otherwise.
    """

    options: bool
    interval_source: str
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
    min_ground_truths : int
        Drops and rises of classes with fewer ground truths only warn.
    allow_mismatch : bool
        Whether a baseline may be of another ground truth or protocol.
    option_names : OptionNames
        How all of it was spelt.
    detectable_drop : float or None
        A wished-for drop: how many images would tell it from noise?
    """

    limits: "tuple[Limit, ...]"
    confidence: float | None
    resamples: int
    seed: int
    min_ground_truths: int
    allow_mismatch: bool
    option_names: OptionNames
    detectable_drop: float | None = None

    @classmethod
    def of(
        cls,
        limits: "Sequence[Limit]",
        option_names: OptionNames,
        *,
        baseline: bool,
        baseline_detections: bool,
        confidence: float | None = None,
        resamples: int | None = None,
        seed: int | None = None,
        detectable_drop: float | None = None,
        min_ground_truths: int | None = None,
        allow_mismatch: bool = False,
    ) -> Self:
        """Return what is asked, with the defaults of what is not said.

        Parameters
        ----------
        limits : sequence of Limit
        option_names : OptionNames
        baseline, baseline_detections : bool
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
            "baseline_detections": baseline_detections,
            "confidence": confidence,
            "resamples": resamples,
            "seed": seed,
            "detectable_drop": detectable_drop,
            "min_ground_truths": min_ground_truths,
            "allow_mismatch": allow_mismatch or None,
        }
        changes = [limit.kind for limit in limits if limit.kind in CHANGES]
        _check_ranges(option_names, given)
        _check_changes(option_names, given, changes)
        _check_dependencies(option_names, given, changes)
        return cls(
            tuple(limits),
            confidence,
            DEFAULT_RESAMPLES if resamples is None else resamples,
            seed or 0,
            (DEFAULT_MIN_GROUND_TRUTHS if confidence is not None else 0)
            if min_ground_truths is None
            else min_ground_truths,
            allow_mismatch,
            option_names,
            detectable_drop,
        )


def _check_ranges(option_names: OptionNames, given: Mapping[str, Any]) -> None:
    for name in ("confidence", "detectable_drop"):
        try:
            if given[name] is not None:
                parse_fraction(given[name])
        except ValueError as error:
            raise UsageError(f"{option_names(name)}: {error}") from None
    for name, (minimum, maximum) in _INTEGERS.items():
        value = given[name]
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            raise UsageError(
                f"{option_names(name)}: {value!r} is not an integer from {minimum} to {maximum}"
            )


def _check_changes(
    option_names: OptionNames, given: Mapping[str, Any], changes: Sequence[Kind]
) -> None:
    """Raise UsageError for drops or rises without a baseline, and for the reverse."""
    report, detections = option_names("baseline"), option_names("baseline_detections")
    if changes:
        if not (given["baseline"] or given["baseline_detections"]):
            either = report if report == detections else f"{report} or {detections}"
            raise UsageError(f"{option_names(f'max_{changes[0]}')} requires {either}")
    elif given["baseline"] or (given["baseline_detections"] and given["detectable_drop"] is None):
        raise UsageError(
            f"{report if given['baseline'] else detections} requires "
            f"{option_names('max_drop')} or {option_names('max_rise')}"
        )


def _check_dependencies(
    option_names: OptionNames, given: Mapping[str, Any], changes: Sequence[Kind]
) -> None:
    """Raise UsageError for an option without another one that it requires."""
    baseline, detections = given["baseline"], given["baseline_detections"]
    confidence, detectable_drop = given["confidence"], given["detectable_drop"]
    if confidence is not None and not detections and (baseline or detectable_drop is None):
        raise UsageError(
            f"{option_names('confidence')} requires {option_names.interval_source} "
            "(a JSON report cannot be resampled)"
        )
    resampled = confidence is not None or detectable_drop is not None
    limits = f"{option_names('max_drop')} or {option_names('max_rise')}"
    for name, has_effect, required in (
        ("resamples", resampled, option_names("confidence")),
        ("seed", resampled, option_names("confidence")),
        ("min_ground_truths", changes or detections, limits),
        ("allow_mismatch", baseline, option_names("baseline")),
    ):
        if given[name] is not None and not has_effect:
            raise UsageError(f"{option_names(name)} requires {required}")


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
