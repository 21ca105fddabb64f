"""Every precision-recall curve of a result, as rows and as records.

For detectors, by class with ground truth and IoU threshold: the raw points, one per detection that
is not ignored, by descending score, with false positives per image too; and the interpolated
precision at the recall levels of the protocol, or, for all-point AP, at each reached recall. For
retrieval: precision and recall over ranks, and at the recall levels of the protocol.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from detap._version import __version__
from detap.evaluation.detection import Curve, Result
from detap.ranking.retrieval import RetrievalResult
from detap.report.model import Cell
from detap.report.numbers import plain


class Curves(NamedTuple):
    """Curves, as CSV rows and JSON records."""

    signature: str
    headings: tuple[str, ...]
    rows: Iterable[tuple[Cell, ...]]
    key: str
    records: Sequence[Mapping[str, Any]]
    indent: int | None = None


def detection_curves(result: Result) -> Curves:
    """Return the curves of a detector."""
    named = [(curve, result.classes[curve.label]) for curve in result.curves()]
    return Curves(
        result.signature,
        ("class", "iou_threshold", "points", "score", "recall", "precision", "fppi"),
        chain.from_iterable(_rows(*one) for one in named),
        "curves",
        [_record(*one) for one in named],
    )


def _record(curve: Curve, name: str) -> dict[str, object]:
    return {
        "class": name,
        "iou_threshold": curve.threshold,
        "AP": plain(curve.average_precision),
        "score": curve.score.tolist(),
        "recall": curve.recall.tolist(),
        "precision": curve.precision.tolist(),
        "fppi": plain(curve.fppi.tolist()),
        "interpolated_recall": curve.levels.tolist(),
        "interpolated_precision": curve.interpolated.tolist(),
    }


def _rows(curve: Curve, name: str) -> Iterator[tuple[Cell, ...]]:
    columns = (curve.score, curve.recall, curve.precision, curve.fppi)
    for point in zip(*(column.tolist() for column in columns), strict=True):
        yield name, curve.threshold, "raw", *point
    grid = zip(curve.levels.tolist(), curve.interpolated.tolist(), strict=True)
    for recall, precision in grid:
        yield name, curve.threshold, "interpolated", None, recall, precision, None


def retrieval_curves(result: RetrievalResult) -> Curves:
    """Return the curves of a retrieval."""
    headings = ("curve", "rank", "recall", "precision")
    ranks = zip(result.recall_at_ranks.tolist(), result.precision_at_ranks.tolist(), strict=True)
    levels = zip(result.levels.tolist(), result.precision_at_levels.tolist(), strict=True)
    rows: list[tuple[Cell, ...]] = [
        *(("ranks", rank, *point) for rank, point in enumerate(ranks, 1)),
        *(("levels", None, *point) for point in levels),
    ]
    records = [dict(zip(headings, map(plain, row), strict=True)) for row in rows]
    return Curves(
        result.protocol.signature(__version__), headings, rows, "points", records, indent=2
    )
