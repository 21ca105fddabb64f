"""Convert rows of VIA's CSV to the records of its JSON."""

import json
from collections import defaultdict
from typing import Any

from detap.formats.by_name.problems import Problems
from detap.formats.shapes.csv_rows import Row, Table
from detap.formats.via.sniff import COLUMNS
from detap.io.json_text import integer
from detap.io.problems import FaultError
from detap.text_input import quote

_SHOWN = 60
_EXPECTED = "export the annotations again, as CSV"


def records_of(table: Table, file: str, problems: Problems) -> list[tuple[str, Any]]:
    """Return the location and record of each image; collect problems.

    The keys of ``regions`` are their locations.
    """
    missing = [name for name in COLUMNS if name not in table.header]
    for name in missing:
        problems.add(file, "line 1", f"has no column {name}", _EXPECTED)
    images: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in [] if missing else table.rows:
        images[row.values["filename"], row.values["file_size"]].append(row)
    records = []
    for (name, _), rows in images.items():
        where = f"line {rows[0].line}"
        try:
            record = {"filename": name, "file_attributes": _cell(rows[0], "file_attributes")}
            record["regions"] = dict(map(_region, _with_region(rows)))
            records.append((where, record))
        except FaultError as fault:
            problems.add(file, where, fault.message, fault.hint)
    return records


def _region(row: Row) -> tuple[str, Any]:
    shape = _cell(row, "region_shape_attributes")
    attributes = _cell(row, "region_attributes")
    return f"line {row.line}", {"shape_attributes": shape, "region_attributes": attributes}


def _cell(row: Row, name: str) -> Any:
    """Return the JSON object in a cell."""
    text = row.values[name]
    try:
        value = json.loads(text, parse_int=integer)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        message = f"{name} of line {row.line} is {quote(text[:_SHOWN])}"
        raise FaultError(message, "expected a JSON object")
    return value


def _with_region(rows: list[Row]) -> list[Row]:
    """Return the rows of an image with a region; raise FaultError if rows are missing."""
    text = rows[0].values["region_count"]
    if text == "0" and len(rows) == 1:
        return []
    if text != str(len(rows)):
        name = quote(rows[0].values["filename"])
        raise FaultError(f"region_count of {name} is {quote(text)}, rows: {len(rows)}", _EXPECTED)
    return rows
