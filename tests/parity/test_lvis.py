"""LVIS: values of the reference, the plain oracle, and cases by hand."""

import json
import math
import sys
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap import metrics
from detap.analysis.bootstrap import draw_weights, resampled
from detap.analysis.image_results import image_results
from detap.errors import InputError, UsageError
from detap.evaluation.detection import Result, evaluate
from detap.evaluation.scoring import on_images
from detap.evaluation.selection import select
from detap.evaluation.tie_range import tie_range
from detap.formats import read_ground_truth
from detap.gates.detection import Scored
from detap.gates.metric_names import resolve
from detap.protocols import Protocol, protocol
from detap.report.sections.image import image_report
from detap.tables.concat import join_ground_truths
from detap.tables.detection import Detections, GroundTruth, Name
from tests.coco import read, saved
from tests.depth import examples
from tests.formats.coco_files import agreed, truth_columns
from tests.oracle import lvis
from tests.oracle.lvis import DetectionRow, GroundTruthRow, Lists
from tests.parity.compare import Cell, assert_same_arrays, assert_same_matches
from tests.parity.test_boundary import reference as boundary_reference
from tests.raised import raised

RULES, MASKS = protocol("lvis"), protocol("lvis-segm")
BOUNDARIES = RULES.with_changes(iou_type="boundary")
KIND = {"lvis": "bbox", "lvis-segm": "segm"}
NUMBERS = {"AR@300": "AR300", "ARs@300": "ARs", "ARm@300": "ARm", "ARl@300": "ARl"}
GROUPS: dict[Name, str] = {1: "rare", 2: "common", 3: "frequent"}
BOX, ELSEWHERE = (10.0, 10.0, 50.0, 50.0), (100.0, 100.0, 40.0, 40.0)
NOTHING = Lists(frozenset(), frozenset())


def tables(
    truths: list[GroundTruthRow],
    dts: list[DetectionRow],
    lists: Lists = NOTHING,
    images: int = 2,
) -> tuple[GroundTruth, Detections]:
    truth = GroundTruth.from_arrays(
        image=np.array([each.image for each in truths], np.int64),
        label=np.array([each.label for each in truths], np.int64),
        boxes=np.array([each.box for each in truths]).reshape(-1, 4),
        box_format="xywh",
        ignore=np.array([each.ignored for each in truths], np.bool_),
        listed={name: sorted(pairs) for name, pairs in lists._asdict().items()},
        groups=GROUPS,
        images=range(1, images + 1),
        classes={1: "c1", 2: "c2", 3: "c3"},
    )
    detections = Detections.from_arrays(
        image=np.array([each.image for each in dts], np.int64),
        label=np.array([each.label for each in dts], np.int64),
        boxes=np.array([each.box for each in dts]).reshape(-1, 4),
        box_format="xywh",
        score=np.array([each.score for each in dts], float),
    )
    return truth, detections


def run(
    truths: list[GroundTruthRow],
    dts: list[DetectionRow],
    lists: Lists = NOTHING,
    limit: int = 300,
) -> Result:
    protocol = replace(RULES, max_dets=(limit,))
    return evaluate(*tables(truths, dts, lists), protocol)


def same(one: float | None, other: float | None) -> bool:
    undefined = [value is None or math.isnan(value) for value in (one, other)]
    return one == other or all(undefined)


# --- numbers of the reference


@pytest.mark.parametrize("protocol", [RULES, MASKS], ids=lambda rules: rules.name)
def test_every_number_of_the_reference_to_the_last_bit(real_data: Path, protocol: Protocol) -> None:
    folder, kind = real_data / "lvis-val-100-results", KIND[protocol.name]
    expected = json.loads((folder / "expected.json").read_text("utf-8"))[f"{kind} (lvis 0.5.3)"]
    gold = real_data / "lvis-val-100" / "lvis_val_100.json"
    files = gold, folder / f"lvis_results_{kind}.json"
    result = evaluate(*read(files, **protocol.reading), protocol)
    assert len(expected["stats"]) == 13 == len(result.summary)
    for name, required in expected["stats"].items():
        assert result.summary[NUMBERS.get(name, name)] == required, name
    averages = dict(zip(result.class_ids, result.by_class["AP"].tolist(), strict=True))
    required = {int(name): value for name, value in expected["per_category_AP"].items()}
    assert {name: v for name, v in averages.items() if not math.isnan(v)} == required
    codes = [note.code for note in result.notes]
    assert "unverified" in codes
    assert "missing-iscrowd" not in codes  # which means nothing here


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("protocol", [RULES, MASKS, BOUNDARIES], ids=lambda rules: rules.iou_type)
def test_arrays_and_matches_equal_the_reference(
    real_data: Path, monkeypatch: pytest.MonkeyPatch, protocol: Protocol
) -> None:
    evaluator = _reference(monkeypatch, protocol)
    folder = real_data / "lvis-val-100-results"
    results = folder / f"lvis_results_{'bbox' if protocol is RULES else 'segm'}.json"
    gold = real_data / "lvis-val-100" / "lvis_val_100.json"
    kind = protocol.iou_type
    made = evaluator(str(gold), str(results), kind)
    made.evaluate()
    made.accumulate()
    tables = read((gold, results), **protocol.reading)
    result = evaluate(*tables, protocol, matches=True)
    assert_same_arrays(result, made)
    annotations = [each["id"] for each in made.lvis_gt.dataset["annotations"]]
    assert_same_matches(result, _cells(made), annotations)


