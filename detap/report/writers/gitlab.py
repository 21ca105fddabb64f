"""The numbers as a GitLab metrics report: OpenMetrics text, which others read too.

Undefined numbers are left out.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import isnan

from detap.escaping import escape
from detap.report.model import Report
from detap.report.sections.gates import FAILURES, checks_of
from detap.report.writers.registry import Style

Sample = tuple[Mapping[str, str], float]


def render(report: Report, style: Style) -> str:
    """Return the summary, the numbers of each row and the verdicts of the gates as gauges."""
    unit = "query" if report.kind == "retrieval" else "class"
    summary = (({"number": name}, value) for name, value in report.summary.items())
    gates = (
        (
            {"gate": check["name"], "kind": check["kind"], "place": str(place)},
            float(check["verdict"] not in FAILURES),
        )
        for place, check in enumerate(checks_of(report).all)
    )
    lines = [
        *_family("detap_summary", "A number of the summary.", summary),
        *_family(f"detap_{unit}", f"A number of one {unit}.", _rows(report, unit)),
        *_family("detap_gate_passed", "Whether a gate passed.", gates),
        "# EOF",
    ]
    return "".join(f"{line}\n" for line in lines)


def _rows(report: Report, unit: str) -> Iterator[Sample]:
    for place, row in enumerate(report.table.rows):
        for key, value in row.items():
            if key != "id" and isinstance(value, int | float):
                # Two rows may look alike once printed: their place tells them apart.
                labels = {unit: escape(row["name"]), "place": str(place), "number": key}
                yield labels, float(value)


def _family(name: str, about: str, samples: Iterable[Sample]) -> list[str]:
    lines = [
        f"{name}{{{','.join(_label(key, text) for key, text in labels.items())}}} {value!r}"
        for labels, value in samples
        if not isnan(value)
    ]
    return [f"# TYPE {name} gauge", f"# HELP {name} {about}", *lines] if lines else []


def _label(key: str, text: str) -> str:
    safe = escape(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'{key}="{safe}"'
