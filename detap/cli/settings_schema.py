"""The JSON schema of detap.toml, for completion and checks in editors."""

from collections.abc import Mapping
from typing import Any

import click

from detap.cli.options import Option
from detap.cli.settings import TARGETS, ConfiguredCommand, by_name, options_of, value_of_true
from detap.report.schemas import address

_SCALAR: dict[str, Any] = {"type": ["string", "number"]}


def settings_schema(commands: Mapping[str, ConfiguredCommand]) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a settings file."""
    tables = {section: _table(command) for section, command in commands.items()}
    file_schema = tables.pop("")
    file_schema["properties"] |= tables
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": address("settings"),
        "title": "detap.toml",
        "description": "Settings of detap, by option name.",
        **file_schema,
    }


def _table(command: ConfiguredCommand) -> dict[str, Any]:
    """Return the schema of a table: its settings, and targets with the same ones."""
    options = by_name(options_of(command.settings_command))
    settings = {name: _value(option) for name, option in options.items()}
    target = {"type": "object", "properties": settings, "additionalProperties": False}
    targets = {"type": "object", "additionalProperties": target}
    return {**target, "properties": {**settings, TARGETS: targets}}


def _value(option: Option) -> dict[str, Any]:
    """Return the schema of a setting."""
    base = {"description": option.help}
    if option.is_flag:
        return {**base, "type": "boolean"}
    bare = value_of_true(option)
    if isinstance(option.type, click.Choice) and bare is None:
        choice: dict[str, Any] = {"enum": list(option.type.choices)}
        schemas = [choice, {"type": "array", "items": choice}] if option.multiple else [choice]
    else:
        schemas = [_SCALAR, {"type": "array", "items": _SCALAR}]
    if bare is not None:
        schemas.append({"type": "boolean"})
    if option.value_kind == "limit":
        schemas.append({"type": "object", "additionalProperties": _SCALAR})
    return {**base, **(schemas[0] if len(schemas) == 1 else {"anyOf": schemas})}
