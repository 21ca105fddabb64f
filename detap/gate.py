r"""Numbers against limits: which pass, which fail, and why.

Pure: names and numbers in, verdicts out. A number is called

``AP50``
    a number of the summary, or any other that the protocol has (``AP90``);
``class:person.AP``
    a number of one class; ``class:*.AP`` of each class that has ground truth;
``min-class.AP``
    the smallest of these;
``slice:night.AP50``, ``slice:night.class:person.AP``, ``slice:*.AP50``
    any of the above in a slice, or in each.

The last dot separates the measure from what stands before it (the last but one where the measure
has a dot itself, as ``AP62.5``), so that names may hold dots and colons. The longest known name
wins where a slice and a class could both own the rest. A lone ``*`` means every name; a class that
is itself called ``*`` is written ``\*``.

Limits and numbers are compared as the decimals that are written, without rounding: 0.75 has
fallen to 0.745 by exactly 0.005, although the floats differ by a little more.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from difflib import get_close_matches
from fractions import Fraction
from math import isnan, nan
from typing import Any, Literal

from detap.errors import UsageError

Value = float | None
Verdict = Literal["passed", "failed", "undefined", "inconclusive", "too-few"]
Interval = tuple[float, float]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_STARS = re.compile(r"\\+\*")
_DIGITS = Context(prec=60)
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
            found = [row[measure] for row in self.rows]
            return None if any(isinstance(value, str) for value in found) else found
        try:
            return None if self.more_rows is None else self.more_rows(measure)
        except KeyError:
            return None


_ABSENT = object()


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
        numbers = numbers if self.slice is None else numbers.slices[self.slice]
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
        numbers = numbers if self.slice is None else numbers.slices[self.slice]
        count = numbers.rows[self.row].get("ground_truths")
        return None if count is None else int(count)


@dataclass(frozen=True, slots=True)
class Limit:
    """What a number must keep to.

    Attributes
    ----------
    name : str or None
        As it was given; None is the headline.
    bound : Fraction
        The least value, or the largest drop.
    relative : bool
        Whether the drop is a share of the baseline's number.
    text : str
        The bound as it was given.
    """

    name: str | None
    bound: Fraction
    relative: bool
    text: str

    @classmethod
    def floor(cls, text: str) -> "Limit":
        """Return what ``--fail-under`` means by ``0.5`` or ``NAME=0.5``.

        Raises
        ------
        ValueError
            Where it means nothing.
        """
        name, value = _name_and_number(text)
        if value.endswith("%"):
            raise ValueError(f"{value!r}: write a share, such as 0.5, not a percentage")
        return cls(name, _number(value), relative=False, text=value)

    @classmethod
    def drop(cls, text: str) -> "Limit":
        """Return what ``--max-drop`` means by ``0.005``, ``NAME=0.005`` or ``NAME=1%``.

        Raises
        ------
        ValueError
            Where it means nothing.
        """
        name, value = _name_and_number(text)
        relative = value.endswith("%")
        bound = _number(value.removesuffix("%"))
        if bound < 0:
            raise ValueError(f"{value!r}: a drop that is allowed is 0 or more")
        return cls(name, bound / 100 if relative else bound, relative, value)


def _name_and_number(text: str) -> tuple[str | None, str]:
    name, equals, value = text.rpartition("=")
    if equals and not name:
        raise ValueError(f"{text!r} names nothing before its '='")
    return (name if equals else None), value.strip()


def _number(text: str) -> Fraction:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is not a number; write 0.5, or NAME=0.5")
    return Fraction(text)


# --- names


def resolve(name: str | None, numbers: Numbers) -> list[Name]:
    """Return the numbers that a name stands for.

    Parameters
    ----------
    name : str or None
        As above; None is the headline.
    numbers : Numbers
        Where to look.

    Raises
    ------
    UsageError
        Where nothing is called so, with near names; or a wildcard means nothing.
    """
    if name is None:
        return [Name(numbers.headline, None, False, None, numbers.headline)]
    if not name.startswith("slice:"):
        return list(_within(name, name, numbers, None))
    if not numbers.slices:
        raise UsageError(f"{name!r}: there are no slices; say --slices or --slice-by")
    return [
        found
        for tag, rest in _slices(name, numbers)
        for found in _within(name, rest, numbers.slices[tag], tag)
    ]


def _slices(name: str, numbers: Numbers) -> list[tuple[str, str]]:
    """Return the slices that a name speaks of, and what is left of the name."""
    rest = name.removeprefix("slice:")
    if rest.startswith("*."):
        return [(tag, rest[2:]) for tag in numbers.slices]
    owners = [tag for tag in numbers.slices if rest.startswith(f"{_escaped(tag)}.")]
    if not owners:
        tag = rest.partition(".")[0]
        raise UsageError(f"{name!r}: no slice is called {tag!r}{_hint(tag, list(numbers.slices))}")
    owner = max(owners, key=len)
    return [(owner, rest[len(_escaped(owner)) + 1 :])]


def _within(whole: str, name: str, numbers: Numbers, tag: str | None) -> Iterator[Name]:
    prefix = "" if tag is None else f"slice:{tag}."
    unit, smallest = f"{numbers.unit}:", f"min-{numbers.unit}."
    if name.startswith(smallest):
        measure = name.removeprefix(smallest)
        _must_have(whole, measure, numbers, of_rows=True)
        yield Name(measure, None, True, tag, f"{prefix}{smallest}{measure}")
    elif name.startswith(unit):
        label, measure = _split(name.removeprefix(unit), numbers)
        _must_have(whole, measure, numbers, of_rows=True)
        for row in _rows(whole, label, measure, numbers):
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


def _rows(whole: str, label: str, measure: str, numbers: Numbers) -> list[int]:
    names = [str(row["name"]) for row in numbers.rows]
    if label == "*":
        values = numbers.by_row(measure)
        found = [
            row
            for row, value in enumerate(values)
            if not isnan(value) or numbers.rows[row].get("ground_truths")
        ]
        if not found:
            raise UsageError(f"{whole!r}: no {numbers.unit} has ground truth")
        return found
    found = [row for row, name in enumerate(names) if _escaped(name) == label]
    if not found:
        raise UsageError(f"{whole!r}: no {numbers.unit} is called {label!r}{_hint(label, names)}")
    return found


def _escaped(name: str) -> str:
    r"""Return how a name is written: ``*`` as ``\*``, and ``\*`` as ``\\*``."""
    return f"\\{name}" if name == "*" or _STARS.fullmatch(name) else name


def _must_have(whole: str, measure: str, numbers: Numbers, *, of_rows: bool) -> None:
    if numbers.row_has(measure) if of_rows else numbers.has(measure):
        return
    row = numbers.rows[0] if numbers.rows else {}
    of_row = [key for key, value in row.items() if not isinstance(value, str) and key != "id"]
    known = of_row if of_rows else list(numbers.summary)
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
    kind : {"floor", "drop"}
    name : str
        The number's name in full.
    verdict : {"passed", "failed", "undefined", "inconclusive", "too-few"}
        ``undefined`` fails too. The last two are warnings: noise can explain the drop, or the
        class has too few ground truths to tell.
    value : float
        NaN is undefined.
    limit : str
        The bound as it was given.
    message : str
        A sentence that says why.
    baseline, drop : float or None
        Of a drop: what the number was, and by how much it fell.
    interval : (float, float) or None
        The interval of the drop.
    confidence : float or None
    ground_truths : int or None
        How many the class has, where it is a class's number.
    slice, row : what the name stands for
    """

    kind: Literal["floor", "drop"]
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


