"""Checks of metrics against limits.

Limits and metrics are compared without rounding; differences caused by rounding are ignored
(``detap/decimals.py``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isnan, nan
from typing import Any, Literal, Protocol

from detap.analysis.intervals import MetricIntervals
from detap.decimals import decimal, format_against, fraction, snap, to_fraction
from detap.errors import UsageError
from detap.gates.config import CHANGES, FOR_HIGHER, LIMITS, OPPOSITES, RELATIONS, Kind, OptionNames
from detap.gates.metric_names import EXTREMES, MetricName, Metrics, endings, resolve, row_key

GateStatus = Literal["passed", "failed", "undefined", "inconclusive", "too-few-ground-truths"]
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on a metric.

    Attributes
    ----------
    kind : {"minimum", "maximum", "drop", "rise"}
        Minimum, maximum, or maximum drop or rise from a baseline.
    name : str or None
        As given; None for the primary metric.
    bound : Fraction
    relative : bool
        True if a drop or rise is a fraction of the baseline's value.
    text : str
        The bound as given.
    """

    kind: Kind
    name: str | None
    bound: Fraction
    relative: bool
    text: str

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


@dataclass(frozen=True, slots=True)
class Gate:
    """The result of one limit on one metric.

    Attributes
    ----------
    kind : {"minimum", "maximum", "drop", "rise"}
    name : str
        The full name of the metric.
    status : {"passed", "failed", "undefined", "inconclusive", "too-few-ground-truths"}
        ``undefined`` fails too. The last two are warnings: the interval contains the limit, or the
        class has too few ground truths.
    value : float
        NaN is undefined.
    limit : str
        The bound as given.
    message : str
        The reason for the status.
    baseline, drop, bound : float or None
        Of a drop or rise: the baseline's value, the drop (negative if the metric rose), and the
        maximum change.
    interval : (float, float) or None
        The confidence interval: of the drop or rise, or of the metric with a minimum or maximum.
    confidence : float or None
    ground_truths : int or None
        Ground truths behind the metric: of its class, area range, slice or group of classes.
    metric_name : MetricName or None
    """

    kind: Kind
    name: str
    status: GateStatus
    value: float
    limit: str
    message: str
    baseline: float | None = None
    drop: float | None = None
    bound: float | None = None
    interval: Interval | None = None
    confidence: float | None = None
    ground_truths: int | None = None
    metric_name: MetricName | None = None

    @property
    def failed(self) -> bool:
        """True if it fails the run."""
        return self.status in ("failed", "undefined")

    @property
    def warned(self) -> bool:
        """True if it is a warning."""
        return self.status in ("inconclusive", "too-few-ground-truths")

    def as_dict(self) -> dict[str, Any]:
        """Return its entry in the JSON report."""
        low, high = self.interval or (None, None)
        return {
            "kind": self.kind,
            "name": self.name,
            "status": self.status,
            "value": self.value,
            "limit": self.limit,
            "baseline": self.baseline,
            "drop": self.drop,
            "interval": None if self.interval is None else [low, high],
            "confidence": self.confidence,
            "ground_truths": self.ground_truths,
            "message": self.message,
        }


class ValueIntervals(Protocol):
    """Confidence intervals of metrics."""

    @property
    def confidence(self) -> float:
        """The level of the intervals."""

    @property
    def of_slices(self) -> Mapping[str | None, MetricIntervals]:
        """The intervals for the report, of all images (None) and of each slice."""

    def interval(self, name: MetricName) -> Interval | None:
        """Return the confidence interval of a metric; None without one."""


class DropIntervals(Protocol):
    """Confidence intervals of drops."""

    @property
    def confidence(self) -> float:
        """The level of the intervals."""

    def interval(self, name: MetricName) -> Interval:
        """Return the confidence interval of the drop of a metric."""


@dataclass(frozen=True, slots=True)
class _Against:
    """The baseline of drops and rises, with the intervals."""

    baseline: Metrics
    intervals: DropIntervals | None
    min_ground_truths: int


