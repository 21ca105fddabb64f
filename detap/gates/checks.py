"""Numbers against limits: which pass, which fail, and why.

Pure: names and numbers in, verdicts out. What numbers are called,
`detap/gates/metric_names.py` says.

Limits and numbers are compared without rounding, as ``detap/decimals.py`` says; a difference that
is only rounding is none.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isnan, nan
from typing import Any, Literal, Protocol

from detap.decimals import decimal, format_against, fraction, snap, to_fraction
from detap.errors import UsageError
from detap.gates.config import CHANGES, RELATIONS, Kind
from detap.gates.metric_names import MetricName, Metrics, resolve, row_key

GateStatus = Literal["passed", "failed", "undefined", "inconclusive", "too-few-ground-truths"]
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Limit:
    """What a number must keep to.

    Attributes
    ----------
    kind : {"floor", "ceiling", "drop", "rise"}
        The least value, the largest, or the most that a number may fall or rise from a baseline.
    name : str or None
        As it was given; None is the headline.
    bound : Fraction
    relative : bool
        Whether a drop or rise is a share of the baseline's number.
    text : str
        The bound as it was given.
    """

    kind: Kind
    name: str | None
    bound: Fraction
    relative: bool
    text: str

    @classmethod
    def of(cls, kind: Kind, text: str) -> "Limit":
        """Return what an option means by ``0.005``, ``NAME=0.005`` or ``NAME=1%``.

        Parameters
        ----------
        kind : {"floor", "ceiling", "drop", "rise"}
            Only a drop or a rise may be a percentage.
        text : str

        Raises
        ------
        ValueError
            Where it means nothing.
        """
        name, equals, value = text.rpartition("=")
        value = value.strip()
        if equals and not name:
            raise ValueError(f"{text!r} names nothing before its '='")
        relative = value.endswith("%")
        if relative and kind not in CHANGES:
            raise ValueError(f"{value!r}: write a share, such as 0.5, not a percentage")
        try:
            bound = fraction(value.removesuffix("%"))
        except ValueError as error:
            raise ValueError(f"{error}; write 0.5, or NAME=0.5") from None
        if kind in CHANGES and bound < 0:
            raise ValueError(f"{value!r}: a {kind} that is allowed is 0 or more")
        if kind == "floor" and bound < 0:
            raise ValueError(f"{value!r}: a floor below 0 never fails; write 0.5, or NAME=0.5")
        bound = bound / 100 if relative else bound
        if kind == "drop" and relative and bound >= 1:
            raise ValueError(f"{value!r}: no number falls by more than 100%; write 1%, or NAME=1%")
        return cls(kind, name if equals else None, bound, relative, value)


@dataclass(frozen=True, slots=True)
class Gate:
    """One number against one limit.

    Attributes
    ----------
    kind : {"floor", "ceiling", "drop", "rise"}
    name : str
        The number's name in full.
    status : {"passed", "failed", "undefined", "inconclusive", "too-few-ground-truths"}
        ``undefined`` fails too. The last two are warnings: noise can explain the change, or the
        class has too few ground truths to tell.
    value : float
        NaN is undefined.
    limit : str
        The bound as it was given.
    message : str
        A sentence that says why.
    baseline, drop, bound : float or None
        Of a drop or rise: what the number was, by how much it fell (below 0 where it rose), and by
        how much it may move.
    interval : (float, float) or None
        The interval of that drop.
    confidence : float or None
    ground_truths : int or None
        How many the number counts: of its class, area range, slice or group of classes.
    metric_name : MetricName or None
        Which number it is.
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
        """Whether it fails the run."""
        return self.status in ("failed", "undefined")

    @property
    def warned(self) -> bool:
        """Whether it is a warning."""
        return self.status in ("inconclusive", "too-few-ground-truths")

    def as_dict(self) -> dict[str, Any]:
        """Return what the JSON report says of it."""
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


class Noise(Protocol):
    """How changes are told from noise."""

    @property
    def confidence(self) -> float:
        """The level of the intervals."""

    def interval(self, name: MetricName) -> Interval:
        """Return the interval of the drop of a number."""


@dataclass(frozen=True, slots=True)
class _Against:
    """What the numbers are held to besides limits."""

    baseline: Metrics
    noise: Noise | None
    min_ground_truths: int


