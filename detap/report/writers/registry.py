"""The formats a report can be written in, by name and by file extension.

A writer is a module with a function ``render(report, style)`` that returns the whole text. To add
one, write the module and a line in :data:`WRITERS`.
"""

from collections.abc import Callable
from importlib import import_module
from os.path import splitext
from typing import NamedTuple

from detap.report.model import Report


class Style(NamedTuple):
    """The layout of a report."""

    width: int = 80  # of the terminal or page
    fold: bool = False  # long names to that width
    color: bool = False


class Writer(NamedTuple):
    """An output format."""

    name: str
    extensions: tuple[str, ...]  # of file names that select it
    module: str  # with its `render`
    for_people: bool = False  # in the encoding of the terminal; data is always UTF-8
    digests: bool = False  # shows the sha256 of the inputs
    extra: bool = False  # needs an extra, and the page source of the report

    def check_installed(self) -> None:
        """Check that the extra of the format is installed."""
        import_module(self.module).check_installed()

    def render(self, report: Report, style: Style) -> str:
        """Return the report in this format."""
        function: Callable[[Report, Style], str] = import_module(self.module).render
        return function(report, style)


WRITERS: dict[str, Writer] = {
    writer.name: writer
    for writer in (
        Writer("table", (".txt",), "detap.report.writers.text", for_people=True),
        Writer("json", (".json",), "detap.report.writers.json", digests=True),
        Writer("html", (".html", ".htm"), "detap.report.page", digests=True, extra=True),
        Writer("csv", (".csv",), "detap.report.writers.csv"),
        Writer("markdown", (".md",), "detap.report.writers.markdown"),
        Writer("latex", (".tex",), "detap.report.writers.latex"),
        Writer("junit", (".xml",), "detap.report.writers.junit"),
        Writer("github", (), "detap.report.writers.github"),
        Writer("gitlab", (), "detap.report.writers.gitlab"),
        Writer("dvc", (), "detap.report.writers.dvc"),
        Writer("codequality", (), "detap.report.writers.codequality"),
    )
}


def writer_for_path(path: str) -> Writer | None:
    """Return the writer of files with this extension, or None."""
    extension = splitext(path)[1].lower()
    return next((writer for writer in WRITERS.values() if extension in writer.extensions), None)