def check(
    limits: Sequence[Limit],
    metrics: Metrics,
    baseline: Metrics | None = None,
    *,
    intervals: DropIntervals | None = None,
    values: ValueIntervals | None = None,
    min_ground_truths: int = 0,
) -> list[Gate]:
    """Check metrics against limits, in the order of the limits.

    A metric equal to its bound passes. Changes caused by rounding are ignored.
    """
    gates: list[Gate] = []
    against = None if baseline is None else _Against(baseline, intervals, min_ground_truths)
    full = metrics if baseline is None else metrics.with_missing(baseline)
    for limit in limits:
        if limit.kind not in CHANGES:
            gates += [_level(limit, name, metrics, values) for name in resolve(limit.name, metrics)]
            continue
        if against is None:
            raise UsageError(f"a {limit.kind} limit requires a baseline")
        names = resolve(limit.name, full, against.baseline)
        # If the wildcard matches nothing else, these metrics fail as undefined.
        present = [n for n in names if not _undefined_in_both(limit, n, full, against.baseline)]
        gates += [_change(limit, name, full, against) for name in present or names]
    return gates


def check_direction(limits: Sequence[Limit], metrics: Metrics, option_names: OptionNames) -> None:
    """Raise UsageError for a limit that passes when its metric gets worse."""
    settings = {kind: setting for setting, kind in LIMITS.items()}
    for limit in limits:
        name = limit.name or metrics.primary_metric
        for_higher = limit.kind in FOR_HIGHER
        wrong = metrics.lower_is_better if for_higher else metrics.higher_is_better
        if any(map(wrong, endings(name))):
            given = option_names.limit(settings[limit.kind], name, limit.text)
            better = "lower" if for_higher else "higher"
            raise UsageError(
                f"{given} passes when the metric gets worse ({better} is better); use "
                f"{option_names(settings[OPPOSITES[limit.kind]])}"
            )
        _check_extreme(name, metrics)


def _check_extreme(name: str, metrics: Metrics) -> None:
    """Raise UsageError if a name is the best value of a metric over rows."""
    for metric in endings(name):
        declared = None if metrics.metric_of is None else metrics.metric_of(metric)
        if declared is None:
            continue  # a count, or the ending of another name
        higher = declared.higher_is_better
        best, worst = (f"{e}-{metrics.unit}." for e in (("max", "min") if higher else EXTREMES))
        if name.removesuffix(metric).endswith(best):
            better = "higher" if higher else "lower"
            raise UsageError(
                f"{best}{metric} is that of the best {metrics.unit} ({better} is better); use "
                f"{worst}{metric}"
            )


def _level(limit: Limit, name: MetricName, metrics: Metrics, values: ValueIntervals | None) -> Gate:
    """Check a metric against a minimum or maximum."""
    value, count = name.of(metrics), name.is_count(metrics)
    interval = None if values is None else values.interval(name)
    minimum = limit.kind == "minimum"
    if _is_fraction(name, metrics, value):
        _check_reachable(limit, name)
    relation = RELATIONS[limit.kind]
    if isnan(value):
        status: GateStatus = "undefined"
        message = f"{name.text} undefined, required {relation} {limit.text}"
    else:
        text = format_against(to_fraction(value), limit.bound, 0 if count else 4)
        exact = to_fraction(value)
        passed = exact >= limit.bound if minimum else exact <= limit.bound
        status = "passed" if passed else "failed"
        message = f"{_with_row(name, metrics)} {text}, required {relation} {limit.text}"
    if values is not None and interval is not None:
        message += _format_position(limit, interval, values.confidence)
    return Gate(
        limit.kind,
        name.text,
        status,
        value,
        limit.text,
        message,
        interval=interval,
        confidence=None if values is None or interval is None else values.confidence,
        ground_truths=name.ground_truths(metrics),
        metric_name=name,
    )


def _with_row(name: MetricName, metrics: Metrics, baseline: Metrics | None = None) -> str:
    """Return the name of a metric; of an extreme over rows, with the rows that have it."""
    row = name.extreme_row(metrics)
    earlier = row if baseline is None else name.extreme_row(baseline)
    if row != earlier:
        row += f", {earlier} in the baseline"
    return f"{name.text} ({row})" if row else name.text


