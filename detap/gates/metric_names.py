r"""The numbers that gates can name, and what a name stands for.

A number is called

``AP50``
    a number of the summary, or any other that the protocol has (``AP90``);
``class:person.AP``
    a number of one class; ``class:*.AP`` of each class that has ground truth;
``min-class.AP``
    the smallest of these;
``F1``, ``precision``, ``recall``, ``false-positives-per-image``
    at a score threshold, also of a class;
``slice:night.AP50``, ``slice:night.class:person.AP``, ``slice:*.AP50``
    any of the above in a slice, or in each.

The last dot separates the measure from what stands before it (the last but one where the measure
has a dot itself, as ``AP62.5``), so that names may hold dots and colons. The longest known name
wins where a slice and a class could both own the rest. A lone ``*`` means every name; a class that
is itself called ``*`` is written ``\*``.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from typing import Any

from detap.errors import UsageError
from detap.metrics import Metric
from detap.metrics.at_threshold import AT_THRESHOLD
from detap.text_input import suggest

Value = float | None
_STARS = re.compile(r"\\+\*")
_NAMES_OF_ROWS = ("name", "id")


@dataclass(frozen=True, slots=True)
class Metrics:
    """The numbers that gates can name.

    Attributes
    ----------
    primary_metric : str
        The name of the number that a limit without a name is for.
    summary : mapping of str to float or None
        Undefined is NaN or None.
    rows : sequence of mapping
        One per class: its ``name``, its ``ground_truths``, and its numbers.
    unit : str
        What a row is: ``"class"``, or ``"query"``.
    slices : mapping of str to Numbers
        The same of parts of the images.
    compute_overall : callable, optional
        Returns a number of the summary that is not listed, from its name; KeyError if none is
        called so.
    compute_rows : callable, optional
        Likewise the numbers of all rows, in their order.
    compute_counts : callable, optional
        Returns how many ground truths of each row a number counts, from its name; KeyError if it
        is not known.
    metric_of : callable, optional
        Returns the metric of a number from its name; None for a count and the like.
    empty : bool
        Whether there are no images at all, as in a slice whose images are not there.
    """

    primary_metric: str
    summary: Mapping[str, Value]
    rows: Sequence[Mapping[str, Any]] = ()
    unit: str = "class"
    slices: "Mapping[str, Metrics]" = field(default_factory=dict)
    compute_overall: Callable[[str], float] | None = None
    compute_rows: Callable[[str], Sequence[float]] | None = None
    compute_counts: Callable[[str], Sequence[int]] | None = None
    metric_of: Callable[[str], Metric | None] | None = None
    empty: bool = False

    def has(self, metric: str) -> bool:
        """Tell whether the summary has this number."""
        return self._of_summary(metric) is not _ABSENT

    def row_has(self, metric: str) -> bool:
        """Tell whether the rows have this number."""
        return self._of_rows(metric) is not None

    def row_name(self, metric: str) -> str | None:
        """Return what the rows call a number of the summary: mAP is the mean of their AP."""
        names = (metric.removeprefix("m"), metric)
        return next((name for name in names if self.row_has(name)), None)

    def overall(self, metric: str) -> float:
        """Return a number of the summary."""
        found = self._of_summary(metric)
        if found is _ABSENT:
            raise KeyError(metric)
        return nan if found is None else float(found)  # type: ignore[arg-type]

    def by_row(self, metric: str) -> list[float]:
        """Return the numbers of all rows, in their order."""
        found = self._of_rows(metric)
        if found is None:
            raise KeyError(metric)
        return [nan if value is None else float(value) for value in found]

    def counts(self, metric: str) -> list[int] | None:
        """Return how many ground truths of each row a number counts; None where not known."""
        try:
            known = [] if self.compute_counts is None else [*self.compute_counts(metric)]
        except KeyError:
            known = []
        if not known:
            return None
        return known + [0] * (len(self.rows) - len(known))  # rows of the baseline alone

    def of_slice(self, tag: str | None) -> "Metrics":
        """Return the numbers of a slice; None is the whole."""
        return self if tag is None else self.slices[tag]

    def row_index(self, key: tuple[str, str]) -> int | None:
        """Return which row has this name and id; None where none has."""
        return next((i for i, row in enumerate(self.rows) if row_key(row) == key), None)

    def at_threshold(self, name: "MetricName") -> bool:
        """Tell whether a number is one at a score threshold, and no column of the rows."""
        rows = self.of_slice(name.slice).rows
        column = name.in_rows and bool(rows) and name.metric in rows[0]
        return name.metric in AT_THRESHOLD and not column

    def undefined(self) -> "Metrics":
        """Return the same numbers, none of them defined, and all counts 0."""

        def more(metric: str) -> float:
            self.overall(metric)
            return nan

        def more_rows(metric: str) -> list[float]:
            return [nan] * len(self.by_row(metric))

        return Metrics(
            self.primary_metric,
            dict.fromkeys(self.summary, nan),
            [_undefined(row) for row in self.rows],
            unit=self.unit,
            compute_overall=more,
            compute_rows=more_rows,
            compute_counts=lambda _: [0] * len(self.rows),
            empty=True,
        )

    def with_ids_of(self, other: "Metrics") -> "Metrics":
        """Return the same numbers, whose rows have the ids that rows of the same name have there.

        Another ground truth may number the same classes differently. Rows whose name and id are
        both the same stay as they are; so do names that several rows share.
        """
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
        """Return the numbers, with undefined ones of the rows and slices that a baseline has more.

        What is no longer there has changed: a limit for all of them must meet it.
        """
        known = {row_key(row) for row in self.rows}
        lost = [_undefined(row) for row in baseline.rows if row_key(row) not in known]
        slices = {
            tag: part.with_missing(baseline.slices[tag]) if tag in baseline.slices else part
            for tag, part in self.slices.items()
        }
        if slices:
            slices |= {
                tag: part.undefined() for tag, part in baseline.slices.items() if tag not in slices
            }

        def more_rows(metric: str) -> list[float]:
            return [*self.by_row(metric), *[nan] * len(lost)]

        return replace(
            self,
            rows=[*self.rows, *lost],
            slices=slices,
            compute_rows=more_rows if lost else self.compute_rows,
        )

    def _of_summary(self, metric: str) -> object:
        if metric in self.summary:
            return self.summary[metric]
        try:
            return _ABSENT if self.compute_overall is None else self.compute_overall(metric)
        except KeyError:
            return _ABSENT

    def _of_rows(self, metric: str) -> Sequence[Any] | None:
        if metric in _NAMES_OF_ROWS:
            return None
        if self.rows and metric in self.rows[0]:
            found = [row.get(metric) for row in self.rows]
            return None if any(isinstance(value, str) for value in found) else found
        try:
            return None if self.compute_rows is None else self.compute_rows(metric)
        except KeyError:
            return None


_ABSENT = object()


def row_key(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return by what a row is known, whatever its place: its name and id."""
    return str(row["name"]), str(row.get("id"))