def _reference(monkeypatch: pytest.MonkeyPatch, protocol: Protocol) -> Any:
    if protocol.iou_type == "boundary":
        boundary_reference(monkeypatch, "lvis_instance_api.lvis")
        return import_module("boundary_iou.lvis_instance_api.eval").LVISEval
    monkeypatch.setattr(np, "float", float, raising=False)  # gone since NumPy 1.24
    if find_spec("cv2") is None:  # it draws with that
        monkeypatch.setitem(sys.modules, "cv2", ModuleType("cv2"))
    return pytest.importorskip("lvis", exc_type=ImportError).LVISEval


def _cells(made: Any) -> Iterable[Cell]:
    ranges = {tuple(band): a for a, band in enumerate(made.params.area_rng)}
    for each in made.eval_imgs:
        if each is not None:
            places = each["image_id"], each["category_id"], ranges[tuple(each["area_rng"])]
            yield Cell(*places, each["dt_matches"], each["dt_ignore"])


@pytest.fixture(scope="module")
def cases(real_data: Path) -> list[dict[str, Any]]:
    listed = json.loads((real_data / "iou-types-cases" / "cases.json").read_text("utf-8"))
    selected = [case for case in listed if case["protocol"] == "lvis"]
    assert len(selected) >= 9
    return selected


def test_worked_cases(cases: list[dict[str, Any]], tmp_path: Path) -> None:
    for case in cases:
        files = saved(tmp_path, case["ground_truth"], case["detections"])
        result = evaluate(*read(files), RULES)
        for name, expected in case["expected"].items():
            ours = result.summary[NUMBERS.get(name, name)]
            assert same(ours, expected), (case["name"], name, ours, expected)


# --- by hand


def test_image_results_give_the_reason_for_unscored_detections() -> None:
    lists = Lists(frozenset(), frozenset({(1, 1)}))
    dts = [
        DetectionRow(1, 1, BOX, 0.9),
        DetectionRow(1, 1, ELSEWHERE, 0.8),
        DetectionRow(1, 2, BOX, 0.7),
    ]
    detections = image_results(run([GroundTruthRow(1, 1, BOX)], dts, lists), 1)
    said = [entry.result for entry in detections.detections]
    assert said == ["true-positive", "not-exhaustive", "unverified"]
    report = image_report(run([GroundTruthRow(1, 1, BOX)], dts, lists), detections)
    assert [row["why"] for row in report.table.rows][1:] == [
        "unmatched; its class is not exhaustively annotated in this image",
        "its class is not verified in this image",
    ]


def test_ignore_flags_apply_and_crowd_has_no_effect() -> None:
    truths = [GroundTruthRow(1, 1, BOX, ignored=True), GroundTruthRow(1, 1, ELSEWHERE)]
    result = run(truths, [DetectionRow(1, 1, BOX, 0.9), DetectionRow(1, 1, ELSEWHERE, 0.8)])
    assert result.summary["AP"] == pytest.approx(1.0)
    assert result.ignored.tolist() == [1, 0, 0]
    truth, detections = tables([GroundTruthRow(1, 1, BOX)], [DetectionRow(1, 1, BOX, 0.9)])
    crowd = replace(truth, crowd=np.ones(1, np.bool_))
    assert evaluate(crowd, detections, RULES).summary["AP"] == pytest.approx(1.0)


