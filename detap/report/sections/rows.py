"""The rows of ground truths and detections as a table, for Python."""

from collections.abc import Sequence

import numpy as np

from detap.report.model import Cell, Column, Table
from detap.report.numbers import rows_of
from detap.tables.detection import Detections, GroundTruth

_CORNERS = ("x1", "y1", "x2", "y2")
_FLAGS = ("crowd", "difficult", "ignore", "group_of")


def rows_table(table: GroundTruth | Detections, rows: Sequence[int]) -> Table:
    """Return some rows of a table: image, class, corners, and the score or the flags."""
    some = table.select(np.array(rows, np.int64))
    columns = [Column("image", "image", "image", "name"), Column("class", "class", "class", "name")]
    values: dict[str, Sequence[Cell]] = {
        "image": [str(table.images[index]) for index in some.image.tolist()],
        "class": [table.classes[label] for label in some.label.tolist()],
    }
    numbers = dict(zip(_CORNERS, some.corners.T, strict=True))
    if isinstance(some, Detections):
        numbers["score"] = some.score
    for name, column in numbers.items():
        columns.append(Column(name, name, name, "count"))
        values[name] = [f"{number:.6g}" for number in column.tolist()]
    if isinstance(some, GroundTruth) and any(getattr(table, flag).any() for flag in _FLAGS):
        columns.append(Column("flags", "flags", "flags", "text"))
        flags = zip(*(getattr(some, flag).tolist() for flag in _FLAGS), strict=True)
        values["flags"] = [
            ", ".join(name for name, is_set in zip(_FLAGS, row, strict=True) if is_set)
            for row in flags
        ]
    return Table(tuple(columns), rows_of(values))
