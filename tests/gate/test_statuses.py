"""The exit status in every combination of output format, gate status and error."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from detap.report import schema
from detap.report.writers.registry import WRITERS
from tests.cli.conftest import Run, instances, results, spawn, write_coco

# The cat's AP is 0.5 at each threshold but the last bits, the dog's 1, the bird's undefined.
VERDICTS = {
    "no gate": ("", 0),
    "passed": ("--fail-under 0.7", 0),
    "failed": ("--fail-under 0.8", 1),
    "one of two failed": ("--fail-under 0.1 --fail-under class:cat.AP=0.6", 1),
    "undefined": ("--fail-under class:bird.AP=0", 1),
    "undefined for the area": ("--fail-under APs=0", 1),
    "no drop": ("--baseline base.json --max-drop 0", 0),
    "dropped": ("--dt worse.json --baseline base.json --max-drop 0.1", 1),
    "dropped within limits": ("--dt worse.json --baseline base.json --max-drop 0.9", 0),
    "few ground truths": (
        "--dt worse.json --baseline base.json --max-drop class:dog.AP=0.1 --min-ground-truths 2",
        0,
    ),
    "inconclusive": (
        "--dt worse.json --baseline-detections results.json --max-drop 0.1 --confidence 0.99",
        0,
    ),
    "no drop, by intervals": (
        "--baseline-detections results.json --max-drop 0 --confidence 0.9",
        0,
    ),
}
ERRORS = {
    "unknown number": "--fail-under AP5=0.1",
    "unknown class": "--fail-under class:cow.AP=0.1",
    "no number": "--fail-under AP50",
    "out of reach": "--fail-under AP50=70",
    "no such baseline": "--baseline absent.json --max-drop 0",
    "a baseline that is none": "--baseline instances.json --max-drop 0",
    "drop without baseline": "--max-drop 0",
    "baseline without drop": "--baseline base.json",
    "confidence without detections": "--confidence 0.95 --baseline base.json --max-drop 0",
    "confidence beyond reason": "--confidence 95",
    "other ground truth": "--gt other.json --baseline base.json --max-drop 0",
    "other protocol": "--iou 0.5 --baseline base.json --max-drop 0",
    "other images": "--images 1 --baseline base.json --max-drop 0",
    "no such detections": "--dt absent.json --fail-under 0.9",
    "output onto the slices": "--slices tags.csv -o csv=tags.csv",
    "output onto the baseline": "--baseline base.json --max-drop 0 -o json=base.json",
    "no such folder": "-o absent/out.json --fail-under 0.9",
    "unknown slice": "--fail-under slice:night.AP=0.1",
}


@pytest.fixture
def case(cwd: Path, monkeypatch: pytest.MonkeyPatch, detap: Run) -> Path:
    """Return a folder with a ground truth, detections, worse ones and a baseline."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    write_coco(cwd)
    worse = [detection for detection in results() if detection["image_id"] == 1]
    (cwd / "worse.json").write_text(json.dumps(worse))
    (cwd / "tags.csv").write_text("image,tag\n1,night\n")
    other = instances()
    other["annotations"][0]["bbox"] = [0, 0, 90, 90]
    (cwd / "other.json").write_text(json.dumps(other))
    ended = detap("eval", "--gt", "instances.json", "--dt", "results.json", "-o", "base.json")
    assert ended.status == 0
    return cwd


def command(line: str, *, output_format: str) -> list[str]:
    arguments = line.split()
    usual = {"--gt": "instances.json", "--dt": "results.json"}
    standard = [word for name in usual if name not in arguments for word in (name, usual[name])]
    return ["eval", *standard, *arguments, "--output-format", output_format]


