"""Detections without scores: F1 and its relatives against an independent reference program."""

import json
from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detap
from detap.analysis.bootstrap import Weights, resampled
from detap.analysis.rankings import over_rankings
from detap.errors import DetapWarning, InputError, UsageError
from detap.evaluation.results import Result
from detap.evaluation.scoring import score_tables
from tests.cli.conftest import Run
from tests.tables import dt_table, gt_table

QUICKSTART = Path("fixtures/quickstart/coco")
NAMES = {"mean_IoU": "mean IoU", "macro_F1": "macro-F1"}


def without_scores(table: detap.Detections, missing_scores: Any = "none") -> detap.Detections:
    """Return detections without their scores."""
    return replace(table, score=np.full(len(table), nan), missing_scores=missing_scores)


def read(gt: Path, dt: Path, **options: Any) -> tuple[detap.GroundTruth, detap.Detections]:
    """Read both tables and remove the scores."""
    truth = detap.read_ground_truth(gt)
    return truth, without_scores(detap.read_detections(dt, truth, **options))


def counts_of(result: Result) -> dict[str, int]:
    true, false = int(result.true_positives.sum()), int(result.false_positives.sum())
    return {
        "TP": true,
        "FP": false,
        "FN": int(result.ground_truths.sum()) - true,
        "ignored": int(result.detections_count.sum()) - true - false,
    }


def assert_equal(actual: float, expected: float | None) -> None:
    assert (isnan(actual) and expected is None) or actual == pytest.approx(expected, abs=1e-9)


OF_COCO = [
    "voc-100-coco",
    "coco-val2014-100",
    "cartucho-85-coco",
    "lvis-val-100-lvis",
    "quickstart-coco",
    "crowd-coco",
    "error-types-coco",
]


@pytest.mark.parametrize("name", OF_COCO)
def test_sets_of_the_reference_program(real_data: Path, unscored: Path, name: str) -> None:
    sets = json.loads((unscored / "sets.json").read_text())["sets"]
    expected = next(one for one in sets if one["name"] == name)
    paths = [expected["ground_truth"], expected["detections"]]
    folders = [Path() if path.startswith("fixtures") else real_data for path in paths]
    tables = read(*(folder / path for folder, path in zip(folders, paths, strict=True)))
    result = score_tables(*tables, expected["protocol"])
    assert counts_of(result) == expected["counts"]
    assert list(result.summary) == ["F1", "P", "R", "F1@75", "mF1", "macro-F1", "mean IoU"]
    for metric, value in result.summary.items():
        assert_equal(value, expected["summary"][metric])
    for entry in expected["by_threshold"]:
        at = f"@{round(100 * entry['threshold'])}"
        for key in ("F1", "P", "R", "macro_F1", "mean_IoU"):
            assert_equal(result.metric(NAMES.get(key, key) + at), entry[key])
    rows = {row["name"]: row for row in result.table()}
    for label, entry in expected["classes"].items():
        row = rows[label]
        assert row["true_positives"] == entry["TP"]
        assert row["false_positives"] == entry["FP"]
        assert row["false_negatives"] == entry["FN"]
        for key in ("F1", "P", "R"):
            assert_equal(float(row[key] or 0.0), entry[key] or (0.0 if row[key] == 0 else None))


def greedy_true_positives(truths: Any, boxes: Any, *, free_only: bool) -> int:
    """Count matches as scripts do: each box takes the object of largest IoU, at .5 or above."""
    objects: dict[Any, list[Any]] = {}
    for one in truths:
        if not one["iscrowd"]:
            objects.setdefault((one["image_id"], one["category_id"]), []).append(one["bbox"])
    taken = set()
    for one in boxes:
        key = one["image_id"], one["category_id"]
        ious = [
            (iou_of(one["bbox"], other), -row) for row, other in enumerate(objects.get(key, []))
        ]
        ious = [(iou, row) for iou, row in ious if not (free_only and (key, row) in taken)]
        iou, row = max(ious, default=(0.0, 0))
        if iou >= 0.5:
            taken.add((key, row))
    return len(taken)


def iou_of(first: Any, second: Any) -> float:
    """Return the IoU of two boxes x, y, width, height."""
    (x, y, width, height), (u, v, other_width, other_height) = first, second
    across = max(min(x + width, u + other_width) - max(x, u), 0)
    down = max(min(y + height, v + other_height) - max(y, v), 0)
    inside = across * down
    return float(inside / (width * height + other_width * other_height - inside))


