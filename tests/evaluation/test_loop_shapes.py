"""Masks and keypoints in batches: missing, extra or mismatched data is refused at once.

tests/laws/test_loops.py tests that they score as files do.
"""

from typing import Any

import numpy as np
import pytest

import detap
from detap.errors import InputError, UsageError
from detap.evaluation.loop.evaluator import Evaluator
from detap.tables.detection import GroundTruth
from tests.laws.test_laws import assert_same_result
from tests.tables import gt_table

BITS = np.zeros((2, 6, 9), np.bool_)
BITS[0, 1:4, 2:7] = True
BITS[1, 5, 8] = True
BOXES = [[2.0, 1.0, 5.0, 3.0], [8.0, 5.0, 1.0, 1.0]]
POSES = np.array([[[1.0, 2, 2], [5, 4, 1]], [[3, 3, 2], [2, 8, 1]]])
RULES = detap.protocol("coco-keypoints").with_changes(sigmas=(0.1, 0.2))
NEAR = 1e-12


def masked() -> GroundTruth:
    return GroundTruth.from_arrays(
        image=["a", "a"], label=[1, 2], masks=BITS, images=["a", "b"], classes=[1, 2]
    )


def take(evaluator: Evaluator, **changes: Any) -> None:
    """Update image a with two detections, and b with none."""
    update: dict[str, Any] = {"scores": [[0.5, 0.25], []], "labels": [[1, 2], []]}
    masks = [BITS, BITS[:0]]
    evaluator.update(["a", "b"], **({"boxes": None, "masks": masks} | update | changes))


def test_masks_do_not_need_boxes() -> None:
    evaluator = Evaluator(masked(), "coco-segm", "xyxy")
    take(evaluator)
    result = evaluator.compute()
    assert result.summary["AP"] == pytest.approx(1, abs=NEAR)
    assert result.detections.corners.tolist() == [[2, 1, 7, 4], [8, 5, 9, 6]]
    assert result.detections.area is not None
    assert result.detections.area.tolist() == [15, 1]


def test_updates_with_and_without_boxes_mix() -> None:
    """The area of a row with a box is the box's: 200 * 200 is large, 15 pixels are small."""
    table = GroundTruth.from_arrays(image=["a", "b"], label=[1, 1], masks=BITS)
    evaluator = Evaluator(table, "coco-segm")
    evaluator.update(["a"], [[[0, 0, 200, 200]]], [[0.5]], [[1]], masks=[BITS[:1]])
    evaluator.update(["b"], None, [[0.5]], [[1]], masks=[BITS[:1]])
    area = evaluator.compute().detections.area
    assert area is not None
    assert area.tolist() == [40_000, 15]


def test_the_area_of_batched_ground_truth_is_its_mask_area() -> None:
    evaluator = Evaluator(protocol="coco-segm")
    brought: dict[str, Any] = {"labels": [[1, 2], []], "masks": [BITS, []]}
    take(evaluator, ground_truth=brought | {"boxes": [BOXES, []]})
    assert evaluator.compute().ground_truth.area.tolist() == [15, 1]
    evaluator.reset()
    take(evaluator, ground_truth=brought | {"area": [[7, 8], []]})
    assert evaluator.compute().ground_truth.area.tolist() == [7, 8]
    assert evaluator.compute().ground_truth.corners[1].tolist() == [8, 5, 9, 6]


def test_repeated_images_with_equal_masks_are_dropped() -> None:
    evaluator = Evaluator(masked(), "coco-segm", repeats="identical")
    take(evaluator)
    take(evaluator)
    once = Evaluator(masked(), "coco-segm")
    take(once)
    assert_same_result(evaluator.compute(), once.compute())
    other = BITS.copy()
    other[0, 2, 3] = False  # within the others: boxes are the same
    with pytest.raises(InputError, match="image 'a' is updated twice, with different rows"):
        take(evaluator, masks=[other, []])


