"""Evaluator: batches give the results of files, and invalid calls are refused by name."""

import copy
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

import detap
from detap.errors import InputError, UsageError
from detap.evaluation.loop.evaluator import Evaluator
from detap.protocols import Protocol
from detap.tables.detection import Detections, GroundTruth
from tests.cases import BY_IMAGE, Case, Detection, cases
from tests.laws.test_laws import assert_same_result
from tests.processes import finished
from tests.tables import dt_table, gt_table

BOX = [0.0, 0.0, 10.0, 10.0]
NEAR = 1e-12
"""pycocotools divides by TP + FP + eps: a perfect AP is a few last bits below 1."""
AWAY = [50.0, 50.0, 60.0, 60.0]

Arrays = list[NDArray[Any]]


def truth(**changes: Any) -> GroundTruth:
    """A cat on image 1, a dog on image 2, nothing on image 3."""
    columns = {"image": [1, 2], "label": [17, 18], "boxes": [BOX, BOX], "images": [1, 2, 3]}
    classes = {17: "cat", 18: "dog"}
    return GroundTruth.from_arrays(**columns, classes=classes, **changes)  # type: ignore[arg-type]


def tables(evaluator: Evaluator) -> tuple[GroundTruth, Detections]:
    result = evaluator.compute()
    return result.ground_truth, result.detections


def batch_of(case: Case, images: Sequence[int]) -> tuple[list[int], Arrays, Arrays, Arrays]:
    rows = [[f for f in case.dt if f.image == image] for image in images]
    return (
        list(images),
        [np.array([f.box for f in detections]).reshape(-1, 4) for detections in rows],
        [np.array([f.score for f in detections]) for detections in rows],
        [np.array([f.label for f in detections], np.int64) for detections in rows],
    )


def truth_of(case: Case, images: Sequence[int]) -> dict[str, list[Any]]:
    rows = [[t for t in case.truths if t.image == image] for image in images]
    return {
        "boxes": [[t.box for t in truths] for truths in rows],
        "labels": [[t.label for t in truths] for truths in rows],
        "area": [
            [t.box[2] * t.box[3] if t.area is None else t.area for t in truths] for truths in rows
        ],
        "crowd": [[t.crowd for t in truths] for truths in rows],
        "difficult": [[t.difficult for t in truths] for truths in rows],
        "group_of": [[t.group for t in truths] for truths in rows],
    }


def in_order_of_images(detections: tuple[Detection, ...]) -> tuple[Detection, ...]:
    return tuple(sorted(detections, key=lambda f: f.image))


@st.composite
def batches(draw: st.DrawFn) -> tuple[Case, list[list[int]]]:
    """Draw a case whose images are split into batches in any order."""
    case = draw(cases())
    order = draw(st.permutations(case.images))
    cuts = sorted(draw(st.sets(st.integers(1, len(order)))) | {0, len(order)})
    return case, [order[a:b] for a, b in pairwise(cuts)]


@pytest.mark.parametrize("shared", [True, False])
@given(batches(), st.sampled_from([*BY_IMAGE.values()]), st.data())
def test_batches_and_processes_give_the_result_of_the_whole_file(
    shared: bool, split: tuple[Case, list[list[int]]], protocol: Protocol, data: st.DataObject
) -> None:
    """The file lists images in ground-truth order; ties follow file order."""
    case, batches = split
    if not shared:
        case = replace(case, truths=tuple(sorted(case.truths, key=lambda t: t.image)))
    evaluators = [
        Evaluator(case.ground_truth(), protocol)
        if shared
        else Evaluator(protocol=protocol, classes=case.classes)
        for _ in range(data.draw(st.integers(1, 4)))
    ]
    for names in batches:
        brought = {} if shared else {"ground_truth": truth_of(case, names)}
        evaluator = data.draw(st.sampled_from(evaluators))
        evaluator.update(*batch_of(case, names), **brought)  # type: ignore[arg-type]
    whole = detap.evaluate(*case.with_dt(in_order_of_images(case.dt)).tables(), protocol)
    parts = data.draw(st.permutations([evaluator.to_bytes() for evaluator in evaluators]))
    assert_same_result(evaluators[0].merge(parts).compute(), whole)
    if len(evaluators) == 1:
        assert_same_result(evaluators[0].compute(), whole)


def test_classes_not_listed_are_those_updated_in_sorted_order() -> None:
    evaluator = Evaluator(boxes="xyxy")
    nothing: dict[str, Any] = {"boxes": [[]], "labels": [[]]}
    evaluator.update(["b"], [[BOX]], [[0.5]], [["dog"]], ground_truth=nothing)
    cat: dict[str, Any] = {"boxes": [[BOX]], "labels": [["cat"]]}
    evaluator.update(["a"], [[BOX]], [[0.5]], [["cat"]], ground_truth=cat)
    result = evaluator.compute()
    assert result.classes == ("cat", "dog")
    assert result.images == ("a", "b")
    # The cat is matched; there is no dog, and its AP is undefined.
    assert result.by_class["AP50"][0] == pytest.approx(1, abs=NEAR)
    assert np.isnan(result.by_class["AP50"][1])


