"""Worst images, most confident errors and possible label errors."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from detap.analysis.errors import TYPES
from detap.analysis.examples import confident_errors, label_errors, worst_images
from detap.analysis.match_results import MatchResults
from detap.report.fields import Count, Object, each, field, list_of
from detap.report.model import Block, Cell, Column, Table, columns_of
from detap.report.numbers import at_score, rows_of
from detap.report.sections.analysis import Analysis
from detap.report.sections.image import CORNERS

_ROW = {
    "image": int | str,
    "class": str,
    **each(float, *CORNERS),
    "score": float | None,
    "ground_truth": field(str | None, "The class of that which the error is attributed to."),
}

WorstImage = Object(
    "WorstImage", image=int | str, **each(Count, "false_positives", "false_negatives")
)

ConfidentError = Object(
    "ConfidentError",
    **_ROW,
    error=Literal["classification", "localization", "both", "duplicate", "background"],
    iou=float | None,
)

LabelErrorRow = Object(
    "LabelErrorRow", **_ROW, reason=Literal["missing_annotation", "wrong_label", "never_detected"]
)

DATA = Object(
    "ExamplesData",
    "The data of --examples.",
    score_threshold=field(float | None, "Minimum score; null if all detections count."),
    worst_images=list_of(WorstImage),
    confident_errors=list_of(ConfidentError),
    label_errors=list_of(LabelErrorRow),
)

_WHY = {
    "missing_annotation": "confident detection that overlaps no ground truth",
    "wrong_label": "confident detection that overlaps a ground truth of another class",
    "never_detected": "ground truth without a nearby detection, in a class that is mostly detected",
}


def blocks(analysis: Analysis, value: int) -> Iterator[Block]:
    """Yield the worst images, most confident errors and possible label errors."""
    score, results, errors = analysis.score, analysis.above.match_results, analysis.above.errors
    names = results.run.ground_truth.images
    worst = worst_images(results, max_count=value)
    images = rows_of(WorstImage(worst, image=[names[image] for image in worst.image.tolist()]))
    confident = [
        {
            **_box(results, 0, row),
            "error": TYPES[errors.kind[row]],
            "ground_truth": _class_of_truth(results, errors.target[row]),
            "iou": float(errors.similarity[row]) if errors.target[row] >= 0 else None,
        }
        for row in confident_errors(results, max_count=value).tolist()
    ]
    suspected = [
        {
            **(_box(results, 0, row) if row >= 0 else _box(results, 1, truth)),
            "reason": reason,
            "ground_truth": _class_of_truth(results, truth),
        }
        for reason, row, truth in label_errors(results, errors, max_count=value)
    ]
    minimum = at_score(score)
    data = DATA(
        score_threshold=score,
        worst_images=images,
        confident_errors=confident,
        label_errors=suspected,
    )
    yield Block("examples", f"Worst images{minimum}", data, table=_table(_IMAGES, images))
    yield Block("", f"Most confident errors{minimum}", {}, table=_table(_CONFIDENT, confident))
    reasons = {row["reason"] for row in suspected}
    lines = tuple(
        f"{reason.replace('_', ' ')}: {_WHY[reason]}" for reason in _WHY if reason in reasons
    )
    shown = [{**row, "reason": str(row["reason"]).replace("_", " ")} for row in suspected]
    yield Block("", f"Possible label errors{minimum}", {}, lines, _table(_LABEL_ERRORS, shown))


def page_data(analysis: Analysis) -> dict[str, Any]:
    """Return nothing: the gallery of the page draws them."""
    return {}


def _box(results: MatchResults, side: int, row: int) -> dict[str, Cell]:
    """Return a detection (side 0), or a ground truth (side 1)."""
    boxes = results.boxes[side]
    return {
        "image": results.run.ground_truth.images[boxes.image[row]],
        "class": results.classes[boxes.label[row]],
        **dict(zip(CORNERS, boxes.corners[row].tolist(), strict=True)),
        "score": None if side else float(boxes.score[row]),
    }


def _class_of_truth(results: MatchResults, row: int) -> str | None:
    return None if row < 0 else results.classes[results.boxes[1].label[row]]


def _table(columns: tuple[Column, ...], rows: Sequence[dict[str, Cell]]) -> Table:
    # A name that is a number is a name all the same.
    texts = [{**row, "image": str(row["image"])} for row in rows]
    return Table(columns, tuple(texts))


_IMAGES = (*columns_of("name", "image"), *columns_of("count", "false_positives", "false_negatives"))
_BOX = (*columns_of("name", "image", "class"), *columns_of("fraction", "score"))
_TRUTH = columns_of("name", "ground_truth")
_CONFIDENT = (*_BOX, *columns_of("text", "error"), *_TRUTH, *columns_of("fraction", iou="IoU"))
_LABEL_ERRORS = (*_BOX, *columns_of("text", "reason"), *_TRUTH)