def _is_fraction(name: MetricName, metrics: Metrics, *values: float) -> bool:
    """Return True if a metric is between 0 and 1."""
    if name.is_count(metrics):
        return False
    metric = None if metrics.metric_of is None else metrics.metric_of(name.metric)
    if metric is not None and metric.bounds != (0, 1):
        return False
    return all(isnan(value) or value <= 1 for value in values)


def _check_reachable(limit: Limit, name: MetricName) -> None:
    """Raise UsageError if a limit on a fraction always or never fails."""
    if limit.relative:
        return  # a rise by any percentage is possible from a small number
    if limit.kind == "minimum" and limit.bound > 1:
        raise UsageError(f"minimum {limit.text} can never pass: {name.text} is at most 1")
    if limit.kind == "maximum" and limit.bound >= 1:
        raise UsageError(f"maximum {limit.text} can never fail: {name.text} is at most 1")
    if limit.kind in CHANGES and limit.bound >= 1:
        hint = f"use {float(limit.bound / 100):g} or {limit.text}%" if limit.bound < 100 else ""
        raise UsageError(
            f"{limit.kind} limit {limit.text} can never fail: {name.text} is at most 1; "
            f"{hint or 'use 0.01 or 1%'}"
        )


def _undefined_in_both(limit: Limit, name: MetricName, metrics: Metrics, baseline: Metrics) -> bool:
    """Return True if a wildcard metric is undefined now and in the baseline.

    A slice without images is excepted, and fails.
    """
    if limit.name is None or "*" not in limit.name or metrics.of_slice(name.slice).empty:
        return False
    return isnan(name.of(metrics)) and isnan(_baseline_value(name, metrics, baseline))


def _baseline_value(name: MetricName, metrics: Metrics, baseline: Metrics) -> float:
    """Return the metric in the baseline, whose rows may be in another order."""
    if name.slice is not None and name.slice not in baseline.slices:
        raise UsageError(f"{name.text!r}: slice {name.slice!r} is not in the baseline")
    row = name.row
    if row is not None:
        row = baseline.of_slice(name.slice).row_index(
            row_key(metrics.of_slice(name.slice).rows[row])
        )
        if row is None:
            return nan
    try:
        return replace(name, row=row).of(baseline)
    except KeyError:
        raise UsageError(
            f"{name.text!r} is not in the baseline; regenerate it or use --baseline-detections"
        ) from None


def _change(limit: Limit, name: MetricName, metrics: Metrics, against: _Against) -> Gate:
    """Check the change of a metric from the baseline."""
    moved = "dropped" if limit.kind == "drop" else "rose"
    value, before = name.of(metrics), _baseline_value(name, metrics, against.baseline)
    if _is_fraction(name, metrics, value, before):
        _check_reachable(limit, name)
    intervals, minimum = against.intervals, against.min_ground_truths
    count = name.ground_truths(metrics)
    details: dict[str, Any] = {
        "baseline": before,
        "confidence": None if intervals is None else intervals.confidence,
        "ground_truths": count,
        "metric_name": name,
    }
    if isnan(value) or isnan(before):
        where = "" if isnan(value) else " in the baseline"
        message = f"{name.text} undefined{where}, allowed {limit.kind} {limit.text}"
        return Gate(
            limit.kind, name.text, "undefined", value, limit.text, message, drop=nan, **details
        )
    bound = limit.bound * abs(to_fraction(before)) if limit.relative else limit.bound
    change = _signed_change(limit, value, before, bound)
    scarce = count is not None and count < minimum
    interval = None if intervals is None or scarce else intervals.interval(name)
    status = _status(limit, change, bound, interval)
    min_decimals = 0 if name.is_count(metrics) else 4
    label = _with_row(name, metrics, against.baseline)
    message = f"{label} {_format_change(limit, (value, before), (change, bound), min_decimals)}"
    if intervals is not None and interval is not None:
        message += _format_interval(limit, interval, intervals.confidence)
    if status == "inconclusive":
        message += "; inconclusive: the CI contains the limit"
    if status == "failed" and scarce:
        status = "too-few-ground-truths"
        message += f"; warning only: {count} ground truths, minimum {minimum}"
    elif (
        status == "failed"
        and name.extreme is not None
        and _due_to_scarce_classes(limit, name, metrics, against)
    ):
        status = "too-few-ground-truths"
        message += f"; warning only: no class with {minimum} ground truths {moved} as far"
    return Gate(
        limit.kind,
        name.text,
        status,
        value,
        limit.text,
        message,
        drop=float(change if limit.kind == "drop" else -change),
        bound=float(bound),
        interval=interval,
        **details,
    )