@pytest.mark.parametrize(
    ("form", "box"), [("xyxy", [2, 4, 8, 6]), ("xywh", [2, 4, 6, 2]), ("cxcywh", [5, 5, 6, 2])]
)
def test_boxes_of_every_format(form: Any, box: list[float]) -> None:
    """The box from (2, 4) to (8, 6), in pixels and as fractions of a 10 x 20 image."""
    for scale, sizes in ((1.0, None), (np.array([10, 20, 10, 20]), [[10, 20]])):
        evaluator = Evaluator(truth(), boxes=form, images="seen")
        evaluator.update([1], [np.array([box]) / scale], [[0.5]], [[17]], sizes=sizes)
        _, detections = tables(evaluator)
        assert detections.corners.tolist() == [[2, 4, 8, 6]]
        assert detections.box_area.tolist() == [12]


def test_the_ground_truth_of_a_batch_may_be_normalized() -> None:
    evaluator = Evaluator(boxes="cxcywh")
    boxes = [[[0.5, 0.25, 0.6, 0.1]]]
    brought = {"boxes": boxes, "labels": [[1]]}
    evaluator.update([1], boxes, [[0.5]], [[1]], ground_truth=brought, sizes=[[10, 20]])
    table, _ = tables(evaluator)
    assert table.corners.tolist() == [[2, 4, 8, 6]]
    assert table.area.tolist() == [12]


def test_the_area_of_a_box_follows_its_format_to_the_last_bit() -> None:
    """x + w - x is not w: 0.1 + 0.2 - 0.1 is above 0.2."""
    evaluator = Evaluator(truth(), images="seen")
    boxes = [[0.1, 0.1, 0.2, 0.2], [50, 50, 9, 9]]
    evaluator.update([1], [boxes], [[0.5, 0.5]], [[17, 17]])
    detections = tables(evaluator)[1]
    assert detections.box_area[0] == 0.2 * 0.2
    assert detections.corners[0, 2] - detections.corners[0, 0] != 0.2


class Lent:
    """An array of a library other than NumPy, readable by one protocol only."""

    def __init__(self, values: Any) -> None:
        self._values = np.asarray(values)

    def __len__(self) -> int:
        return len(self._values)


class ByArray(Lent):
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self._values if dtype is None else self._values.astype(dtype)


class ByDlpack(Lent):
    def __dlpack__(self, **given: Any) -> Any:
        return self._values.__dlpack__(**given)

    def __dlpack_device__(self) -> Any:
        return self._values.__dlpack_device__()


class LikeTorch(Lent):
    """A tensor that requires a gradient, is on another device, and may be bfloat16."""

    def __init__(self, values: Any, dtype: str = "torch.float32", steps: int = 0) -> None:
        super().__init__(values)
        self.dtype = dtype
        self.steps = steps

    def detach(self) -> "LikeTorch":
        return LikeTorch(self._values, self.dtype, self.steps + 1)

    def cpu(self) -> "LikeTorch":
        return LikeTorch(self._values, self.dtype, self.steps + 1)

    def float(self) -> "LikeTorch":
        return LikeTorch(self._values, "torch.float32", self.steps)

    def numpy(self) -> NDArray[Any]:
        assert self.steps == 2
        assert self.dtype != "torch.bfloat16"
        return self._values


@pytest.mark.parametrize(
    "wrap",
    [
        list,
        np.array,
        ByArray,
        ByDlpack,
        LikeTorch,
        lambda values: LikeTorch(np.array(values), "torch.bfloat16"),
    ],
    ids=["list", "numpy", "array", "dlpack", "tensor", "bfloat16"],
)
def test_arrays_of_any_library(wrap: Callable[[Any], Any]) -> None:
    evaluator = Evaluator(truth(), boxes="xyxy")
    one = np.float32 if wrap in (ByDlpack, ByArray) else float
    evaluator.update(
        wrap([1, 2, 3]),
        [wrap([list(map(one, BOX))] * 2), wrap([AWAY]), wrap([])],
        [wrap([0.5, 0.25]), wrap([0.75]), wrap([])],
        [wrap([17, 17]), wrap([18]), wrap([])],
    )
    result = evaluator.compute()
    # The cat is matched once (a duplicate has a lower score), the dog is missed.
    assert result.by_class["AP50"].tolist() == pytest.approx([1, 0], abs=NEAR)
    assert result.detections_count.tolist() == [2, 1]


def test_repeats_are_compared_by_class_and_not_by_its_number_in_the_batch() -> None:
    evaluator = Evaluator(truth(), boxes="xyxy", images="seen", repeats="identical")
    evaluator.update([1, 2], [[BOX], [BOX]], [[0.5], [0.5]], [[17], [18]])
    evaluator.update([2], [[BOX]], [[0.5]], [[18]])
    assert tables(evaluator)[1].label.tolist() == [0, 1]
    with pytest.raises(InputError, match="image 1 is updated twice, with different rows"):
        evaluator.update([1], [[BOX]], [[0.5]], [[18]])


