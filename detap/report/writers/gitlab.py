"""The metrics as a GitLab metrics report (OpenMetrics text).

Undefined metrics are left out.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import isnan

from detap.escaping import escape
from detap.report.checks import FAILURES, checks_of
from detap.report.model import Report
from detap.report.writers.registry import Style

Sample = tuple[Mapping[str, str], float]


def render(report: Report, style: Style) -> str:
    """Return the summary, the metrics of each row and the gate statuses as gauges."""
    unit = {"retrieval": "query", "data_sets": "data_set"}.get(report.kind, "class")
    summary = (({"metric": name}, value) for name, value in report.summary.items())
    gates = (
        (
            {"gate": check["name"], "kind": check["kind"], "index": str(index)},
            float(check["status"] not in FAILURES),
        )
        for index, check in enumerate(checks_of(report).all)
    )
    lines = [
        *_family("detap_summary", "Summary metrics.", summary),
        *_family(f"detap_{unit}", f"Metrics by {unit}.", _rows(report, unit)),
        *_family("detap_gate_passed", "1 if the gate passed, else 0.", gates),
        "# EOF",
    ]
    return "".join(f"{line}\n" for line in lines)


def _rows(report: Report, unit: str) -> Iterator[Sample]:
    for index, row in enumerate(report.table.rows):
        for key, value in row.items():
            if key != "id" and isinstance(value, int | float):
                # Two names may look alike once escaped: the index distinguishes them.
                labels = {unit: escape(row["name"]), "index": str(index), "metric": key}
                yield labels, float(value)


def _family(name: str, about: str, samples: Iterable[Sample]) -> list[str]:
    marks = str.maketrans({"\\": "\\\\", '"': '\\"'})
    lines = []
    for labels, value in samples:
        texts = (f'{key}="{escape(text).translate(marks)}"' for key, text in labels.items())
        lines += [] if isnan(value) else [f"{name}{{{','.join(texts)}}} {value!r}"]
    return [f"# TYPE {name} gauge", f"# HELP {name} {about}", *lines] if lines else []
