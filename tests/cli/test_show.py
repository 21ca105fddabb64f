"""``detap show`` on the case computed by hand (fixtures/error-types/why.md)."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Files, Run, instances, results, write_coco
from tests.schemas import valid


@pytest.fixture
def case(fixtures: Path) -> list[str]:
    folder = fixtures / "error-types" / "coco"
    files = ["--gt", str(folder / "instances.json"), "--dt", str(folder / "results.json")]
    return ["--isolated", *files]


def record(detap: Run, *words: str) -> Any:
    """Return the JSON after validating it against its schema."""
    return valid(detap("show", *words, "--output-format", "json").report(), "image")


def test_every_detection_has_a_result_and_a_reason(detap: Run, case: list[str]) -> None:
    report = record(detap, "1", *case)
    assert [row["score"] for row in report["detections"]] == [0.95, 0.85, 0.8, 0.6, 0.55]
    rows = [(row["result"], row["ground_truth"], row["matched_by"]) for row in report["detections"]]
    assert rows == [
        ("true-positive", 1, None),
        ("duplicate", 1, 1),
        ("classification", 2, 4),
        ("true-positive", 2, None),
        ("true-positive", 3, None),
    ]
    assert report["detections"][1]["why"] == (
        "IoU 0.9000 with ground truth 1 (a), already matched by detection 1"
    )
    assert report["detections"][2]["iou"] == 1.0
    assert [row["why"] for row in report["detections"][2:4]] == [
        "IoU 1.0000 with ground truth 2 (b), of another class; matched by detection 4",
        "IoU 0.8000 with ground truth 2 (b), matched",
    ]
    truths = report["image"]["ground_truths"]
    assert [(row["class"], row["result"], row["detection"]) for row in truths] == [
        ("a", "matched", 1),
        ("b", "matched", 4),
        ("a", "matched", 5),
    ]


def test_missed_ground_truths(detap: Run, case: list[str]) -> None:
    report = record(detap, "2", *case)
    assert [row["result"] for row in report["detections"]] == ["localization", "both"]
    assert [row["why"] for row in report["detections"]] == [
        "IoU 0.4286 with ground truth 1 (a), below 0.5",
        "IoU 0.2500 with ground truth 2 (b), below 0.5, and of another class",
    ]
    assert [row["result"] for row in report["image"]["ground_truths"]] == ["near-miss", "missed"]
    assert [row["why"] for row in report["image"]["ground_truths"]] == [
        "near miss: detection 1",
        "no matching or near-miss detection",
    ]
    alone = record(detap, "3", *case)
    assert {row["why"] for row in alone["detections"]} == {"overlaps no ground truth"}
    assert alone["image"]["ground_truths"] == []


def test_a_small_overlap_is_background(detap: Run, tmp_path: Path) -> None:
    """Five of a hundred columns are shared: 500 of 19,500 pixels."""
    rows = [{"image_id": 1, "category_id": 1, "bbox": [-95, 0, 100, 100], "score": 0.5}]
    files = write_coco(tmp_path, instances(), rows)
    (row,) = record(detap, "1", *files.arguments[1:], "--isolated")["detections"]
    assert row["result"] == "background"
    assert row["why"] == (
        "IoU below 0.1 with every ground truth: IoU 0.0256 with ground truth 1 (cat)"
    )


def test_ignored_outside_area_range_and_beyond_max_dets(detap: Run, tmp_path: Path) -> None:
    """The other cat becomes a crowd that covers the third detection; max_dets is 1."""
    truth = instances()
    truth["annotations"][1]["iscrowd"] = 1
    rows = results()
    rows[1]["bbox"] = [210, 10, 20, 20]
    files = write_coco(tmp_path, truth, rows)
    words = [*files.arguments[1:], "--isolated"]
    verdicts = [row["result"] for row in record(detap, "1", *words)["detections"]]
    assert verdicts == ["true-positive", "ignored", "background"]
    one = record(detap, "1", *words, "--max-dets", "1")
    assert [row["result"] for row in one["detections"]][1:] == ["beyond-max-dets"] * 2
    assert one["detections"][1]["why"] == "ranked beyond the maximum of 1 detections"
    assert one["image"]["ground_truths"][1]["result"] == "ignored"


def test_the_table_fits_a_page(detap: Run, case: list[str], voc: Files) -> None:
    lines = detap("show", "1", *case).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[3].split() == ["2", "a", "0.8500", "duplicate", "0.9000", "1", "1"]
    wide = detap("show", "1", *voc.arguments[1:], "--isolated", "--output-format", "markdown").out
    assert ", matched" in wide


def test_another_threshold(detap: Run, case: list[str]) -> None:
    report = record(detap, "1", *case, "--at-iou", "0.6")
    assert report["image"]["iou"] == 0.6
    assert report["detections"][4]["result"] == "localization"  # of 70/130
    ended = detap("show", "1", *case, "--at-iou", "0.61")
    assert (ended.status, "IoU 0.61 is not among the thresholds" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["4"], "image '4' is not in the ground truth"),
        (["1", "--output-format", "junit"], "an image cannot be written as junit; use table, json"),
        (["1", "--protocol", "proposals"], "protocol proposals uses matching by-iou"),
        ([], "Missing argument 'IMAGE'"),
    ],
)
def test_invalid_options_are_rejected(
    detap: Run, case: list[str], words: list[str], message: str
) -> None:
    assert message in detap("show", *words, *case).refused()


def test_names_are_escaped(detap: Run, tmp_path: Path) -> None:
    truth = instances()
    truth["categories"][0]["name"] = "\x1b[31mcat"
    files = write_coco(tmp_path, truth)
    ended = detap("show", "1", *files.arguments[1:], "--isolated")
    assert "\x1b" not in ended.out
    assert "\\x1b[31mcat" in ended.out


def test_an_image_of_coco_by_its_file(detap: Run, case: list[str], tmp_path: Path) -> None:
    truth = json.loads(Path(case[2]).read_text())
    truth["images"][0]["file_name"] = "a.jpg"
    case[2] = str(tmp_path / "gt.json")
    Path(case[2]).write_text(json.dumps(truth))
    assert record(detap, "a.jpg", *case) == record(detap, str(truth["images"][0]["id"]), *case)
    ended = detap("show", "unknown.jpg", *case)
    assert "image 'unknown.jpg' is not in the ground truth" in ended.err
