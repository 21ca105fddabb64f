"""Report destinations: files given by ``-o``, and standard output."""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from detap.errors import UsageError
from detap.escaping import escape
from detap.io.writing import STDOUT, check_target, write, write_stdout
from detap.report.model import Report
from detap.report.numbers import RULE, UNDEFINED
from detap.report.writers.registry import WRITERS, Style, Writer

if TYPE_CHECKING:
    from detap.tables.detection import SourceFile

_PAGE = 80  # width of output that is not a terminal
_DATA_FORMATS = ("table", "json", "csv", "markdown")
"""Formats of reports other than evaluations."""

_PLAIN = str.maketrans({UNDEFINED: "-", RULE: "-"})


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """Formats and paths of the reports of a run.

    Attributes
    ----------
    stdout : Writer
        The format of standard output.
    files : tuple of (Writer, str)
        Formats and paths.
    extra_files : tuple of str
        Further files written by the command.
    inputs : tuple of str
        Input paths, which must not be written.
    needs_digests : bool
        Whether any report contains the sha256 of the inputs.
    needs_page_source : bool
        Whether any report needs the full result.
    stdout_requested : bool
        Whether standard output was requested, also for quiet runs.
    """

    stdout: Writer
    files: tuple[tuple[Writer, str], ...]
    extra_files: tuple[str, ...]
    inputs: tuple[str, ...]
    needs_digests: bool
    needs_page_source: bool
    stdout_requested: bool = False

    @classmethod
    def from_options(
        cls, options: dict[str, Any], inputs: Iterable[str], extra_files: Iterable[str] = ()
    ) -> "Outputs":
        """Remove the output options from `options`."""
        output_format = options.pop("output_format")
        stdout = WRITERS[output_format or "table"]
        # A settings file and the command line may name the same file.
        requested: list[tuple[Writer | None, str]] = list(dict.fromkeys(options.pop("targets")))
        to_stdout = [writer for writer, path in requested if path == STDOUT]
        if len(to_stdout) > 1:
            raise UsageError("only one report can go to standard output")
        files = tuple(
            (writer or _writer_of(path, output_format), path)
            for writer, path in requested
            if path != STDOUT
        )
        paths = [path for _, path in files] + list(extra_files)
        for path in paths:
            if paths.count(path) > 1:
                raise UsageError(f"{escape(path)} would be written twice")
        stdout = to_stdout[0] or stdout if to_stdout else stdout
        writers = [stdout, *(writer for writer, _ in files)]
        return cls(
            stdout,
            files,
            tuple(extra_files),
            tuple(inputs),
            needs_digests=any(writer.digests for writer in writers),
            needs_page_source=any(writer.extra for writer in writers),
            stdout_requested=bool(output_format or to_stdout),
        )

    @property
    def writers(self) -> list[Writer]:
        """Writers of all reports."""
        return [self.stdout, *(writer for writer, _ in self.files)]

    def require_data_format(self, subject: str) -> None:
        """Raise UsageError for formats other than table, JSON, CSV and Markdown."""
        for writer in self.writers:
            if writer.name not in _DATA_FORMATS:
                raise UsageError(
                    f"{subject} cannot be written as {writer.name}; use {', '.join(_DATA_FORMATS)}"
                )

    def check(self) -> None:
        """Raise an error if a report cannot be written."""
        for writer in self.writers:
            if writer.extra:
                writer.check_installed()
        for path in (*(path for _, path in self.files), *self.extra_files):
            check_target(path, self.inputs)

    def write(
        self, report: Report, read: "Sequence[SourceFile]" = (), *, quiet: bool = False
    ) -> None:
        """Write the report to all files, then to standard output."""
        for writer, path in self.files:
            text = writer.render(report, Style(width=_PAGE))
            self.write_file(path, text, read)
        if any(writer.name == "github" for writer in self.writers):
            from detap.report.writers.github import append_summary  # lazy import (start-up time)

            append_summary(report, Style(width=_PAGE))
        if quiet and not self.stdout_requested:
            return
        text = self.stdout.render(report, _stdout_style())
        write_stdout(_encoded(text, self.stdout))

    def write_file(
        self,
        path: str,
        data: "str | bytes | Iterable[bytes | memoryview]",
        read: "Sequence[SourceFile]" = (),
    ) -> None:
        """Write a complete file or nothing."""
        write(path, data.encode() if isinstance(data, str) else data, self.inputs, read)


def _writer_of(path: str, output_format: str | None) -> Writer:
    if output_format is None:
        names = ", ".join(WRITERS)
        raise UsageError(
            f"-o {escape(path)}: unknown extension; use FORMAT={escape(path)} with one of {names}"
        )
    return WRITERS[output_format]


def _stdout_style() -> Style:
    terminal = sys.stdout is not None and sys.stdout.isatty()
    if not terminal and not os.environ.get("COLUMNS"):
        # In a pipe or a file, names are not folded, so that they can be searched for.
        return Style(width=_PAGE)
    from shutil import get_terminal_size  # lazy import (start-up time)

    color = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Style(width=get_terminal_size((_PAGE, 24)).columns, fold=True, color=color)


def _encoded(text: str, writer: Writer) -> bytes:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    if not writer.for_people:
        return text.encode()
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_PLAIN).encode(encoding, "backslashreplace")