@pytest.mark.parametrize("output_format", WRITERS)
@pytest.mark.parametrize("verdict", VERDICTS)
def test_only_the_gate_status_decides(
    case: Path, detap: Run, output_format: str, verdict: str
) -> None:
    arguments, status = VERDICTS[verdict]
    ended = detap(*command(arguments, output_format=output_format))
    assert ended.status == status, ended.err
    assert ended.out
    assert ("gate failed: " in ended.err) == (status == 1)
    if output_format == "json":
        report = json.loads(ended.out)
        Draft202012Validator(schema()).validate(report)
        assert not arguments or report["gates"]["passed"] == (status == 0)


@pytest.mark.parametrize("output_format", WRITERS)
@pytest.mark.parametrize("error", ERRORS)
def test_an_error_is_not_a_gate_status(
    case: Path, detap: Run, output_format: str, error: str
) -> None:
    before = {path.name: path.read_bytes() for path in case.iterdir()}
    ended = detap(*command(ERRORS[error], output_format=output_format))
    assert ended.status == 2, ended.err
    assert ended.out == ""
    assert "Error: " in ended.err
    assert "Traceback" not in ended.err
    assert {path.name: path.read_bytes() for path in case.iterdir()} == before


@pytest.mark.parametrize(("verdict", "status"), [("passed", 0), ("failed", 1), ("undefined", 1)])
def test_the_real_command_exits_alike(case: Path, verdict: str, status: int) -> None:
    arguments, _ = VERDICTS[verdict]
    targets = (
        "-o out.json -o out.md -o out.xml -o out.csv -o out.txt -o github=out.log "
        "-o gitlab=metrics.txt -o gitlab=quality.json"
    )
    ended = spawn(*command(f"{arguments} {targets}", output_format="table"), cwd=case)
    assert ended.returncode == status, ended.stderr
    written = {path.name for path in case.iterdir()}
    assert {"out.json", "out.md", "out.xml", "out.csv", "out.txt", "out.log"} <= written
    assert (case / "metrics.txt").read_text().endswith("# EOF\n")
    assert isinstance(json.loads((case / "quality.json").read_text()), list)
    assert spawn(*command("--fail-under x=1", output_format="json"), cwd=case).returncode == 2


def test_the_error_names_the_differences(case: Path, detap: Run) -> None:
    ended = detap(*command(ERRORS["other ground truth"], output_format="json"))
    assert "base.json is not comparable: ground truth: sha256 (baseline: " in ended.err
    assert ended.err.endswith("\nRegenerate it or pass --allow-mismatch.\n")
    ended = detap(*command(ERRORS["other protocol"], output_format="json"))
    first, second = ended.err.splitlines()
    assert first.endswith(
        "base.json is not comparable: protocol (baseline: coco; current: coco|iou-thresholds:0.5)"
    )
    assert second == "Regenerate it or pass --allow-mismatch."
    ended = detap(*command(ERRORS["other images"], output_format="json"))
    assert (
        "selection (baseline: all classes and images; current: images:1-of-2-6b86b273)" in ended.err
    )


def test_a_baseline_of_other_detections_is_rejected(case: Path, detap: Run) -> None:
    arguments = "--baseline base.json --max-drop 0 --baseline-detections"
    said = detap(*command(f"{arguments} worse.json", output_format="json")).refused()
    assert "; --baseline-detections: " in said
    assert detap(*command(f"{arguments} results.json", output_format="json")).status == 0


def test_a_voc_baseline_depends_on_annotations_not_only_the_image_set(
    tmp_path: Path, detap: Run, voc: Any
) -> None:
    images = tmp_path / "set.txt"
    images.write_text("1\n2\n")
    base = tmp_path / "base.json"
    call = [*voc.arguments, "--image-set", images]
    assert detap(*call, "-o", base).status == 0
    assert detap(*call, "--baseline", base, "--max-drop", "0").status == 0
    changed = (voc.gt / "1.xml").read_text().replace("<xmax>100</xmax>", "<xmax>99</xmax>")
    (voc.gt / "1.xml").write_text(changed)
    assert "ground truth: sha256" in detap(*call, "--baseline", base, "--max-drop", "0").refused()
