r"""The report as strict JSON; `detap.report.schema` describes it.

The keys have a fixed order, undefined is null, floats are written so that they read back as the
very same number, and there is no timestamp: the same input gives the same bytes. All is ASCII,
other characters being ``\u`` escapes, so that no name can act on the terminal that shows it.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from detap._version import SCHEMA_VERSION
from detap.report.model import Report
from detap.report.numbers import plain
from detap.report.writers.registry import Style

ROWS = {
    "detection": "classes",
    "check": "classes",
    "classification": "classes",
    "retrieval": "queries",
    "comparison": "metrics",
    "detectors": "detectors",
    "agreement": "classes",
    "image": "detections",
    "history": "reports",
    "data_sets": "data_sets",
    "protocol_diff": "steps",
    "protocol_search": "protocols",
    "report_diff": "contributions",
}
"""The key of the rows of the main table, by the kind of report."""


def render(report: Report, style: Style) -> str:
    """Return the report as JSON text that ends in a newline."""
    return dump(as_dict(report))


def as_dict(report: Report) -> dict[str, Any]:
    """Return the JSON report as a dict; undefined numbers are None."""
    record: dict[str, Any] = plain(
        {
            "schema_version": SCHEMA_VERSION,
            "detap_version": report.version,
            "kind": report.kind,
            "signature": report.signature,
            "protocol": report.protocol,
            "inputs": report.inputs,
            **({"conclusion": report.conclusion} if report.conclusion else {}),
            "summary": report.summary,
            ROWS[report.kind]: report.rows or report.table.rows,
            "notes": [asdict(note) for note in report.notes],
            **{block.key: block.data for block in report.blocks if block.key},
        }
    )
    return record


def dump(record: Mapping[str, Any], *, indent: int | None = 2) -> str:
    """Return a record as JSON text that ends in a newline; NaN is not allowed."""
    text = json.dumps(record, indent=indent, allow_nan=False)
    # In a log, ## before a bracket is a command to some CI systems. It can only be in a string.
    return text.replace("##", "#\\u0023") + "\n"
