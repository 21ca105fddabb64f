"""The sharded case of large runs."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.scripts.make_shards import PER_IMAGE, TRUTHS, write_shard
from detap.evaluation.scoring import score_tables
from detap.formats import read_detections, read_ground_truth
from tests.conftest import ROOT


def test_shards_have_different_images_and_are_reproducible(tmp_path: Path) -> None:
    arguments = [str(tmp_path), "--shards", "2", "--detections", "500"]
    for _ in range(2):
        subprocess.run(
            [sys.executable, "-m", "benchmarks.scripts.make_shards", *arguments],
            cwd=ROOT,
            check=True,
            timeout=120,
        )
        made = [path.read_bytes() for path in sorted(tmp_path.glob("*/*.json"))]
    write_shard(tmp_path, 0, 500, "again")
    assert (tmp_path / "dt" / "again.json").read_bytes() == made[0]
    (tmp_path / "dt" / "again.json").unlink()
    (tmp_path / "gt" / "again.json").unlink()
    truth = read_ground_truth(tmp_path / "gt")
    detections = read_detections(tmp_path / "dt", truth)
    assert len(truth.images) == 2 * 500 // PER_IMAGE
    assert (len(truth), len(detections)) == (len(truth.images) * TRUTHS, 1000)
    assert 0.1 < score_tables(truth, detections, "coco").summary["AP50"] < 0.9
    scores = [record["score"] for record in json.loads(made[0])]
    assert all(round(score, 4) == score for score in scores)
