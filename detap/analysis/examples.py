"""Examples: worst images, confident errors and possible label errors."""

from typing import NamedTuple

import numpy as np

from detap.analysis.errors import TYPES, Errors
from detap.analysis.match_results import Counts, MatchResults
from detap.tables.detection import Integers

REASONS = ("missing_annotation", "wrong_label", "never_detected")
"""Reasons for a possible label error.

missing_annotation
    a confident detection on the background: the object's annotation may be missing;
wrong_label
    a confident detection on a ground truth of another class: its class may be wrong;
never_detected
    a missed ground truth of a class with recall above 0.5: it may not be an object.
"""


class WorstImages(NamedTuple):
    """Images with the most errors, the worst first."""

    image: Integers  # (n,) indices into the images of the ground truth
    false_positives: Counts  # (n,)
    false_negatives: Counts  # (n,)


def worst_images(
    results: MatchResults, *, score: float | None = None, max_count: int
) -> WorstImages:
    """Return the images with the most false positives and false negatives."""
    results = results.above(score)
    (of_detections, of_truth), size = (boxes.image for boxes in results.boxes), results.images
    false_positives = np.bincount(of_detections[results.false_positive], minlength=size)
    missed = np.bincount(of_truth[results.positive & ~results.matched], minlength=size)
    order = np.argsort(-(false_positives + missed), kind="stable")[:max_count]
    order = order[(false_positives + missed)[order] > 0]
    return WorstImages(order.astype(np.int32), false_positives[order], missed[order])


def confident_errors(results: MatchResults, *, max_count: int) -> Integers:
    """Return the rows of the false positives with the highest scores."""
    ranked = results.by_score
    return ranked[results.false_positive[ranked]][:max_count]


def label_errors(
    results: MatchResults, errors: Errors, *, max_count: int
) -> list[tuple[str, int, int]]:
    """Return possible label errors: reason, detection and ground truth, by row; -1 is none."""
    # By reason, the most suspicious first. Confident detections score at least the median of the
    # true positives; numpy.median would import numpy.ma.
    right = np.sort(results.boxes[0].score[results.true_positive])
    middle = right[[(len(right) - 1) // 2, len(right) // 2]] if len(right) else np.inf
    ranked = results.by_score
    ranked = ranked[results.boxes[0].score[ranked] >= np.mean(middle)]
    kind, target = errors.kind[ranked], errors.target[ranked]
    background = kind == TYPES.index("background")
    # The target's class may not be selected.
    misclassified = (kind == TYPES.index("classification")) & (target >= 0)
    # Missed ground truths of classes with recall above 0.5, the highest recall first.
    ground_truths = results.boxes[1]
    matched = results.by_class(ground_truths.label[results.matched])
    recall = matched / np.maximum(results.ground_truth_counts, 1)
    rows = np.flatnonzero(errors.missed)
    rows = rows[recall[ground_truths.label[rows]] > 0.5]
    area, recall = ground_truths.overlap_area[rows], recall[ground_truths.label[rows]]
    missed = rows[np.lexsort((rows, -area, -recall))][:max_count].tolist()
    return [
        *(
            (reason, row, int(errors.target[row]))
            for reason, of_kind in zip(REASONS, (background, misclassified), strict=False)
            for row in ranked[of_kind][:max_count].tolist()
        ),
        *((REASONS[2], -1, row) for row in missed),
    ]
