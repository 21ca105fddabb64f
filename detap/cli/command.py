"""Commands with short and full help, and suggestions for misspelled names."""

from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import click
from click.shell_completion import CompletionItem

from detap.cli.other_tools import option_for
from detap.text_input import nearest

_ALL = "detap.help-all"
_LONG = 20


def _show_all(ctx: click.Context, _: click.Parameter, requested: bool) -> None:
    if requested and not ctx.resilient_parsing:
        click.echo(full_help(ctx))
        ctx.exit()


def files(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
    """Request file completion from the shell."""
    return [CompletionItem(incomplete, type="file")]


def full_help(ctx: click.Context) -> str:
    """Return the help of a command with all options."""
    ctx.meta[_ALL] = True
    return ctx.get_help()


_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Show every option and exit.",
)


class Command(click.Command):
    """A command whose help shows a purpose, `examples` by purpose, and the `first` options."""

    def __init__(
        self,
        *args: Any,
        first: str = "",
        examples: Mapping[str, str] = MappingProxyType({}),
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.first = first.split()
        self.examples = examples

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with ``--help-all`` if ``--help`` is shorter."""
        *parameters, help_option = super().get_params(ctx)
        return [*parameters, *([_HELP_ALL] if self.first else []), help_option]

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the purpose of the command, and examples."""
        super().format_help_text(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for purpose, line in self.examples.items():
                    formatter.write(f"  # {purpose}\n")
                    formatter.write("".join(f"  {row}\n" for row in line.split("\n")))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the main options, or all options by group."""
        if self.first and not ctx.meta.get(_ALL):
            by_name = {name: p for p in self.params for name in p.opts}
            rows = []
            for option in (by_name[name] for name in self.first):
                names = ", ".join(sorted(option.opts, key=len))
                if not getattr(option, "is_flag", False):  # with its value; a long choice as NAME
                    value = option.make_metavar(ctx)
                    names += f" {value if len(value) < _LONG else 'NAME'}"
                rows.append((names, getattr(option, "brief", "")))
            count = sum(isinstance(parameter, click.Option) for parameter in self.params)
            rows.append(("--help-all", f"Show all {count} options and exit."))
            with formatter.section("Options"):
                formatter.write_dl(rows)
            return
        groups = defaultdict(list)
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                groups[getattr(parameter, "group", "General")].append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; for an unknown option suggest similar ones."""
        given = [*args]  # click removes what it has parsed
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name
            if not name.startswith("--"):  # click names only the letter g of -gt
                words = (arg for arg in given if arg.startswith("-") and not arg.startswith("--"))
                name = next((word for word in words if name[1] in word), name)
            names = {
                word
                for parameter in self.params
                if isinstance(parameter, click.Option)
                for word in (*parameter.opts, *parameter.secondary_opts)
            }
            option = option_for(name, {word.removeprefix("--") for word in names})
            similar = [f"--{option}"] if option else []
            if option is None:  # not of another tool
                similar = nearest(name, names, 0.85) or nearest(name, names)
            hint = f" Did you mean {' or '.join(map(repr, similar))}?" if similar else ""
            raise click.UsageError(f"No such option {name!r}.{hint}", ctx) from None


class Group(click.Group):
    """A group of commands that suggests similar names for an unknown one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command named by the first argument."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            names = self.list_commands(ctx)
            similar = " or ".join(nearest(name, names))
            hint = f"Did you mean {similar}?" if similar else f"They are {', '.join(names)}."
            raise click.UsageError(f"No such command {name!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)
