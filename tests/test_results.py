"""Axis labels, notes and warnings of an evaluation result."""

import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import detap
from detap.analysis.bootstrap import draw_weights, resampled
from detap.evaluation.results import Result, class_rows
from detap.evaluation.scoring import score_tables
from detap.evaluation.tie_range import tie_range
from detap.gates.detection import Scored
from detap.report.sections.detection import class_columns
from tests.processes import finished
from tests.tables import dt_table, gt_table

COCO, VOC = detap.protocol("coco"), detap.protocol("voc2012")
BOX = [0.0, 0.0, 40.0, 40.0]


def one(**flags: object) -> detap.GroundTruth:
    """Return a ground truth of one box."""
    return gt_table([BOX], image="a", label="cat", **flags)


def detections(box: list[float] = BOX, score: float = 0.5) -> detap.Detections:
    """Return one detection."""
    return dt_table([box], [score], image="a", label="cat")


def codes(result: Result) -> list[str]:
    return [note.code for note in result.notes]


def xywh_as_xyxy() -> tuple[detap.GroundTruth, detap.Detections]:
    """Return 40 boxes on 40 images, and the same boxes with xywh passed as xyxy."""
    random = np.random.default_rng(0)
    corner = random.uniform(0, 20, (40, 2))
    sides = random.uniform(50, 90, (40, 2))
    images = np.arange(40)
    table = detap.GroundTruth.from_arrays(
        image=images, label=images % 2, boxes=np.hstack((corner, sides)), box_format="xywh"
    )
    wrong = detap.Detections.from_arrays(
        image=images,
        label=images % 2,
        boxes=np.hstack((corner, corner + sides)),
        box_format="xywh",
        score=random.uniform(0, 1, 40),
    )
    far = replace(wrong, corners=wrong.corners + 1000)
    return table, far


# --- axes and names


def test_array_axes_have_labels() -> None:
    result = detap.evaluate(one(), detections(), "coco")
    assert_array_equal(result.iou_thresholds, np.linspace(0.5, 0.95, 10))
    assert_array_equal(result.recall_levels, np.linspace(0, 1, 101))
    assert result.area_ranges == ("all", "small", "medium", "large")
    assert result.max_dets == (1, 10, 100)
    voc = detap.evaluate(one(), detections(), "voc2012")
    assert voc.recall_levels.shape == (0,)
    assert voc.area_ranges == ("all",)
    assert voc.max_dets == (None,)


def test_metrics_of_a_class_by_name() -> None:
    """One detected box of 1,600 square pixels: medium, and 1 wherever defined."""
    result = detap.evaluate(one(), detections(), "coco")
    numbers = result.class_metrics(0)
    assert list(numbers) == list(result.summary)
    assert numbers["AP"] == pytest.approx(1)
    assert numbers["APm"] == pytest.approx(1)
    assert np.isnan(numbers["APs"])
    assert result.metric_by_class("AP75m") == pytest.approx([1])
    assert result.full_precision().shape == (10, 101, 1, 4, 3)
    assert result.full_precision()[:, :, 0, 2] == pytest.approx(1)


def test_columns_of_tables_by_name() -> None:
    rows = ["image", "label", "corners", "box_area"]
    flags = ["crowd", "difficult", "ignore", "group_of", "zero_id"]
    assert list(one().columns()) == [*rows, "area", *flags]
    assert list(detections().columns()) == [*rows, "score"]
    assert (len(one()), len(one().select(np.array([False])))) == (1, 0)


def test_the_recall_of_each_class_under_voc(fixtures: Path) -> None:
    """fixtures/quickstart/why.md: 4 of 5 birds, 4 of 4 cats, 4 of 4 dogs."""
    folder = fixtures / "quickstart" / "voc"
    truth = detap.read_ground_truth(folder / "Annotations")
    result = detap.evaluate(truth, detap.read_detections(folder / "detections", truth), VOC)
    assert {row["name"]: row["recall"] for row in class_rows(result)} == {
        "bird": 0.8,
        "cat": 1,
        "dog": 1,
    }
    assert [column.key for column in class_columns(VOC)][:3] == ["name", "AP", "recall"]
    assert "recall" not in [column.key for column in class_columns(COCO)]


# --- notes


@pytest.mark.parametrize(
    ("flag", "protocol", "other"), [("difficult", COCO, VOC), ("crowd", VOC, COCO)]
)
def test_a_flag_that_the_protocol_counts_is_noted(
    flag: str, protocol: detap.Protocol, other: detap.Protocol
) -> None:
    table = one(**{flag: [True]})
    (note,) = detap.evaluate(table, detections(), protocol).notes
    assert note.code == f"{flag}-not-ignored"
    assert note.count == 1
    assert note.severity == "warning"
    assert note.message == (
        f"{flag} ground truths are not ignored by protocol {protocol.name}; use "
        f"--ignore-flags {protocol.ignore_flags[0]},{flag}"
    )
    assert detap.evaluate(table, detections(), other).notes == ()
    # The remedy, followed: the object no longer counts, so that nothing is left to be found.
    with_remedy = replace(protocol, ignore_flags=(*protocol.ignore_flags, flag))
    assert np.isnan(next(iter(detap.evaluate(table, detections(), with_remedy).summary.values())))


