"""CrowdPose and COCO-WholeBody: the figures of xtcocotools 1.14.3, through the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run


def scored(detap: Run, *arguments: object) -> dict[str, Any]:
    """Return the JSON report of `detap eval`."""
    report: dict[str, Any] = detap("eval", *arguments, "--output-format", "json").report()
    return report


def crowdpose(formats3: Path) -> tuple[Path, Path]:
    folder = formats3 / "crowdpose"
    return folder / "crowdpose_val.json", folder / "crowdpose_preds.json"


def test_crowdpose(formats3: Path, detap: Run) -> None:
    report = scored(detap, *crowdpose(formats3), "--protocol", "crowdpose")
    expected = json.loads((formats3 / "crowdpose" / "expected.json").read_text())
    expected["AR20"] = expected.pop("AR")
    names = ["AP", "AP50", "AP75", "AR20", "AR50", "AR75"]
    assert list(report["summary"]) == names  # no area ranges
    assert report["summary"] == pytest.approx({name: expected[name] for name in names}, abs=1e-15)
    # Annotations have no area and need none.
    assert "missing-area" not in [note["code"] for note in report["notes"]]


def test_the_error_for_fourteen_keypoints_names_the_preset(formats3: Path, detap: Run) -> None:
    """Its results have no boxes, so keypoints are scored by default."""
    said = detap("eval", *crowdpose(formats3)).refused()
    assert "14 keypoints; pass 14 values with --sigmas, or use --protocol crowdpose" in said


def test_parts_of_crowdpose(formats3: Path, tmp_path: Path, detap: Run) -> None:
    truth, detections = crowdpose(formats3)
    split = tmp_path / "split.csv"
    lines = ["image,tag"]
    for image in json.loads(truth.read_text())["images"]:
        index = image["crowdIndex"]
        tag = "easy" if index < 0.2 else "medium" if index < 0.8 else "hard"
        lines.append(f"{image['id']},{tag}")
    split.write_text("\n".join(lines))
    report = scored(detap, truth, detections, "--protocol", "crowdpose", "--slices", split)
    expected = json.loads((formats3 / "crowdpose" / "expected.json").read_text())
    for name in ("easy", "medium", "hard"):  # the reference rounds them
        part = report["slices"][name]["summary"]["AP"]
        assert round(part, 4) == expected[f"AP-{name}"]


PARTS = {"": "wholebody"} | {
    f"-{part}": part for part in ("body", "foot", "face", "lefthand", "righthand")
}


@pytest.mark.parametrize("part", PARTS)
def test_wholebody(formats3: Path, detap: Run, part: str) -> None:
    folder = formats3 / "wholebody"
    files = folder / "wholebody_val.json", folder / "wholebody_preds.json"
    report = scored(detap, *files, "--protocol", f"coco-wholebody{part}")
    expected = json.loads((folder / "expected.json").read_text())
    figures = expected[PARTS[part]]
    figures["AR20"] = figures.pop("AR")
    assert report["summary"] == pytest.approx(figures, abs=1e-12)
    assert report["protocol"]["sigmas"] == pytest.approx(expected["sigmas"][PARTS[part]])
    (note,) = [note for note in report["notes"] if note["code"] == "missing-score-key"]
    assert note["message"] == f"{PARTS[part]}_score missing; using score"
    assert note["count"] == 26
