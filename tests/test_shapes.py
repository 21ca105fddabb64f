"""Masks and keypoints as arguments: accepted exactly or rejected with a hint."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pycocotools import mask

import detap
from detap.errors import InputError
from detap.tables import _runs
from detap.tables.detection import Detections, GroundTruth
from detap.tables.masks import Masks
from tests.evaluation.test_evaluator import ByArray, ByDlpack, LikeTorch

BITS = np.zeros((2, 6, 9), np.bool_)
BITS[0, 1:4, 2:7] = True
BITS[1, 5, 8] = True
RUNS = [mask.encode(np.asfortranarray(bits.astype(np.uint8))) for bits in BITS]
POSES = np.array([[[1.0, 2, 2], [5, 4, 1]], [[3, 3, 0], [2, 8, 0]]])


def truth(**columns: Any) -> GroundTruth:
    return GroundTruth.from_arrays(image=[1, 1], label=[1, 2], **columns)


def detections(**columns: Any) -> Detections:
    return Detections.from_arrays(image=[1, 1], label=[1, 2], score=[0.5, 0.25], **columns)


# --- runs


@given(
    st.integers(1, 3),
    st.integers(1, 20),
    st.integers(1, 20),
    st.sampled_from([0, 0.1, 0.5, 0.9, 1]),
    st.integers(0, 2**32),
)
def test_bitmaps_become_the_runs_of_pycocotools(
    count: int, height: int, width: int, share: float, seed: int
) -> None:
    bits = np.random.default_rng(seed).random((count, height, width)) < share
    made = Masks.of_bitmaps(bits.view(np.uint8))
    assert made.sizes.tolist() == [[height, width]] * count
    for at, one in enumerate(bits):
        theirs = mask.encode(np.asfortranarray(one.view(np.uint8)))
        expected = _runs.decoded(theirs["counts"], height * width)
        assert not isinstance(expected, str)
        assert made[at : at + 1].runs.tolist() == expected.tolist()
        assert made.measured()[0][at] == one.sum() == mask.area(theirs)
        if one.any():  # of none pycocotools gives a box at the far corner
            assert made.measured()[1][at].tolist() == mask.toBbox(theirs).tolist()


def test_masks_are_selected_by_slices_indices_and_flags() -> None:
    """The second is a triangle, which has no RLE."""
    runs = np.array([10, 2, 8, 0, 20, 5, 15], np.uint32)
    masks = Masks(
        np.array([[4, 5], [4, 5], [4, 5], [4, 10]], np.int32)[[0, 1, 2, 3]],
        np.array([0, 3, 3, 5, 7]),
        runs,
        np.array([0, 0, 1, 1, 1]),
        np.array([3]),
        np.array([[0.0, 0], [3, 0], [0, 3]]),
    )
    chosen = masks[[3, 1, 0]]
    assert chosen.sizes.tolist() == [[4, 10], [4, 5], [4, 5]]
    assert chosen.runs.tolist() == [5, 15, 10, 2, 8]
    assert chosen.run_start.tolist() == [0, 2, 2, 5]
    assert chosen.ring_start.tolist() == [0, 0, 1, 1]
    assert chosen.ring_end.tolist() == [3]
    assert chosen.points.tolist() == [[0, 0], [3, 0], [0, 3]]
    flags = np.array([False, False, True, False])
    assert masks[flags].tobytes() == masks[2:3].tobytes() != masks[:1].tobytes()
    assert len(masks[:0]) == 0


# --- as they are given


@pytest.mark.parametrize(
    "given_masks",
    [
        BITS,
        BITS.astype(np.uint8),
        [*BITS],
        RUNS,
        [RUNS[0], BITS[1]],
        [{"size": [6, 9], "counts": r["counts"].decode()} for r in RUNS],
        [{"size": (6, 9), "counts": [13, 3, 3, 3, 3, 3, 3, 3, 3, 3, 14]}, RUNS[1]],
        np.asfortranarray(BITS),
        ByArray(BITS),
        ByDlpack(BITS.view(np.uint8)),
        LikeTorch(BITS),
        [LikeTorch(bits) for bits in BITS],
    ],
    ids=lambda given: type(given).__name__,
)
def test_masks_of_every_type(given_masks: Any) -> None:
    table = truth(masks=given_masks)
    assert table.masks is not None
    assert table.masks.runs.tolist() == [13, *[3] * 9, 14, 53, 1]
    assert table.corners.tolist() == [[2, 1, 7, 4], [8, 5, 9, 6]]
    assert table.area.tolist() == table.box_area.tolist() == [15, 1]
    assert table.mask is not None
    assert table.select(np.array([1])).mask.tolist() == [1]  # type: ignore[union-attr]


def test_given_boxes_and_areas_are_used() -> None:
    boxes = [[0, 0, 5, 5], [1, 1, 4, 5]]
    table = truth(masks=BITS, boxes=boxes, box_format="xywh")
    assert table.corners[1].tolist() == [1, 1, 5, 6]
    assert table.area.tolist() == [15, 1]
    assert truth(masks=BITS, boxes=boxes, area=[7, 8]).area.tolist() == [7, 8]
    bare, boxed = detections(masks=BITS), detections(masks=BITS, boxes=boxes)
    assert bare.area is not None
    assert bare.area.tolist() == [15, 1]
    assert boxed.area is None


def test_keypoints_of_both_tables() -> None:
    table = truth(keypoints=POSES, boxes=[[0, 0, 9, 9]] * 2)
    assert table.keypoints is not None
    assert table.keypoints.tolist() == POSES.tolist()
    assert table.no_keypoints is not None
    assert table.no_keypoints.tolist() == [False, True]
    for poses in (POSES, POSES[:, :, :2], POSES.tolist(), LikeTorch(POSES)):
        claims = detections(keypoints=poses)
        assert claims.keypoints is not None
        assert claims.keypoints.tolist() == POSES[:, :, :2].tolist()
        assert claims.corners.tolist() == [[1, 2, 5, 4], [2, 3, 3, 8]]
    whole = detections(keypoints=np.zeros((2, 2, 2), np.int8))
    assert whole.keypoints is not None
    assert whole.keypoints.dtype == np.float64


def test_tables_without_rows_may_have_no_masks() -> None:
    none: dict[str, Any] = {"image": [], "label": []}
    forms: list[Any] = [[], np.zeros((0, 5, 5), np.bool_), np.zeros(0)]
    for given_masks in forms:
        empty = Detections.from_arrays(**none, score=[], masks=given_masks)
        result = detap.evaluate(truth(masks=BITS), empty, "coco-segm")
        assert result.summary["AP"] == 0


# --- refused


def run(**changes: Any) -> dict[str, Any]:
    return {"size": [6, 9], "counts": "c1", **changes}


def short(dtype: Any, *shape: int) -> NDArray[Any]:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        (BITS[:1], "ground truth: masks has 1 rows; expected 2, as many as image"),
        (BITS[0], r"masks has shape \(6, 9\); expected \(n, H, W\)$"),
        (
            short(np.float32, 2, 1, 6, 9),
            r"shape \(2, 1, 6, 9\); expected \(n, H, W\) \(e.g. masks\[:, 0\] > 0.5\)",
        ),
        (short(np.float32, 2, 6, 9), "masks has dtype float32; expected bool, or uint8 of 0 and"),
        (short(np.int64, 2, 6, 9), r"masks has dtype int64; .* \(e.g. masks > 0.5\)"),
        (BITS * np.uint8(255), "masks has the value 255; expected bool, or uint8 of 0 and 1"),
        (short(np.bool_, 2, 0, 9), "masks has bitmaps of 0 x 9 pixels; expected 1 to"),
        (np.ma.masked_array(BITS, BITS), "ground truth: masks has masked entries; remove or fill"),
        (3, r"masks is a int; expected bitmaps \(n, H, W\), or a list of RLE"),
        ("ab", "masks is a str; expected bitmaps"),
        ([BITS[0], [[1, 2, 3, 4, 5, 6]]], "row 1: masks is a list; expected bitmaps"),
        ([BITS[0], BITS], r"row 1: masks has shape \(2, 6, 9\); expected \(H, W\)"),
        ([BITS[0], BITS[1] * 0.5], "row 1: masks has dtype float64"),
        ([BITS[0], {"counts": "c1"}], "row 1: masks has no size; expected bitmaps"),
        ([BITS[0], {"size": [6, 9]}], "row 1: masks has no counts"),
        ([run(size=[6]), RUNS[1]], r"row 0: size is \[6\], expected \[height, width\] as integers"),
        ([run(size=[6, 9.5]), RUNS[1]], r"row 0: size is \[6, 9.5\]"),
        ([run(size=[-6, -9]), RUNS[1]], r"row 0: size is \[-6, -9\]"),
        ([run(size=[2**20, 2**20]), RUNS[1]], r"row 0: size is \[1048576, 1048576\]"),
        ([run(counts="0 "), RUNS[1]], "row 0: counts holds a character that is no digit of run"),
        ([run(counts=[10, -3]), RUNS[1]], r"row 0: counts\[1\] is -3, expected an integer >= 0"),
        ([run(counts=7.5), RUNS[1]], "row 0: counts is 7.5"),
        ([run(counts=[10, 3]), RUNS[1]], r"counts sum to 13, expected 54 for size \[6, 9\]"),
    ],
)
def test_invalid_masks(masks: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        truth(masks=masks)


@pytest.mark.parametrize(
    ("keypoints", "message"),
    [
        (POSES[:1], "keypoints has 1 rows; expected 2, as many as image"),
        (POSES[:, :, :2], r"keypoints has shape \(2, 2, 2\); expected \(2, P, 3\): x, y, v"),
        (POSES.reshape(2, 6), r"keypoints has shape \(2, 6\); expected \(2, P, 3\)"),
        (POSES[:, :0], r"keypoints has shape \(2, 0, 3\)"),
        (POSES * np.nan, "row 0: keypoints has nan; expected coordinates in pixels"),
        (POSES * [[[1]], [[1e8]]], "row 1: keypoints has 300000000.0; expected coordinates"),
        ([[["1", 2, 2]] * 2] * 2, "keypoints is .*; expected numbers"),
    ],
)
def test_invalid_keypoints(keypoints: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        truth(keypoints=keypoints, boxes=[[0, 0, 9, 9]] * 2)


def test_tables_without_boxes() -> None:
    with pytest.raises(InputError, match="detections: no boxes; pass boxes, masks or polygons"):
        detections()
    with pytest.raises(InputError, match="ground truth: keypoints without boxes; pass boxes too"):
        truth(keypoints=POSES)


def test_mask_sizes_that_differ_within_an_image_are_rejected() -> None:
    """Within a table and between both; the message has the image's original name."""
    other = [BITS[0], BITS[1].T]
    message = r"image 1: mask size \[9, 6\] differs from \[6, 9\] of another mask; use the size"
    with pytest.raises(InputError, match="ground truth: " + message):
        detap.evaluate(truth(masks=other), detections(masks=BITS), "coco-segm")
    with pytest.raises(InputError, match="detections: " + message):
        detap.evaluate(truth(masks=BITS), detections(masks=np.swapaxes(BITS, 1, 2)), "coco-segm")
    elsewhere = Detections.from_arrays(image=[2], label=[1], score=[0.5], masks=[BITS[0].T])
    of_both = GroundTruth.from_arrays(image=[1], label=[1], masks=BITS[:1], images=[1, 2])
    assert detap.evaluate(of_both, elsewhere, "coco-boundary").summary["AP"] == 0
