"""``detap config``: effective settings of a command, and their sources."""

import json
import os
from collections.abc import Mapping
from functools import partial
from math import nan
from typing import Any

import click
from click.core import ParameterSource

from detap import metrics
from detap.cli.commands.eval import command as eval_command
from detap.cli.commands.rank import classification, retrieval
from detap.cli.gates import DETECTIONS
from detap.cli.options import Option, general_options, option, protocol_from
from detap.cli.settings import (
    TARGETS,
    ConfiguredCommand,
    Settings,
    by_name,
    config_options,
    defaults_of,
    options_of,
    raise_with_file,
    settings_of,
    value_of_true,
)
from detap.escaping import escape, width
from detap.formats.catalogue import FORMATS
from detap.gates.checks import check_direction
from detap.gates.config import LIMITS
from detap.gates.metric_names import Metrics, check_metric
from detap.io.writing import write_stdout
from detap.metrics.at_threshold import AT_THRESHOLD
from detap.protocols import Protocol
from detap.protocols.ranking import Classification, Retrieval
from detap.report import schema
from detap.report.schemas import NAMES, address
from detap.report.sections.detection import class_columns

_SETTINGS = "settings"


_COMMANDS: dict[str, ConfiguredCommand] = {
    command.section or "eval": command
    for command in (eval_command, retrieval, classification)
    if isinstance(command, ConfiguredCommand)
}


_RULES = {"eval": Protocol, "rank-retrieval": Retrieval, "rank-classification": Classification}

_SCALAR: dict[str, Any] = {"type": ["string", "number"]}


class _Showing(ConfiguredCommand):
    """The config command, with the settings of the shown command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments with the settings of the named command."""
        shown = next((name for name in args if name in _COMMANDS), "eval")
        self.section, self.settings_command = _COMMANDS[shown].section, _COMMANDS[shown]
        return super().parse_args(ctx, args)


@click.command(
    cls=_Showing,
    examples={
        "Settings of eval, with defaults": "detap config eval --all",
        "JSON Schema of a report": "detap config --schema report",
    },
)
@click.argument("shown", metavar="[COMMAND]", type=click.Choice(list(_COMMANDS)), default="eval")
@option("--all", "everything", group="Output", is_flag=True, help="Show defaults as well.")
@option(
    "--output-format",
    group="Output",
    type=click.Choice(["table", "json"]),
    default="table",
    help="Format on stdout; table by default.",
)
@option(
    "--schema",
    group="Output",
    type=click.Choice([_SETTINGS, *NAMES]),
    metavar="NAME",
    help=f"Print the JSON Schema of detap.toml (settings) or of a report: {', '.join(NAMES)}.",
)
@config_options
@general_options
@click.pass_context
def command(ctx: click.Context, /, shown: str, **options: Any) -> None:
    """Show the settings of a command and the source of each.

    COMMAND is eval (the default), rank-retrieval or rank-classification. Precedence: command line,
    environment, file.
    """
    if options["schema"] is not None:
        name = options["schema"]
        record = settings_schema() if name == _SETTINGS else schema(name)
        write_stdout(f"{json.dumps(record, indent=2)}\n".encode())
        return
    settings = settings_of(ctx)
    effective, values = _effective_values(_COMMANDS[shown], settings, options["everything"])
    _check_combination(shown, values)
    if options["output_format"] == "json":
        file = None if settings.path is None else _relative_path(settings)
        record = {"file": file, "targets": [*settings.targets], "settings": effective}
        text = json.dumps(record, indent=2) + "\n"
    else:
        text = _as_table(settings, effective)
    write_stdout(text.encode("utf-8", "backslashreplace"))


