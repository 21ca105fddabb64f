r"""Numbers against limits: which pass, which fail, and why.

Pure: names and numbers in, verdicts out. A number is called

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

Limits and numbers are compared without rounding, as ``detap/decimals.py`` says; a difference that
is only rounding is none.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fractions import Fraction
from math import isnan, nan
from typing import Any, Literal, Protocol

from detap.decimals import beside, decimal, exactly, fraction, settled
from detap.errors import UsageError
from detap.protocols.measures import AT_THRESHOLD, UNBOUNDED

Value = float | None
Verdict = Literal["passed", "failed", "undefined", "inconclusive", "too-few"]
Kind = Literal["floor", "ceiling", "drop", "rise"]
Interval = tuple[float, float]

CHANGES = ("drop", "rise")
"""The kinds of limits that hold a number to what it was."""

_STARS = re.compile(r"\\+\*")
_NAMES_OF_ROWS = ("name", "id")


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers that gates can name.

    Attributes
    ----------
    headline : str
        The name of the number that a limit without a name is for.
    summary : mapping of str to float or None
        Undefined is NaN or None.
    rows : sequence of mapping
        One per class: its ``name``, its ``ground_truths``, and its numbers.
    unit : str
        What a row is: ``"class"``, or ``"query"``.
    slices : mapping of str to Numbers
        The same of parts of the images.
    more : callable, optional
        Returns a number of the summary that is not listed, from its name; KeyError if none is
        called so.
    more_rows : callable, optional
        Likewise the numbers of all rows, in their order.
    """

    headline: str
    summary: Mapping[str, Value]
    rows: Sequence[Mapping[str, Any]] = ()
    unit: str = "class"
    slices: "Mapping[str, Numbers]" = field(default_factory=dict)
    more: Callable[[str], float] | None = None
    more_rows: Callable[[str], Sequence[float]] | None = None

    def has(self, measure: str) -> bool:
        """Tell whether the summary has this number."""
        return self._of_summary(measure) is not _ABSENT

    def row_has(self, measure: str) -> bool:
        """Tell whether the rows have this number."""
        return self._of_rows(measure) is not None

    def overall(self, measure: str) -> float:
        """Return a number of the summary."""
        found = self._of_summary(measure)
        if found is _ABSENT:
            raise KeyError(measure)
        return nan if found is None else float(found)  # type: ignore[arg-type]

    def by_row(self, measure: str) -> list[float]:
        """Return the numbers of all rows, in their order."""
        found = self._of_rows(measure)
        if found is None:
            raise KeyError(measure)
        return [nan if value is None else float(value) for value in found]

    def part(self, tag: str | None) -> "Numbers":
        """Return the numbers of a slice; None is the whole."""
        return self if tag is None else self.slices[tag]

    def row_of(self, key: tuple[str, str]) -> int | None:
        """Return which row has this name and id; None where none has."""
        return next((i for i, row in enumerate(self.rows) if row_key(row) == key), None)

    def at_threshold(self, name: "Name") -> bool:
        """Tell whether a number is one at a score threshold, and no column of the rows."""
        in_rows = name.row is not None or name.smallest
        rows = self.part(name.slice).rows
        return name.measure in AT_THRESHOLD and not (in_rows and rows and name.measure in rows[0])

    def undefined(self) -> "Numbers":
        """Return the same numbers, none of them defined, and all counts 0."""

        def more(measure: str) -> float:
            self.overall(measure)
            return nan

        def more_rows(measure: str) -> list[float]:
            return [nan] * len(self.by_row(measure))

        return Numbers(
            self.headline,
            dict.fromkeys(self.summary, nan),
            [_undefined(row) for row in self.rows],
            unit=self.unit,
            more=more,
            more_rows=more_rows,
        )

    def with_lost(self, baseline: "Numbers") -> "Numbers":
        """Return the numbers, with undefined ones of the rows and slices that a baseline has more.

        What is no longer there has changed: a limit for all of them must meet it.
        """
        known = {row_key(row) for row in self.rows}
        lost = [_undefined(row) for row in baseline.rows if row_key(row) not in known]
        slices = {
            tag: part.with_lost(baseline.slices[tag]) if tag in baseline.slices else part
            for tag, part in self.slices.items()
        }
        if slices:
            slices |= {
                tag: part.undefined() for tag, part in baseline.slices.items() if tag not in slices
            }

        def more_rows(measure: str) -> list[float]:
            return [*self.by_row(measure), *[nan] * len(lost)]

        return replace(
            self,
            rows=[*self.rows, *lost],
            slices=slices,
            more_rows=more_rows if lost else self.more_rows,
        )

    def _of_summary(self, measure: str) -> object:
        if measure in self.summary:
            return self.summary[measure]
        try:
            return _ABSENT if self.more is None else self.more(measure)
        except KeyError:
            return _ABSENT

    def _of_rows(self, measure: str) -> Sequence[Any] | None:
        if measure in _NAMES_OF_ROWS:
            return None
        if self.rows and measure in self.rows[0]:
            found = [row.get(measure) for row in self.rows]
            return None if any(isinstance(value, str) for value in found) else found
        try:
            return None if self.more_rows is None else self.more_rows(measure)
        except KeyError:
            return None