def _due_to_scarce_classes(
    limit: Limit, name: MetricName, metrics: Metrics, against: _Against
) -> bool:
    """Return True if the extreme over classes with enough ground truths passes."""
    if not against.min_ground_truths:
        return False
    current, baseline = metrics.of_slice(name.slice), against.baseline.of_slice(name.slice)
    earlier = dict(zip(map(row_key, baseline.rows), baseline.by_row(name.metric), strict=True))
    counts = current.counts(name.metric)
    counts = counts or [row.get("ground_truths") or 0 for row in current.rows]
    rows = zip(current.rows, current.by_row(name.metric), counts, strict=True)
    pairs = [
        (value, earlier.get(row_key(row), nan))
        for row, value, count in rows
        if count >= against.min_ground_truths
    ]
    if not pairs:
        return True
    value, before = (name.extreme_of(values) for values in zip(*pairs, strict=True))
    bound = limit.bound * abs(to_fraction(before)) if limit.relative else limit.bound
    return _signed_change(limit, value, before, bound) <= bound


def _signed_change(limit: Limit, value: float, before: float, bound: Fraction) -> Fraction:
    """Return the change in the direction of the limit; 0 if rounding causes it."""
    new, old = to_fraction(value), to_fraction(before)
    if snap(new, old) == old:
        return Fraction(0)
    return snap(old - new if limit.kind == "drop" else new - old, bound)


def _status(
    limit: Limit, change: Fraction, bound: Fraction, interval: Interval | None
) -> GateStatus:
    if interval is None:
        return "passed" if change <= bound else "failed"
    low, high = interval if limit.kind == "drop" else (-interval[1], -interval[0])
    if isnan(low):
        return "undefined"
    if snap(to_fraction(low), bound) > bound:
        return "failed"
    return "passed" if snap(to_fraction(high), bound) <= bound else "inconclusive"


def _format_change(
    limit: Limit, values: tuple[float, float], changes: tuple[Fraction, Fraction], min_decimals: int
) -> str:
    """Format the change of a metric, with enough digits to be on the right side of the bound."""
    new, old = (to_fraction(value) for value in values)
    change, bound = changes
    if change == 0:
        return f"unchanged ({decimal(new, min_decimals)})"
    ends = f"({format_against(old, new, min_decimals)} to {format_against(new, old, min_decimals)})"
    verb = "dropped" if (change > 0) == (limit.kind == "drop") else "rose"
    if change < 0:
        return f"{verb} by {format_against(-change, Fraction(0), min_decimals)} {ends}"
    allowed = f"{limit.text} ({decimal(bound, 6)})" if limit.relative else limit.text
    return f"{verb} by {format_against(change, bound, min_decimals)} {ends}, allowed {allowed}"


def _format_position(limit: Limit, interval: Interval, confidence: float) -> str:
    """Format the interval of a metric, and whether it contains the limit."""
    low, high = (snap(to_fraction(end), limit.bound) for end in interval)
    position = "is above" if low > limit.bound else "is below" if high < limit.bound else "contains"
    bounds = ", ".join(format_against(end, limit.bound) for end in (low, high))
    return f"; {100 * confidence:g}% CI [{bounds}] {position} the limit"


def _format_interval(limit: Limit, interval: Interval, confidence: float) -> str:
    if isnan(interval[0]):
        return "; CI undefined: the metric is undefined in every resample"
    ends = interval if limit.kind == "drop" else (-interval[1], -interval[0])
    bounds = ", ".join(format_against(to_fraction(end), Fraction(0)) for end in ends)
    return f"; {100 * confidence:g}% CI of the {limit.kind} [{bounds}]"
