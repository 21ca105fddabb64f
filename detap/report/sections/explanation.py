"""Why a number is what it is: a sentence, then the numbers that it rests on."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Annotated, Any, Literal, TypedDict

from detap._version import __version__
from detap.analysis.explanation.protocol_diff import Difference
from detap.analysis.explanation.protocol_search import ProtocolMatch, ProtocolSearch
from detap.analysis.explanation.report_diff import Contribution, ReportDiff
from detap.decimals import nearly_equal
from detap.protocols import Protocol
from detap.protocols.fields import display_name, protocol_fields
from detap.report.fields import Count, extra_items
from detap.report.model import Block, Cell, Column, Report, Table
from detap.report.numbers import exact


@extra_items(Any)
class ExplainedInput(TypedDict):
    """A file that was read."""

    role: Literal["ground_truth", "detections"]
    path: str
    sha256: str | None


class StepRow(TypedDict):
    """What a step, axes that only make sense together, has in the difference.

    Its share of it, Shapley's value, and what it changes in the walk, in the walk in reverse, at
    least and at most over all contexts. Null where only the walks were scored.
    """

    name: str
    axes: Annotated[str, "Separated by commas."]
    share: float | None
    shapley: float | None
    in_order: float
    in_reverse: float
    least: float | None
    most: float | None


class ProtocolNumber(TypedDict):
    """A number under a protocol."""

    signature: str
    protocol: dict[str, Any]
    number: str
    value: float


class DifferenceNumbers(TypedDict):
    """The number under both protocols."""

    first: ProtocolNumber
    second: ProtocolNumber
    difference: float


class ContextsData(TypedDict):
    """In how many contexts the number was scored."""

    scored: Count
    all: Annotated[bool, "Whether in all contexts, or only in those of the walks."]


class AxisPair(TypedDict):
    """What an axis is in either protocol."""

    first: Any
    second: Any


class OriginRow(TypedDict):
    """A protocol that gives the number."""

    name: str
    number: str
    value: float
    digits: Annotated[Count, "To how many of the digits given it is equal."]
    changes: Annotated[Count, "How many axes of a preset are changed."]
    signature: str


class ScoredCounts(TypedDict):
    """How many protocols were scored, by how they depart from a preset."""

    presets: Count
    one_axis: Count
    two_axes: Count


class NotSearched(TypedDict):
    """Presets that were left out, and why."""

    presets: list[str]
    reason: str


class SearchData(TypedDict):
    """What was searched."""

    number: str
    digits: Count
    equal: Count
    scored: ScoredCounts
    candidates: Count
    not_searched: Annotated[list[NotSearched], "Presets that were left out, by reason."]


class PortionRow(TypedDict):
    """What some causes have in the difference; null where that is not known."""

    name: str
    share: float | None
    portion: float | None


class ReportNumber(TypedDict):
    """A number of a report."""

    number: str
    value: float | None


class AccountNumbers(TypedDict):
    """The number in both reports."""

    first: ReportNumber
    second: ReportNumber
    difference: float | None


class CauseEntry(TypedDict):
    """What may differ between the reports."""

    name: str
    differs: Annotated[bool | None, "Null where the reports do not tell."]
    first: str
    second: str


class RemarksData(TypedDict):
    """What is to be said besides."""

    said: list[str]


class AttributionData(TypedDict):
    """What each step has in the difference."""

    steps: list[StepRow]
    difference: float


_KINDS = {entry.name: entry.kind for entry in protocol_fields(Protocol)}


# --- two protocols


def difference_report(found: Difference) -> Report:
    """Return the report of two protocols' difference."""
    return Report(
        kind="difference",
        table=steps_table(found),
        blocks=(_ends(found), *difference_blocks(found)),
        answer=difference_sentence(found),
    )


def difference_sentence(found: Difference) -> str:
    """Return what has the largest part in a difference."""
    if not found.differs:
        ends = " and ".join(end.protocol.text for end in (found.first, found.second))
        cancel = any(not nearly_equal(change, 0.0) for part in found.parts for change in part[:2])
        told = ": what their axes change adds up to nothing" if cancel else ""
        return f"{ends} give the same {found.second.measure.name} here{told}"
    return _largest(found, "the difference")


