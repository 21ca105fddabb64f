"""``detap eval --cross-check``."""

import json
from pathlib import Path
from typing import Any

import pytest

import detap.analysis.crosscheck as module
from tests.cli.conftest import Files, Run, instances, write_coco


def test_the_command(detap: Run, coco: Files) -> None:
    ended = detap(*coco.arguments, "--cross-check").passed()
    assert "Cross-check against pycocotools " in ended.out
    assert "to the last bit" in ended.out
    assert "Running per image evaluation" not in ended.out
    record = json.loads(detap(*coco.arguments, "--cross-check", "-o", "json=-").out)["cross_check"]
    assert record["equal"] is True
    assert record["largest_difference"] == 0.0
    assert [row["name"] for row in record["metrics"]][:3] == ["AP", "AP50", "AP75"]


def test_the_command_fails_on_a_difference(
    detap: Run, coco: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = module._reference

    def lower(*given: Any) -> Any:
        numbers, inexact = run(*given)
        numbers["precision"][0, 0, 0, 0, -1] = 0.25
        return numbers, inexact

    monkeypatch.setattr(module, "_reference", lower)
    ended = detap(*coco.arguments, "--cross-check")
    assert ended.status == 1
    assert ended.out.startswith("class ")  # the report is there all the same
    assert "Error: pycocotools " in ended.err
    assert "differs: 1 of " in ended.err


def test_annotation_id_0_is_noted_and_coco_strict_agrees(detap: Run, tmp_path: Path) -> None:
    truth = instances()
    truth["annotations"][0]["id"] = 0
    call = [*write_coco(tmp_path, truth).arguments, "--cross-check"]
    ended = detap(*call, "-o", "json=-").passed()
    assert "[cross-check-renumbered]" in ended.err
    strict = detap(*call, "--protocol", "coco-strict", "-o", "json=-")
    assert (strict.status, "[cross-check-renumbered]" in strict.err) == (0, False)
    here, there = (json.loads(run.out) for run in (ended, strict))
    assert here["cross_check"]["unmodified_file"] == there["summary"] != here["summary"]
    assert there["cross_check"]["unmodified_file"] is None
    assert "to the last bit" not in detap(*call).out
    assert "to the last bit" in detap(*call, "--protocol", "coco-strict").out