def test_greedy_scripts_find_fewer_pairs(real_data: Path) -> None:
    """The counts of docs/other-tools.md; the reference program's 650 is in `sets.json`."""
    folder = real_data / "coco-val2014-100"
    truths = json.loads((folder / "instances_val2014_100.json").read_text())["annotations"]
    path = folder / "instances_val2014_fakebbox100_results.json"
    boxes = json.loads(path.read_text())
    orders = boxes, boxes[::-1]
    counts = [
        [greedy_true_positives(truths, order, free_only=free) for order in orders]
        for free in (True, False)
    ]
    assert counts == [[649, 650], [649, 649]]


def test_the_worked_example() -> None:
    # 8 bird detections: 4 true and 2 false positives, 2 in the crowd region; 26/37 = .7027.
    truth, detections = read(QUICKSTART / "instances.json", QUICKSTART / "results.json")
    result = detap.evaluate(truth, detections)
    assert result.signature == f"protocol:coco|scores:none|detap:{detap.__version__}"
    assert result.summary["F1"] == 26 / 37
    assert result.summary["macro-F1"] == pytest.approx((8 / 11 + 10 / 14 + 8 / 12) / 3, abs=1e-15)
    assert [str(note) for note in result.notes] == [
        "no detection has a score: no AP; see --missing-scores [no-scores]"
    ]
    bird = next(row for row in result.table() if row["name"] == "bird")
    assert (bird["F1"], bird["P"], bird["R"]) == (8 / 11, 4 / 6, 4 / 5)
    assert (bird["true_positives"], bird["false_positives"], bird["false_negatives"]) == (4, 2, 1)
    assert bird["ignored_detections"] == 2


def test_undefined_values() -> None:
    truth = gt_table([[0, 0, 10, 10]], image="a", label="cat", images=["a", "b"], ignore=[True])
    nothing = dt_table([[0, 0, 10, 10]], None, image="a", label="cat")
    undefined = score_tables(
        truth, nothing, detap.protocol("coco").with_changes(ignore_flags=("ignore", "crowd"))
    )
    assert all(isnan(value) for value in undefined.summary.values())
    dog = detap.Detections.from_arrays(image=["b"], label=["dog"], boxes=[[0, 0, 10, 10]])
    result = score_tables(truth, dog)
    assert result.summary["F1"] == 0
    assert isnan(result.summary["mean IoU"])
    row = next(row for row in result.table() if row["name"] == "dog")
    assert row["F1"] == 0
    assert row["false_positives"] == 1


def test_labels_that_the_ground_truth_lacks() -> None:
    truth = gt_table([[0, 0, 10, 10]], image="a", label="cat")
    detections = detap.Detections.from_arrays(
        image=["a"] * 4,
        label=["cat", "red cat", "red cat", "dog"],
        boxes=[[0, 0, 10, 10], [0, 0, 9, 9], [5, 5, 9, 9], [0, 0, 3, 3]],
    )
    with pytest.warns(
        DetapWarning, match=r"3 detections of 2 labels .*: red cat \(2\), dog \(1\);"
    ):
        result = detap.evaluate(truth, detections)
    assert result.summary["P"] == 1 / 4
    assert result.summary["macro-F1"] == 1
    dropped = detap.evaluate(
        truth, detections, detap.protocol("coco").with_changes(unknown_labels="drop")
    )
    assert dropped.summary["P"] == 1
    assert "|unknown-labels:drop|" in dropped.signature


REFUSED = {
    "max_dets": ((10,), "--max-dets"),
    "min_score": (0.3, "--min-score"),
    "metrics": (("MR-2",), "--metrics"),
    "drop_where": ("score<0.5", "--drop-where"),
}


@pytest.mark.parametrize("field", REFUSED)
def test_options_that_need_scores(field: str) -> None:
    value, option = REFUSED[field]
    tables = read(QUICKSTART / "instances.json", QUICKSTART / "results.json")
    protocol = detap.protocol("coco").with_changes(**{field: value})
    message = f"{option} needs scores, and .*results.json has none; leave it out, or see"
    with pytest.raises(UsageError, match=message):
        detap.evaluate(*tables, protocol)