def _largest(found: Difference, whole: str) -> str:
    share, told = max(zip(found.shares, found.told, strict=True))
    back = f"; others take {percent(share - 1)} back" if share > 1.005 else ""
    return f"{percent(share)} of {whole} is {told}{back}"


def percent(share: float) -> str:
    """Return a share in percent, in words where it is, or is nearly, all."""
    if share == 1:
        return "All"
    return "Nearly all" if round(100 * share) == 100 else f"{round(100 * share)} %"


_IN_ALL = ("shapley", "least", "most")
_STEPS = (
    Column("name", "axis", "axis", "name"),
    Column("share", "part", "part", "share"),
    Column("shapley", "Shapley", "Shapley", "fine"),
    Column("in_order", "in order", "in order", "fine"),
    Column("in_reverse", "in reverse", "in reverse", "fine"),
)
_RANGE = (
    _STEPS[0],
    Column("least", "least", "least", "fine"),
    Column("most", "most", "most", "fine"),
)


def steps_table(found: Difference) -> Table:
    """Return what each step has in a difference, and their sum."""
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "name": step.name,
            "axes": ",".join(axis.name for axis in step.axes),
            "share": share,
            "shapley": part.shapley,
            "in_order": part.forward,
            "in_reverse": part.backward,
            "least": part.least,
            "most": part.most,
        }
        for step, part, share in zip(found.steps, found.parts, found.shares, strict=True)
    )
    known = [c for c in _STEPS if found.in_all_contexts or c.key not in _IN_ALL]
    totals: dict[str, Cell] = {"name": "difference", "share": sum(found.shares)}
    totals |= dict.fromkeys(("shapley", "in_order", "in_reverse"), found.total)
    return Table(tuple(known), rows, totals)


def _ends(found: Difference) -> Block:
    ends = {"first": found.first, "second": found.second}
    rows: list[dict[str, Cell]] = [
        {"name": end.protocol.text, "number": end.measure.name, "value": end.value}
        for end in ends.values()
    ]
    data: dict[str, Any] = {
        key: {
            "signature": end.protocol.signature(__version__),
            "protocol": end.protocol.as_dict(),
            "number": end.measure.name,
            "value": end.value,
        }
        for key, end in ends.items()
    }
    table = Table(_ENDS, tuple(rows))
    return Block("numbers", "", {**data, "difference": found.total}, table=table)


_ENDS = (
    Column("name", "protocol", "protocol", "name"),
    Column("number", "number", "number", "text"),
    Column("value", "value", "value", "exact"),
)


def difference_blocks(found: Difference) -> list[Block]:
    """Return the axes in which two protocols differ, and how far each depends on the others."""
    table = steps_table(found)
    data = {"scored": found.contexts, "all": found.in_all_contexts}
    if found.in_all_contexts:
        title = f"What each changes, over all {found.contexts} contexts"
        contexts = Block("contexts", title, data, table=Table(_RANGE, table.rows))
    else:
        line = (
            f"{len(found.steps)} steps have {2 ** len(found.steps)} contexts, which would take too "
            "long: only the walk from one protocol to the other is told, either way"
        )
        contexts = Block("contexts", "", data, lines=(line,))
    return [contexts, _axes(found)]


def _axes(found: Difference) -> Block:
    first, second = (end.protocol.only_metric(end.measure) for end in (found.first, found.second))
    plain = [protocol.as_dict() for protocol in (first, second)]
    names = [axis.name for step in found.steps for axis in step.axes]
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "name": display_name(name),
            "first": _KINDS[name].format_short(getattr(first, name)),
            "second": _KINDS[name].format_short(getattr(second, name)),
        }
        for name in names
    )
    columns = (
        Column("name", "axis", "axis", "name"),
        Column("first", "from", "from", "text"),
        Column("second", "to", "to", "text"),
    )
    data = {name: {"first": plain[0][name], "second": plain[1][name]} for name in names}
    return Block("axes", "In what they differ", data, table=Table(columns, rows))


# --- a number


