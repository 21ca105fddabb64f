"""Every precision-recall curve of a result, as JSON or CSV.

For each class that has ground truth and each IoU threshold: the raw points, one per detection
that counts, by falling score; and the interpolated precision at the protocol's recall levels, or,
where it takes all points, at each recall that was reached.
"""

from collections.abc import Iterator
from os.path import splitext
from typing import TYPE_CHECKING

from detap._version import __version__
from detap.errors import UsageError
from detap.report.model import Cell
from detap.report.names import printable
from detap.report.sinks import csv, json

if TYPE_CHECKING:
    from detap.detection import Curve, Result

_HEADINGS = ("class", "iou_threshold", "points", "score", "recall", "precision")


def check_extension(path: str) -> None:
    """Raise UsageError unless the file's name says how curves are to be written."""
    if splitext(path)[1].lower() not in (".json", ".csv"):
        raise UsageError(f"--curves {printable(path)}: name a file that ends in .json or .csv")


def render_curves(result: "Result", path: str) -> str:
    """Return the curves as the text of a file of that name."""
    curves = result.curves()
    if splitext(path)[1].lower() == ".csv":
        rows = (row for curve in curves for row in _rows(curve, result.classes[curve.label]))
        return csv.write(_HEADINGS, rows)
    return json.dump(
        {
            "schema_version": json.SCHEMA_VERSION,
            "detap_version": __version__,
            "signature": result.protocol.signature(__version__),
            "curves": [_record(curve, result.classes[curve.label]) for curve in curves],
        },
        indent=None,
    )


def _record(curve: "Curve", name: str) -> dict[str, object]:
    return {
        "class": name,
        "iou_threshold": curve.threshold,
        "AP": json.plain(curve.average_precision),
        "score": curve.score.tolist(),
        "recall": curve.recall.tolist(),
        "precision": curve.precision.tolist(),
        "interpolated_recall": curve.levels.tolist(),
        "interpolated_precision": curve.interpolated.tolist(),
    }


def _rows(curve: "Curve", name: str) -> Iterator[tuple[Cell, ...]]:
    raw = zip(curve.score.tolist(), curve.recall.tolist(), curve.precision.tolist(), strict=True)
    for score, recall, precision in raw:
        yield name, curve.threshold, "raw", score, recall, precision
    grid = zip(curve.levels.tolist(), curve.interpolated.tolist(), strict=True)
    for recall, precision in grid:
        yield name, curve.threshold, "interpolated", None, recall, precision
