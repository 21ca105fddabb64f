"""Read option values from detap.toml, or ``[tool.detap]`` in pyproject.toml.

A setting has the name of its option: ``max-dets = [1, 10, 100]`` is ``--max-dets 1,10,100``. A
target, ``[tool.detap.targets.night]``, has settings that replace those of the same name. Paths are
relative to the folder of the file. Precedence: command line, environment, file.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import click
from click.core import ParameterSource

from detap.cli.command import Command
from detap.cli.options import Option, message_options, option, stack
from detap.cli.other_tools import option_for
from detap.errors import UsageError
from detap.io.paths import is_url
from detap.io.stream import open_regular
from detap.text_input import suggest

_META = "detap.settings"
_TRUE = ("1", "true", "t", "yes", "y", "on")

PYPROJECT, DETAP_TOML = "pyproject.toml", "detap.toml"

TARGETS = "targets"  # name of the table of targets
SECTIONS = ("rank-retrieval", "rank-classification")  # tables of commands with separate settings


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a file."""

    path: str | None  # None if there is no file
    values: Mapping[str, Any]  # text, list of texts, or bool, by setting
    origins: Mapping[str, str]  # table of the file, by setting
    targets: tuple[str, ...]  # in the file


NOTHING = Settings(None, {}, {}, ())


class _SettingsFile(Option):
    """The ``--config`` option; eager, because other options use its settings."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Set the defaults of the other options from the file."""
        command = cast("ConfiguredCommand", ctx.command)
        shown = command.get_help_option(ctx)  # whose name depends on click's version
        if not (opts.get("help_all") or (shown and opts.get(str(shown.name)))):
            settings = settings_for(opts, command)
            ctx.meta[_META] = settings
            if settings.values:
                ctx.default_map = defaults_of(command, settings)
        return super().handle_parse_result(ctx, opts, args)


config_options = stack(
    click.option(
        "--config",
        cls=_SettingsFile,
        group="Settings",
        is_eager=True,
        metavar="FILE",
        expose_value=False,
        help="Use this settings file; by default detap.toml, or [tool.detap] in pyproject.toml, in "
        "this folder or the nearest above.",
    ),
    option(
        "--target",
        group="Settings",
        is_eager=True,
        multiple=True,
        metavar="NAME",
        expose_value=False,
        help="Add the settings of this target.",
    ),
    option(
        "--isolated",
        group="Settings",
        is_flag=True,
        expose_value=False,
        help="Use no settings file.",
    ),
)
"""Options that select the settings."""

run_options = stack(config_options, message_options)  # options of every command with settings


