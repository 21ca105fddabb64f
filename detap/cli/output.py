"""Where reports go: files by ``-o``, and standard output."""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from detap.errors import UsageError
from detap.escaping import escape
from detap.io.writing import STDOUT, check_target, write, write_stdout
from detap.records import Record
from detap.report.model import Report
from detap.report.numbers import RULE, UNDEFINED
from detap.report.writers.registry import WRITERS, Style, Writer

if TYPE_CHECKING:
    from detap.tables.detection import SourceFile

_PAGE = 80  # the width of a page that is no terminal
_FEW = ("table", "json", "csv", "markdown")
"""What a report can be written as that is not of a detector's or a ranking's numbers."""

_PLAIN = str.maketrans({UNDEFINED: "-", RULE: "-"})


class Outputs(Record):
    """What is written where.

    Attributes
    ----------
    stdout : Writer
        The format of standard output.
    files : tuple of (Writer, str)
        Formats and paths.
    others : tuple of str
        Further files that the command writes by itself.
    inputs : tuple of str
        Paths that must not be written.
    want_digests : bool
        Whether any report shows the sha256 of the inputs.
    want_page_source : bool
        Whether any report asks more of the result than its numbers.
    asked : bool
        Whether standard output was asked for, so that a quiet run writes there too.
    """

    stdout: Writer
    files: tuple[tuple[Writer, str], ...]
    others: tuple[str, ...]
    inputs: tuple[str, ...]
    want_digests: bool
    want_page_source: bool
    asked: bool = False

    @classmethod
    def from_options(
        cls, options: dict[str, Any], inputs: Iterable[str], others: Iterable[str] = ()
    ) -> "Outputs":
        """Take the output options out of `options`."""
        named = options.pop("output_format")
        stdout = WRITERS[named or "table"]
        targets: list[tuple[Writer | None, str]] = list(options.pop("targets"))
        to_stdout = [sink for sink, path in targets if path == STDOUT]
        if len(to_stdout) > 1:
            raise UsageError("only one report can go to standard output")
        files = tuple(
            (sink or _unnamed(path, named), path) for sink, path in targets if path != STDOUT
        )
        paths = [path for _, path in files] + list(others)
        for path in paths:
            if paths.count(path) > 1:
                raise UsageError(f"{escape(path)} is to be written twice")
        stdout = to_stdout[0] or stdout if to_stdout else stdout
        sinks = [stdout, *(sink for sink, _ in files)]
        return cls(
            stdout,
            files,
            tuple(others),
            tuple(inputs),
            want_digests=any(sink.digests for sink in sinks),
            want_page_source=any(sink.extra for sink in sinks),
            asked=bool(named or to_stdout),
        )

    @property
    def sinks(self) -> list[Writer]:
        """The formats of all reports."""
        return [self.stdout, *(sink for sink, _ in self.files)]

    def refuse_others(self, what: str) -> None:
        """Raise UsageError where a report that has few forms is wanted in another."""
        for sink in self.sinks:
            if sink.name not in _FEW:
                raise UsageError(f"{what} has no form as {sink.name}; use {', '.join(_FEW)}")

    def check(self) -> None:
        """Refuse what cannot be written, before the work is done."""
        for sink in self.sinks:
            if sink.extra:
                sink.check_installed()
        for path in (*(path for _, path in self.files), *self.others):
            check_target(path, self.inputs)

    def write(
        self, report: Report, read: "Sequence[SourceFile]" = (), *, quiet: bool = False
    ) -> None:
        """Write the report everywhere: the files first, for the reader of stdout may be gone.

        Parameters
        ----------
        report : Report
            What to write.
        read : sequence of SourceFile
            What was read, and must not be written.
        quiet : bool
            Whether nothing goes to standard output unless it was asked for.
        """
        for sink, path in self.files:
            text = sink.render(report, Style(width=_PAGE))
            self.write_file(path, text, read)
        if any(sink.name == "github" for sink in self.sinks):
            from detap.report.writers.github import append_summary  # on GitHub alone

            append_summary(report, Style(width=_PAGE))
        if quiet and not self.asked:
            return
        text = self.stdout.render(report, _stdout_style())
        write_stdout(_encoded(text, self.stdout))

    def write_file(
        self,
        path: str,
        data: "str | bytes | Iterable[bytes | memoryview]",
        read: "Sequence[SourceFile]" = (),
    ) -> None:
        """Write one file, whole or not at all."""
        write(path, data.encode() if isinstance(data, str) else data, self.inputs, read)


def _unnamed(path: str, output_format: str | None) -> Writer:
    if output_format is None:
        known = ", ".join(WRITERS)
        raise UsageError(
            f"-o {escape(path)}: no format goes with this name; "
            f"write FORMAT={escape(path)}, with one of {known}"
        )
    return WRITERS[output_format]


def _stdout_style() -> Style:
    terminal = sys.stdout is not None and sys.stdout.isatty()
    if not terminal and not os.environ.get("COLUMNS"):
        # A pipe or a file: names stay whole, so that they can be searched for.
        return Style(width=_PAGE)
    from shutil import get_terminal_size  # only where there is one

    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Style(width=get_terminal_size((_PAGE, 24)).columns, fold=True, colour=colour)


def _encoded(text: str, sink: Writer) -> bytes:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    if not sink.for_people:
        return text.encode()
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_PLAIN).encode(encoding, "backslashreplace")
