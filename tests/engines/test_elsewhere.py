"""Inputs are read at their paths, in any process, with all files that the reader needs."""

import json
from pathlib import Path

import pytest

from detap.formats import read_ground_truth
from detap.formats.multi_file import LocatedInput, locate_files
from detap.io.limits import Limits
from tests.coco import truth_of


def test_detections_matched_by_file_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are matched by `file_name`, for which the ground truth is read again."""
    rows = [(n, 1, [0, 0, 10, 10]) for n in (5, 6)]
    truth = truth_of(rows, {1: "cat"}, {5: "a.jpg", 6: "b.jpg"}, size=None)
    data = tmp_path / "data"
    (data / "found").mkdir(parents=True)
    (data / "gt.json").write_text(json.dumps(truth))
    (data / "found" / "b.txt").write_text("cat .9 0 0 10 10\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(data)
    ground_truth = locate_files(read_ground_truth("gt.json"), str(data))
    monkeypatch.chdir(tmp_path / "elsewhere")
    reading = {"limits": Limits(digests=True)}
    table = LocatedInput("voc", "found", str(data), reading).read(ground_truth)
    assert [table.images[number] for number in table.image.tolist()] == [6]
    assert [file.path for file in table.files] == ["found"]
    assert len(table.files[0].sha256) == 64