def _ids_by_name(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the id of each name that one row alone has."""
    counts = Counter(row["name"] for row in rows)
    return {row["name"]: row.get("id") for row in rows if counts[row["name"]] == 1}


def is_count(value: object) -> bool:
    """Tell whether a number of a row is a count."""
    return isinstance(value, int) and not isinstance(value, bool)


def _undefined(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value if isinstance(value, str) or key == "id" else 0 if is_count(value) else nan
        for key, value in row.items()
    }


@dataclass(frozen=True, slots=True)
class MetricName:
    """What a name stands for, one number.

    Attributes
    ----------
    metric : str
    row : int or None
        Which row of the numbers; None for a number of the summary or the smallest of the rows.
    smallest : bool
        Whether it is the smallest of the rows.
    slice : str or None
    text : str
        The name in full, without wildcards.
    """

    metric: str
    row: int | None
    smallest: bool
    slice: str | None
    text: str

    @property
    def in_rows(self) -> bool:
        """Whether it is a number of the rows, not of the summary."""
        return self.row is not None or self.smallest

    def of(self, metrics: Metrics) -> float:
        """Return the number."""
        metrics = metrics.of_slice(self.slice)
        if self.smallest:
            defined = [value for value in metrics.by_row(self.metric) if not isnan(value)]
            return min(defined, default=nan)
        if self.row is not None:
            return metrics.by_row(self.metric)[self.row]
        return metrics.overall(self.metric)

    def ground_truths(self, metrics: Metrics) -> int | None:
        """Return how many ground truths the number counts; None where that is not known.

        The smallest of the rows is of one of them, which may be another one in the baseline.
        """
        if self.smallest:
            return None
        part = metrics.of_slice(self.slice)
        counts = part.counts(self.metric)
        if self.row is None:
            return None if counts is None else sum(counts)
        count = part.rows[self.row].get("ground_truths") if counts is None else counts[self.row]
        return None if count is None else int(count)

    def is_count(self, metrics: Metrics) -> bool:
        """Tell whether it is a whole number of things rather than a share."""
        rows = metrics.of_slice(self.slice).rows
        return self.in_rows and bool(rows) and is_count(rows[0].get(self.metric))


def resolve(
    name: str | None, metrics: Metrics, baseline: Metrics | None = None
) -> list[MetricName]:
    """Return the numbers that a name stands for.

    Parameters
    ----------
    name : str or None
        As above; None is the headline.
    metrics : Numbers
        Where to look.
    baseline : Numbers, optional
        With it, ``*`` stands for the rows too that had the number once.

    Raises
    ------
    UsageError
        Where nothing is called so, with near names; or a wildcard means nothing.
    """
    if name is None:
        return [MetricName(metrics.primary_metric, None, False, None, metrics.primary_metric)]
    if not name.startswith("slice:"):
        return list(_within(name, name, (metrics, baseline), None))
    if not metrics.slices:
        raise UsageError(f"{name!r}: there are no slices; say --slices or --slice-by")
    return [
        found
        for tag, rest in _slices(name, metrics)
        for then in [None if baseline is None else baseline.slices.get(tag)]
        for found in _within(name, rest, (metrics.slices[tag], then), tag)
    ]


def check_metric(name: str | None, metrics: Metrics) -> None:
    """Raise UsageError if a name ends in no number, whatever classes and slices there may be."""
    if name is None:
        return
    parts = name.split(".")
    heads = (f"{metrics.unit}:", f"min-{metrics.unit}")
    of_rows = any(part.startswith(heads) for part in name.removeprefix("slice:").split(".")[:-1])
    has = metrics.row_has if of_rows else metrics.has
    if not any(has(".".join(parts[-count:])) for count in (1, 2)):
        _must_have(name, parts[-1], metrics, of_rows=of_rows)


def _slices(name: str, metrics: Metrics) -> list[tuple[str, str]]:
    """Return the slices that a name speaks of, and what is left of the name."""
    rest = name.removeprefix("slice:")
    if rest.startswith("*."):
        return [(tag, rest[2:]) for tag in metrics.slices]
    owners = [tag for tag in metrics.slices if rest.startswith(f"{escaped(tag)}.")]
    if not owners:
        tag = rest.partition(".")[0]
        raise _unknown(f"{name!r}: no slice is called", tag, metrics.slices)
    owner = max(owners, key=len)
    return [(owner, rest[len(escaped(owner)) + 1 :])]


def _within(
    whole: str, name: str, both: tuple[Metrics, Metrics | None], tag: str | None
) -> Iterator[MetricName]:
    metrics = both[0]
    prefix = "" if tag is None else f"slice:{tag}."
    unit, smallest = f"{metrics.unit}:", f"min-{metrics.unit}."
    if name.startswith(smallest):
        metric = name.removeprefix(smallest)
        _must_have(whole, metric, metrics, of_rows=True)
        yield MetricName(metric, None, True, tag, f"{prefix}{smallest}{metric}")
    elif name.startswith(unit):
        label, metric = _split(name.removeprefix(unit), metrics)
        _must_have(whole, metric, metrics, of_rows=True)
        for row in _rows(whole, label, metric, both):
            called = metrics.rows[row]["name"]
            yield MetricName(metric, row, False, tag, f"{prefix}{unit}{called}.{metric}")
    else:
        _must_have(whole, name, metrics, of_rows=False)
        yield MetricName(name, None, False, tag, f"{prefix}{name}")


def _split(text: str, metrics: Metrics) -> tuple[str, str]:
    """Return the name of a class and the measure behind the last dot, or the last but one."""
    label, _, metric = text.rpartition(".")
    longer, _, last = label.rpartition(".")
    if metric.isdigit() and longer and metrics.row_has(f"{last}.{metric}"):
        return longer, f"{last}.{metric}"
    return label, metric


def _rows(whole: str, label: str, metric: str, both: tuple[Metrics, Metrics | None]) -> list[int]:
    metrics, baseline = both
    names = [str(row["name"]) for row in metrics.rows]
    if label == "*":
        had = _had(metric, baseline)
        found = [
            place
            for place, (row, value) in enumerate(
                zip(metrics.rows, metrics.by_row(metric), strict=True)
            )
            if not isnan(value) or row.get("ground_truths") or row_key(row) in had
        ]
        if not found:
            raise UsageError(f"{whole!r}: no {metrics.unit} has ground truth")
        return found
    found = [row for row, name in enumerate(names) if escaped(name) == label]
    if not found:
        raise _unknown(f"{whole!r}: no {metrics.unit} is called", label, names)
    return found


def _had(metric: str, baseline: Metrics | None) -> set[tuple[str, str]]:
    """Return the rows of which a baseline has the number."""
    if baseline is None or not baseline.row_has(metric):
        return set()
    values = zip(baseline.rows, baseline.by_row(metric), strict=True)
    return {row_key(row) for row, value in values if not isnan(value)}


def escaped(name: str) -> str:
    r"""Return how a name is written: ``*`` as ``\*``, and ``\*`` as ``\\*``."""
    return f"\\{name}" if name == "*" or _STARS.fullmatch(name) else name


def _must_have(whole: str, metric: str, metrics: Metrics, *, of_rows: bool) -> None:
    has = metrics.row_has if of_rows else metrics.has
    if has(metric):
        return
    row = metrics.rows[0] if metrics.rows else {}
    of_row = [key for key, value in row.items() if not isinstance(value, str) and key != "id"]
    known = of_row if of_rows else list(metrics.summary)
    known += [name for name in AT_THRESHOLD if name not in known and has(name)]
    whose = f"{metrics.unit} has" if of_rows else "summary has"
    hint = suggest(metric, known, repr) or f"it has {', '.join(known)}"
    if not of_rows and metric in of_row:
        hint = f"did you mean {metrics.unit}:NAME.{metric} or min-{metrics.unit}.{metric}?"
    raise UsageError(f"{whole!r}: no {whose} a number {metric!r}; {hint}")


def _unknown(told: str, name: str, known: Iterable[str]) -> UsageError:
    return UsageError("; ".join(filter(None, (f"{told} {name!r}", suggest(name, known, repr)))))
