"""The match table by hand: bits, max dets, matched ground truths, memory.

Squares of side 10 that share a column strip: a detection shifted by s pixels has with its ground
truth an IoU of (10 - s)
(10 + s): 9/11 for 1, 2/3 for 2, 1/3 for 5.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from detap.evaluation.detection import Result, evaluate
from detap.protocols import AreaRange, Protocol, protocol
from detap.tables.detection import Detections, GroundTruth
from tests.tables import dt_table, gt_table

RULES = replace(
    protocol("coco"),
    iou_thresholds=(0.5, 0.75, 0.9),
    area_ranges=(AreaRange("all", 0, 1e10), AreaRange("large", 200, 1e10, "l")),
    max_dets=(1, 3),
)


def scored(protocol: Protocol = RULES, *, match_table: bool = False) -> Result:
    """Match, on one image, squares of side 10 at 0 and 100, the second a crowd, and one of side 20.

    Detections by score: shifted by 2 and by 1 on the first, one in the crowd, one on the large
    square, which is beyond max dets 3.
    """
    truth = gt_table(
        [[0, 0, 10, 10], [100, 0, 110, 10], [300, 0, 320, 20]], crowd=[False, True, False]
    )
    detections = dt_table(
        [[2, 0, 12, 10], [1, 0, 11, 10], [100, 0, 110, 10], [300, 0, 320, 20]], [0.9, 0.8, 0.7, 0.6]
    )
    return evaluate(truth, detections, protocol, match_table=match_table)


def test_matched_gt_is_absent_unless_requested() -> None:
    with pytest.raises(KeyError, match="no matched ground truths of area range 0, threshold 1"):
        scored().match_table.matched_gt_at(0, 1)


def test_a_match_table_is_read_only() -> None:
    result = scored()
    assert result.match_table is result.match_table
    kept = scored(match_table=True)
    assert kept.match_table is kept._match_table
    for match_table in (result.match_table, result.match_table.select_images([0])):
        for name in ("true_positive", "max_dets_index", "score", "matched_gt", "positive"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(match_table, name)[..., 0] = 0


@pytest.mark.parametrize("limit", [1, None])
@pytest.mark.parametrize("ties", ["file", "image"])
def test_ranks_equal_a_plain_sort(ties: Literal["file", "image"], limit: int | None) -> None:
    random = np.random.default_rng(7)
    label, image = random.integers(0, 3, (2, 60)).astype(np.int32)
    score = random.integers(0, 5, 60) / 4  # mostly tied
    corners = np.tile([0.0, 0.0, 10.0, 10.0], (60, 1))
    names, images = ["a", "b", "c"], ["i", "j", "k"]
    truth = GroundTruth.from_arrays(
        image=images, label=names, boxes=np.tile([0, 0, 10, 10], (3, 1)), crowd=[False] * 3
    )
    detections = Detections.from_arrays(
        image=[images[i] for i in image],
        label=[names[k] for k in label],
        boxes=corners,
        score=score,
    )
    protocol = replace(RULES, tie_break=ties, max_dets=(limit,))
    match_table = evaluate(truth, detections, protocol, match_table=True).match_table

    def key(row: int) -> tuple[float, ...]:
        return (-score[row], image[row], row) if ties == "image" else (-score[row], row)

    rows = sorted(range(60), key=key)
    by_class = [row for k in range(3) for row in rows if label[row] == k]
    # With the ranking from matching, and ranked again.
    for one in (match_table, replace(match_table)):
        assert_array_equal(
            one.ranking.rows, [row for row in by_class if match_table.within_max_dets[row]]
        )
        assert_array_equal(
            np.diff(one.ranking.start), np.bincount(label[match_table.within_max_dets])
        )

    asked = np.arange(0, 60, 3, dtype=np.int32)
    group = (asked % 4).astype(np.int32)
    first = [next(row for row in rows if row in asked and row % 4 == g) for g in range(4)]
    assert_array_equal(match_table.best_of_groups(asked, group, 9), first)

    other = ((label[asked] + 1) % 3).astype(np.int32)
    ranked, start = match_table.ranking.rows.tolist(), match_table.ranking.start
    places = [
        start[k] + sum(key(one) < key(row) for one in ranked[start[k] : start[k + 1]])
        for row, k in zip(asked.tolist(), other.tolist(), strict=True)
    ]
    assert_array_equal(match_table.rank_positions(asked, other), places)
