"""Explanations: a conclusion, and the tables it is based on."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any, Literal

from detap._version import __version__
from detap.analysis.explanation.protocol_diff import ProtocolDiff
from detap.analysis.explanation.protocol_search import ProtocolMatch, ProtocolSearch
from detap.analysis.explanation.report_diff import Contribution, ReportDiff
from detap.decimals import nearly_equal
from detap.protocols import Protocol
from detap.protocols.fields import display_name, protocol_fields
from detap.report.fields import Count, Object, SchemaVersion, dict_of, each, field, list_of
from detap.report.model import Block, Cell, Column, Report, Table
from detap.report.numbers import exact

ExplainedInput = Object(
    "ExplainedInput",
    "A file that was read.",
    others=Any,
    role=Literal["ground_truth", "detections"],
    path=str,
    sha256=str | None,
)

StepRow = Object(
    "StepRow",
    "The effect of a step: one field, or fields that only make sense together. Its fraction"
    " of the difference, its Shapley value, its effect in order and reversed, and its "
    "smallest and largest effect over all combinations. Null if only the two orders were "
    "scored.",
    name=str,
    fields=field(str, "Separated by commas."),
    **each(float | None, "fraction", "shapley"),
    **each(float, "in_order", "reversed"),
    **each(float | None, "min", "max"),
)

ProtocolMetric = Object(
    "ProtocolMetric",
    "A metric under a protocol.",
    signature=str,
    protocol=dict[str, Any],
    metric=str,
    value=float,
)

ProtocolDiffMetrics = Object(
    "ProtocolDiffMetrics",
    "The metric under both protocols.",
    **each(ProtocolMetric, "first", "second"),
    difference=float,
)

CombinationsData = Object(
    "CombinationsData",
    "The combinations of changed fields that were scored.",
    scored=Count,
    all=field(bool, "True if all combinations were scored, else only those in order and reversed."),
)

FieldPair = Object("FieldPair", "The value of a field in both protocols.", first=Any, second=Any)

ProtocolRow = Object(
    "ProtocolRow",
    "A protocol that gives the value, or a near one.",
    name=str,
    metric=str,
    value=float,
    digits=field(Count, "The number of matching digits."),
    changes=field(Count, "The number of changed fields of a preset."),
    signature=str,
)

ScoredCounts = Object(
    "ScoredCounts",
    "The number of scored protocols, by changed fields.",
    **each(Count, "presets", "one_field", "two_fields"),
)

NotSearched = Object(
    "NotSearched", "Presets that were not searched, and the reason.", presets=list[str], reason=str
)

SearchData = Object(
    "SearchData",
    "The extent of the search.",
    metric=str,
    digits=Count,
    equal=Count,
    scored=ScoredCounts,
    candidates=Count,
    not_searched=field(list_of(NotSearched), "Presets that were not searched, by reason."),
)

ContributionRow = Object(
    "ContributionRow",
    "The contribution of some causes to the difference; null if unknown.",
    name=str,
    **each(float | None, "fraction", "change"),
)

ReportMetric = Object("ReportMetric", "A metric of a report.", metric=str, value=float | None)

ReportDiffMetrics = Object(
    "ReportDiffMetrics",
    "The metric in both reports.",
    **each(ReportMetric, "first", "second"),
    difference=float | None,
)

CauseEntry = Object(
    "CauseEntry",
    "A possible cause of the difference.",
    name=str,
    differs=field(bool | None, "Null if unknown."),
    **each(str, "first", "second"),
)

RemarksData = Object("RemarksData", "Further remarks.", messages=list[str])

AttributionData = Object(
    "AttributionData",
    "The contribution of each step to the difference.",
    steps=list_of(StepRow),
    difference=float,
)

_KINDS = {field.name: field.kind for field in protocol_fields(Protocol)}

ExplanationReport = Object(
    "ExplanationReport",
    "The JSON report of detap explain. Undefined metrics are null.",
    others=Any,
    schema_version=SchemaVersion,
    detap_version=str,
    kind=field(
        Literal["protocol_diff", "protocol_search", "report_diff"],
        "Two protocols; protocols that give a value; two reports.",
    ),
    signature=field(Literal[""], "Empty: an explanation has no single protocol."),
    protocol=field(dict[str, Any], maxProperties=0),
    inputs=list_of(ExplainedInput),
    conclusion=field(str, "The conclusion in one sentence."),
    summary=field(dict[str, Any], maxProperties=0),
    notes=list[Any],
    selection=field(dict[str, Any], required=False),
)

ProtocolDiffParts = Object(
    "ProtocolDiffParts",
    "Further keys of a protocol diff.",
    others=Any,
    steps=field(list_of(StepRow), minItems=1),
    metrics=ProtocolDiffMetrics,
    combinations=CombinationsData,
    fields=dict_of(FieldPair),
)

ProtocolSearchParts = Object(
    "ProtocolSearchParts",
    "Further keys of a protocol search.",
    others=Any,
    protocols=list_of(ProtocolRow),
    search=SearchData,
)

ReportDiffParts = Object(
    "ReportDiffParts",
    "Further keys of a report diff.",
    others=Any,
    contributions=list_of(ContributionRow),
    metrics=ReportDiffMetrics,
    causes=dict_of(CauseEntry),
    remarks=field(RemarksData, required=False),
    attribution=field(AttributionData, required=False),
    combinations=field(CombinationsData, required=False),
    fields=field(dict_of(FieldPair), required=False),
)

# --- two protocols


def protocol_diff_report(diff: ProtocolDiff) -> Report:
    """Return the report of the difference between two protocols."""
    return Report(
        kind="protocol_diff",
        table=steps_table(diff),
        blocks=(_metrics_of_protocols(diff), *protocol_diff_blocks(diff)),
        conclusion=protocol_diff_sentence(diff),
    )


def protocol_diff_sentence(diff: ProtocolDiff) -> str:
    """Return the main cause of a difference as a sentence."""
    if not diff.differs:
        protocols = " and ".join(item.protocol.text for item in (diff.first, diff.second))
        cancel = any(
            not nearly_equal(change, 0.0) for effect in diff.effects for change in effect[:2]
        )
        note = ": the effects of their fields cancel" if cancel else ""
        return f"{protocols} give the same {diff.second.metric.name}{note}"
    cause, fraction = _main_cause(diff)
    others = f"; other fields {percent(1 - fraction)}" if fraction > 1.005 else ""
    return f"Main cause: {cause} ({percent(fraction)} of the difference{others})"


def _main_cause(diff: ProtocolDiff) -> tuple[str, float]:
    """Return the largest cause of a difference and its fraction of it."""
    fraction, cause = max(zip(diff.fractions, diff.descriptions, strict=True))
    return cause.removeprefix("that "), fraction


def percent(fraction: float) -> str:
    """Return a fraction in percent; never 100% unless it is 1."""
    if round(100 * fraction) == 100 and fraction != 1:
        return "nearly 100%"
    return f"{round(100 * fraction)}%".replace("-", "\N{MINUS SIGN}")


_OVER_ALL_COMBINATIONS = ("shapley", "min", "max")
_STEPS = (
    Column("name", "field", "field", "name"),
    Column("fraction", "share of difference", "share of difference", "fraction"),
    Column("shapley", "Shapley", "Shapley", "precise_change"),
    Column("in_order", "in order", "in order", "precise_change"),
    Column("reversed", "reversed", "reversed", "precise_change"),
)
_RANGE = (
    _STEPS[0],
    Column("min", "min", "min", "precise_change"),
    Column("max", "max", "max", "precise_change"),
)


def steps_table(diff: ProtocolDiff) -> Table:
    """Return the contribution of each step to a difference, and their sum."""
    rows = tuple(
        StepRow(
            effect,
            name=step.name,
            fields=",".join(field.name for field in step.fields),
            fraction=fraction,
            min=effect.minimum,
            max=effect.maximum,
        )
        for step, effect, fraction in zip(diff.steps, diff.effects, diff.fractions, strict=True)
    )
    columns = [c for c in _STEPS if diff.is_exhaustive or c.key not in _OVER_ALL_COMBINATIONS]
    totals: dict[str, Cell] = {"name": "difference", "fraction": sum(diff.fractions)}
    totals |= dict.fromkeys(("shapley", "in_order", "reversed"), diff.total)
    return Table(tuple(columns), rows, totals)


def _metrics_of_protocols(diff: ProtocolDiff) -> Block:
    data = {
        key: ProtocolMetric(
            item,
            signature=item.protocol.signature(__version__),
            protocol=item.protocol.as_dict(),
            metric=item.metric.name,
        )
        for key, item in (("first", diff.first), ("second", diff.second))
    }
    rows: tuple[dict[str, Cell], ...] = tuple(
        {"name": item.protocol.text, "metric": item.metric.name, "value": item.value}
        for item in (diff.first, diff.second)
    )
    table = Table(_METRIC_COLUMNS, rows)
    return Block("metrics", "", {**data, "difference": diff.total}, table=table)


_METRIC_COLUMNS = (
    Column("name", "protocol", "protocol", "name"),
    Column("metric", "metric", "metric", "text"),
    Column("value", "value", "value", "exact"),
)


def protocol_diff_blocks(diff: ProtocolDiff) -> list[Block]:
    """Return the fields that differ and their effects over all combinations."""
    table = steps_table(diff)
    data = {"scored": diff.combinations, "all": diff.is_exhaustive}
    if diff.is_exhaustive:
        title = f"Effect per field over all {diff.combinations} combinations"
        combinations = Block("combinations", title, data, table=Table(_RANGE, table.rows))
    else:
        line = (
            f"{len(diff.steps)} changed fields have {2 ** len(diff.steps)} combinations, too "
            "many to score: only the effects in order and reversed are given"
        )
        combinations = Block("combinations", "", data, lines=(line,))
    return [combinations, _fields(diff)]


def _fields(diff: ProtocolDiff) -> Block:
    both = [item.protocol.only_metric(item.metric) for item in (diff.first, diff.second)]
    plain = [protocol.as_dict() for protocol in both]
    names = [field.name for step in diff.steps for field in step.fields]
    rows = []
    for name in names:
        first, second = (_KINDS[name].format_short(getattr(protocol, name)) for protocol in both)
        rows.append({"name": display_name(name), "first": first, "second": second})
    columns = (
        Column("name", "field", "field", "name"),
        Column("first", "from", "from", "text"),
        Column("second", "to", "to", "text"),
    )
    data = {name: {"first": plain[0][name], "second": plain[1][name]} for name in names}
    return Block("fields", "Protocol fields that differ", data, table=Table(columns, tuple(rows)))


# --- a value


def protocol_search_report(search: ProtocolSearch, *, max_rows: int = 10) -> Report:
    """Return the report of the protocols that give a value or a near one."""
    rows = tuple(
        ProtocolRow(
            match,
            name=_name_of(match),
            metric=match.name,
            changes=len(match.changes),
            signature=match.protocol.signature(__version__),
        )
        for match in search.candidates[:max_rows]
    )
    return Report(
        kind="protocol_search",
        table=Table(_PROTOCOLS, rows),
        blocks=(_search(search, max_rows),),
        conclusion=_protocol_search_sentence(search),
    )


_PROTOCOLS = (
    *_METRIC_COLUMNS,
    Column("digits", "matching digits", "digits", "count"),
)


def _name_of(match: ProtocolMatch) -> str:
    """Return the name of a preset with its changed fields."""
    return ", ".join([match.protocol.name, *_values(match.changes)])


def _values(changes: Mapping[str, Any]) -> list[str]:
    return [
        f"{display_name(name)} {_KINDS[name].format_short(value)}"
        for name, value in changes.items()
    ]


def _protocol_search_sentence(search: ProtocolSearch) -> str:
    target, equal = search.target, search.equal
    given = f" (all with {', '.join(_values(search.changes))})" if search.changes else ""
    if not search.candidates:
        return f"No preset has a metric that could be {target.text}{given}"
    best = search.candidates[0]
    text = f"{_name_of(best)} gives {best.name} {best.value!r}"
    if equal:
        return f"{text}, equal in all {target.digits} digits{_others(equal)}{given}"
    return (
        f"No searched preset, also with one or two changed fields, gives {target.text}; "
        f"nearest: {text}{given}"
    )


def _others(equal: Sequence[ProtocolMatch]) -> str:
    """Return a clause with the other presets that give the value, or their number."""
    names = list(dict.fromkeys(_name_of(match) for match in equal))[1:]
    if not names:
        return ""
    if equal[0].changes and names[1:]:
        return f"; so do {len(names)} others"
    *others, last = names
    return f"; so do {', '.join(others)} and {last}" if others else f"; so does {last}"


def _search(search: ProtocolSearch, max_rows: int) -> Block:
    none, one, two = (*search.scored, 0, 0)[:3]
    lines = [f"{none} presets"]
    if len(search.scored) > 1:
        lines.append(f"{one} with one changed field")
    if len(search.scored) > 2:
        likeliest = (
            f", the most likely of {search.pairs}" if search.pairs > search.max_pairs else ""
        )
        lines.append(f"{two} with two{likeliest}")
    shown = min(max_rows, len(search.candidates))
    text = f"Scored: {', '.join(lines)}. Shown: {shown} of {len(search.candidates)} values"
    data = SearchData(
        metric=search.target.text,
        digits=search.target.digits,
        equal=len(search.equal),
        scored={"presets": none, "one_field": one, "two_fields": two},
        candidates=len(search.candidates),
        not_searched=[NotSearched(group) for group in search.skipped],
    )
    groups = [f"{', '.join(group.presets)} ({group.reason})" for group in search.skipped]
    skipped = [f"Not searched: {'; '.join(groups)}"] if groups else []
    return Block("search", "", data, lines=(text, *skipped))


# --- two reports

_CLAUSES = {
    "ground truth": "different ground truth",
    "selection": "different classes or images",
    "reading": "different input options",
    "detections": "different detections",
    "protocol": "different protocols",
    "version": "different versions of detap",
}


def report_diff_report(diff: ReportDiff) -> Report:
    """Return the report of the difference between two reports."""
    rows = tuple(
        ContributionRow(
            name=", ".join(part.causes),
            fraction=part.value / diff.total if diff.differs else nan,
            change=part.value,
        )
        for part in diff.contributions
    )
    totals = ContributionRow(
        name="difference", fraction=1.0 if diff.differs else nan, change=diff.total
    )
    table = Table(_CONTRIBUTIONS, rows, totals)
    blocks = [_metrics_of_reports(diff), _causes(diff), *_remarks(diff)]
    if diff.protocols is not None:
        steps = steps_table(diff.protocols)
        title = "Contributions of the protocol fields"
        data = {"steps": steps.rows, "difference": diff.protocols.total}
        blocks += [Block("attribution", title, data, table=steps)]
        blocks += protocol_diff_blocks(diff.protocols)
    return Report(
        kind="report_diff",
        table=table if rows else Table((), ()),
        blocks=tuple(blocks),
        conclusion=report_diff_sentence(diff),
    )


_CONTRIBUTIONS = (
    Column("name", "cause", "cause", "name"),
    Column("fraction", "share of difference", "share of difference", "fraction"),
    Column("change", "change", "change", "precise_change"),
)


def report_diff_sentence(diff: ReportDiff) -> str:
    """Return the main cause of the difference between two reports as a sentence."""
    if not diff.contributions:
        return _nothing_differs(diff)
    if not diff.is_known:
        return _unknown(diff)
    if not diff.differs:
        causes = " and ".join(_clause(part) for part in diff.contributions)
        return f"{diff.names[1]} is equal in both reports despite {causes}"
    return _protocols_alone(diff) or _main_contribution(diff)


def _nothing_differs(diff: ReportDiff) -> str:
    name, values = diff.names[1], " and ".join(exact(value) for value in diff.values)
    if not diff.differs:
        return f"The reports are equal: {name} {values}"
    return f"{name} differs ({values}), but no recorded cause does"


def _protocols_alone(diff: ReportDiff) -> str:
    """Return the main cause if only the protocols differ; empty if unknown."""
    if diff.differing != ("protocol",):
        return ""
    if diff.protocols is not None:
        return protocol_diff_sentence(diff.protocols)
    cause = diff.protocol_change.removeprefix("that ")
    return f"Main cause: {cause} (100% of the difference)" if len(diff.steps) == 1 else ""


def _main_contribution(diff: ReportDiff) -> str:
    fractions = [(part.value / diff.total, _clause(part)) for part in diff.contributions]
    (largest, main), *others = sorted(fractions, reverse=True)
    text = "".join(f", {clause} {percent(fraction)}" for fraction, clause in others if fraction)
    if diff.protocols is not None and diff.protocols.differs:
        cause, fraction = _main_cause(diff.protocols)
        text += f"; of the protocols: {cause} {percent(fraction)}"
    return f"Main cause: {main} ({percent(largest)} of the difference{text})"


def _clause(part: Contribution) -> str:
    return " and ".join(_CLAUSES[cause] for cause in part.causes)


def _unknown(diff: ReportDiff) -> str:
    """Return a sentence for unknown contributions."""
    known = " and ".join(_CLAUSES[cause.name] for cause in diff.causes if cause.differs)
    unknown = " and the ".join(cause.name for cause in diff.causes if cause.differs is None)
    parts = [known[:1].upper() + known[1:]] if known else []
    if unknown:
        parts.append(f"{'unknown' if known else 'Unknown'} whether the {unknown} differ")
    each = "each contribution" if len(diff.contributions) > 1 else "the contribution"
    return f"{', '.join(parts)}; {each} is unknown"


def _metrics_of_reports(diff: ReportDiff) -> Block:
    pairs = zip(diff.names, diff.values, strict=True)
    metrics: list[dict[str, Cell]] = [{"metric": name, "value": value} for name, value in pairs]
    data = dict(zip(("first", "second"), metrics, strict=True))
    rows = [{"name": report, **metric} for report, metric in data.items()]
    columns = (Column("name", "report", "report", "name"), *_METRIC_COLUMNS[1:])
    table = Table(columns, tuple(rows))
    return Block("metrics", "", {**data, "difference": diff.total}, table=table)


def _causes(diff: ReportDiff) -> Block:
    words = {True: "yes", False: "no", None: "unknown"}
    rows = tuple({**cause._asdict(), "differs": words[cause.differs]} for cause in diff.causes)
    columns = (
        Column("name", "cause", "cause", "name"),
        Column("differs", "differs", "differs", "text"),
        Column("first", "first", "first", "text"),
        Column("second", "second", "second", "text"),
    )
    data = {cause.name.replace(" ", "_"): cause._asdict() for cause in diff.causes}
    return Block("causes", "Report contents", data, table=Table(columns, rows))


def _remarks(diff: ReportDiff) -> list[Block]:
    lines = list(diff.remarks)
    several = len(diff.steps) > 1 or (diff.steps and not diff.is_known)
    if several and diff.protocols is None and not lines:
        lines.append(
            "Pass the inputs of one report with --gt and --dt to compute the contribution of each "
            "protocol field"
        )
    return [Block("remarks", "", {"messages": lines}, lines=tuple(lines))] if lines else []
