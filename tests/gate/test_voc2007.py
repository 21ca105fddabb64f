"""The gate on a real detector and its random degradations."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import spawn
from tests.gate.detectors import Worsen, copy_voc, images_of, jittered, lower_scores, without_best


@pytest.fixture(scope="module")
def voc2007(real_data: Path) -> Path:
    return real_data / "voc2007-test"


def gate(
    voc2007: Path, detections: Path, *arguments: str, status: int
) -> tuple[dict[str, Any], str, str]:
    """Run the gate on VOC 2007; return its JSON, text and stderr."""
    folder = detections.parent
    ended = spawn(
        *("eval", "--format", "voc", "--gt", voc2007 / "Annotations", "--dt", detections),
        *("--protocol", "voc2012-py", "-o", folder / "out.json"),
        *arguments,
    )
    assert ended.returncode == status, ended.stderr
    return json.loads((folder / "out.json").read_text()), ended.stdout, ended.stderr


def test_the_gate_names_the_worse_class_and_images(voc2007: Path, tmp_path: Path) -> None:
    before = voc2007 / "detections"
    # The 250 best boxes of cat are gone, most of which were right.
    now = copy_voc(before, tmp_path / "now", without_best("cat", 250))
    lost = images_of(before, "cat", 250)
    noise = ("--baseline-detections", str(before), "--confidence", "0.95")
    limits = ("--max-drop", "mAP=0.005", "--max-drop", "class:*.AP=0.02")
    report, out, err = gate(voc2007, now, *noise, *limits, status=1)
    failed = [entry for entry in report["gates"]["checks"] if entry["status"] == "failed"]
    assert [entry["name"] for entry in failed] == ["mAP", "class:cat.AP"]
    assert [entry["name"] for entry in report["regressions"]["classes"]] == ["cat"]
    images = [entry["name"] for entry in report["regressions"]["images"]]
    assert len(images) == 10
    assert len(set(images) & lost) >= 9  # where fewer boxes count, others come to count as well
    assert "class cat: AP" in out
    assert f"image {images[0]}: " in out
    assert "gate failed: class:cat.AP dropped by" in err


@pytest.mark.parametrize(
    ("worsen", "limit", "fails"),
    [
        pytest.param(jittered(0.02, seed=1), 0.001, False, id="boxes moved by 2 % of their size"),
        pytest.param(lower_scores(0.02, seed=1), 0.002, False, id="2 % of the scores lowered"),
        pytest.param(without_best("cat", 1), 0.0001, False, id="one box of one class dropped"),
        pytest.param(jittered(0.15, seed=2), 0.005, True, id="boxes moved by 15 % of their size"),
        pytest.param(lower_scores(0.5, seed=2), 0.005, True, id="half of the scores lowered"),
    ],
)
def test_only_a_drop_beyond_noise_fails_the_bootstrap_gate(
    voc2007: Path, tmp_path: Path, worsen: Worsen, limit: float, fails: bool
) -> None:
    before = voc2007 / "detections"
    now = copy_voc(before, tmp_path / "now", worsen)
    noisy = ("--baseline-detections", str(before), "--confidence", "0.95")
    report, _, _ = gate(voc2007, now, *noisy, "--max-drop", f"mAP={limit:.4f}", status=int(fails))
    (check,) = report["gates"]["checks"]
    assert check["status"] in (("failed",) if fails else ("passed", "inconclusive"))
    assert (check["interval"][0] > limit) == fails


def test_the_minimum_detectable_drop(voc2007: Path, tmp_path: Path) -> None:
    """As in docs/statistics.md: of one detector, and of two with mostly the same errors."""
    before = tmp_path / "before"
    before.symlink_to(voc2007 / "detections")
    report, _, _ = gate(voc2007, before, "--detectable-drop", "0.005", status=0)
    (alone,) = report["power"]["metrics"]
    assert alone["min_detectable_drop"] == pytest.approx(0.0230, abs=5e-4)
    now = copy_voc(before, tmp_path / "now", jittered(0.1, 1))
    noise = ("--baseline-detections", str(before), "--confidence", "0.95")
    report, _, err = gate(voc2007, now, *noise, "--max-drop", "mAP=0.005", status=1)
    (both,) = report["power"]["metrics"]
    assert both["min_detectable_drop"] == pytest.approx(0.0104, abs=2e-4)
    assert both["images_needed"] == pytest.approx(21_000, rel=0.05)
    of_classes = [entry["min_detectable_drop"] for entry in report["power"]["classes"]]
    assert len(of_classes) == 20
    assert (min(of_classes), max(of_classes)) == pytest.approx((0.0172, 0.0671), rel=0.03)
    assert "mAP limit 0.005 is below the minimum detectable drop" in err
