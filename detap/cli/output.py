"""Report destinations: files given by ``-o``, and standard output."""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from shutil import get_terminal_size
from typing import Any, Self

from detap.cli.session import Session
from detap.errors import UsageError
from detap.escaping import escape
from detap.io.paths import SourceFile
from detap.io.writing import STDOUT, check_target, write, write_stdout
from detap.report.model import Report
from detap.report.numbers import RULE, UNDEFINED
from detap.report.writers.registry import WRITERS, Style, Writer

_PAGE = 80  # width of output that is not a terminal
DATA_FORMATS = ("table", "json", "csv", "markdown", "latex")
"""Formats of reports other than evaluations."""

_PLAIN = str.maketrans({UNDEFINED: "-", RULE: "-"})


@dataclass(frozen=True, slots=True)
class Outputs:
    """Formats and paths of the reports of a run."""

    stdout: Writer
    files: tuple[tuple[Writer, str], ...]
    inputs: tuple[str, ...] = ()  # paths that must not be written
    stdout_requested: bool = False  # also for quiet runs

    @classmethod
    def from_options(
        cls,
        options: dict[str, Any],
        inputs: Iterable[str],
        extra_files: Sequence[str] = (),
        *,
        subject: str = "",
        formats: Sequence[str] = DATA_FORMATS,
        hint: str = "",
    ) -> Self:
        """Remove the output options from `options`; raise an error if a report cannot be written.

        The command also writes `extra_files`. A report with a `subject` is not an evaluation,
        and has these formats; the error about others ends with `hint`.
        """
        output_format = options.pop("output_format")
        stdout = WRITERS[output_format or "table"]
        # A settings file and the command line may name the same file.
        requested: list[tuple[Writer | None, str]] = list(dict.fromkeys(options.pop("targets")))
        to_stdout = [writer for writer, path in requested if path == STDOUT]
        if len(to_stdout) > 1:
            raise UsageError("only one report can go to standard output")
        files = tuple((writer or stdout, path) for writer, path in requested if path != STDOUT)
        unknown = [path for writer, path in requested if writer is None and path != STDOUT]
        if unknown and output_format is None:
            path, names = escape(unknown[0]), ", ".join(WRITERS)
            raise UsageError(f"-o {path}: unknown extension; use FORMAT={path} with one of {names}")
        stdout = to_stdout[0] or stdout if to_stdout else stdout
        outputs = cls(stdout, files, tuple(inputs), bool(output_format or to_stdout))
        for writer in outputs.writers:
            if subject and writer.name not in formats:
                raise UsageError(
                    f"{subject} cannot be written as {writer.name}; use {', '.join(formats)}{hint}"
                )
        paths = [*(path for _, path in files), *extra_files]
        for path in paths:
            if paths.count(path) > 1:
                raise UsageError(f"{escape(path)} would be written twice")
        for writer in outputs.writers:
            if writer.extra:
                writer.check_installed()
        for path in paths:
            check_target(path, outputs.inputs)
        return outputs

    @property
    def writers(self) -> list[Writer]:
        """Writers of all reports."""
        return [self.stdout, *(writer for writer, _ in self.files)]

    @property
    def needs_digests(self) -> bool:
        """True if any report contains the sha256 of the inputs."""
        return any(writer.digests for writer in self.writers)

    @property
    def needs_page_source(self) -> bool:
        """True if any report needs the full result."""
        return any(writer.extra for writer in self.writers)

    def write(
        self,
        report: Report,
        read: Sequence[SourceFile] = (),
        *,
        quiet: bool = False,
        brief: Report | None = None,
    ) -> None:
        """Write the report to all files, then to standard output; as tables, the `brief` one."""

        def of(writer: Writer) -> Report:
            return report if brief is None or writer.name in ("json", "csv") else brief

        for writer, path in self.files:
            self.write_file(path, writer.render(of(writer), Style(width=_PAGE)), read)
        if any(writer.name == "github" for writer in self.writers):
            from detap.report.writers.github import append_summary

            append_summary(brief or report, Style(width=_PAGE))
        if quiet and not self.stdout_requested:
            return
        terminal = sys.stdout is not None and sys.stdout.isatty()
        style = Style(width=_PAGE)  # in a pipe or a file, names are not folded, to be searched for
        if terminal or os.environ.get("COLUMNS"):
            color = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
            style = Style(width=get_terminal_size((_PAGE, 24)).columns, fold=True, color=color)
        text = self.stdout.render(of(self.stdout), style)
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        try:
            data = text.encode(encoding if self.stdout.for_people else "utf-8")
        except UnicodeEncodeError:
            data = text.translate(_PLAIN).encode(encoding, "backslashreplace")
        write_stdout(data)

    def publish(self, report: Report, session: Session, read: Sequence[SourceFile] = ()) -> None:
        """Print the notes of the report, and write it."""
        session.stop_progress()
        session.print_notes(report.notes)
        session.check_warnings()
        self.write(report, read, quiet=session.quiet)

    def write_file(
        self,
        path: str,
        data: str | bytes | Iterable[bytes | memoryview],
        read: Sequence[SourceFile] = (),
    ) -> None:
        """Write a complete file or nothing."""
        write(path, data.encode() if isinstance(data, str) else data, self.inputs, read)
