"""Tables of detections and missed ground truths as CSV, JSON Lines or Parquet.

They are written in chunks of rows. Undefined is an empty field or null. Names in CSV are those of
:mod:`detap.report.writers.csv`.
"""

import csv
import json
from collections.abc import Iterable, Iterator
from functools import cache
from io import BytesIO, StringIO
from itertools import chain
from os.path import splitext
from typing import Any

import numpy as np

from detap.analysis.match_results import NOT_ANALYZED
from detap.analysis.matches_table import Columns, matches_table
from detap.errors import UsageError
from detap.escaping import escape
from detap.evaluation.results import Result
from detap.formats.arrow.format import check_installed
from detap.protocols import Protocol
from detap.report.writers.csv import field
from detap.tables.detection import Flags

_CHUNK_ROWS = 1 << 16
_UNDEFINED = {"file_name": "", "error": "", "ground_truth": 0}


def check(path: str, protocol: Protocol) -> None:
    """Raise UsageError if the table cannot be written."""
    suffix = _suffix(path)
    if suffix not in _WRITERS:
        raise UsageError(
            f"--matches {escape(path)}: use a file name that ends in .csv, .jsonl or .parquet"
        )
    protocol.require_score_matching(NOT_ANALYZED)
    if suffix == ".parquet":
        check_installed()


def render(path: str, result: Result, baseline: Result | None = None) -> Iterator[bytes]:
    """Yield the table in the format of the file name."""

    def chunks() -> Iterator[Columns]:  # at least one, with all columns
        detectors = {"current": result} | ({} if baseline is None else {"baseline": baseline})
        for name, detector in detectors.items():
            table = matches_table(detector)
            count = len(table["image"])
            if baseline is not None:
                table = {"detector": np.full(count, name, object), **table}
            for begin in range(0, max(count, 1), _CHUNK_ROWS):
                yield {key: column[begin : begin + _CHUNK_ROWS] for key, column in table.items()}

    return _WRITERS[_suffix(path)](chunks())


def _suffix(path: str) -> str:
    return splitext(path)[1].lower()


def _undefined(chunk: Columns, key: str) -> Flags:
    column = chunk[key]
    undefined: Flags = (
        np.isnan(column) if column.dtype.kind == "f" else column == _UNDEFINED.get(key)
    )
    return undefined


def _cells(chunk: Columns) -> Iterator[list[Any]]:
    """Yield the values of each column; undefined is None."""
    for key, column in chunk.items():
        values = column.tolist()
        for row in np.flatnonzero(_undefined(chunk, key)).tolist():
            values[row] = None
        yield values


def _csv(chunks: Iterable[Columns]) -> Iterator[bytes]:
    text_field = cache(field)
    for number, chunk in enumerate(chunks):
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if not number:
            writer.writerow(chunk)
        columns = (
            map(text_field, values) if column.dtype.kind == "O" else values
            for column, values in zip(chunk.values(), _cells(chunk), strict=True)
        )
        writer.writerows(zip(*columns, strict=True))
        yield text.getvalue().encode()


def _json_lines(chunks: Iterable[Columns]) -> Iterator[bytes]:
    for chunk in chunks:
        rows = zip(*_cells(chunk), strict=True)
        text = "".join(f"{json.dumps(dict(zip(chunk, row, strict=True)))}\n" for row in rows)
        # As in reports: ## before a bracket is a command to some CI systems.
        yield text.replace("##", "#\\u0023").encode()


def _parquet(chunks: Iterable[Columns]) -> Iterator[bytes]:
    import pyarrow.parquet  # lazy import (start-up time)

    def table(chunk: Columns) -> pyarrow.Table:
        return pyarrow.table(
            {
                key: pyarrow.array(map(text, values), pyarrow.string())
                if chunk[key].dtype.kind == "O"
                else pyarrow.array(chunk[key], mask=_undefined(chunk, key))
                for key, values in zip(chunk, _cells(chunk), strict=True)
            }
        )

    @cache
    def text(name: str | None) -> str | None:  # file names may have bytes that are not UTF-8
        return None if name is None else name.encode("utf-8", "backslashreplace").decode()

    tables = map(table, chunks)
    first, file = next(tables), BytesIO()
    with pyarrow.parquet.ParquetWriter(file, first.schema) as writer:
        for part in chain([first], tables):
            writer.write_table(part)
    yield file.getvalue()


_WRITERS = {".csv": _csv, ".jsonl": _json_lines, ".parquet": _parquet}