def test_class_groups_are_means_over_classes_with_ground_truth() -> None:
    truths = [GroundTruthRow(1, 1, BOX), GroundTruthRow(1, 2, BOX)]
    result = run(truths, [DetectionRow(1, 1, BOX, 0.9)])
    assert result.summary["APr"] == pytest.approx(1.0)
    assert result.summary["APc"] == 0.0
    assert math.isnan(result.summary["APf"])
    assert result.summary["AP"] == pytest.approx(0.5)
    rare = result.metric_by_class("APr")
    assert rare[0] == pytest.approx(1.0)
    assert np.isnan(rare[1:]).all()
    assert "APr" not in result.by_class


def test_annotation_id_zero_is_valid_by_default() -> None:
    truth, detections = tables([GroundTruthRow(1, 1, BOX)], [DetectionRow(1, 1, BOX, 0.9)])
    zero = replace(truth, zero_id=np.ones(1, np.bool_))
    assert evaluate(zero, detections, RULES).summary["AP"] == pytest.approx(1.0)
    as_there = replace(RULES, annotation_id_zero="unmatched")
    assert evaluate(zero, detections, as_there).summary["AP"] == 0.0


# --- the oracle


NUMBERS_OF = {"x": st.integers(0, 3), "score": st.sampled_from([0.2, 0.4, 0.6, 0.8])}
BOXES = st.builds(
    lambda x, w: (20.0 * x, 0.0, w, 20.0), NUMBERS_OF["x"], st.sampled_from([0, 20, 22, 24, 26])
)
PLACES = st.frozensets(st.tuples(st.integers(1, 2), st.integers(1, 3)))
SCENES = st.tuples(
    st.lists(
        st.builds(GroundTruthRow, st.integers(1, 2), st.integers(1, 3), BOXES, st.booleans()),
        min_size=1,
        max_size=6,
    ),
    st.lists(
        st.builds(DetectionRow, st.integers(1, 2), st.integers(1, 3), BOXES, NUMBERS_OF["score"]),
        min_size=1,
        max_size=8,
    ),
    st.builds(Lists, PLACES, PLACES),
)


@examples(150)
@given(SCENES, st.sampled_from([1, 2, 3, 300]))
def test_random_cases_equal_the_oracle(
    generated: tuple[list[GroundTruthRow], list[DetectionRow], Lists], limit: int
) -> None:
    truths, dts, lists = generated
    result = run(truths, dts, lists, limit)
    kept = lvis.judged(truths, dts, lists, limit)
    averages = {k: lvis.average_precision(truths, kept, lists, k) for k in (1, 2, 3)}
    for label, expected in averages.items():
        ours = float(result.by_class["AP"][label - 1])
        assert (expected is None) == math.isnan(ours)
        assert expected is None or ours == pytest.approx(expected, abs=1e-9)
    for label, suffix in ((1, "r"), (2, "c"), (3, "f")):
        expected = lvis.mean_over(averages, {label})
        ours = result.summary[f"AP{suffix}"]
        assert math.isnan(ours) if expected is None else ours == pytest.approx(expected, abs=1e-9)


@examples(40)
@given(SCENES, st.sampled_from([1, 3, 300]), st.randoms(use_true_random=False))
def test_tie_bounds_contain_every_order_of_ties(
    generated: tuple[list[GroundTruthRow], list[DetectionRow], Lists], limit: int, random: Any
) -> None:
    truths, dts, lists = generated
    ends = tie_range(run(truths, dts, lists, limit))
    for _ in range(3):
        random.shuffle(dts)
        summary = run(truths, dts, lists, limit).summary
        for name, (low, _, high) in ends.items():
            assert math.isnan(summary[name]) or low - 1e-9 <= summary[name] <= high + 1e-9, name


FLAT = (10.0, 10.0, 0.0, 50.0)


@pytest.mark.parametrize("limit", [1, 2])
def test_a_zero_area_detection_counts_only_towards_max_dets(limit: int) -> None:
    result = run(
        [GroundTruthRow(1, 1, BOX)], [DetectionRow(1, 1, FLAT, 0.9), DetectionRow(1, 1, BOX, 0.8)]
    )
    assert result.summary["AP"] == pytest.approx(1.0)
    assert result.false_positives.tolist() == [0, 0, 0]
    assert {note.code: note.count for note in result.notes}["zero-area-detections-dropped"] == 1
    dts = [DetectionRow(1, 1, FLAT, 0.9), DetectionRow(1, 1, BOX, 0.8)]
    limited = run([GroundTruthRow(1, 1, BOX)], dts, NOTHING, limit)
    assert limited.summary["AP"] == pytest.approx(limit - 1.0)
    detections = image_results(result, 1)
    assert [entry.result for entry in detections.detections] == ["zero-area", "true-positive"]
    why = "zero area; dropped by the protocol"
    assert next(row["why"] for row in image_report(result, detections).table.rows) == why
    counted = replace(RULES, zero_area="count")
    kept = evaluate(result.ground_truth, result.detections, counted)
    assert kept.summary["AP"] == pytest.approx(0.5)


