"""Tables from arrays: name indices, checks and read-only columns."""

import re
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from detap.analysis.bootstrap import draw_weights, resampled
from detap.errors import InputError, UsageError
from detap.evaluation.detection import evaluate
from detap.protocols import protocol
from detap.tables.columns import Columns
from detap.tables.concat import join_detections, join_ground_truths
from detap.tables.detection import Detections, GroundTruth, encode_boxes
from detap.tables.ranking import Samples

BOX = [0.0, 0.0, 10.0, 10.0]


def truth(**changes: object) -> GroundTruth:
    arguments: dict[str, object] = {
        "image": ["b", "a"],
        "label": ["cat", "dog"],
        "boxes": [BOX] * 2,
    }
    return GroundTruth.from_arrays(**(arguments | changes))  # type: ignore[arg-type]


def dt_table(**changes: object) -> Detections:
    arguments: dict[str, object] = {
        "image": ["a"],
        "label": ["dog"],
        "boxes": [BOX],
        "score": [0.5],
    }
    return Detections.from_arrays(**(arguments | changes))  # type: ignore[arg-type]


def test_names_become_dense_indices_in_sorted_order() -> None:
    table = truth()
    assert table.images == ("a", "b")
    assert table.classes == ("cat", "dog")
    assert_array_equal(table.image, [1, 0])
    assert_array_equal(table.label, [0, 1])


def test_images_and_classes_may_be_listed() -> None:
    table = truth(images=["z", "b", "a"], classes={"dog": "Hund", "cat": "Katze", "cow": "Kuh"})
    assert table.images == ("z", "b", "a")
    assert table.classes == ("Hund", "Katze", "Kuh")
    assert table.class_ids == ("dog", "cat", "cow")
    assert_array_equal(table.label, [1, 0])


def test_columns_are_read_only() -> None:
    table = truth()
    with pytest.raises(ValueError, match="read-only"):
        table.corners[0, 0] = 1


def test_columns_of_rankings_are_read_only() -> None:
    table = Samples(
        score=np.array([[0.5]]),
        scored=np.array([[True]]),
        truth=np.array([[1]], np.int8),
        classes=("cat",),
        samples=("a",),
    )
    columns: list[NDArray[Any]] = [table.score, table.scored, table.truth]
    for column in columns:
        with pytest.raises(ValueError, match="read-only"):
            column[0, 0] = 0


def test_the_caller_s_arrays_are_not_modified() -> None:
    boxes = np.array([BOX, BOX])
    truth(boxes=boxes, box_format="xywh")
    assert boxes.flags.writeable
    assert_array_equal(boxes, [BOX, BOX])


def test_areas_come_from_the_file_s_own_encoding() -> None:
    """x + w - x is not w: 0.1 + 0.2 - 0.1 is above 0.2."""
    box = np.array([[0.1, 0.1, 0.2, 0.2]])
    corners, area = encode_boxes(box, "xywh")
    assert area[0] == 0.2 * 0.2
    side = corners[0, 2] - corners[0, 0]
    assert side * side != area[0]


def test_detections_are_reindexed_with_unknown_classes_last() -> None:
    table = dt_table(image=["a", "b"], label=["ape", "dog"], boxes=[BOX] * 2, score=[1, 2])
    numbered = table.reindex_like(truth())
    assert numbered.classes == ("cat", "dog", "ape")
    assert_array_equal(numbered.label, [2, 1])
    assert_array_equal(numbered.image, [0, 1])
    assert numbered.reindex_like(truth()) is numbered


