"""Settings: options that may also be set in a file, and the file.

It is ``[tool.detap]`` in pyproject.toml, or detap.toml. A setting has the name of the option it
stands for: ``max-dets = [1, 10, 100]`` is ``--max-dets 1,10,100``. A target,
``[tool.detap.targets.night]``, holds settings that replace those of the same name. Paths are
relative to the file's folder. The command line wins over the environment, and that over the file.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

import click
from click.core import ParameterSource

from detap.cli.command import Command
from detap.cli.options import Option, option, stack
from detap.errors import UsageError
from detap.io.paths import is_url
from detap.records import Record
from detap.text_input import suggest

_META = "detap.settings"
_TRUE = ("1", "true", "t", "yes", "y", "on")

PYPROJECT, OWN = "pyproject.toml", "detap.toml"

TARGETS = "targets"
"""The table of targets, each with settings of its own."""

SECTIONS = ("rank-retrieval", "rank-classification")
"""Tables of commands whose settings are their own."""


class Setting(Record):
    """What may be set.

    Attributes
    ----------
    name : str
        Of the option, without its dashes.
    many : bool
        Whether the option may be repeated: a list then gives one value per use.
    flag : bool
        Whether it is a switch.
    holds : {"text", "path", "path or text", "target", "limit"}
        What its values are: paths, relative to the file's folder, or such where the file exists;
        ``FORMAT=PATH`` or paths; ``NAME=NUMBER``, which a table may spell out; or just text.
    bare : str or None
        What true stands for, where the option needs no value.
    """

    name: str
    many: bool = False
    flag: bool = False
    holds: str = "text"
    bare: str | None = None


class Settings(Record):
    """What a file sets.

    Attributes
    ----------
    path : str or None
        The file; None where there is none.
    values : dict
        From the name of a setting to the text of its value, to a list of such texts, or to a bool.
    origins : dict
        From the name of a setting to the table it stands in.
    targets : tuple of str
        The targets that the file has.
    """

    path: str | None
    values: Mapping[str, Any]
    origins: Mapping[str, str]
    targets: tuple[str, ...]


NOTHING = Settings(None, {}, {}, ())


class _SettingsFile(Option):
    """The option that names the file: eager, so that its settings are there when others look."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Read the file's settings as defaults of the other options; `opts` are the line's."""
        command = cast("ConfiguredCommand", ctx.command)
        if not (opts.get("help") or opts.get("help_all")):
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
"""How a command is told where its settings are."""


class ConfiguredCommand(Command):
    """A command that takes from a file what neither its line nor the environment says.

    Parameters
    ----------
    section : str
        The table of the file that its settings stand in; empty for the file's own.
    known : click.Command, optional
        Whose options that table may set; its own by default.
    """

    def __init__(
        self, *args: Any, section: str = "", known: click.Command | None = None, **attributes: Any
    ) -> None:
        super().__init__(*args, **attributes)
        self.section = section
        self.known = known or self

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and say what the file has to do with what is wrong or missing."""
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            targets = settings_of(ctx).targets
            if not targets or ctx.get_parameter_source("target") is ParameterSource.COMMANDLINE:
                raise
            names = " or ".join(f"--target {name}" for name in targets)
            raise UsageError(f"{error.format_message()} Perhaps {names} is meant.") from error
        except click.BadParameter as error:
            blame_file(ctx, error)
            raise


def settings_for(given: Mapping[str, Any], command: ConfiguredCommand) -> Settings:
    """Return the settings that apply to a command line.

    Parameters
    ----------
    given : mapping
        The options of the line, as yet unprocessed.
    command : ConfiguredCommand

    Raises
    ------
    UsageError
        Where a file or a target is asked for that is not there.
    """
    several = given.get("target") or ()
    if len(several) > 1:
        names = " and ".join(map(repr, several))
        raise UsageError(f"--target: a run takes one target, not {names}; run each by itself")
    target = several[0] if several else os.environ.get("DETAP_TARGET")
    chosen = given.get("config") or os.environ.get("DETAP_CONFIG")
    if given.get("isolated") or os.environ.get("DETAP_ISOLATED", "").lower() in _TRUE:
        if chosen or target:
            raise UsageError("--isolated takes no settings: leave --config and --target out")
        return NOTHING
    path = chosen or _find()
    if path is None:
        if target:
            raise UsageError(f"--target {target}: there is no detap.toml, nor [tool.detap]")
        return NOTHING
    known = [setting_of(option) for option in options_of(command.known)]
    return _read(path, known, target, command.section)


def options_of(command: click.Command) -> Iterable[click.Option]:
    """Return the options that settings may stand for."""
    for parameter in command.params:
        if (
            isinstance(parameter, click.Option)
            and parameter.expose_value
            and getattr(parameter, "settable", True)
        ):
            yield parameter


def setting_name(parameter: click.Parameter) -> str:
    """Return the long name of an option, without its dashes."""
    return max(parameter.opts, key=len).lstrip("-")


def setting_of(parameter: click.Option) -> Setting:
    """Return what an option is as a setting of a file."""
    bare = parameter.flag_value
    return Setting(
        setting_name(parameter),
        many=parameter.multiple,
        flag=bool(parameter.is_flag),
        holds=getattr(parameter, "holds", "text"),
        bare=str(bare) if isinstance(bare, str | int) and not parameter.is_flag else None,
    )


def defaults_of(command: click.Command, settings: Settings) -> dict[str, Any]:
    """Return a file's settings by the names that a command gives its options."""
    return {
        str(parameter.name): settings.values[setting_name(parameter)]
        for parameter in options_of(command)
        if setting_name(parameter) in settings.values
    }


