"""The page of several detectors: ranking, matrix of pairs, and heat map of classes."""

from collections.abc import Mapping, Sequence
from math import isnan
from shlex import join, quote
from typing import Any

from detap.escaping import escape
from detap.report.model import Report
from detap.report.numbers import best_cells, change, fraction
from detap.report.page.assembly import cells_of, rendered

_WIDTH, _MARGIN = 160, 6  # of a drawn interval


def render_ranking(report: Report) -> str:
    """Return the page of a ranking."""
    blocks = {block.key: block for block in report.blocks}
    data: dict[str, Any] = {block.key: block.data for block in report.blocks}
    rows: Any = report.table.rows
    names = [row["name"] for row in rows]
    metric, pairs = data["ranking"]["metric"], blocks["pairs"]
    if pairs.table is not None:  # all of them, not --top
        pairs = pairs._replace(table=pairs.table._replace(rows=tuple(data["pairs"])))
    return rendered(
        "ranking.html.j2",
        report,
        [],
        scripts=("elements", "colors", "ranking"),
        styles=("page.css", "ranking.css"),
        metric=metric,
        value=fraction(rows[0][metric], 4),
        names=names,
        images=data["resampling"]["images"],
        ranking=cells_of(report.table),
        best=best_cells(report.table),
        intervals=_intervals(rows, data["ranking"]),
        lines=blocks["groups"].lines,
        matrix=_matrix(names, data),
        letters=[row["letters"] for row in rows],
        pairs=pairs,
        classes=[
            {**row, "values": [(value, fraction(value, 4)) for value in row["values"].values()]}
            for row in data["classes"]
        ],
        command=_command(report, names),
        selection=blocks.get("selection"),
    )


def _intervals(rows: Any, ranking: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the drawing of each interval on one scale; empty without intervals."""
    ends = [row[end] for row in rows for end in ("low", "high")]
    if any(map(isnan, ends)):
        return []
    scale = (_WIDTH - 2 * _MARGIN) / ((max(ends) - min(ends)) or 1)

    def position(value: float) -> str:
        return f"{_MARGIN + (value - min(ends)) * scale:.1f}"

    key = ranking["metric"]
    reference = next(row[key] for row in rows if row["name"] == ranking["reference"])
    return [
        {
            **{name: position(row[name]) for name in ("low", "high")},
            "value": position(row[key]),
            "reference": position(reference),
            "text": f"{fraction(row['low'], 4)} to {fraction(row['high'], 4)}",
        }
        for row in rows
    ]


def _matrix(names: Sequence[str], data: Mapping[str, Any]) -> list[list[dict[str, Any] | None]]:
    """Return the differences of rows minus columns; None on the diagonal."""
    better = 1 if data["ranking"]["higher_is_better"] else -1
    cells: dict[tuple[str, str], dict[str, Any]] = {}
    for pair in data["pairs"]:
        first, second, p = pair["first"], pair["second"], pair["adjusted_p"]
        significant = p <= 1 - data["resampling"]["confidence"]
        for key, value in (
            ((second, first), pair["difference"]),
            ((first, second), -pair["difference"]),
        ):
            cells[key] = {
                "value": value,
                "text": change(value, 4),
                "p": "" if isnan(p) else fraction(p, 4),
                "kind": ("up" if value * better > 0 else "down") if significant else "",
            }
    return [[cells.get((row, column)) for column in names] for row in names]


def _command(report: Report, names: Sequence[str]) -> dict[str, Any] | None:
    """Return the parts of the command that makes the page of a pair; None for several files."""
    truth: list[str] = []
    files: dict[str, list[str]] = {name: [] for name in names}
    for entry in report.inputs:
        files.get(entry.get("detector", ""), truth).append(escape(entry["path"]))
    if any(len(paths) != 1 for paths in files.values()):
        return None
    gt = join(part for path in truth for part in ("--gt", path))
    return {"start": f"detap report {gt} --dt", "paths": [quote(files[name][0]) for name in names]}
