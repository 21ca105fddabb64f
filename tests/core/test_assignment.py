"""The assignment of detections without scores: expected cases, and all of small ones."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.core.arrays import Boxes
from detap.core.assignment import Candidates, Flags, Floats, Integers, assign, candidates

KINDS = ("counted", "ignore", "any", "crowd")


def boxes_of(rows: list[dict[str, Any]], images: list[str], classes: list[str]) -> Boxes:
    """Return the core's columns of rows with image, class and box."""
    corners = np.array([row["box"] for row in rows], np.float64).reshape(-1, 4)
    area = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
    return Boxes(
        np.array([images.index(row["image"]) for row in rows], np.int32),
        np.array([classes.index(row["class"]) for row in rows], np.int32),
        corners,
        area,
        area,
        np.zeros(len(rows)),
    )


def assigned(
    pairs: Candidates,
    count: int,
    kinds: list[str],
    *,
    threshold: float = 0.5,
    free: Flags | None = None,
    strict: bool = False,
) -> tuple[Integers, Flags]:
    """Assign some detections to ground truths of some kinds."""
    kind = np.array(kinds, dtype="U8")
    return assign(
        pairs,
        counted=kind == "counted",
        repeatable=np.isin(kind, ["any", "crowd"]),
        never_false=np.zeros(count, np.bool_) if free is None else free,
        threshold=threshold,
        strict=strict,
    )


def pairs_of(detection: Any, truth: Any, iou: Any) -> Candidates:
    return Candidates(np.array(detection, np.int32), np.array(truth, np.int32), np.array(iou))


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_cases_of_the_reference_program(unscored: Path, seed: int | None) -> None:
    cases = json.loads((unscored / "matching.json").read_text())["cases"]
    assert len(cases) == 60
    for case in cases:
        truth_rows, rows = case["ground_truth"], case["detections"]
        if seed is not None:
            random = np.random.default_rng(seed)
            random.shuffle(truth_rows)
            random.shuffle(rows)
        classes = sorted({row["class"] for row in (*truth_rows, *rows)})
        boxes, truths = (boxes_of(part, case["images"], classes) for part in (rows, truth_rows))
        kinds = [row["kind"] for row in truth_rows]
        crowd = np.array([kind == "crowd" for kind in kinds], np.bool_)
        pairs = candidates((boxes, truths), crowd, None, inclusive_pixels=False)
        for expected in case["expected"]["by_threshold"]:
            truth, ignored = assigned(pairs, len(rows), kinds, threshold=expected["threshold"])
            true = int((truth >= 0).sum())
            assert len(set(truth[truth >= 0])) == true  # one to one
            counts = {
                "TP": true,
                "FP": int((~ignored).sum()) - true,
                "FN": kinds.count("counted") - true,
                "ignored": int(ignored.sum()),
            }
            assert counts == {key: expected[key] for key in counts}, case["id"]


def best_of_all(
    iou: Floats, kinds: list[str], free: Flags, threshold: float
) -> tuple[int, float, int] | None:
    """Return pairs, total IoU and false positives of the best assignment, by trying all."""
    detections, truths = iou.shape
    best = None
    for choice in product(range(-1, truths), repeat=detections):
        taken = [truth for truth in choice if truth >= 0 and kinds[truth] in ("counted", "ignore")]
        reached = all(t < 0 or iou[d, t] >= threshold for d, t in enumerate(choice))
        if not reached or len(taken) > len(set(taken)):
            continue
        pairs = [(d, t) for d, t in enumerate(choice) if t >= 0 and kinds[t] == "counted"]
        total = sum(iou[pair] for pair in pairs)
        false = sum(t < 0 and not free[d] for d, t in enumerate(choice))
        value = (len(pairs), round(total, 9), -false)
        best = value if best is None else max(best, value)
    return best


@given(
    st.lists(st.sampled_from(KINDS), max_size=3),
    st.integers(0, 4),
    st.data(),
)
def test_no_other_assignment_is_better(kinds: list[str], count: int, data: st.DataObject) -> None:
    levels = st.sampled_from([0.0, 0.4, 0.5, 0.6, 0.75, 1.0])
    iou = np.array([[data.draw(levels) for _ in kinds] for _ in range(count)], np.float64).reshape(
        count, len(kinds)
    )
    free = np.array([data.draw(st.booleans()) for _ in range(count)], np.bool_)
    truth, detection = np.nonzero(iou.T)  # by ground truth
    pairs = pairs_of(detection, truth, iou[detection, truth])
    chosen, ignored = assigned(pairs, count, kinds, free=free)
    rows = np.flatnonzero(chosen >= 0)
    total = round(float(iou[rows, chosen[rows]].sum()), 9)
    false = count - len(rows) - int(ignored.sum())
    assert (len(rows), total, -false) == best_of_all(iou, kinds, free, 0.5)


def test_more_pairs_are_better_than_a_greater_iou() -> None:
    # The first detection fits both ground truths, the second only the first one.
    pairs = pairs_of([0, 1, 0], [0, 0, 1], [0.9, 0.7, 0.6])
    assert assigned(pairs, 2, ["counted"] * 2)[0].tolist() == [1, 0]


@pytest.mark.parametrize(("strict", "truth"), [(False, 0), (True, -1)])
def test_a_strict_threshold_is_not_reached_by_equal_iou(strict: bool, truth: int) -> None:
    pairs = pairs_of([0], [0], [0.5])
    assert assigned(pairs, 1, ["counted"], strict=strict)[0].tolist() == [truth]


def test_ten_thousand_detections_of_one_object() -> None:
    count = 10_000
    pairs = pairs_of(np.arange(count), np.zeros(count), np.linspace(0.5, 0.9, count))
    truth, ignored = assigned(pairs, count, ["counted"])
    assert np.flatnonzero(truth >= 0).tolist() == [count - 1]
    assert not ignored.any()
