"""Gates on the operating point of the case computed by hand (fixtures/error-types/why.md).

Its best F1 is 6/11 at .55: 3 TP, 3 FP, 2 FN in 3 images. Class a is best at .95 (1 TP, 2 FN: F1
1/2), b at .6 (1 TP, 1 FN: 2/3). At scores of at least .6: 2 TP, 3 FP.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from detap import UsageError
from detap.testing import assert_detections
from tests.cli.conftest import Files, Run


@pytest.fixture
def case(fixtures: Path) -> list[str]:
    folder = fixtures / "error-types" / "coco"
    files = ["--gt", str(folder / "instances.json"), "--dt", str(folder / "results.json")]
    return ["eval", "--isolated", *files]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--fail-under", "F1=0.545454"], "passed   F1 0.5455, required >= 0.545454"),
        (["--fail-under", "F1=0.5455"], "FAILED   F1 0.54545, required >= 0.5455"),
        (["--fail-under", "class:b.F1=0.6"], "passed   class:b.F1 0.6667, required >= 0.6"),
        (["--fail-under", "min-class.F1=0.5"], "passed   min-class.F1 (a) 0.5000, required >= 0.5"),
        (["--fail-under", "class:a.recall=0.4"], "FAILED   class:a.recall 0.3333, required >= 0.4"),
        (["--fail-under", "precision=0.5"], "passed   precision 0.5000, required >= 0.5"),
        (["--fail-over", "false-positives-per-image=1"], "passed   false-positives-per-image 1"),
        (["--fail-over", "false-positives-per-image=0.9"], "1.0000, required <= 0.9"),
        (
            ["--score-threshold", "0.6", "--fail-under", "F1=0.5"],
            "FAILED   F1 0.4000, required >= 0.5",
        ),
        (["--score-threshold", "0.6", "--fail-under", "recall=0.4"], "passed   recall 0.4000"),
        (["--score-threshold", "best", "--fail-under", "recall=0.6"], "passed   recall 0.6000"),
        (["--score-threshold", "0.99", "--fail-under", "precision=0"], "precision undefined"),
    ],
)
def test_gates_on_the_operating_point(
    detap: Run, case: list[str], words: list[str], message: str
) -> None:
    ended = detap(*case, *words)
    assert message in ended.out
    assert ended.status == (0 if message.startswith("passed") else 1)


def test_an_unknown_name_gets_suggestions(detap: Run, case: list[str]) -> None:
    assert "did you mean 'F1'?" in detap(*case, "--fail-under", "f1=0.5").err
    near = detap(*case, "--fail-over", "class:a.false-positive-per-image=1").err
    assert "did you mean 'false-positives-per-image'" in near


def test_a_baseline_report_needs_the_same_score_threshold(
    detap: Run, case: list[str], tmp_path: Path
) -> None:
    base = tmp_path / "base.json"
    at = ("--score-threshold", "0.6")
    drop = ("--max-drop", "F1=0.01", "--max-rise", "false-positives-per-image=0")
    assert detap(*case, *at, "-o", base).status == 0
    assert detap(*case, *at, "--baseline", base, *drop).status == 0
    for other, threshold in (([], "best F1"), (["--score-threshold", "0.7"], "0.7")):
        said = detap(*case, *other, "--baseline", base, *drop).refused()
        assert f"score threshold (baseline: 0.6; current: {threshold})" in said
        # What no gate names may differ.
        assert detap(*case, *other, "--baseline", base, "--max-drop", "AP=0").status == 0
    insisting = detap(*case, "--baseline", base, *drop, "--allow-mismatch").passed()
    assert "F1 rose by 0.1455 (0.4000 to 0.5455)" in insisting.out


def test_a_detector_that_fell_fails(detap: Run, case: list[str], tmp_path: Path) -> None:
    """Without its detection of score .6, class b has no TP: F1 is 0."""
    base, worse = tmp_path / "base.json", tmp_path / "worse.json"
    assert detap(*case, "--score-threshold", "best", "-o", base).status == 0
    rows = json.loads(Path(case[-1]).read_text())
    worse.write_text(json.dumps([row for row in rows if row["score"] != 0.6]))
    now = [*case[:-1], str(worse)]
    for earlier in (("--baseline", base), ("--baseline-detections", case[-1])):
        ended = detap(*now, *earlier, "--max-drop", "class:*.F1=0.1")
        assert ended.status == 1
        assert "class:b.F1 dropped by 0.6667 (0.6667 to 0.0000), allowed 0.1" in ended.out
        assert "class:a.F1 unchanged (0.5000)" in ended.out


def test_an_older_baseline_has_no_operating_point(
    detap: Run, case: list[str], tmp_path: Path
) -> None:
    base = tmp_path / "base.json"
    assert detap(*case, "-o", base).status == 0
    said = detap(*case, "--baseline", base, "--max-drop", "F1=0.1").refused()
    assert "'F1' is not in the baseline; regenerate it" in said


def test_class_recall_in_voc_is_the_tables_without_a_threshold(detap: Run, voc: Files) -> None:
    """One of two cats is detected, with score .9: at threshold .95 none is."""
    plain = detap(*voc.arguments, "--fail-under", "class:cat.recall=0.5")
    assert "class:cat.recall 0.5000" in plain.out
    above = detap(
        *voc.arguments, "--score-threshold", "0.95", "--fail-under", "class:cat.recall=0.5"
    )
    assert "class:cat.recall 0.0000, required >= 0.5" in above.out
    earlier = ("--baseline-detections", voc.dt, "--confidence", "0.9", "--resamples", "100")
    drop = ("--max-drop", "class:cat.recall=0.1")
    assert detap(*voc.arguments, *earlier, *drop).status == 0
    refused = detap(*voc.arguments, *earlier, *drop, "--score-threshold", "0.5")
    assert "'class:cat.recall' has no interval: not an average precision" in refused.err


def test_slices_have_operating_points(detap: Run, case: list[str], tmp_path: Path) -> None:
    """Image 2: FPs of class a at .7 and .5; no TP."""
    tags = tmp_path / "tags.json"
    tags.write_text(json.dumps({"2": "two"}))
    ended = detap(*case, "--slices", tags, "--fail-under", "slice:two.F1=0.1")
    assert "slice:two.F1 0.0000, required >= 0.1" in ended.out


def test_updating_a_baseline_raises_them(detap: Run, case: list[str], tmp_path: Path) -> None:
    base, today = tmp_path / "base.json", tmp_path / "today.json"
    at = ("--score-threshold", "0.6")
    assert detap(*case, *at, "-o", today).status == 0
    record: dict[str, Any] = json.loads(today.read_text())
    record["operating_point"]["overall"] |= {"F1": 0.9, "precision": 0.1, "false_positives": 9}
    base.write_text(json.dumps(record))
    assert detap("baseline", "update", base, today).status == 0
    kept = json.loads(base.read_text())
    assert kept["operating_point"]["overall"]["F1"] == 0.9
    assert kept["operating_point"]["overall"]["precision"] == 0.4
    assert kept["operating_point"]["overall"]["false_positives"] == 3
    assert kept["retained_metrics"] == ["F1"]


def test_assert_detections_has_a_threshold(case: list[str], tmp_path: Path, detap: Run) -> None:
    truth, detections = case[-3], case[-1]
    assert_detections(truth, detections, fail_under={"F1": 0.54, "class:b.F1": 0.6})
    with pytest.raises(AssertionError, match=r"F1 0\.4000, required >= 0\.54"):
        assert_detections(truth, detections, fail_under={"F1": 0.54}, score_threshold=0.6)
    base = tmp_path / "base.json"
    assert detap(*case, "--score-threshold", "0.6", "-o", base).status == 0
    assert_detections(truth, detections, baseline=base, max_drop={"F1": 0}, score_threshold=0.6)
    with pytest.raises(UsageError, match=r"score threshold \(baseline: 0\.6; current: best F1\)"):
        assert_detections(truth, detections, baseline=base, max_drop={"F1": 0})
    for wrong in ("worst", float("nan"), True):
        with pytest.raises(UsageError, match="neither a number nor 'best'"):
            assert_detections(truth, detections, fail_under=0, score_threshold=wrong)  # type: ignore[arg-type]
