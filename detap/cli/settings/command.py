"""Commands whose options may also be set in a file: see ``detap/cli/settings/file.py``.

The command line wins over the environment, and that over the file.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any, cast

import click
from click.core import ParameterSource

from detap.cli.command import Command
from detap.cli.options import Option, option, stack
from detap.cli.settings.file import NOTHING, Setting, Settings, find, read
from detap.errors import UsageError

_META = "detap.settings"
_TRUE = ("1", "true", "t", "yes", "y", "on")


class _SettingsFile(Option):
    """The option that names the file: eager, so that its settings are there when others look."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Read the file's settings as defaults of the other options; `opts` are the line's."""
        command = cast("ConfiguredCommand", ctx.command)
        helping = command.get_help_option(ctx)
        names = {"help_all"} if helping is None else {"help_all", str(helping.name)}
        if not any(opts.get(name) for name in names):
            settings = settings_for(opts, command)
            ctx.meta[_META] = settings
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
        help="Take settings from this file. By default from detap.toml, or [tool.detap] of "
        "pyproject.toml, in this folder or the nearest one above.",
    ),
    option(
        "--target",
        group="Settings",
        is_eager=True,
        multiple=True,
        metavar="NAME",
        expose_value=False,
        help="Take the settings of this target of the file as well. Once a run.",
    ),
    option(
        "--isolated",
        group="Settings",
        is_flag=True,
        expose_value=False,
        help="Take no settings from a file.",
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
    path = chosen or find()
    if path is None:
        if target:
            raise UsageError(f"--target {target}: there is no detap.toml, nor [tool.detap]")
        return NOTHING
    known = [setting_of(option) for option in options_of(command.known)]
    return read(path, known, target, command.section)


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
    place = settings.origins.get(name, "")
    where = " ".join(part for part in (os.path.relpath(str(settings.path)), place) if part)
    raise UsageError(f"{where}: {name}: {error.message}") from error
