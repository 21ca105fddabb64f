"""Where to look: images, detections and annotations, as parts of a report."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypedDict

from detap.analysis.errors import TYPES, Errors
from detap.analysis.examples import REASONS, confident_mistakes, label_errors, worst_images
from detap.analysis.match_results import MatchResults
from detap.report.fields import Count
from detap.report.model import Block, Cell, Column, Table
from detap.report.numbers import rows_of
from detap.report.sections.analysis import Analysis

_Row = TypedDict(
    "_Row",
    {
        "image": int | str,
        "class": str,
        "x1": float,
        "y1": float,
        "x2": float,
        "y2": float,
        "score": float | None,
        "ground_truth": Annotated[
            str | None, "The class of the ground truth that is meant, or null."
        ],
    },
)


class WorstImage(TypedDict):
    """How many mistakes an image has."""

    image: int | str
    false_positives: Count
    false_negatives: Count


class ConfidentMistake(_Row):
    """A false positive."""

    error: Literal["classification", "localisation", "both", "duplicate", "background"]
    iou: float | None


class Suspect(_Row):
    """A detection or ground truth where the annotation may be wrong."""

    reason: Literal["unlabelled", "other-class", "never-found"]


class ExamplesData(TypedDict):
    """Of --examples: where to look."""

    score_threshold: Annotated[
        float | None, "Detections below it are left out; null where none is."
    ]
    worst_images: list[WorstImage]
    confident_mistakes: list[ConfidentMistake]
    suspects: list[Suspect]


DATA = ExamplesData

_WHY = {
    "unlabelled": "confident, and nothing beneath it: an annotation may be lacking",
    "other-class": "confident, on a ground truth of another class: that class may be wrong",
    "never-found": "no detection comes near it, of a class mostly found: it may be no object",
}


def blocks(analysis: Analysis, value: int) -> Iterator[Block]:
    """Yield the worst images, the most confident mistakes and what may be wrong annotations.

    `value` is how many of each at most.
    """
    outcome, errors, score = analysis.outcome, analysis.errors, analysis.score
    images = _worst_images(outcome, score, value)
    mistakes = _mistakes(outcome, errors, value)
    doubtful = _suspects(outcome, errors, value)
    least = "" if score is None else f", score from {score:.6g}"
    data = {
        "score_threshold": score,
        "worst_images": images,
        "confident_mistakes": mistakes,
        "suspects": doubtful,
    }
    yield Block("examples", f"Worst images{least}", data, table=_table(_IMAGES, images))
    yield Block("", "Most confident mistakes", {}, table=_table(_MISTAKES, mistakes))
    lines = tuple(
        f"{reason}: {_WHY[reason]}"
        for reason in REASONS
        if any(row["reason"] == reason for row in doubtful)
    )
    yield Block("", "Annotations that may be wrong", {}, lines, _table(_SUSPECTS, doubtful))


def page_data(analysis: Analysis) -> dict[str, Any]:
    """Return nothing: the gallery of the page draws them."""
    return {}


def _worst_images(
    outcome: MatchResults, score: float | None, most: int
) -> tuple[dict[str, Cell], ...]:
    result = worst_images(outcome, score=score, most=most)
    names = outcome.run.ground_truth.images
    return rows_of(
        {
            "image": [names[image] for image in result.image.tolist()],
            "false_positives": result.false_positives.tolist(),
            "false_negatives": result.false_negatives.tolist(),
        }
    )


def _mistakes(outcome: MatchResults, errors: Errors, most: int) -> tuple[dict[str, Cell], ...]:
    result = confident_mistakes(outcome, errors, most=most)
    columns = (result.detection, result.kind, result.target, result.similarity)
    return tuple(
        {
            **_box(outcome, 0, row),
            "error": TYPES[kind],
            "ground_truth": _class_of_truth(outcome, target),
            "iou": overlap if target >= 0 else None,
        }
        for row, kind, target, overlap in zip(*(c.tolist() for c in columns), strict=True)
    )


def _suspects(outcome: MatchResults, errors: Errors, most: int) -> tuple[dict[str, Cell], ...]:
    result = label_errors(outcome, errors, most=most)
    columns = (result.reason, result.detection, result.ground_truth)
    return tuple(
        {
            **(_box(outcome, 0, row) if row >= 0 else _box(outcome, 1, truth)),
            "reason": REASONS[reason],
            "ground_truth": _class_of_truth(outcome, truth),
        }
        for reason, row, truth in zip(*(c.tolist() for c in columns), strict=True)
    )


def _box(outcome: MatchResults, side: int, row: int) -> dict[str, Cell]:
    """Return a detection (side 0), or a ground truth (side 1)."""
    boxes = outcome.boxes[side]
    return {
        "image": outcome.run.ground_truth.images[boxes.image[row]],
        "class": outcome.classes[boxes.label[row]],
        **dict(zip(("x1", "y1", "x2", "y2"), boxes.corners[row].tolist(), strict=True)),
        "score": None if side else float(boxes.score[row]),
    }


def _class_of_truth(outcome: MatchResults, row: int) -> str | None:
    return None if row < 0 else outcome.classes[outcome.boxes[1].label[row]]


def _table(columns: tuple[Column, ...], rows: tuple[dict[str, Cell], ...]) -> Table:
    # A name that is a number is a name all the same.
    return Table(columns, tuple({**row, "image": str(row["image"])} for row in rows))


_IMAGE = Column("image", "image", "image", "name")
_IMAGES = (
    _IMAGE,
    Column("false_positives", "false pos.", "FP", "count"),
    Column("false_negatives", "not found", "FN", "count"),
)
_MISTAKES = (
    _IMAGE,
    Column("class", "class", "class", "name"),
    Column("score", "score", "score", "share"),
    Column("error", "error", "error", "text"),
    Column("ground_truth", "ground truth", "GT", "name"),
    Column("iou", "IoU", "IoU", "share"),
)
_SUSPECTS = (
    _IMAGE,
    Column("class", "class", "class", "name"),
    Column("score", "score", "score", "share"),
    Column("reason", "reason", "reason", "text"),
    Column("ground_truth", "ground truth", "GT", "name"),
)
