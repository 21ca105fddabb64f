"""JSON schemas of reports, derived from the types that the sections declare."""

from collections.abc import Mapping
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from detap.protocols import Protocol
from detap.protocols.fields import ProtocolBase, protocol_fields
from detap.report.fields import (
    EXTRA_ITEMS,
    ClassRow,
    Input,
    Limits,
    MetricValue,
    NoteEntry,
    extra_items,
)
from detap.report.schemas import address
from detap.report.sections import (
    SECTIONS,
    comparison,
    data_checks,
    data_sets,
    explanation,
    history,
    image,
    ranking,
)
from detap.report.sections.crosscheck import CrossCheckData
from detap.report.sections.gates import GatesData
from detap.report.sections.intervals import IntervalsData
from detap.report.sections.metric_details import DetailsData
from detap.report.sections.power import PowerData
from detap.report.sections.regressions import RegressionsData
from detap.report.sections.selection import SelectionData
from detap.report.sections.slices import SliceEntry
from detap.report.sections.tie_range import TieRangeEntry

_NAMES: dict[object, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    NoneType: "null",
}

_HOLDERS: dict[object, tuple[str, str]] = {
    list: ("array", "items"),
    dict: ("object", "additionalProperties"),
}


class ReproducesData(TypedDict):
    """The implementation that the preset reproduces, and the tolerance.

    Absent if the metrics are equal, if that could not be tested, and if the protocol departs from
    its preset.
    """

    source: str
    tolerance: Annotated[float, "The largest possible difference of a metric.", Limits(above=0)]
    residue: Annotated[str, "The cause of the difference."]


@extra_items(Any)
class DetectionReport(TypedDict):
    """The JSON report of detap eval.

    Undefined metrics are null. New keys do not change schema_version; removed or changed keys do.
    """

    # The schema also has the sections of `sections.SECTIONS`.
    schema_version: Literal[2]
    detap_version: Annotated[str, Limits(pattern=r"^[0-9]+\.[0-9]+")]
    kind: Literal["detection"]
    signature: Annotated[
        str,
        "The preset, each changed field, the selection of classes and images, and detap's "
        "version. Metrics are comparable only if signatures are equal.",
        Limits(pattern=r"^protocol:"),
    ]
    protocol: Protocol
    inputs: Annotated[list[Input], "The input files; empty for tables made from arrays."]
    summary: Annotated[
        dict[str, MetricValue],
        "The summary metrics, primary metric first: means over classes.",
        Limits(min_length=1),
    ]
    classes: Annotated[
        list[ClassRow],
        "One entry per class, in the order of the ground truth (or of "
        "--sort); classes that occur only in the detections come last.",
    ]
    notes: Annotated[list[NoteEntry], "Notes of the run; codes are stable."]
    tie_range: NotRequired[
        Annotated[
            dict[str, TieRangeEntry],
            "Bounds of the summary metrics over all orders of tied scores.",
        ]
    ]
    cross_check: NotRequired[CrossCheckData]
    intervals: NotRequired[IntervalsData]
    gates: NotRequired[GatesData]
    regressions: NotRequired[RegressionsData]
    power: NotRequired[PowerData]
    slices: NotRequired[
        Annotated[dict[str, SliceEntry], "The same metrics for subsets of the images, by tag."]
    ]
    selection: NotRequired[SelectionData]
    retained_metrics: NotRequired[
        Annotated[
            list[str],
            "Of a baseline: metrics that detap baseline update retained from older reports, "
            "because the newer values were worse.",
        ]
    ]
    reproduces: NotRequired[ReproducesData]
    metric_details: NotRequired[
        Annotated[
            dict[str, DetailsData],
            "The points of the curve, or the score threshold, behind metrics of --metrics.",
        ]
    ]


class _Document(NamedTuple):
    """A kind of report: its title, its type, and the parts of each `kind`."""

    title: str
    declared: object
    by_kind: Mapping[str, object] = MappingProxyType({})


