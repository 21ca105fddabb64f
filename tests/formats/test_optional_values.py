"""Optional values of ground truth and detections that are empty, null or without effect."""

from pathlib import Path

import pytest

import detap
from detap.evaluation.conditions import ignored_by_condition
from tests.formats.voc_files import item, tree, xml


def reported(real_data: Path, name: str) -> Path:
    """Return the folder of a public report that was rebuilt."""
    folder = real_data / "reports4" / name
    if not folder.is_dir():
        pytest.skip(f"the rebuilt reports are absent: no folder {folder}")
    return folder


# --- VOC

# tf-faster-rcnn #405 and PaddleDetection #5407; the mAP is that of an independent evaluator.
VOC_REPORTS = {"voc-truncated-fraction": 0.762593, "voc-difficult-empty": 0.762593}


@pytest.mark.parametrize("name", VOC_REPORTS)
def test_reported_voc_annotations(real_data: Path, name: str) -> None:
    folder = reported(real_data, name)
    truth = detap.read_ground_truth(folder)
    result = detap.evaluate(truth, detap.read_detections(folder / "dt", truth))
    assert result.summary["mAP"] == pytest.approx(VOC_REPORTS[name], abs=5e-7)
    empty = [note.count for note in result.notes if note.code == "empty-difficult"]
    assert empty == ([20] if name == "voc-difficult-empty" else [])


@pytest.mark.parametrize("plain", [True, False], ids=["scanner", "lxml"])
@pytest.mark.parametrize(
    "more",
    [
        "<truncated>0.0597</truncated><occluded>2</occluded>",
        "<truncated/><occluded></occluded>",
        "<truncated>Unspecified</truncated>",
        "<occluded>False</occluded><occluded>1</occluded>",
        "<truncated><value>1</value></truncated>",
    ],
)
def test_truncated_and_occluded_have_no_effect(tmp_path: Path, more: str, plain: bool) -> None:
    comment = "" if plain else "<!-- not plain -->"
    tree(tmp_path, {"a": xml(item(difficult="1", more=more), item("cat")) + comment})
    truth = detap.read_ground_truth(tmp_path, format="voc")
    assert truth.corners.tolist() == [[10, 20, 30, 40]] * 2
    assert truth.difficult.tolist() == [True, False]
    assert truth.notes == ()


def test_truncated_as_an_attribute_keeps_its_value(tmp_path: Path) -> None:
    more = "<truncated>{}</truncated>"
    objects = item(more=more.format("0.0597")), item(more=more.format(1))
    tree(tmp_path, {"a": xml(*objects)})
    truth = detap.read_ground_truth(tmp_path, format="voc", attributes=("truncated",))
    assert truth.extra["truncated"].tolist() == [0.0597, 1]
    protocol = detap.Protocol.of("voc2012").with_changes(ignore_where="truncated>0.5")
    assert ignored_by_condition(truth, protocol).tolist() == [False, True]


@pytest.mark.parametrize(
    "empty", ["<difficult/>", "<difficult></difficult>", "<difficult> \n</difficult>"]
)
def test_an_empty_difficult_is_0_and_noted(tmp_path: Path, empty: str) -> None:
    objects = item(difficult=None, more=empty), item(difficult="1"), item(difficult=None)
    tree(tmp_path, {"a": xml(*objects), "b": xml(item(difficult=None, more=empty))})
    truth = detap.read_ground_truth(tmp_path, format="voc")
    assert truth.difficult.tolist() == [False, True, False, False]
    [note] = [note for note in truth.notes if note.code == "empty-difficult"]
    assert str(note) == "empty <difficult/> read as 0 (2) [empty-difficult]"
    assert note.severity == "info"
