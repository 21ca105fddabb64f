"""The operating point: precision, recall and F1 at a score threshold."""

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np

from detap.analysis.operating import OperatingPoint, Point, Threshold, operating_point
from detap.metrics.at_threshold import AT_THRESHOLD
from detap.report.fields import ClassId, Count, Fraction, Object, each, field, list_of
from detap.report.model import Block, Cell, Column, Table, columns_of, name_column
from detap.report.numbers import plain, threshold
from detap.report.sections.analysis import Analysis, joined
from detap.tables.detection import Floats

OverallPoint = Object(
    "OverallPoint",
    score=field(float | None, "The threshold; null without detections."),
    **each(Fraction, "F1", "precision", "recall"),
    false_positives_per_image=field(float | None, minimum=0),
    **each(Count, "true_positives", "false_positives", "false_negatives"),
)

DATA = Object(
    "OperatingPointData",
    "Precision, recall and F1 of --score-threshold.",
    score_threshold=field(float | None, "Of all classes; null if each class is at its best F1."),
    iou=float,
    overall=field(OverallPoint, "Of the counts of all classes together."),
    macro_F1=Fraction,
    classes=list_of(Object("ClassPoint", **OverallPoint.fields, name=str, id=ClassId)),
)

_RECALLS = np.arange(101) / 100
_FALSE = 5  # the types of errors.TYPES that false positives are of


def blocks(analysis: Analysis, value: Threshold | None) -> Iterator[Block]:
    """Yield precision, recall and F1 at a threshold or each class's best F1."""
    point = operating_point(analysis.match_results, "best" if value is None else value)
    yield block_of(point, None if isinstance(value, str) else value, analysis.names)


def block_of(
    point: OperatingPoint, score_threshold: float | None, names: Sequence[Mapping[str, Cell]]
) -> Block:
    """Return the block of an operating point; `names` has a row per class."""
    overall = _numbers(point.overall)
    pairs = zip(names, point.by_class, strict=True)
    rows = [{**name, **_numbers(of_class)} for name, of_class in pairs]
    at = (
        "best F1 per class" if score_threshold is None else f"score >= {threshold(score_threshold)}"
    )
    mean = "undefined" if isnan(point.macro_f1) else f"{point.macro_f1:.4f}"
    return Block(
        "operating_point",
        f"Operating point: {at}, IoU {point.iou:.6g}",
        DATA(
            point,
            score_threshold=score_threshold,
            overall=overall,
            macro_F1=point.macro_f1,
            classes=rows,
        ),
        (f"Mean F1 over classes with ground truth: {mean}",),
        Table(_COLUMNS, tuple(rows), {"name": "all classes", **overall}),
    )


def _numbers(point: Point) -> dict[str, Any]:
    return OverallPoint(
        point, **{AT_THRESHOLD[name].key: value for name, value in point.metrics().items()}
    )


_COLUMNS = (
    name_column("class"),
    *columns_of("threshold", "score"),
    *columns_of("fraction", "F1", "precision"),
    Column("recall", "recall", "rec", "fraction"),
    Column("false_positives_per_image", "FP per image", "FP/img", "fraction"),
    *columns_of("count", "true_positives", "false_positives", "false_negatives", priority=1),
)


def page_data(analysis: Analysis) -> dict[str, Any]:
    """Return the detections added at each score step, by result, and the curves."""
    before = analysis.before
    return {
        "operating": counts_by_step(analysis),
        "curves": _curves(analysis),
        "curves_before": None if before is None else _curves(before),
    }


def counts_by_step(analysis: Analysis) -> dict[str, Any]:
    """Return the detections added at each score step, by result; without scores, at one step."""
    steps, before = analysis.steps, analysis.before
    points = analysis.sweeps.best.by_class if analysis.has_scores else ()
    return {
        "scores": plain(steps.tolist()),
        "start": None if analysis.score is None else analysis.step_of(analysis.score),
        "best": analysis.step_of(analysis.best),
        "best_by_class": [analysis.step_of(point.score) for point in points],
        "added": _added(analysis, steps),
        "added_before": None if before is None else _added(before, steps),
    }


def _added(analysis: Analysis, steps: Floats) -> list[list[str]]:
    """Return the detections added at each step, by class and result, as texts for the page."""
    match_results = analysis.match_results
    ranked = match_results.by_score
    ranked = ranked[match_results.scored[ranked]]
    detections = match_results.boxes[0]
    # The first step whose threshold a detection reaches; those below the last one are dropped.
    step = np.searchsorted(-steps, -detections.score[ranked])
    result = np.where(match_results.true_positive[ranked], 0, analysis.errors.kind[ranked] + 1)
    classes, count = len(match_results.classes), len(steps)
    cell = (detections.label[ranked].astype(np.int64) * (_FALSE + 1) + result) * (count + 1) + step
    added = np.bincount(cell, minlength=classes * (_FALSE + 1) * (count + 1))
    added = added.reshape(classes, _FALSE + 1, count + 1)[:, :, :count]
    return [[joined(row) for row in of_class] for of_class in added]


def _curves(analysis: Analysis) -> dict[str, Any]:
    """Return the interpolated precision at 101 recalls, in ten-thousandths."""
    curves: list[Floats | None] = []
    for sweep in analysis.sweeps.by_class:
        envelope = np.append(np.maximum.accumulate(sweep.precision[::-1])[::-1], 0.0)
        curve = envelope[np.searchsorted(sweep.recall, _RECALLS)]
        curves.append(curve if sweep.positives else None)
    known = [curve for curve in curves if curve is not None]

    def shown(values: Floats | None) -> list[int] | None:
        return None if values is None else np.rint(values * 10_000).astype(int).tolist()

    mean = np.mean(known, axis=0) if known else None
    return {"by_class": [shown(curve) for curve in curves], "mean": shown(mean)}
