"""The formats a report can be written in, by name and by file extension.

A sink is a module with a function ``render(report, style)`` that returns the whole text. To add
one, write the module and a line in :data:`WRITERS`.
"""

from collections.abc import Callable
from importlib import import_module
from os.path import splitext

from detap.records import Record
from detap.report.model import Report


class Style(Record):
    """How a report is laid out, where its format leaves that open.

    Attributes
    ----------
    width : int
        Columns of the terminal or page.
    fold : bool
        Whether long names are folded to that width; otherwise their lines grow.
    colour : bool
        Whether terminal colours may be used.
    """

    width: int = 80
    fold: bool = False
    colour: bool = False


class Writer(Record):
    """A format.

    Attributes
    ----------
    name : str
        As the command line calls it.
    extensions : tuple of str
        Of the files that are written so unless told otherwise.
    module : str
        Where its ``render`` is.
    for_people : bool
        Whether it is text to be read on a terminal of any encoding; data is always UTF-8.
    digests : bool
        Whether it shows the sha256 of the inputs.
    extra : bool
        Whether its module has a function ``check_installed``, for it needs more than detap does;
        and asks more of the result than its numbers.
    """

    name: str
    extensions: tuple[str, ...]
    module: str
    for_people: bool = False
    digests: bool = False
    extra: bool = False

    def check_installed(self) -> None:
        """Make sure that an extra one can be written, before the work is done that it is to hold.

        Raises
        ------
        UsageError
            Where something is not installed.
        """
        import_module(self.module).check_installed()

    def render(self, report: Report, style: Style) -> str:
        """Return the report in this format."""
        function: Callable[[Report, Style], str] = import_module(self.module).render
        return function(report, style)


WRITERS: dict[str, Writer] = {
    sink.name: sink
    for sink in (
        Writer("table", (".txt",), "detap.report.writers.text", for_people=True),
        Writer("json", (".json",), "detap.report.writers.json", digests=True),
        Writer("html", (".html", ".htm"), "detap.report.page", digests=True, extra=True),
        Writer("csv", (".csv",), "detap.report.writers.csv"),
        Writer("markdown", (".md",), "detap.report.writers.markdown"),
        Writer("junit", (".xml",), "detap.report.writers.junit"),
        Writer("github", (), "detap.report.writers.github"),
        Writer("gitlab", (), "detap.report.writers.gitlab"),
        Writer("codequality", (), "detap.report.writers.codequality"),
    )
}
"""Every format, by name."""


def writer_for_path(path: str) -> Writer | None:
    """Return the sink that writes files of this extension, or None."""
    extension = splitext(path)[1].lower()
    return next((sink for sink in WRITERS.values() if extension in sink.extensions), None)
