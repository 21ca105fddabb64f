"""The model of the page: numbers and names, not formatted.

The model is plain JSON; undefined numbers are None. Arrays over score thresholds hold the change at
each step down, joined by commas, with 0 left empty and none after the last to keep the page small.
"""

from collections.abc import Mapping
from typing import Any

from detap import metrics
from detap.analysis.comparison import Comparison, difference, resample_summary
from detap.analysis.intervals import Interval
from detap.errors import UsageError
from detap.escaping import escape
from detap.evaluation.results import Result, class_rows
from detap.report.model import PageSource, Report
from detap.report.numbers import plain
from detap.report.page.gallery import Gallery, gallery
from detap.report.sections import SECTIONS
from detap.report.sections.analysis import Analysis


def page_data(report: Report, source: PageSource) -> tuple[dict[str, Any], Gallery | None]:
    """Return the model of a page, and its images."""
    result, before = source.result, source.before
    analysis = Analysis(result, None if before is None else Analysis(before))
    classes = [escape(name) for name in result.classes]
    model: dict[str, Any] = {
        "classes": classes,
        "images": len(result.images),
        "table": plain(_table(report, result)),
        "baseline": plain(_baseline(report, source)),
        "analysis": None,
    }
    try:
        return model | {"analysis": _analysed(analysis)}, _gallery(analysis, source)
    except UsageError as error:
        return model | {"refused": str(error)}, None


def _analysed(analysis: Analysis) -> dict[str, Any]:
    match_results = analysis.match_results
    model = {"iou": match_results.iou, "truths": match_results.ground_truth_counts.tolist()}
    for section in SECTIONS:
        if section.page_data:
            model |= section.page_data(analysis)
    return model


def _gallery(analysis: Analysis, source: PageSource) -> Gallery:
    before = analysis.before
    return gallery(
        analysis.match_results,
        analysis.errors,
        analysis.steps,
        best=analysis.best,
        file_names=source.file_names,
        before=None if before is None else (before.match_results, before.errors),
    )


def _table(report: Report, result: Result) -> dict[str, Any]:
    """Return the class table, in the order of the classes."""
    columns = report.table.columns[1:]
    totals = report.table.totals or {}
    by_class = {(row["name"], row["id"]): row for row in report.table.rows}
    rows = [by_class[row["name"], row["id"]] for row in class_rows(result)]
    return {
        "columns": [
            {name: getattr(column, name) for name in ("key", "heading", "kind", "priority")}
            for column in columns
        ],
        "rows": [[row[column.key] for column in columns] for row in rows],
        "totals": [totals.get(column.key) for column in columns],
    }


def _baseline(report: Report, source: PageSource) -> dict[str, Any] | None:
    """Return the metrics of an earlier detector and of this one."""
    if source.before is not None:
        summary, rows = dict(source.before.summary), class_rows(source.before)
    elif source.record is not None:
        summary, rows = source.record["summary"], source.record["classes"]
    else:
        return None
    comparison = _comparison(source)
    primary = metrics.summary(source.result.protocol)[0]

    def interval(name: str, label: int | None = None) -> Interval | None:
        return None if comparison is None else comparison.interval(name, label)

    key, lower = primary.class_name, not primary.metric.higher_is_better
    earlier: Mapping[str, Any] = {str(row["name"]): row.get(key) for row in rows}
    return {
        "name": escape(source.earlier),
        "current": ", ".join(
            escape(entry["path"]) for entry in report.inputs if entry["role"] == "detections"
        ),
        "metrics": [
            _change(name, summary.get(name), value, interval(name))
            | {"lower_is_better": not report.columns[name].higher_is_better}
            for name, value in report.summary.items()
        ],
        "classes": [
            _change(
                escape(row["name"]),
                earlier.get(str(row["name"])),
                row[key],
                interval(primary.name, k),
            )
            | {"lower_is_better": lower}
            for k, row in enumerate(class_rows(source.result))
        ],
    }


def _comparison(source: PageSource) -> Comparison | None:
    """Return the comparison with an earlier detector, without counts of errors."""
    # What gates have resampled is not resampled again.
    before, result = source.before, source.result
    if before is None or result.protocol.matching != "by-score":
        return None
    drawn = resample_summary(before, result, known=source.resamples)
    pair = drawn.first, drawn.second
    return Comparison(before, result, tuple(result.summary), pair, None, confidence=0.95)


def _change(name: str, before: Any, now: Any, interval: Interval | None) -> dict[str, Any]:
    """Return a metric of both detectors and the difference; None if either is undefined."""
    known = before is not None and now is not None
    change = difference(float(before), float(now)) if known else None
    return {"name": name, "before": before, "now": now, "difference": change, "interval": interval}
