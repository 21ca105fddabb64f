"""Bounds of metrics over the orders of tied scores, by fixtures and by brute force."""

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detap
from detap.core import tie_orders
from detap.evaluation.scoring import score_tables
from detap.evaluation.tie_range import tie_range
from detap.protocols import ALL_AREAS, AreaRange, Protocol, protocol
from detap.tables.detection import Detections, GroundTruth
from tests.depth import examples
from tests.tables import dt_table, gt_table

AREAS = (ALL_AREAS, AreaRange("small", 0, 60, "s"), AreaRange("large", 60, 1e5, "l"))
tie_range_module = import_module("detap.evaluation.tie_range")


def test_fact_04_tie_bounds_are_reported_on_request(fixtures: Path) -> None:
    """fixtures/ties: 0.834983 in file order, 2/3 reversed; computed in its why.md."""
    folder = fixtures / "ties" / "coco"
    truth = detap.read_ground_truth(folder / "instances.json")
    for name in ("results.json", "results-reversed.json"):
        detections = detap.read_detections(folder / name, truth)
        lowest, value, highest = tie_range(score_tables(truth, detections, "coco"))["AP"]
        assert lowest == pytest.approx(2 / 3, abs=1e-12)
        assert highest == pytest.approx((51 + 50 * 2 / 3) / 101, abs=1e-12)
        assert lowest <= value <= highest


@pytest.mark.parametrize("rules", ["coco", "voc2012"])
def test_no_order_of_ties_exceeds_the_bounds(rules: str) -> None:
    """Six detections on separate ground truths: all 720 orders of two scores."""
    rng = np.random.default_rng(4)
    places = np.array([0, 30, 60, 90, 120, 150], float)
    shifts = np.array([0, 1, 2, 30, 3, 30], float)  # two are on nothing
    truth = gt_table([[x, 0, x + 10, 10] for x in places])
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
        detections = dt_table(boxes[rows], score[rows])
        values.append(next(iter(score_tables(truth, detections, rules).summary.values())))
    rows = rng.permutation(6).tolist()
    detections = dt_table(boxes[rows], score[rows])
    (lowest, _, highest) = next(iter(tie_range(score_tables(truth, detections, rules)).values()))
    assert (lowest, highest) == (min(values), max(values))


RULES = {
    "coco": replace(protocol("coco"), iou_thresholds=(0.3, 0.6)),
    "coco-limits": replace(
        protocol("coco"), iou_thresholds=(0.3, 0.6), max_dets=(1, 3), area_ranges=AREAS
    ),
    "coco-strict": replace(protocol("coco-strict"), iou_thresholds=(0.3,)),
    "image-limit": replace(
        protocol("coco"), iou_thresholds=(0.3,), max_dets=(2, 4), max_dets_scope="image"
    ),
    "class-agnostic": replace(protocol("coco"), iou_thresholds=(0.3,), class_agnostic=True),
    "voc2012": replace(protocol("voc2012"), iou_thresholds=(0.3,)),
    "voc2007": replace(protocol("voc2007"), iou_thresholds=(0.3,), max_dets=(2,)),
    "zero": replace(protocol("voc2012"), absent_class="zero", candidate="best-unmatched"),
    "zero-if-detected": replace(protocol("tidecv-ap"), iou_thresholds=(0.3,), max_dets=(2,)),
    "trapezoid": replace(protocol("ultralytics"), iou_thresholds=(0.3, 0.6), min_score=0.3),
    "proposals": replace(protocol("proposals"), iou_thresholds=(0.3, 0.6), max_dets=(1, 3)),
}


def random_ties(seed: int) -> tuple[GroundTruth, Detections]:
    """Return a few overlapping boxes on a coarse grid, with two scores."""
    random = np.random.default_rng(seed)
    truths, claims = int(random.integers(1, 6)), int(random.integers(2, 7))

    def boxes(count: int) -> Any:
        start = random.integers(0, 4, (count, 2)) * 3.0
        return np.hstack([start, start + random.integers(2, 5, (count, 2)) * 3.0])

    def names(count: int, what: str) -> list[str]:
        return [f"{what}{n}" for n in random.integers(0, random.integers(1, 3), count)]

    truth = GroundTruth.from_arrays(
        image=names(truths, "i"),
        label=names(truths, "c"),
        boxes=boxes(truths),
        crowd=random.random(truths) < 0.2,
        difficult=random.random(truths) < 0.2,
        images=["i0", "i1"],
        classes=["c0", "c1"],
    )
    detections = Detections.from_arrays(
        image=names(claims, "i"),
        label=names(claims, "c"),
        boxes=boxes(claims),
        score=random.choice([0.25, 0.5], claims, p=[0.3, 0.7]),
    )
    return truth, detections


def every_order(score: Any) -> Iterator[list[int]]:
    """Yield the rows in each order with descending scores."""
    ties = [np.flatnonzero(score == value).tolist() for value in np.unique(score)[::-1]]
    for orders in product(*(permutations(tie) for tie in ties)):
        yield [row for order in orders for row in order]