def test_a_zero_area_ground_truth_is_dropped_and_does_not_verify_its_class() -> None:
    truths = [GroundTruthRow(1, 1, BOX), GroundTruthRow(1, 1, FLAT), GroundTruthRow(2, 1, FLAT)]
    dts = [DetectionRow(2, 1, ELSEWHERE, 0.95), DetectionRow(1, 1, BOX, 0.9)]
    result = run(truths, dts)
    assert result.summary["AP"] == pytest.approx(1.0)
    assert len(result.ground_truth) == 1
    notes = {note.code: note.count for note in result.notes}
    assert notes["zero-area-ground-truth-dropped"] == 2
    assert notes["unverified"] == 1
    # Listed as absent, the class of the second image is verified by that.
    listed = run(truths, dts, Lists(frozenset({(2, 1)}), frozenset()))
    assert listed.summary["AP"] == pytest.approx(0.5)


def test_the_annotated_area_decides_and_not_the_box_area() -> None:
    truth, detections = tables([GroundTruthRow(1, 1, BOX)], [DetectionRow(1, 1, BOX, 0.9)])
    zero = replace(truth, area=np.zeros(1))
    assert math.isnan(evaluate(zero, detections, RULES).summary["AP"])
    by_box = replace(RULES, area_source="box")
    assert evaluate(zero, detections, by_box).summary["AP"] == pytest.approx(1.0)


def test_images_selected_from_a_result_keep_their_lists() -> None:
    lists = Lists(frozenset({(2, 1)}), frozenset({(1, 1)}))
    truths = [GroundTruthRow(1, 1, BOX), GroundTruthRow(2, 2, BOX)]
    dts = [
        DetectionRow(2, 1, BOX, 0.95),
        DetectionRow(1, 1, BOX, 0.8),
        DetectionRow(1, 1, BOX, 0.9),
    ]
    result = run(truths, dts, lists)
    assert result.summary["APr"] == pytest.approx(0.5)
    first = on_images(result, [1])
    assert first.summary["APr"] == pytest.approx(1.0)
    # Matched again, not taken from what was kept.
    assert first.with_matches().matches is not None
    again = evaluate(first.ground_truth, first.detections, RULES)
    assert again.summary["APr"] == pytest.approx(1.0)
    second = evaluate(*select(*tables(truths, dts, lists), classes=["c1"]), RULES)
    assert second.ground_truth.listed["negative"].tolist() == [[1, 0]]
    assert second.false_positives.tolist() == [1]


def test_resamples_of_a_class_group_use_its_classes() -> None:
    truths = [GroundTruthRow(n, k, BOX) for n in (1, 2) for k in (1, 2)]
    result = run(truths, [DetectionRow(1, 1, BOX, 0.9), DetectionRow(2, 1, BOX, 0.9)])
    actual = resampled(result, draw_weights(2, 20, 0), ["AP", "APr", "APc", "APf"])
    assert actual.overall["APr"].drawn == pytest.approx(np.ones(20))
    assert actual.overall["APc"].drawn == pytest.approx(np.zeros(20))
    assert actual.overall["AP"].drawn == pytest.approx(np.full(20, 0.5))
    assert np.isnan(actual.overall["APf"].drawn).all()


def test_a_class_group_counts_the_ground_truths_of_its_classes() -> None:
    truths = [GroundTruthRow(n, k, BOX) for n in (1, 2) for k in (1, 2)]
    result = run([*truths, GroundTruthRow(2, 1, BOX)], [DetectionRow(1, 1, BOX, 0.9)])
    numbers = Scored(result).metrics()
    counts = {text: resolve(text, numbers)[0].ground_truths(numbers) for text in ("AP", "APr")}
    assert counts == {"AP": 5, "APr": 3}
    assert resolve("APc", numbers)[0].ground_truths(numbers) == 2
    assert resolve("APf", numbers)[0].ground_truths(numbers) == 0


# --- files


LVIS = {
    "images": [
        {"id": 7, "width": 200, "height": 200, "neg_category_ids": [3, 9], "x": [[1]]},
        {"id": 2, "neg_category_ids": [], "not_exhaustive_category_ids": [1, 1, 3]},
    ],
    "annotations": [{"id": 1, "image_id": 2, "category_id": 1, "bbox": [0, 0, 5, 5]}],
    "categories": [
        {"id": 1, "name": "a", "frequency": "f"},
        {"id": 3, "name": "b", "frequency": "x"},
    ],
}


