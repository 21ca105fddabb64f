"""Commands: a first screen of help and all of it on request, and what slips may have meant."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from detap.text_input import nearest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_ALL = "detap.help-all"
_LONG = 20


def _show(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(full_help(ctx) if parameter is _HELP_ALL else ctx.get_help())
        ctx.exit()


def files(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem[Any]]":
    """Let the shell complete the name of a file."""
    from click.shell_completion import CompletionItem  # only then

    return [CompletionItem(incomplete, type="file")]


def full_help(ctx: click.Context) -> str:
    """Return the help of a command with every option of it."""
    ctx.meta[_ALL] = True
    return ctx.get_help()


def _help_option(*names: str, text: str) -> click.Option:
    shown: Any = {"is_flag": True, "is_eager": True, "expose_value": False, "callback": _show}
    return click.Option(names, help=text, **shown)


# click's own looks for translations of its text, for which it imports locale: 0.0008 s.
_HELP = _help_option("-h", "--help", text="Show this message and exit.")
_HELP_ALL = _help_option("--help-all", text="Show every option and exit.")


class _Helpful(click.Command):
    """A command with an option ``--help`` of ours."""

    def get_help_option(self, ctx: click.Context) -> click.Option:
        """Return the option."""
        del ctx
        return _HELP


class Command(_Helpful):
    """A command whose help is one screen first: what it does, examples, the options people use.

    Parameters
    ----------
    first : sequence of str
        The options of the first screen, by spelling, in their order; all where left out.
    examples : mapping of str to str
        What to do, and the line that does it.
    """

    def __init__(
        self,
        *args: Any,
        first: Sequence[str] = (),
        examples: Mapping[str, str] = MappingProxyType({}),
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.first = first
        self.examples = examples

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with ``--help-all`` where ``--help`` is not all."""
        *found, help_option = super().get_params(ctx)
        return [*found, *([_HELP_ALL] if self.first else []), help_option]

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does, and examples."""
        super().format_help_text(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for what, line in self.examples.items():
                    formatter.write(f"  # {what}\n")
                    formatter.write("".join(f"  {part}\n" for part in line.split("\n")))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options: the first, or each under its group's heading."""
        if self.first and not ctx.meta.get(_ALL):
            self._format_first(ctx, formatter)
            return
        groups = defaultdict(list)
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                groups[getattr(parameter, "group", "General")].append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def _format_first(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        known = {name: p for p in self.params for name in p.opts}
        first = [known[name] for name in self.first]
        rows = [(_spelt(option, ctx), getattr(option, "brief", "")) for option in first]
        rows.append(("--help-all", f"Show all {len(self.params)} options and exit."))
        with formatter.section("Options"):
            formatter.write_dl(rows)

    def make_parser(self, ctx: click.Context) -> Any:
        """Return click's parser, to which "-o" is as good a name as "--output".

        It would first look for nearly "-o" among the long names, which takes 0.002 s.
        """
        parser = super().make_parser(ctx)
        for name, option in parser._short_opt.items():
            parser._long_opt.setdefault(name, option)
        return parser

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; an option that is none may be a slip for one."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            meant = " or ".join(map(repr, self._meant(error.option_name)))
            hint = f" Did you mean {meant}?" if meant else ""
            raise click.UsageError(f"No such option {error.option_name!r}.{hint}", ctx) from None

    def _meant(self, name: str) -> list[str]:
        """Return the options that a name may stand for: under a former, other or similar name."""
        from detap.cli.former_names import present_name

        words: dict[str, str] = {}
        for parameter in self.params:
            for word in (*parameter.opts, *parameter.secondary_opts):
                words[word] = word
            for word in getattr(parameter, "known_as", ()):
                words.setdefault(word, parameter.opts[0])
        former = name.removeprefix("--")
        no = "no-" if former.startswith("no-") else ""
        options = {word.removeprefix("--").removeprefix(no) for word in words}
        if present := present_name(former.removeprefix(no), options):
            return [f"--{no}{present}"]
        similar = [name] if name in words else nearest(name, words, 0.85) or nearest(name, words)
        return list(dict.fromkeys(words[word] for word in similar))


def _spelt(parameter: click.Parameter, ctx: click.Context) -> str:
    """Return the spellings of an option, and what its value is called: a long choice only so."""
    names = ", ".join(sorted(parameter.opts, key=len))
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return names
    value = parameter.make_metavar(ctx)
    return f"{names} {value if len(value) < _LONG else 'NAME'}"


class Group(_Helpful, click.Group):
    """A group of commands that says which one a slip may have meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments begin with."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise click.UsageError(self._unknown(ctx, name), ctx)
        return super().resolve_command(ctx, args)

    def _unknown(self, ctx: click.Context, name: str) -> str:
        known = self.list_commands(ctx)
        meant = " or ".join(nearest(name, known))
        hint = f"Did you mean {meant}?" if meant else f"They are {', '.join(known)}."
        return f"No such command {name!r}. {hint}"
