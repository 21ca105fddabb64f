"""Reports of results.

`sections` makes the tables and blocks of a :class:`~detap.report.model.Report`; `writers` has a
module for each output format, `page` the HTML page.
"""

from typing import Any


def schema(name: str = "report") -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a kind of report.

    Parameters
    ----------
    name : {"report", "comparison", "check", "ranking", "image", "explanation"}
        The command: ``detap eval``, ``compare``, ``check``, ``rank``, ``show`` or
        ``explain``.
    """
    from detap.report.sections.schema import schema_of_report

    return schema_of_report(name)