DOCUMENTS = {
    "report": _Document("detap report", DetectionReport),
    "comparison": _Document("detap comparison", comparison.ComparisonReport),
    "check": _Document("detap check report", data_checks.CheckReport),
    "ranking": _Document(
        "detap report of a ranking",
        ranking.RankingReport,
        {"retrieval": ranking.RetrievalParts, "classification": ranking.ClassificationParts},
    ),
    "image": _Document("detap image", image.ImageReport),
    "explanation": _Document(
        "detap explanation",
        explanation.ExplanationReport,
        {
            "protocol_diff": explanation.ProtocolDiffParts,
            "protocol_search": explanation.ProtocolSearchParts,
            "report_diff": explanation.ReportDiffParts,
        },
    ),
    "history": _Document("detap history", history.HistoryReport),
    "data_sets": _Document("detap report of data sets", data_sets.DataSetsReport),
}
"""The reports that have a schema, by name."""


def schema_of_report(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a kind of report."""
    document, definitions = DOCUMENTS[name], dict[str, Any]()
    schema = _object(document.declared, definitions)
    if document.declared is DetectionReport:
        for section in SECTIONS:
            schema["properties"][section.name] = schema_of(section.load().DATA, definitions)
    if document.by_kind:
        schema["allOf"] = [
            {"if": {"properties": {"kind": {"const": kind}}}, "then": schema_of(parts, definitions)}
            for kind, parts in document.by_kind.items()
        ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": address(name),
        "title": document.title,
        **schema,
        "$defs": dict(sorted(definitions.items())),
    }


def protocol_schema(protocol: type[ProtocolBase]) -> dict[str, Any]:
    """Return the JSON schema of a protocol's fields."""
    fields: dict[str, Any] = {"name": {"type": "string"}}
    fields |= {field.name: field.kind.schema() for field in protocol_fields(protocol)}
    return {
        "type": "object",
        "description": "The fields of the protocol; see the protocols page of the docs.",
        "required": list(fields),
        "properties": fields,
    }


def schema_of(declared: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type; objects of declared fields go to the definitions."""
    if declared is Any:
        return {}
    if declared in _NAMES:
        return {"type": _NAMES[declared]}
    if isinstance(declared, type) and issubclass(declared, ProtocolBase):
        return protocol_schema(declared)
    if not is_typeddict(declared):
        return _composed(declared, definitions)
    name = declared.__name__
    if name not in definitions:
        definitions[name] = _object(declared, definitions)
    return {"$ref": f"#/$defs/{name}"}


def _composed(declared: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a composed type."""
    origin, args = get_origin(declared), get_args(declared)
    if origin is Literal:
        return {"enum": list(args)} if len(args) > 1 else {"const": args[0]}
    if origin is Annotated:
        return _annotated(schema_of(args[0], definitions), args[1:])
    if origin in (Union, UnionType):
        return _union([schema_of(one, definitions) for one in args])
    if origin not in _HOLDERS:
        raise TypeError(f"no JSON schema of {declared!r}")
    kind, key = _HOLDERS[origin]
    entries = schema_of(args[-1], definitions)
    return {"type": kind, key: entries} if entries else {"type": kind}


def _object(declared: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a TypedDict: closed, unless it has `extra_items`."""
    hints = get_type_hints(declared, include_extras=True)
    required = [name for name in hints if name in declared.__required_keys__]
    extra = EXTRA_ITEMS.get(declared)
    schema: dict[str, Any] = {"type": "object"}
    if declared.__doc__:
        schema["description"] = " ".join(declared.__doc__.split())
    schema |= {
        "required": required,
        "properties": {name: schema_of(_bare(hint), definitions) for name, hint in hints.items()},
    }
    if extra is not Any:
        schema["additionalProperties"] = False if extra is None else schema_of(extra, definitions)
    return schema


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is NotRequired else hint


def _union(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of a union: several types if each part has one."""
    if any("type" not in part for part in parts):
        return {"anyOf": parts}
    merged: dict[str, Any] = {"type": [part["type"] for part in parts]}
    for part in parts:
        merged = part | merged
    return merged


def _annotated(schema: dict[str, Any], metadata: tuple[object, ...]) -> dict[str, Any]:
    """Add the last description and the limits of a type to its schema."""
    for item in metadata:
        if isinstance(item, str):
            schema["description"] = item
            continue
        limits = item() if callable(item) else item
        if isinstance(limits, Limits):
            of = "Items" if "array" in schema["type"] else "Properties"
            keys = ("minimum", "maximum", "exclusiveMinimum", "pattern", f"min{of}", f"max{of}")
            schema |= {
                key: limit for key, limit in zip(keys, limits, strict=True) if limit is not None
            }
    return schema
