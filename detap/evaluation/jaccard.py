"""Match the boxes of each image for the Jaccard index."""

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core.jaccard import SCORE_THRESHOLDS, Counts, JaccardCounts
from detap.core.match_table import MatchTable
from detap.core.overlap import overlaps_of
from detap.errors import UsageError
from detap.evaluation.prepare import rows_by_key
from detap.evaluation.run import EvaluationRun
from detap.tables.detection import Flags, Floats

Rows = NDArray[np.integer[Any]]

_IGNORED_SHARE = 0.5


def jaccard_counts(run: EvaluationRun, match_table: MatchTable, threshold: int) -> JaccardCounts:
    """Return the counts of each image and class with a detection or an object."""
    if find_spec("scipy") is None:
        raise UsageError("JI needs SciPy, which is not installed; pip install 'detap[scipy]'")
    protocol, boxes = run.protocol, run.boxes()
    inclusive, images = protocol.inclusive_pixels, max(len(run.images), 1)
    key, truth_key = (table.label.astype(np.int64) * images + table.image for table in boxes)
    keys = np.unique(np.concatenate([key, truth_key]))
    positive = match_table.positive[0]
    iou = protocol.search_thresholds[threshold]
    counts = [
        _count_image(
            overlaps_of(boxes, row, counted, inclusive),
            boxes[0].score[row],
            _covered(overlaps_of(boxes, row, region, inclusive, crowd=True)),
            _covered(overlaps_of((boxes[1], boxes[1]), counted, region, inclusive, crowd=True)),
            iou if protocol.strict_iou else float(np.nextafter(iou, -1.0)),
        )
        for row, counted, region in zip(
            rows_by_key(key, match_table.within_max_dets, keys),
            rows_by_key(truth_key, positive, keys),
            rows_by_key(truth_key, ~positive, keys),
            strict=True,
        )
    ]
    shape = len(keys), 2, len(SCORE_THRESHOLDS)
    matched, total = np.array(counts, np.int64).reshape(shape).transpose(1, 0, 2)
    label, image = np.divmod(keys, images)
    return JaccardCounts(label.astype(np.int32), image.astype(np.int32), matched, total)


def _count_image(
    iou: Floats, score: Floats, detection_ignored: Flags, truth_ignored: Flags, min_iou: float
) -> tuple[Counts, Counts]:
    """Match the detections and ground truths of an image at each score threshold."""
    from scipy.optimize import linear_sum_assignment

    matched = np.zeros(len(SCORE_THRESHOLDS), np.int64)
    objects = np.zeros_like(matched)
    gain = np.where(iou > min_iou, iou, 0.0)
    for s, threshold in enumerate(SCORE_THRESHOLDS):
        rows = np.flatnonzero(score > threshold)
        detection, truth = linear_sum_assignment(gain[rows], maximize=True)
        is_match = gain[rows[detection], truth] > 0
        unmatched = np.ones(len(rows), np.bool_)
        unmatched[detection[is_match]] = False
        missed = np.ones(len(truth_ignored), np.bool_)
        missed[truth[is_match]] = False
        matched[s] = np.count_nonzero(is_match)
        objects[s] = (
            matched[s]
            + np.count_nonzero(unmatched & ~detection_ignored[rows])
            + np.count_nonzero(missed & ~truth_ignored)
        )
    return matched, objects


def _covered(share: Floats) -> Flags:
    """Return the boxes that lie mostly in an ignored region, as a mask."""
    inside: Flags = np.any(share > _IGNORED_SHARE, axis=1)
    return inside
