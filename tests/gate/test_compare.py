"""Comparing two detectors: metrics, error counts and the command."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap import evaluate
from detap.analysis.comparison import KINDS, compare, count_errors, difference
from detap.errors import UsageError
from detap.formats import read_detections, read_ground_truth
from detap.protocols import protocol
from detap.report.sections.comparison import comparison_report, conclusion
from detap.report.writers.json import as_dict
from detap.tables.concat import align_classes
from detap.tables.detection import Detections, GroundTruth
from tests.cli.conftest import CLASSES, Run, instances, results
from tests.coco import results_of, truth_of
from tests.conftest import ROOT
from tests.schemas import valid
from tests.tables import dt_table, gt_table

TRUTH = GroundTruth.from_arrays(
    image=[1, 1, 2, 3],
    label=["cat", "dog", "cat", "cat"],
    boxes=[[0, 0, 100, 100], [200, 0, 300, 100], [0, 0, 100, 100], [0, 0, 100, 100]],
    images=[1, 2, 3, 4],
)


def detections(*rows: tuple[int, str, Sequence[float], float]) -> Detections:
    image, label, boxes, score = zip(*rows, strict=True)
    return dt_table(boxes, score, image, label).reindex_like(TRUTH)


# Every kind once: image 1 has a duplicate cat and a cat on the dog, which itself is missed;
# image 2 a cat of overlap 1/3; image 4 a cat in the background; the cat of image 3 is found last,
# so that all of these stand above the operating point.
KINDS_ONCE: list[tuple[int, str, Sequence[float], float]] = [
    (1, "cat", [0, 0, 100, 100], 0.9),
    (1, "cat", [0, 0, 100, 90], 0.8),
    (1, "cat", [200, 0, 300, 100], 0.7),
    (2, "cat", [50, 0, 150, 100], 0.6),
    (4, "cat", [0, 0, 100, 100], 0.5),
    (3, "cat", [0, 0, 100, 100], 0.4),
]
MIXED = detections(*KINDS_ONCE)


def counts(row: list[int]) -> dict[str, int]:
    return {kind: count for kind, count in zip(KINDS, row, strict=True) if count}


def test_each_kind_of_error() -> None:
    # F1 of cat after each detection, of 3 ground truths: 2/4, 2/5, 2/6, 2/7, 2/8, 4/9; the first
    # is the largest, so nothing below it counts.
    errors = count_errors(evaluate(TRUTH, MIXED, "voc2012"))
    assert [counts(row) for row in errors.by_image.tolist()] == [
        {"missed": 1},
        {"missed": 1},
        {"missed": 1},
        {},
    ]
    # With the cat of image 2 found as well, further down, F1 is 6/10 there.
    more = detections(*KINDS_ONCE, (2, "cat", [0, 0, 100, 100], 0.3))
    errors = count_errors(evaluate(TRUTH, more, "voc2012"))
    assert [counts(row) for row in errors.by_image.tolist()] == [
        {"missed": 1, "duplicate": 1, "classification": 1},
        {"localization": 1},
        {},
        {"background": 1},
    ]
    by_class = dict(zip(TRUTH.classes, errors.by_class.tolist(), strict=True))
    assert counts(by_class["dog"]) == {"missed": 1}
    assert sum(by_class["cat"]) == 4
    assert [counts(row) for row in errors.select_classes([1]).tolist()] == [
        {"missed": 1},
        {},
        {},
        {},
    ]


def test_detections_of_equal_scores_are_kept_or_left_out_together() -> None:
    # F1 of cat, of 3 ground truths: 2/4 at .9, and 4/8 with all four of .5, of which the first
    # alone would make 4/5. Of equal values the highest threshold counts. No dog is found, at any
    # threshold with F1 0: the highest keeps one.
    tied = detections(
        *((1, "cat", [0, 0, 100, 100], 0.9), (2, "cat", [0, 0, 100, 100], 0.5)),
        *((4, "cat", [100 * n, 200, 100 * n + 50, 250], 0.5) for n in range(3)),
        *((4, "dog", [300 * n, 0, 300 * n + 50, 50], score) for n, score in ((0, 0.8), (1, 0.7))),
    )
    result = evaluate(TRUTH, tied, "voc2012")
    by_class = dict(zip(TRUTH.classes, count_errors(result).by_class.tolist(), strict=True))
    assert counts(by_class["cat"]) == {"missed": 2}
    assert counts(by_class["dog"]) == {"missed": 1, "background": 1}


@pytest.mark.parametrize("name", ["error-types", "quickstart", "coco-val2014-100"])
def test_the_threshold_is_that_of_the_operating_point(
    name: str, request: pytest.FixtureRequest
) -> None:
    folder = ROOT / "fixtures" / name / "coco"
    names = ["instances.json", "results.json"]
    if not folder.exists():
        folder = request.getfixturevalue("real_data") / name
        names = ["instances_val2014_100.json", "instances_val2014_fakebbox100_results.json"]
    truth = read_ground_truth(str(folder / names[0]))
    result = evaluate(truth, read_detections(str(folder / names[1]), truth), "coco", as_is=True)
    points = result.operating_point().by_class
    by_class = count_errors(result).by_class
    assert by_class[:, 0].tolist() == [point.false_negatives for point in points]
    assert by_class[:, 1:].sum(axis=1).tolist() == [point.false_positives for point in points]


def test_missed_are_all_ground_truths_but_the_ignored() -> None:
    truth = replace(TRUTH, difficult=np.ones(len(TRUTH), np.bool_))
    assert count_errors(evaluate(truth, MIXED, "voc2012")).by_image[:, 0].sum() == 0
    counts = count_errors(evaluate(TRUTH, MIXED.select(np.zeros(len(MIXED), np.bool_)), "coco"))
    assert counts.by_image.sum(axis=0).tolist() == [4, 0, 0, 0, 0]


def test_the_interval_holds_the_difference_of_two_evaluations() -> None:
    other = MIXED.select(np.arange(len(MIXED)) > 0)
    first, second = evaluate(TRUTH, MIXED, "coco"), evaluate(TRUTH, other, "coco")
    low, high = compare(first, second, resamples=200, min_ground_truths=0).interval("AP50")
    assert low <= second.summary["AP50"] - first.summary["AP50"] <= high


def test_results_of_different_protocols_are_rejected() -> None:
    first = evaluate(TRUTH, MIXED, "coco")
    with pytest.raises(UsageError, match="different protocols"):
        compare(first, evaluate(TRUTH, MIXED, "voc2012"))
    with pytest.raises(UsageError, match="uses matching by-iou"):
        count_errors(evaluate(TRUTH, MIXED, protocol("proposals")))


def test_classes_of_only_one_detector_get_the_same_index() -> None:
    first = detections((1, "cow", [0, 0, 1, 1], 0.5), (1, "cat", [0, 0, 100, 100], 0.9))
    second = detections((1, "ant", [0, 0, 1, 1], 0.5), (1, "cow", [0, 0, 1, 1], 0.4))
    one, two = align_classes(first, second)
    assert one.classes == two.classes == ("cat", "dog", "cow", "ant")
    assert [one.classes[label] for label in one.label] == ["cow", "cat"]
    assert [two.classes[label] for label in two.label] == ["ant", "cow"]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    worse = [detection for detection in results() if detection["image_id"] == 1]
    for name, content in (("gt", instances()), ("a", results()), ("b", worse)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    a, b, gt = (str(tmp_path / f"{name}.json") for name in ("a", "b", "gt"))
    return ["compare", a, b, "--gt", gt]


def test_the_command_shows_metrics_classes_and_images(files: list[str], detap: Run) -> None:
    lines = detap(*files).passed().out.splitlines()
    # Two ground truths of each class are fewer than 20.
    sentence, _, changed = " ".join(lines[:2]).partition("; ")
    assert sentence == "AP dropped by 0.5000 (no interval: fewer than 20 ground truths)"
    assert changed == "1 of 3 classes changed, none has an interval"
    lines = lines[3:]
    assert lines[0] == "Comparison (95% CI)"
    assert lines[1].split() == ["metric", "first", "second", "diff", "CI", "low", "CI", "high"]
    # The dog of image 2 is no longer found: AP of dog 1 becomes 0, and the mean falls by half.
    assert lines[3].split()[:4] == ["AP", "0.7525", "0.2525", "-0.5000"]
    assert "1 of 3 classes changed" in lines
    assert "1 of 2 images changed" in lines
    (dog,) = [line for line in lines if line.startswith("dog")]
    assert dog.split()[:4] == ["dog", "1.0000", "0.0000", "-1.0000"]
    (image,) = [line for line in lines if line.startswith("2 ") and "+" in line]
    # The bird on the dog, above the best F1 of its class, is no longer there either.
    assert image.split() == ["2", "0", "+1", "0", "0", "-1", "0"]


@pytest.mark.parametrize(
    ("options", "iou"), [([], "0.5"), (["--iou", "0.3,0.7"], "0.3"), (["--iou", "0.75"], "0.75")]
)
def test_errors_state_their_thresholds(
    files: list[str], detap: Run, options: list[str], iou: str
) -> None:
    lines = detap(*files, "--resamples", "0", *options).out.splitlines()
    assert f"Errors at IoU {iou} and the best-F1 score of each class" in lines


def test_at_most_ten_rows_are_shown_without_v(detap: Run, tmp_path: Path) -> None:
    # Twelve images, each with a cat that only the first detector finds.
    boxes = [(image, 1, [20, 20, 60, 60]) for image in range(1, 13)]
    truth, rows = truth_of(boxes, CLASSES, range(1, 13), size=(200, 200)), results_of(boxes)
    for name, content in (("gt", truth), ("a", rows), ("b", [rows[0] | {"score": 0.1}])):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    command = ["compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    command += ["--gt", str(tmp_path / "gt.json"), "--resamples", "0"]

    def sizes(*more: str) -> dict[str, list[str]]:
        parts = detap(*command, *more).out.split("\n\n")
        tables = {part.splitlines()[0]: part.splitlines()[3:] for part in parts[1:]}
        return {title: [row.split()[0] for row in rows] for title, rows in tables.items()}

    shown = sizes()
    # The longest table is the last one; before it are the tables without hidden rows.
    assert [*shown][-2:] == ["11 of 12 images changed", "protocol:coco|detap:0.1.0"]
    assert shown["Comparison"][9:] == ["ARs", "2"]  # 2 more: -v shows all
    assert shown["11 of 12 images changed"][10:] == ["1"]  # 1 more
    everything = sizes("-v")
    assert everything["Comparison"][9:] == ["ARs", "ARm", "ARl"]
    assert len(everything["11 of 12 images changed"]) == 11
    assert sizes("--top", "11")["11 of 12 images changed"] == [*map(str, range(2, 13))]
    assert len(sizes("--top", "3", "-v")["11 of 12 images changed"]) == 3 + 1


Ends = tuple[float, float, float]
NO_INTERVAL = (float("nan"), float("nan"))


@pytest.mark.parametrize(
    ("metric", "classes", "text"),
    [
        (
            (0.012, 0.004, 0.02),
            [(0.1, 0.05, 0.2), (-0.1, -0.2, -0.05), (0.1, -0.1, 0.3)],
            "AP rose by 0.0120 (95% CI +0.0040 to +0.0200); 2 of 3 classes changed beyond noise",
        ),
        (
            (-0.012, -0.02, 0.004),
            [(-0.1, -0.2, 0.1), (-0.5, *NO_INTERVAL)],
            "AP dropped by 0.0120 (95% CI -0.0200 to +0.0040), within noise; "
            "0 of 2 classes changed beyond noise, 1 has no interval",
        ),
        ((-0.012, -0.02, -0.004), [(0, 0, 0)], "AP dropped by 0.0120 (95% CI -0.0200 to -0.0040)"),
        # An interval that ends at 0 does not exclude it.
        ((0.1, 0.0, 0.2), [], "AP rose by 0.1000 (95% CI 0.0000 to +0.2000), within noise"),
        (
            (0.1, *NO_INTERVAL),
            [(0.2, *NO_INTERVAL), (0.0, *NO_INTERVAL)],
            "AP rose by 0.1000 (no interval: fewer than 20 ground truths); "
            "1 of 2 classes changed, none has an interval",
        ),
        ((0.0, 0.0, 0.0), [], "AP is unchanged"),
        ((float("nan"), *NO_INTERVAL), [], "AP is undefined for one of the detectors"),
    ],
)
def test_the_conclusion(metric: Ends, classes: list[Ends], text: str) -> None:
    result = evaluate(TRUTH, MIXED, "coco")
    compared = compare(result, result, resamples=10)
    first, *rows = (
        {"name": "AP", "difference": difference, "low": low, "high": high}
        for difference, low, high in (metric, *classes)
    )
    assert conclusion(first, rows, compared) == text


def test_the_conclusion_of_detections_without_scores_is_of_f1(detap: Run) -> None:
    case = ROOT / "fixtures" / "quickstart" / "coco"
    path, gt = str(case / "no-scores.json"), str(case / "instances.json")
    out = detap("compare", path, path, "--gt", gt, "--min-ground-truths", "0").out
    assert out.startswith("F1 is unchanged; 0 of 3 classes changed beyond noise\n\nComparison")


def test_json_matches_its_schema(files: list[str], detap: Run) -> None:
    report = valid(detap(*files, "--output-format", "json").report(), "comparison")
    assert [entry["role"] for entry in report["inputs"]] == ["ground_truth", "first", "second"]
    assert len({entry["sha256"] for entry in report["inputs"]}) == 3
    numbers = {entry["name"]: entry for entry in report["metrics"]}
    assert numbers["AP"]["difference"] == numbers["AP"]["second"] - numbers["AP"]["first"]
    assert numbers["APs"]["difference"] is None
    assert report["errors"]["missed"]["difference"] == 1


def test_without_resamples_there_are_no_intervals(files: list[str], detap: Run) -> None:
    ended = detap(*files, "--resamples", "0")
    lines = ended.out.splitlines()
    assert lines[0].startswith("AP dropped by 0.5000 (no interval: no resamples); 1 of 3 classes")
    lines = lines[lines.index("Comparison") :]
    assert lines[1].split() == ["metric", "first", "second", "diff"]
    report = json.loads(detap(*files, "--resamples", "0", "--output-format", "json").out)
    assert all(entry["low"] is None for entry in report["metrics"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output-format", "junit"], "a comparison cannot be written as junit"),
        (["--images", "7"], "image '7' is not in the ground truth"),
        (["--protocol", "proposals"], "uses matching by-iou"),
    ],
)
def test_invalid_arguments_are_rejected(
    files: list[str], detap: Run, arguments: list[str], message: str
) -> None:
    assert message in detap(*files, *arguments).refused()
    assert "cannot come from stdin" in detap("compare", "-", *files[2:]).refused()


def test_a_detector_compared_to_itself_shows_no_change(files: list[str], detap: Run) -> None:
    out = detap("compare", files[1], files[1], *files[3:], "--min-ground-truths", "0").out
    assert out.startswith(
        "AP is unchanged; 0 of 3 classes changed beyond noise, 1 has no interval\n"
    )
    numbers = [
        line.split() for line in out.splitlines()[2:] if line.startswith(("AP ", "AP50", "AR1"))
    ]
    assert len(numbers) >= 3
    for line in numbers:
        assert line[3:] == ["0.0000"] * 3
    assert "No class changed" in out
    assert "No image changed" in out


def test_a_difference_by_rounding_is_0() -> None:
    assert difference(0.3, 0.1 + 0.2) == 0
    assert difference(0.3, 0.3 + 1e-9) > 0
    assert np.isnan(difference(0.3, np.nan))
    assert np.isnan(difference(np.nan, np.nan))


def test_most_changed_images_first_and_worse_before_better() -> None:
    """Missed of a: one and none, of b: none and one, of c: none and two; d has nothing."""

    def rows(*objects: tuple[str, int]) -> dict[str, Any]:
        boxes = [[20 * n, 0, 20 * n + 10, 10] for _, n in objects]
        return {"boxes": boxes, "image": [image for image, _ in objects], "label": "cat"}

    some = [("a", 0), ("b", 0), ("b", 1), ("c", 0), ("c", 1), ("c", 2)]
    truth = gt_table(**rows(*some, ("a", 1)), images=[*"abcd"])
    before, after = (
        evaluate(truth, dt_table(**rows(*hits), score=np.linspace(1, 0.9, len(hits))), "voc2012")
        for hits in (some, [("a", 0), ("a", 1), ("b", 0), ("c", 0)])
    )
    images = as_dict(comparison_report(compare(before, after)))["images"]
    assert images["changed"] == 3
    changes = [(entry["name"], entry["errors"]) for entry in images["all"]]
    assert changes == [("c", 2), ("b", 1), ("a", -1)]
