"""Explanations: a conclusion, and the tables it is based on."""

from collections.abc import Iterable, Mapping, Sequence
from math import nan
from typing import Any, Literal

from detap._version import __version__
from detap.analysis.explanation.protocol_diff import ProtocolDiff
from detap.analysis.explanation.protocol_search import ProtocolMatch, ProtocolSearch
from detap.analysis.explanation.report_diff import Contribution, ReportDiff
from detap.decimals import nearly_equal
from detap.protocols import Protocol
from detap.protocols.fields import display_name, protocol_fields
from detap.report.fields import Count, Empty, Object, dict_of, each, field, list_of, report_of
from detap.report.model import Block, Cell, Report, Table, columns_of, name_column
from detap.report.numbers import exact

StepRow = Object(
    "StepRow",
    "The effect of a step: one field, or fields that only make sense together. `min` and `max` are "
    "over all combinations, null if only the two orders were scored.",
    name=str,
    fields=field(str, "Separated by commas."),
    fraction=field(float | None, "Of the difference."),
    shapley=float | None,
    **each(float, "in_order", "reversed"),
    **each(float | None, "min", "max"),
)

ExplainedMetric = Object(
    "ExplainedMetric",
    "A metric of a report, or under a protocol that is given.",
    signature=field(str, required=False),
    protocol=field(dict[str, Any], required=False),
    metric=str,
    value=float | None,
)

ExplainedMetrics = Object(
    "ExplainedMetrics", **each(ExplainedMetric, "first", "second"), difference=float | None
)

CombinationsData = Object(
    "CombinationsData",
    "The combinations of changed fields: `all`, or only those in order and reversed.",
    scored=Count,
    all=bool,
)

ProtocolRow = Object(
    "ProtocolRow",
    "A protocol that gives the value, or a near one.",
    **each(str, "name", "metric"),
    value=float,
    digits=field(Count, "That match."),
    changes=field(Count, "Changed fields of a preset."),
    signature=str,
)

ScoredCounts = Object("ScoredCounts", **each(Count, "presets", "one_field", "two_fields"))

NotSearched = Object("NotSearched", presets=list[str], reason=str)

SearchData = Object(
    "SearchData",
    metric=str,
    **each(Count, "digits", "equal"),
    scored=field(ScoredCounts, "By changed fields."),
    candidates=Count,
    not_searched=list_of(NotSearched),
)

ContributionRow = Object(
    "ContributionRow",
    "The contribution of some causes to the difference; null if unknown.",
    name=str,
    **each(float | None, "fraction", "change"),
)

CauseEntry = Object(
    "CauseEntry",
    name=str,
    differs=field(bool | None, "Null if unknown."),
    **each(str, "first", "second"),
)

AttributionData = Object("AttributionData", steps=list_of(StepRow), difference=float)

_KINDS = {field.name: field.kind for field in protocol_fields(Protocol)}

ExplanationReport = report_of(
    Literal["protocol_diff", "protocol_search", "report_diff"],
    "ExplanationReport",
    "The JSON report of detap explain: of two protocols; of protocols that give a value; of two "
    "reports. Undefined metrics are null.",
    signature=field(Literal[""], "Empty: an explanation has no single protocol."),
    protocol=Empty,
    conclusion=field(str, "The conclusion in one sentence."),
    summary=Empty,
    selection=field(dict[str, Any], required=False),
    metrics=field(ExplainedMetrics, "Of two protocols or reports.", required=False),
    combinations=field(CombinationsData, required=False),
    fields=field(dict_of(Object("FieldPair", first=Any, second=Any)), required=False),
    steps=field(list_of(StepRow), "Of two protocols.", minItems=1, required=False),
    protocols=field(list_of(ProtocolRow), "Of a search.", required=False),
    search=field(SearchData, required=False),
    contributions=field(list_of(ContributionRow), "Of two reports.", required=False),
    causes=field(dict_of(CauseEntry), "Of two reports.", required=False),
    remarks=field(Object("RemarksData", messages=list[str]), required=False),
    attribution=field(AttributionData, "Of two reports.", required=False),
)

_METRIC = (*columns_of("text", "metric"), *columns_of("exact", "value"))
_DIGITS = columns_of("count", digits="matching digits")
_SHARE = columns_of("fraction", fraction="share of difference")


def _metrics_block(
    heading: str, names: Iterable[str], metrics: Sequence[Mapping[str, Any]], difference: float
) -> Block:
    """Return the metric of both sides, in rows with these names."""
    rows = tuple({**metric, "name": name} for name, metric in zip(names, metrics, strict=True))
    data = {"first": metrics[0], "second": metrics[1], "difference": difference}
    return Block("metrics", "", data, table=Table((name_column(heading), *_METRIC), rows))


