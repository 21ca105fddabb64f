r"""Names of metrics in gates.

``AP50``
    a metric of the summary, or any other of the protocol (``AP90``);
``class:person.AP``
    a metric of one class; ``class:*.AP`` of each class with ground truth;
``min-class.AP``, ``max-class.MR-2``
    the minimum or maximum of these;
``F1``, ``precision``, ``recall``, ``false-positives-per-image``
    at a score threshold, also of a class;
``set:coco.AP50``, ``set:*.AP50``, ``min-set.AP``, ``max-set.MR-2``, ``mean-set.AP``
    of one of several data sets, of each, the extremes, and the mean, which is also ``AP``;
``slice:night.AP50``, ``slice:night.class:person.AP``, ``slice:*.AP50``
    any of the above in one slice, or in each.

The last dot separates the metric from the class or slice (an earlier one if the metric has dots,
as ``AP62.5``), so that names may contain dots and colons. If a slice and a class both match, the
longest name wins. A single ``*`` matches every name; a class named ``*`` is written ``\*``.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from typing import Any, Literal, NoReturn

from detap.errors import UsageError
from detap.gates.config import endings
from detap.metrics import METRICS, Metric
from detap.metrics.at_threshold import AT_THRESHOLD
from detap.text_input import suggest

Extreme = Literal["min", "max"]
EXTREMES: tuple[Extreme, ...] = ("min", "max")  # the extremes over rows that names can have
MEAN = "mean-set."  # begins the name of a mean over data sets
_STARS = re.compile(r"\\+\*")
_NAMES_OF_ROWS = ("name", "id")
_LOWER_IS_BETTER = ("false_positives", "duplicates", "gap")
"""Columns of the rows that are not a :class:`Metric`."""


def absent(metric: str) -> NoReturn:
    """Raise KeyError for any metric."""
    raise KeyError(metric)


@dataclass(frozen=True, slots=True)
class Metrics:
    """The metrics that gates can name; functions raise KeyError for an unknown metric."""

    primary_metric: str
    summary: Mapping[str, float | None]
    # One per class, query or data set, with its name and metrics; NaN and None are undefined.
    rows: Sequence[Mapping[str, Any]] = ()
    unit: str = "class"
    slices: "Mapping[str, Metrics]" = field(default_factory=dict)
    compute_overall: Callable[[str], float] = absent
    compute_rows: Callable[[str], Sequence[float]] = absent  # for all rows
    compute_counts: Callable[[str], Sequence[int]] = absent  # ground truths of each row
    metric_of: Callable[[str], Metric | None] = lambda _: None  # None for a count
    empty: bool = False  # True for a slice without images
    has_scores: bool = True  # False for detections without, whose F1 has no score threshold

    def overall(self, metric: str) -> float:
        """Return a metric of the summary."""
        value = self.summary[metric] if metric in self.summary else self.compute_overall(metric)
        return nan if value is None else float(value)

    def has(self, metric: str) -> bool:
        """Return True if the summary has this metric."""
        return _is_known(self.overall, metric)

    def by_row(self, metric: str) -> list[float]:
        """Return a metric of all rows, in their order."""
        if metric in _NAMES_OF_ROWS:
            raise KeyError(metric)
        in_rows = self.rows and metric in self.rows[0]
        values: Sequence[Any] = (
            [row.get(metric) for row in self.rows] if in_rows else self.compute_rows(metric)
        )
        if any(isinstance(value, str) for value in values):
            raise KeyError(metric)
        return [nan if value is None else float(value) for value in values]

    def row_has(self, metric: str) -> bool:
        """Return True if the rows have this metric."""
        return _is_known(self.by_row, metric)

    def row_name(self, metric: str) -> str | None:
        """Return the name in the rows of a metric of the summary: AP for mAP."""
        names = (metric.removeprefix("m"), metric)
        return next((name for name in names if self.row_has(name)), None)

    def counts(self, metric: str) -> list[int] | None:
        """Return the ground truths of each row behind a metric; None if unknown."""
        try:
            counts = [*self.compute_counts(metric)]
        except KeyError:
            return None
        # Rows of the baseline alone have none.
        return counts + [0] * (len(self.rows) - len(counts)) if counts else None

    def lower_is_better(self, metric: str) -> bool:
        """Return True for a loss, or for a metric or count of errors."""
        declared = self.metric_of(metric)
        if declared is not None:
            return not declared.higher_is_better
        return metric in _LOWER_IS_BETTER or metric.endswith("_loss")

    def higher_is_better(self, metric: str) -> bool:
        """Return True for a metric of which more is better; False for counts."""
        declared = self.metric_of(metric)
        return declared is not None and declared.higher_is_better

    def of_slice(self, tag: str | None) -> "Metrics":
        """Return the metrics of a slice, or all metrics for None."""
        return self if tag is None else self.slices[tag]

    def by_key(self, metric: str) -> dict[tuple[str, str], float]:
        """Return a metric of all rows, by their name and id."""
        return dict(zip(map(row_key, self.rows), self.by_row(metric), strict=True))

    def at_threshold(self, name: "MetricName") -> bool:
        """Return True for a metric at a score threshold that is not a column of the rows."""
        rows = self.of_slice(name.slice).rows
        column = name.in_rows and bool(rows) and name.metric in rows[0]
        return self.has_scores and name.metric in AT_THRESHOLD and not column

    def undefined(self) -> "Metrics":
        """Return the same metrics, all undefined, with counts 0."""
        return replace(
            self,
            summary=dict.fromkeys(self.summary, nan),
            rows=[_undefined(row) for row in self.rows],
            slices={},
            compute_overall=lambda metric: nan * self.overall(metric),
            compute_rows=lambda metric: [nan] * len(self.by_row(metric)),
            compute_counts=lambda _: [0] * len(self.rows),
            empty=True,
        )

    def with_ids_of(self, other: "Metrics") -> "Metrics":
        """Return the same metrics, with row ids from `other`, a ground truth's, by unique name."""
        ids = _ids_by_name(other.rows)
        known, unique = {row_key(row) for row in other.rows}, _ids_by_name(self.rows)
        rows = [
            {**row, "id": ids[row["name"]]}
            if row_key(row) not in known and row["name"] in ids.keys() & unique.keys()
            else row
            for row in self.rows
        ]
        slices = {
            tag: part.with_ids_of(other.slices[tag]) if tag in other.slices else part
            for tag, part in self.slices.items()
        }
        return replace(self, rows=rows, slices=slices)

    def with_missing(self, baseline: "Metrics") -> "Metrics":
        """Return the metrics, with undefined rows and slices for those only in a baseline."""
        known = {row_key(row) for row in self.rows}
        missing = [_undefined(row) for row in baseline.rows if row_key(row) not in known]
        slices = {
            tag: part.with_missing(baseline.slices[tag]) if tag in baseline.slices else part
            for tag, part in self.slices.items()
        }
        if slices:
            slices |= {
                tag: part.undefined() for tag, part in baseline.slices.items() if tag not in slices
            }
        return replace(
            self,
            rows=[*self.rows, *missing],
            slices=slices,
            compute_rows=lambda metric: [*self.by_row(metric), *[nan] * len(missing)],
        )


