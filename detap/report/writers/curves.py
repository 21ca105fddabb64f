"""Every precision-recall curve of a result, as a CSV or JSON file.

For detectors, by class with ground truth and IoU threshold: the raw points, one per detection that
is not ignored, by descending score, with false positives per image too; and the interpolated
precision at the recall levels of the protocol, or, for all-point AP, at each reached recall. For
retrieval: precision and recall over ranks, and at the recall levels of the protocol.
"""

from collections.abc import Iterator
from os.path import splitext
from typing import Any

from detap._version import SCHEMA_VERSION, __version__
from detap.errors import UsageError
from detap.escaping import escape
from detap.evaluation.results import Result
from detap.ranking.retrieval import RetrievalResult
from detap.report.model import Cell
from detap.report.numbers import plain
from detap.report.writers import csv, json


def check_extension(path: str) -> None:
    """Raise UsageError unless the file name ends in .json or .csv."""
    if _extension(path) not in (".json", ".csv"):
        raise UsageError(f"--curves {escape(path)}: use a file name that ends in .json or .csv")


def detection_curves(result: Result, path: str) -> str:
    """Return the curves of a detector in the format of the file name."""
    if _extension(path) == ".csv":
        headings = ("class", "iou_threshold", "points", "score", "recall", "precision", "fppi")
        return csv.write(headings, _rows(result))
    records = [
        {
            "class": result.classes[curve.label],
            "iou_threshold": curve.threshold,
            "AP": plain(curve.average_precision),
            "score": curve.score.tolist(),
            "recall": curve.recall.tolist(),
            "precision": curve.precision.tolist(),
            "fppi": plain(curve.fppi.tolist()),
            "interpolated_recall": curve.levels.tolist(),
            "interpolated_precision": curve.interpolated.tolist(),
        }
        for curve in result.curves()
    ]
    return json.dump(_head(result.signature) | {"curves": records}, indent=None)


def retrieval_curves(result: RetrievalResult, path: str) -> str:
    """Return the curves of a retrieval in the format of the file name."""
    headings = ("curve", "rank", "recall", "precision")
    ranks = zip(result.recall_at_ranks.tolist(), result.precision_at_ranks.tolist(), strict=True)
    levels = zip(result.levels.tolist(), result.precision_at_levels.tolist(), strict=True)
    rows: list[tuple[Cell, ...]] = [
        *(("ranks", rank, *point) for rank, point in enumerate(ranks, 1)),
        *(("levels", None, *point) for point in levels),
    ]
    if _extension(path) == ".csv":
        return csv.write(headings, rows)
    points = [dict(zip(headings, map(plain, row), strict=True)) for row in rows]
    return json.dump(_head(result.protocol.signature(__version__)) | {"points": points})


def _extension(path: str) -> str:
    return splitext(path)[1].lower()


def _head(signature: str) -> dict[str, Any]:
    version = {"schema_version": SCHEMA_VERSION, "detap_version": __version__}
    return {**version, "signature": signature}


def _rows(result: Result) -> Iterator[tuple[Cell, ...]]:
    for curve in result.curves():
        columns = (curve.score, curve.recall, curve.precision, curve.fppi)
        name = result.classes[curve.label]
        for point in zip(*(column.tolist() for column in columns), strict=True):
            yield name, curve.threshold, "raw", *point
        for point in zip(curve.levels.tolist(), curve.interpolated.tolist(), strict=True):
            yield name, curve.threshold, "interpolated", None, *point, None