def _effective_values(
    command: ConfiguredCommand, settings: Settings, everything: bool
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return value and source of the effective settings, and the converted values by option."""
    context = click.Context(command, info_name=command.name)
    context.default_map = defaults_of(command, settings)
    effective, values = {}, {}
    for name, setting in by_name(options_of(command)).items():
        value, source = setting.consume_value(context, {})
        origin, typed = None, () if setting.multiple else None
        if source in (ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP):
            context.set_parameter_source(str(setting.name), source)
            try:
                typed = setting.type_cast_value(context, value)
            except click.BadParameter as error:  # that eval raises
                error.param = error.param or setting
                raise_with_file(context, error, settings)
                raise
            origin = f"${setting.envvar}"
            if source is ParameterSource.DEFAULT_MAP:
                origin = f"{_relative_path(settings)} {settings.origins.get(name, '')}".rstrip()
        elif everything:
            value, origin = setting.get_default(context), "default"
        values[str(setting.name)] = typed
        if origin is not None:
            effective[name] = {"value": _plain(value), "source": origin}
    return effective, values


def _check_combination(name: str, values: dict[str, Any]) -> None:
    """Raise UsageError for an invalid protocol, or a limit that eval refuses.

    Checked only if the protocol or the format is set, because no input is read.
    """
    file_format = FORMATS.get(values.get("file_format") or "")
    if values["preset"] is None and file_format is None:
        return
    protocol = protocol_from(
        dict(values), _RULES[name], "" if file_format is None else file_format.protocol
    )
    if not isinstance(protocol, Protocol):
        return
    limits = [limit for option in LIMITS for limit in values[option]]
    if limits:
        metrics = _undefined_metrics(protocol)
        for limit in limits:
            check_metric(limit.name, metrics)
        check_direction(limits, metrics, DETECTIONS)


def _undefined_metrics(protocol: Protocol) -> Metrics:
    """Return the metrics of a protocol, all undefined."""
    gate_metrics = AT_THRESHOLD if protocol.matching == "by-score" else ()

    def more(name: str) -> float:
        if name not in gate_metrics:
            metrics.named(protocol, name)
        return nan

    def more_rows(name: str) -> list[float]:
        if name not in gate_metrics:
            metrics.named_of_class(protocol, name)
        return [nan]

    summary = {metric.name: nan for metric in metrics.summary(protocol)}
    row = {column.key: nan for column in class_columns(protocol)[1:]}
    return Metrics(
        next(iter(summary)),
        summary,
        [row],
        compute_overall=more,
        compute_rows=more_rows,
        metric_of=partial(metrics.metric_named, protocol),
    )


def _relative_path(settings: Settings) -> str:
    path = os.path.relpath(str(settings.path))
    return str(settings.path) if path.startswith(os.path.join(os.pardir, os.pardir)) else path


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None


def _as_table(settings: Settings, effective: Mapping[str, Mapping[str, Any]]) -> str:
    lines = []
    if settings.path is None:
        lines.append("no file: neither detap.toml nor [tool.detap] in pyproject.toml")
    else:
        lines.append(f"file: {escape(_relative_path(settings))}")
    if settings.targets:
        lines.append(f"targets: {', '.join(map(escape, settings.targets))}")
    rows = [
        (name, _format_value(entry["value"]), escape(entry["source"]))
        for name, entry in effective.items()
    ]
    sizes = [max((width(row[column]) for row in rows), default=0) for column in (0, 1)]
    if rows:
        lines.append("")
    for name, value, source in rows:
        cells = (name + " " * (sizes[0] - width(name)), value + " " * (sizes[1] - width(value)))
        lines.append("  ".join((*cells, source)))
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        return escape(" ".join(map(str, value))) or "-"
    return "-" if value is None else escape(value)


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a settings file."""
    tables: dict[str, Any] = {}
    for command in _COMMANDS.values():  # settings, and targets with the same ones
        options = by_name(options_of(command.settings_command))
        settings = {name: _schema_of(option) for name, option in options.items()}
        target = {"type": "object", "properties": settings, "additionalProperties": False}
        targets = {"type": "object", "additionalProperties": target}
        tables[command.section] = {**target, "properties": {**settings, TARGETS: targets}}
    file_schema = tables.pop("")
    file_schema["properties"] |= tables
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": address("settings"),
        "title": "detap.toml",
        "description": "Settings of detap, by option name.",
        **file_schema,
    }


def _schema_of(option: Option) -> dict[str, Any]:
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