_ABSENT = object()


def row_key(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return by what a row is known, whatever its place: its name and id."""
    return str(row["name"]), str(row.get("id"))


def is_count(value: object) -> bool:
    """Tell whether a number of a row is a count."""
    return isinstance(value, int) and not isinstance(value, bool)


def _undefined(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value if isinstance(value, str) or key == "id" else 0 if is_count(value) else nan
        for key, value in row.items()
    }


@dataclass(frozen=True, slots=True)
class Name:
    """What a name stands for, one number.

    Attributes
    ----------
    measure : str
    row : int or None
        Which row of the numbers; None for a number of the summary or the smallest of the rows.
    smallest : bool
        Whether it is the smallest of the rows.
    slice : str or None
    text : str
        The name in full, without wildcards.
    """

    measure: str
    row: int | None
    smallest: bool
    slice: str | None
    text: str

    def of(self, numbers: Numbers) -> float:
        """Return the number."""
        numbers = numbers.part(self.slice)
        if self.smallest:
            defined = [value for value in numbers.by_row(self.measure) if not isnan(value)]
            return min(defined, default=nan)
        if self.row is not None:
            return numbers.by_row(self.measure)[self.row]
        return numbers.overall(self.measure)

    def ground_truths(self, numbers: Numbers) -> int | None:
        """Return how many ground truths of the class there are; None where it is no class's."""
        if self.row is None:
            return None
        count = numbers.part(self.slice).rows[self.row].get("ground_truths")
        return None if count is None else int(count)

    def is_count(self, numbers: Numbers) -> bool:
        """Tell whether it is a whole number of things rather than a share."""
        rows = numbers.part(self.slice).rows
        in_rows = self.row is not None or self.smallest
        return in_rows and bool(rows) and is_count(rows[0].get(self.measure))


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
        bound = bound / 100 if relative else bound
        return cls(kind, name if equals else None, bound, relative, value)


# --- names


def resolve(name: str | None, numbers: Numbers, baseline: Numbers | None = None) -> list[Name]:
    """Return the numbers that a name stands for.

    Parameters
    ----------
    name : str or None
        As above; None is the headline.
    numbers : Numbers
        Where to look.
    baseline : Numbers, optional
        With it, ``*`` stands for the rows too that had the number once.

    Raises
    ------
    UsageError
        Where nothing is called so, with near names; or a wildcard means nothing.
    """
    if name is None:
        return [Name(numbers.headline, None, False, None, numbers.headline)]
    if not name.startswith("slice:"):
        return list(_within(name, name, (numbers, baseline), None))
    if not numbers.slices:
        raise UsageError(f"{name!r}: there are no slices; say --slices or --slice-by")
    return [
        found
        for tag, rest in _slices(name, numbers)
        for found in _within(name, rest, (numbers.slices[tag], _part_of(baseline, tag)), tag)
    ]


def _part_of(baseline: Numbers | None, tag: str) -> Numbers | None:
    return None if baseline is None else baseline.slices.get(tag)


def _slices(name: str, numbers: Numbers) -> list[tuple[str, str]]:
    """Return the slices that a name speaks of, and what is left of the name."""
    rest = name.removeprefix("slice:")
    if rest.startswith("*."):
        return [(tag, rest[2:]) for tag in numbers.slices]
    owners = [tag for tag in numbers.slices if rest.startswith(f"{escaped(tag)}.")]
    if not owners:
        tag = rest.partition(".")[0]
        raise UsageError(f"{name!r}: no slice is called {tag!r}{_hint(tag, list(numbers.slices))}")
    owner = max(owners, key=len)
    return [(owner, rest[len(escaped(owner)) + 1 :])]


def _within(
    whole: str, name: str, both: tuple[Numbers, Numbers | None], tag: str | None
) -> Iterator[Name]:
    numbers = both[0]
    prefix = "" if tag is None else f"slice:{tag}."
    unit, smallest = f"{numbers.unit}:", f"min-{numbers.unit}."
    if name.startswith(smallest):
        measure = name.removeprefix(smallest)
        _must_have(whole, measure, numbers, of_rows=True)
        yield Name(measure, None, True, tag, f"{prefix}{smallest}{measure}")
    elif name.startswith(unit):
        label, measure = _split(name.removeprefix(unit), numbers)
        _must_have(whole, measure, numbers, of_rows=True)
        for row in _rows(whole, label, measure, both):
            called = numbers.rows[row]["name"]
            yield Name(measure, row, False, tag, f"{prefix}{unit}{called}.{measure}")
    else:
        _must_have(whole, name, numbers, of_rows=False)
        yield Name(name, None, False, tag, f"{prefix}{name}")


def _split(text: str, numbers: Numbers) -> tuple[str, str]:
    """Return the name of a class and the measure behind the last dot, or the last but one."""
    label, _, measure = text.rpartition(".")
    longer, _, last = label.rpartition(".")
    if measure.isdigit() and longer and numbers.row_has(f"{last}.{measure}"):
        return longer, f"{last}.{measure}"
    return label, measure


def _rows(whole: str, label: str, measure: str, both: tuple[Numbers, Numbers | None]) -> list[int]:
    numbers, baseline = both
    names = [str(row["name"]) for row in numbers.rows]
    if label == "*":
        had = _had(measure, baseline)
        found = [
            place
            for place, (row, value) in enumerate(
                zip(numbers.rows, numbers.by_row(measure), strict=True)
            )
            if not isnan(value) or row.get("ground_truths") or row_key(row) in had
        ]
        if not found:
            raise UsageError(f"{whole!r}: no {numbers.unit} has ground truth")
        return found
    found = [row for row, name in enumerate(names) if escaped(name) == label]
    if not found:
        raise UsageError(f"{whole!r}: no {numbers.unit} is called {label!r}{_hint(label, names)}")
    return found


def _had(measure: str, baseline: Numbers | None) -> set[tuple[str, str]]:
    """Return the rows of which a baseline has the number."""
    if baseline is None or not baseline.row_has(measure):
        return set()
    values = zip(baseline.rows, baseline.by_row(measure), strict=True)
    return {row_key(row) for row, value in values if not isnan(value)}


def escaped(name: str) -> str:
    r"""Return how a name is written: ``*`` as ``\*``, and ``\*`` as ``\\*``."""
    return f"\\{name}" if name == "*" or _STARS.fullmatch(name) else name


def _must_have(whole: str, measure: str, numbers: Numbers, *, of_rows: bool) -> None:
    has = numbers.row_has if of_rows else numbers.has
    if has(measure):
        return
    row = numbers.rows[0] if numbers.rows else {}
    of_row = [key for key, value in row.items() if not isinstance(value, str) and key != "id"]
    known = of_row if of_rows else list(numbers.summary)
    known += [name for name in AT_THRESHOLD if name not in known and has(name)]
    whose = f"{numbers.unit} has" if of_rows else "summary has"
    near = _hint(measure, known) or f"; it has {', '.join(known)}"
    if not of_rows and measure in of_row:
        near = f"; did you mean {numbers.unit}:NAME.{measure} or min-{numbers.unit}.{measure}?"
    raise UsageError(f"{whole!r}: no {whose} a number {measure!r}{near}")


def _hint(name: str, known: Sequence[str]) -> str:
    folded = {entry.lower(): entry for entry in known}
    near = [folded[entry] for entry in get_close_matches(name.lower(), folded, n=3)]
    return f"; did you mean {' or '.join(repr(entry) for entry in near)}?" if near else ""


# --- verdicts


@dataclass(frozen=True, slots=True)
class Gate:
    """One number against one limit.

    Attributes
    ----------
    kind : {"floor", "ceiling", "drop", "rise"}
    name : str
        The number's name in full.
    verdict : {"passed", "failed", "undefined", "inconclusive", "too-few"}
        ``undefined`` fails too. The last two are warnings: noise can explain the change, or the
        class has too few ground truths to tell.
    value : float
        NaN is undefined.
    limit : str
        The bound as it was given.
    message : str
        A sentence that says why.
    baseline, drop : float or None
        Of a drop or rise: what the number was, and by how much it fell (below 0 where it rose).
    interval : (float, float) or None
        The interval of that drop.
    confidence : float or None
    ground_truths : int or None
        How many the class has, where it is a class's number.
    stands_for : Name or None
        Which number it is.
    """

    kind: Kind
    name: str
    verdict: Verdict
    value: float
    limit: str
    message: str
    baseline: float | None = None
    drop: float | None = None
    interval: Interval | None = None
    confidence: float | None = None
    ground_truths: int | None = None
    stands_for: Name | None = None

    @property
    def failed(self) -> bool:
        """Whether it fails the run."""
        return self.verdict in ("failed", "undefined")

    @property
    def warned(self) -> bool:
        """Whether it is a warning."""
        return self.verdict in ("inconclusive", "too-few")

    def as_dict(self) -> dict[str, Any]:
        """Return what the JSON report says of it."""
        low, high = self.interval or (None, None)
        return {
            "kind": self.kind,
            "name": self.name,
            "verdict": self.verdict,
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

    def interval(self, name: Name) -> Interval:
        """Return the interval of the drop of a number."""


@dataclass(frozen=True, slots=True)
class _Against:
    """What the numbers are held to besides limits."""

    baseline: Numbers
    noise: Noise | None
    fewest: int


def check(
    limits: Sequence[Limit],
    numbers: Numbers,
    baseline: Numbers | None = None,
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
    numbers : Numbers
        Now.
    baseline : Numbers, optional
        Then; needed by drops and rises.
    noise : Noise, optional
        With it, a drop or rise fails only where its whole interval is beyond the bound, and warns
        where the interval has the bound inside.
    min_ground_truths : int
        Drops and rises of classes with fewer warn instead of failing.

    Raises
    ------
    UsageError
        Where a limit names no number (of both, for a drop or rise), or is out of reach.
    """
    gates: list[Gate] = []
    against = None if baseline is None else _Against(baseline, noise, min_ground_truths)
    whole = numbers if baseline is None else numbers.with_lost(baseline)
    for limit in limits:
        if limit.kind not in CHANGES:
            gates += [_level(limit, name, numbers) for name in resolve(limit.name, numbers)]
            continue
        if against is None:
            raise UsageError(f"a {limit.kind} is from a baseline, and there is none")
        gates += [
            _change(limit, name, whole, against)
            for name in resolve(limit.name, whole, against.baseline)
            if not _absent_in_both(limit, name, whole, against.baseline)
        ]
    return gates


def _level(limit: Limit, name: Name, numbers: Numbers) -> Gate:
    """Hold a number to a least or largest value."""
    value, count = name.of(numbers), name.is_count(numbers)
    floor = limit.kind == "floor"
    if not count and name.measure not in UNBOUNDED and (isnan(value) or value <= 1):
        _refuse_out_of_reach(limit, name)
    least = "at least" if floor else "at most"
    if isnan(value):
        verdict: Verdict = "undefined"
        message = f"{name.text} is undefined; {least} {limit.text} is required"
    else:
        shown = beside(exactly(value), limit.bound, 0 if count else 4)
        kept = exactly(value) >= limit.bound if floor else exactly(value) <= limit.bound
        verdict = "passed" if kept else "failed"
        relation = f", {least} " if kept else " < " if floor else " > "
        message = f"{name.text} is {shown}{relation}{limit.text}"
    return Gate(
        limit.kind,
        name.text,
        verdict,
        value,
        limit.text,
        message,
        ground_truths=name.ground_truths(numbers),
        stands_for=name,
    )


def _refuse_out_of_reach(limit: Limit, name: Name) -> None:
    """Refuse a limit that says nothing of a share."""
    if limit.kind == "floor" and limit.bound > 1:
        raise UsageError(f"{name.text} goes from 0 to 1; a floor of {limit.text} is out of reach")
    if limit.kind == "ceiling" and limit.bound >= 1:
        raise UsageError(f"{name.text} goes from 0 to 1; a ceiling of {limit.text} holds nothing")


def _absent_in_both(limit: Limit, name: Name, numbers: Numbers, baseline: Numbers) -> bool:
    """Tell whether a wildcard meets a number that is undefined now as then: nothing has changed."""
    if limit.name is None or "*" not in limit.name:
        return False
    return isnan(name.of(numbers)) and isnan(_then(name, numbers, baseline))


def _then(name: Name, numbers: Numbers, baseline: Numbers) -> float:
    """Return the number of that name in the baseline, whose rows may stand in another order."""
    if name.slice is not None and name.slice not in baseline.slices:
        raise UsageError(f"{name.text!r}: the baseline has no slice {name.slice!r}")
    row = name.row
    if row is not None:
        row = baseline.part(name.slice).row_of(row_key(numbers.part(name.slice).rows[row]))
        if row is None:
            return nan
    try:
        return replace(name, row=row).of(baseline)
    except KeyError:
        raise UsageError(
            f"{name.text!r}: the baseline has no such number; make it anew, or give "
            "--baseline-detections"
        ) from None


def _change(limit: Limit, name: Name, numbers: Numbers, against: _Against) -> Gate:
    """Hold a number to what it was."""
    value, then = name.of(numbers), _then(name, numbers, against.baseline)
    noise, few = against.noise, name.ground_truths(numbers)
    facts: dict[str, Any] = {
        "baseline": then,
        "confidence": None if noise is None else noise.confidence,
        "ground_truths": few,
        "stands_for": name,
    }
    if isnan(value) or isnan(then):
        what = "is undefined" if isnan(value) else "is undefined in the baseline"
        verb = "fall" if limit.kind == "drop" else "rise"
        message = f"{name.text} {what}; it may {verb} by {limit.text}"
        return Gate(
            limit.kind, name.text, "undefined", value, limit.text, message, drop=nan, **facts
        )
    bound = limit.bound * abs(exactly(then)) if limit.relative else limit.bound
    moved = _moved(limit, value, then, bound)
    interval = None if noise is None else noise.interval(name)
    verdict = _verdict(limit, moved, bound, interval)
    message = f"{name.text} {_told(limit, (value, then), (moved, bound), name.is_count(numbers))}"
    if noise is not None and interval is not None:
        message += _told_interval(limit, interval, noise.confidence)
    if verdict == "inconclusive":
        message += ": inconclusive"
    if verdict == "failed" and few is not None and few < against.fewest:
        verdict = "too-few"
        message += f"; only a warning, as there are {few} ground truths"
    return Gate(
        limit.kind,
        name.text,
        verdict,
        value,
        limit.text,
        message,
        drop=float(moved if limit.kind == "drop" else -moved),
        interval=interval,
        **facts,
    )


def _moved(limit: Limit, value: float, then: float, bound: Fraction) -> Fraction:
    """Return by how much a number moved to the bad side; what is only rounding moves nothing."""
    now, was = exactly(value), exactly(then)
    if settled(now, was) == was:
        return Fraction(0)
    return settled(was - now if limit.kind == "drop" else now - was, bound)


def _verdict(limit: Limit, moved: Fraction, bound: Fraction, interval: Interval | None) -> Verdict:
    if interval is None:
        return "passed" if moved <= bound else "failed"
    low, high = interval if limit.kind == "drop" else (-interval[1], -interval[0])
    if isnan(low):
        return "undefined"
    if settled(exactly(low), bound) > bound:
        return "failed"
    return "passed" if settled(exactly(high), bound) <= bound else "inconclusive"


def _told(
    limit: Limit, values: tuple[float, float], moves: tuple[Fraction, Fraction], count: bool
) -> str:
    """Return how a number moved, with enough digits that the sentence is true as it reads."""
    now, then = (exactly(value) for value in values)
    moved, bound = moves
    places = 0 if count else 4
    if moved == 0:
        return f"has not changed: {decimal(now, places)}"
    path = f"from {beside(then, now, places)} to {beside(now, then, places)}"
    verb = "fell" if (moved > 0) == (limit.kind == "drop") else "rose"
    if moved < 0:
        return f"{verb} by {beside(-moved, Fraction(0), places)}, {path}"
    relation = "more than" if moved > bound else "at most"
    allowed = f"{limit.text} of it, {decimal(bound, 6)}" if limit.relative else limit.text
    return f"{verb} by {beside(moved, bound, places)}, {path}: {relation} {allowed}"


def _told_interval(limit: Limit, interval: Interval, confidence: float) -> str:
    if isnan(interval[0]):
        return "; its interval is undefined: no resample has the number"
    ends = interval if limit.kind == "drop" else (-interval[1], -interval[0])
    told = " to ".join(beside(exactly(end), Fraction(0)) for end in ends)
    return f"; {100 * confidence:g} % interval of the {limit.kind} {told}"