def check(
    limits: Sequence[Limit],
    metrics: Metrics,
    baseline: Metrics | None = None,
    *,
    noise: Noise | None = None,
    min_ground_truths: int = 0,
) -> list[Gate]:
    """Hold numbers against limits, in the order of the limits.

    A number passes where it is on the right side of its bound or equal to it. Drops and rises are
    from the baseline's number; a change that is no more than rounding is none.

    Parameters
    ----------
    limits : sequence of Limit
    metrics : Numbers
        Now.
    baseline : Numbers, optional
        Then; needed by drops and rises.
    noise : Noise, optional
        With it, a drop or rise fails only where its whole interval is beyond the bound, and warns
        where the interval has the bound inside.
    min_ground_truths : int
        Drops and rises of numbers that count fewer have no interval, and warn instead of failing.

    Raises
    ------
    UsageError
        Where a limit names no number (of both, for a drop or rise), or is out of reach.
    """
    gates: list[Gate] = []
    against = None if baseline is None else _Against(baseline, noise, min_ground_truths)
    whole = metrics if baseline is None else metrics.with_missing(baseline)
    for limit in limits:
        if limit.kind not in CHANGES:
            gates += [_level(limit, name, metrics) for name in resolve(limit.name, metrics)]
            continue
        if against is None:
            raise UsageError(f"a {limit.kind} is from a baseline, and there is none")
        names = resolve(limit.name, whole, against.baseline)
        # Where a wildcard meets nothing else either, nothing would have been judged.
        judged = [n for n in names if not _absent_in_both(limit, n, whole, against.baseline)]
        gates += [_change(limit, name, whole, against) for name in judged or names]
    return gates


def _level(limit: Limit, name: MetricName, metrics: Metrics) -> Gate:
    """Hold a number to a least or largest value."""
    value, count = name.of(metrics), name.is_count(metrics)
    floor = limit.kind == "floor"
    if _is_share(name, metrics, value):
        _refuse_out_of_reach(limit, name)
    least = RELATIONS[limit.kind]
    if isnan(value):
        status: GateStatus = "undefined"
        message = f"{name.text} undefined, required {least} {limit.text}"
    else:
        shown = format_against(to_fraction(value), limit.bound, 0 if count else 4)
        kept = to_fraction(value) >= limit.bound if floor else to_fraction(value) <= limit.bound
        status = "passed" if kept else "failed"
        message = f"{name.text} {shown}, required {least} {limit.text}"
    return Gate(
        limit.kind,
        name.text,
        status,
        value,
        limit.text,
        message,
        ground_truths=name.ground_truths(metrics),
        metric_name=name,
    )


def _is_share(name: MetricName, metrics: Metrics, *values: float) -> bool:
    """Return whether a number goes from 0 to 1."""
    if name.is_count(metrics):
        return False
    metric = None if metrics.metric_of is None else metrics.metric_of(name.metric)
    if metric is not None and metric.bounds != (0, 1):
        return False
    return all(isnan(value) or value <= 1 for value in values)


def _refuse_out_of_reach(limit: Limit, name: MetricName) -> None:
    """Refuse a limit on a share that always or never fails.

    Raises
    ------
    UsageError
        If no number from 0 to 1 passes, or none fails.
    """
    if limit.relative:
        return  # a rise by any percentage is possible from a small number
    if limit.kind == "floor" and limit.bound > 1:
        raise UsageError(f"{name.text} goes from 0 to 1; a floor of {limit.text} is out of reach")
    if limit.kind == "ceiling" and limit.bound >= 1:
        raise UsageError(f"{name.text} goes from 0 to 1; a ceiling of {limit.text} holds nothing")
    if limit.kind in CHANGES and limit.bound >= 1:
        hint = f"write {float(limit.bound / 100):g}, or {limit.text}%" if limit.bound < 100 else ""
        raise UsageError(
            f"{name.text} goes from 0 to 1; a {limit.kind} limit of {limit.text} never fails; "
            f"{hint or 'write 0.01, or 1%'}"
        )


def _absent_in_both(limit: Limit, name: MetricName, metrics: Metrics, baseline: Metrics) -> bool:
    """Return whether a wildcard stands for a number that is undefined now as then.

    Nothing has changed there; but a slice without images always fails.
    """
    if limit.name is None or "*" not in limit.name or metrics.of_slice(name.slice).empty:
        return False
    return isnan(name.of(metrics)) and isnan(_then(name, metrics, baseline))


def _then(name: MetricName, metrics: Metrics, baseline: Metrics) -> float:
    """Return the number of that name in the baseline, whose rows may stand in another order."""
    if name.slice is not None and name.slice not in baseline.slices:
        raise UsageError(f"{name.text!r}: the baseline has no slice {name.slice!r}")
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
            f"{name.text!r}: the baseline has no such number; make it anew, or give "
            "--baseline-detections"
        ) from None


