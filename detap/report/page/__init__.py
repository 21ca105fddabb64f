"""The report as a self-contained HTML page.

``data`` computes the numbers and names, ``pictures`` the thumbnails; ``assembly`` puts both into
``page.html.j2`` with the style sheet and ``script/``. Extra ``detap[report]``.
"""

from typing import TYPE_CHECKING

from detap.errors import UsageError

if TYPE_CHECKING:
    from detap.report.model import Report
    from detap.report.writers.registry import Style


def render(report: "Report", style: "Style") -> str:
    """Return the page.

    Raises
    ------
    UsageError
        If the report is not of a detector, or the extra is not installed.
    """
    if report.page_source is None:
        raise UsageError(f"a {report.kind} report has no HTML page; use json or markdown")
    check_installed()
    from detap.report.page.assembly import render_page

    return render_page(report, report.page_source)


def check_installed() -> None:
    """Check that the packages of the page are installed.

    Raises
    ------
    UsageError
        If one is missing.
    """
    from importlib.util import find_spec

    for module, name in (("jinja2", "Jinja2"), ("PIL", "Pillow")):
        if find_spec(module) is None:
            raise UsageError(
                f"the HTML page needs {name}, which is not installed; pip install 'detap[report]'"
            )
