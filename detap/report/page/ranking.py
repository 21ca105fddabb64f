"""The page of several detectors: ranking, matrix of pairs, and heat map of classes."""

from collections.abc import Sequence
from shlex import join, quote
from typing import Any

from detap.escaping import escape
from detap.report.model import Block, Column, Report, Table, name_column
from detap.report.numbers import change, fraction
from detap.report.page.assembly import rendered
from detap.report.sections.comparison import class_table


def render_ranking(report: Report) -> str:
    """Return the page of a ranking."""
    blocks = {block.key: block for block in report.blocks}
    data: dict[str, Any] = {block.key: block.data for block in report.blocks}
    rows: Any = report.table.rows
    names, metric = [row["name"] for row in rows], data["ranking"]["metric"]
    pairs = blocks["pairs"]
    if pairs.table is not None:  # all of them, not --top, without the line on the hidden ones
        table = pairs.table._replace(rows=tuple(data["pairs"]))
        pairs = pairs._replace(table=table, lines=pairs.lines[-1:])
    # The differences of rows minus columns, with a star where they are significant.
    texts: dict[Any, str] = {}
    for pair in data["pairs"]:
        star = "*" * (pair["adjusted_p"] <= 1 - data["resampling"]["confidence"])
        texts[pair["second"], pair["first"]] = change(pair["difference"], 4) + star
        texts[pair["first"], pair["second"]] = change(-pair["difference"], 4) + star
    columns = [Column(f"detector {n}", name, "", "count") for n, name in enumerate(names)]
    letters = [Column("letters", "group", "group", "text")] if data["groups"] else []
    differences = [
        row | {c.key: texts.get((row["name"], c.heading), "") for c in columns} for row in rows
    ]
    matrix = Table((name_column("detector"), *letters, *columns), tuple(differences))
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
        reference=names.index(data["ranking"]["reference"]),
        ranking=Block("", "Ranking", {}, blocks["groups"].lines, report.table),
        matrix=Block("", "Differences of all pairs", {}, table=matrix),
        pairs=pairs,
        classes=Block("", f"{metric} by class", {}, table=class_table(names, data["classes"])),
        command=_command(report, names),
    )


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
