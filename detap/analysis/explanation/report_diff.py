"""Why two reports give two numbers, as far as that can be known."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Any, NamedTuple

from detap import metrics
from detap._version import __version__
from detap.analysis.explanation.numbers import (
    Tables,
    evaluate_protocols,
    find_metric,
    primary_value,
)
from detap.analysis.explanation.protocol_diff import ProtocolDiff, describe_step, protocol_diff
from detap.decimals import nearly_equal
from detap.errors import DetapError, UnknownNameError
from detap.evaluation.recorded import recorded_reading, recorded_selection
from detap.protocols import Protocol
from detap.protocols.steps import Step, steps
from detap.text_input import suggest

Record = Mapping[str, Any]

INPUT_ROLES = {"ground truth": "ground_truth", "detections": "detections"}
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
    contributions : tuple of Contribution
        Of the causes that differ, or may.
    steps : tuple of Step
        The axes in which the protocols differ, as far as the number depends on them.
    diff : str
        What the first of them changes, in words.
    protocols : ProtocolDiff or None
        What each of them has, where the inputs are at hand.
    remarks : tuple of str
        What stands in the way of knowing more.
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    causes: tuple[Cause, ...]
    steps: tuple[Step, ...] = ()
    protocol_change: str = ""
    contributions: tuple[Contribution, ...] = ()
    protocols: ProtocolDiff | None = None
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
        return not any(isnan(portion.value) for portion in self.contributions)


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


def report_diff(
    first: Record,
    second: Record,
    at: str | None = None,
    *,
    source: ReportInputs | None = None,
    threads: int | None = None,
) -> ReportDiff:
    """Say why two reports of detectors give two numbers.

    Parameters
    ----------
    first, second : mapping
        JSON reports of the kind ``"detection"``.
    at : str, optional
        The number, of both summaries; by default what each is quoted by.
    source : ReportInputs, optional
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
    names = tuple(
        _name(record, protocol, at) for record, protocol in zip(records, protocols, strict=True)
    )
    values = tuple(
        nan if record["summary"][name] is None else float(record["summary"][name])
        for record, name in zip(records, names, strict=True)
    )
    single = [
        protocol.only_metric(find_metric(protocol, name))
        for protocol, name in zip(protocols, names, strict=True)
    ]
    differing_steps = steps(*single)
    diff = ReportDiff(
        names, values, tuple(_causes(records, protocols, differing_steps)), differing_steps
    )
    if differing_steps:
        diff = replace(diff, protocol_change=describe_step(differing_steps[0], single))
    diff = replace(diff, remarks=tuple(_remarks(records, names)))
    if source is None or diff.remarks or any(map(isnan, values)):
        return replace(diff, contributions=_from_reports(diff))
    return _from_tables(diff, (records, (protocols[0], protocols[1])), at, source, threads)


def _name(record: Record, protocol: Protocol, at: str | None) -> str:
    """Return what a summary calls a number: the AP50 of one threshold may be its mAP."""
    summary = record["summary"]
    if at is None:
        return str(next(iter(summary)))
    requested = find_metric(protocol, at)
    expected = protocol.only_metric(requested)
    for name in summary:
        metric = metrics.named(protocol, name)
        if (
            metric.metric is requested.metric
            and not metric.group
            and protocol.only_metric(metric) == expected
        ):
            return str(name)
    hint = suggest(at, summary) or f"it has {', '.join(summary)}"
    raise UnknownNameError(f"the summary of a report has no number {at!r}; {hint}")


def _causes(
    records: Sequence[Record], protocols: Sequence[Protocol], differing_steps: Sequence[Step]
) -> Iterator[Cause]:
    for name, role in INPUT_ROLES.items():
        inputs = _inputs_of_role(records, role)
        yield Cause(name, _differ(*inputs), *map(_format_inputs, inputs))
        if role == "ground_truth":
            selections = [recorded_selection(record) for record in records]
            yield Cause("selection", selections[0] != selections[1], *selections)
            options = [recorded_reading(record) for record in records]
            if any(options):
                yield Cause("reading", options[0] != options[1], *map(_format_reading, options))
    yield Cause("protocol", bool(differing_steps), *(protocol.text for protocol in protocols))
    versions = [str(record.get("detap_version")) for record in records]
    yield Cause("version", versions[0] != versions[1], *versions)


def _differ(first: Sequence[Record], second: Sequence[Record]) -> bool | None:
    """Return whether two sides are of other content, or None where that is not told."""
    digests = [[entry.get("sha256") for entry in side] for side in (first, second)]
    if digests[0] and digests[1] and None not in (*digests[0], *digests[1]):
        return digests[0] != digests[1]
    counts = [[entry.get("records") for entry in side] for side in (first, second)]
    return True if counts[0] != counts[1] and counts[0] and counts[1] else None


def _format_reading(reading: Mapping[str, str]) -> str:
    options = (f"--{name.replace('_', '-')} {value}" for name, value in reading.items())
    return " ".join(options) or "by default"