def test_updates_of_polygons_and_of_boxes_mix() -> None:
    """A square on its corner covers half of its bounding box."""
    diamond = [5, 0, 10, 5, 5, 10, 0, 5]
    square = [0, 0, 10, 0, 10, 10, 0, 10]
    table = GroundTruth.from_arrays(image=["a", "b"], label=[1, 1], polygons=[diamond, square])
    evaluator = Evaluator(table, "coco-polygon")
    evaluator.update(["a"], None, [[0.5]], [[1]], polygons=[[diamond]])
    evaluator.update(["b"], [[[0, 0, 10, 10]]], [[0.5]], [[1]])
    result = evaluator.compute()
    assert result.summary["AP"] == pytest.approx(1, abs=NEAR)
    assert result.detections.area is not None
    assert result.detections.area.tolist() == [50, 100]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"masks": [BITS]}, "masks has 1 entries for 2 images; give one entry per image, an empty"),
        ({"masks": BITS[0]}, "masks has 6 entries for 2 images"),
        ({"masks": [BITS, BITS]}, "detections: image 'b': 2 masks and 0 labels; give as many"),
        ({"scores": [[0.5], []]}, "image 'a': 2 masks and 1 scores; give as many of each"),
        ({"boxes": [BOXES[:1], []]}, "image 'a': 1 boxes and 2 masks; give as many of each"),
        ({"masks": [BITS * 1.0, []]}, "image 'a': masks has dtype float64; expected bool, or ui"),
        ({"masks": [BITS[0], []]}, r"image 'a': masks has shape \(6, 9\); expected \(n, H, W\)"),
        ({"masks": [[BITS[0], {}], []]}, "detections: image 'a', row 1: masks has no size; expec"),
        ({"masks": [{1: 2}, []]}, "image 'a': masks is a dict; expected bitmaps"),
    ],
)
def test_masks_of_the_wrong_shape(change: dict[str, Any], message: str) -> None:
    evaluator = Evaluator(masked(), "coco-segm")
    with pytest.raises(InputError, match=message):
        take(evaluator, **change)
    take(evaluator)  # nothing of it was kept
    assert evaluator.compute().detections_count.tolist() == [1, 1]


def test_sizes_are_compared_with_the_ground_truth() -> None:
    evaluator = Evaluator(masked(), "coco-segm")
    with pytest.raises(
        InputError, match=r"image 'a': mask size \[9, 6\] differs from \[6, 9\] of "
    ):
        take(evaluator, masks=[[BITS[0], BITS[1].T], []])
    take(evaluator, masks=[BITS[:, 1:], []])
    message = (
        r"detections: image 'a': mask size \[5, 9\] differs from \[6, 9\] of another mask; use the "
        "size of the annotated image for all its masks"
    )
    with pytest.raises(InputError, match=message):
        evaluator.compute()


def test_sizes_are_compared_with_the_ground_truth_of_the_batch() -> None:
    brought: dict[str, Any] = {"labels": [[1, 2], []], "masks": [BITS[:, 1:], []]}
    with pytest.raises(InputError, match=r"image 'a': mask size \[6, 9\] differs from "):
        take(Evaluator(protocol="coco-segm"), ground_truth=brought)
    brought["masks"] = [[BITS[0], BITS[1].T], []]
    with pytest.raises(InputError, match=r"ground truth: image 'a': mask size \[9, 6\]"):
        take(Evaluator(protocol="coco-segm"), ground_truth=brought)


