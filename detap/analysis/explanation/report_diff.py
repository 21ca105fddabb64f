"""Why two reports give two numbers, as far as that can be known."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Any, NamedTuple

from detap import metrics
from detap._version import __version__
from detap.analysis.explanation.numbers import Tables, ask, headline, measure_called
from detap.analysis.explanation.protocol_diff import Difference, difference, told_of
from detap.decimals import nearly_equal
from detap.errors import DetapError, UnknownNameError
from detap.evaluation.recorded import recorded_reading, recorded_selection
from detap.protocols import Protocol
from detap.protocols.steps import Step, steps
from detap.text_input import suggest

Record = Mapping[str, Any]

SIDES = {"ground truth": "ground_truth", "detections": "detections"}
"""Causes that are inputs, and their roles."""


class Cause(NamedTuple):
    """Something in which two reports can differ.

    Attributes
    ----------
    name : {"ground truth", "selection", "reading", "detections", "protocol", "version"}
    differs : bool or None
        As far as the number depends on it; None where the reports do not tell.
    first, second : str
        What either says of it.
    """

    name: str
    differs: bool | None
    first: str
    second: str


class Contribution(NamedTuple):
    """What some causes have in the difference.

    Attributes
    ----------
    causes : tuple of str
        Their names; of several nothing tells them apart.
    value : float
        NaN where it is not known.
    """

    causes: tuple[str, ...]
    value: float


@dataclass(frozen=True)
class ReportDiff:
    """Why two reports give two numbers.

    Attributes
    ----------
    names : tuple of two str
        What the number is called in either.
    values : tuple of two float
        NaN is undefined.
    causes : tuple of Cause
    portions : tuple of Contribution
        Of the causes that differ, or may.
    steps : tuple of Step
        The axes in which the protocols differ, as far as the number depends on them.
    told : str
        What the first of them changes, in words.
    protocols : Difference or None
        What each of them has, where the inputs are at hand.
    remarks : tuple of str
        What stands in the way of knowing more.
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    causes: tuple[Cause, ...]
    steps: tuple[Step, ...] = ()
    told: str = ""
    portions: tuple[Contribution, ...] = ()
    protocols: Difference | None = None
    remarks: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """The second number less the first."""
        return self.values[1] - self.values[0]

    @property
    def differs(self) -> bool:
        """Whether the numbers differ by more than rounding does."""
        return not nearly_equal(*self.values)

    @property
    def differing(self) -> tuple[str, ...]:
        """The names of the causes that differ, or may."""
        return tuple(cause.name for cause in self.causes if cause.differs is not False)

    @property
    def is_known(self) -> bool:
        """Whether it is known what each has."""
        return not any(isnan(portion.value) for portion in self.portions)


class ReportInputs(NamedTuple):
    """What a report was made from.

    Attributes
    ----------
    tables : (GroundTruth, Detections)
    inputs : sequence of mapping
        What a report says of them.
    classes : sequence of str, optional
        The classes to report.
    read_again : callable, optional
        Reads the same files with other options, which it takes as a mapping.
    """

    tables: Tables
    inputs: Sequence[Record]
    classes: Sequence[str] | None = None
    read_again: Callable[[Mapping[str, str]], Tables] | None = None