def test_box_checks_of_arrays_are_noted_by_the_api() -> None:
    result = detap.evaluate(*xywh_as_xyxy())
    assert result.summary["AP"] == 0
    assert codes(result) == ["few-overlaps"]


def test_unknown_class_names_are_noted_by_the_api() -> None:
    """Correct boxes, all of another class."""
    images = np.arange(40)
    columns: dict[str, Any] = {"image": images, "boxes": np.tile(BOX, (40, 1))}
    table = detap.GroundTruth.from_arrays(**columns, label=images % 2 + 1)
    wrong = detap.Detections.from_arrays(**columns, label=images % 2 + 2, score=np.ones(40))
    result = detap.evaluate(table, wrong)
    assert result.summary["AP"] == 0
    assert "category-id-offset" in codes(result)


def test_arrays_get_the_notes_of_files() -> None:
    nothing = detap.Detections.from_arrays(image=[], label=[], boxes=[], score=[])
    assert codes(detap.evaluate(one(), nothing)) == ["no-detections"]
    flat = [0.0, 0.0, 5.0, 0.0]
    both = gt_table([BOX, flat], image="a", label="cat")
    assert codes(detap.evaluate(both, detections())) == ["zero-area-ground-truth"]
    assert codes(detap.evaluate(both, detections(), VOC)) == []  # a row of six pixels
    assert codes(detap.evaluate(one(), detections(score=3.0))) == ["scores-outside-unit"]
    two = dt_table([BOX, flat], [0.9, 0.8], image="a", label="cat")
    assert codes(detap.evaluate(one(), two)) == ["zero-area-detections"]


def test_the_command_prints_the_notes_of_the_result(fixtures: Path, tmp_path: Path) -> None:
    """The same notes in the same order, from files and by name."""
    folder = fixtures / "quickstart" / "coco"
    other = tmp_path / "shifted.json"
    text = (folder / "results.json").read_text("utf-8").replace('"bbox": [', '"bbox": [500')
    other.write_text(text, "utf-8")
    truth = detap.read_ground_truth(folder / "instances.json")
    result = detap.evaluate(truth, detap.read_detections(other, truth))
    assert "few-overlaps" in codes(result)
    command = ["eval", "--gt", str(folder / "instances.json"), "--dt", str(other)]
    run = finished([sys.executable, "-W", "error::UserWarning", "-m", "detap", *command])
    assert run.stderr.splitlines() == [f"{note.severity}: {note}" for note in result.notes]


# --- warnings


def test_warning_notes_are_python_warnings() -> None:
    with pytest.warns(detap.DetapWarning) as caught:
        result = detap.evaluate(*xywh_as_xyxy())
    (warning,) = caught
    assert warning.filename == __file__
    assert isinstance(warning.message, detap.DetapWarning)
    assert warning.message.note == result.notes[0]
    assert str(warning.message) == str(result.notes[0])
    assert str(warning.message).endswith(
        "other images or another image size under the same names? (40) [few-overlaps]"
    )


def test_info_notes_are_not_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert codes(detap.evaluate(one(), detections(score=3.0))) == ["scores-outside-unit"]


def test_rescoring_does_not_warn_again() -> None:
    result = detap.evaluate(*xywh_as_xyxy())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tie_range(result)
        result.full_precision()
        result.with_matches()
        result.curves()
        Scored.of(result, {"night": range(20)})
        resampled(result, draw_weights(40, 3, seed=0), ["AP"])
        assert codes(score_tables(*xywh_as_xyxy(), "coco")) == []


def test_matches_are_available_if_requested() -> None:
    """A box of IoU .9 and 1440 pixels: medium, and a TP at all thresholds but the last."""
    result = detap.evaluate(one(), detections([0.0, 0.0, 36.0, 40.0], 0.7))
    assert result.matches is None
    again = result.with_matches()
    matches = again.matches
    assert matches is not None
    assert again.with_matches() is again
    assert again.summary == pytest.approx(result.summary, nan_ok=True)
    assert_array_equal(matches.ground_truth[0, :, 0], [0] * 9 + [-1])
    # The ground truth has 1600 pixels. One of another size counts neither way.
    assert_array_equal(matches.ignored[:, 0, 0], [False, True, False, True])
    assert_array_equal(matches.counted, [True])
    assert matches.max_iou == pytest.approx([0.9])


def test_analysis_methods_use_the_given_threshold_and_rule() -> None:
    """A box of IoU .9 and score .7: a TP at IoU .5, an FP at .95."""

    result = detap.evaluate(one(), detections([0.0, 0.0, 36.0, 40.0], 0.7))
    for iou, value in ((None, 1), (0.5, 1), (0.95, 0)):
        for bins, bin_index in ((10, 7), (2, 1)):
            reliability = result.calibration(bins=bins, iou=iou).overall
            assert len(reliability.count) == bins
            assert reliability.mean_value[bin_index] == value
        assert result.operating_point(iou=iou).overall.recall == value
        assert result.confusion(iou=iou, score=0.6).matrix[0, 0] == value
        assert result.confusion(iou=iou, score=0.8).matrix[0, 0] == 0
        assert result.errors(iou=iou).iou == (iou or 0.5)
    assert result.confusion("class-agnostic").rule == "class-agnostic"
    assert result.errors("tidecv").convention == "tidecv"
