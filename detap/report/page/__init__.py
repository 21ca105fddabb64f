"""The report as a self-contained HTML page.

``gallery`` computes the columns of the images, ``pictures`` the thumbnails; ``assembly`` puts them
and the other numbers and names into ``page.html.j2``, with the style sheet and ``script/``. The
page of several detectors is that of ``ranking``. Extra ``detap[report]``.
"""

import importlib.util
import os
from urllib.parse import quote

from detap.errors import UsageError
from detap.io.writing import STDOUT, make_folder
from detap.report.model import DataFolder, Report
from detap.report.writers.registry import Style


def render(report: Report, style: Style) -> str:
    """Return the page."""
    if report.page_source is None and report.kind != "detectors":
        raise UsageError(f"a {report.kind} report has no HTML page; use json or markdown")
    check_installed()
    if report.page_source is None:
        from detap.report.page.ranking import render_ranking

        return render_ranking(report)
    from detap.report.page.assembly import render_page

    return render_page(report, report.page_source)


def data_folder(path: str, page: str) -> DataFolder:
    """Make the folder of the images' data; return it with its URL relative to the page."""
    if page == STDOUT:
        raise UsageError("--page-data needs a page in a file; use -o page.html")
    make_folder(os.path.join(path, "thumbnails"))
    relative = os.path.relpath(path, os.path.dirname(page) or os.curdir)
    return DataFolder(path, quote(relative.replace(os.sep, "/")))


def check_installed() -> None:
    """Check that the packages of the page are installed."""
    for module, name in (("jinja2", "Jinja2"), ("PIL", "Pillow")):
        if importlib.util.find_spec(module) is None:
            raise UsageError(
                f"the HTML page needs {name}, which is not installed; pip install 'detap[report]'"
            )
