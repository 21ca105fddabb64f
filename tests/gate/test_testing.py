"""assert_detections, as a test suite uses it."""

import json

import pytest

from detap import InputError, UsageError, read_detections, read_ground_truth
from detap.testing import assert_detections
from tests.cli.conftest import Files, Run, results


def test_it_returns_the_result_if_gates_pass(coco: Files) -> None:
    result = assert_detections(coco.gt, coco.dt, fail_under={"AP50": 0.7, "class:dog.AP": 0.9})
    assert result.summary["AP50"] == pytest.approx(0.7524752)  # (51/101 + 1) / 2


def test_it_raises_with_the_table_of_gates(coco: Files) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_detections(coco.gt, coco.dt, fail_under={"AP50": 0.7, "class:cat.AP": 0.6})
    lines = str(caught.value).splitlines()
    assert lines[0] == "Gates: 1 of 2 failed"
    assert lines[1] == "FAILED   class:cat.AP 0.5050, required >= 0.6"
    assert lines[2].startswith("passed   AP50 0.7525, required >= 0.7")
    assert lines[-1].startswith("protocol:coco|detap:")


def test_voc_files_default_to_the_voc_protocol(voc: Files) -> None:
    assert assert_detections(voc.gt, voc.dt, fail_under=0.7).protocol.name == "voc2012"
    rules = "voc2007"
    assert assert_detections(voc.gt, voc.dt, protocol=rules, fail_under=0.7).protocol.name == rules


def test_tables_and_baseline_detections(coco: Files) -> None:
    truth = read_ground_truth(coco.gt)
    before = read_detections(coco.dt, truth)
    worse = [detection for detection in results() if detection["image_id"] == 1]
    coco.dt.write_text(json.dumps(worse))
    now = read_detections(coco.dt, truth)
    with pytest.raises(AssertionError, match=r"AP dropped by 0\.5000"):
        assert_detections(truth, now, baseline=before, max_drop=0.1)
    # On two images alone, nothing is certain.
    assert_detections(truth, now, baseline=before, max_drop=0.1, confidence=0.99)
    assert_detections(truth, now, baseline=before, max_drop={"AP": "90%"})


def test_a_baseline_report(coco: Files, detap: Run) -> None:
    base = coco.folder / "base.json"
    assert detap(*coco.arguments, "-o", base).status == 0
    assert_detections(coco.gt, coco.dt, baseline=base, max_drop=0)
    with pytest.raises(UsageError, match="is not comparable: protocol"):
        assert_detections(coco.gt, coco.dt, protocol="voc2012", baseline=base, max_drop=0)


def test_invalid_arguments_are_rejected(coco: Files) -> None:
    with pytest.raises(
        UsageError, match="requires a limit: fail_under, fail_over, max_drop, max_rise"
    ):
        assert_detections(coco.gt, coco.dt)
    with pytest.raises(UsageError, match="max_drop requires baseline"):
        assert_detections(coco.gt, coco.dt, max_drop=0.1)
    with pytest.raises(UsageError, match=r"did you mean .*'AP50'"):
        assert_detections(coco.gt, coco.dt, fail_under={"AP5": 0.1})
    with pytest.raises(UsageError, match="is not a number"):
        assert_detections(coco.gt, coco.dt, fail_under={"AP50": "x"})
    with pytest.raises(UsageError, match="confidence requires an earlier detector's detections"):
        assert_detections(coco.gt, coco.dt, baseline="report.json", max_drop=0.1, confidence=0.9)
    with pytest.raises(InputError, match=r"absent\.json"):
        assert_detections(coco.gt, coco.folder / "absent.json", fail_under=0.1)