def test_a_mean_over_one_threshold_is_unknown() -> None:
    result = score_tables(
        *read(QUICKSTART / "instances.json", QUICKSTART / "results.json"),
        detap.protocol("coco").with_changes(iou_thresholds=(0.5,)),
    )
    assert list(result.summary) == ["F1", "P", "R", "macro-F1", "mean IoU"]
    with pytest.raises(UsageError, match="has no metric 'mF1'; did you mean F1"):
        result.metric("mF1")


def test_protocols_that_do_not_match_by_score() -> None:
    tables = read(QUICKSTART / "instances.json", QUICKSTART / "results.json")
    with pytest.raises(UsageError, match="use another --protocol for detections without scores"):
        detap.evaluate(*tables, "proposals")


@pytest.mark.parametrize("name", ["voc-100", "coco-val2014-100"])
def test_ap_over_rankings(real_data: Path, unscored: Path, name: str) -> None:
    sets = json.loads((unscored / "tied_ap.json").read_text())["sets"]
    expected = next(one for one in sets if one["name"] == name)
    truth, table = read(real_data / expected["ground_truth"], real_data / expected["detections"])
    result = score_tables(truth, without_scores(table, "1"))
    assert "|scores:1|" in result.signature
    for metric, ranked in over_rankings(result).items():
        if metric in expected:
            figures = expected[metric]
            assert ranked["value"] == pytest.approx(figures["all_1_file_order"], abs=1e-12)
            assert ranked["lowest"] == pytest.approx(figures["all_1_lowest"], abs=1e-12)
            assert ranked["highest"] == pytest.approx(figures["all_1_highest"], abs=1e-12)
            both = np.hypot(ranked["standard_error"], figures["standard_error"])
            assert abs(ranked["mean"] - figures["mean"]) < 4 * both
    by_area = score_tables(truth, without_scores(table, "area"))
    assert by_area.summary["AP"] == pytest.approx(expected["AP"]["area"], abs=1e-12)
    assert "|scores:area|" in by_area.signature


@pytest.mark.parametrize("arrays", [True, False])
def test_treatments_of_missing_scores_in_python(arrays: bool) -> None:
    gt, dt = QUICKSTART / "instances.json", QUICKSTART / "no-scores.json"
    truth = detap.read_ground_truth(gt)
    both: Any = (truth, detap.read_detections(dt, truth)) if arrays else (gt, dt)
    assert detap.evaluate(*both).protocol.scores == "none"
    with pytest.warns(DetapWarning, match="made-up-scores"):
        assert next(iter(detap.evaluate(*both, missing_scores="area").summary)) == "AP"
    with pytest.raises(InputError, match="none of the 25 detections has a score; add them, or"):
        detap.evaluate(*both, missing_scores="error")
    with pytest.raises(UsageError, match="missing_scores"):
        detap.evaluate(*both, missing_scores="zero")


def test_areas_need_the_sizes_of_images() -> None:
    truth = gt_table([[0, 0, 10, 10]], image="a", label="cat")
    detections = detap.Detections.from_arrays(image=["a"], label=["cat"], boxes=[[0, 0, 10, 10]])
    with pytest.raises(InputError, match="image 'a': scores by area need the size of each image"):
        detap.evaluate(truth, replace(detections, missing_scores="area"))


coordinates = st.lists(st.integers(0, 6), min_size=4, max_size=4)
rows = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("cd"), coordinates), max_size=6)


def table_of(kind: Any, boxes: list[Any], **more: Any) -> Any:
    corners = [[x, y, x + w + 1, y + h + 1] for _, _, (x, y, w, h) in boxes]
    names = {"image": [row[0] for row in boxes], "label": [row[1] for row in boxes]}
    return kind.from_arrays(**names, boxes=np.array(corners, float).reshape(-1, 4), **more)


@given(rows, rows.filter(bool), st.randoms(use_true_random=False))
def test_the_order_of_the_detections_changes_nothing(truths: Any, boxes: Any, random: Any) -> None:
    truth = table_of(detap.GroundTruth, truths, images=["a", "b"], classes=["c", "d"])
    first = score_tables(truth, table_of(detap.Detections, boxes))
    random.shuffle(boxes)
    second = score_tables(truth, table_of(detap.Detections, boxes))
    for name, value in first.summary.items():
        assert second.summary[name] == pytest.approx(value, abs=1e-12, nan_ok=True)
    assert counts_of(first) == counts_of(second)


