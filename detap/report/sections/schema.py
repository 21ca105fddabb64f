"""JSON schemas of reports, derived from the types that the sections declare."""

from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

from detap.protocols import Protocol
from detap.protocols.fields import ProtocolBase, protocol_fields
from detap.report.fields import (
    ClassRow,
    Field,
    Input,
    MetricValue,
    NoteEntry,
    Object,
    Version,
    dict_of,
    field,
    list_of,
    report_of,
)
from detap.report.schemas import address
from detap.report.sections import (
    SECTIONS,
    agreement,
    comparison,
    data_checks,
    data_sets,
    explanation,
    history,
    image,
    ranking,
)
from detap.report.sections.crosscheck import CrossCheckData
from detap.report.sections.detection import DetailsData
from detap.report.sections.gates import GatesData, RegressionsData
from detap.report.sections.intervals import IntervalsData
from detap.report.sections.power import PowerData
from detap.report.sections.selection import SelectionData
from detap.report.sections.slices import SliceEntry
from detap.report.sections.tie_range import TieRangeEntry
from detap.report.sections.unscored import UnscoredData

_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}

ReproducesData = Object(
    "ReproducesData",
    "The implementation that the preset reproduces, the largest difference of a metric, and its "
    "cause. Absent if metrics are equal, if that could not be tested, and of changed presets.",
    source=str,
    tolerance=field(float, exclusiveMinimum=0),
    residue=str,
)

DetectionReport = report_of(
    Literal["detection"],
    "DetectionReport",
    "The JSON report of detap eval. Undefined metrics are null. New keys do not change "
    "schema_version; removed or changed keys do.",
    version=Version,
    signature=field(
        str,
        "The preset, each changed field, the selection of classes and images, and detap's "
        "version. Metrics are comparable only if signatures are equal.",
        pattern="^protocol:",
    ),
    protocol=Protocol,
    inputs=field(list_of(Input), "The input files; empty for tables made from arrays."),
    summary=field(dict_of(MetricValue), "Means over classes, primary first.", minProperties=1),
    classes=field(
        list_of(ClassRow), "In the order of the ground truth (or of --sort), those without it last."
    ),
    notes=field(list_of(NoteEntry), "Notes of the run; codes are stable."),
    tie_range=field(dict_of(TieRangeEntry), "Of the summary metrics.", required=False),
    cross_check=field(CrossCheckData, required=False),
    intervals=field(IntervalsData, required=False),
    gates=field(GatesData, required=False),
    regressions=field(RegressionsData, required=False),
    power=field(PowerData, required=False),
    slices=field(dict_of(SliceEntry), "Subsets of the images, by tag.", required=False),
    selection=field(SelectionData, required=False),
    retained_metrics=field(list[str], "Of a baseline, from older ones.", required=False),
    reproduces=field(ReproducesData, required=False),
    metric_details=field(dict_of(DetailsData), "Of metrics of --metrics.", required=False),
    unscored=field(UnscoredData, required=False),
)


DOCUMENTS = {
    "report": DetectionReport,
    "comparison": comparison.ComparisonReport,
    "agreement": agreement.AgreementReport,
    "check": data_checks.CheckReport,
    "ranking": ranking.RankingReport,
    "image": image.ImageReport,
    "explanation": explanation.ExplanationReport,
    "history": history.HistoryReport,
    "data_sets": data_sets.DataSetsReport,
    "detectors": comparison.DetectorsReport,
}


def schema_of_report(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a kind of report."""
    definitions: dict[str, Any] = {}
    schema = _object(DOCUMENTS[name], definitions)
    if name == "report":
        for section in SECTIONS:
            schema["properties"][section.name] = schema_of(section.load().DATA, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": address(name),
        "title": f"detap {name.replace('_', ' ')}",
        **schema,
        "$defs": dict(sorted(definitions.items())),
    }


def schema_of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type; objects go to the definitions."""
    if kind is Any:
        return {}
    if isinstance(kind, Field):
        schema = schema_of(kind.kind, definitions)
        if kind.null:
            schema = {"anyOf": [schema, {"type": "null"}]}
        if kind.description:
            schema["description"] = kind.description
        return {**schema, **(kind.limits() if callable(kind.limits) else kind.limits)}
    if isinstance(kind, Object):
        if kind.name not in definitions:
            definitions[kind.name] = _object(kind, definitions)
        return {"$ref": f"#/$defs/{kind.name}"}
    if isinstance(kind, type) and issubclass(kind, ProtocolBase):
        fields = protocol_fields(kind)
        return {
            "type": "object",
            "description": "The fields of the protocol; see the protocols page of the docs.",
            "required": ["name", *(field.name for field in fields if field.always_reported)],
            "properties": {
                "name": {"type": "string"},
                **{field.name: field.kind.schema() for field in fields},
            },
        }
    return _composed(kind, definitions)


def _composed(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(args)} if len(args) > 1 else {"const": args[0]}
    if origin is UnionType:
        schemas = [schema_of(arg, definitions) for arg in args]
        return reduce(or_, schemas[::-1]) | {"type": [schema["type"] for schema in schemas]}
    if origin in (list, dict):
        items = schema_of(args[-1], definitions)
        name, key = ("array", "items") if origin is list else ("object", "additionalProperties")
        return {"type": name, key: items} if items else {"type": name}
    if kind not in _NAMES:
        raise TypeError(f"no JSON schema of {kind!r}")
    return {"type": _NAMES[kind]}


def _object(kind: Object, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object, closed unless the type of other values is given."""
    schema: dict[str, Any] = {"type": "object"}
    if kind.description:
        schema["description"] = kind.description
    schema["required"] = [name for name in kind.fields if kind.is_required(name)]
    schema["properties"] = {
        name: schema_of(field, definitions) for name, field in kind.fields.items()
    }
    if kind.others is not Any:
        others = False if kind.others is None else schema_of(kind.others, definitions)
        schema["additionalProperties"] = others
    return schema
