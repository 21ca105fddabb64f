"""The confusion matrix of a report."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypedDict

import numpy as np

from detap.analysis.confusion import Confusion, Rule, confusion
from detap.escaping import escape
from detap.report.fields import Count
from detap.report.model import Block, Cell, Column, Table
from detap.report.numbers import rows_of
from detap.report.sections.analysis import Analysis


class ConfusionData(TypedDict):
    """The data of --confusion.

    Rows are ground truths, columns detections, in the order of the classes, the last of each the
    background.
    """

    rule: Literal["protocol", "class-agnostic"]
    iou: float
    score_threshold: Annotated[float | None, "Minimum score; null if all detections count."]
    classes: list[str]
    matrix: list[list[Count]]
    matched: Count
    misclassified: Count
    missed: Count
    background: Count


DATA = ConfusionData

MOST_PAIRS = 10
"""Maximum number of confusions in text."""

_STEPS = 4
"""Number of score thresholds on the page, in addition to the best F1."""


def blocks(analysis: Analysis, value: Rule) -> Iterator[Block]:
    """Yield the confusion matrix of classes, and the largest confusions."""
    yield block_of(confusion(analysis.match_results, value, score=analysis.score))


def block_of(result: Confusion) -> Block:
    """Return the matrix and the largest confusions."""
    least = "" if result.score_threshold is None else f", score >= {result.score_threshold:.6g}"
    return Block(
        "confusion",
        f"Confusion matrix at IoU {result.iou:.6g}{least} (matching: {result.rule})",
        {
            "rule": result.rule,
            "iou": result.iou,
            "score_threshold": result.score_threshold,
            "classes": list(result.classes),
            "matrix": result.matrix.tolist(),
            "matched": result.matched,
            "misclassified": result.misclassified,
            "missed": result.missed,
            "background": result.background,
        },
        tuple(_lines(result)),
        _table(result),
    )


def page_data(analysis: Analysis) -> dict[str, Any]:
    """Return the matrix at some score thresholds, as cells that are not empty in all."""
    match_results, steps = analysis.match_results, analysis.steps
    # Neither end is among many: at the one nothing is confused, at the other all of the noise is.
    inner = np.linspace(0, len(steps) - 1, _STEPS + 2)[1:-1]
    chosen = {int(step) for step in inner} if len(steps) > _STEPS else set(range(len(steps)))
    best = analysis.step_of(analysis.best)
    selected = sorted(chosen | {best}) if best is not None else []
    tables = [confusion(match_results, score=float(steps[step])).matrix for step in selected]
    # Without detections there is no step, and every ground truth is missed.
    stack = np.stack(tables or [confusion(match_results).matrix])
    rows, columns = np.nonzero(stack.any(axis=0))
    cells = [
        [int(row), int(column), *stack[:, row, column].tolist()]
        for row, column in zip(rows, columns, strict=True)
    ]
    return {"confusion": {"rule": "protocol", "steps": selected or [0], "cells": cells}}


def _lines(result: Confusion) -> list[str]:
    ground_truths = result.matrix.sum(axis=1)
    pairs = result.largest(MOST_PAIRS)
    if not pairs:
        return ["No misclassifications"]
    return [
        f"{escape(result.classes[pair.ground_truth])} predicted as "
        f"{escape(result.classes[pair.prediction])}: "
        f"{pair.pairs} of {ground_truths[pair.ground_truth]}"
        for pair in pairs
    ]


def _table(result: Confusion) -> Table:
    inner = result.matrix[:-1, :-1]
    right = np.diag(inner)
    columns = {
        "ground_truths": result.matrix[:-1].sum(axis=1),
        "matched": right,
        "misclassified": inner.sum(axis=1) - right,
        "missed": result.matrix[:-1, -1],
        "background": result.matrix[-1, :-1],
    }
    counts = {name: column.tolist() for name, column in columns.items()}
    totals: dict[str, Cell] = {name: sum(column) for name, column in counts.items()}
    return Table(_COLUMNS, rows_of({"name": result.classes, **counts}), {"name": "total", **totals})


_COLUMNS = (
    Column("name", "class", "class", "name"),
    Column("ground_truths", "ground truths", "GT", "count"),
    Column("matched", "matched", "matched", "count"),
    Column("misclassified", "misclassified", "misclass.", "count"),
    Column("missed", "missed", "missed", "count"),
    Column("background", "background FP", "bkg FP", "count"),
)