def _is_known(compute: Callable[[str], object], metric: str) -> bool:
    try:
        compute(metric)
    except KeyError:
        return False
    return True


def row_key(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name and id of a row."""
    return str(row["name"]), str(row.get("id"))


def _ids_by_name(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ids by name, for names of a single row."""
    counts = Counter(row["name"] for row in rows)
    return {row["name"]: row.get("id") for row in rows if counts[row["name"]] == 1}


def is_count(value: object) -> bool:
    """Return True if a value of a row is a count."""
    return isinstance(value, int) and not isinstance(value, bool)


def _undefined(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value if isinstance(value, str) or key == "id" else 0 if is_count(value) else nan
        for key, value in row.items()
    }


@dataclass(frozen=True, slots=True)
class MetricName:
    """One metric: a name without wildcards."""

    metric: str
    row: int | None  # None for a metric of the summary or an extreme over rows
    extreme: Extreme | None
    slice: str | None
    text: str  # the full name

    @property
    def in_rows(self) -> bool:
        """True for a metric of the rows."""
        return self.row is not None or self.extreme is not None

    def of(self, metrics: Metrics) -> float:
        """Return the value."""
        metrics = metrics.of_slice(self.slice)
        if self.extreme is not None:
            defined = [value for value in metrics.by_row(self.metric) if not isnan(value)]
            return self.extreme_of(defined)
        if self.row is not None:
            return metrics.by_row(self.metric)[self.row]
        return metrics.overall(self.metric)

    def extreme_of(self, values: Iterable[float]) -> float:
        """Return the minimum or maximum of values, as named; NaN without any."""
        return (max if self.extreme == "max" else min)(values, default=nan)

    def extreme_row(self, metrics: Metrics) -> str:
        """Return the name of the row with the extreme, and how many more rows have it."""
        value = self.of(metrics)
        if self.extreme is None or isnan(value):
            return ""
        values = metrics.of_slice(self.slice).by_key(self.metric)
        first, *others = [name for (name, _), each in values.items() if each == value]
        return f"{first} and {len(others)} more" if others else first

    def ground_truths(self, metrics: Metrics) -> int | None:
        """Return the number of ground truths behind the metric; None if unknown."""
        if self.extreme is not None:
            return None  # the baseline's may be of another row
        part = metrics.of_slice(self.slice)
        counts = part.counts(self.metric)
        if self.row is None:
            return None if counts is None else sum(counts)
        count = part.rows[self.row].get("ground_truths") if counts is None else counts[self.row]
        return None if count is None else int(count)

    def is_count(self, metrics: Metrics) -> bool:
        """Return True if the metric is a count."""
        rows = metrics.of_slice(self.slice).rows
        return self.in_rows and bool(rows) and is_count(rows[0].get(self.metric))


def resolve(
    name: str | None, metrics: Metrics, baseline: Metrics | None = None
) -> list[MetricName]:
    """Return the metrics that a name matches."""
    if name is None:
        return [MetricName(metrics.primary_metric, None, None, None, metrics.primary_metric)]
    if not name.startswith("slice:"):
        return list(_within(name, name, (metrics, baseline), None))
    if not metrics.slices:
        raise UsageError(f"{name!r}: no slices; use --slices or --slice-by")
    rest = name.removeprefix("slice:")
    owners = [tag for tag in metrics.slices if rest.startswith(f"{escaped(tag)}.")]
    if rest.startswith("*."):
        tags = dict.fromkeys(metrics.slices, rest[2:])
    elif owners:
        owner = max(owners, key=len)
        tags = {owner: rest[len(escaped(owner)) + 1 :]}
    else:
        raise _unknown(f"{name!r}: unknown slice", rest.partition(".")[0], metrics.slices)
    return [
        match
        for tag, remaining in tags.items()
        for earlier in [None if baseline is None else baseline.slices.get(tag)]
        for match in _within(name, remaining, (metrics.slices[tag], earlier), tag)
    ]


def check_metric(name: str | None, metrics: Metrics) -> None:
    """Raise UsageError if a name ends in an unknown metric; classes and slices are not checked."""
    if name is None:
        return
    heads = (f"{metrics.unit}:", *(f"{extreme}-{metrics.unit}" for extreme in EXTREMES))
    of_rows = any(part.startswith(heads) for part in name.removeprefix("slice:").split(".")[:-1])
    has = metrics.row_has if of_rows else metrics.has
    if not any(map(has, endings(name))):
        _check_metric(name, next(endings(name)), metrics, of_rows=of_rows)


def _within(
    full_name: str, name: str, both: tuple[Metrics, Metrics | None], tag: str | None
) -> Iterator[MetricName]:
    metrics = both[0]
    prefix = "" if tag is None else f"slice:{tag}."
    unit = f"{metrics.unit}:"
    extreme = next((e for e in EXTREMES if name.startswith(f"{e}-{metrics.unit}.")), None)
    if extreme is not None:
        metric = name.removeprefix(f"{extreme}-{metrics.unit}.")
        _check_metric(full_name, metric, metrics, of_rows=True)
        yield MetricName(metric, None, extreme, tag, f"{prefix}{name}")
    elif name.startswith(unit):
        text = name.removeprefix(unit)
        label, _, metric = text.rpartition(".")
        for ending in endings(text):  # at the last dot, or at an earlier one if the metric has dots
            head = text.removesuffix(ending).removesuffix(".")
            if head and metrics.row_has(ending):
                label, metric = head, ending
                break
        _check_metric(full_name, metric, metrics, of_rows=True)
        for row in _rows(full_name, label, metric, both):
            row_name = metrics.rows[row]["name"]
            yield MetricName(metric, row, None, tag, f"{prefix}{unit}{row_name}.{metric}")
    else:
        _check_metric(full_name, name, metrics, of_rows=False)
        yield MetricName(name, None, None, tag, f"{prefix}{name}")


def _rows(
    full_name: str, label: str, metric: str, both: tuple[Metrics, Metrics | None]
) -> list[int]:
    metrics, baseline = both
    if label == "*":
        known = baseline is not None and baseline.row_has(metric)
        earlier = baseline.by_key(metric) if baseline and known else {}
        values = metrics.by_row(metric)
        rows = [
            index
            for index, row in enumerate(metrics.rows)
            if row.get("ground_truths")
            or not isnan(values[index])
            or not isnan(earlier.get(row_key(row), nan))
        ]
        if not rows:
            raise UsageError(f"{full_name!r}: no {metrics.unit} has ground truth")
        return rows
    names = [str(row["name"]) for row in metrics.rows]
    rows = [row for row, name in enumerate(names) if escaped(name) == label]
    if not rows:
        raise _unknown(f"{full_name!r}: unknown {metrics.unit}", label, names)
    return rows


def escaped(name: str) -> str:
    r"""Escape a name: ``*`` becomes ``\*``, and ``\*`` becomes ``\\*``."""
    return f"\\{name}" if name == "*" or _STARS.fullmatch(name) else name


def _check_metric(full_name: str, metric: str, metrics: Metrics, *, of_rows: bool) -> None:
    has = metrics.row_has if of_rows else metrics.has
    if has(metric):
        return
    row = metrics.rows[0] if metrics.rows else {}
    row_names = [key for key, value in row.items() if not isinstance(value, str) and key != "id"]
    known = row_names if of_rows else list(metrics.summary)
    known += [name for name in AT_THRESHOLD if name not in known and has(name)]
    hint = suggest(metric, known, repr) or f"available: {', '.join(known)}"
    if any(one.name == f"{metric}=" for one in METRICS):
        hint = f"it needs a number before the limit: {metric}=0.9=0.5"
    elif not of_rows and metric in row_names:
        extreme = "max" if metrics.lower_is_better(metric) else "min"
        hint = f"did you mean {metrics.unit}:NAME.{metric} or {extreme}-{metrics.unit}.{metric}?"
    name, _, of_class = metric.partition(".")
    if not of_rows and any(row.get("name") == name for row in metrics.rows):
        hint = f"did you mean {metrics.unit}:{name}.{of_class or row_names[0]}?"
    prefix = "" if full_name == metric else f"{full_name!r}: "
    subject = f"{metrics.unit} metric" if of_rows else "metric"
    raise UsageError(f"{prefix}unknown {subject} {metric!r}; {hint}")


def _unknown(message: str, name: str, known: Iterable[str]) -> UsageError:
    return UsageError("; ".join(filter(None, (f"{message} {name!r}", suggest(name, known, repr)))))
