"""Checks of metrics against limits.

Limits and metrics are compared without rounding; differences caused by rounding are ignored
(``detap/decimals.py``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import isnan, nan
from typing import Literal, NamedTuple

from detap.analysis.intervals import MetricIntervals
from detap.decimals import decimal, format_against, snap, to_fraction
from detap.errors import UsageError
from detap.gates.config import CHANGES, RULES, Kind, Limit, OptionNames, endings
from detap.gates.metric_names import EXTREMES, MetricName, Metrics, resolve, row_key

GateStatus = Literal["passed", "failed", "undefined", "inconclusive", "too-few-ground-truths"]
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Gate:
    """The result of one limit on one metric; ``undefined`` fails too."""

    kind: Kind
    metric: MetricName
    # Warnings: the interval contains the limit, or the class has too few ground truths.
    status: GateStatus
    value: float
    limit: str  # the bound as given
    message: str  # the reason for the status
    # Of a drop or rise: the earlier value, the drop (negative if it rose), the maximum change.
    baseline: float | None = None
    drop: float | None = None
    bound: float | None = None
    interval: Interval | None = None  # of the drop or rise, or of the metric
    confidence: float | None = None
    ground_truths: int | None = None  # of the metric's class, area range, slice or class group

    @property
    def name(self) -> str:
        """The full name of the metric."""
        return self.metric.text

    @property
    def failed(self) -> bool:
        """True if it fails the run."""
        return self.status in ("failed", "undefined")

    @property
    def warned(self) -> bool:
        """True if it is a warning."""
        return self.status in ("inconclusive", "too-few-ground-truths")


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Confidence intervals of metrics, or of their drops."""

    confidence: float
    interval: Callable[[MetricName], Interval | None]
    # Those that the report lists: of all images (None) and of each slice.
    of_slices: Mapping[str | None, MetricIntervals] = field(default_factory=dict)


class _Against(NamedTuple):
    """The baseline of drops and rises, with the intervals."""

    baseline: Metrics
    intervals: Intervals | None
    min_ground_truths: int


def check(
    limits: Sequence[Limit],
    metrics: Metrics,
    baseline: Metrics | None = None,
    *,
    intervals: Intervals | None = None,  # of drops from a baseline; without one, of the metrics
    min_ground_truths: int = 0,
) -> list[Gate]:
    """Check metrics against limits, in the order of the limits."""
    gates: list[Gate] = []
    against = None if baseline is None else _Against(baseline, intervals, min_ground_truths)
    full = metrics if baseline is None else metrics.with_missing(baseline)
    values = intervals if baseline is None else None
    for limit in limits:
        if limit.kind not in CHANGES:
            gates += [_level(limit, name, metrics, values) for name in resolve(limit.name, metrics)]
            continue
        if against is None:
            raise UsageError(f"a {limit.kind} limit requires a baseline")
        names = resolve(limit.name, full, against.baseline)
        if "*" in (limit.name or ""):
            # Metrics undefined now and in the baseline are left out, unless the wildcard matches
            # nothing else. Those of a slice without images fail.
            names = [
                name
                for name in names
                if full.of_slice(name.slice).empty
                or not isnan(name.of(full))
                or not isnan(_baseline_value(name, full, against.baseline))
            ] or names
        gates += [_change(limit, name, full, against) for name in names]
    return gates


def check_direction(limits: Sequence[Limit], metrics: Metrics, option_names: OptionNames) -> None:
    """Raise UsageError for a limit that passes when its metric, or that of a row, gets worse."""
    for limit in limits:
        name, rule = limit.name or metrics.primary_metric, RULES[limit.kind]
        wrong = metrics.lower_is_better if rule.for_higher else metrics.higher_is_better
        if any(map(wrong, endings(name))):
            better = "lower" if rule.for_higher else "higher"
            raise UsageError(
                f"{option_names.limit(rule.option, name, limit.text)} passes when the metric "
                f"gets worse ({better} is better); use "
                f"{option_names(RULES[rule.opposite].option)}"
            )
        for metric in endings(name):
            declared = metrics.metric_of(metric)
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


def _level(limit: Limit, name: MetricName, metrics: Metrics, values: Intervals | None) -> Gate:
    """Check a metric against a minimum or maximum."""
    value = name.of(metrics)
    interval = None if values is None else values.interval(name)
    _check_reachable(limit, name, metrics, value)
    relation = RULES[limit.kind].relation
    if isnan(value):
        status: GateStatus = "undefined"
        message = f"{name.text} undefined, required {relation} {limit.text}"
    else:
        exact = to_fraction(value)
        text = format_against(exact, limit.bound, 0 if name.is_count(metrics) else 4)
        passed = exact >= limit.bound if limit.kind == "minimum" else exact <= limit.bound
        status = "passed" if passed else "failed"
        message = f"{_with_row(name, metrics)} {text}, required {relation} {limit.text}"
    if values is not None and interval is not None:
        low, high = (snap(to_fraction(end), limit.bound) for end in interval)
        above, below = low > limit.bound, high < limit.bound
        position = "is above" if above else "is below" if below else "contains"
        bounds = ", ".join(format_against(end, limit.bound) for end in (low, high))
        message += f"; {100 * values.confidence:g}% CI [{bounds}] {position} the limit"
    return Gate(
        *(limit.kind, name, status, value, limit.text, message),
        interval=interval,
        confidence=None if values is None or interval is None else values.confidence,
        ground_truths=name.ground_truths(metrics),
    )