def outside(
    truth: GroundTruth, detections: Detections, protocol: Protocol
) -> tuple[list[object], dict[str, float]]:
    """Return the metrics that any order moves out of bounds, and the slack of each bound."""
    detections = detections.reindex_like(truth)
    ranges = tie_range(score_tables(truth, detections, protocol))
    protocol = replace(protocol, tie_break="file")
    orders = [
        score_tables(truth, detections.select(np.array(rows, np.int32)), protocol).summary
        for rows in every_order(detections.score)
    ]
    wrong: list[object] = []
    slack = {}
    for name, (lowest, value, highest) in ranges.items():
        values = [summary[name] for summary in orders]
        if np.isnan(value):
            assert np.isnan([lowest, highest, *values]).all()
            continue
        if not (lowest - 1e-12 <= min(values) <= max(values) <= highest + 1e-12):
            wrong.append((name, lowest, min(values), max(values), highest))
        slack[name] = (min(values) - lowest) + (highest - max(values))
    return wrong, slack


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("states", [4096, 3])
@examples(30, least=8)
@given(seed=st.integers(0, 2**32 - 1))
def test_bounds_hold_for_every_order(rules: str, states: int, seed: int) -> None:
    """By brute force, also with too many states to enumerate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tie_orders, "MAX_STATES", states)
        patch.setattr(tie_range_module, "MAX_ORDERS", states - 2)
        wrong, _ = outside(*random_ties(seed), RULES[rules])
    assert not wrong


def test_two_tied_detections_of_one_ground_truth() -> None:
    """A former bug reported 1.0000 to 1.0000 although another order gives .5.

    The first box overlaps both ground truths, the left one more; the second only the left one.
    If the first ranks first, it matches the left one and the second is a false positive: one of
    two is matched at precision 1, AP 51/101. In the other order both are matched.
    """
    truth = gt_table([[0, 0, 10, 10], [4, 0, 14, 10]])
    boxes, score = np.array([[1.0, 0, 11, 10], [-1, 0, 9, 10]]), [0.5, 0.5]
    rules = replace(protocol("coco"), iou_thresholds=(0.5,))
    for rows in ([0, 1], [1, 0]):
        detections = dt_table(boxes[rows], score)
        lowest, value, highest = tie_range(score_tables(truth, detections, rules))["AP"]
        assert lowest == pytest.approx(51 / 101, abs=1e-12)
        assert highest == pytest.approx(1, abs=1e-12)
        assert value == pytest.approx((51 / 101, 1)[rows == [1, 0]], abs=1e-12)


def test_two_detections_of_one_ground_truth_are_a_tp_and_a_duplicate() -> None:
    """The first is the true positive in either order, so nothing changes."""
    truth = gt_table([[0, 0, 10, 10]])
    detections = dt_table([[0, 0, 10, 10], [0, 0, 10, 9]], [1, 1])
    lowest, value, highest = tie_range(score_tables(truth, detections, "voc2012"))["mAP"]
    assert (lowest, value, highest) == (1, 1, 1)


def test_a_tie_at_max_dets() -> None:
    """Only one of two equal scores counts: the one on the ground truth or the other."""
    truth = gt_table([[0, 0, 10, 10]])
    detections = dt_table([[0, 0, 10, 10], [50, 0, 60, 10]], [1, 1])
    rules = replace(protocol("voc2012"), max_dets=(1,))
    assert tie_range(score_tables(truth, detections, rules))["mAP"] == (0, 1, 1)
    proposals = replace(protocol("proposals"), max_dets=(1,))
    assert tie_range(score_tables(truth, detections, proposals))["AR1"] == (0, 1, 1)


def test_each_detection_of_a_tie_counts_once() -> None:
    """Two of three count, one of which is a miss: one miss or none, never two."""
    miss, neither = (tie_orders.MatchOptions((), o) for o in (tie_orders.MISS, tie_orders.NEITHER))
    tie = tie_orders.Tie((miss, neither, neither), 2, 2)
    assert tie_orders.count_bounds([tie], 0) == [tie_orders.CountBounds(0, 0, 0, 1, 1)]


def test_proposals_do_not_rank_by_score() -> None:
    truth = gt_table([[0, 0, 9, 9]])
    detections = dt_table([[0, 0, 9, 9], [50, 50, 60, 60]], [1, 1])
    ranges = tie_range(score_tables(truth, detections, "proposals"))
    assert ranges["AR100"] == (1, 1, 1)


def tied_proposals(boxes: list[list[float]]) -> tuple[GroundTruth, Detections]:
    """Return two ground truths on an image, 50 pixels apart, and proposals with one score."""
    truth = gt_table([[0, 0, 10, 10], [50, 0, 60, 10]])
    detections = dt_table(boxes, [1.0] * len(boxes))
    return truth, detections


def test_a_tie_of_proposals_at_max_dets() -> None:
    """One of two counts: on one of the two ground truths, or on none."""
    tables = tied_proposals([[100, 0, 110, 10], [0, 0, 10, 10]])
    proposals = replace(protocol("proposals"), max_dets=(1,))
    assert tie_range(score_tables(*tables, proposals))["AR1"] == (0, 0, 0.5)


def test_loose_bounds_of_proposals_with_many_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three proposals on one ground truth match it in any order: at least half of one, so one.

    The IoUs .5 are equal. Only one ground truth is reached by any of them.
    """
    monkeypatch.setattr(tie_range_module, "MAX_ORDERS", 1)
    tables = tied_proposals([[0, 0, 10, 5], [0, 5, 10, 10], [0, 0, 5, 10]])
    proposals = replace(protocol("proposals"), iou_thresholds=(0.5,), max_dets=(10,))
    assert tie_range(score_tables(*tables, proposals))["AR10"] == (0.5, 0.5, 0.5)