@given(rows, rows.filter(bool), st.lists(st.integers(0, 3), min_size=2, max_size=2))
def test_weights_repeat_images(truths: Any, boxes: Any, weights: list[int]) -> None:
    truth = table_of(detap.GroundTruth, truths, images=["a", "b"], classes=["c", "d"])
    result = score_tables(truth, table_of(detap.Detections, boxes))
    drawn = resampled(
        result, Weights.from_table(np.array([weights], np.uint8)), list(result.summary)
    )
    copies = dict(zip("ab", weights, strict=True))

    def repeated(given: Any) -> list[Any]:
        return [(f"{i}{k}", c, box) for i, c, box in given for k in range(copies[i])]

    names = [f"{i}{k}" for i, count in copies.items() for k in range(count)]
    if not names or not repeated(boxes):
        return
    again = table_of(detap.GroundTruth, repeated(truths), images=names, classes=["c", "d"])
    expected = score_tables(again, table_of(detap.Detections, repeated(boxes)))
    for name, value in expected.summary.items():
        assert drawn.overall[name].drawn[0] == pytest.approx(value, abs=1e-12, nan_ok=True)


def test_the_order_of_the_file_changes_no_bit(command: Run, tmp_path: Path) -> None:
    path = QUICKSTART / "no-scores.json"
    boxes = json.loads(path.read_text())[::-1]
    (tmp_path / "reversed.json").write_text(json.dumps(boxes))
    reports = []
    for results in (path, tmp_path / "reversed.json"):
        report = command(
            "eval", QUICKSTART / "instances.json", results, "--output-format", "json"
        ).report()
        reports.append([report[key] for key in ("summary", "classes", "unscored")])
    assert reports[0] == reports[1]


SORTED = [
    (["--sort", "F1"], "no-scores", ""),
    (["--sort", "AP"], "no-scores", "--sort AP: no such column; choose from name, F1, P, R, mean"),
    (["--sort", "F1"], "results", "--sort F1: no such column; choose from name, AP, AP50"),
    (["--sort", "x"], "no-scores", "--sort x: no such column; choose from name, AP, AP50"),
    (["--missing-scores", "1", "--fail-under", "AP=0.1"], "no-scores",
     "has none; gate on F1, or use --missing-scores area"),
    (["--missing-scores", "area", "--fail-under", "AP=0.1", "--sort", "AP"], "no-scores", ""),
]  # fmt: skip


@pytest.mark.parametrize(("options", "name", "error"), SORTED)
def test_columns_and_gates_without_scores(
    command: Run, options: list[str], name: str, error: str
) -> None:
    paths = QUICKSTART / "instances.json", QUICKSTART / f"{name}.json"
    ended = command("eval", *paths, *options)
    assert ended.status == (2 if error else 0)
    assert error in ended.err


def test_a_failed_gate_lists_the_worst_classes(command: Run) -> None:
    """F1 is 2 TP / (2 TP + FP + FN): dogs have 4 TP and 4 FP, cats 5 and 4, birds 4, 2 and 1 FN."""
    paths = QUICKSTART / "instances.json", QUICKSTART / "no-scores.json"
    ended = command("eval", *paths, "--fail-under", "F1=0.99")
    lines = [line for line in ended.out.splitlines() if line.startswith("class ")]
    assert lines[-3:] == [
        "class dog: F1 0.6667 (4 ground truths)",
        "class cat: F1 0.7143 (5 ground truths)",
        "class bird: F1 0.7273 (5 ground truths)",
    ]


def test_the_page_has_images(command: Run, tmp_path: Path) -> None:
    inputs = ["report", QUICKSTART / "instances.json", QUICKSTART / "no-scores.json", "-o"]
    ended = command(*inputs, tmp_path / "page.html")
    assert (ended.status, "no-images-found" in ended.err) == (0, True)
    image_module = pytest.importorskip("PIL.Image", reason="the extra detap[report] is missing")
    image_module.new("RGB", (320, 240)).save(tmp_path / "000001.jpg")
    assert command(*inputs, tmp_path / "other.html", "--images", tmp_path).status == 0
    assert "data:image/webp" in (tmp_path / "other.html").read_text("utf-8")
