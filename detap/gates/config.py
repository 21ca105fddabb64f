"""Configuration of gates.

Separate from their evaluation, so that commands without gates start faster.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from shlex import quote
from typing import Any, Literal, NamedTuple, Self

from detap.decimals import fraction, to_fraction
from detap.errors import UsageError
from detap.protocols.summary import DEFAULT_MIN_GROUND_TRUTHS
from detap.text_input import parse_fraction

DEFAULT_RESAMPLES = 1000
RESAMPLES = (100, 1_000_000)  # minimum and maximum number of resamples
SEEDS = (0, 2**63 - 1)
_INTEGERS = {"resamples": RESAMPLES, "seed": SEEDS, "min_ground_truths": (0, SEEDS[1])}

Level = Literal["minimum", "maximum"]
Change = Literal["drop", "rise"]
Kind = Literal[Level, Change]


class Rule(NamedTuple):
    """The requirements of a kind of limit on a metric."""

    option: str
    relation: str  # between the metric and its limit, as text
    opposite: Kind
    for_higher: bool  # for metrics where higher is better


RULES: Mapping[Kind, Rule] = {
    "minimum": Rule("fail_under", ">=", "maximum", for_higher=True),
    "maximum": Rule("fail_over", "<=", "minimum", for_higher=False),
    "drop": Rule("max_drop", "drop <=", "rise", for_higher=True),
    "rise": Rule("max_rise", "rise <=", "drop", for_higher=False),
}
CHANGES = ("drop", "rise")  # the kinds of limits on the change from a baseline

LIMITS: Mapping[str, Kind] = {rule.option: kind for kind, rule in RULES.items()}
"""The kind of limit that each option sets."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on a metric."""

    kind: Kind
    name: str | None  # as given; None for the primary metric
    bound: Fraction
    relative: bool  # True if a drop or rise is a fraction of the baseline's value
    text: str  # the bound as given

    @classmethod
    def of(cls, kind: Kind, text: str) -> "Limit":
        """Parse ``0.005``, ``NAME=0.005`` or ``NAME=1%``."""
        name, equals, value = text.rpartition("=")
        value = value.strip()
        if equals and not name:
            raise ValueError(f"{text!r}: no metric name before '='")
        relative = value.endswith("%")
        if relative and kind not in CHANGES:
            raise ValueError(f"{value!r}: expected a number such as 0.5, not a percentage")
        try:
            bound = fraction(value.removesuffix("%"))
        except ValueError as error:
            raise ValueError(f"{error}; use 0.5 or NAME=0.5") from None
        if kind in CHANGES and bound < 0:
            raise ValueError(f"{value!r}: a {kind} limit must be at least 0")
        if kind == "minimum" and bound < 0:
            raise ValueError(f"{value!r}: a minimum below 0 can never fail; use 0.5 or NAME=0.5")
        bound = bound / 100 if relative else bound
        if kind == "drop" and relative and bound >= 1:
            raise ValueError(
                f"{value!r}: a drop limit of 100% or more can never fail; use 1% or NAME=1%"
            )
        return cls(kind, name if equals else None, bound, relative, value)

    def allowed(self, before: float) -> Fraction:
        """Return the largest change from a value."""
        return self.bound * abs(to_fraction(before)) if self.relative else self.bound


_MAX_DOTS = 2  # maximum number of dots in the name of a metric: `recall@fppi=0.1@62.5`


def endings(name: str) -> Iterator[str]:
    """Yield the parts after the last dot, the last two, and the last three."""
    parts = name.split(".")
    return (".".join(parts[-count:]) for count in range(1, min(len(parts), _MAX_DOTS + 1) + 1))


