"""Shards are read at their paths, in any process, with all files that the reader needs."""

import json
from pathlib import Path

import pytest

from detap.engines.shards import InputFiles, Shard, shard_to_partial
from detap.evaluation.partial import Partial
from detap.protocols import protocol


def test_detections_matched_by_file_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are matched by `file_name`, for which the ground truth is read again."""
    box = {"category_id": 1, "bbox": [0, 0, 10, 10], "area": 100, "iscrowd": 0}
    truth = {
        "images": [{"id": n, "file_name": f"{name}.jpg"} for n, name in ((5, "a"), (6, "b"))],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{"id": n, "image_id": n, **box} for n in (5, 6)],
    }
    data = tmp_path / "data"
    (data / "found").mkdir(parents=True)
    (data / "gt.json").write_text(json.dumps(truth))
    (data / "found" / "b.txt").write_text("cat .9 0 0 10 10\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    shard = Shard(
        InputFiles("coco", ("gt.json",), folder=str(data)),
        InputFiles("voc", ("found",), folder=str(data)),
        protocol("coco"),
    )
    partial = Partial.from_bytes(shard_to_partial(shard))
    assert partial.images == (6,)
