"""The page as text: template, style sheet, scripts and data in one file.

The page's content security policy allows only its own scripts and styles, by their SHA-256. Names
are JSON without markup characters, and enter elements by ``textContent`` only.
"""

import json
import os
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from math import nan
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from detap import metrics
from detap.analysis.bootstrap import paired_resamples
from detap.analysis.comparison import Comparison
from detap.analysis.intervals import Interval
from detap.core.threads import SMALL_WORK, memory_is_tight, thread_count
from detap.errors import UsageError
from detap.escaping import escape
from detap.evaluation.results import class_rows
from detap.io.writing import write
from detap.report.model import (
    Block,
    Cell,
    Column,
    DataFolder,
    PageSource,
    Report,
    Table,
    columns_of,
    name_column,
)
from detap.report.numbers import best_cells, described, fraction, in_column, is_undefined, plain
from detap.report.packing import LIMIT, MOST_BYTES, packed
from detap.report.page.gallery import Gallery, gallery
from detap.report.page.pictures import Pictures, data_uri, thumbnails
from detap.report.sections import SECTIONS
from detap.report.sections.analysis import Analysis
from detap.report.sections.comparison import conclusion, pair_row
from detap.report.sections.operating_point import counts_by_step

THUMBNAILS = "thumbnails"  # the folder of pictures in a data folder
_REST = 500_000  # for all but the data
_MOST_PROBLEMS = 20

# The files of script/ in the order in which they run, as one function.
_SCRIPT = (
    *("model", "elements", "labels", "colors", "state", "counts", "bar", "charts", "change"),
    *("errors", "operating", "classes", "curves", "confusion", "calibration", "breakdowns"),
    *("images", "shapes", "drawing", "gallery", "viewer", "navigation", "start"),
)
_STYLES = ("vendor/uPlot.min.css", "page.css")
_ESCAPES = {ord(mark): f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029"}


def render_page(report: Report, source: PageSource) -> str:
    """Return the page of a report."""
    model, images = _model(report, source)
    packed_images, pictures, problems = _packed(images, source, len(as_json(model).encode()))
    model["folder"] = source.data_folder and source.data_folder.address
    infos = problems[:_MOST_PROBLEMS]
    if len(problems) > _MOST_PROBLEMS:
        infos.append(f"{len(problems) - _MOST_PROBLEMS:,} more images have such a problem")
    return rendered(
        "page.html.j2",
        report,
        infos,
        libraries=("vendor/uPlot.iife.min.js",),
        model=model,
        headline=[
            {"name": name, "params": described(report, name), "value": fraction(v, 4)}
            for name, v in report.summary.items()
        ],
        drawn=[section.name for section in SECTIONS if section.page_data],
        scored="errors" in (model["analysis"] or ()),
        gates=next((block for block in report.blocks if block.key == "gates"), None),
        trend=_trend,
        thresholds=_thresholds(report),
        local="" if source.data_folder is None else " 'self' file:",
        data=Markup(as_json(model)),
        images=Markup(packed_images),
        pictures=Markup(as_json(pictures)),
    )


def rendered(
    template: str,
    report: Report,
    infos: Sequence[str],
    *,
    libraries: Sequence[str] = (),
    scripts: Sequence[str] = _SCRIPT,
    styles: Sequence[str] = _STYLES,
    local: str = "",
    **values: Any,
) -> str:
    """Return a page of a template, which may run these scripts and apply these styles alone."""
    parts = "\n".join(_resource(f"script/{name}.js") for name in scripts)
    texts = [*map(_resource, libraries), f'(() => {{\n"use strict";\n\n{parts}}})();\n']
    sheets = [_resource(name) for name in styles]
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        optimized=False,  # rendered once: it would cost more than it saves
    )
    environment.filters["name"] = escape
    notes = report.notes
    page: str = environment.get_template(template).render(
        report=report,
        warnings=[escape(note) for note in notes if note.severity == "warning"],
        infos=[*(escape(note) for note in notes if note.severity == "info"), *infos],
        blocks=report.blocks,
        cells=cells_of,
        protocol=[(name, _field(value)) for name, value in report.protocol.items()],
        policy=(
            f"default-src 'none'; img-src data:{local}; base-uri 'none'; form-action 'none'; "
            f"script-src {_sources(texts)}{local}; style-src {_sources(sheets)}"
        ),
        scripts=[Markup(text) for text in texts],
        styles=[Markup(text) for text in sheets],
        **values,
    )
    return page


