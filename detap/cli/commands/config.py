"""``detap config``: what is in force for a command, and where each value came from."""

import json
import os
from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from detap import metrics
from detap.cli.commands.eval import command as evaluating
from detap.cli.commands.rank import classification, retrieval
from detap.cli.options import Option, general_options, option, protocol_from, stack
from detap.cli.settings import (
    ConfiguredCommand,
    Settings,
    blame_file,
    config_options,
    defaults_of,
    options_of,
    setting_name,
    settings_of,
)
from detap.escaping import escape, width
from detap.formats.registry import FORMATS
from detap.gates.config import LIMITS
from detap.metrics.at_threshold import AT_THRESHOLD
from detap.protocols import Protocol
from detap.protocols.ranking import Classification, Retrieval
from detap.report import schema
from detap.report.schemas import NAMES

if TYPE_CHECKING:
    from detap.gates.metric_names import Metrics
from detap.io.writing import write_stdout

_SETTINGS = "settings"

show_options = stack(
    option("--all", "everything", group="Output", is_flag=True, help="Show defaults as well."),
    option(
        "--output-format",
        group="Output",
        type=click.Choice(["table", "json"]),
        default="table",
        help="Format on stdout; table by default.",
    ),
    option(
        "--schema",
        group="Output",
        type=click.Choice([_SETTINGS, *NAMES]),
        help="Print the JSON Schema of detap.toml or of a report.",
    ),
)


class _InForce(NamedTuple):
    name: str
    value: Any
    source: str


_COMMANDS: dict[str, ConfiguredCommand] = {
    command.section or "eval": command
    for command in (evaluating, retrieval, classification)
    if isinstance(command, ConfiguredCommand)
}


_RULES = {"eval": Protocol, "rank-retrieval": Retrieval, "rank-classification": Classification}

BY_SECTION = {command.section: command for command in _COMMANDS.values()}
"""The commands that have settings, by the table of the file that these stand in."""


class _Showing(ConfiguredCommand):
    """The command, with the settings of the one that it shows."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and read the settings of the command that they name."""
        shown = next((name for name in args if name in _COMMANDS), "eval")
        self.section, self.known = _COMMANDS[shown].section, _COMMANDS[shown]
        return super().parse_args(ctx, args)


@click.command(
    cls=_Showing,
    examples={
        "Settings of eval, with defaults": "detap config eval --all",
        "JSON Schema of a report": "detap config --schema report",
    },
)
@click.argument("shown", metavar="[COMMAND]", type=click.Choice(list(_COMMANDS)), default="eval")
@show_options
@config_options
@general_options
@click.pass_context
def command(ctx: click.Context, /, shown: str, **options: Any) -> None:
    """Show the settings of a command and the source of each.

    COMMAND is eval (the default), rank-retrieval or rank-classification. Precedence: command line,
    environment, file.
    """
    if options["schema"] is not None:
        from detap.cli.settings_schema import settings_schema  # seldom, both

        name = options["schema"]
        asked = settings_schema(BY_SECTION) if name == _SETTINGS else schema(name)
        write_stdout(f"{json.dumps(asked, indent=2)}\n".encode())
        return
    settings = settings_of(ctx)
    found, values = _in_force(_COMMANDS[shown], settings, options["everything"])
    _check_together(shown, values)
    as_text = _as_json if options["output_format"] == "json" else _as_table
    write_stdout(as_text(settings, found).encode("utf-8", "backslashreplace"))


def _in_force(
    command: ConfiguredCommand, settings: Settings, everything: bool
) -> tuple[list[_InForce], dict[str, Any]]:
    """Return what is in force, and the values of options that are set as the command gets them."""
    context = click.Context(command, info_name=command.name)
    context.default_map = defaults_of(command, settings)
    found, values = [], {}
    for parameter in options_of(command):
        value, source = parameter.consume_value(context, {})
        name = setting_name(parameter)
        # A wrong value is said here as it would be by eval.
        if source in (ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP):
            context.set_parameter_source(str(parameter.name), source)
            typed = _typed(context, parameter, value, settings)
        else:
            typed = () if parameter.multiple else None
        values[str(parameter.name)] = typed
        told = _source(parameter, source, settings)
        if told is not None:
            found.append(_InForce(name, _plain(value), told))
        elif everything:
            default = parameter.get_default(context)
            found.append(_InForce(name, _plain(default), "default"))
    return found, values


