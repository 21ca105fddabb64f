"""A small invented format: lines of ``image class x y w h [score]``, with a unit factor."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from detap.errors import InputError, Problem
from detap.formats.base import Format, Line
from detap.formats.catalogue import FORMATS
from detap.formats.options import Option
from detap.tables.detection import Detections, GroundTruth

UNITS = Option("units", "What a box's numbers are multiplied by.", "X")


def _rows(path: str | os.PathLike[str], columns: int) -> list[list[str]]:
    rows = [line.split() for line in Path(path).read_text("utf-8").splitlines()]
    for number, row in enumerate(rows, 1):
        if len(row) != columns:
            raise InputError(Problem(str(path), f"line {number}", f"has {len(row)} columns"))
    return rows


def _boxes(rows: list[list[str]], units: str) -> Any:
    return np.array([[float(x) * float(units) for x in row[2:6]] for row in rows])


class MadeUp(Format):
    """The invented format."""

    protocol = "voc2012"

    def read_truth_file(self, path: str, *, units: str = "1", limits: object = None) -> GroundTruth:
        del limits
        rows = _rows(path, 6)
        return GroundTruth.from_arrays(
            image=[row[0] for row in rows],
            label=[row[1] for row in rows],
            boxes=_boxes(rows, units),
            images=sorted({row[0] for row in rows}),
            box_format="xywh",
        )

    def read_detections_file(
        self, path: str, truth: GroundTruth, *, units: str = "1", limits: object = None
    ) -> Detections:
        del limits
        rows = _rows(path, 7)
        detections = Detections.from_arrays(
            image=[row[0] for row in rows],
            label=[row[1] for row in rows],
            boxes=_boxes(rows, units),
            score=[float(row[6]) for row in rows],
            box_format="xywh",
        )
        return detections.reindex_like(truth)


LINE = Line("made-up", "Made-up", "tests.formats.made_up.MadeUp", (".boxes",), (UNITS,))

if __name__ == "__main__":
    FORMATS.lines["made-up"] = LINE
    from detap.__main__ import main

    main()