def test_both_readers_read_the_lists(tmp_path: Path) -> None:
    path = tmp_path / "gt.json"
    path.write_text(json.dumps(LVIS), "utf-8")
    truth = read_ground_truth(path)
    assert truth.images == (2, 7)
    assert {name: pairs.tolist() for name, pairs in truth.listed.items()} == {
        "negative": [[1, 1]],
        "not_exhaustive": [[0, 0], [0, 1]],
    }
    assert truth.groups == {1: "frequent"}
    notes = {note.code: note.count for note in truth.notes}
    assert notes["negative-of-unknown-categories"] == 1
    assert notes["images-without-not_exhaustive"] == 1
    assert agreed(truth_columns, path.read_bytes()) is not None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (5, "neg_category_ids is 5, expected a list of category ids"),
        ([1, 1.5], "neg_category_ids is 1.5, expected an integer or a string"),
        ([[1]], "neg_category_ids is [1], expected an integer or a string"),
    ],
)
def test_invalid_lists_are_refused(tmp_path: Path, value: object, message: str) -> None:
    path = tmp_path / "gt.json"
    images = [{"id": 2, "neg_category_ids": value}]
    path.write_text(json.dumps({**LVIS, "images": images}), "utf-8")
    error = raised(InputError, read_ground_truth, path)
    assert "images[0] (id 2)" in str(error)
    assert message in str(error)


@pytest.mark.parametrize(
    ("listed", "missing", "option"),
    [
        ({"not_exhaustive": []}, "neg_category_ids", "--verified all"),
        ({"negative": []}, "not_exhaustive_category_ids", "--not-exhaustive count"),
    ],
)
def test_ground_truth_without_lists_is_refused(
    listed: dict[str, list[Any]], missing: str, option: str
) -> None:
    truth, detections = tables([GroundTruthRow(1, 1, BOX)], [DetectionRow(1, 1, BOX, 0.9)])
    bare = replace(truth, listed={n: truth.listed[n] for n in listed})
    error = raised(UsageError, evaluate, bare, detections, RULES)
    assert missing in str(error)
    assert option in str(error)


def test_lists_of_several_inputs_are_concatenated() -> None:
    one, _ = tables([GroundTruthRow(1, 1, BOX)], [], Lists(frozenset({(1, 2)}), frozenset()))
    two, _ = tables(
        [GroundTruthRow(2, 1, BOX)], [], Lists(frozenset({(2, 3)}), frozenset({(2, 2)}))
    )
    first, _ = select(one, _none(), images=[1])
    second, _ = select(two, _none(), images=[2])
    both = join_ground_truths([first, second])
    assert both.listed["negative"].tolist() == [[0, 1], [1, 2]]
    assert both.listed["not_exhaustive"].tolist() == [[1, 1]]
    assert both.groups == GROUPS
    other = replace(second, groups={1: "common"})
    with pytest.raises(InputError, match="category 1 is common, but rare in"):
        join_ground_truths([first, other])


def _none() -> Detections:
    return tables([GroundTruthRow(1, 1, BOX)], [])[1]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"listed": {"absent": []}}, "unknown list 'absent'.*use negative, "),
        ({"listed": {"negative": [(5, 1)]}}, r"list negative has \(5, 1\), whose image"),
        ({"listed": {"negative": [5]}}, "list negative has 5.*expected pairs .image, class."),
        ({"groups": {1: "r"}}, "groups has 'r'.*use rare, common, frequent"),
        ({"groups": {9: "rare"}}, "groups has 9, which is not in classes"),
    ],
)
def test_lists_and_groups_of_arrays_are_checked(what: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        GroundTruth.from_arrays(image=[1], label=[1], boxes=[BOX], box_format="xywh", **what)


def test_class_agnostic_is_refused_and_missing_groups_are_noted() -> None:
    with pytest.raises(UsageError, match="--verified all --not-exhaustive count"):
        RULES.with_changes(class_agnostic=True)
    with pytest.raises(UsageError, match="APr is a mean over rare classes"):
        RULES.only_metric(metrics.named(RULES, "APr"))
    truth, detections = tables([GroundTruthRow(1, 1, BOX)], [DetectionRow(1, 1, BOX, 0.9)])
    result = evaluate(replace(truth, groups={1: "rare"}), detections, RULES)
    notes = {note.code: note.count for note in result.notes}
    assert notes["classes-without-group"] == 2
