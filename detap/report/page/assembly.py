"""The page as text: template, style sheet, scripts and data in one file.

The page's content security policy allows only its own scripts and styles, by their SHA-256. Names
are JSON without markup characters, and enter elements by ``textContent`` only.
"""

import json
import os
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from detap.escaping import escape
from detap.io.writing import write
from detap.report.model import Block, Cell, Column, DataFolder, PageSource, Report
from detap.report.numbers import UNDEFINED, change, described, fraction, is_undefined
from detap.report.packing import LIMIT, MOST_BYTES, packed
from detap.report.page.data import page_data
from detap.report.page.gallery import Gallery
from detap.report.sections import SECTIONS

THUMBNAILS = "thumbnails"
"""The folder of pictures in a data folder."""

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
    model, images = page_data(report, source)
    warnings = [escape(note) for note in report.notes if note.severity == "warning"]
    infos = [escape(note) for note in report.notes if note.severity == "info"]
    packed_images, pictures, problems = _packed(images, source, len(as_json(model).encode()))
    model["folder"] = source.data_folder and source.data_folder.address
    infos += problems[:_MOST_PROBLEMS]
    if len(problems) > _MOST_PROBLEMS:
        infos.append(f"{len(problems) - _MOST_PROBLEMS:,} more images have such a problem")
    scripts = [_resource("vendor/uPlot.iife.min.js"), _script()]
    local = "" if source.data_folder is None else " 'self' file:"
    styles = [_resource(name) for name in _STYLES]
    environment = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        optimized=False,  # rendered once: it would cost more than it saves
    )
    environment.filters["name"] = escape
    page: str = environment.from_string(_resource("page.html.j2")).render(
        report=report,
        model=model,
        headline=[
            {"name": name, "params": described(report, name), "value": fraction(v, 4)}
            for name, v in report.summary.items()
        ],
        warnings=warnings,
        infos=infos,
        blocks=report.blocks,
        drawn=[section.name for section in SECTIONS if section.page_data],
        gates=next((block for block in report.blocks if block.key == "gates"), None),
        cells=_cells,
        trend=_trend,
        protocol=[(name, _field(value)) for name, value in report.protocol.items()],
        policy=(
            f"default-src 'none'; img-src data:{local}; base-uri 'none'; form-action 'none'; "
            f"script-src {_sources(scripts)}{local}; style-src {_sources(styles)}"
        ),
        scripts=[Markup(text) for text in scripts],
        styles=[Markup(text) for text in styles],
        data=Markup(as_json(model)),
        images=Markup(packed_images),
        pictures=Markup(as_json(pictures)),
    )
    return page


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
    if folder is None and len(text) > room and images.has_shapes:
        text = packed(images.without_shapes())
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
    from detap.report.page.pictures import ImageFile, data_uri, thumbnails

    sizes = images.columns["sizes"].tolist()
    numbers = images.by_errors.tolist()
    files = [
        ImageFile(
            images.names[number],
            source.file_names.get(images.names[number]),
            (sizes[number][0], sizes[number][1]) if sizes[number][0] else None,
        )
        for number in numbers
    ]

    def save(index: int, data: bytes) -> str:
        if folder is None:
            return data_uri(index, data)
        name = f"{numbers[index]}.webp"
        write(os.path.join(folder.path, THUMBNAILS, name), data)
        return f"{folder.address}/{THUMBNAILS}/{name}"

    result = thumbnails(source.pictures, files, save=save, max_bytes=max_bytes)
    pictures = {
        str(number): [result.uris[file.name], *result.sizes[file.name]]
        for number, file in zip(numbers, files, strict=True)
        if file.name in result.uris
    }
    return pictures, list(result.problems)


def _resource(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _script() -> str:
    parts = "\n".join(_resource(f"script/{name}.js") for name in _SCRIPT)
    return f'(() => {{\n"use strict";\n\n{parts}}})();\n'


def _sources(texts: list[str]) -> str:
    digests = (b64encode(sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests)


def _cells(block: Block) -> list[list[tuple[str, str]]]:
    """Return the rows of a block's table as classes and texts."""
    assert block.table is not None
    columns = block.table.columns
    return [
        [(column.kind, _number(row.get(column.key), column)) for column in columns]
        for row in block.table.rows
    ]


def _trend(block: Block) -> dict[str, Any] | None:
    """Return the first metric of a history as a line of 640 by 120, with its range."""
    assert block.table is not None
    column = block.table.columns[1]
    values: list[Any] = [row.get(column.key) for row in block.table.rows]
    known = [float(value) for value in values if not is_undefined(value)]
    if len(known) < 2:
        return None
    low, span = min(known), max(known) - min(known)
    lines: list[list[str]] = [[]]
    for index, value in enumerate(values):
        if is_undefined(value):
            lines.append([])
            continue
        height = (value - low) / span if span else 0.5
        lines[-1].append(f"{10 + 620 * index / (len(values) - 1):.1f},{110 - 100 * height:.1f}")
    return {
        "lines": [line for line in lines if line],
        "low": _number(low, column),
        "high": _number(max(known), column),
    }


def _number(value: Cell, column: Column) -> str:
    if value is None:
        return UNDEFINED
    if column.kind == "name":
        return escape(value)
    if column.kind == "fraction":
        return fraction(float(value), 4)
    if column.kind == "change":
        return change(float(value), 4)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _field(value: object) -> str:
    if isinstance(value, list | tuple):
        texts = [_field(item) for item in value]
        if len(texts) > 20:
            return f"{len(texts)}: {texts[0]}, {texts[1]} … {texts[-1]}"
        return ", ".join(texts)
    if isinstance(value, dict):
        return " ".join(f"{key} {_field(item)}" for key, item in value.items())
    return escape(value)