def test_columns_are_those_of_tables_from_arrays() -> None:
    evaluator = Evaluator(truth(), boxes="xyxy", images="seen")
    evaluator.update([1], [[BOX]], [[0.5]], [[17]])
    arrays = dt_table([BOX], [0.5], image=1, label=17).columns()
    columns = tables(evaluator)[1].columns()
    assert {k: v.dtype for k, v in columns.items()} == {k: v.dtype for k, v in arrays.items()}


def test_half_precision_is_taken_exactly() -> None:
    evaluator = Evaluator(truth(), boxes="xyxy", images="seen")
    score = np.array([0.1], np.float16)
    evaluator.update([1], [np.array([BOX], np.float16)], [score], [[17]])
    assert tables(evaluator)[1].score.tolist() == [0.0999755859375]  # 1638 / 2^14


def test_labels_are_names_or_ids() -> None:
    for label in ("dog", 18, 18.0, np.int8(18)):
        evaluator = Evaluator(truth(), boxes="xyxy", images=[2])
        evaluator.update([2], [[BOX]], [[0.5]], [[label]])
        assert evaluator.compute().summary["AP"] == pytest.approx(1, abs=NEAR)


def test_numbered_labels_need_numbered_classes() -> None:
    rows = [[BOX]], [[0.9]], [[0]]
    brought = {"boxes": [[BOX]], "labels": [[0]]}
    with pytest.raises(InputError) as caught:
        Evaluator(classes=["cat"]).update([1], *rows, ground_truth=brought)
    message = (
        "label 0 is unknown; labels are class names or ids, such as 'cat'; for numbers give a "
    )
    assert f"{message}dict, such as classes={{0: 'cat'}}" in str(caught.value)
    evaluator = Evaluator(classes={0: "cat"})
    evaluator.update([1], *rows, ground_truth=brought)
    result = evaluator.compute()
    assert (result.classes, round(result.summary["AP50"], 9)) == (("cat",), 1.0)


def test_a_class_id_takes_precedence_over_an_equal_class_name() -> None:
    table = gt_table([BOX, AWAY], image=1, label=["a", "b"], classes={"a": "b", "b": "c"})
    evaluator = Evaluator(table, boxes="xyxy")
    evaluator.update([1], [[BOX, AWAY, AWAY]], [[0.5] * 3], [["a", "b", "c"]])
    assert tables(evaluator)[1].label.tolist() == [0, 1, 1]


def test_a_batch_may_be_empty() -> None:
    evaluator = Evaluator(truth(), boxes="xyxy", images="seen")
    evaluator.update([], [], [], [])
    with pytest.raises(InputError, match="no image was updated; update each batch of the loop"):
        evaluator.compute()
    evaluator.update([1], [[BOX]], [[0.5]], [["cat"]])
    evaluator.update([], [], [], [])
    assert evaluator.compute().images == (1,)


def test_reset_clears_updates_and_keeps_the_ground_truth() -> None:
    evaluator = Evaluator(truth(), boxes="xyxy")
    for score in (0.25, 0.5):
        evaluator.update([1, 2, 3], [[BOX], [], []], [[score], [], []], [["cat"], [], []])
        assert tables(evaluator)[1].score.tolist() == [score]
        evaluator.reset()
    with pytest.raises(InputError, match=r"image 1 was not updated \(nor 2 more\)"):
        evaluator.compute()


def test_records_of_coco() -> None:
    evaluator = Evaluator(truth())
    record = {"image_id": 1, "category_id": 17, "bbox": BOX, "score": 0.5}
    evaluator.update_records([1, 2], [record, record | {"score": 0.25}])
    evaluator.update_records([3], [])
    assert evaluator.compute().by_class["AP50"].tolist() == pytest.approx([1, 0], abs=NEAR)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"category_id": None}, "detections: record 0: category_id is missing; give image_id, "),
        ({"image_id": 2}, "record 0: image 2 is not in the batch; name every image of the batch"),
        ({"bbox": [0, 0, 1]}, r"image 1: boxes has shape \(1, 3\); expected \(n, 4\)"),
        ({"category_id": 1}, "label 1 is unknown; labels are class names or ids, such as 17, 18"),
    ],
)
def test_invalid_records(change: dict[str, Any], message: str) -> None:
    record = {"image_id": 1, "category_id": 17, "bbox": BOX, "score": 0.5} | change
    record = {key: value for key, value in record.items() if value is not None}
    with pytest.raises(InputError, match=message):
        Evaluator(truth()).update_records([1], [record])


