"""Which classes a detector takes for which, as a part of a report."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypedDict

import numpy as np

from detap.analysis.confusion import Confusion, Rule, confusion
from detap.names import printable
from detap.report.fields import Count
from detap.report.model import Block, Cell, Column, Table
from detap.report.sections.analysis import Subject
from detap.report.values import rows_of


class ConfusionData(TypedDict):
    """Of --confusion.

    Rows are ground truths, columns detections, in the order of the classes, the last of each the
    background.
    """

    rule: Literal["protocol", "class-agnostic"]
    iou: float
    score_threshold: Annotated[
        float | None, "Detections below it are left out; null where none is."
    ]
    classes: list[str]
    matrix: list[list[Count]]
    found: Count
    confused: Count
    missed: Count
    background: Count


DATA = ConfusionData

MOST_PAIRS = 10
"""How many confusions a text lists."""

_STEPS = 4
"""How many steps of the threshold a page has, besides that of the best F1."""


def blocks(subject: Subject, value: Rule) -> Iterator[Block]:
    """Yield what became of the ground truths of each class, and the largest confusions."""
    found = confusion(subject.outcome, value, score=subject.score)
    least = "" if found.score_threshold is None else f", score from {found.score_threshold:.6g}"
    yield Block(
        "confusion",
        f"Confusion at IoU {found.iou:.6g}{least}, rule {found.rule}",
        {
            "rule": found.rule,
            "iou": found.iou,
            "score_threshold": found.score_threshold,
            "classes": list(found.classes),
            "matrix": found.matrix.tolist(),
            "found": found.found,
            "confused": found.confused,
            "missed": found.missed,
            "background": found.background,
        },
        tuple(_lines(found)),
        _table(found),
    )


def page_data(subject: Subject) -> dict[str, Any]:
    """Return the cells that are not empty at some steps of the threshold."""
    outcome, steps = subject.outcome, subject.steps
    # Neither end is among many: at the one nothing is confused, at the other all of the noise is.
    inner = np.linspace(0, len(steps) - 1, _STEPS + 2)[1:-1]
    chosen = {int(step) for step in inner} if len(steps) > _STEPS else set(range(len(steps)))
    place = subject.step_of(subject.best)
    places = sorted(chosen | {place}) if place is not None else []
    tables = [confusion(outcome, score=float(steps[step])).matrix for step in places]
    # Without detections there is no step, and every ground truth is missed.
    stack = np.stack(tables or [confusion(outcome).matrix])
    rows, columns = np.nonzero(stack.any(axis=0))
    cells = [
        [int(row), int(column), *stack[:, row, column].tolist()]
        for row, column in zip(rows, columns, strict=True)
    ]
    return {"confusion": {"rule": "protocol", "steps": places or [0], "cells": cells}}


def _lines(found: Confusion) -> list[str]:
    truths = found.matrix.sum(axis=1)
    pairs = found.largest(MOST_PAIRS)
    if not pairs:
        return ["no class is taken for another"]
    return [
        f"{printable(found.classes[pair.ground_truth])} taken for "
        f"{printable(found.classes[pair.prediction])}: {pair.pairs} of {truths[pair.ground_truth]}"
        for pair in pairs
    ]


def _table(found: Confusion) -> Table:
    inner = found.matrix[:-1, :-1]
    right = np.diag(inner)
    columns = {
        "ground_truths": found.matrix[:-1].sum(axis=1),
        "found": right,
        "confused": inner.sum(axis=1) - right,
        "missed": found.matrix[:-1, -1],
        "background": found.matrix[-1, :-1],
    }
    counts = {name: column.tolist() for name, column in columns.items()}
    totals: dict[str, Cell] = {name: sum(column) for name, column in counts.items()}
    return Table(_COLUMNS, rows_of({"name": found.classes, **counts}), {"name": "total", **totals})


_COLUMNS = (
    Column("name", "class", "class", "name"),
    Column("ground_truths", "ground truths", "GT", "count"),
    Column("found", "found", "found", "count"),
    Column("confused", "taken for another", "confused", "count"),
    Column("missed", "not found", "missed", "count"),
    Column("background", "detections of nothing", "bkg", "count"),
)