def test_detections_on_an_unknown_image_are_rejected() -> None:
    with pytest.raises(InputError, match="image 'q' is not in the ground truth, nor are 1 others"):
        dt_table(image=["q", "r"], label=["dog"] * 2, boxes=[BOX] * 2, score=[1, 2]).reindex_like(
            truth()
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"boxes": [[0, 0, float("nan"), 1]]}, r"row 0: boxes is \[0.0, 0.0, nan, 1.0\]"),
        ({"boxes": [[5, 0, 1, 1]]}, "row 0: boxes .* no negative width or height"),
        ({"boxes": [[0, 0, 1e200, 1e200]]}, "expected finite coordinates and area"),
        ({"boxes": [[0, 0, 1]]}, r"boxes has shape \(1, 3\); expected \(n, 4\), n = 1 as in image"),
        ({"boxes": np.zeros(4)}, r"^detections: boxes has shape \(4,\); expected \(n, 4\), n = 1"),
        ({"boxes": [["0", "0", "5", "5"]]}, r"row 0: boxes is \['0', .* expected numbers"),
        ({"boxes": np.array([["0", "0", "5", "5"]])}, "boxes has dtype <U1; expected numbers"),
        ({"boxes": [[None, 0, 5, 5]]}, r"row 0: boxes is \[None, 0, 5, 5\]; expected numbers"),
        ({"boxes": [[0, 0, 5, 2**53 + 1]]}, "expected a number that float64 holds exactly"),
        (
            {"boxes": np.ma.masked_equal([[0, 0, 5, 5]], 5)},
            "boxes has masked entries; remove or fill those",
        ),
        ({"score": [[0.5]]}, r"score has shape \(1, 1\); expected \(n,\), n = 1"),
        ({"score": [True]}, "row 0: score is True; expected a number"),
        ({"score": [None]}, "row 0: score is None; expected a number"),
        ({"score": [1 + 2j]}, "row 0: score is .*; expected a number"),
        ({"score": np.array(["2026-01-01"], "M8[D]")}, "score has dtype datetime64"),
        ({"score": [10**400]}, "score: int too large"),
        ({"score": np.ma.array([0.5], mask=[True])}, "score has masked entries"),
        ({"image": [None]}, "row 0: image is None; expected an integer or text"),
        ({"image": [True]}, "row 0: image is True; expected an integer"),
        ({"image": [1.5]}, "row 0: image is 1.5; expected an integer"),
        ({"image": [float("nan")]}, "row 0: image is nan; expected an integer"),
        ({"image": [2.0**53]}, "row 0: image is 9007199254740992.0; expected an integer"),
        ({"image": [b"a"]}, "row 0: image is b'a'; expected an integer"),
        ({"image": [["a"]]}, r"image has shape \(1, 1\); expected \(n,\), one name per row"),
        ({"image": np.ma.array([1], mask=[True])}, "image has masked entries"),
        ({"score": [float("inf")]}, "row 0: score is inf"),
        ({"score": [1, 2]}, r"score has shape \(2,\)"),
        ({"score": ["high"]}, "row 0: score is 'high'; expected a number"),
        ({"score": ["0.5"]}, "row 0: score is '0.5'; expected a number"),
        ({"box_format": "polar"}, "box_format 'polar' is unknown; use xyxy or xywh"),
        ({"label": ["dog", "cat"]}, r"label has shape \(2,\)"),
    ],
)
def test_invalid_boxes_and_scores_are_rejected(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        dt_table(**changes)


def test_a_listed_name_must_exist_and_be_unique() -> None:
    with pytest.raises(InputError, match="image 'b' is not in images"):
        truth(images=["a"])
    with pytest.raises(InputError, match="images has duplicate names"):
        truth(images=["a", "b", "b"])


def test_negative_annotated_area_is_rejected() -> None:
    with pytest.raises(InputError, match=r"row 1: area is -1\.0"):
        truth(area=[1, -1])


def test_extra_columns_are_finite() -> None:
    table = truth(extra={"truncation": [0, 0.5]})
    assert table.extra["truncation"].tolist() == [0, 0.5]
    for value in (np.nan, np.inf):
        message = f"ground truth: row 1: truncation is {value}; expected a finite number"
        with pytest.raises(InputError, match=message):
            truth(extra={"truncation": [0, value]})


@pytest.mark.parametrize(
    ("name", "subject", "effect"),
    [
        ("ground-truth", "ground truth boxes", "can never be matched"),
        ("detections", "detections", "are false positives"),
    ],
)
def test_a_few_boxes_of_negative_size_are_noted(name: str, subject: str, effect: str) -> None:
    """Two of 41 are fewer than one in twenty."""
    columns: dict[str, Any] = {
        "image": ["a"] * 41,
        "label": ["dog"] * 41,
        "boxes": [*[BOX] * 39, [5, 5, 4, 9], [5, 5, 9, 4]],
    }
    if name == "ground-truth":
        (note,) = truth(**columns).notes
    else:
        (note,) = dt_table(**columns, score=[0.5] * 41).notes
    assert (note.code, note.count, note.severity) == (f"{name}-negative-size", 2, "warning")
    assert note.message == (
        f"{subject} have negative width or height (first: row 39, [5.0, 5.0, 4.0, 9.0]): they "
        f"overlap nothing and {effect}; with area ranges, as in coco, a negative area is in none"
    )


def test_groups_of_several_inputs_must_agree() -> None:
    first = truth(image=[1, 2], groups={"cat": "rare"})
    second = truth(image=[3, 4], groups={"cat": "rare", "dog": "common"})
    assert join_ground_truths([first, second]).groups == {"cat": "rare", "dog": "common"}
    with pytest.raises(InputError, match="category 'cat' is frequent, but rare in "):
        join_ground_truths([first, truth(image=[3, 4], groups={"cat": "frequent"})])


COLUMNS: dict[str, dict[str, Any]] = {
    "mask": {"masks": np.ones((1, 9, 9), np.uint8)},
    "area": {"masks": np.ones((1, 9, 9), np.uint8), "boxes": None},
    "polygons": {"polygons": [[[0, 0], [9, 0], [9, 9], [0, 9]]], "boxes": None},
    "keypoints": {"keypoints": [[[1, 2, 2]]]},
}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("first", [True, False], ids=["empty first", "empty last"])
def test_an_input_without_rows_lacks_no_column(column: str, first: bool) -> None:
    """An empty results file has neither masks nor areas; the columns of the others are kept."""
    filled = dt_table(**COLUMNS[column])
    empty = dt_table(image=[], label=[], boxes=[], score=[])
    joined = join_detections([empty, filled] if first else [filled, empty])
    assert list(joined.columns()) == list(filled.columns())
    for name, values in filled.columns().items():
        assert joined.columns()[name].tobytes() == values.tobytes(), name
    assert (joined.masks is None) == (filled.masks is None)
    boxes = replace(dt_table(image=["b"]), images=("b",))
    assert column not in join_detections([boxes, filled]).columns()


@pytest.mark.parametrize("first", [True, False], ids=["empty first", "empty last"])
def test_an_input_without_objects_lacks_no_column(first: bool) -> None:
    filled = truth(extra={"occluded": [0, 2]}, masks=np.ones((2, 9, 9), np.uint8))
    none: dict[str, list[object]] = {"image": [], "label": [], "boxes": []}
    empty = truth(**none, images=["c"], classes=["cat", "dog"])
    joined = join_ground_truths([empty, filled] if first else [filled, empty])
    assert joined.images == ("a", "b", "c")
    for name, values in filled.columns().items():
        assert joined.columns()[name].tobytes() == values.tobytes(), name


def test_no_detections_at_all() -> None:
    empty = dt_table(image=[], label=[], boxes=[], score=[])
    assert len(empty.reindex_like(truth())) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"crowd": ["0", "0"]}, "row 0: crowd is '0'; expected true, false, 1 or 0"),
        ({"crowd": np.array(["", "1"])}, "row 0: crowd is ''; expected true"),
        ({"difficult": [0, float("nan")]}, "row 1: difficult is nan; expected true, false"),
        ({"ignore": [0.3, 0]}, r"row 0: ignore is 0\.3; expected true, false"),
        ({"group_of": [2, 0]}, "row 0: group_of is 2; expected true"),
        ({"crowd": [None, False]}, "row 0: crowd is None; expected true"),
        ({"crowd": [[True], [False]]}, r"crowd has shape \(2, 1\)"),
        ({"crowd": np.ma.array([True, False], mask=[True, False])}, "crowd has masked entries"),
        ({"area": ["1", "2"]}, "row 0: area is '1'; expected a number"),
        ({"boxes": [BOX, BOX[:3]]}, "row 1: boxes has 3 values; expected 4"),
        ({"boxes": [BOX, 3]}, "row 1: boxes has 1 values; expected 4"),
        ({"image": ["a", 1]}, "image mixes numbers and text; use only numbers, or only text"),
        ({"label": ["cat", None]}, "row 1: label is None; expected an integer"),
        ({"images": ["a", "b", None]}, "row 2: images is None; expected an integer"),
        (
            {"images": [1, 2]},
            "image 'a' is not in images; numbers and text are different .* has 1$",
        ),
        ({"classes": ["cat", None]}, "row 1: classes is None; expected an integer"),
        ({"classes": {"cat": "Katze", "dog": 3}}, "class name is 3; expected text"),
    ],
)
def test_values_changed_by_a_cast_are_rejected(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        truth(**changes)


@pytest.mark.parametrize("flags", [[1, 0], [1.0, 0.0], [True, False], np.array([1, 0], np.uint8)])
def test_flags_may_be_the_numbers_0_and_1(flags: object) -> None:
    assert truth(crowd=flags).crowd.tolist() == [True, False]


def test_a_masked_array_without_masked_values_is_accepted() -> None:
    assert dt_table(score=np.ma.array([0.5], mask=[False])).score.tolist() == [0.5]


@pytest.mark.parametrize(
    "ids",
    [
        [2**63, 2**63 + 1, 5],
        [2**63, -1, 2**53 + 1],
        [2**70, 2**70 + 1, 0],
        np.array([2**63, 2**63 + 1, 5], np.uint64),
        np.array([2**53, 2**53 + 1, 5], np.int64),
    ],
    ids=str,
)
def test_large_ids_stay_distinct(ids: object) -> None:
    """numpy turns 2^63 and 5 into float64, in which the first two ids are equal."""
    plain = np.asarray(ids, object).tolist()
    table = truth(image=ids, label=ids, boxes=[BOX] * 3)
    assert table.images == table.class_ids == tuple(sorted(plain))
    assert [table.images[number] for number in table.image] == plain
    detections = dt_table(image=ids, label=ids, boxes=[BOX] * 3, score=[1, 2, 3])
    assert [table.images[n] for n in detections.reindex_like(table).image] == plain


@given(
    st.sampled_from(["i1", "u1", "i4", "i8", "u8"]).flatmap(
        lambda kind: st.tuples(
            st.just(kind),
            st.lists(
                st.integers(int(np.iinfo(kind).min), int(np.iinfo(kind).max))
                | st.integers(0, 9)
                | st.sampled_from([int(np.iinfo(kind).min), int(np.iinfo(kind).max)]),
                max_size=30,
            ),
        )
    )
)
@example(("i1", [-128, 127, *range(30)]))
@example(("u8", [2**64 - 1, 2**64 - 2]))
@example(("i8", [-(2**63), -(2**63) + 1]))
def test_integers_of_any_dtype_are_indexed_in_python_s_order(
    given: tuple[str, list[int]],
) -> None:
    kind, ids = given
    names = Columns("table").index_names("image", np.array(ids, kind))
    assert names.distinct == sorted(set(ids))
    assert [names.distinct[number] for number in names.number] == ids
    assert names.number.dtype == np.int32


@given(st.lists(st.sampled_from(["b", "a", "007", "7", "\N{SNOWMAN}", ""]), max_size=9))
def test_a_text_array_is_indexed_as_a_list(names: list[str]) -> None:
    index = Columns("table").index_names("image", np.array(names, np.str_))
    assert index.distinct == sorted(set(names))
    assert [index.distinct[number] for number in index.number] == names


@pytest.mark.parametrize("step", [1, 2**40], ids=["close", "far-apart"])
def test_array_ids_do_not_become_python_objects(step: int) -> None:
    """Each row as a Python object would take 40 bytes."""
    rows = 200_000
    ids = np.repeat(np.arange(rows // 100), 100) * step
    columns = Columns("table")
    tracemalloc.start()
    try:
        columns.index_names("image", ids)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 24 * rows


def test_text_ids_are_kept_exactly() -> None:
    """numpy text drops trailing NUL characters."""
    table = truth(image=["a", "a\0"], label=["7", "007"])
    assert table.images == ("a", "a\0")
    assert table.classes == ("007", "7")


def test_integral_float_ids_are_integers() -> None:
    table = truth(image=[2.0, 1.0], label=np.array([3, 4], np.float32))
    assert table.images == (1, 2)
    assert table.classes == ("3", "4")


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, object, np.longdouble])
def test_scores_that_float64_would_merge_are_rejected(dtype: type) -> None:
    scores: NDArray[Any] = np.array([2**53, 2**53], dtype)
    scores[1] += 1
    box = {"image": ["a"] * 2, "label": ["dog"] * 2, "boxes": [BOX] * 2}
    with pytest.raises(InputError, match=r"row 1: score is .*9007199254740993.* float64 holds"):
        dt_table(**box, score=scores)
    assert dt_table(**box, score=scores[:1].repeat(2)).score.tolist() == [2.0**53] * 2


def test_long_doubles_that_float64_would_round_are_rejected() -> None:
    tenth = np.longdouble(1) / 10
    if float(tenth) == tenth:
        pytest.skip("long double is float64 here")
    with pytest.raises(InputError, match=r"row 0: score is .* float64 holds exactly"):
        dt_table(score=np.array([tenth]))
    assert dt_table(score=np.array([0.5], np.longdouble)).score.tolist() == [0.5]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image": [1]}, "detections: image 1; numbers and text are different names; .* 'a'$"),
        ({"label": [1]}, "detections: class 1; numbers and text are different names; .* 'cat'$"),
    ],
)
def test_numeric_and_text_ids_do_not_mix(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        dt_table(**changes).reindex_like(truth())


def test_detections_on_an_image_without_ground_truth_count() -> None:
    """Following the hint: a false positive on an empty image lowers AP.

    By hand: false positive (.9) above the one true positive (.5), so that precision is 1/2.
    """
    one = {"image": ["a"], "label": ["cat"], "boxes": [BOX]}
    two = dt_table(image=["z", "a"], label=["cat"] * 2, boxes=[BOX] * 2, score=[0.9, 0.5])
    with pytest.raises(InputError, match=r"image 'z' .*; name every image .* images= of Ground"):
        evaluate(GroundTruth.from_arrays(**one), two, "voc2012")  # type: ignore[arg-type]
    table = GroundTruth.from_arrays(**one, images=["a", "z"])  # type: ignore[arg-type]
    assert evaluate(table, two, "voc2012").summary["mAP"] == 0.5


def test_more_rows_than_int32_are_rejected() -> None:
    """The columns are broadcast: 2^31 rows of one byte."""
    many = np.broadcast_to(np.int8(1), (2**31,))
    with pytest.raises(InputError, match="image has 2147483648 entries, at most 2147483647 are"):
        dt_table(image=many, label=many, boxes=np.broadcast_to(0.0, (2**31, 4)), score=many)
    with pytest.raises(InputError, match="images has 2147483648 entries"):
        truth(images=range(2**31))


def test_a_table_with_more_rows_than_int32_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Checked in the table itself, which readers also construct."""
    table = truth(images=["a", "b", "c"])
    monkeypatch.setattr("detap.tables.columns.MOST_ROWS", 2)
    with pytest.raises(InputError, match="ground truth: images has 3 entries, at most 2 are"):
        replace(table)


@pytest.mark.parametrize("threads", [-1, 0, 1.5, "2", True, 1025])
def test_an_invalid_number_of_threads_is_rejected(threads: object) -> None:
    message = f"threads is {threads!r}; expected an integer from 1 to 1024, or None"
    with pytest.raises(UsageError, match=re.escape(message)):
        evaluate(truth(), dt_table(), threads=threads)  # type: ignore[arg-type]
    result = evaluate(truth(), dt_table())
    with pytest.raises(UsageError, match=re.escape(message)):
        resampled(result, draw_weights(2, 2, seed=0), ["AP"], threads=threads)  # type: ignore[arg-type]


def test_more_pairs_of_an_image_than_int32_are_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proposals = dt_table(image=["a"] * 3, label=["dog"] * 3, boxes=[BOX] * 3, score=[1, 2, 3])
    table = truth(image=["a", "a"])
    rules = replace(protocol("proposals"), max_dets=(None,))
    monkeypatch.setattr("detap.evaluation.match.MOST_ROWS", 5)
    with pytest.raises(
        UsageError, match=r"image 'a' has 6 pairs of .* more than 5; lower --max-dets"
    ):
        evaluate(table, proposals, rules)
    # The remedy, followed: two proposals an image.
    assert evaluate(table, proposals, replace(rules, max_dets=(2,))).summary


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.int64, ">f8"])
@pytest.mark.parametrize("box_format", ["xywh", "xyxy"])
def test_a_table_copies_numbers_of_any_dtype_and_layout(kind: Any, box_format: str) -> None:
    random = np.random.default_rng(0)
    wide = random.integers(1, 200, (50, 8)).astype(kind)
    boxes = wide[::-1, ::2]  # neither in one piece nor in order
    boxes[:, 2:] += boxes[:, :2]
    score = random.integers(0, 100, 50).astype(kind)
    given: dict[str, Any] = {"image": np.arange(50) % 7, "label": np.ones(50, int)}
    given |= {"boxes": boxes, "score": score, "box_format": box_format}
    table = Detections.from_arrays(**given)
    corners = [[float(number) for number in box] for box in boxes.tolist()]
    if box_format == "xywh":
        corners = [[x, y, x + width, y + height] for x, y, width, height in corners]
    assert table.corners.tolist() == corners
    assert table.score.tolist() == [float(number) for number in score.tolist()]
    for name in ("corners", "box_area", "score"):
        ours = getattr(table, name)
        assert (ours.dtype, ours.flags.c_contiguous) == (np.dtype(np.float64), True)
        assert not any(np.shares_memory(ours, array) for array in (wide, score))