@dataclass(frozen=True, slots=True)
class OptionNames:
    """The names of gate settings in messages: options of a command, or arguments."""

    options: bool  # True if `max_drop` is `--max-drop`
    interval_source: str  # the input that intervals require
    names: Mapping[str, str]  # names that differ from the default ones
    # True if `confidence` without a baseline gives the intervals of the metrics
    metric_intervals: bool = True

    def __call__(self, name: str) -> str:
        """Return the name of a setting."""
        name = self.names.get(name, name)
        return f"--{name.replace('_', '-')}" if self.options else name

    def limit(self, setting: str, name: str, bound: str) -> str:
        """Format a limit as an option or argument."""
        if not self.options:
            return f"{self(setting)}={{{name!r}: {bound!r}}}"
        return f"{self(setting)} {quote(f'{name}={bound}')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateConfig:
    """The gate configuration of a run."""

    limits: tuple[Limit, ...]
    option_names: OptionNames
    confidence: float | None = None  # of intervals: of changes, or of metrics without a baseline
    resamples: int = DEFAULT_RESAMPLES
    seed: int = 0
    min_ground_truths: int  # classes with fewer ground truths only warn about drops and rises
    allow_mismatch: bool = False  # True to accept a baseline of another ground truth or protocol
    detectable_drop: float | None = None  # the images needed to detect it are reported

    @classmethod
    def of(
        cls,
        limits: Sequence[Limit],
        option_names: OptionNames,
        *,
        baseline: bool,
        baseline_detections: bool,
        allow_mismatch: bool = False,
        writes_baseline: bool = False,
        **settings: Any,
    ) -> Self:
        """Return the configuration; `settings` are the other fields, None for the default."""
        given = {name: value for name, value in settings.items() if value is not None}
        for name, value in given.items():
            if name not in _INTEGERS:
                try:
                    parse_fraction(value)
                except ValueError as error:
                    raise UsageError(f"{option_names(name)}: {error}") from None
                continue
            low, high = _INTEGERS[name]
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise UsageError(
                    f"{option_names(name)}: {value!r} is not an integer from {low} to {high}"
                )
        if allow_mismatch:
            given["allow_mismatch"] = True
        changes = [limit.kind for limit in limits if limit.kind in CHANGES]
        _check_combination(
            option_names,
            given,
            changes,
            baseline=baseline,
            detections=baseline_detections,
            writes_baseline=writes_baseline,
        )
        given.setdefault(
            "min_ground_truths", DEFAULT_MIN_GROUND_TRUTHS if "confidence" in given else 0
        )
        return cls(limits=tuple(limits), option_names=option_names, **given)


def _check_combination(
    option_names: OptionNames,
    given: Collection[str],
    changes: Sequence[Kind],
    *,
    baseline: bool,
    detections: bool,
    writes_baseline: bool,
) -> None:
    """Raise UsageError for an option without another one that it requires."""
    sources = option_names("baseline"), option_names("baseline_detections")
    limits = f"{option_names('max_drop')} or {option_names('max_rise')}"
    confidence, detectable_drop = "confidence" in given, "detectable_drop" in given
    if changes and not (baseline or detections):
        either = " or ".join(dict.fromkeys(sources))
        raise UsageError(f"{option_names(f'max_{changes[0]}')} requires {either}")
    if not changes and (baseline or (detections and not (writes_baseline or detectable_drop))):
        raise UsageError(f"{sources[0] if baseline else sources[1]} requires {limits}")
    of_metrics = confidence and not (baseline or detections)
    reason = ""
    if confidence and baseline and not detections:
        reason = "a JSON report cannot be resampled"
    elif of_metrics and not detectable_drop and not option_names.metric_intervals:
        reason = "it is the level of the confidence intervals of differences"
    if reason:
        source = option_names.interval_source
        raise UsageError(f"{option_names('confidence')} requires {source} ({reason})")
    resampled = confidence or detectable_drop
    scarce_matter = changes or of_metrics or (detections and detectable_drop)
    for name, has_effect, required in (
        ("confidence", changes or of_metrics or detectable_drop, limits),
        ("resamples", resampled, option_names("confidence")),
        ("seed", resampled, option_names("confidence")),
        ("min_ground_truths", scarce_matter, limits),
        ("allow_mismatch", baseline, sources[0]),
    ):
        if name in given and not has_effect:
            raise UsageError(f"{option_names(name)} requires {required}")


class BaselineReport(NamedTuple):
    """An earlier JSON report."""

    path: str
    record: dict[str, Any]
