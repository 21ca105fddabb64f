"""A table of all detections and missed ground truths of a result."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.analysis.errors import TYPES, errors
from detap.analysis.match_results import MatchResults
from detap.analysis.row_results import DETECTION_STATUSES, row_results
from detap.evaluation.results import Result
from detap.evaluation.selection import SelectedClasses
from detap.formats.catalogue import FORMATS
from detap.io.paths import STDIN
from detap.tables.detection import Name

Columns = dict[str, NDArray[Any]]


def matches_table(result: Result, *, iou: float | None = None) -> Columns:
    """Return one row per detection and per missed ground truth."""
    results = MatchResults.of(result, iou)
    types = errors(results)
    rows = row_results(results, types)
    detections, ground_truths = results.boxes
    missed = np.flatnonzero(types.unmatched)

    def joined(of_detections: NDArray[Any], of_missed: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([of_detections, of_missed])[order]

    image = np.concatenate([detections.image, ground_truths.image[missed]])
    score = np.concatenate([detections.score, np.full(len(missed), np.nan)])
    order = np.lexsort((-score, image))  # NaN is last
    status = joined(rows.status, len(DETECTION_STATUSES) + ~types.missed[missed])
    corners = joined(detections.corners, ground_truths.corners[missed])
    similarity = np.where(rows.ground_truth < 0, np.nan, rows.similarity)
    # The number of each ground truth in its image, among all classes, from 1.
    run = result._run
    truth_image = run.full_run.ground_truth.image
    by_image = np.argsort(truth_image, kind="stable")
    ordered, numbers = truth_image[by_image], np.empty(len(truth_image), np.int32)
    numbers[by_image] = np.arange(1, len(ordered) + 1) - np.searchsorted(ordered, ordered)
    numbers = numbers[run.ground_truths] if isinstance(run, SelectedClasses) else numbers
    numbers = np.append(numbers, 0)  # index -1 gives 0
    truth = result.ground_truth
    file_names: dict[Name, str] = {}
    if truth.format in FORMATS and all(file.path != STDIN for file in truth.files):
        file_names = FORMATS[truth.format].file_names(truth)  # it is read again
    return {
        "image": _names(truth.images)[image[order]],
        "file_name": _names([file_names.get(name, "") for name in truth.images])[image[order]],
        "class": _names(results.classes)[joined(detections.label, ground_truths.label[missed])],
        "score": score[order],
        **dict(zip(("x1", "y1", "x2", "y2"), corners.T, strict=True)),
        "result": _names(_RESULTS)[status],
        "error": _names(_ERRORS)[status],
        "iou": joined(similarity, np.full(len(missed), np.nan)),
        "ground_truth": numbers[joined(rows.ground_truth, missed)],
    }


_RESULTS = (
    *("false-positive" if name in TYPES else name for name in DETECTION_STATUSES),
    *("false-negative", "false-negative"),
)
_ERRORS = (
    *(name if name in TYPES else "" for name in DETECTION_STATUSES),
    *("missed", "near-miss"),
)


def _names(names: Sequence[Name]) -> NDArray[Any]:
    """Return names as an array of integers or objects."""
    return np.array(names, object if any(isinstance(name, str) for name in names) else np.int64)