def test_updates_without_scores() -> None:
    """All updates have scores or none, also those of merged parts."""
    record = {"image_id": 1, "category_id": 17, "bbox": BOX, "score": None}
    with pytest.raises(
        InputError, match="record 0: score is missing; give image_id, category_id, bbox, sc"
    ):
        Evaluator(truth()).update_records([1], [record, record | {"score": 0.5}])
    evaluator = Evaluator(truth())
    evaluator.update_records([1], [record])
    evaluator.update([2], [np.array([BOX])], None, [[17]])
    parts = [evaluator.to_bytes()]
    for merged in (evaluator, evaluator.merge(parts)):
        assert not merged._tables()[1].has_scores
        merged.update_records([3], [record | {"image_id": 3, "score": 0.5}])
        message = "detections: image 1, row 0: score is missing; 2 of 3 records have none: give all"
        with pytest.raises(InputError, match=message):
            merged.compute()


def test_data_checks_run_once_and_not_in_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """They cost more than scoring, and early epochs all score near zero."""
    asked: list[str] = []

    def mismatch_notes(*tables: object) -> tuple[()]:
        asked.append("asked")
        return ()

    monkeypatch.setattr("detap.evaluation.sanity_notes.mismatch_notes", mismatch_notes)
    evaluator = Evaluator(truth(), boxes="xyxy", images="seen")
    for _ in range(3):
        evaluator.reset()
        evaluator.update([1], [[AWAY]], [[0.5]], [["cat"]])
        assert evaluator.compute().summary["AP"] == 0
    assert asked == ["asked"]


# --- as bytes, in parts


def test_a_merged_result_has_errors_and_its_boxes() -> None:
    evaluators = [Evaluator(truth(), boxes="xyxy", images="seen") for _ in range(2)]
    for evaluator, images in zip(evaluators, ([1, 3], [2]), strict=True):
        update(evaluator, images)
    merged = evaluators[0].merge(e.to_bytes() for e in reversed(evaluators)).compute()
    one = Evaluator(truth(), boxes="xyxy", images="seen")
    update(one, [1, 2, 3])
    whole = one.compute()
    assert_same_result(merged, whole)
    assert str(merged.errors()) == str(whole.errors())
    assert merged.detections.corners.tolist() == whole.detections.corners.tolist()


def test_processes_with_repeated_and_missing_images() -> None:
    """Five images on three processes: the sampler pads with a repeated image."""
    one, two = (Evaluator(truth(), boxes="xyxy", repeats="identical") for _ in range(2))
    update(one, [1, 2])
    update(two, [3, 1])
    blobs = [one.to_bytes(), two.to_bytes()]
    merged = one.merge(blobs).compute()
    assert merged.detections_count.tolist() == [3, 0]
    with pytest.raises(InputError, match="image 3"):
        one.merge(blobs[:1]).compute()
    assert set(one.seen) == {1, 2}
    two.reset()
    two.update([1], [[AWAY]], [[0.5]], [["cat"]])
    with pytest.raises(InputError, match="image 1 is updated twice, with different rows"):
        one.merge([one.to_bytes(), two.to_bytes()])
    strict = Evaluator(truth(), boxes="xyxy")
    update(strict, [1])
    with pytest.raises(InputError, match="image 1 is updated twice"):
        strict.merge([strict.to_bytes()] * 2)
    seen = Evaluator(truth(), boxes="xyxy", images="seen")
    update(seen, [1])
    assert seen.merge([seen.to_bytes()]).compute().images == (1,)


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (Evaluator(truth(), "voc2012", boxes="xyxy"), "protocol"),
        (Evaluator(truth()), "boxes"),
        (Evaluator(truth(), boxes="xyxy", repeats="identical"), "repeats"),
        (Evaluator(truth(crowd=[True, False]), boxes="xyxy"), "ground_truth"),
        (Evaluator(boxes="xyxy"), "ground_truth"),
    ],
)
def test_a_merge_refuses_other_settings(other: Evaluator, name: str) -> None:
    evaluator = Evaluator(truth(), boxes="xyxy")
    message = f"part 1: has another {name} than this evaluator; use one for all"
    with pytest.raises(InputError, match=message):
        evaluator.merge([evaluator.to_bytes(), other.to_bytes()])


