"""Accumulation of a class from chunks of its ranking, worked by hand."""

from collections.abc import Sequence

import numpy as np
import pytest

from detap.core.arrays import Boxes
from detap.core.matching import accumulate, match_and_accumulate
from detap.core.params import MatchParams

RULES = MatchParams(
    thresholds=(0.5,),
    strict=False,
    best_unmatched=True,
    last_of_equal=True,
    area_ranges=((0.0, 1e10),),
    max_dets=(None,),
    ties_by_image=True,
    levels=(),
    summing="pairwise",
    precision_eps=0.0,
    inclusive_pixels=False,
)

SQUARE = [0.0, 0.0, 10.0, 10.0]
EMPTY = [90.0, 0.0, 100.0, 10.0]


def boxes(rows: list[tuple[int, int, list[float]]], score: Sequence[float] = ()) -> Boxes:
    """Return boxes of 100 square pixels: image, class and corners of each."""
    image, label, corners = zip(*rows, strict=True)
    ids = np.array(image, np.int32), np.array(label, np.int32)
    area = np.full(len(rows), 100.0)
    return Boxes(*ids, np.array(corners), area, area, np.array(score))


def test_two_max_dets_of_a_class_with_a_duplicate() -> None:
    """The second class has TP, FP, TP, FP, TP and a duplicate, of 4 objects on 3 images.

    At one detection per image: TP, FP, TP. One more detection is beyond max dets 2.
    """
    detections = boxes(
        [
            *((0, 0, SQUARE), (0, 1, SQUARE), (1, 1, EMPTY), (1, 1, SQUARE)),
            *((0, 1, EMPTY), (2, 1, SQUARE), (2, 1, SQUARE), (0, 1, EMPTY)),
        ],
        score=[0.2, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3],
    )
    other = [40.0, 0.0, 50.0, 10.0]
    ground_truths = boxes(
        [
            *((0, 0, SQUARE), (0, 1, SQUARE), (1, 1, SQUARE), (2, 1, SQUARE), (2, 1, other)),
            (1, 1, other),  # ignored
        ]
    )
    none = np.zeros(6, np.bool_)
    scores = match_and_accumulate(
        detections,
        ground_truths,
        ignored=np.arange(6) == 5,
        crowd=none,
        unmatchable=none,
        images=3,
        classes=2,
        params=RULES._replace(max_dets=(1, 2), levels=(0.25, 0.5, 0.75, 1.0)),
        threads=2,
        all_max_dets=True,
        match_table=(),
    )
    assert scores.match_table is not None
    for one in (scores, accumulate(scores.match_table, threads=2, all_max_dets=True)):
        assert one.precision[:, 0, 0, :, 0].tolist() == [[1] * 4] * 2
        assert one.precision[:, 0, 0, :, 1].tolist() == [[1, 2 / 3, 0, 0], [1, 2 / 3, 3 / 5, 0]]
        assert one.average[0, :, 0] == pytest.approx([1, (1 + 2 / 3 + 3 / 5) / 4], abs=1e-15)
        assert one.recall[0, :, 0].tolist() == [[1, 1], [0.5, 0.75]]
        assert one.counts.T.tolist() == [[1, 0, 1, 1, 0, 0, 1], [4, 1, 7, 3, 3, 1, 6]]
