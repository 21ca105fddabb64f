"""A table of all detections and missed ground truths of a result."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.analysis.errors import TYPES, errors
from detap.analysis.match_results import MatchResults
from detap.analysis.row_results import DETECTION_STATUSES, row_results
from detap.evaluation.results import Result
from detap.evaluation.run import EvaluationRun
from detap.evaluation.selection import SelectedClasses
from detap.formats.catalogue import FORMATS
from detap.io.paths import STDIN
from detap.tables.detection import GroundTruth, Integers, Name

Columns = dict[str, NDArray[Any]]


def matches_table(result: Result, *, iou: float | None = None) -> Columns:
    """Return one row per detection and per missed ground truth.

    Rows are in the order of the images, detections by falling score, then missed ground truths.

    Parameters
    ----------
    result : Result
    iou : float, optional
        One of the protocol's thresholds; by default 0.5, or else the first.

    Returns
    -------
    dict of str to (n,) array
        ``image``
            Id or name, int64 or str.
        ``file_name``
            File name in the ground truth; empty if it has none or was read from stdin.
        ``class``
            Name of the class, of a detection or a missed ground truth.
        ``score``
            NaN for missed ground truths.
        ``x1``, ``y1``, ``x2``, ``y2``
            Corners of the box, in pixels.
        ``result``
            ``true-positive``, ``false-positive`` or ``false-negative``; for detections that are
            not scored as :attr:`DetectionResult.result
            <detap.analysis.image_results.DetectionResult>`, such as ``ignored``.
        ``error``
            Error type of a false positive; ``missed`` or ``near-miss`` for a false negative; else
            empty.
        ``iou``
            IoU or OKS of a detection with its ground truth; NaN without one.
        ``ground_truth``
            The matched, attributed or nearest ground truth of a detection, or the missed one: its
            number in its image, from 1, in the order of the file; 0 if no ground truth overlaps.

    Raises
    ------
    UsageError
        If the protocol does not match by score, or does not have the threshold.
    InputError
        If the ground truth, which is read again for the file names, cannot be read.
    """
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
    numbers = np.append(_numbers_in_images(result._run), 0)  # index -1 gives 0
    truth = result.ground_truth
    file_names = _file_names(truth)
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


def _numbers_in_images(run: EvaluationRun) -> Integers:
    """Return the number of each ground truth in its image, among all classes, from 1."""
    image = run.full_run.ground_truth.image
    order = np.argsort(image, kind="stable")
    numbers = np.empty(len(image), np.int32)
    ordered = image[order]
    numbers[order] = np.arange(1, len(image) + 1) - np.searchsorted(ordered, ordered)
    return numbers[run.ground_truths] if isinstance(run, SelectedClasses) else numbers


def _file_names(truth: GroundTruth) -> dict[Name, str]:
    """Return the file names in the ground truth, which is read again."""
    if truth.format not in FORMATS or any(file.path == STDIN for file in truth.files):
        return {}
    return FORMATS[truth.format].file_names(truth)