def _with_row(name: MetricName, metrics: Metrics, baseline: Metrics | None = None) -> str:
    """Return the name of a metric; of an extreme over rows, with the rows that have it."""
    row = name.extreme_row(metrics)
    earlier = row if baseline is None else name.extreme_row(baseline)
    if row != earlier:
        row += f", {earlier} in the baseline"
    return f"{name.text} ({row})" if row else name.text


def _check_reachable(limit: Limit, name: MetricName, metrics: Metrics, *values: float) -> None:
    """Raise UsageError if a limit on a metric from 0 to 1 always or never fails."""
    if limit.relative or name.is_count(metrics) or any(value > 1 for value in values):
        return  # a rise by any percentage is possible from a small number
    metric = metrics.metric_of(name.metric)
    if metric is not None and metric.bounds != (0, 1):
        return
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


def _baseline_value(name: MetricName, metrics: Metrics, baseline: Metrics) -> float:
    """Return the metric in the baseline, whose rows may be in another order."""
    if name.slice is not None and name.slice not in baseline.slices:
        raise UsageError(f"{name.text!r}: slice {name.slice!r} is not in the baseline")
    row = name.row
    if row is not None:
        key = row_key(metrics.of_slice(name.slice).rows[row])
        keys = map(row_key, baseline.of_slice(name.slice).rows)
        row = next((index for index, each in enumerate(keys) if each == key), None)
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
    value, before = name.of(metrics), _baseline_value(name, metrics, against.baseline)
    _check_reachable(limit, name, metrics, value, before)
    intervals, minimum = against.intervals, against.min_ground_truths
    count = name.ground_truths(metrics)
    gate = partial(
        Gate,
        kind=limit.kind,
        metric=name,
        value=value,
        limit=limit.text,
        baseline=before,
        confidence=None if intervals is None else intervals.confidence,
        ground_truths=count,
    )
    if isnan(value) or isnan(before):
        where = "" if isnan(value) else " in the baseline"
        message = f"{name.text} undefined{where}, allowed {limit.kind} {limit.text}"
        return gate(status="undefined", message=message, drop=nan)
    bound = limit.allowed(before)
    change = _signed_change(limit, value, before)
    scarce = count is not None and count < minimum
    interval = None if intervals is None or scarce else intervals.interval(name)
    directed = interval  # of the change in the direction of the limit
    if interval is not None and limit.kind == "rise":
        directed = -interval[1], -interval[0]
    status = _status(change, bound, directed)
    min_decimals = 0 if name.is_count(metrics) else 4
    label = _with_row(name, metrics, against.baseline)
    message = f"{label} {_format_change(limit, (value, before), (change, bound), min_decimals)}"
    if intervals is not None and directed is not None:
        message += _format_interval(limit, directed, intervals.confidence)
    if status == "inconclusive":
        message += "; inconclusive: the CI contains the limit"
    elif status == "failed" and scarce:
        status = "too-few-ground-truths"
        message += f"; warning only: {count} ground truths, minimum {minimum}"
    elif status == "failed" and _due_to_scarce_classes(limit, name, metrics, against):
        status = "too-few-ground-truths"
        moved = "dropped" if limit.kind == "drop" else "rose"
        message += f"; warning only: no class with {minimum} ground truths {moved} as far"
    return gate(
        status=status,
        message=message,
        drop=float(change if limit.kind == "drop" else -change),
        bound=float(bound),
        interval=interval,
    )


def _due_to_scarce_classes(
    limit: Limit, name: MetricName, metrics: Metrics, against: _Against
) -> bool:
    """Return True for an extreme that passes over the classes with enough ground truths."""
    if name.extreme is None or not against.min_ground_truths:
        return False
    current, baseline = metrics.of_slice(name.slice), against.baseline.of_slice(name.slice)
    earlier = baseline.by_key(name.metric)
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
    return _signed_change(limit, value, before) <= limit.allowed(before)


def _signed_change(limit: Limit, value: float, before: float) -> Fraction:
    """Return the change in the direction of the limit; 0 if rounding causes it."""
    new, old = to_fraction(value), to_fraction(before)
    if snap(new, old) == old:
        return Fraction(0)
    return snap(old - new if limit.kind == "drop" else new - old, limit.allowed(before))


def _status(change: Fraction, bound: Fraction, interval: Interval | None) -> GateStatus:
    if interval is None:
        return "passed" if change <= bound else "failed"
    low, high = interval
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


def _format_interval(limit: Limit, interval: Interval, confidence: float) -> str:
    if isnan(interval[0]):
        return "; CI undefined: the metric is undefined in every resample"
    bounds = ", ".join(format_against(to_fraction(end), Fraction(0)) for end in interval)
    return f"; {100 * confidence:g}% CI of the {limit.kind} [{bounds}]"