def check_floors(limits: Sequence[Limit], numbers: Numbers) -> list[Gate]:
    """Hold numbers against least values: a number passes where it is at least the bound.

    Raises
    ------
    UsageError
        Where a limit names no number, or one that no number can reach.
    """
    return [
        _floor(limit, name, numbers) for limit in limits for name in resolve(limit.name, numbers)
    ]


def _floor(limit: Limit, name: Name, numbers: Numbers) -> Gate:
    value = name.of(numbers)
    if limit.bound > 1 and (isnan(value) or value <= 1) and not _is_count(name, numbers):
        raise UsageError(f"{name.text} goes from 0 to 1; a floor of {limit.text} is out of reach")
    if isnan(value):
        verdict: Verdict = "undefined"
        message = f"{name.text} is undefined; at least {limit.text} is required"
    elif exactly(value) >= limit.bound:
        verdict = "passed"
        message = f"{name.text} is {beside(value, limit.bound)}, at least {limit.text}"
    else:
        verdict = "failed"
        message = f"{name.text} is {beside(value, limit.bound)} < {limit.text}"
    return Gate(
        "floor",
        name.text,
        verdict,
        value,
        limit.text,
        message,
        ground_truths=name.ground_truths(numbers),
        stands_for=name,
    )


def _is_count(name: Name, numbers: Numbers) -> bool:
    numbers = numbers if name.slice is None else numbers.slices[name.slice]
    if name.row is None and not name.smallest:
        return False
    return bool(numbers.rows) and isinstance(numbers.rows[0].get(name.measure), int)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How drops are told from noise.

    Attributes
    ----------
    confidence : float
    interval : callable
        Returns the interval of the drop of a number.
    """

    confidence: float
    interval: Callable[[Name], Interval]


def check_drops(
    limits: Sequence[Limit],
    numbers: Numbers,
    baseline: Numbers,
    *,
    noise: Noise | None = None,
    min_ground_truths: int = 0,
) -> list[Gate]:
    """Hold numbers against those of a baseline.

    Parameters
    ----------
    limits : sequence of Limit
        The largest drops.
    numbers, baseline : Numbers
        Now and then.
    noise : Noise, optional
        With it, a drop fails only where its whole interval is beyond the bound, and warns where
        the interval has the bound inside.
    min_ground_truths : int
        The numbers of classes with fewer warn instead of failing.

    Raises
    ------
    UsageError
        Where a limit names no number of both.
    """
    return [
        _drop(limit, name, (numbers, baseline), noise, min_ground_truths)
        for limit in limits
        for name in resolve(limit.name, numbers)
        if not _absent_in_both(limit, name, numbers, baseline)
    ]


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
        now = numbers if name.slice is None else numbers.slices[name.slice]
        then = baseline if name.slice is None else baseline.slices[name.slice]
        key = _row_key(now.rows[row])
        row = next((i for i, entry in enumerate(then.rows) if _row_key(entry) == key), None)
        if row is None:
            return nan
    try:
        return Name(name.measure, row, name.smallest, name.slice, name.text).of(baseline)
    except KeyError:
        raise UsageError(
            f"{name.text!r}: the baseline has no such number; make it anew, or give "
            "--baseline-detections"
        ) from None


def _row_key(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row["name"]), str(row.get("id"))


def _drop(
    limit: Limit,
    name: Name,
    both: tuple[Numbers, Numbers],
    noise: Noise | None,
    min_ground_truths: int,
) -> Gate:
    numbers, baseline = both
    value, then = name.of(numbers), _then(name, numbers, baseline)
    few = name.ground_truths(numbers)
    few = few if few is not None and few < min_ground_truths else None
    facts: dict[str, Any] = {
        "baseline": then,
        "confidence": None if noise is None else noise.confidence,
        "ground_truths": name.ground_truths(numbers),
        "stands_for": name,
    }
    if isnan(value) or isnan(then):
        what = "is undefined" if isnan(value) else "is undefined in the baseline"
        verdict: Verdict = "undefined"
        message = f"{name.text} {what}; it may fall by {limit.text}"
        return Gate("drop", name.text, verdict, value, limit.text, message, drop=nan, **facts)
    fall = exactly(then) - exactly(value)
    bound = limit.bound * exactly(then) if limit.relative else limit.bound
    interval = None if noise is None else noise.interval(name)
    verdict = _verdict(fall, bound, interval)
    if few is not None and verdict == "failed":
        verdict = "too-few"
    message = f"{name.text} {_moved(limit, (value, then), (fall, bound))}"
    if noise is not None and interval is not None and isnan(interval[0]):
        message += "; its interval is undefined: no resample has the number"
    elif noise is not None and interval is not None:
        ends = " to ".join(_signed(end) for end in interval)
        message += f"; {100 * noise.confidence:g} % interval of the drop {ends}"
    if verdict == "inconclusive":
        message += ": inconclusive"
    if verdict == "too-few":
        message += f"; only a warning, as there are {few} ground truths"
    return Gate(
        "drop",
        name.text,
        verdict,
        value,
        limit.text,
        message,
        drop=float(fall),
        interval=interval,
        **facts,
    )


def _verdict(fall: Fraction, bound: Fraction, interval: Interval | None) -> Verdict:
    if interval is None:
        return "passed" if fall <= bound else "failed"
    low, high = interval
    if isnan(low):
        return "undefined"
    if exactly(low) > bound:
        return "failed"
    return "passed" if exactly(high) <= bound else "inconclusive"


def _moved(limit: Limit, values: tuple[float, float], fell: tuple[Fraction, Fraction]) -> str:
    """Return how a number moved, with enough digits that the sentence is true as it reads."""
    now, then = (exactly(value) for value in values)
    fall, bound = fell
    if fall == 0:
        return f"has not changed: {decimal(now, 4)}"
    path = f"from {_beside(then, now)} to {_beside(now, then)}"
    if fall < 0:
        return f"rose by {_beside(-fall, Fraction(0))}, {path}"
    relation = "more than" if fall > bound else "at most"
    allowed = f"{limit.text} of it, {decimal(bound, 6)}" if limit.relative else limit.text
    return f"fell by {_beside(fall, bound)}, {path}: {relation} {allowed}"


# --- numbers as text


def exactly(value: float) -> Fraction:
    """Return the very decimal that a float is written as."""
    return Fraction(repr(float(value)))


def beside(value: float, bound: Fraction, least: int = 4) -> str:
    """Return a number with as many decimals as show on which side of `bound` it lies."""
    return _beside(exactly(value), bound, least)


def _beside(value: Fraction, bound: Fraction, least: int = 4) -> str:
    for places in range(least, 18):
        text = decimal(value, places)
        shown = Fraction(text)
        if (shown > bound) == (value > bound) and (shown < bound) == (value < bound):
            return text
    return repr(float(value))


def decimal(value: Fraction, places: int) -> str:
    """Return a number rounded to so many decimals."""
    quotient = _DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{quotient:.{places}f}"


def _signed(value: float) -> str:
    return _beside(exactly(value), Fraction(0))
