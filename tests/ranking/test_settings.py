"""Rankings read settings from separate tables of the settings file."""

import json
from pathlib import Path

import pytest

from detap.protocols.ranking import classification
from tests.cli.conftest import Run, summary

# One query with two relevant items, ranked first and third: AP (1 + 2/3) / 2.
RUN = "q Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 c 3 1 t\n"
QRELS = "q 0 a 1\nq 0 c 1\n"
AP = (1 + 2 / 3) / 2
BASE = '[rank-retrieval]\nrun = "run.txt"\nqrels = "qrels.txt"\n'


@pytest.fixture
def folder(cwd: Path) -> Path:
    (cwd / "run.txt").write_text(RUN)
    (cwd / "qrels.txt").write_text(QRELS)
    (cwd / "night.txt").write_text("q 0 b 1\n")
    return cwd


def test_a_command_without_options_uses_its_table(folder: Path, detap: Run) -> None:
    (folder / "detap.toml").write_text(BASE + "k = [1, 2]\nfail-under = {mAP = 0.9}\n")
    ended = detap("rank", "retrieval", "--output-format", "json")
    assert ended.status == 1
    assert "gate failed: mAP 0.8333, required >= 0.9" in ended.err
    report = json.loads(ended.out)
    assert report["summary"]["mAP"] == pytest.approx(AP, abs=1e-15)
    assert report["protocol"]["cutoffs"] == [1, 2]


def test_rankings_have_separate_targets(folder: Path, detap: Run) -> None:
    night = '[rank-retrieval.targets.night]\nqrels = "night.txt"\n'
    (folder / "detap.toml").write_text(BASE + night)
    call = ("rank", "retrieval", "--output-format", "json", "--target", "night")
    assert summary(detap(*call))["mAP"] == 0.5  # b is second
    assert "unknown target 'night'" in detap("eval", "--target", "night").refused()


def test_a_setting_of_another_command_is_unknown(folder: Path, detap: Run) -> None:
    (folder / "detap.toml").write_text(BASE + "iou = 0.5\ncutoff = 3\n")
    assert "[rank-retrieval]: unknown setting 'iou'" in detap("rank", "retrieval").refused()


def test_config_shows_them(folder: Path, detap: Run) -> None:
    (folder / "detap.toml").write_text(BASE + "k = 5\n")
    assert detap("config", "--output-format", "json").report()["settings"] == {}  # of eval
    shown = detap("config", "rank-retrieval", "--output-format", "json").report()["settings"]
    assert shown["k"] == {"value": ["5"], "source": "detap.toml [rank-retrieval]"}
    assert shown["run"]["value"] == "run.txt"


def test_signature_of_classification() -> None:
    """Metric names do not show the curve, nor how AP@k is divided."""
    voc = classification("voc2012")
    assert voc.signature("1.0") == "protocol:voc2012|curve:all-point|detap:1.0"
    assert voc.with_changes(cutoffs=(5,)).signature("1.0") == (
        "protocol:voc2012|curve:all-point|divisor:all|no-relevant:zero|cutoffs:5|detap:1.0"
    )
