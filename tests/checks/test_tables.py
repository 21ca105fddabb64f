"""Boxes that look misread are refused, and accepted with as_is."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.checks.boxes import FailedCheck, failed_box_checks
from detap.checks.tables import look_normalized
from detap.cli import main
from detap.errors import InputError, Note
from detap.evaluation.detection import evaluate
from detap.tables.detection import Detections, GroundTruth
from detap.tables.notes import FRACTIONS as OF_UNKNOWN_SIZE
from tests.coco import results_of, saved, truth_of
from tests.tables import dt_table, gt_table

PIXELS = [[10, 10, 50, 50], [60.5, 10, 90, 40.25], [5, 5, 25, 45]]
FRACTIONS = [[0.1, 0.1, 0.5, 0.5], [0.605, 0.1, 0.9, 0.4], [0.05, 0.05, 0.25, 0.45]]


def tables(truth: Any, detections: Any, times: int = 1) -> tuple[GroundTruth, Detections]:
    names: dict[str, Any] = {"image": ["a", "b", "c"] * times, "label": ["cat"] * 3 * times}
    return (
        GroundTruth.from_arrays(**names, boxes=truth * times),
        Detections.from_arrays(**names, boxes=detections * times, score=[0.5] * 3 * times),
    )


def mismatches(truth: GroundTruth, detections: Detections | None) -> list[FailedCheck]:
    return failed_box_checks(truth, detections, ("gt", "dt"))


@pytest.mark.parametrize(
    ("truth", "detections", "whose"),
    [
        (PIXELS, FRACTIONS, ["detections"]),
        (FRACTIONS, PIXELS, ["ground truth"]),
        (FRACTIONS * 2, FRACTIONS * 2, ["ground truth", "detections"]),
    ],
)
def test_normalized_boxes_in_either_input_are_an_error(
    truth: Any, detections: Any, whose: Any
) -> None:
    times = len(truth) // 3
    both = tables(truth[:3], detections[:3], times)
    with pytest.raises(InputError, match="look normalized") as caught:
        evaluate(*both, "voc2012")
    assert [problem.file for problem in caught.value.problems] == whose
    for problem in caught.value.problems:
        option = {"ground truth": "--gt-format", "detections": "--dt-format"}[problem.file]
        assert problem.hint.startswith(f"for YOLO text files use {option} yolo")
    assert "--boxes xywh" not in str(caught.value)
    result = evaluate(*both, "voc2012", as_is=True)
    warnings = [note.code for note in result.notes if note.severity == "warning"]
    assert warnings.count("normalized-boxes") == len(whose)
    repeated = {"repeated-detections", "repeated-objects", "one-score"}
    assert set(warnings) <= {"normalized-boxes", *repeated}


@pytest.mark.parametrize(
    ("truth", "detections"),
    [
        (PIXELS, PIXELS),
        # Whole numbers: a very small image may have such boxes.
        (PIXELS, [[0, 0, 1, 1], [0, 0, 2, 2], [1, 0, 2, 1]]),
        # Boxes clipped to nothing.
        (PIXELS, [[0.1, 0, 0.1, 0.5], [0, 0, 0, 0.5], [1.5, 1.5, 1.5, 1.5]]),
        # Six boxes without larger images: whoever tries the API.
        (FRACTIONS, FRACTIONS),
        # One box in pixels among others.
        (PIXELS, [*FRACTIONS[:2], [0, 0, 30, 30]]),
    ],
)
def test_other_boxes_are_not_refused(truth: Any, detections: Any) -> None:
    assert mismatches(*tables(truth, detections)) == []


def test_images_of_one_by_one_pixel_accept_fractions() -> None:
    truth, detections = tables(FRACTIONS, FRACTIONS, 4)
    assert len(mismatches(truth, detections)) == 2
    assert mismatches(replace(truth, image_sizes=np.ones((3, 2))), detections) == []
    large = replace(tables(FRACTIONS, FRACTIONS)[0], image_sizes=np.full((3, 2), 500.0))
    assert len(mismatches(large, None)) == 1


def test_arrays_may_have_a_few_negative_sizes() -> None:
    boxes = [[30, 10, 10, 30], *[[10, 10, 30, 30]] * 20]
    columns: dict[str, Any] = {"image": [1] * 21, "label": [1] * 21, "boxes": boxes}
    table = GroundTruth.from_arrays(**columns)
    assert [(n.code, n.count) for n in table.notes] == [("ground-truth-negative-size", 1)]
    assert "row 0, [30.0, 10.0, 10.0, 30.0]" in table.notes[0].message
    shorter = {name: column[:20] for name, column in columns.items()}
    with pytest.raises(InputError, match=r"row 0: .*no negative width or height .* as_is=True"):
        GroundTruth.from_arrays(**shorter)
    insisted = GroundTruth.from_arrays(**shorter, as_is=True)
    assert [n.code for n in insisted.notes] == ["as-is", "ground-truth-negative-size"]


WITH_WARNING = ["--gt", "gt.json", "--dt", "dt.json"]


def write_with_warning(folder: Path) -> None:
    rows = [(1, 1, [10, 10, 20, 20])]
    saved(folder, truth_of(rows, {1: "cat"}, [1], size=None, ignore=1), results_of(rows))


@pytest.mark.parametrize(
    "call",
    [
        ["eval", *WITH_WARNING],
        ["check", *WITH_WARNING],
        ["compare", "dt.json", "dt.json", "--gt", "gt.json", "--resamples", "0"],
    ],
    ids=lambda call: call[0],
)
def test_strict_makes_every_warning_an_error(
    cwd: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], call: list[str]
) -> None:
    write_with_warning(cwd)
    assert main(call) == 0
    assert "[ignore-without-effect]" in capsys.readouterr().err
    for quiet in ([], ["-q"]):
        assert main([*call, "--strict", *quiet, "-o", "report.json"]) == 2
        out, said = capsys.readouterr()
        assert "[ignore-without-effect]" in said
        assert "Error: 1 warning type and --strict" in said
        # What check finds is its report, errors too.
        assert bool(out) == (cwd / "report.json").exists() == (call[0] == "check")
    for strict, status in (("true", 2), ("false", 0)):
        (cwd / "detap.toml").write_text(f"strict = {strict}\n", "utf-8")
        assert main(call) == (0 if call[0] == "check" else status)  # which has no settings
    monkeypatch.setenv("DETAP_STRICT", "1")
    assert main(call) == 2


ONE = [[0.1, 0.2, 0.5, 0.7]]


@pytest.mark.parametrize(
    ("corners", "expected"),
    [
        (FRACTIONS, True),
        ([[0.5, 0.25, 2, 1.75]], True),  # at the limit of 2, which is the one integer
        ([[0.5, 0.25, 2.25, 1.75]], False),
        ([[-2.25, 0.25, 0.5, 0.75]], False),
        ([[0, 0.25, 1, 0.75]], False),  # two integers
        ([[0.1, 0.2, 0.1, 0.7]], False),  # no width
        ([*ONE, [0, 0, 1, 1]], True),  # half of the boxes are enough
        ([*ONE, [0, 0, 1, 1], [0, 0, 1, 1]], False),
        ([*ONE * 999, [10, 10, 50, 50]], False),  # the last of 1000 is not sampled first
        (np.zeros((0, 4)), False),
    ],
)
def test_boxes_look_normalized_if_most_are_fractions_up_to_two(
    corners: Any, expected: bool
) -> None:
    assert look_normalized(np.array(corners, np.float64)) is expected


def test_arrays_with_zero_area_and_scores_outside_the_unit_interval_are_noted() -> None:
    truth = gt_table([[0, 0, 10, 10], [5, 5, 5, 9]], image=1, label=1)
    detections = dt_table(
        [[k, 0, k + 10, 10 if k else 0] for k in range(5)], [-0.5, 0, 0.5, 1, 3], image=1, label=1
    )
    notes = evaluate(truth, detections, "coco").notes
    expected = [
        Note("zero-area-ground-truth", "zero-area ground truths can never be matched"),
        Note(
            "scores-outside-unit",
            "scores are outside [0, 1] (-0.5 to 3); only their order matters",
            2,
            severity="info",
        ),
        Note("zero-area-detections", "zero-area detections are false positives", severity="info"),
    ]
    assert [note for note in notes if note in expected] == expected


def test_normalized_boxes_of_unknown_size_do_not_go_with_pixels() -> None:
    truth, detections = tables(FRACTIONS, FRACTIONS)
    unsized = (
        replace(truth, notes=(OF_UNKNOWN_SIZE,)),
        replace(detections, notes=(OF_UNKNOWN_SIZE,)),
    )
    message = r"image sizes are unknown, but the {} are in pixels; pass --image-sizes FILE"
    with pytest.raises(InputError, match=message.format("detections")):
        failed_box_checks(unsized[0], detections, ("", ""))
    with pytest.raises(InputError, match=message.format("ground truth boxes")):
        failed_box_checks(truth, unsized[1], ("", ""))
    assert failed_box_checks(*unsized, ("", "")) == []