def test_damaged_bytes_are_refused() -> None:
    evaluator = Evaluator(truth(), boxes="xyxy")
    update(evaluator, [1, 2, 3])
    data = evaluator.to_bytes()
    for damaged in (b"", b"PK", data[:-1], data[: len(data) // 2], pickle.dumps(evaluator)):
        with pytest.raises(InputError, match=r"part 0: is damaged or not an \.npz file"):
            evaluator.merge([damaged])


# --- images that are missing, unknown, or come twice


def update(evaluator: Evaluator, images: list[Any], score: float = 0.5) -> None:
    many = len(images)
    evaluator.update(images, [[BOX]] * many, [[score]] * many, [["cat"]] * many)


def test_images_that_were_not_updated_are_named_and_counted() -> None:
    evaluator = Evaluator(truth(), boxes="xyxy")
    update(evaluator, [1])
    with pytest.raises(InputError, match=r"image 2 was not updated \(nor 1 more\); update eve"):
        evaluator.compute()
    update(evaluator, [3])
    with pytest.raises(InputError, match="image 2 was not updated; update every image, with empt"):
        evaluator.compute()
    # The remedy, followed: the dog of image 2 is missed.
    evaluator.update([2], [[]], [[]], [[]])
    assert evaluator.compute().by_class["AP50"].tolist() == pytest.approx([1, 0], abs=NEAR)


@pytest.mark.parametrize(
    "images",
    ["seen", [1], (1,), {1}, np.array([1]), [np.int64(1)], iter([1])],
    ids=["seen", "list", "tuple", "set", "array", "numpy", "iterator"],
)
def test_only_images_updated_or_listed_are_scored(images: Any) -> None:
    evaluator = Evaluator(truth(), boxes="xyxy", images=images)
    update(evaluator, [1])
    result = evaluator.compute()
    assert result.images == (1,)
    assert result.ground_truths.tolist() == [1, 0]
    assert result.summary["AP"] == pytest.approx(1, abs=NEAR)


def test_an_image_not_in_images_is_refused() -> None:
    evaluator = Evaluator(truth(), boxes="xyxy", images=[1])
    with pytest.raises(
        InputError, match="image 2 is unknown; name every image of the test set in images="
    ):
        update(evaluator, [2])
    with pytest.raises(InputError, match="image 1 was not updated"):
        evaluator.compute()
    with pytest.raises(InputError, match="image 1 is unknown"):
        Evaluator(images=[2]).update(
            [1], [[]], [[]], [[]], ground_truth={"boxes": [[]], "labels": [[]]}
        )
    evaluator = Evaluator(images=["b", "a"])
    evaluator.update(["b"], [[]], [[]], [[]], ground_truth={"boxes": [[BOX]], "labels": [["cat"]]})
    with pytest.raises(InputError, match="image 'a' was not updated"):
        evaluator.compute()


def test_an_unknown_image_is_refused_with_a_hint_that_works() -> None:
    with pytest.raises(InputError, match="image 4 is unknown; name every image of the test set in"):
        update(Evaluator(truth(), boxes="xyxy"), [4])
    names = {"image": [1], "label": [17], "boxes": [BOX]}
    table = GroundTruth.from_arrays(**names, images=[1, 4], classes={17: "cat"})  # type: ignore[arg-type]
    evaluator = Evaluator(table, "voc2012", "xyxy")
    evaluator.update([4, 1], [[BOX], [BOX]], [[0.75], [0.5]], [[17], [17]])
    # By hand: a false positive above the one true positive.
    assert evaluator.compute().summary["mAP"] == 0.5


@pytest.mark.parametrize("images", [[[1], [1]], [[1, 1]], [[1, 2], [2]]], ids=str)
def test_an_image_updated_twice_is_refused(images: list[list[int]]) -> None:
    evaluator = Evaluator(truth(), boxes="xyxy")
    for batch in images[:-1]:
        update(evaluator, batch)
    message = (
        f"image {images[-1][0]} is updated twice; repeats='identical' drops repeats with equal"
    )
    with pytest.raises(InputError, match=message):
        update(evaluator, images[-1])


@pytest.mark.parametrize("images", [[[1], [1]], [[1, 1]], [[1, 2], [2, 1, 1]]], ids=str)
def test_repeated_images_with_equal_rows_are_dropped(images: list[list[int]]) -> None:
    evaluator = Evaluator(truth(), boxes="xyxy", images="seen", repeats="identical")
    for batch in images:
        update(evaluator, batch)
    once = Evaluator(truth(), boxes="xyxy", images="seen")
    update(once, images[0] if len(images) > 1 else [1])
    assert_same_result(evaluator.compute(), once.compute())


def test_repeated_images_are_equal_by_name_or_id() -> None:
    """Classes by name and by id, zeros of either sign."""
    evaluator = Evaluator(truth(), boxes="xyxy", images="seen", repeats="identical")
    evaluator.update([1], [[BOX]], [[0.0]], [[17]])
    evaluator.update([1], [[BOX]], [[0.0]], [["cat"]])
    evaluator.update([1], [[BOX]], [[-0.0]], [[17]])
    evaluator.update([1], [[[-0.0, -0.0, 10.0, 10.0]]], [[0.0]], [[17]])
    once = Evaluator(truth(), boxes="xyxy", images="seen")
    once.update([1], [[BOX]], [[0.0]], [["cat"]])
    assert_same_result(evaluator.compute(), once.compute())
    with pytest.raises(InputError, match="image 1 is updated twice, with different rows"):
        evaluator.update([1], [[BOX]], [[0.0]], [["dog"]])


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Switch threads as often as possible."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("eager_threads")
@pytest.mark.parametrize("shared", [False, True])
def test_threads_update_and_compute_concurrently(shared: bool) -> None:
    """Each result contains whole updates: one object and two detections per image."""
    images = range(200)
    table = gt_table([BOX] * 200, image=list(images), label=7, images=list(images))
    evaluator = Evaluator(table if shared else None, classes=None if shared else [7], images="seen")
    given: Any = {} if shared else {"ground_truth": {"boxes": [[BOX]], "labels": [[7]]}}

    def update_some(part: Sequence[int]) -> None:
        for image in part:
            evaluator.update([image], [[BOX, AWAY]], [[0.5, 0.25]], [[7, 7]], **given)

    with ThreadPoolExecutor(3) as pool:
        done = [pool.submit(update_some, images[first::3]) for first in range(3)]
        while not all(each.done() for each in done):
            if evaluator.seen:
                merged = evaluator.merge([evaluator.to_bytes()])
                for result in (evaluator.compute(), merged.compute()):
                    count = len(result.images)
                    assert result.ground_truths.sum() == count
                    assert result.detections_count.sum() == 2 * count
        for each in done:
            each.result()
    assert len(evaluator.compute().images) == 200


def test_a_copy_of_an_evaluator_is_independent() -> None:
    evaluator = Evaluator(truth(), boxes="xyxy", images="seen")
    update(evaluator, [1])
    for twin in (copy.deepcopy(evaluator), pickle.loads(pickle.dumps(evaluator))):
        update(twin, [2])
        assert twin.seen == (1, 2)
        assert twin.compute().images == (1, 2)
    assert evaluator.seen == (1,)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("rules", ["coco", "voc2012", "detectron2-voc"])
def test_results_do_not_depend_on_how_images_were_split(rules: str, shared: bool) -> None:
    """Boxes are taken as they are; images 2, 9 and 11 of 12 have negative sizes."""
    images = range(1, 13)
    boxes = {n: [BOX, [5.0, 5.0, 2.0, 9.0] if n in (2, 9, 11) else AWAY] for n in images}
    mine = {n: {"boxes": [boxes[n]], "labels": [[17, 18]]} for n in images}
    table = GroundTruth.from_arrays(
        image=[n for n in images for _ in range(2)],
        label=[17, 18] * 12,
        boxes=[box for n in images for box in boxes[n]],
        images=list(images),
        as_is=True,
    )

    def merged(*parts: Sequence[int]) -> detap.Result:
        blobs = []
        for part in parts:
            evaluator = Evaluator(
                table if shared else None,
                rules,
                "xyxy",
                classes=None if shared else [17, 18],
                images="seen",
                as_is=True,
            )
            for n in part:
                given: Any = {} if shared else {"ground_truth": mine[n]}
                detections = boxes[n] if n % 5 else []  # two images have no detection
                labels = [17, 18] if n % 5 else []
                scores = [0.5, 0.25] if n % 5 else []
                evaluator.update([n], [detections], [scores], [labels], **given)
            blobs.append(evaluator.to_bytes())
        return evaluator.merge(blobs).compute()

    whole = merged(images)
    splits: list[Sequence[Sequence[int]]] = [
        (images[::2], images[1::2]),
        (images[6:], [], images[:6]),
        [[n] for n in reversed(images)],
    ]
    for parts in splits:
        result = merged(*parts)
        assert_same_result(result, whole)
        assert result.notes == whole.notes
    notes = {note.code: note for note in whole.notes}
    assert notes["as-is"].count == 1
    assert notes["detections-negative-size"].count == 3
    assert "(first: image 2, row 1," in notes["detections-negative-size"].message


def test_repeated_images_with_different_rows_are_refused() -> None:
    evaluator = Evaluator(truth(), boxes="xyxy", images="seen", repeats="identical")
    update(evaluator, [1])
    message = "image 1 is updated twice, with different rows; split images without repeats"
    with pytest.raises(InputError, match=message):
        update(evaluator, [1], score=0.75)
    for boxes, scores, labels in (([BOX], [0.5], ["dog"]), ([], [], [])):
        with pytest.raises(InputError, match="image 1 is updated twice, with different rows"):
            evaluator.update([1], [boxes], [scores], [labels])
    mine: dict[str, list[Any]] = {"boxes": [[BOX]], "labels": [[1]]}
    open_one = Evaluator(repeats="identical")
    open_one.update([1], [[]], [[]], [[]], ground_truth=mine)
    open_one.update([1], [[]], [[]], [[]], ground_truth=mine)
    with pytest.raises(InputError, match="image 1 is updated twice, with different rows"):
        open_one.update([1], [[]], [[]], [[]], ground_truth=mine | {"crowd": [[True]]})
    assert open_one.compute().ground_truths.tolist() == [1]


@given(batches())
def test_a_failed_update_changes_nothing(split: tuple[Case, list[list[int]]]) -> None:
    case, images = split
    assume(case.dt)
    evaluator = Evaluator(case.ground_truth())
    for names in images:
        image_ids, boxes, scores, labels = batch_of(case, names)
        wrong = [np.full(len(score), np.nan) for score in scores]
        if any(map(len, scores)):
            with pytest.raises(InputError, match=r"expected a? ?finite"):
                evaluator.update(image_ids, boxes, wrong, labels)
        evaluator.update(image_ids, boxes, scores, labels)
    whole = case.with_dt(in_order_of_images(case.dt))
    assert_same_result(evaluator.compute(), detap.evaluate(*whole.tables()))


# --- values that are none


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"image_ids": [1]},
            "boxes has 2 entries for 1 images; give one entry per image, an empty",
        ),
        ({"scores": [[0.5, 0.5]]}, "scores has 1 entries for 2 images"),
        ({"scores": [[0.5, 0.5], []]}, "image 2: 1 boxes and 0 scores; give as many of each"),
        ({"labels": [[17], [17]]}, "image 1: 2 boxes and 1 labels; give as many of each"),
        ({"boxes": [[BOX, [0, 0, np.nan, 1]], [BOX]]}, r"image 1, row 1: boxes is \[0.0, 0.0, na"),
        (
            {"boxes": [[BOX, BOX], [[0, 0, np.inf, 1]]]},
            r"image 2, row 0: boxes is .* expected a finite",
        ),
        (
            {"boxes": [[BOX, BOX], [[0, 0, 1e200, 1e200]]]},
            r"detections: image 2, row 0: boxes is .* expected finite coordinates and area",
        ),
        ({"scores": [[0.5, 0.5], [np.nan]]}, "image 2, row 0: score.? is nan; expected a finite"),
        ({"scores": [[0.5, "0.5"], [1]]}, "image 1, row 1: scores is '0.5'; expected a number"),
        ({"scores": [[[0.5], [0.5]], [1]]}, r"image 1: scores has shape \(2, 1\); expected \(n,\)"),
        (
            {"boxes": [np.zeros((2, 5)), [BOX]]},
            r"image 1: boxes has shape \(2, 5\); expected \(n, 4\)",
        ),
        ({"labels": [[17, 19], [17]]}, "label 19 is unknown; labels are class names or ids"),
        ({"labels": [["cat", "dgo"], [17]]}, "labels mixes numbers and text"),
        ({"labels": [["cat", "dgo"], ["cat"]]}, "label 'dgo' .*; did you mean dog"),
        ({"labels": [[17, 1.5], [17]]}, "image 1, row 1: labels is 1.5; expected an integer or"),
        (
            {"sizes": [[10, 10]]},
            r"sizes has shape \(1, 2\); expected \(n, 2\), n = 2 as in image_ids",
        ),
        (
            {"sizes": [[10, 10], [0, 10]]},
            r"image 2, row 0: sizes is \[0.0, 10.0\]; expected width and height",
        ),
        ({"sizes": [[10, 10]] * 2}, r"image 1, row 0: boxes is .* fraction.* omit sizes"),
        ({"boxes": None}, "boxes: expected a list with one entry per image, got None"),
        ({"scores": iter([[0.5]])}, "scores: expected a list .*, got list_iterator"),
        ({"image_ids": [1, True]}, "image_ids is True; expected an integer or text"),
    ],
)
def test_errors_in_a_batch(change: dict[str, Any], message: str) -> None:
    batch: dict[str, Any] = {
        "image_ids": [1, 2],
        "boxes": [[BOX, BOX], [BOX]],
        "scores": [[0.5, 0.25], [0.5]],
        "labels": [[17, 17], [18]],
    }
    with pytest.raises(InputError, match=message):
        Evaluator(truth(), boxes="xyxy").update(**(batch | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"boxes": [[BOX, BOX]], "labels": [[1]]}, "ground truth: image 1: 2 boxes and 1 labels"),
        ({"labels": None}, "ground truth: labels: expected a list with one entry per image, got N"),
        ({"area": [[-1]]}, "ground truth: image 1, row 0: area is -1.0; expected >= 0"),
        ({"crowd": [[2]]}, "ground truth: image 1, row 0: crowd is 2; expected true, false"),
        ({"labels": [["cat"]]}, "labels mixes numbers and text; use only numbers, or only text"),
        ({"iscrowd": [[0]]}, "truth has an unknown key 'iscrowd'; "),
        ({"crwd": [[0]]}, "did you mean crowd"),
        (
            {"boxes": [[[9, 9, 0, 0]]]},
            "ground truth: image 1, row 0: boxes is .* no negative width or height",
        ),
    ],
)
def test_invalid_values_in_the_ground_truth_of_a_batch(
    change: dict[str, Any], message: str
) -> None:
    evaluator = Evaluator(boxes="xyxy")
    brought: dict[str, Any] = {"boxes": [[BOX]], "labels": [[1]]} | change
    error = (InputError, UsageError)
    with pytest.raises(error, match=message):  # noqa: PT012 - the last is reported at the end
        evaluator.update([1], [[BOX]], [[0.5]], [[1]], ground_truth=brought)
        evaluator.compute()


