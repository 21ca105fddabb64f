"""The report as one page: a file of HTML that needs nothing but itself.

``data`` makes one plain model of numbers and names, ``pictures`` the thumbnails, ``assembly`` puts
both into ``page.html.j2`` with the style sheet and the script. Extra ``detap[report]``.
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
        Where the report is not of a detector, or the extra is not installed.
    """
    if report.material is None:
        raise UsageError(f"a {report.kind} has no page; write it as json or markdown")
    check_installed()
    from detap.report.page.assembly import render_page  # needs the extra

    return render_page(report, report.material)


def check_installed() -> None:
    """Make sure that what the page needs is there, before any work is done for it.

    Raises
    ------
    UsageError
        Naming what to install.
    """
    from importlib.util import find_spec  # only for a page

    for module, name in (("jinja2", "Jinja2"), ("PIL", "Pillow")):
        if find_spec(module) is None:
            raise UsageError(
                f"a report page needs {name}, which is not installed; "
                "install it by: pip install 'detap[report]'"
            )
