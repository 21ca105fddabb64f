"""``mask``: strings, areas, boxes, IoU and bitmaps as in pycocotools' module."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pycocotools import mask as theirs

from detap.compat.pycocotools import COCO
from detap.compat.pycocotools import mask as ours
from detap.compat.pycocotools._runs import of_annotations
from detap.errors import MaskError
from tests.compat.same import differences

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@st.composite
def bitmaps(draw: st.DrawFn, most: int = 4) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Bitmaps (h, w, n) that hold blocks as well as dots."""
    h, w, n = draw(st.integers(1, 9)), draw(st.integers(1, 9)), draw(st.integers(1, most))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bits = (random.random((h, w, n)) < draw(st.sampled_from([0.1, 0.5, 0.9]))).astype(np.uint8)
    if draw(st.booleans()):
        bits[: h // 2 + 1, : w // 2 + 1] = draw(st.integers(0, 1))
    return np.asfortranarray(bits)


def both(call: Callable[[Any], Any]) -> Any:
    """Call both modules; return our value, which must equal pycocotools' to the last bit."""
    mine, expected = call(ours), call(theirs)
    assert differences(mine, expected) == []
    if isinstance(expected, np.ndarray):
        assert mine.flags.f_contiguous == expected.flags.f_contiguous
    return mine


@given(bits=bitmaps(), crowd=st.lists(st.booleans(), min_size=4, max_size=4))
def test_every_function_of_bitmaps(bits: Any, crowd: list[bool]) -> None:
    masks = both(lambda module: module.encode(bits))
    one = both(lambda module: module.encode(bits[:, :, 0]))
    assert (ours.decode(masks) == bits).all()
    texts = [{**mask, "counts": mask["counts"].decode()} for mask in masks]
    for given_masks in (masks, texts):
        for name in ("decode", "area", "toBbox", "merge"):
            both(lambda module: getattr(module, name)(given_masks))  # noqa: B023
            if name != "merge":
                both(lambda module: getattr(module, name)(given_masks[0]))  # noqa: B023
        both(lambda module: module.merge(given_masks, intersect=1))  # noqa: B023
        both(lambda module: module.merge(given_masks[:1], True))  # noqa: B023
        flags = crowd[: len(masks)]
        both(lambda module: module.iou(given_masks[::-1], given_masks, flags))  # noqa: B023
    assert differences(both(lambda module: module.merge([one])), one) == []


@given(
    bits=bitmaps(most=2),
    values=st.lists(st.integers(0, 255), min_size=4, max_size=4),
)
def test_runs_end_where_pycocotools_ends_them(bits: Any, values: list[int]) -> None:
    painted = np.asfortranarray(np.array(values, np.uint8)[bits + 2 * (bits.cumsum(0) & 1 == 1)])
    both(lambda module: module.encode(painted.astype(np.uint8)))


@given(
    first=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    second=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    height=st.integers(1, 12),
)
@example(first=[2, 0, 2], second=[4], height=2)
@example(first=[0, 4, 0], second=[1, 0, 0, 3], height=4)
def test_run_lengths_as_lists(first: list[int], second: list[int], height: int) -> None:
    """With empty runs anywhere, and a size that does not match the runs."""
    total = max(sum(first), sum(second))
    lists = [
        {"size": [height, total], "counts": [*counts, total - sum(counts)]}
        for counts in (first, second)
    ]
    masks = both(lambda module: module.frPyObjects(lists, 0, 0))
    both(lambda module: module.frPyObjects(lists[0], 0, 0))
    both(lambda module: module.area(masks))
    both(lambda module: module.toBbox(masks))
    both(lambda module: module.merge(masks))
    both(lambda module: module.merge(masks, 1))
    both(lambda module: module.iou(masks[:1], masks[1:], [0]))
    both(lambda module: module.iou(masks, masks, [1, 0]))


POINT = st.floats(-8, 24) | st.integers(-4, 16) | st.sampled_from([2.5, 2.49, 0.1, 7.3])


@given(
    rings=st.lists(st.lists(POINT, min_size=5, max_size=16), min_size=1, max_size=4),
    h=st.integers(1, 12),
    w=st.integers(1, 12),
)
def test_polygons(rings: list[list[float]], h: int, w: int) -> None:
    masks = both(lambda module: module.frPyObjects(rings, h, w))
    both(lambda module: module.merge(masks))
    both(lambda module: module.merge(masks, intersect=True))
    points = [*rings, [], rings[0][:2], rings[0][:3]]
    both(lambda module: module.frPyObjects(points, h, w))


@given(
    boxes=st.lists(st.lists(st.floats(-8, 24), min_size=4, max_size=4), min_size=1, max_size=4),
    h=st.integers(1, 12),
    w=st.integers(1, 12),
)
def test_boxes_as_masks(boxes: list[list[float]], h: int, w: int) -> None:
    both(lambda module: module.frPyObjects(np.array(boxes), h, w))


def test_masks_of_different_sizes() -> None:
    masks = [{"size": [2, 3], "counts": b"06"}, {"size": [3, 2], "counts": b"06"}]
    assert both(lambda module: module.iou(masks, masks, [0, 1])).tolist() == [[1, -1], [-1, 1]]
    apart = {"size": [9, 9], "counts": b"Q25"}  # its box meets none
    both(lambda module: module.iou(masks, [apart], [0]))
    assert both(lambda module: module.merge(masks)) == {"size": [0, 0], "counts": b""}
    none = {"size": [0, 0], "counts": b""}
    for name in ("area", "toBbox"):
        both(lambda module: getattr(module, name)([none, *masks]))  # noqa: B023
    both(lambda module: module.iou([none], masks, [0, 0]))
    assert both(lambda module: module.decode(masks)).shape == (2, 3, 2)
    assert ours.merge([]) == none


def test_the_masks_of_a_data_set(real_data: Path) -> None:
    folder = real_data / "coco-val2014-100"
    results = json.loads((folder / "instances_val2014_fakesegm100_results.json").read_text("utf-8"))
    masks = [record["segmentation"] for record in results]
    for name in ("area", "toBbox"):
        for start in range(0, len(masks), 200):  # pycocotools' area takes at most 255
            both(lambda module: getattr(module, name)(masks[start : start + 200]))  # noqa: B023
    assert len(ours.area(masks)) == len(masks) == 734
    again = ours.encode(ours.decode(masks[0]))
    assert again["counts"].decode() == masks[0]["counts"]
    staged = real_data / "coco-val2014-100-masks" / "rle_of_ground_truth.json"
    expected = {row[0]: row[1:] for row in json.loads(staged.read_text("utf-8"))["rows"]}
    truth = COCO(str(folder / "instances_val2014_100.json"))
    assert len(truth.anns) == len(expected)
    for name, annotation in truth.anns.items():
        runs = truth.annToRLE(annotation)
        actual = [ours.area(runs), runs["counts"].decode(), ours.toBbox(runs).tolist()]
        assert actual == expected[name]
        assert truth.annToMask(annotation).sum() == expected[name][0]


@given(
    text=st.text(st.characters(min_codepoint=44, max_codepoint=115), max_size=12)
    | st.lists(st.integers(48, 79), max_size=12).map(lambda digits: bytes(digits).decode()),
    height=st.integers(1, 40),
)
def test_any_text_is_refused_or_read_as_by_pycocotools(text: str, height: int) -> None:
    """pycocotools is called only with valid text."""
    runs = {"size": [height, 7], "counts": text}
    if not taken(ours.area, runs):
        return
    both(lambda module: module.area(runs))
    both(lambda module: module.toBbox(runs))
    if not taken(ours.decode, runs):
        return
    both(lambda module: module.decode(runs))
    both(lambda module: module.merge([runs, runs]))
    both(lambda module: module.iou([runs], [runs], [0]))


def taken(call: Callable[[Any], Any], runs: dict[str, Any]) -> bool:
    """Return True if a function accepts a mask."""
    try:
        call(runs)
    except MaskError:
        return False
    return True


SOUND = {"size": [2, 3], "counts": b"06"}
SHORT = {"size": [2, 3], "counts": b"05"}  # pycocotools walks on for ever
CUT = {"size": [2, 3], "counts": b"0f"}  # pycocotools reads what lies behind
SUMS = r"counts sum to 5, and a mask of size \[2, 3\] has 6 pixels; write it again"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ours.iou([SHORT], [SOUND], [0]), SUMS),
        (lambda: ours.iou([SOUND], [SHORT], [1]), SUMS),
        (lambda: ours.merge([SOUND, SHORT]), SUMS),
        (lambda: ours.merge([SHORT, SOUND], 1), SUMS),
        (lambda: ours.decode(SHORT), SUMS),
        (lambda: ours.decode({**SOUND, "counts": b"07"}), "counts sum to 7, and a mask of size"),
        (lambda: ours.decode([SOUND, {**SHORT, "size": [1, 5]}]), r"\[1, 5\] and \[2, 3\] make no"),
        (lambda: ours.decode([]), "no mask to decode: the list is empty"),
        (lambda: ours.merge([{**SOUND, "counts": b""}] * 2), "counts sum to 0, and a mask"),
        (lambda: ours.area(CUT), "counts ends within a number; write the mask again"),
        (lambda: ours.area({**SOUND, "counts": b"0 "}), "a character that is no digit"),
        (lambda: ours.area({**SOUND, "counts": b"O"}), "counts holds a negative run"),
        (lambda: ours.area({**SOUND, "counts": b"0oooooooo0"}), "runs beyond the mask"),
        (lambda: ours.toBbox({**SOUND, "size": [0, 3]}), r"of no height has pixels; size is \[he"),
        (lambda: ours.frPyObjects([], 2, 3), r"\[\] is not polygons, boxes or RLE"),
        (lambda: ours.frPyObjects("x", 2, 3), "'x' is not polygons"),
        (lambda: ours.frPyObjects([[0, 0, 1, 1]], 2, 3), "polygon has 4 numbers"),
        (lambda: ours.frPyObjects([[0, 0, 1, 1, 1, np.inf]], 2, 3), "polygon is inf; give pixels"),
        (lambda: ours.frPyObjects([[0, 0, 1, 1, 1, np.nan]], 2, 3), "polygon is nan; give pixels"),
        (lambda: ours.frPyObjects([[0, 0, 1, 1, 1, 1]], 2**20, 2**20), "cannot be drawn"),
        (
            lambda: ours.frPyObjects([[0, 0, 5e6, 0, 5e6, 1]], 2, 5_000_000),
            "a polygon of 3 points may become more than 8388608 runs of pixels",
        ),
        (
            lambda: ours.frPyObjects(np.zeros((2, 5)), 2, 3),
            r"boxes are float64 \(2, 5\), expected flo",
        ),
        (lambda: ours.iou(np.zeros((2, 5)), [], []), r"array of boxes has shape \(2, 5\)"),
        (lambda: ours.iou((), [], []), "expected a list or array, got tuple"),
    ],
)
def test_invalid_masks_are_refused_with_a_reason(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(MaskError, match=message) as caught:
        call()
    assert isinstance(caught.value, ValueError)  # as where pycocotools itself raises one


SIZES = {1: {"height": 20, "width": 30}, 2: {"height": 20.0, "width": 30}}
SQUARE = [2, 2, 6, 2, 6, 6, 2, 6.0]


def lists_of(segmentation: Any, image: int = 1) -> Any:
    return of_annotations([{"image_id": image, "segmentation": segmentation}], SIZES)


@pytest.mark.parametrize(
    "segmentation",
    [
        [],
        [[0, 0, 5, 5]],
        [(0, 0, 5, 0, 5, 5)],
        [[0, 0, 5, 0, 5, "5"]],
        [[0, 0, 5, 0, 5, True]],
        None,
        "06",
    ],
)
def test_unusual_segmentations_are_left_to_the_slow_path(segmentation: Any) -> None:
    assert lists_of(segmentation) is None


def test_unusual_image_sizes_are_left_to_the_slow_path() -> None:
    assert lists_of([SQUARE], 2) is None


@pytest.mark.parametrize(
    ("size", "counts", "usual"),
    [
        ([2, 3], [1, 5], True),
        ([2, 3], [0, 6], True),
        ([2, 3], [1, 0, 5], False),
        ([2, 3], [1, 3], False),
        ([3, 2], [1, 5], True),
        ([0, 0], [], False),
    ],
)
def test_masks_of_unusual_runs_have_no_arrays(
    size: list[int], counts: list[int], usual: bool
) -> None:
    arrays = lists_of({"size": size, "counts": counts}).arrays()
    assert (arrays is not None) == usual
    if usual:
        assert arrays[0].tolist() == [size]
        assert arrays[2].tolist() == counts


def test_polygons_of_an_annotation_are_joined() -> None:
    squares = [[x + 7 * n for x in SQUARE] for n in range(3)]
    annotation = {"image_id": 1, "segmentation": squares}
    assert of_annotations([annotation], SIZES) is not None
    assert annotation["segmentation"] == theirs.merge(theirs.frPyObjects(squares, 20, 30))
    assert ours.area(annotation["segmentation"]) == 3 * 16


def test_masks_whose_boxes_touch_have_no_overlap() -> None:
    """Not even -1, which masks of different sizes have if their boxes meet."""
    one = {"size": [1, 2], "counts": b"011"}
    other = {"size": [1, 3], "counts": b"111"}
    assert both(lambda module: module.iou([one], [other], [0])).tolist() == [[0]]


@pytest.mark.parametrize(
    "call",
    [
        lambda module: module.iou([SOUND], [[0, 0, 1, 1]], [0]),
        lambda module: module.iou([SOUND, [0, 0, 1, 1]], [SOUND], [0]),
        lambda module: module.iou([SOUND], [SOUND], []),
        lambda module: module.area({"size": [2, 3], "counts": [0, 6]}),
        lambda module: module.area([[[0, 0, 4, 0, 4, 4]]]),
        lambda module: module.encode(np.zeros((2, 3, 1), np.float64, order="F")),
        lambda module: module.encode(np.zeros((2, 3, 2), np.uint8)),
        lambda module: module.encode(np.zeros((2, 3), np.uint8)),
        lambda module: module.frPyObjects([0.0, 0.0, 4.0, 0.0, 4.0, 4.0], 5, 5),
    ],
)
def test_errors_equal_those_of_pycocotools(call: Callable[[Any], Any]) -> None:
    raised = []
    for module in (ours, theirs):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - it is compared
            call(module)
        raised.append(caught)
    assert raised[0].type is raised[1].type
