"""Regressions behind a failed gate: classes, images and localization."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, write_coco
from tests.coco import Scored, results_of, truth_of
from tests.schemas import saved

# Six images, with a cat and a dog each. Both detectors miss the cats of image 3 and find it three
# times next to it; the later one has what `change` makes of images 4 and 6.
NAMES = {1: "cat", 2: "dog"}
PLACES = {1: [0, 0, 100, 100], 2: [200, 0, 100, 100]}


def detections(change: Callable[[int, int, list[int]], list[int] | None]) -> list[dict[str, Any]]:
    boxes: list[Scored] = []
    for image in range(1, 7):
        for label, number in PLACES.items():
            box = change(image, label, number)
            if image == 3:
                boxes += [(image, label, [400, y, 50, 50], 0.99) for y in (0, 100, 200)]
            elif box is not None:
                boxes.append((image, label, box, 0.9))
    return results_of(boxes)


def lost(image: int, label: int, box: list[int]) -> list[int] | None:
    return None if image in (4, 6) and label == 1 else box


def looser(image: int, label: int, box: list[int]) -> list[int]:
    # 100 by 60 of 100 by 100: IoU .6 passes .5, .55 and .6, and fails from .65 on.
    return [*box[:3], 60] if image in (4, 6) and label == 1 else box


@pytest.fixture
def case(cwd: Path, detap: Run) -> Path:
    rows = [(image, label, PLACES[label]) for image in range(1, 7) for label in NAMES]
    write_coco(cwd, truth_of(rows, NAMES, range(1, 7)), detections(lambda image, label, box: box))
    for name, change in (("lost", lost), ("looser", looser)):
        (cwd / f"{name}.json").write_text(json.dumps(detections(change)))
    call = ("eval", "--gt", "instances.json", "--dt", "results.json", "-o", "base.json")
    assert detap(*call).status == 0
    return cwd


def judged(detap: Run, dt: str, *arguments: str, status: int = 1) -> tuple[dict[str, Any], str]:
    call = ("eval", "--gt", "instances.json", "--dt", dt, *arguments)
    report, ended = saved(detap, *call, statuses=(status,))
    return report, ended.out


DETECTIONS = ("--baseline-detections", "results.json")
BASELINE = ("--baseline", "base.json")


@pytest.mark.parametrize("confidence", [(), ("--confidence", "0.5", "--min-ground-truths", "0")])
def test_with_baseline_detections_changed_images_are_listed(
    case: Path, detap: Run, confidence: tuple[str, ...]
) -> None:
    report, out = judged(detap, "lost.json", *DETECTIONS, *confidence, "--max-drop", "0.01")
    blame = report["regressions"]
    assert [entry["name"] for entry in blame["classes"]] == ["cat"]
    assert [(entry["name"], entry["missed"]) for entry in blame["images"]] == [(4, 1), (6, 1)]
    assert blame["images_compared"]
    assert blame["localization_regression"] is None
    assert "\nRegressions\nclass cat: AP " in out
    assert "\nimage 4: +1 FN\nimage 6: +1 FN\n" in out


def test_a_baseline_report_gives_no_image_changes(case: Path, detap: Run) -> None:
    report, out = judged(detap, "lost.json", *BASELINE, "--max-drop", "0.01")
    blame = report["regressions"]
    assert [entry["name"] for entry in blame["classes"]] == ["cat"]
    # Image 3 is the worst now, as it was before: that is said, and no more.
    assert blame["images"][0]["name"] == 3
    assert not blame["images_compared"]
    assert "\nRegressions and worst images\nclass cat: AP " in out
    assert ": +" not in out[out.index("Regressions") :]


@pytest.mark.parametrize(
    ("against", "worst", "line"),
    [
        (
            (*DETECTIONS, "--confidence", "0.5", "--min-ground-truths", "0"),
            0.65,
            " at IoU 0.65, unchanged at IoU 0.5",
        ),
        # Cats are found five times of six up to IoU .6, and thrice from .65 on.
        (DETECTIONS, 0.65, " at IoU 0.65, unchanged at IoU 0.5"),
        (
            BASELINE,
            0.75,
            " at IoU 0.75, unchanged at IoU 0.5",
        ),  # a report has AP at .5 and .75 alone
    ],
)
def test_a_localization_regression_is_reported(
    case: Path, detap: Run, against: tuple[str, ...], worst: float, line: str
) -> None:
    report, out = judged(detap, "looser.json", *against, "--max-drop", "0.01")
    blame = report["regressions"]
    assert blame["localization_regression"]["lowest"] == {"iou": 0.5, "drop": 0}
    assert blame["localization_regression"]["worst"]["iou"] == pytest.approx(worst)
    before = json.loads((case / "base.json").read_text())["classes"][0]["AP75"]
    after = report["classes"][0]["AP75"]
    # The dogs are as they were: the mean of both falls by half of what cats do.
    assert blame["localization_regression"]["worst"]["drop"] == pytest.approx((before - after) / 2)
    assert "localization: AP dropped " in out
    assert line in out
    if against != BASELINE:
        assert [entry["name"] for entry in blame["images"]] == [4, 6]
        assert [entry["localization"] for entry in blame["images"]] == [1, 1]
        assert "\nimage 4: +1 FN, +1 localization at IoU 0.65\n" in out
    else:
        assert blame["images"][0]["name"] == 3
        assert " at IoU 0.75\n" in out


def both(image: int, label: int, box: list[int]) -> list[int] | None:
    # Two cats of five are lost, and one is looser: most of the fall is there at IoU .5.
    return [*box[:3], 60] if image == 5 and label == 1 else lost(image, label, box)


@pytest.mark.parametrize("change", [lost, both])
def test_an_equal_drop_at_every_iou_is_not_a_localization_regression(
    case: Path, detap: Run, change: Callable[[int, int, list[int]], list[int] | None]
) -> None:
    (case / "now.json").write_text(json.dumps(detections(change)))
    for against in (DETECTIONS, BASELINE):
        report, out = judged(detap, "now.json", *against, "--max-drop", "0.01")
        assert report["regressions"]["localization_regression"] is None
        assert "localization: " not in out


def test_passed_gates_have_no_regressions(case: Path, detap: Run) -> None:
    for against in (DETECTIONS, BASELINE):
        report, out = judged(detap, "lost.json", *against, "--max-drop", "0.9", status=0)
        assert report["gates"]["passed"]
        assert "regressions" not in report
        assert "worse" not in out
        assert "worst" not in out


def test_an_improved_class_is_not_a_regression(case: Path, detap: Run) -> None:
    # The gate fails, but nothing got worse.
    report, out = judged(
        detap,
        "results.json",
        *("--baseline-detections", "lost.json", "--fail-under", "1", "--max-drop", "0.01"),
    )
    assert "regressions" not in report
    assert "class cat" not in out


def test_a_gate_on_one_class_lists_its_images(case: Path, detap: Run) -> None:
    report, _ = judged(
        detap, "lost.json", *DETECTIONS, "--fail-under", "class:dog.AP=0.99", "--max-drop", "0.99"
    )
    # Nothing changed for the dog.
    assert "regressions" not in report
    report, _ = judged(detap, "lost.json", "--fail-under", "class:dog.AP=0.99")
    assert [entry["name"] for entry in report["regressions"]["classes"]] == ["dog"]
    assert [entry["name"] for entry in report["regressions"]["images"]] == [3]


def test_a_gate_on_one_slice_lists_its_images(case: Path, detap: Run) -> None:
    Path("tags.json").write_text('{"first": [1, 2, 3], "last": [4, 5, 6]}')
    slices = ("--slices", "tags.json")
    report, out = judged(
        detap, "lost.json", *DETECTIONS, *slices, "--max-drop", "slice:last.AP=0.01"
    )
    assert report["regressions"]["slice"] == "last"
    assert [entry["name"] for entry in report["regressions"]["images"]] == [4, 6]
    assert "Regressions, in slice last\nclass cat: AP 1.0000 -> 0.3366 (3 ground" in out
    # sha256sum of "4\n5\n6".
    assert report["slices"]["last"]["images_sha256"].startswith("07d510d504a0")
    report, _ = judged(detap, "lost.json", *slices, "--fail-under", "slice:first.AP=0.99")
    assert [entry["name"] for entry in report["regressions"]["images"]] == [3]