class ConfiguredCommand(Command):
    """A command with defaults from a table of a settings file, of the top level by default.

    The table may set the options of `settings_command`, of this command by default.
    """

    def __init__(
        self,
        *args: Any,
        section: str = "",
        settings_command: click.Command | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.section = section
        self.settings_command = settings_command or self

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; relate errors to the settings file."""
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            targets = settings_of(ctx).targets
            if not targets or ctx.get_parameter_source("target") is ParameterSource.COMMANDLINE:
                raise
            names = " or ".join(f"--target {name}" for name in targets)
            raise UsageError(f"{error.format_message()} Did you mean {names}?") from error
        except click.BadParameter as error:
            raise_with_file(ctx, error, settings_of(ctx))
            raise


def settings_for(values: Mapping[str, Any], command: ConfiguredCommand) -> Settings:
    """Return the settings that apply to a command line."""
    requested = values.get("target") or ()
    if len(requested) > 1:
        names = " and ".join(map(repr, requested))
        raise UsageError(f"--target: a run takes one target, got {names}")
    target = requested[0] if requested else os.environ.get("DETAP_TARGET")
    chosen = values.get("config") or os.environ.get("DETAP_CONFIG")
    if values.get("isolated") or os.environ.get("DETAP_ISOLATED", "").lower() in _TRUE:
        if chosen or target:
            raise UsageError("--isolated excludes --config and --target")
        return NOTHING
    path = chosen or _find()
    if path is None:
        if target:
            raise UsageError(
                f"--target {target}: no detap.toml and no [tool.detap] in pyproject.toml"
            )
        return NOTHING
    # The settings of a table and of its target; the other targets are checked too.
    known = by_name(options_of(command.settings_command))
    short_path, table = _short_path(path), _parsed(path)
    prefix = []
    if os.path.basename(path) == PYPROJECT:
        table = _table(_table(table, "tool", short_path), "detap", short_path)
        prefix = ["tool.detap"]
    if command.section:
        table, prefix = _table(table, command.section, short_path), [*prefix, command.section]
    targets = _table(table, TARGETS, short_path)
    if target is not None and target not in targets:
        hint = suggest(target, targets) or (
            f"available: {', '.join(map(repr, targets))}" if targets else "the file has no targets"
        )
        raise UsageError(f"{short_path}: unknown target {target!r}; {hint}")
    tables = (TARGETS, *(() if command.section else SECTIONS))
    base = {name: value for name, value in table.items() if name not in tables}
    location = ".".join(prefix)
    values = _read_table(base, location, known, path)
    origins = dict.fromkeys(values, f"[{location}]" if location else "")
    for name in targets:
        location = ".".join((*prefix, TARGETS, name))
        of_target = _read_table(_table(targets, name, short_path), location, known, path)
        if name == target:
            values |= of_target
            origins |= dict.fromkeys(of_target, f"[{location}]")
    return Settings(path, values, origins, tuple(targets))


def options_of(command: click.Command) -> list[Option]:
    """Return the options that a file may set."""
    options = (parameter for parameter in command.params if isinstance(parameter, Option))
    return [option for option in options if option.expose_value and option.settable]


def by_name(options: Iterable[Option]) -> dict[str, Option]:
    """Return options by the name of their setting."""
    return {setting_name(option): option for option in options}


def setting_name(parameter: click.Parameter) -> str:
    """Return the long name of an option, without dashes."""
    return max(parameter.opts, key=len).lstrip("-")


def value_of_true(option: Option) -> str | None:
    """Return the value of ``true`` for an option that can be used without a value."""
    bare = option.flag_value
    return str(bare) if isinstance(bare, str | int) and not option.is_flag else None


def defaults_of(command: click.Command, settings: Settings) -> dict[str, Any]:
    """Return the values of a file by parameter name."""
    options = by_name(options_of(command))
    values = settings.values.items()
    return {str(options[name].name): value for name, value in values if name in options}


def settings_of(ctx: click.Context) -> Settings:
    """Return the settings of a running command."""
    settings: Settings = ctx.meta.get(_META, NOTHING)
    return settings


def raise_with_file(ctx: click.Context, error: click.BadParameter, settings: Settings) -> None:
    """Raise UsageError with file, table and setting if the value is from a file."""
    parameter = error.param
    if parameter is None or parameter.name is None:
        return
    if ctx.get_parameter_source(parameter.name) is not ParameterSource.DEFAULT_MAP:
        return
    name = setting_name(parameter)
    location = settings.origins.get(name, "")
    where = " ".join(part for part in (os.path.relpath(str(settings.path)), location) if part)
    raise UsageError(f"{where}: {name}: {error.message}") from error


def _find() -> str | None:
    """Return the path of the settings file of the working folder or its nearest parent."""
    try:
        folder = os.getcwd()
    except OSError:  # the working folder has been deleted
        return None
    last = ""
    while folder != last:
        dedicated, shared = (os.path.join(folder, name) for name in (DETAP_TOML, PYPROJECT))
        if os.path.isfile(dedicated):
            return dedicated
        if os.path.isfile(shared) and b"tool.detap" in _content(shared):
            return shared
        folder, last = os.path.dirname(folder), folder
    return None


def _content(path: str) -> bytes:
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error


def read_tables(path: str, known: Mapping[str, Option]) -> dict[str, dict[str, Any]]:
    """Read a TOML file of tables of settings, by name."""
    record = _parsed(path)
    return {
        name: _read_table(_table(record, name, _short_path(path)), name, known, path)
        for name in record
    }


def _parsed(path: str) -> Mapping[str, Any]:
    """Return the contents of a TOML file."""
    import tomllib  # few runs have a file

    try:
        return tomllib.loads(
            _content(path).decode(), parse_float=lambda text: _Decimal(text.replace("_", ""))
        )
    # RecursionError: deep nesting; ValueError: also integers of too many digits.
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{_short_path(path)}: is not TOML: {error}") from error


def _table(record: Mapping[str, Any], name: str, short_path: str) -> Mapping[str, Any]:
    table = record.get(name, {})
    if not isinstance(table, dict):
        raise UsageError(f"{short_path}: {name!r} is not a table")
    return table


def _read_table(
    table: Mapping[str, Any], location: str, known: Mapping[str, Option], path: str
) -> dict[str, Any]:
    """Return the values of a table, as of the command line."""
    where = f"{_short_path(path)}: [{location}]" if location else _short_path(path)
    values = {}
    for name, value in table.items():
        if name not in known:
            option = option_for(name, known)
            hint = option and f"did you mean {option}?"
            if option is None:
                hint = suggest(name.replace("_", "-"), known)
            raise UsageError(f"{where}: unknown setting {name!r}{hint and f'; {hint}'}")
        try:
            values[name] = _value(known[name], value, os.path.dirname(path))
        except ValueError as error:
            raise UsageError(f"{where}: {name}: {error}") from None
    return values


def _value(option: Option, value: object, folder: str) -> object:
    """Return the equivalent value of the command line; paths relative to the working folder."""

    def located(text: str) -> str:
        if option.value_kind == "target":
            name, equals, path = text.partition("=")
            return f"{name}={_join(folder, path)}" if equals else _join(folder, text)
        path, may_be = _join(folder, text), option.value_kind == "path or text"
        return path if option.value_kind == "path" or (may_be and os.path.exists(path)) else text

    if option.is_flag:
        if not isinstance(value, bool):
            raise ValueError(f"{value!r} is not true or false")
        return value
    if isinstance(value, bool) and (bare := value_of_true(option)) is not None:
        return bare if value else None
    if option.value_kind == "limit" and isinstance(value, dict):
        value = [f"{name}={_text(limit)}" for name, limit in value.items()]
    texts = [located(_text(item)) for item in (value if isinstance(value, list) else [value])]
    return texts if option.multiple else ",".join(texts)


class _Decimal(str):
    """A number with decimals, as it is written in the file."""

    __slots__ = ()
    __repr__ = str.__str__


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is not text or a number")
    return value if isinstance(value, str) else repr(value)


def _join(folder: str, path: str) -> str:
    if path == "-" or is_url(path):
        return path
    relative = os.path.relpath(folder or os.curdir)
    return path if relative == os.curdir else os.path.join(relative, path)


def _short_path(path: str) -> str:
    """Return a path relative to the working folder if it is inside."""
    try:
        relative = os.path.relpath(path)
    except (OSError, ValueError):
        return path
    return path if relative.startswith(os.pardir) else relative