def test_xyxy_boxes_declared_as_xywh_are_refused_unless_as_is() -> None:
    boxes = [[40.0, 40.0, 10.0, 10.0]]
    evaluator, insisting = (
        Evaluator(truth(), boxes="xyxy", images="seen", as_is=as_is) for as_is in (False, True)
    )
    for each in (evaluator, insisting):
        each.update([1], [boxes], [[0.5]], [[17]])
    with pytest.raises(InputError, match=r"image 1, row 0: boxes is .* or pass as_is=True"):
        evaluator.compute()
    assert insisting.compute().summary["AP"] == 0


def test_normalized_boxes_without_image_sizes_are_refused() -> None:
    evaluator = Evaluator(truth(), images="seen")
    evaluator.update([1], [[[0.1, 0.1, 0.5, 0.5]] * 12], [[0.5] * 12], [[17] * 12])
    with pytest.raises(InputError, match="look normalized"):
        evaluator.compute()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"ground_truth": "gt.json"},
            r"expected GroundTruth, got str; read it with detap.read_ground_truth\(path\)",
        ),
        ({"boxes": "corners"}, "boxes 'corners' is unknown; use one of xyxy, xywh, cxcywh"),
        ({"repeats": "last"}, "repeats 'last' is unknown; use one of error, identical"),
        ({"images": "all"}, "images is 'all'; give a list of names, or \"seen\""),
        ({"images": 7}, 'images is 7; give a list of names, or "seen"'),
        ({"ground_truth": None, "classes": "cat"}, "classes is 'cat'; give a list of names"),
        ({"ground_truth": None, "classes": 7}, "classes is 7; give a list of names"),
        ({"images": [1, 7]}, "image '7' is not in the ground truth"),
        (
            {"classes": ["cat"]},
            "classes= does not apply if ground_truth, which has classes, is given",
        ),
        ({"protocol": "cocoo"}, "cocoo"),
        ({"protocol": 3}, "protocol 3 is not a Protocol or the name of a preset"),
    ],
)
def test_invalid_arguments(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Evaluator(**({"ground_truth": truth()} | given))


def test_the_ground_truth_is_given_either_once_or_in_batches() -> None:
    with pytest.raises(UsageError, match="give ground_truth= either to the evaluator, or"):
        Evaluator().update([1], [[]], [[]], [[]])
    with pytest.raises(UsageError, match="either to the evaluator, or to each update"):
        Evaluator(truth()).update(
            [1], [[]], [[]], [[]], ground_truth={"boxes": [[]], "labels": [[]]}
        )
    with pytest.raises(UsageError, match="requires boxes='xywh'"):
        Evaluator(truth(), boxes="xyxy").update_records([1], [])


def test_image_sizes_are_those_of_images_not_of_rows() -> None:
    """The second image has the wrong size; it has three ground truths, and the first has none."""
    evaluator = Evaluator(boxes="xyxy")
    brought = {"boxes": [[], [BOX] * 3], "labels": [[], [17] * 3]}
    for sizes, message in (
        ([[9, 9], [-1, 9]], r"image 2, row 0: image_sizes is \[-1.0, 9.0\]; expected width and"),
        ([[9, 9], [9, "x"]], r"image 2, row 0: image_sizes is \[9, 'x'\]; expected numbers"),
    ):
        given: Any = brought | {"image_sizes": sizes}
        with pytest.raises(InputError, match=message):
            evaluator.update([1, 2], [[], []], [[], []], [[], []], ground_truth=given)


def test_subclasses_may_change_the_arguments_of_updates() -> None:
    class OfPairs(Evaluator):
        def __init__(self, table: GroundTruth) -> None:
            super().__init__(table, boxes="xyxy", images="seen")
            self.count = 0

        def update(self, pairs: Any) -> None:  # type: ignore[override]
            self.count += 1
            super().update(*zip(*pairs, strict=True))

    evaluator = OfPairs(truth())
    evaluator.update([(1, [BOX], [0.5], [17])])
    assert (evaluator.count, evaluator.compute().images) == (1, (1,))


def test_the_caller_s_arrays_are_not_modified() -> None:
    boxes = np.array([[0.5, 0.5, 0.2, 0.2]])
    evaluator = Evaluator(truth(), boxes="cxcywh", images="seen")
    evaluator.update([1], [boxes], [[0.5]], [[17]], sizes=[[10, 10]])
    evaluator.compute()
    assert boxes.tolist() == [[0.5, 0.5, 0.2, 0.2]]
    assert boxes.flags.writeable


def test_torch_is_not_imported() -> None:
    code = (
        "import sys, detap; e = detap.Evaluator(boxes='xyxy');"
        "truth = {'boxes': [[[0, 0, 9, 9]]], 'labels': [[1]]};"
        "e.update([1], [[]], [[]], [[]], ground_truth=truth);"
        "e.compute(); print('torch' in sys.modules)"
    )
    done = finished([sys.executable, "-c", code])
    assert done.stdout == "False\n"