def _model(report: Report, source: PageSource) -> tuple[dict[str, Any], Gallery | None]:
    """Return the model of a page, and its images: plain JSON, undefined numbers are None."""
    result, before = source.result, source.before
    points = [block.data for block in report.blocks if block.key == "operating_point"]
    threshold = points[0]["score_threshold"] if points else None
    analysis = Analysis(result, None if before is None else Analysis(before), threshold)
    # The class table, in the order of the classes.
    columns, totals = report.table.columns[1:], report.table.totals or {}
    by_class = {(row["name"], row["id"]): row for row in report.table.rows}
    rows = [by_class[row["name"], row["id"]] for row in class_rows(result)]
    kept = ("key", "heading", "kind", "priority")
    table = {
        "columns": [{name: getattr(column, name) for name in kept} for column in columns],
        "rows": [[row[column.key] for column in columns] for row in rows],
        "totals": [totals.get(column.key) for column in columns],
        "totalsName": totals.get("name"),
    }
    model: dict[str, Any] = {
        "classes": [escape(name) for name in result.classes],
        "images": len(result.images),
        "table": plain(table),
        "baseline": plain(_baseline(report, source)),
        "analysis": None,
    }
    try:
        match_results = analysis.match_results
        truths = match_results.ground_truth_counts.tolist()
        data: dict[str, Any] = {"iou": match_results.iou, "truths": truths}
        for section in SECTIONS:
            if section.page_data and (analysis.has_scores or not section.needs_scores):
                data |= section.page_data(analysis)
        if not analysis.has_scores:
            data |= {"operating": counts_by_step(analysis), "histograms": None}
        return model | {"analysis": data}, gallery(analysis, source.file_names)
    except UsageError as error:
        return model | {"refused": str(error)}, None


def _thresholds(report: Report) -> Block | None:
    """Return the metrics of detections without scores at each IoU threshold, as a table."""
    for block in report.blocks:
        if block.key == "unscored" and "by_threshold" in block.data:
            rows = [{"name": f"{row['iou']:.4g}", **row} for row in block.data["by_threshold"]]
            columns = (
                name_column("IoU"),
                *columns_of("fraction", "F1", "P", "R", macro_F1="macro-F1", mean_iou="mean IoU"),
                *columns_of("count", "true_positives", "false_positives", "false_negatives"),
            )
            table = Table(columns, tuple(rows))
            return Block("thresholds", "F1 over IoU thresholds", {}, table=table)
    return None


def _baseline(report: Report, source: PageSource) -> dict[str, Any] | None:
    """Return the metrics of an earlier detector and of this one."""
    if source.before is not None:
        summary, rows = dict(source.before.summary), class_rows(source.before)
    elif source.record is not None:
        summary, rows = source.record["summary"], source.record["classes"]
    else:
        return None
    before, result, comparison = source.before, source.result, None
    if before is not None and result.protocol.matching == "by-score":
        resamples = paired_resamples(before, result)
        comparison = Comparison(before, result, resamples, confidence=0.95)
    primary = metrics.summary(source.result.protocol)[0]

    def interval(name: str, label: int | None = None) -> Interval:
        return (nan, nan) if comparison is None else comparison.interval(name, label)

    key, lower = primary.class_name, not primary.metric.higher_is_better
    earlier: Mapping[str, Any] = {str(row["name"]): row.get(key) for row in rows}
    current = [entry["path"] for entry in report.inputs if entry["role"] == "detections"]
    changes = [
        pair_row(name, summary.get(name), value, interval(name))
        | {"lower_is_better": not report.columns[name].higher_is_better}
        for name, value in report.summary.items()
    ]
    classes = [
        pair_row(escape(name), earlier.get(name), row[key], interval(primary.name, label))
        | {"lower_is_better": lower}
        for label, row in enumerate(class_rows(source.result))
        for name in [str(row["name"])]
    ]
    return {
        "name": escape(source.earlier),
        "current": ", ".join(map(escape, current)),
        "short": escape(_short_name(source.earlier, current)),
        "conclusion": conclusion(changes[0], classes, comparison),
        "compared": comparison is not None,
        "metrics": changes,
        "classes": classes,
    }


def _short_name(path: str, others: Sequence[str]) -> str:
    """Return the last part of a path, or as many as tell it from the others."""
    parts, *rest = [re.split(r"[/\\]", one.rstrip("/\\")) for one in (path, *others)]
    for count in range(1, len(parts)):
        if all(names[-count:] != parts[-count:] for names in rest):
            return "/".join(parts[-count:])
    return path