def origin_report(found: ProtocolSearch, *, most: int = 10) -> Report:
    """Return the report of the protocols that give a number, or come near."""
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "name": _called(entry),
            "number": entry.name,
            "value": entry.value,
            "digits": entry.digits,
            "changes": len(entry.changes),
            "signature": entry.protocol.signature(__version__),
        }
        for entry in found.candidates[:most]
    )
    return Report(
        kind="origin",
        table=Table(_PROTOCOLS, rows),
        blocks=(_search(found, most),),
        answer=_origin_sentence(found),
    )


_PROTOCOLS = (
    *_ENDS,
    Column("digits", "digits equal", "digits", "count"),
)


def _called(entry: ProtocolMatch) -> str:
    """Return a preset, and what is changed in it."""
    return ", ".join([entry.protocol.name, *_values(entry.changes)])


def _values(changes: Mapping[str, Any]) -> list[str]:
    return [
        f"{display_name(name)} {_KINDS[name].format_short(value)}"
        for name, value in changes.items()
    ]


def _origin_sentence(found: ProtocolSearch) -> str:
    wanted, equal = found.wanted, found.equal
    given = f" (all with {', '.join(_values(found.changes))})" if found.changes else ""
    if not found.candidates:
        return f"No preset has a number here that {wanted.text} could be{given}"
    best = found.candidates[0]
    told = f"{_called(best)} gives {best.name} {best.value!r}"
    if equal:
        return f"{told}, equal to the {wanted.digits} digits given{_others(equal)}{given}"
    return (
        f"No preset searched, and nothing tried with one axis or two changed, gives "
        f"{wanted.text}; nearest: {told}{given}"
    )


def _others(equal: Sequence[ProtocolMatch]) -> str:
    """Return a clause that names the other presets that give a number, or counts protocols."""
    names = list(dict.fromkeys(_called(entry) for entry in equal))[1:]
    if not names:
        return ""
    if equal[0].changes and names[1:]:
        return f"; so do {len(names)} others"
    *most, last = names
    return f"; so do {', '.join(most)} and {last}" if most else f"; so does {last}"


def _search(found: ProtocolSearch, most: int) -> Block:
    none, one, two = (*found.scored, 0, 0)[:3]
    lines = [f"{none} presets"]
    if len(found.scored) > 1:
        lines.append(f"{one} with an axis changed")
    if len(found.scored) > 2:
        likeliest = f", the likeliest of {found.pairs}" if found.pairs > found.most_pairs else ""
        lines.append(f"{two} with two{likeliest}")
    shown = min(most, len(found.candidates))
    told = f"Scored: {', '.join(lines)}. Shown: {shown} of {len(found.candidates)} numbers"
    data: Mapping[str, Any] = {
        "number": found.wanted.text,
        "digits": found.wanted.digits,
        "equal": len(found.equal),
        "scored": {"presets": none, "one_axis": one, "two_axes": two},
        "candidates": len(found.candidates),
        "not_searched": [
            {"presets": list(group.presets), "reason": group.reason} for group in found.skipped
        ],
    }
    groups = [f"{', '.join(group.presets)} ({group.reason})" for group in found.skipped]
    skipped = [f"Not searched: {'; '.join(groups)}"] if groups else []
    return Block("search", "", data, lines=(told, *skipped))


# --- two reports

_CLAUSES = {
    "ground truth": "the ground truth is another",
    "selection": "other classes or images were chosen",
    "reading": "files were read with other options",
    "detections": "the detections are others",
    "protocol": "the protocol is another",
    "version": "detap is of another version",
}


def account_report(found: ReportDiff) -> Report:
    """Return the report of why two reports differ."""
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "name": ", ".join(portion.causes),
            "share": portion.value / found.total if found.differs else nan,
            "portion": portion.value,
        }
        for portion in found.portions
    )
    totals: dict[str, Cell] = {
        "name": "difference",
        "portion": found.total,
        "share": 1.0 if found.differs else nan,
    }
    table = Table(_PORTIONS, rows, totals)
    blocks = [_numbers(found), _causes(found), *_remarks(found)]
    if found.protocols is not None:
        steps = steps_table(found.protocols)
        title = "What the axes have in the protocol's part"
        data = {"steps": steps.rows, "difference": found.protocols.total}
        blocks += [Block("attribution", title, data, table=steps)]
        blocks += difference_blocks(found.protocols)
    return Report(
        kind="account",
        table=table if rows else Table((), ()),
        blocks=tuple(blocks),
        answer=account_sentence(found),
    )


