"""The results of all detections and ground truths at one IoU threshold, as columns."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from detap.analysis.errors import Errors
from detap.analysis.match_results import MatchResults
from detap.tables.detection import Floats, Integers

DetectionStatus = Literal[
    "true-positive",
    "classification",
    "localization",
    "both",
    "duplicate",
    "background",
    "ignored",
    "not-exhaustive",
    "outside-area-range",
    "unverified",
    "zero-area",
    "beyond-max-dets",
]
"""Result of a detection; false positives have the types of :data:`~detap.analysis.errors.TYPES`."""

GroundTruthStatus = Literal["matched", "near-miss", "missed", "ignored", "outside-area-range"]

DETECTION_STATUSES: tuple[DetectionStatus, ...] = get_args(DetectionStatus)
GROUND_TRUTH_STATUSES: tuple[GroundTruthStatus, ...] = get_args(GroundTruthStatus)


@dataclass(frozen=True, eq=False, kw_only=True)
class RowResults:
    """Results of N detections and G ground truths, in table order."""

    status: NDArray[np.int8]  # (N,) index into `DETECTION_STATUSES`
    ground_truth: Integers  # (N,) row of the matched, attributed or nearest ground truth, or -1
    similarity: Floats  # (N,) IoU or OKS with it, or 0
    truth_status: NDArray[np.int8]  # (G,) index into `GROUND_TRUTH_STATUSES`
    detection: Integers  # (G,)


def row_results(results: MatchResults, types: Errors) -> RowResults:
    """Return the results of all detections and ground truths."""
    ground_truth, similarity = _related(results, types)
    run, beyond = results.run, ~results.within_max_dets
    status = types.kind + np.int8(1)  # -1, no error, becomes true-positive
    # Later ones overwrite earlier ones.
    for name, flags in (
        ("outside-area-range", results.ignored),
        ("not-exhaustive", results.ignored & run.not_exhaustive),
        ("ignored", results.ignored & (results.matched_gt >= 0)),
        ("beyond-max-dets", beyond),
        ("unverified", beyond & run.unverified),
        ("zero-area", beyond & run.without_area),
    ):
        status[flags] = DETECTION_STATUSES.index(name)
    truth_status = np.zeros(len(results.positive), np.int8)
    for name, flags in (
        ("near-miss", types.unmatched),
        ("missed", types.missed),
        ("outside-area-range", ~results.positive),
        ("ignored", ~results.positive & run.ignored),
    ):
        truth_status[flags] = GROUND_TRUTH_STATUSES.index(name)
    detection = np.full(len(results.positive), -1, np.int32)
    for rows, target in (
        (np.flatnonzero(types.fixes_target), types.target),
        (np.flatnonzero(results.true_positive), results.matched_gt),
    ):
        detection[target[rows]] = rows
    return RowResults(
        status=status,
        ground_truth=ground_truth,
        similarity=similarity,
        truth_status=truth_status,
        detection=detection,
    )


def _related(results: MatchResults, types: Errors) -> tuple[Integers, Floats]:
    """Return the matched, attributed or nearest ground truths, and the similarities with them."""
    ground_truth, similarity = types.target.copy(), types.similarity.copy()
    matched = np.flatnonzero(results.matched_gt >= 0)
    ground_truth[matched] = results.matched_gt[matched]
    similarity[matched] = results.matched_similarity[matched]
    rows: Integers = np.flatnonzero(ground_truth < 0).astype(np.int32)
    nearest = results.ground_truth_index.nearest(
        results.boxes[0], rows, threads=results.run.threads
    )
    same, other = nearest.same_class_similarity, nearest.other_class_similarity
    ground_truth[rows] = np.where(same >= other, nearest.same_class, nearest.other_class)
    similarity[rows] = np.maximum(same, other)
    return ground_truth, similarity