def _change(limit: Limit, name: MetricName, metrics: Metrics, against: _Against) -> Gate:
    """Hold a number to what it was."""
    value, then = name.of(metrics), _then(name, metrics, against.baseline)
    if _is_share(name, metrics, value, then):
        _refuse_out_of_reach(limit, name)
    noise, minimum = against.noise, against.min_ground_truths
    few = name.ground_truths(metrics)
    facts: dict[str, Any] = {
        "baseline": then,
        "confidence": None if noise is None else noise.confidence,
        "ground_truths": few,
        "metric_name": name,
    }
    if isnan(value) or isnan(then):
        where = "" if isnan(value) else " in the baseline"
        message = f"{name.text} undefined{where}, allowed {limit.kind} {limit.text}"
        return Gate(
            limit.kind, name.text, "undefined", value, limit.text, message, drop=nan, **facts
        )
    bound = limit.bound * abs(to_fraction(then)) if limit.relative else limit.bound
    moved = _moved(limit, value, then, bound)
    scarce = few is not None and few < minimum
    interval = None if noise is None or scarce else noise.interval(name)
    status = _status(limit, moved, bound, interval)
    places = 0 if name.is_count(metrics) else 4
    message = f"{name.text} {_format_change(limit, (value, then), (moved, bound), places)}"
    if noise is not None and interval is not None:
        message += _format_interval(limit, interval, noise.confidence)
    if status == "inconclusive":
        message += "; inconclusive: the CI contains the limit"
    if status == "failed" and scarce:
        status = "too-few-ground-truths"
        message += f"; warning only: {few} ground truths, minimum {minimum}"
    elif status == "failed" and name.smallest and _of_few_alone(limit, name, metrics, against):
        status = "too-few-ground-truths"
        message += f"; warning only: no class with {minimum} ground truths dropped as far"
    return Gate(
        limit.kind,
        name.text,
        status,
        value,
        limit.text,
        message,
        drop=float(moved if limit.kind == "drop" else -moved),
        bound=float(bound),
        interval=interval,
        **facts,
    )


def _of_few_alone(limit: Limit, name: MetricName, metrics: Metrics, against: _Against) -> bool:
    """Return whether the smallest number passes among the classes with enough ground truths."""
    if not against.min_ground_truths:
        return False
    now, then = metrics.of_slice(name.slice), against.baseline.of_slice(name.slice)
    was = dict(zip(map(row_key, then.rows), then.by_row(name.metric), strict=True))
    counts = now.counts(name.metric) or [row.get("ground_truths") or 0 for row in now.rows]
    rows = zip(now.rows, now.by_row(name.metric), counts, strict=True)
    pairs = [
        (value, was.get(row_key(row), nan))
        for row, value, count in rows
        if count >= against.min_ground_truths
    ]
    if not pairs:
        return True
    value, before = (min(side) for side in zip(*pairs, strict=True))
    bound = limit.bound * abs(to_fraction(before)) if limit.relative else limit.bound
    return _moved(limit, value, before, bound) <= bound


def _moved(limit: Limit, value: float, then: float, bound: Fraction) -> Fraction:
    """Return by how much a number moved to the bad side; what is only rounding moves nothing."""
    now, was = to_fraction(value), to_fraction(then)
    if snap(now, was) == was:
        return Fraction(0)
    return snap(was - now if limit.kind == "drop" else now - was, bound)


def _status(
    limit: Limit, moved: Fraction, bound: Fraction, interval: Interval | None
) -> GateStatus:
    if interval is None:
        return "passed" if moved <= bound else "failed"
    low, high = interval if limit.kind == "drop" else (-interval[1], -interval[0])
    if isnan(low):
        return "undefined"
    if snap(to_fraction(low), bound) > bound:
        return "failed"
    return "passed" if snap(to_fraction(high), bound) <= bound else "inconclusive"


def _format_change(
    limit: Limit, values: tuple[float, float], moves: tuple[Fraction, Fraction], places: int
) -> str:
    """Format the change of a metric, with enough digits to be on the right side of the bound."""
    now, then = (to_fraction(value) for value in values)
    moved, bound = moves
    if moved == 0:
        return f"unchanged ({decimal(now, places)})"
    ends = f"({format_against(then, now, places)} to {format_against(now, then, places)})"
    verb = "dropped" if (moved > 0) == (limit.kind == "drop") else "rose"
    if moved < 0:
        return f"{verb} by {format_against(-moved, Fraction(0), places)} {ends}"
    allowed = f"{limit.text} ({decimal(bound, 6)})" if limit.relative else limit.text
    return f"{verb} by {format_against(moved, bound, places)} {ends}, allowed {allowed}"


def _format_interval(limit: Limit, interval: Interval, confidence: float) -> str:
    if isnan(interval[0]):
        return "; CI undefined: the metric is undefined in every resample"
    ends = interval if limit.kind == "drop" else (-interval[1], -interval[0])
    bounds = ", ".join(format_against(to_fraction(end), Fraction(0)) for end in ends)
    return f"; {100 * confidence:g}% CI of the {limit.kind} [{bounds}]"