# --- two protocols


def protocol_diff_report(diff: ProtocolDiff) -> Report:
    """Return the report of the difference between two protocols."""
    both = (diff.first, diff.second)
    metrics = [
        ExplainedMetric(
            item,
            signature=item.protocol.signature(__version__),
            protocol=item.protocol.as_dict(),
            metric=item.metric.name,
        )
        for item in both
    ]
    names = [item.protocol.text for item in both]
    return Report(
        kind="protocol_diff",
        table=steps_table(diff),
        blocks=(
            _metrics_block("protocol", names, metrics, diff.total),
            *protocol_diff_blocks(diff),
        ),
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
    fraction, cause = max(zip(diff.fractions, diff.descriptions, strict=True))
    return cause.removeprefix("that "), fraction


def percent(fraction: float) -> str:
    """Return a fraction in percent; never 100% unless it is 1."""
    if round(100 * fraction) == 100 and fraction != 1:
        return "nearly 100%"
    return f"{round(100 * fraction)}%".replace("-", "\N{MINUS SIGN}")


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
    shapley = columns_of("precise_change", shapley="Shapley") if diff.is_exhaustive else ()
    orders = columns_of("precise_change", "in_order", "reversed")
    columns = (name_column("field"), *_SHARE, *shapley, *orders)
    totals: dict[str, Cell] = {"name": "difference", "fraction": sum(diff.fractions)}
    totals |= dict.fromkeys(("shapley", "in_order", "reversed"), diff.total)
    return Table(columns, rows, totals)


def protocol_diff_blocks(diff: ProtocolDiff) -> list[Block]:
    """Return the fields that differ and their effects over all combinations."""
    scored = {"scored": diff.combinations, "all": diff.is_exhaustive}
    if diff.is_exhaustive:
        title = f"Effect per field over all {diff.combinations} combinations"
        effects = (name_column("field"), *columns_of("precise_change", "min", "max"))
        table = Table(effects, steps_table(diff).rows)
        combinations = Block("combinations", title, scored, table=table)
    else:
        line = (
            f"{len(diff.steps)} changed fields have {2 ** len(diff.steps)} combinations, too many "
            "to score: only the effects in order and reversed are given"
        )
        combinations = Block("combinations", "", scored, (line,))
    both = [item.protocol.only_metric(item.metric) for item in (diff.first, diff.second)]
    plain = [protocol.as_dict() for protocol in both]
    ends, data, rows = ("first", "second"), {}, []
    for name in (changed.name for step in diff.steps for changed in step.fields):
        texts = (_KINDS[name].format_short(getattr(protocol, name)) for protocol in both)
        rows.append({"name": display_name(name), **dict(zip(ends, texts, strict=True))})
        # Reports leave out some fields that have their defaults.
        values = (fields.get(name, getattr(Protocol, name)) for fields in plain)
        data[name] = dict(zip(ends, values, strict=True))
    columns = (name_column("field"), *columns_of("text", first="from", second="to"))
    table = Table(columns, tuple(rows))
    return [combinations, Block("fields", "Protocol fields that differ", data, table=table)]


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
    scored = dict(zip(ScoredCounts.fields, (*search.scored, 0, 0), strict=False))
    likeliest = f", the most likely of {search.pairs}" if search.pairs > search.max_pairs else ""
    words = ("presets", "with one changed field", f"with two{likeliest}")
    text = ", ".join(f"{n} {what}" for n, what in zip(search.scored, words, strict=False))
    lines = [f"Scored: {text}. Shown: {len(rows)} of {len(search.candidates)} values"]
    if search.skipped:
        groups = (f"{', '.join(names)} ({reason})" for reason, names in search.skipped.items())
        lines.append(f"Not searched: {'; '.join(groups)}")
    data = SearchData(
        metric=search.target.text,
        digits=search.target.digits,
        equal=len(search.equal),
        scored=scored,
        candidates=len(search.candidates),
        not_searched=[
            NotSearched(presets=names, reason=reason) for reason, names in search.skipped.items()
        ],
    )
    return Report(
        kind="protocol_search",
        table=Table((name_column("protocol"), *_METRIC, *_DIGITS), rows),
        blocks=(Block("search", "", data, tuple(lines)),),
        conclusion=_protocol_search_sentence(search),
    )


def _name_of(match: ProtocolMatch) -> str:
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
    if not equal:
        return (
            f"No searched preset, also with one or two changed fields, gives {target.text}; "
            f"nearest: {text}{given}"
        )
    others = list(dict.fromkeys(_name_of(match) for match in equal))[1:]
    if best.changes and len(others) > 1:
        also = f"; so do {len(others)} others"
    elif len(others) > 1:
        also = f"; so do {', '.join(others[:-1])} and {others[-1]}"
    else:
        also = f"; so does {others[0]}" if others else ""
    return f"{text}, equal in all {target.digits} digits{also}{given}"


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
    parts = [(", ".join(part.causes), part.value) for part in diff.contributions]
    *rows, totals = (
        ContributionRow(
            name=name, fraction=value / diff.total if diff.differs else nan, change=value
        )
        for name, value in [*parts, ("difference", diff.total)]
    )
    columns = (name_column("cause"), *_SHARE, *columns_of("precise_change", "change"))
    metrics = [
        {"metric": name, "value": value}
        for name, value in zip(diff.names, diff.values, strict=True)
    ]
    words = {True: "yes", False: "no", None: "unknown"}
    cause_rows = tuple({**each._asdict(), "differs": words[each.differs]} for each in diff.causes)
    cause_columns = (name_column("cause"), *columns_of("text", "differs", "first", "second"))
    causes = {cause.name.replace(" ", "_"): cause._asdict() for cause in diff.causes}
    blocks = [
        _metrics_block("report", ("first", "second"), metrics, diff.total),
        Block("causes", "Report contents", causes, table=Table(cause_columns, cause_rows)),
        *_remarks(diff),
    ]
    if diff.protocols is not None:
        steps = steps_table(diff.protocols)
        title = "Contributions of the protocol fields"
        data = {"steps": steps.rows, "difference": diff.protocols.total}
        blocks += [Block("attribution", title, data, table=steps)]
        blocks += protocol_diff_blocks(diff.protocols)
    return Report(
        kind="report_diff",
        table=Table(columns, tuple(rows), totals) if rows else Table((), ()),
        blocks=tuple(blocks),
        conclusion=report_diff_sentence(diff),
    )


def report_diff_sentence(diff: ReportDiff) -> str:
    """Return the main cause of the difference between two reports as a sentence."""
    name = diff.names[1]
    if not diff.contributions:
        values = " and ".join(exact(value) for value in diff.values)
        differing = f"{name} differs ({values}), but no recorded cause does"
        return differing if diff.differs else f"The reports are equal: {name} {values}"
    if not diff.is_known:
        known = " and ".join(_CLAUSES[cause.name] for cause in diff.causes if cause.differs)
        unknown = " and the ".join(cause.name for cause in diff.causes if cause.differs is None)
        parts = [known[:1].upper() + known[1:]] if known else []
        if unknown:
            parts.append(f"{'unknown' if known else 'Unknown'} whether the {unknown} differ")
        each = "each contribution" if len(diff.contributions) > 1 else "the contribution"
        return f"{', '.join(parts)}; {each} is unknown"
    if not diff.differs:
        causes = " and ".join(_clause(part) for part in diff.contributions)
        return f"{name} is equal in both reports despite {causes}"
    if diff.differing == ("protocol",):
        if diff.protocols is not None:
            return protocol_diff_sentence(diff.protocols)
        if len(diff.steps) == 1:
            cause = diff.protocol_change.removeprefix("that ")
            return f"Main cause: {cause} (100% of the difference)"
    fractions = [(part.value / diff.total, _clause(part)) for part in diff.contributions]
    (largest, main), *others = sorted(fractions, reverse=True)
    text = "".join(f", {clause} {percent(fraction)}" for fraction, clause in others if fraction)
    if diff.protocols is not None and diff.protocols.differs:
        cause, fraction = _main_cause(diff.protocols)
        text += f"; of the protocols: {cause} {percent(fraction)}"
    return f"Main cause: {main} ({percent(largest)} of the difference{text})"


def _clause(part: Contribution) -> str:
    return " and ".join(_CLAUSES[cause] for cause in part.causes)


def _remarks(diff: ReportDiff) -> list[Block]:
    lines = list(diff.remarks)
    several = len(diff.steps) > 1 or (diff.steps and not diff.is_known)
    if several and diff.protocols is None and not lines:
        lines.append(
            "Pass the inputs of one report with --gt and --dt to compute the contribution of each "
            "protocol field"
        )
    return [Block("remarks", "", {"messages": lines}, lines=tuple(lines))] if lines else []