def _format_inputs(side: Sequence[Record]) -> str:
    return ", ".join(
        f"{entry.get('records')} records ({str(entry.get('sha256') or 'no sha256')[:9]})"
        for entry in side
    )


def _remarks(records: Sequence[Record], names: Sequence[str]) -> Iterator[str]:
    for ordinal, record, name in zip(("first", "second"), records, names, strict=True):
        if name in record.get("retained_metrics", ()):
            yield f"{name} of the {ordinal} is older than its report, which was raised"
        if record["summary"][name] is None:
            yield f"{name} of the {ordinal} is undefined"


def _from_reports(diff: ReportDiff) -> tuple[Contribution, ...]:
    """Return the portions as far as reports alone tell them."""
    names = diff.differing
    surely = all(cause.differs for cause in diff.causes if cause.name in names)
    known = len(names) == 1 and surely and not diff.remarks
    return tuple(Contribution((name,), diff.total if known else nan) for name in names)


def _from_tables(
    diff: ReportDiff,
    reports: tuple[Sequence[Record], tuple[Protocol, Protocol]],
    at: str | None,
    source: ReportInputs,
    threads: int | None,
) -> ReportDiff:
    """Return the portions, the protocols being scored on what one report was made from."""
    records, protocols = reports
    base = next((side for side in (0, 1) if _has_inputs(records[side], source.inputs)), None)
    if base is None:
        remark = "the inputs that were given, as they were read, are those of neither report"
        return replace(diff, remarks=(remark,), contributions=_from_reports(diff))
    single = [
        protocol.only_metric(find_metric(protocol, name))
        for protocol, name in zip(protocols, diff.names, strict=True)
    ]
    truth, detections = source.tables
    tables = truth, detections.reindex_like(truth)
    scored = evaluate_protocols(
        tables, single, primary_value, classes=source.classes, threads=threads
    )
    # From the first report's number to what its protocol gives on these inputs now, to what the
    # other's gives there, to what that gives with the other's options of reading, to the second
    # report's number: on the side that these are of, what is off is its version's, on the other
    # side whatever else differs.
    portions: dict[tuple[str, ...], float] = {}
    if diff.steps:
        portions["protocol",] = scored[1] - scored[0]
    other = _score_with_other_reading(diff, records[1 - base], single[1 - base], source, threads)
    if other is not None:
        sign = 1 if base == 0 else -1
        portions["reading",] = sign * (other - scored[1 - base])
        scored[1 - base] = other
    others = tuple(
        name
        for name in diff.differing
        if name in (*INPUT_ROLES, "selection", "reading") and (other is None or name != "reading")
    )
    input_causes = [() if side == base else others for side in (0, 1)]
    same_version = [record.get("detap_version") == __version__ for record in records]
    for side in (0, 1):
        if (
            same_version[side]
            and not input_causes[side]
            and not nearly_equal(scored[side], diff.values[side])
        ):
            diff = replace(diff, remarks=(_describe_mismatch(diff, side, scored[side]),))
            return replace(diff, contributions=_from_reports(diff))
    for side, sign in ((0, -1), (1, 1)):
        causes = (*input_causes[side], *(() if same_version[side] else ("version",)))
        if causes:
            off = sign * (diff.values[side] - scored[side])
            portions[causes] = portions.get(causes, 0.0) + off
    return replace(
        diff,
        contributions=tuple(Contribution(*portion) for portion in portions.items()),
        protocols=protocol_diff(tables, *protocols, at, classes=source.classes, threads=threads)
        if diff.steps
        else None,
    )


def _score_with_other_reading(
    diff: ReportDiff, record: Record, protocol: Protocol, source: ReportInputs, threads: int | None
) -> float | None:
    """Return what a report's protocol gives on the other's inputs, read with its own options.

    None if both were read alike, or the inputs cannot be read so.
    """
    if "reading" not in diff.differing or source.read_again is None:
        return None
    try:
        truth, detections = source.read_again(recorded_reading(record))
    except DetapError:
        return None
    tables = truth, detections.reindex_like(truth)
    return evaluate_protocols(
        tables, [protocol], primary_value, classes=source.classes, threads=threads
    )[0]


def _describe_mismatch(diff: ReportDiff, side: int, value: float) -> str:
    ordinal, name, reported = ("first", "second")[side], diff.names[side], diff.values[side]
    return (
        f"the {ordinal} report has {name} {reported!r}, but these inputs give {value!r}; use the "
        "same classes, images and reading options"
    )


def _has_inputs(record: Record, inputs: Sequence[Record]) -> bool:
    """Return whether a report was made from some inputs, as their digests tell."""
    current = {"inputs": inputs}
    return recorded_reading(record) == recorded_reading(current) and all(
        _differ(*_inputs_of_role((record, current), role)) is False for role in INPUT_ROLES.values()
    )


def _inputs_of_role(records: Sequence[Record], role: str) -> list[list[Record]]:
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
