"""Invariants of keypoint evaluation."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap import metrics
from detap.analysis.comparison import count_errors
from detap.analysis.confusion import confusion
from detap.analysis.errors import errors
from detap.evaluation.results import Result
from detap.evaluation.scoring import on_images
from detap.evaluation.tie_range import tie_range
from detap.protocols import protocol
from detap.protocols.fields import SIGMAS
from tests.laws.test_masks import Scene, same
from tests.laws.test_masks import scored as scored_records

pytestmark = pytest.mark.filterwarnings("ignore::detap.errors.DetapWarning")

RULES = protocol("coco-keypoints").with_changes(sigmas=(0.05, 0.1, 0.2))

coordinate = st.integers(0, 40)
pose = st.lists(st.tuples(coordinate, coordinate, st.integers(0, 2)), min_size=3, max_size=3)


def flat(points: list[tuple[int, int, int]]) -> list[int]:
    return [value for point in points for value in point]


@st.composite
def keypoint_cases(draw: st.DrawFn) -> Scene:
    truths, detections = [], []
    for number in range(1, draw(st.integers(1, 6)) + 1):
        points = draw(pose)
        here = {"image_id": draw(st.integers(1, 3)), "category_id": draw(st.integers(1, 2))}
        truths.append(
            {
                **here,
                "id": number,
                "bbox": [draw(coordinate), draw(coordinate), draw(coordinate), draw(coordinate)],
                "area": draw(st.sampled_from([200, 1500, 10000])),
                "iscrowd": int(draw(st.booleans()) and draw(st.booleans())),
                "num_keypoints": sum(v > 0 for _, _, v in points),
                "keypoints": flat(points),
            }
        )
        for _ in range(draw(st.integers(0, 3))):
            moved = [(x + draw(st.integers(-6, 6)), y, 1) for x, y, _ in points]
            score = draw(st.sampled_from([0.25, 0.5, 0.75]))
            detections.append({**here, "score": score, "keypoints": flat(moved)})
    return truths, detections


def scored(truths: Any, results: Any, protocol: Any = RULES, **more: Any) -> Result:
    return scored_records(truths, results, protocol, **{"match_table": False, **more})


def same_numbers(one: Result, other: Result) -> None:
    assert one.summary.keys() == other.summary.keys()
    same([*one.summary.values()], [*other.summary.values()])
    same(one.full_precision(), other.full_precision())
    same(one.recall, other.recall)


def changed(records: list[dict[str, Any]], change: Any) -> list[dict[str, Any]]:
    return [
        record
        | {
            "keypoints": [
                value
                for x, y, v in zip(*(iter(record["keypoints"]),) * 3, strict=True)
                for value in change(x, y, v)
            ]
        }
        for record in records
    ]


@given(keypoint_cases())
def test_skipped_pairs_do_not_change_results(case: Scene) -> None:
    """Pairs that surely stay below the lowest threshold are skipped."""
    same_numbers(scored(*case), scored(*case, match_table=True))


@given(keypoint_cases(), st.integers(1, 4))
def test_threads_do_not_change_results(case: Scene, threads: int) -> None:
    same_numbers(scored(*case, threads=threads), scored(*case, threads=1))


@given(keypoint_cases(), st.integers(-500, 500), st.integers(-500, 500))
def test_shifting_an_image_does_not_change_results(case: Scene, x: int, y: int) -> None:
    """By whole pixels, so that no distance is rounded."""
    truths, detections = ([*changed(side, lambda a, b, v: (a + x, b + y, v))] for side in case)
    for record in truths:
        left, top, *sides = record["bbox"]
        record["bbox"] = [left + x, top + y, *sides]
    same_numbers(scored(truths, detections), scored(*case))


@given(keypoint_cases())
def test_only_v_above_0_matters(case: Scene) -> None:
    """Any v above 0 is labeled; v of detections is not read."""
    truths = changed(case[0], lambda x, y, v: (x, y, 2 * v))
    detections = changed(case[1], lambda x, y, _: (x, y, 0))
    same_numbers(scored(truths, detections), scored(*case))


@given(keypoint_cases())
def test_the_position_of_an_unlabeled_keypoint_does_not_matter(case: Scene) -> None:
    truths = changed(case[0], lambda x, y, v: (x, y, v) if v else (7, -7, 0))
    same_numbers(scored(truths, case[1]), scored(*case))


@given(keypoint_cases(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_no_oks(case: Scene, random: Any) -> None:
    """OKS values stay; among equally good ground truths the match depends on the order."""
    truths, detections = case
    for n, entry in enumerate(detections):
        entry["score"] = 1 - n / 32
    whole = scored(truths, detections, match_table=True)
    random.shuffle(truths)
    random.shuffle(detections)
    again = scored(truths, detections, match_table=True)
    same(again.match_table.max_iou[np.argsort(-again.detections.score)], whole.match_table.max_iou)


@given(keypoint_cases())
def test_analyses_agree_with_matches(case: Scene) -> None:
    """Errors, confusion matrix and error counts agree with the match table."""
    result = scored(*case, match_table=True)
    match_table = result.match_table
    rows = np.arange(len(match_table))
    wrong = ~match_table.is_true_positive(0, 0, rows) & ~match_table.is_ignored(0, 0, rows)
    assert np.array_equal(errors(result).kind >= 0, wrong)
    hits = int(match_table.is_true_positive(0, 0, rows).sum())
    assert np.trace(confusion(result).matrix[:2, :2]) >= hits
    assert len(count_errors(result).by_image)
    least = tie_range(result)
    for name, value in result.summary.items():
        assert np.isnan(value) or least[name].lowest <= value <= least[name].highest
    same([*on_images(result, [1, 2, 3]).summary.values()], [*result.summary.values()])


def test_changing_iou_type_to_keypoints_sets_the_dependent_fields() -> None:
    plain = protocol("coco-keypoints")
    assert protocol("coco").with_changes(iou_type="keypoints").sigmas == SIGMAS["coco"]
    boxes = plain.with_changes(iou_type="bbox", max_dets=(1, 10, 100))
    assert (boxes.sigmas, boxes.ignore_flags) == ((), ("crowd",))
    extent = plain.with_changes(detection_area="extent")
    assert extent.with_changes(iou_type="segm").detection_area == "box"
    agnostic = protocol("coco").with_changes(class_agnostic=True)
    assert not agnostic.with_changes(iou_type="keypoints").class_agnostic


def test_recall_names_at_thresholds_yield_to_those_at_max_dets() -> None:
    """With max dets 50 the name AR50 is taken."""
    plain = protocol("coco-keypoints")
    assert metrics.named(plain, "AR75").threshold == 5
    rules = plain.with_changes(max_dets=(20, 50))
    names = [measure.name for measure in metrics.summary(rules)]
    assert names == ["AP", "AP50", "AP75", "APm", "APl", "AR20", "AR50", "AR75", "ARm", "ARl"]
    assert metrics.named(rules, "AR50").threshold is None