def settings_of(ctx: click.Context) -> Settings:
    """Return the settings of a running command."""
    found: Settings = ctx.meta.get(_META, NOTHING)
    return found


def blame_file(ctx: click.Context, error: click.BadParameter) -> None:
    """Raise the error anew, saying that the file has the value that is wrong, where it has.

    Raises
    ------
    UsageError
        Which names the file, the table and the setting.
    """
    parameter = error.param
    if parameter is None or parameter.name is None:
        return
    if ctx.get_parameter_source(parameter.name) is not ParameterSource.DEFAULT_MAP:
        return
    settings = settings_of(ctx)
    name = setting_name(parameter)
    location = settings.origins.get(name, "")
    where = " ".join(part for part in (os.path.relpath(str(settings.path)), location) if part)
    raise UsageError(f"{where}: {name}: {error.message}") from error


def _find() -> str | None:
    """Return the file that settings come from, or None.

    The first of detap.toml and of a pyproject.toml with a table ``[tool.detap]``, in the working
    folder or the nearest one above it.
    """
    try:
        here = os.getcwd()
    except OSError:  # the working folder has been deleted
        return None
    while True:
        own, shared = os.path.join(here, OWN), os.path.join(here, PYPROJECT)
        if os.path.isfile(own):
            return own
        if os.path.isfile(shared) and b"tool.detap" in _content(shared):
            return shared
        above = os.path.dirname(here)
        if above == here:
            return None
        here = above


