"""The JSON schema of detap.toml, with which an editor completes and checks it."""

from collections.abc import Mapping
from typing import Any

import click

from detap.cli.settings import TARGETS, ConfiguredCommand, options_of, setting_name, setting_of
from detap.report.schemas import address

_SCALAR: dict[str, Any] = {"type": ["string", "number"]}


def settings_schema(commands: Mapping[str, ConfiguredCommand]) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a settings file.

    Parameters
    ----------
    commands : mapping of str to ConfiguredCommand
        By the table that their settings stand in; that of the one that is empty is the file.
    """
    tables = {section: _table(command) for section, command in commands.items()}
    whole = tables.pop("")
    whole["properties"] |= tables
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": address("settings"),
        "title": "detap.toml",
        "description": "Settings of detap: each has the name of the option it stands for.",
        **whole,
    }


def _table(command: ConfiguredCommand) -> dict[str, Any]:
    """Return the schema of a table: its settings, and targets that hold the same."""
    settings = {
        setting_name(parameter): _value(parameter) for parameter in options_of(command.known)
    }
    target = {"type": "object", "properties": settings, "additionalProperties": False}
    targets = {"type": "object", "additionalProperties": target}
    return {**target, "properties": {**settings, TARGETS: targets}}


def _value(parameter: click.Option) -> dict[str, Any]:
    """Return the schema of what a setting may be, as settings.py takes it."""
    found = {"description": parameter.help}
    setting = setting_of(parameter)
    if setting.flag:
        return {**found, "type": "boolean"}
    if isinstance(parameter.type, click.Choice) and setting.bare is None:
        choice: dict[str, Any] = {"enum": list(parameter.type.choices)}
        forms = [choice, {"type": "array", "items": choice}] if setting.many else [choice]
    else:
        forms = [_SCALAR, {"type": "array", "items": _SCALAR}]
    if setting.bare is not None:
        forms.append({"type": "boolean"})
    if setting.holds == "limit":
        forms.append({"type": "object", "additionalProperties": _SCALAR})
    return {**found, **(forms[0] if len(forms) == 1 else {"anyOf": forms})}
