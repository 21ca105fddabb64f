"""The confusion matrix of a report."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from detap.analysis.confusion import Confusion, Rule, confusion, misclassifiable
from detap.escaping import escape
from detap.report.fields import Count, Object, each, field, list_of
from detap.report.model import Block, columns_of, name_column
from detap.report.numbers import at_score, rows_of, with_totals
from detap.report.packing import packed
from detap.report.sections.analysis import Analysis

DATA = Object(
    "ConfusionData",
    "The data of --confusion. Rows are ground truths, columns detections, in the order of "
    "the classes, the last of each the background.",
    rule=Literal["protocol", "class-agnostic"],
    iou=float,
    score_threshold=field(float | None, "Minimum score; null if all detections count."),
    classes=list[str],
    matrix=list_of(list_of(Count)),
    **each(Count, "matched", "misclassified", "missed", "background"),
)

MOST_PAIRS = 10  # in text


def blocks(analysis: Analysis, value: Rule) -> Iterator[Block]:
    """Yield the confusion matrix of classes, and the largest confusions."""
    yield block_of(confusion(analysis.match_results, value, score=analysis.score))


def block_of(result: Confusion) -> Block:
    """Return the matrix and the largest confusions."""
    least = at_score(result.score_threshold)
    ground_truths = result.matrix.sum(axis=1)
    lines = [
        f"{escape(result.classes[pair.ground_truth])} predicted as "
        f"{escape(result.classes[pair.prediction])}: "
        f"{pair.pairs} of {ground_truths[pair.ground_truth]}"
        for pair in result.largest(MOST_PAIRS)
    ]
    inner = result.matrix[:-1, :-1]
    right = np.diag(inner)
    columns = {
        "ground_truths": ground_truths[:-1],
        "matched": right,
        "misclassified": inner.sum(axis=1) - right,
        "missed": result.matrix[:-1, -1],
        "background": result.matrix[-1, :-1],
    }
    return Block(
        "confusion",
        f"Confusion matrix at IoU {result.iou:.6g}{least} (matching: {result.rule})",
        DATA(result),
        tuple(lines or ["No misclassifications"]),
        with_totals(_COLUMNS, rows_of({"name": result.classes, **columns}), "total"),
    )


def page_data(analysis: Analysis) -> dict[str, Any]:
    """Return the possible misclassifications; the script has the other counts at each step."""
    results, steps = analysis.match_results, analysis.steps
    background = len(results.classes)
    label = np.arange(background)
    if results.all_classes is not None:
        results, chosen = results.all_classes
        label = np.where(chosen.new_labels < 0, background, chosen.new_labels)
    candidates = misclassifiable(results)
    detections, ground_truths = results.boxes
    step = np.append(np.searchsorted(-steps, -detections.score), len(steps))  # never, for -1
    columns = {
        "step": step[candidates.detection],
        "label": label[detections.label[candidates.detection]],
        "count": candidates.candidate_count,
        "candidate": candidates.candidate,
        "truth_label": label[ground_truths.label[candidates.ground_truth]],
        "truth_step": step[candidates.matched_by],
    }
    return {"confusion": packed(columns)}


_COLUMNS = (
    name_column("class"),
    *columns_of("count", "ground_truths", "matched", "misclassified", missed="background FN"),
    *columns_of("count", background="background FP"),
)
