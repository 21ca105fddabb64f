"""Schemas derived from the types of a report, with limits and descriptions."""

from typing import Any, Literal

import jsonschema
import pytest

from detap.report.fields import Count, Object, dict_of, field, list_of
from detap.report.sections.schema import schema_of

Part = Object("Part", "A part.", count=Count, kind=field(Literal["low", "high"], required=False))
Whole = Object(
    "Whole",
    "A whole. It has parts.",
    others=float | None,
    version=Literal[2],
    name=field(str | None, "Its name.", pattern="^[a-z]+$"),
    parts=field(list_of(Part), minItems=1),
    worst=field(Part, null=True),
    values=dict_of(field(float, exclusiveMinimum=0, maximum=1)),
    other=Any,
)
PART = {
    "type": "object",
    "description": "A part.",
    "required": ["count"],
    "properties": {
        "count": {"type": "integer", "minimum": 0},
        "kind": {"enum": ["low", "high"]},
    },
    "additionalProperties": False,
}
WHOLE = {
    "type": "object",
    "description": "A whole. It has parts.",
    "required": ["version", "name", "parts", "worst", "values", "other"],
    "properties": {
        "version": {"const": 2},
        "name": {"type": ["string", "null"], "pattern": "^[a-z]+$", "description": "Its name."},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}, "minItems": 1},
        "worst": {"anyOf": [{"$ref": "#/$defs/Part"}, {"type": "null"}]},
        "values": {
            "type": "object",
            "additionalProperties": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        },
        "other": {},
    },
    "additionalProperties": {"type": ["number", "null"]},
}
VALID = {
    "version": 2,
    "name": None,
    "parts": [{"count": 0}],
    "worst": None,
    "values": {"a": 1},
    "other": [],
}


def test_types_become_schemas() -> None:
    definitions: dict[str, Any] = {}
    assert schema_of(Whole, definitions) == {"$ref": "#/$defs/Whole"}
    assert definitions == {"Part": PART, "Whole": WHOLE}


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": 1},
        {"name": "A"},
        {"name": 1},
        {"parts": []},
        {"parts": [{"count": -1}]},
        {"parts": [{"count": 1, "kind": "middle"}]},
        {"worst": {"count": 1, "size": 1}},
        {"values": {"a": 0}},
        {"values": {"a": 1.5}},
        {"more": "text"},
    ],
    ids=str,
)
def test_the_schema_rejects_what_the_types_reject(wrong: dict[str, Any]) -> None:
    definitions: dict[str, Any] = {}
    whole = schema_of(Whole, definitions) | {"$defs": definitions}
    validator = jsonschema.Draft202012Validator(whole)
    validator.validate(VALID)
    assert not validator.is_valid(VALID | wrong)
