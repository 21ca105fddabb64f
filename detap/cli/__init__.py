"""The command line: parse arguments, run a command, return an exit status.

:func:`main` catches every exception and returns the exit status:

==== =====================================================================
0    success; all gates passed
1    a gate failed, or a cross-check found a difference
2    invalid usage, input or output
3    an error of detap itself
130  interrupted (Ctrl-C)
143  terminated (SIGTERM)
==== =====================================================================

Each module of `commands` holds one command, and is imported when the command is run.
"""

import errno
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

import click
from click.shell_completion import shell_complete

from detap._version import __version__
from detap.cli._abort import end_with
from detap.cli.command import Group
from detap.cli.session import Session
from detap.errors import DetapError, InputError
from detap.escaping import escape, escape_lines
from detap.io.writing import silence_stdout

COMMANDS = {
    "eval": "Score detections against ground truth.",
    "check": "Check ground truth, detections or both.",
    "convert": "Convert to COCO JSON, VOC, YOLO or the format of a labelling tool.",
    "report": "Write an HTML page of the error analysis.",
    "compare": "Compare two or more detectors on the same ground truth.",
    "explain": "Explain a metric: by protocol, by value, or between reports.",
    "show": "Show the match results of one image.",
    "baseline": "Maintain the report that later ones are compared with.",
    "history": "Show metrics over the reports of many runs.",
    "badge": "Write a badge of a metric of a JSON report.",
    "config": "Show the settings of a command and the source of each.",
    "rank": "Score rankings: retrieval, or classification by scores.",
    "demo": "Run detap on a small example.",
    "completion": "Print the shell completion script.",
}
"""Commands and the first lines of their help; each is a module of `commands`."""

COMPLETE = "_DETAP_COMPLETE"  # environment variable with the completion request of a shell
DEFECT, USAGE, INTERRUPTED = 3, 2, 130

_SIGNALS = ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL))
"""Signals that end a command cleanly, and their default handlers."""


class _Interrupted(KeyboardInterrupt):
    """A signal that arrived during a command, with its exit status."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status


class _Group(Group):
    """A group that imports the module of a command on access."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        command: click.Command = import_module(f"detap.cli.commands.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])


@click.group(
    cls=_Group,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="detap %(version)s")
@click.pass_context
def group(ctx: click.Context) -> None:
    """Evaluate object detectors: AP, mAP and AR for PASCAL VOC and COCO.

    Exit status: 0 done, 1 a gate failed, 2 usage or input error, 3 an error of detap itself.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(USAGE)


def run() -> NoReturn:
    """Run the command line of this process, or complete it for a shell, and exit.

    The process ends without finalizing the interpreter, which takes 0.01 s and can fail.
    """
    end_with(DEFECT, _TOO_LARGE)  # in case a library ends the process, as OpenBLAS does
    instruction = os.environ.pop(COMPLETE, None)
    if instruction is None:
        status = main(sys.argv[1:])
    else:
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
    """Run one command line."""
    session = Session()
    with _Signals() as signals:
        try:
            # Not group.main(), which has other exit statuses.
            with group.make_context("detap", list(arguments), obj=session) as context:
                status = int(group.invoke(context) or 0)
        except click.exceptions.Exit as leaving:
            status = leaving.exit_code
        except BaseException as error:
            # An import may replace the exception of a signal by another one.
            status, message = (signals.status, "") if signals.status else _ending(error)
            if isinstance(error, BrokenPipeError):
                silence_stdout()
            if session.debug and message:
                import traceback

                session.print_line(traceback.format_exc().rstrip())
            if message:
                session.print_line(escape_lines(message))
        session.stop_progress()
    return signals.status or status


_TOO_LARGE = "Error: out of memory: this input needs more than the process may use"

_NO_MEMORY = (
    "failed to map segment",
    "cannot allocate memory",
    "can't start new thread",
    # Libraries whose allocation failed without an exception.
    "without exception set",
    "without setting an exception",
)
"""Parts of messages: a library that cannot be loaded, or a thread that gets no stack."""


def _ending(error: BaseException) -> tuple[int, str]:
    """Return the exit status and the message of an error."""
    if isinstance(error, click.ClickException):
        lines = [f"Error: {error.format_message()}"]
        context = getattr(error, "ctx", None)
        if isinstance(context, click.Context):
            hint = f"Try '{context.command_path} --help' for help."
            lines = [context.get_usage(), hint, *lines]
        return error.exit_code, "\n".join(lines)
    if isinstance(error, DetapError):
        problems = error.problems if isinstance(error, InputError) else error.args
        # Escaped one by one: a name with a newline must not look like another message.
        lines = [escape(problem) for problem in problems]
        if isinstance(error, InputError) and error.omitted:
            lines.append(f"... and {error.omitted} more")
        return error.exit_status, "Error: " + "\n".join(lines)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED, ""
    if isinstance(error, BrokenPipeError):
        return 0, ""  # the reader closed the pipe, as head does: not an error
    no_memory = isinstance(error, OSError) and error.errno == errno.ENOMEM
    text = str(error).lower()
    if no_memory or isinstance(error, MemoryError) or any(words in text for words in _NO_MEMORY):
        return DEFECT, _TOO_LARGE
    text = " ".join(f"{type(error).__name__}: {error}".split())
    message = f"Error: detap itself failed ({text}); run it with --debug and report what it shows"
    return DEFECT, message


class _Signals:
    """Handlers of Ctrl-C and SIGTERM that store the status and raise an exception.

    Signals that the caller handles or ignores (nohup) are left alone.
    """

    def __init__(self) -> None:
        self.status = 0  # exit status of the first signal
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "_Signals":
        for number, default in _SIGNALS:
            with suppress(ValueError, OSError):  # only the main thread can set handlers
                if signal.getsignal(number) is default:
                    self._previous[number] = signal.signal(number, self._raise)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _raise(self, number: int, _: FrameType | None) -> NoReturn:
        if number == signal.SIGTERM:
            # A second one must not interrupt the cleanup after the first.
            signal.signal(number, signal.SIG_IGN)
        self.status = self.status or 128 + number
        raise _Interrupted(self.status)