def account(
    first: Record,
    second: Record,
    at: str | None = None,
    *,
    made: ReportInputs | None = None,
    threads: int | None = None,
) -> ReportDiff:
    """Say why two reports of detectors give two numbers.

    Parameters
    ----------
    first, second : mapping
        JSON reports of the kind ``"detection"``.
    at : str, optional
        The number, of both summaries; by default what each is quoted by.
    made : ReportInputs, optional
        What either was made from: what the protocols have in the difference is then known.
    threads : int, optional
        The numbers do not depend on it.

    Raises
    ------
    UsageError
        Where a report's protocol cannot be read.
    UnknownNameError
        Where a summary has no such number.
    """
    records = (first, second)
    protocols = [Protocol.from_report(record["protocol"]) for record in records]
    names = tuple(_name(record, r, at) for record, r in zip(records, protocols, strict=True))
    values = tuple(
        nan if record["summary"][name] is None else float(record["summary"][name])
        for record, name in zip(records, names, strict=True)
    )
    asked = [
        r.only_metric(measure_called(r, name)) for r, name in zip(protocols, names, strict=True)
    ]
    found = steps(*asked)
    told = ReportDiff(names, values, tuple(_causes(records, protocols, found)), found)
    if found:
        told = replace(told, told=told_of(found[0], asked))
    told = replace(told, remarks=tuple(_remarks(records, names)))
    if made is None or told.remarks or any(map(isnan, values)):
        return replace(told, portions=_from_reports(told))
    return _from_tables(told, (records, (protocols[0], protocols[1])), at, made, threads)


def _name(record: Record, protocol: Protocol, at: str | None) -> str:
    """Return what a summary calls a number: the AP50 of one threshold may be its mAP."""
    summary = record["summary"]
    if at is None:
        return str(next(iter(summary)))
    asked = measure_called(protocol, at)
    wanted = protocol.only_metric(asked)
    for name in summary:
        entry = metrics.named(protocol, name)
        if (
            entry.metric is asked.metric
            and not entry.group
            and protocol.only_metric(entry) == wanted
        ):
            return str(name)
    hint = suggest(at, summary) or f"it has {', '.join(summary)}"
    raise UnknownNameError(f"the summary of a report has no number {at!r}; {hint}")


def _causes(
    records: Sequence[Record], protocols: Sequence[Protocol], found: Sequence[Step]
) -> Iterator[Cause]:
    for name, role in SIDES.items():
        sides = _sides(records, role)
        yield Cause(name, _differ(*sides), *map(_counted, sides))
        if role == "ground_truth":
            chosen = [recorded_selection(record) for record in records]
            yield Cause("selection", chosen[0] != chosen[1], *chosen)
            read = [recorded_reading(record) for record in records]
            if any(read):
                yield Cause("reading", read[0] != read[1], *map(_spelled, read))
    yield Cause("protocol", bool(found), *(entry.text for entry in protocols))
    versions = [str(record.get("detap_version")) for record in records]
    yield Cause("version", versions[0] != versions[1], *versions)


def _differ(first: Sequence[Record], second: Sequence[Record]) -> bool | None:
    """Return whether two sides are of other content, or None where that is not told."""
    digests = [[entry.get("sha256") for entry in side] for side in (first, second)]
    if digests[0] and digests[1] and None not in (*digests[0], *digests[1]):
        return digests[0] != digests[1]
    counts = [[entry.get("records") for entry in side] for side in (first, second)]
    return True if counts[0] != counts[1] and counts[0] and counts[1] else None


def _spelled(reading: Mapping[str, str]) -> str:
    told = (f"--{name.replace('_', '-')} {value}" for name, value in reading.items())
    return " ".join(told) or "by default"


def _counted(side: Sequence[Record]) -> str:
    return ", ".join(
        f"{entry.get('records')} records ({str(entry.get('sha256') or 'no sha256')[:9]})"
        for entry in side
    )


def _remarks(records: Sequence[Record], names: Sequence[str]) -> Iterator[str]:
    for place, record, name in zip(("first", "second"), records, names, strict=True):
        if name in record.get("retained_metrics", ()):
            yield f"{name} of the {place} is older than its report, which was raised"
        if record["summary"][name] is None:
            yield f"{name} of the {place} is undefined"


def _from_reports(told: ReportDiff) -> tuple[Contribution, ...]:
    """Return the portions as far as reports alone tell them."""
    names = told.differing
    surely = all(cause.differs for cause in told.causes if cause.name in names)
    known = len(names) == 1 and surely and not told.remarks
    return tuple(Contribution((name,), told.total if known else nan) for name in names)


