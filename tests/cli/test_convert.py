"""``detap convert``: converted files score as their sources do."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

EXACT = ["--protocol", "coco", "--ignore-flags", "none", "--crowd-flags", "none"]
"""Neither format can express the other's ignore flags."""


@pytest.fixture
def coco(fixtures: Path) -> list[str]:
    folder = fixtures / "quickstart" / "coco"
    return ["--gt", str(folder / "instances.json"), "--dt", str(folder / "results.json")]


@pytest.fixture
def voc(fixtures: Path) -> list[str]:
    folder = fixtures / "quickstart" / "voc"
    return ["--gt", str(folder), "--dt", str(folder / "detections")]


def numbers(detap: Run, *words: str) -> Any:
    report = detap("eval", "--isolated", *words, "--output-format", "json").report()
    classes = sorted(report["classes"], key=lambda row: row["name"])
    return report["summary"], [{**row, "id": None} for row in classes]


def read_as(target: str, out: Path) -> list[str]:
    if target == "coco":
        return ["--gt", str(out / "instances.json"), "--dt", str(out / "results.json")]
    return ["--gt", str(out), "--image-set", "default", "--dt", str(out / "detections")]


@pytest.mark.parametrize("source", ["coco", "voc"])
@pytest.mark.parametrize("target", ["coco", "voc"])
def test_converted_files_give_the_same_bits(
    detap: Run, request: pytest.FixtureRequest, tmp_path: Path, source: str, target: str
) -> None:
    given = request.getfixturevalue(source)
    out = tmp_path / "out"
    ended = detap("convert", *given, "--to", target, "-o", str(out))
    assert (ended.status, ended.out) == (0, ""), ended.err
    assert numbers(detap, *given, *EXACT) == numbers(detap, *read_as(target, out), *EXACT)
    back = tmp_path / "back"
    assert detap("convert", *read_as(target, out), "--to", source, "-o", str(back)).status == 0
    assert numbers(detap, *given, *EXACT) == numbers(detap, *read_as(source, back), *EXACT)


def test_written_files_and_lost_data_are_reported(
    detap: Run, coco: list[str], fixtures: Path, tmp_path: Path
) -> None:
    ended = detap("convert", *coco, "--to", "coco", "-o", str(tmp_path / "out"))
    assert ended.err.endswith(
        f"{tmp_path}/out: 15 objects of 3 classes on 6 images and 25 detections\n"
    )
    quiet = detap("convert", *coco, "--to", "coco", "-o", str(tmp_path / "quiet"), "-q")
    assert (quiet.status, quiet.out, quiet.err) == (0, "", "")
    crowds = str(fixtures / "crowd" / "coco" / "instances.json")
    lossy = detap("convert", "--gt", crowds, "--to", "voc", "-o", str(tmp_path / "voc"))
    assert "warning: flag crowd not supported by VOC (2) [data-lost]" in lossy.err
    assert (tmp_path / "voc" / "Annotations").is_dir()


def test_strict_writes_nothing_if_data_would_be_lost(
    detap: Run, fixtures: Path, tmp_path: Path
) -> None:
    crowds = str(fixtures / "crowd" / "coco" / "instances.json")
    said = detap(
        "convert", "--gt", crowds, "--to", "voc", "-o", str(tmp_path / "voc"), "--strict"
    ).refused()
    assert said.endswith("and --strict\n")
    assert list(tmp_path.iterdir()) == []


def test_existing_files_are_not_overwritten(detap: Run, coco: list[str], tmp_path: Path) -> None:
    target = tmp_path / "instances.json"
    target.write_text("mine")
    said = detap("convert", *coco[:2], "--to", "coco", "-o", str(target)).refused()
    assert said == f"Error: {target}: already exists; use another name, or remove it\n"
    assert target.read_text() == "mine"


def test_ground_truth_or_detections_are_required(detap: Run, tmp_path: Path) -> None:
    said = detap("convert", "--to", "coco", "-o", str(tmp_path / "out")).refused()
    assert "no input: use --gt, --dt, or both" in said


def test_detections_without_ground_truth_keep_their_names(
    detap: Run, voc: list[str], tmp_path: Path
) -> None:
    target = tmp_path / "out.json"
    ended = detap("convert", "--layout", "class-files", *voc[2:], "--to", "coco", "-o", str(target))
    assert ended.status == 0, ended.err
    report = json.loads(target.read_text())
    assert [row["name"] for row in report["categories"]] == ["bird", "cat", "dog"]
    assert {row["image_id"] for row in report["annotations"]} <= {f"00000{k}" for k in range(1, 7)}
