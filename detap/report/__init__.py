"""Results as reports: sections of numbers, and one small sink for each form.

`sections` makes a :class:`~detap.report.model.Report` of a result, and the blocks beside its
table; `sinks` writes it, a module for each form.
"""

from typing import Any


def schema(name: str = "report") -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) that every report of a kind obeys.

    Parameters
    ----------
    name : {"report", "comparison", "check", "ranking", "image", "explanation"}
        What wrote the report: ``detap eval``, ``compare``, ``check``, ``rank``, ``show`` or
        ``explain``.
    """
    from detap.report.sections.schema import schema_of_report  # not for an evaluation

    return schema_of_report(name)