def as_json(model: dict[str, Any]) -> str:
    """Return a model as JSON without markup characters."""
    text = json.dumps(model, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def _packed(
    images: Gallery | None, source: PageSource, size: int
) -> tuple[str, dict[str, Any], list[str]]:
    """Return the packed images, their pictures and the problems; write those of a folder."""
    if images is None:
        return "", {}, []
    folder, notes = source.data_folder, []
    text, room = packed(images.columns), MOST_BYTES - size - _REST
    tables = {name: images.columns[name] for name in ("truths", "detector", "baseline")}
    if folder is None and len(text) > room and any(t["shapes"] for t in tables.values() if t):
        boxes = {name: table and {**table, "shapes": {}} for name, table in tables.items()}
        text = packed({**images.columns, **boxes})
        notes.append(f"masks, polygons and keypoints are drawn as boxes: {LIMIT}")
    if folder is None and len(text) > room:
        return "", {}, [f"no images: their boxes have {len(text) / 1e6:.0f} MB; {LIMIT}"]
    if folder is not None:
        write(os.path.join(folder.path, "images.js"), f'const packedImages = "{text}";'.encode())
        text = ""
    pictures, problems = _pictures(images, source, folder, room - len(text))
    return text, pictures, [*notes, *problems]


def _pictures(
    images: Gallery, source: PageSource, folder: DataFolder | None, max_bytes: int
) -> tuple[dict[str, Any], list[str]]:
    """Return address, width and height of thumbnails by image number, and the problems."""
    if source.pictures is None:
        return {}, []
    sizes = images.columns["sizes"].tolist()
    numbers = images.by_errors.tolist()
    sized = {images.names[n]: tuple(sizes[n]) if sizes[n][0] else None for n in numbers}

    def save(index: int, data: bytes) -> str:
        if folder is None:
            return data_uri(data)
        name = f"{numbers[index]}.webp"
        write(os.path.join(folder.path, THUMBNAILS, name), data)
        return f"{folder.address}/{THUMBNAILS}/{name}"

    threads = 1 if memory_is_tight() else source.result._run.threads or thread_count(SMALL_WORK)
    files = Pictures(source.pictures, source.file_names)
    shown, problems = thumbnails(files, sized, save=save, max_bytes=max_bytes, threads=threads)
    of_numbers = {str(n): shown[images.names[n]] for n in numbers if images.names[n] in shown}
    return of_numbers, problems


def _resource(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _sources(texts: list[str]) -> str:
    digests = (b64encode(sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests)


def cells_of(table: Table) -> list[list[tuple[str, str]]]:
    """Return the rows of a table as classes and texts."""
    best = best_cells(table)

    def cell(n: int, column: Column) -> tuple[str, str]:
        kind = column.kind + " best" * ((n, column.key) in best)
        return kind, _number(table.rows[n].get(column.key), column)

    return [[cell(n, column) for column in table.columns] for n in range(len(table.rows))]


def _trend(block: Block) -> dict[str, Any] | None:
    """Return the first metric of a history as a line of 640 by 120, with its range."""
    assert block.table is not None
    column = block.table.columns[1]
    values: list[Any] = [row.get(column.key) for row in block.table.rows]
    known = [float(value) for value in values if not is_undefined(value)]
    if len(known) < 2:
        return None
    low, span = min(known), max(known) - min(known)

    def point(index: int, value: float) -> str:
        height = (value - low) / span if span else 0.5
        return f"{10 + 620 * index / (len(values) - 1):.1f},{110 - 100 * height:.1f}"

    groups = groupby(enumerate(values), lambda item: is_undefined(item[1]))
    return {
        "lines": [[point(*item) for item in run] for is_gap, run in groups if not is_gap],
        "low": _number(low, column),
        "high": _number(max(known), column),
    }


def _number(value: Cell, column: Column) -> str:
    """Format a value as other writers do, with separators of thousands in counts."""
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, int) and column.kind == "count":
        return f"{value:,}"
    return in_column(column.kind, value, 4)


def _field(value: object) -> str:
    if isinstance(value, list | tuple):
        texts = [_field(item) for item in value]
        if len(texts) > 20:
            return f"{len(texts)}: {texts[0]}, {texts[1]} … {texts[-1]}"
        return ", ".join(texts)
    if isinstance(value, dict):
        return " ".join(f"{key} {_field(item)}" for key, item in value.items())
    return escape(value)