_PORTIONS = (
    Column("name", "what differs", "differs", "name"),
    Column("share", "part", "part", "share"),
    Column("portion", "change", "change", "fine"),
)


def account_sentence(found: ReportDiff) -> str:
    """Return why two reports differ, as far as it is known."""
    if not found.portions:
        return _nothing_differs(found)
    if not found.is_known:
        return _unknown(found)
    if not found.differs:
        told = " and ".join(_clause(portion) for portion in found.portions)
        return f"{found.names[1]} is the same in both, although {told}"
    return _protocols_alone(found) or _shared_out(found)


def _nothing_differs(found: ReportDiff) -> str:
    name, values = found.names[1], " and ".join(exact(value) for value in found.values)
    if not found.differs:
        return f"The two reports say the same: {name} {values}"
    return f"Nothing that the reports tell differs, but {name} does: {values}"


def _protocols_alone(found: ReportDiff) -> str:
    """Return what the protocols' axes have where nothing else differs and that is known."""
    if found.differing != ("protocol",):
        return ""
    if found.protocols is not None:
        return difference_sentence(found.protocols)
    return f"All of the difference is {found.told}" if len(found.steps) == 1 else ""


def _shared_out(found: ReportDiff) -> str:
    shares = [(portion.value / found.total, _clause(portion)) for portion in found.portions]
    (share, most), *others = sorted(shares, reverse=True)
    told = "".join(f", {percent(part)} that {clause}" for part, clause in others if part)
    if found.protocols is not None and found.protocols.differs:
        largest = _largest(found.protocols, "the protocol's part")
        told += f"; {largest[0].lower()}{largest[1:]}"
    return f"{percent(share)} of the difference is that {most}{told}"


def _clause(portion: Contribution) -> str:
    return " and ".join(_CLAUSES[cause] for cause in portion.causes)


def _unknown(found: ReportDiff) -> str:
    """Say that what each cause has is not known."""
    told = [" and ".join(_CLAUSES[cause.name] for cause in found.causes if cause.differs)]
    untold = [cause.name for cause in found.causes if cause.differs is None]
    if untold:
        told.append(f"whether the {' and the '.join(untold)} differ the reports do not tell")
    sentence = ", and ".join(filter(None, told))
    what = "each has" if len(found.portions) > 1 else "that has"
    return f"{sentence[0].upper()}{sentence[1:]}: what part {what} is not known"


def _numbers(found: ReportDiff) -> Block:
    rows: list[dict[str, Cell]] = [
        {"name": ordinal, "number": name, "value": value}
        for ordinal, name, value in zip(("first", "second"), found.names, found.values, strict=True)
    ]
    data = {str(row["name"]): {"number": row["number"], "value": row["value"]} for row in rows}
    columns = (Column("name", "report", "report", "name"), *_ENDS[1:])
    table = Table(columns, tuple(rows))
    return Block("numbers", "", {**data, "difference": found.total}, table=table)


def _causes(found: ReportDiff) -> Block:
    words = {True: "yes", False: "no", None: "unknown"}
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "name": cause.name,
            "differs": words[cause.differs],
            "first": cause.first,
            "second": cause.second,
        }
        for cause in found.causes
    )
    columns = (
        Column("name", "what", "what", "name"),
        Column("differs", "differs", "differs", "text"),
        Column("first", "first", "first", "text"),
        Column("second", "second", "second", "text"),
    )
    data = {cause.name.replace(" ", "_"): cause._asdict() for cause in found.causes}
    return Block("causes", "What the reports tell", data, table=Table(columns, rows))


def _remarks(found: ReportDiff) -> list[Block]:
    lines = list(found.remarks)
    several = len(found.steps) > 1 or (found.steps and not found.is_known)
    if several and found.protocols is None and not lines:
        lines.append(
            "Give what one of them was made from with --gt and --dt, and what the protocol and "
            "each of its axes has is worked out"
        )
    return [Block("remarks", "", {"said": lines}, lines=tuple(lines))] if lines else []