def _content(path: str) -> bytes:
    from detap.io.stream import open_regular  # not where there is no file

    try:
        with os.fdopen(open_regular(path), "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error


def _read(
    path: str, known: Iterable[Setting], target: str | None = None, section: str = ""
) -> Settings:
    """Read settings.

    Parameters
    ----------
    path : str
        A TOML file; of a pyproject.toml, the table ``[tool.detap]``.
    known : iterable of Setting
        What may be set.
    target : str, optional
        Whose settings replace the others.
    section : str, optional
        The table of :data:`SECTIONS` to read instead of the file's own settings.

    Raises
    ------
    UsageError
        Where the file is no TOML, sets what is unknown, or has no such target; with near names.
    """
    import tomllib

    shown = _shown(path)
    try:
        record = tomllib.loads(_content(path).decode(), parse_float=_Decimal)
    except (ValueError, RecursionError) as error:  # also of an integer of too many digits
        raise UsageError(f"{shown}: is no TOML: {error}") from error
    table: Mapping[str, Any] = record
    prefix = ""
    if os.path.basename(path) == PYPROJECT:
        table, prefix = _table(record, "tool", shown), "tool.detap"
        table = _table(table, "detap", shown)
    if section:
        table, prefix = _table(table, section, shown), f"{prefix}.{section}".lstrip(".")
    targets = _table(table, TARGETS, shown)
    settings = {setting.name: setting for setting in known}
    tables = (TARGETS, *(() if section else SECTIONS))
    base = {name: value for name, value in table.items() if name not in tables}
    layers: list[tuple[Mapping[str, Any], str]] = [(base, prefix)]
    # The other targets are read too, so that a mistake in one does not lie in wait.
    for name in targets:
        location = ".".join(part for part in (prefix, TARGETS, name) if part)
        layer = (_table(targets, name, shown), location)
        _read_layer(layer, settings, path)
        if name == target:
            layers.append(layer)
    if target is not None and target not in targets:
        hint = _hint(target, targets) or (
            f"; it has {', '.join(map(repr, targets))}" if targets else "; it has none"
        )
        raise UsageError(f"{shown}: there is no target {target!r}{hint}")
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in layers:
        found = _read_layer(layer, settings, path)
        values |= found
        origins |= dict.fromkeys(found, f"[{layer[1]}]" if layer[1] else "")
    return Settings(path, values, origins, tuple(targets))


def _table(record: Mapping[str, Any], name: str, shown: str) -> Mapping[str, Any]:
    found = record.get(name, {})
    if not isinstance(found, dict):
        raise UsageError(f"{shown}: {name!r} is no table")
    return found


def _read_layer(
    layer: tuple[Mapping[str, Any], str], known: Mapping[str, Setting], path: str
) -> dict[str, Any]:
    table, location = layer
    folder = os.path.dirname(path)
    where = f"{_shown(path)}: [{location}]" if location else _shown(path)
    found = {}
    for name, value in table.items():
        if name not in known:
            raise UsageError(f"{where}: unknown setting {name!r}{_hint(name, known)}")
        try:
            found[name] = _value(known[name], value, folder)
        except ValueError as error:
            raise UsageError(f"{where}: {name}: {error}") from None
    return found


def _value(setting: Setting, value: object, folder: str) -> object:
    """Return what the command line would have been given."""
    if setting.flag:
        if not isinstance(value, bool):
            raise ValueError(f"{value!r} is neither true nor false")
        return value
    if setting.bare is not None and isinstance(value, bool):
        return setting.bare if value else None
    if setting.holds == "limit" and isinstance(value, dict):
        value = [f"{name}={_text(limit)}" for name, limit in value.items()]
    texts = [_text(entry) for entry in (value if isinstance(value, list) else [value])]
    texts = [_located(setting, text, folder) for text in texts]
    if setting.many:
        return texts
    return ",".join(texts)


class _Decimal(float):
    """A float of a file that keeps its text, as the command line would have been given it."""

    text: str

    def __new__(cls, text: str) -> "_Decimal":
        value = super().__new__(cls, text)
        value.text = text.replace("_", "")
        return value


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is neither text nor a number")
    if isinstance(value, _Decimal):
        return value.text
    return value if isinstance(value, str) else repr(value)


def _located(setting: Setting, text: str, folder: str) -> str:
    """Return a path from the working folder on."""
    if setting.holds == "target":
        name, equals, path = text.partition("=")
        return f"{name}={_join(folder, path)}" if equals else _join(folder, text)
    there = _join(folder, text)
    is_path = setting.holds == "path" or (setting.holds == "path or text" and os.path.exists(there))
    return there if is_path else text


def _join(folder: str, path: str) -> str:
    if path == "-" or is_url(path):
        return path
    here = os.path.relpath(folder or os.curdir)
    return path if here == os.curdir else os.path.join(here, path)


def _shown(path: str) -> str:
    """Return a path as short as it can be told."""
    try:
        near = os.path.relpath(path)
    except (OSError, ValueError):
        return path
    return path if near.startswith(os.pardir) else near


def _hint(name: str, known: Collection[str]) -> str:
    from detap.cli.former_names import present_name

    if present := present_name(name, known):
        return f"; it is named {present} now"
    hint = suggest(name.replace("_", "-"), known)
    return hint and f"; {hint}"
