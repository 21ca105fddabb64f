"""Attribute the metric difference of two reports to its causes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from types import MappingProxyType
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
from detap.analysis.recorded import format_option, recorded_reading, recorded_selection
from detap.decimals import nearly_equal
from detap.errors import DetapError, UnknownNameError
from detap.protocols import Protocol
from detap.protocols.steps import Step, steps
from detap.text_input import suggest

Record = Mapping[str, Any]

INPUT_ROLES = {"ground truth": "ground_truth", "detections": "detections"}
"""Causes that are inputs, with their roles."""


class Cause(NamedTuple):
    """A possible cause of a difference between two reports."""

    name: str
    differs: bool | None  # True if the metric depends on it too; None if unknown
    first: str  # in the first report
    second: str


class Contribution(NamedTuple):
    """Contribution of a cause, or of several that cannot be separated; NaN if unknown."""

    causes: tuple[str, ...]
    value: float


@dataclass(frozen=True)
class ReportDiff:
    """Metric difference of two reports and its causes."""

    names: tuple[str, ...]  # of the metric in each report
    values: tuple[float, ...]
    causes: tuple[Cause, ...]
    steps: tuple[Step, ...] = ()  # differing protocol fields that the metric depends on
    protocol_change: str = ""  # by the first step
    contributions: tuple[Contribution, ...] = ()  # of the causes that differ or may differ
    protocols: ProtocolDiff | None = None  # None without the inputs
    remarks: tuple[str, ...] = ()  # reasons why contributions are unknown

    @property
    def total(self) -> float:
        """The second value minus the first."""
        return self.values[1] - self.values[0]

    @property
    def differs(self) -> bool:
        """True if the values differ by more than rounding."""
        return not nearly_equal(*self.values)

    @property
    def differing(self) -> tuple[str, ...]:
        """Names of the causes that differ or may differ."""
        return tuple(cause.name for cause in self.causes if cause.differs is not False)

    @property
    def is_known(self) -> bool:
        """True if all contributions are known."""
        return not any(isnan(portion.value) for portion in self.contributions)


class ReportInputs(NamedTuple):
    """Inputs of a report."""

    tables: Tables
    inputs: Sequence[Record]  # as in the report
    options: Mapping[str, Any] = MappingProxyType({})  # classes to report, and threads
    # Reads the same files with other options.
    read_again: Callable[[Mapping[str, str]], Tables] | None = None


def report_diff(
    first: Record,
    second: Record,
    at: str | None = None,
    *,
    source: ReportInputs | None = None,
) -> ReportDiff:
    """Attribute the metric difference of two detection reports to its causes."""
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
    remarks = []
    for ordinal, record, name in zip(("first", "second"), records, names, strict=True):
        if name in record.get("retained_metrics", ()):
            remarks.append(f"{name} of the {ordinal} report was retained from an older report")
        if record["summary"][name] is None:
            remarks.append(f"{name} of the {ordinal} report is undefined")
    diff = ReportDiff(
        names,
        values,
        tuple(_causes(records, protocols, differing_steps)),
        differing_steps,
        describe_step(differing_steps[0], single) if differing_steps else "",
        remarks=tuple(remarks),
    )
    if source is None or diff.remarks or any(map(isnan, values)):
        return replace(diff, contributions=_from_reports(diff))
    return _from_tables(diff, (records, protocols, single), at, source)


def _name(record: Record, protocol: Protocol, at: str | None) -> str:
    """Return the name of a metric in a summary: mAP may be AP50 at one threshold."""
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
    raise UnknownNameError(f"the summary of a report has no metric {at!r}; {hint}")


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
    """Return True if the inputs differ in content, None if unknown."""
    digests = [[entry.get("sha256") for entry in side] for side in (first, second)]
    if digests[0] and digests[1] and None not in (*digests[0], *digests[1]):
        return digests[0] != digests[1]
    counts = [[entry.get("records") for entry in side] for side in (first, second)]
    return True if counts[0] != counts[1] and counts[0] and counts[1] else None


def _format_reading(reading: Mapping[str, str]) -> str:
    options = (
        f"--{name.replace('_', '-')} {format_option(name, value)}"
        for name, value in reading.items()
    )
    return " ".join(options) or "by default"


def _format_inputs(side: Sequence[Record]) -> str:
    return ", ".join(
        f"{entry.get('records')} records ({str(entry.get('sha256') or 'no sha256')[:9]})"
        for entry in side
    )


def _from_reports(diff: ReportDiff) -> tuple[Contribution, ...]:
    """Return the contributions, which reports alone give for a single cause only."""
    names = diff.differing
    surely = all(cause.differs for cause in diff.causes if cause.name in names)
    known = len(names) == 1 and surely and not diff.remarks
    return tuple(Contribution((name,), diff.total if known else nan) for name in names)


def _from_tables(
    diff: ReportDiff,
    reports: tuple[Sequence[Record], Sequence[Protocol], Sequence[Protocol]],
    at: str | None,
    source: ReportInputs,
) -> ReportDiff:
    """Compute the contributions by scoring the protocols on one report's inputs."""
    records, (first, second), single = reports
    base = next((side for side in (0, 1) if _has_inputs(records[side], source.inputs)), None)
    if base is None:
        remark = "the given inputs and reading options match neither report"
        return replace(diff, remarks=(remark,), contributions=_from_reports(diff))
    truth, detections = source.tables
    tables = truth, detections.reindex_like(truth)
    scored = evaluate_protocols(tables, single, primary_value, **source.options)
    # Path: first report, its protocol on these inputs, the other protocol, the other reading
    # options, second report. A gap at the report with these inputs is the effect of its
    # version; a gap at the other report, of all remaining causes.
    portions: dict[tuple[str, ...], float] = {}
    if diff.steps:
        portions["protocol",] = scored[1] - scored[0]
    other = _score_with_other_reading(diff, records[1 - base], single[1 - base], source)
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
        protocols=protocol_diff(tables, first, second, at, **source.options)
        if diff.steps
        else None,
    )


def _score_with_other_reading(
    diff: ReportDiff, record: Record, protocol: Protocol, source: ReportInputs
) -> float | None:
    """Score the other report's inputs with this report's reading options; None if impossible."""
    if "reading" not in diff.differing or source.read_again is None:
        return None
    try:
        truth, detections = source.read_again(recorded_reading(record))
    except DetapError:
        return None
    tables = truth, detections.reindex_like(truth)
    return evaluate_protocols(tables, [protocol], primary_value, **source.options)[0]


def _describe_mismatch(diff: ReportDiff, side: int, value: float) -> str:
    ordinal, name, reported = ("first", "second")[side], diff.names[side], diff.values[side]
    return (
        f"the {ordinal} report has {name} {reported!r}, but these inputs give {value!r}; use the "
        "same classes, images and reading options"
    )


def _has_inputs(record: Record, inputs: Sequence[Record]) -> bool:
    """Return True if a report has these inputs, by their digests."""
    current = {"inputs": inputs}
    return recorded_reading(record) == recorded_reading(current) and all(
        _differ(*_inputs_of_role((record, current), role)) is False for role in INPUT_ROLES.values()
    )


def _inputs_of_role(records: Sequence[Record], role: str) -> list[list[Record]]:
    """Return the inputs of a role, without files that the other report has in another role."""
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