@pytest.mark.parametrize(
    ("rules", "change", "message"),
    [
        (
            "coco-segm",
            {"masks": None},
            "protocol coco-segm compares masks; give those of the detections",
        ),
        (
            "coco",
            {},
            "protocol coco does not compare masks; omit those of the detections, or choose a "
            "protocol that does",
        ),
        ("coco", {"masks": None, "keypoints": []}, "does not compare keypoints"),
        ("coco-boundary", {"keypoints": [[], []]}, "does not compare keypoints"),
    ],
)
def test_missing_or_unused_masks_and_keypoints(
    rules: str, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        take(Evaluator(masked(), rules), **change)


def test_missing_or_extra_keys_in_the_ground_truth_of_a_batch() -> None:
    brought: dict[str, Any] = {"boxes": [BOXES, []], "labels": [[1, 2], []]}
    with pytest.raises(
        UsageError, match="compares masks; give those of the ground truth, one entry per"
    ):
        take(Evaluator(protocol="coco-segm"), ground_truth=brought)
    with pytest.raises(
        UsageError, match="compare masks; omit those of the ground truth, or choose"
    ):
        take(
            Evaluator(), boxes=[BOXES, []], masks=None, ground_truth=brought | {"masks": [BITS, []]}
        )
    with pytest.raises(InputError, match="ground truth: boxes: expected a list with one entry"):
        take(Evaluator(), boxes=[BOXES, []], masks=None, ground_truth={"labels": [[], []]})
    with pytest.raises(UsageError, match=r"an unknown key 'mask'; did you mean masks"):
        take(Evaluator(protocol="coco-segm"), ground_truth={"labels": [[], []], "mask": [BITS, []]})


def test_a_ground_truth_without_masks_is_refused_at_once() -> None:
    boxed = gt_table([[0, 0, 5, 5]], image="a", label=1)
    message = "no masks in the ground truth; pass masks=True to read_ground_truth or masks= to"
    with pytest.raises(UsageError, match=message):
        Evaluator(boxed, "coco-segm")


def test_the_number_of_keypoints_must_match_the_protocol() -> None:
    table = gt_table(
        BOXES, image="a", label=1, box_format="xywh", keypoints=POSES, area=[2000, 2000]
    )
    evaluator = Evaluator(table, RULES)
    update: dict[str, Any] = {"boxes": None, "scores": [[0.5, 0.25]], "labels": [[1, 1]]}
    with pytest.raises(InputError, match=r"image 'a': .* \(2, 1, 3\); expected \(2, 2, 3\): x, y"):
        evaluator.update(["a"], **update, keypoints=[POSES[:, :1]])
    with pytest.raises(
        InputError, match="image 'a', row 1: keypoints has inf; expected coordinates"
    ):
        evaluator.update(["a"], **update, keypoints=[POSES * [[[1]], [[np.inf]]]])
    with pytest.raises(
        UsageError, match="sizes does not apply to keypoints; give boxes and keypoints in"
    ):
        evaluator.update(["a"], **update, keypoints=[POSES], sizes=[[9, 6]])
    with pytest.raises(InputError, match="keypoints without boxes; pass boxes too"):
        Evaluator(protocol=RULES).update(
            ["a"],
            **update,
            keypoints=[POSES],
            ground_truth={"labels": [[1]], "keypoints": [POSES[:1]]},
        )
    evaluator.update(["a"], **update, keypoints=[POSES[:, :, :2]])
    assert evaluator.compute().summary["AP"] == 1


def test_a_protocol_without_sigmas_takes_any_number_of_keypoints() -> None:
    """A batch has one number; all updates have that of the first with rows."""
    evaluator = Evaluator(protocol="ultralytics-pose")

    def update(images: str, *poses: Any) -> None:
        given: Any = {"labels": [[1]] * len(poses), "keypoints": poses}
        brought = given | {"boxes": [BOXES[:1]] * len(poses)}
        scores = [[0.5]] * len(poses)
        evaluator.update([*images], None, scores, ground_truth=brought, **given)

    with pytest.raises(
        InputError, match=r"image 'b': .* \(1, 1, 3\); expected \(1, 2, 3\): x, y, v"
    ):
        update("ab", POSES[:1], POSES[:1, :1])
    update("ab", POSES[:1], POSES[1:])
    assert evaluator.compute().summary["AP"] == pytest.approx(1, abs=NEAR)
    update("c", POSES[:1, :1])
    with pytest.raises(InputError, match="objects have 1 keypoints, but 2 in ground truth"):
        evaluator.compute()


def test_a_protocol_without_sigmas_evaluates_detections_alone() -> None:
    evaluator = Evaluator(protocol="ultralytics-pose")
    nothing: Any = {"boxes": [[]], "labels": [[]], "keypoints": [[]]}
    evaluator.update(["a"], None, [[0.5]], [[1]], keypoints=[POSES[:1]], ground_truth=nothing)
    assert np.isnan(evaluator.compute().summary["AP"])


def test_width_and_height_of_boxes_are_kept_to_the_last_bit() -> None:
    """OKS of ground truths without labeled keypoints uses them: .1 + .2 - .1 > .2."""
    box, poses = [0.1, 0.1, 0.2, 0.2], POSES[:1]
    assert box[0] + box[2] - box[0] != box[2]
    for form, given, expected in (
        ("xywh", box, [0.2, 0.2]),
        ("cxcywh", [0.3, 0.3, 0.2, 0.2], [0.2, 0.2]),
        ("xyxy", [1.0, 1.0, 3.0, 4.0], [2, 3]),
    ):
        evaluator = Evaluator(protocol=RULES, boxes=form)  # type: ignore[arg-type]
        brought = {"boxes": [[given]], "labels": [[1]], "keypoints": [poses]}
        evaluator.update(["a"], None, [[0.5]], [[1]], keypoints=[poses], ground_truth=brought)
        width_height = evaluator.compute().ground_truth.width_height
        assert width_height is not None
        assert width_height.tolist() == [expected]
    table = gt_table([box], image="a", label=1, box_format="xywh", keypoints=poses)
    assert table.width_height is not None
    assert table.width_height.tolist() == [[0.2, 0.2]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"segmentation": None}, "record 0: segmentation is missing; give image_id, category_id, "),
        ({"segmentation": [[0, 0, 5, 0, 5, 5]]}, "image 'a', row 0: masks is a list; expected bi"),
    ],
)
def test_records_without_masks(change: dict[str, Any], message: str) -> None:
    runs = {"size": [6, 9], "counts": [54]}
    record = {"image_id": "a", "category_id": 1, "score": 0.5, "segmentation": runs} | change
    record = {key: value for key, value in record.items() if value is not None}
    with pytest.raises(InputError, match=message):
        Evaluator(masked(), "coco-segm").update_records(["a"], [record])


