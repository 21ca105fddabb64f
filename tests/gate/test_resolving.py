"""Power analysis in reports, computed by hand for recall.

Of 100 images with one object each, the earlier detector misses 10 and the later one 20 more. Recall
drops by 0.2; the drop is the mean of 80 zeros and 20 ones, so its standard error is
sqrt(0.2 * 0.8 / 100) = 0.04. That of the earlier recall, 0.9, is 0.03; that of the later one, 0.7,
is sqrt(0.7 * 0.3 / 100) = 0.0458. 1,000 resamples estimate them to about 2 %.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.errors import DetapWarning, UsageError
from detap.testing import assert_detections
from tests.cli.conftest import Ended, Run, write_coco
from tests.coco import results_of, truth_of
from tests.schemas import saved, valid

FACTOR = 2.801585  # 1.959964 + 0.841621: 95 %, found in 80 %
SOME = 0.06  # of what is drawn, three standard errors


@pytest.fixture
def case(cwd: Path) -> Path:
    rows = [(image, 1 + image % 2, [0, 0, 50, 50]) for image in range(1, 101)]
    truth = truth_of(rows, {1: "ant", 2: "bee"}, range(1, 101), size=(99, 99))
    detections = results_of(rows, 0.5)
    write_coco(cwd, truth, detections[10:])
    (cwd / "now.json").write_text(json.dumps(detections[30:]))
    return cwd


def run(detap: Run, *words: str, now: str = "now.json") -> tuple[Ended, dict[str, Any]]:
    call = ("eval", "--gt", "instances.json", "--dt", now, *words)
    report, ended = saved(detap, *call, statuses=(0, 1))
    return ended, report


EARLIER = ("--baseline-detections", "results.json")


def test_a_gate_reports_its_minimum_detectable_drop(case: Path, detap: Run) -> None:
    words = (*EARLIER, "--confidence", "0.95", "--max-drop", "AR100=0.05")
    ended, report = run(detap, *words)
    power = report["power"]
    assert {key: power[key] for key in ("level", "power", "paired", "unit", "drop")} == {
        "level": 0.95,
        "power": 0.8,
        "paired": True,
        "unit": "image",
        "drop": None,
    }
    (number,) = power["metrics"]
    assert (number["name"], number["units"], number["limit"]) == ("AR100", 100, 0.05)
    assert number["standard_error"] == pytest.approx(0.04, rel=SOME)
    assert number["min_detectable_drop"] == pytest.approx(
        FACTOR * number["standard_error"], rel=1e-6
    )
    assert number["drop_failing_gate"] == pytest.approx(0.05 + number["min_detectable_drop"])
    # 100 (2.8016 * .04 / .05)^2 = 502
    assert number["images_needed"] == pytest.approx(502, rel=2 * SOME)
    # Of the 50 ants 10 more are missed, and of the bees: sqrt(.16 / 50), but their number varies.
    assert [entry["name"] for entry in power["classes"]] == ["class:ant.AR100", "class:bee.AR100"]
    for entry in power["classes"]:
        assert entry["ground_truths"] == 50
        assert entry["standard_error"] == pytest.approx(0.0566, rel=0.1)
    assert "Minimum detectable drop" in ended.out
    assert "is detected with 80% power at the 95% level" in ended.out
    (warning,) = [note for note in report["notes"] if note["code"] == "gate-underpowered"]
    assert warning["severity"] == "warning"
    least = number["min_detectable_drop"]
    assert warning["message"] == (
        f"AR100 limit 0.05 is below the minimum detectable drop {least:.4f} of these 100 images; "
        f"{number['images_needed']} images are needed"
    )
    assert "[gate-underpowered]" in ended.err
    said = detap("eval", "--gt", "instances.json", "--dt", "now.json", "--strict", *words).refused()
    assert "1 warning type and --strict" in said


@pytest.mark.parametrize("limit", ["0", "0.2", "30%"])
def test_a_detectable_limit_gives_no_warning(case: Path, detap: Run, limit: str) -> None:
    ended, report = run(detap, *EARLIER, "--confidence", "0.95", "--max-drop", f"AR100={limit}")
    assert "gate-underpowered" not in ended.err
    (number,) = report["power"]["metrics"]
    assert number["limit"] == pytest.approx({"0": 0, "0.2": 0.2, "30%": 0.27}[limit])


def test_a_relative_limit_is_converted_to_a_drop(case: Path, detap: Run) -> None:
    words = (*EARLIER, "--confidence", "0.95", "--max-drop", "AR100=10%", "--max-drop", "AR100=0.9")
    ended, report = run(detap, *words)
    assert report["power"]["metrics"][0]["limit"] == pytest.approx(0.09)  # of .9
    assert "AR100 limit 0.09 is below the minimum" in ended.err


def test_detectable_drop_replaces_the_limit(case: Path, detap: Run) -> None:
    words = ("--confidence", "0.9", "--max-drop", "AR100=0.3", "--detectable-drop", "0.02")
    ended, report = run(detap, *EARLIER, *words)
    (number,) = report["power"]["metrics"]
    # At 90 %: 1.644854 + 0.841621.
    assert number["min_detectable_drop"] == pytest.approx(
        2.486475 * number["standard_error"], rel=1e-6
    )
    expected = 100 * (2.486475 * 0.04 / 0.02) ** 2
    assert number["images_needed"] == pytest.approx(expected, rel=2 * SOME)
    assert "images needed for 0.02" in ended.out


def test_one_detector_is_treated_as_two_independent_ones(case: Path, detap: Run) -> None:
    ended, report = run(detap, "--detectable-drop", "0.02", "--fail-under", "AR100=0.6")
    power = report["power"]
    assert not power["paired"]
    (number,) = power["metrics"]
    alone = 0.7 * 0.3 / 100
    assert number["standard_error"] == pytest.approx((2 * alone) ** 0.5, rel=SOME)
    assert number["limit"] is None
    assert number["drop_failing_gate"] is None
    # A minimum is held to the number as it is, whose own error counts: 0.8416 of it.
    (margin,) = power["margins"]
    assert (margin["name"], margin["kind"], margin["limit"]) == ("AR100", "minimum", "0.6")
    assert margin["margin"] == pytest.approx(0.841621 * alone**0.5, rel=SOME)
    assert "Estimated from one detector" in ended.out
    shown = " ".join(ended.out.split())
    assert (
        f"AR100, limit 0.6: a true value {margin['margin']:.4f} below the limit fails with 80% "
        f"power, one {margin['margin']:.4f} above it passes with 80% power."
    ) in shown


def test_a_baseline_report_is_treated_as_exact(case: Path, detap: Run) -> None:
    run(detap, now="results.json")
    Path("r.json").rename("base.json")
    words = ("--baseline", "base.json", "--max-drop", "AR100=0.05", "--detectable-drop", "0.02")
    ended, report = run(detap, *words)
    (number,) = report["power"]["metrics"]
    error = (2 * 0.7 * 0.3 / 100) ** 0.5
    assert number["drop_failing_gate"] == pytest.approx(0.05 + 0.841621 * error, rel=SOME)
    assert "AR100 limit 0.05 is below the minimum detectable drop" in ended.err


def test_without_limits_it_is_of_the_primary_metric(case: Path, detap: Run) -> None:
    _, report = run(detap, "--detectable-drop", "0.02", *EARLIER)
    power = report["power"]
    assert power["paired"]
    assert [entry["name"] for entry in power["metrics"]] == ["AP"]
    assert [entry["name"] for entry in power["classes"]] == ["class:ant.AP", "class:bee.AP"]
    # The confidence, the resamples and their seed may be said with it.
    more = ("--confidence", "0.95", "--resamples", "300", "--seed", "4")
    _, again = run(detap, "--detectable-drop", "0.02", *more)
    assert again["power"]["level"] == 0.95
    assert not again["power"]["paired"]


def test_metrics_that_cannot_be_resampled_are_omitted(case: Path, detap: Run) -> None:
    words = ("--max-rise", "class:*.duplicates=1", "--fail-under", "F1=0.1")
    _, report = run(detap, "--detectable-drop", "0.02", *EARLIER, *words)
    assert [entry["name"] for entry in report["power"]["metrics"]] == ["AP"]
    assert report["power"]["margins"] == []


def test_two_equal_detectors_have_no_detectable_drop(case: Path, detap: Run) -> None:
    words = (*EARLIER, "--confidence", "0.95", "--max-drop", "0.01")
    ended, report = run(detap, *words, now="results.json")
    (number,) = report["power"]["metrics"]
    assert number["min_detectable_drop"] is None
    assert number["images_needed"] is None
    assert "All resamples are equal" in ended.out
    assert "gate-underpowered" not in ended.err


def test_an_assertion_reports_the_images_needed(case: Path, detap: Run) -> None:
    """One detector: variance 2 * .7 * .3 / 100, times 100 * (2.801585 / 0.02)**2."""
    asked = {"fail_under": {"AR100": 0.6}, "detectable_drop": 0.02}
    result = assert_detections("instances.json", "now.json", **asked)  # type: ignore[arg-type]
    note = result.notes[-1]
    assert (note.code, note.severity) == ("images-needed", "info")
    start, end = "images needed to detect a drop of 0.02: ", " for AR100"
    assert note.message.startswith(start)
    needed = int(note.message.removeprefix(start).removesuffix(end).replace(",", ""))
    assert needed == pytest.approx(100 * 2 * 0.0021 * (FACTOR / 0.02) ** 2, rel=2 * SOME)
    _, report = run(detap, "--detectable-drop", "0.02", "--fail-under", "AR100=0.6")
    assert report["power"]["metrics"][0]["images_needed"] == needed  # as the command has it
    for error, message, change in (
        (AssertionError, f"{start}{needed:,}{end}\nprotocol:coco", {"fail_under": {"AR100": 0.8}}),
        (UsageError, "detectable_drop: 2 is not between 0 and 1", {"detectable_drop": 2}),
    ):
        with pytest.raises(error, match=message):
            assert_detections("instances.json", "now.json", **asked | change)  # type: ignore[arg-type]


def test_a_slice_uses_only_its_images(case: Path, detap: Run) -> None:
    Path("tags.csv").write_text(
        "image,tag\n" + "".join(f"{i},{'low' if i < 41 else 'high'}\n" for i in range(1, 101))
    )
    words = ("--confidence", "0.95", "--max-drop", "slice:*.AR100=0.1", "--slices", "tags.csv")
    _, report = run(detap, *EARLIER, *words)
    low, high = sorted(report["power"]["metrics"], key=lambda entry: entry["units"])
    assert (low["name"], low["units"]) == ("slice:low.AR100", 40)
    assert (high["name"], high["units"]) == ("slice:high.AR100", 60)
    # Images 11 to 30 are lost, half of the low ones: sqrt(.25 / 40). Above nothing changes.
    assert low["standard_error"] == pytest.approx(0.079, rel=2 * SOME)
    assert high["standard_error"] is None
    assert report["power"]["classes"] == []


def test_a_comparison_has_it(case: Path, detap: Run) -> None:
    words = ("compare", "results.json", "now.json", "--gt", "instances.json")
    ended = detap(*words, "--detectable-drop", "0.05", "-o", "comparison.json").passed()
    report = valid(json.loads(Path("comparison.json").read_text()), "comparison")
    numbers = {entry["name"]: entry for entry in report["power"]["metrics"]}
    with_interval = [entry["name"] for entry in report["metrics"] if entry["low"] is not None]
    assert list(numbers) == with_interval
    assert "AR100" in with_interval
    assert numbers["AR100"]["standard_error"] == pytest.approx(0.04, rel=SOME)
    assert numbers["AR100"]["images_needed"] == pytest.approx(502, rel=2 * SOME)
    assert "images needed for 0.05" in ended.out
    ended = detap(*words, "--resamples", "0", "-o", "comparison.json")
    assert "power" not in json.loads(Path("comparison.json").read_text())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *(
            (f"--detectable-drop {wrong}", "--detectable-drop")
            for wrong in ("0", "1", "-0.1", "nan", "5%", "AP=0.1")
        ),
        *(
            (
                f"--protocol proposals {option}",
                "protocol proposals uses matching by-iou, which labels no detection TP or FP; use "
                "another --protocol, or omit --confidence and --detectable-drop",
            )
            for option in ("--detectable-drop 0.1", "--confidence 0.95")
        ),
    ],
)
def test_what_cannot_be_resolved(case: Path, detap: Run, words: str, message: str) -> None:
    files = ("--gt", "instances.json", "--dt", "now.json")
    assert message in detap("eval", *files, *words.split()).refused()


def test_a_ranking_counts_queries(tmp_path: Path, detap: Run) -> None:
    # Of 50 queries, each with one relevant item among two, the earlier ranking has all first and
    # the later one 40: AP falls by 1/2 for 10, a standard error of .5 sqrt(.2 * .8 / 50) = .0283.
    first, second = tmp_path / "first.npz", tmp_path / "second.npz"
    relevance = np.tile([1, 0], (50, 1))
    scores = np.tile([2.0, 1.0], (50, 1))
    np.savez(first, scores=scores, relevance=relevance)
    scores[:10] = [1.0, 2.0]
    np.savez(second, scores=scores, relevance=relevance)
    report = tmp_path / "report.json"
    words = ("rank", "retrieval", "--npz", second, "-o", report)
    noise = ("--baseline-ranking", first, "--confidence", "0.95", "--max-drop", "mAP=0.05")
    ended = detap(*words, *noise)
    assert ended.status in (0, 1), ended.err
    power = json.loads(report.read_text())["power"]
    (number,) = power["metrics"]
    assert (power["unit"], number["name"], number["units"]) == ("query", "mAP", 50)
    assert number["standard_error"] == pytest.approx(0.0283, rel=SOME)
    assert "Minimum detectable drop" in ended.out
    assert " of these 50 queries; " in ended.err
    assert detap(*words, "--detectable-drop", "0.1").status == 0
    power = json.loads(report.read_text())["power"]
    assert power["metrics"][0]["standard_error"] == pytest.approx(0.0283 * 2**0.5, rel=SOME)


def test_an_assertion_warns_of_it(case: Path) -> None:
    from detap import read_detections, read_ground_truth

    truth = read_ground_truth("instances.json")
    earlier = read_detections("results.json", truth)
    with pytest.warns(DetapWarning, match="AR100 limit 0.22 is below the minimum"):
        assert_detections(
            truth,
            read_detections("now.json", truth),
            baseline=earlier,
            max_drop={"AR100": 0.22},
            confidence=0.9999999,
            resamples=100,
        )
