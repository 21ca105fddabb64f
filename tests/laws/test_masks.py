"""Invariants of masks: those that fill their boxes score as boxes; order does not matter."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.analysis.comparison import count_errors
from detap.analysis.confusion import confusion
from detap.analysis.errors import errors
from detap.errors import UsageError
from detap.evaluation.detection import evaluate
from detap.evaluation.results import Result
from detap.evaluation.scoring import on_images
from detap.evaluation.tie_range import tie_range
from detap.protocols import Protocol, protocol
from detap.tables.detection import Detections, GroundTruth
from tests.coco import read, saved

pytestmark = pytest.mark.filterwarnings("ignore::detap.errors.DetapWarning")

SIDE = 40
Scene = tuple[list[dict[str, Any]], list[dict[str, Any]]]
"""Ground truths and results, as records of COCO."""

box = st.tuples(*(st.integers(0, 12) for _ in range(2)), *(st.integers(1, 12) for _ in range(2)))
row = st.tuples(st.integers(1, 3), st.integers(1, 2), box)


def record(image: int, label: int, sides: tuple[int, ...], **more: Any) -> dict[str, Any]:
    fields = {"image_id": image, "category_id": label, "bbox": list(sides)}
    x, y, w, h = sides
    ring = [x, y, x + w, y, x + w, y + h, x, y + h]
    return {**fields, "segmentation": [ring], **more}


@st.composite
def mask_cases(draw: st.DrawFn) -> Scene:
    truths = [
        record(*entry, id=n, area=entry[2][2] * entry[2][3], iscrowd=int(draw(st.booleans())))
        for n, entry in enumerate(draw(st.lists(row, min_size=1, max_size=8)), 1)
    ]
    detections = [
        record(*entry, score=draw(st.sampled_from([0.25, 0.5, 0.75])))
        for entry in draw(st.lists(row, max_size=10))
    ]
    return truths, detections


def scored(truths: Any, results: Any, rules: Protocol | str = "coco-segm", **more: Any) -> Result:
    rules = protocol(rules) if isinstance(rules, str) else rules
    lists = {"neg_category_ids": [1], "not_exhaustive_category_ids": [2]}  # of LVIS
    sizes = [{"id": n, "width": SIDE, "height": SIDE, **lists} for n in (1, 2, 3)]
    classes = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    truth = {"images": sizes, "annotations": truths, "categories": classes}
    with tempfile.TemporaryDirectory() as folder:
        tables = read(saved(Path(folder), truth, results), **rules.reading)
    return evaluate(*tables, rules, **{"match_table": True, **more})


def same(one: Any, other: Any) -> None:
    assert np.array_equal(np.asarray(one), np.asarray(other), equal_nan=True)


@pytest.mark.parametrize(("of_masks", "of_boxes"), [("coco-segm", "coco"), ("lvis-segm", "lvis")])
@given(mask_cases())
def test_a_mask_that_fills_its_box_scores_as_the_box(
    of_masks: str, of_boxes: str, case: Scene
) -> None:
    masks, boxes = scored(*case, of_masks), scored(*case, of_boxes)
    assert masks.summary.keys() == boxes.summary.keys()
    same([*masks.summary.values()], [*boxes.summary.values()])
    same(masks.full_precision(), boxes.full_precision())
    for name in ("true_positive", "ignored", "max_iou", "matched_gt", "duplicate"):
        same(getattr(masks.match_table, name), getattr(boxes.match_table, name))
    assert str(tie_range(masks)) == str(tie_range(boxes))
    types, expected = errors(masks), errors(boxes)
    for name in ("kind", "target", "similarity", "missed", "unmatched"):
        same(getattr(types, name), getattr(expected, name))
    same(confusion(masks).matrix, confusion(boxes).matrix)
    same(count_errors(masks).by_image, count_errors(boxes).by_image)
    one = on_images(masks, [2])
    same([*one.summary.values()], [*on_images(boxes, [2]).summary.values()])


@given(mask_cases())
def test_boundaries_as_wide_as_the_image_equal_the_masks(case: Scene) -> None:
    deep = scored(*case, protocol("coco-boundary").with_changes(dilation_ratio=1))
    masks = scored(*case, protocol("coco-segm").with_changes(ignore_flags=("crowd", "ignore")))
    same([*deep.summary.values()], [*masks.summary.values()])
    for name in ("true_positive", "ignored", "max_iou", "matched_gt", "duplicate"):
        same(getattr(deep.match_table, name), getattr(masks.match_table, name))


@given(mask_cases())
def test_boundary_iou_never_exceeds_mask_iou(case: Scene) -> None:
    masks = scored(*case).match_table.max_iou
    for ratio in (0.02, 0.05, 0.2):
        rules = protocol("coco-boundary").with_changes(dilation_ratio=ratio)
        assert (scored(*case, rules).match_table.max_iou <= masks).all()


@given(mask_cases(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_no_iou(case: Scene, random: Any) -> None:
    """IoU values stay; among equally good ground truths the match depends on the order."""
    truths, detections = case
    for n, entry in enumerate(detections):
        entry["score"] = 1 - n / 16
    whole = scored(truths, detections)
    random.shuffle(truths)
    random.shuffle(detections)
    again = scored(truths, detections)
    order = np.argsort(-again.detections.score)
    same(again.match_table.max_iou[order], whole.match_table.max_iou)


def test_tables_without_masks_are_refused() -> None:
    boxes = np.array([[0.0, 0, 5, 5]])
    truth = GroundTruth.from_arrays(image=["a"], label=["b"], boxes=boxes)
    detections = Detections.from_arrays(image=["a"], label=["b"], boxes=boxes, score=[1.0])
    with pytest.raises(
        UsageError, match="no masks in the detections; pass masks=True to read_detections"
    ):
        evaluate(truth, detections, "coco-segm")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"inclusive_pixels": True},
            "inclusive_pixels has no effect with iou_type segm; leave out --inclusive-pixels",
        ),
        ({"box_decimals": 1}, "box_decimals has no effect with iou_type segm"),
        ({"matching": "by-iou"}, "iou_type segm requires matching by-score, not by-iou"),
    ],
)
def test_box_fields_have_no_effect(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        protocol("coco-segm").with_changes(**changes)
    with pytest.raises(UsageError, match="detection_area has no effect with iou_type bbox"):
        protocol("coco").with_changes(detection_area="pixels")


def test_changing_iou_type_to_masks_sets_the_dependent_fields() -> None:
    masks = protocol("voc2012").with_changes(iou_type="segm")
    assert not masks.inclusive_pixels
    pixels = masks.with_changes(detection_area="pixels")
    assert pixels.with_changes(iou_type="bbox").detection_area == "box"