@pytest.mark.parametrize(
    ("poses", "message"),
    [
        ([[1, 2, 2], [3, 4]], r"keypoints has shape \(1, 2\); expected \(1, 2, 3\): x, y, v"),
        ([[1, 2, 2], [3, 4], [5, 6, 2]], r"keypoints has shape .*; expected \(1, 2, 3\): x, y, v"),
        ([True, 2, 2, 3, 4, 2], r"row 0: keypoints is \[True, 2, 2, 3, 4, 2\]; expected numbers"),
        (["1", 2, 2, 3, 4, 2], r"row 0: keypoints is \['1', 2, 2, 3, 4, 2\]; expected numbers"),
    ],
)
def test_records_with_wrong_keypoints(poses: Any, message: str) -> None:
    table = gt_table(BOXES[:1], image="a", label=1, box_format="xywh", keypoints=POSES[:1])
    record = {"image_id": "a", "category_id": 1, "score": 0.5, "keypoints": poses}
    with pytest.raises(InputError, match=f"image 'a'.*{message}"):
        Evaluator(table, RULES).update_records(["a"], [record])


def test_boxes_as_polygons_have_the_area_of_a_table_of_boxes_to_the_last_bit() -> None:
    """25.6 by 40 pixels are small and medium, or after rounding of the corners one of them."""
    boxes = np.array([[70 + 0.1 * n, 70 + 0.3 * n, 25.6, 40] for n in range(1, 9)])
    columns: dict[str, Any] = {"image": ["a"] * 8, "label": [1] * 8}
    table = GroundTruth.from_arrays(**columns, boxes=boxes + 500, box_format="xywh")
    evaluator = Evaluator(table, "coco-polygon")
    evaluator.update(["a"], [boxes], [[0.5] * 8], [[1] * 8])
    detections = detap.Detections.from_arrays(
        **columns, boxes=boxes, box_format="xywh", score=[0.5] * 8
    )
    results = evaluator.compute(), detap.evaluate(table, detections, "coco-polygon")
    areas = [result._run.boxes()[0].area.tolist() for result in results]
    assert areas[0] == areas[1]
    assert len({*areas[0]}) > 1


def test_either_all_records_have_boxes_or_none() -> None:
    record = {"image_id": "a", "category_id": 1, "score": 0.5}
    record["segmentation"] = {"size": [6, 9], "counts": [54]}
    with pytest.raises(InputError, match="record 1: bbox is missing"):
        Evaluator(masked(), "coco-segm").update_records(
            ["a"], [record | {"bbox": BOXES[0]}, record]
        )
