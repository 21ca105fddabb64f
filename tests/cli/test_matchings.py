"""Each detector is matched once, whatever is requested."""

import json
from pathlib import Path
from typing import Any

import pytest

import detap.evaluation.match
from detap.cli import main
from detap.core.matching import match_and_accumulate


@pytest.fixture
def matchings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets an entry for each run of the matching."""
    seen: list[int] = []

    def counted(*columns: Any, **how: Any) -> Any:
        seen.append(len(columns[0].image))
        return match_and_accumulate(*columns, **how)

    monkeypatch.setattr(detap.evaluation.match, "match_and_accumulate", counted)
    return seen


def run(fixtures: Path, tmp_path: Path, *words: str) -> None:
    folder = fixtures / "quickstart" / "coco"
    truth, detections = str(folder / "instances.json"), str(folder / "results.json")
    tags = tmp_path / "tags.json"
    images = json.loads((folder / "instances.json").read_text())["images"]
    tags.write_text(json.dumps({str(image["id"]): ["all", "one"][:2] for image in images}))
    placed = [str(tmp_path / word) if word.endswith((".json", ".csv")) else word for word in words]
    assert main(["eval", "--gt", truth, "--dt", detections, "-q", *placed]) == 0


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--curves", "curves.json", "--cross-check", "--tie-range"),
        ("--analysis", "--curves", "curves.json", "--matches", "matches.csv"),
        ("--fail-under", "class:*.F1=0"),
    ],
)
def test_a_detector_is_matched_once(
    fixtures: Path, tmp_path: Path, matchings: list[int], words: tuple[str, ...]
) -> None:
    run(fixtures, tmp_path, *words)
    assert len(matchings) == 1


def test_two_detectors_are_matched_once_each(
    fixtures: Path, tmp_path: Path, matchings: list[int]
) -> None:
    """With slices, intervals and regressions."""
    before = str(fixtures / "quickstart" / "coco" / "results.json")
    gates = ("--baseline-detections", before, "--max-drop", "0.5")
    words = ("--slices", "tags.json", "--confidence", "0.9", "--resamples", "100")
    asked = ("--curves", "curves.json", "--cross-check", "--tie-range")
    run(fixtures, tmp_path, *asked, *words, *gates, "--max-drop", "slice:all.AP=0.5")
    assert len(matchings) == 2


def test_256_protocols_need_8_matchings(fixtures: Path, matchings: list[int]) -> None:
    """Three of eight groups of fields change matches: inclusive pixels, flags and the candidate.

    Protocols that differ in thresholds, area ranges, max dets, ties or curves share a matching;
    the two given protocols are among the combinations.
    """
    folder = fixtures / "difficult" / "voc"
    files = ["--gt", str(folder / "Annotations"), "--dt", str(folder / "detections")]
    protocols = ["--from", "voc2012", "--to", "coco", "--metric", "AP50"]
    assert main(["explain", *files, *protocols]) == 0
    assert len([rows for rows in matchings if rows]) == 8