def _from_tables(
    told: ReportDiff,
    reports: tuple[Sequence[Record], tuple[Protocol, Protocol]],
    at: str | None,
    made: ReportInputs,
    threads: int | None,
) -> ReportDiff:
    """Return the portions, the protocols being scored on what one report was made from."""
    records, protocols = reports
    base = next((side for side in (0, 1) if _is_of(records[side], made.inputs)), None)
    if base is None:
        remark = "the inputs that were given, as they were read, are those of neither report"
        return replace(told, remarks=(remark,), portions=_from_reports(told))
    asked = [
        entry.only_metric(measure_called(entry, name))
        for entry, name in zip(protocols, told.names, strict=True)
    ]
    truth, detections = made.tables
    tables = truth, detections.reindex_like(truth)
    scored = ask(tables, asked, headline, classes=made.classes, threads=threads)
    # From the first report's number to what its protocol gives on these inputs now, to what the
    # other's gives there, to what that gives with the other's options of reading, to the second
    # report's number: on the side that these are of, what is off is its version's, on the other
    # side whatever else differs.
    portions: dict[tuple[str, ...], float] = {}
    if told.steps:
        portions["protocol",] = scored[1] - scored[0]
    other = _read_as_the_other(told, records[1 - base], asked[1 - base], made, threads)
    if other is not None:
        sign = 1 if base == 0 else -1
        portions["reading",] = sign * (other - scored[1 - base])
        scored[1 - base] = other
    others = tuple(
        name
        for name in told.differing
        if name in (*SIDES, "selection", "reading") and (other is None or name != "reading")
    )
    elsewhere = [() if side == base else others for side in (0, 1)]
    here = [record.get("detap_version") == __version__ for record in records]
    for side in (0, 1):
        if here[side] and not elsewhere[side] and not nearly_equal(scored[side], told.values[side]):
            told = replace(told, remarks=(_does_not_come_out(told, side, scored[side]),))
            return replace(told, portions=_from_reports(told))
    for side, sign in ((0, -1), (1, 1)):
        causes = (*elsewhere[side], *(() if here[side] else ("version",)))
        if causes:
            off = sign * (told.values[side] - scored[side])
            portions[causes] = portions.get(causes, 0.0) + off
    return replace(
        told,
        portions=tuple(Contribution(*portion) for portion in portions.items()),
        protocols=difference(tables, *protocols, at, classes=made.classes, threads=threads)
        if told.steps
        else None,
    )


def _read_as_the_other(
    told: ReportDiff, record: Record, protocol: Protocol, made: ReportInputs, threads: int | None
) -> float | None:
    """Return what a report's protocol gives on the other's inputs, read with its own options.

    None if both were read alike, or the inputs cannot be read so.
    """
    if "reading" not in told.differing or made.read_again is None:
        return None
    try:
        truth, detections = made.read_again(recorded_reading(record))
    except DetapError:
        return None
    tables = truth, detections.reindex_like(truth)
    return ask(tables, [protocol], headline, classes=made.classes, threads=threads)[0]


def _does_not_come_out(told: ReportDiff, side: int, value: float) -> str:
    ordinal, name, said = ("first", "second")[side], told.names[side], told.values[side]
    return (
        f"the {ordinal} report has {name} {said!r}, where these inputs give {value!r}: choose the "
        "same classes and images, and read them alike"
    )


def _is_of(record: Record, inputs: Sequence[Record]) -> bool:
    """Return whether a report was made from some inputs, as their digests tell."""
    here = {"inputs": inputs}
    return recorded_reading(record) == recorded_reading(here) and all(
        _differ(*_sides((record, here), role)) is False for role in SIDES.values()
    )


def _sides(records: Sequence[Record], role: str) -> list[list[Record]]:
    """Return the inputs of a role, but for a list of names that the other has in the other role."""
    elsewhere = [
        {entry.get("sha256") for entry in record["inputs"] if entry.get("role") != role} - {None}
        for record in records
    ]
    return [
        [
            entry
            for entry in record["inputs"]
            if entry.get("role") == role and entry.get("sha256") not in others
        ]
        for record, others in zip(records, reversed(elsewhere), strict=True)
    ]