def _check_together(shown: str, values: dict[str, Any]) -> None:
    """Raise UsageError for a protocol, or a number in a limit, that the command would refuse.

    No input is read: what only goes with another protocol is left to the command, unless the
    protocol or the format is set.
    """
    entry = FORMATS.get(values.get("file_format") or "")
    if values["preset"] is None and entry is None:
        return
    protocol = protocol_from(dict(values), _RULES[shown], "" if entry is None else entry.protocol)
    if not isinstance(protocol, Protocol):
        return
    limits = [limit for asked in LIMITS for limit in values[asked]]
    if limits:
        from detap.gates.metric_names import check_metric

        numbers = _numbers(protocol)
        for limit in limits:
            check_metric(limit.name, numbers)


def _numbers(protocol: Protocol) -> "Metrics":
    """Return the numbers that a protocol has, all undefined."""
    from detap.gates.metric_names import Metrics
    from detap.report.sections.detection import class_columns

    known = AT_THRESHOLD if protocol.matching == "by-score" else ()

    def more(name: str) -> float:
        if name not in known:
            metrics.named(protocol, name)
        return nan

    def more_rows(name: str) -> list[float]:
        if name not in known:
            metrics.named_of_class(protocol, name)
        return [nan]

    summary = {measure.name: nan for measure in metrics.summary(protocol)}
    row = {column.key: nan for column in class_columns(protocol)[1:]}
    return Metrics(
        next(iter(summary)), summary, [row], compute_overall=more, compute_rows=more_rows
    )


def _typed(context: click.Context, parameter: click.Option, value: Any, settings: Settings) -> Any:
    context.meta["detap.settings"] = settings
    try:
        return parameter.type_cast_value(context, value)
    except click.BadParameter as error:
        error.param = error.param or parameter
        blame_file(context, error)
        raise


def _source(
    parameter: click.Option, source: ParameterSource | None, settings: Settings
) -> str | None:
    if source is ParameterSource.ENVIRONMENT:
        variable = parameter.envvar if isinstance(parameter, Option) else None
        return f"${variable}"
    if source is ParameterSource.DEFAULT_MAP:
        location = settings.origins.get(setting_name(parameter), "")
        return " ".join(part for part in (_near(settings), location) if part)
    return None


def _near(settings: Settings) -> str:
    near = os.path.relpath(str(settings.path))
    return str(settings.path) if near.startswith(os.path.join(os.pardir, os.pardir)) else near


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return None


def _as_json(settings: Settings, found: list[_InForce]) -> str:
    record = {
        "file": None if settings.path is None else _near(settings),
        "targets": list(settings.targets),
        "settings": {entry.name: {"value": entry.value, "source": entry.source} for entry in found},
    }
    return json.dumps(record, indent=2) + "\n"


def _as_table(settings: Settings, found: list[_InForce]) -> str:
    lines = []
    if settings.path is None:
        lines.append("no file: neither detap.toml nor [tool.detap] in pyproject.toml")
    else:
        lines.append(f"file: {escape(_near(settings))}")
    if settings.targets:
        lines.append(f"targets: {', '.join(map(escape, settings.targets))}")
    rows = [(entry.name, _shown(entry.value), escape(entry.source)) for entry in found]
    sizes = [max((width(row[place]) for row in rows), default=0) for place in (0, 1)]
    if rows:
        lines.append("")
    lines += [
        "  ".join(
            [
                *(
                    cell + " " * (size - width(cell))
                    for cell, size in zip(row, sizes, strict=False)
                ),
                row[2],
            ]
        )
        for row in rows
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return escape(" ".join(map(str, value))) or "-"
    return "-" if value is None else escape(value)
