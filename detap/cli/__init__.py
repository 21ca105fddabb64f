"""The command line: arguments in, exit status out, no arithmetic.

Every way out of the program leads through :func:`main`, which turns it into the exit status:

==== =====================================================================
0    done, and every gate passed
1    a gate failed, or a cross-check found a difference
2    the call, an input or an output is wrong
3    an error of detap itself
130  interrupted (Ctrl-C)
143  terminated (SIGTERM)
==== =====================================================================

A command is a module of this package with a click command of the same name. Modules are imported
when their command is called or listed, and nothing that costs time before it is needed.
"""

import errno
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

import click

from detap._version import __version__
from detap.cli._abort import end_with
from detap.cli.command import Group
from detap.cli.session import Session
from detap.errors import DetapError, InputError
from detap.escaping import escape, escape_lines
from detap.io.writing import silence_stdout

COMMANDS = (
    "eval",
    "merge",
    "check",
    "convert",
    "report",
    "compare",
    "explain",
    "show",
    "baseline",
    "history",
    "badge",
    "config",
    "rank",
    "demo",
    "completion",
)
"""The commands, in the order of the help; each is a module of this package."""

COMPLETE = "_DETAP_COMPLETE"
"""The variable with which a shell that completes a line runs detap: what it asks for."""

DEFECT, USAGE, INTERRUPTED = 3, 2, 130

_SIGNALS = ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL))
"""What ends a command in good order, and what Python does with it unless told otherwise."""


class _Signalled(KeyboardInterrupt):
    """A signal arrived while a command runs, or just beside it, and this is its status."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status


class _Group(Group):
    """A group that imports a command's module only when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        found: click.Command = import_module(f"detap.cli.commands.{cmd_name}").command
        return found


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"detap {__version__}")
        ctx.exit()


@click.group(
    cls=_Group,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
@click.pass_context
def group(ctx: click.Context) -> None:
    """Evaluate object detectors: AP, mAP and AR for PASCAL VOC and COCO.

    Exit status: 0 done, 1 a gate failed, 2 usage or input error, 3 an error of detap itself.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(USAGE)


def run() -> NoReturn:
    """Run the command line of this process and end it with the status.

    Where a shell asks, what may stand at the cursor is printed instead. The process ends at once:
    taking the interpreter apart costs 0.01 s and can only fail.
    """
    end_with(DEFECT, _TOO_LARGE)
    instruction = os.environ.pop(COMPLETE, None)
    if instruction is None:
        status = main(sys.argv[1:])
    else:
        from click.shell_completion import shell_complete  # only then

        status = shell_complete(group, {}, "detap", COMPLETE, instruction)
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except BrokenPipeError:
            pass
        except (OSError, ValueError):
            status = status or USAGE
    os._exit(status)


def main(arguments: Sequence[str]) -> int:
    """Run one command line.

    Parameters
    ----------
    arguments : sequence of str
        Without the name of the program.

    Returns
    -------
    int
        The exit status.
    """
    session = Session()
    with _Signals() as signals:
        try:
            status = _invoke(arguments, session)
        except BaseException as error:  # the one place where everything is caught
            # A signal counts, whatever became of it: an import may raise another error in its place
            status = signals.status or _failed(error, session)
        session.done()
    return signals.status or status


def _invoke(arguments: Sequence[str], session: Session) -> int:
    try:
        # Not group.main(), which has its own ideas of exit statuses.
        with group.make_context("detap", list(arguments), obj=session) as context:
            status = group.invoke(context)
    except click.exceptions.Exit as leaving:
        status = leaving.exit_code
    return int(status or 0)


def _failed(error: BaseException, session: Session) -> int:
    """Say what ended a command, and return the exit status."""
    status, message = next(ending(error) for kinds, ending in _ENDINGS if isinstance(error, kinds))
    if isinstance(error, BrokenPipeError):
        silence_stdout()
    if session.debug and message:
        import traceback  # only for this

        session.say(traceback.format_exc().rstrip())
    if message:
        session.say(escape_lines(message))
    return status


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    lines = [f"Error: {error.format_message()}"]
    if isinstance(context, click.Context):
        hint = f"Try '{context.command_path} --help' for help."
        lines = [context.get_usage(), hint, *lines]
    return "\n".join(lines)


def _input(error: InputError) -> str:
    # Made harmless one by one: no name with a newline in it can pose as a message of its own.
    lines = [escape(problem) for problem in error.problems]
    if error.omitted:
        lines.append(f"... and {error.omitted} more")
    return "Error: " + "\n".join(lines)


def _defect(error: BaseException) -> str:
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"Error: detap itself failed ({what}); run it with --debug and report what it shows"


_TOO_LARGE = "Error: out of memory: this input needs more than the process may use"

_NO_MEMORY = (
    "failed to map segment",
    "cannot allocate memory",
    "can't start new thread",
    # A library that found none, and did not say so.
    "without exception set",
    "without setting an exception",
)


def _short_of_memory(error: BaseException) -> str:
    """Return the message of an error that means that memory ran out, under whatever name.

    A library that cannot be loaded is an ImportError, a thread without a stack a RuntimeError.
    """
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return _TOO_LARGE
    text = str(error).lower()
    if isinstance(error, MemoryError) or any(words in text for words in _NO_MEMORY):
        return _TOO_LARGE
    return ""


_ENDINGS: tuple[tuple[Any, Callable[[Any], tuple[int, str]]], ...] = (
    (click.ClickException, lambda error: (error.exit_code, _usage(error))),
    (InputError, lambda error: (error.exit_status, _input(error))),
    (DetapError, lambda error: (error.exit_status, f"Error: {escape(error)}")),
    ((KeyboardInterrupt, click.Abort), lambda _: (INTERRUPTED, "")),
    # Who has read enough closes the pipe: as good an end as any.
    (BrokenPipeError, lambda _: (0, "")),
    (BaseException, lambda error: (DEFECT, _short_of_memory(error) or _defect(error))),
)
"""For each kind of exception, the first that fits counting: the exit status and the message."""


class _Signals:
    """Ctrl-C and SIGTERM, while a command runs: remembered, and raised as an exception.

    One that the caller handles in its own way, or ignores (as under nohup), is left to it.

    Attributes
    ----------
    status : int
        What the first that arrived lets the process end with; 0 where none did.
    """

    def __init__(self) -> None:
        self.status = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "_Signals":
        for number, usual in _SIGNALS:
            with suppress(ValueError, OSError):  # not in the main thread: no signal is ours
                if signal.getsignal(number) is usual:
                    self._before[number] = signal.signal(number, self._raise)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _raise(self, number: int, _: FrameType | None) -> NoReturn:
        if number == signal.SIGTERM:
            # A second one must not interrupt the clearing up after the first.
            signal.signal(number, signal.SIG_IGN)
        self.status = self.status or 128 + number
        raise _Signalled(self.status)
