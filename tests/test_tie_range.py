"""How far numbers move with the order of equal scores, by fixtures and against every order."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import detap
from detap.tables import Detections, GroundTruth
from detap.tie_range import tie_range


def test_fact_04_the_range_of_ties_is_reported_when_asked(fixtures: Path) -> None:
    """fixtures/ties: 0.834983 as the file stands, 2/3 reversed, worked in its why.md."""
    folder = fixtures / "ties" / "coco"
    truth = detap.read_ground_truth(folder / "instances.json")
    for name in ("results.json", "results-reversed.json"):
        found = detap.read_detections(folder / name, truth)
        lowest, value, highest = tie_range(detap.evaluate(truth, found, "coco"))["AP"]
        assert lowest == pytest.approx(2 / 3, abs=1e-12)
        assert highest == pytest.approx((51 + 50 * 2 / 3) / 101, abs=1e-12)
        assert lowest <= value <= highest


@pytest.mark.parametrize("rules", ["coco", "voc2012"])
def test_no_order_of_ties_goes_further(rules: str) -> None:
    """Six detections on ground truths of their own: all 720 orders of two scores are tried."""
    rng = np.random.default_rng(4)
    places = np.array([0, 30, 60, 90, 120, 150], float)
    shifts = np.array([0, 1, 2, 30, 3, 30], float)  # two are on nothing
    truth = GroundTruth.from_arrays(
        image=["i"] * 6,
        label=["c"] * 6,
        boxes=[[x, 0, x + 10, 10] for x in places],
    )
    boxes = np.array(
        [
            [x + s, 500 * (s > 9), x + s + 10, 500 * (s > 9) + 10]
            for x, s in zip(places, shifts, strict=True)
        ]
    )
    score = np.array([0.9, 0.9, 0.5, 0.9, 0.5, 0.5])
    values = []
    for order in permutations(range(6)):
        rows = list(order)
        found = Detections.from_arrays(
            image=["i"] * 6, label=["c"] * 6, boxes=boxes[rows], score=score[rows]
        )
        values.append(next(iter(detap.evaluate(truth, found, rules).summary.values())))
    rows = rng.permutation(6).tolist()
    found = Detections.from_arrays(
        image=["i"] * 6, label=["c"] * 6, boxes=boxes[rows], score=score[rows]
    )
    (lowest, _, highest) = next(iter(tie_range(detap.evaluate(truth, found, rules)).values()))
    assert (lowest, highest) == (min(values), max(values))


def test_proposals_do_not_rank_by_score() -> None:
    truth = GroundTruth.from_arrays(image=["i"], label=["c"], boxes=[[0, 0, 9, 9]])
    found = Detections.from_arrays(
        image=["i"] * 2, label=["c"] * 2, boxes=[[0, 0, 9, 9], [50, 50, 60, 60]], score=[1, 1]
    )
    ranges = tie_range(detap.evaluate(truth, found, "proposals"))
    assert ranges["AR100"] == (1, 1, 1)
