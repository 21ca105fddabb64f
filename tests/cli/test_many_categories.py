"""Memory per category depends on its boxes, not on the recall levels of a curve."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.coco import results_of, truth_of

CATEGORIES = 20_000
MOST = 250 << 10  # KiB

# A small process starts it: what a large one holds when it forks would count as the peak.
RUN = """
import resource, subprocess, sys

status = subprocess.run([sys.executable, "-m", "detap", *sys.argv[1:]]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is in other units")
@pytest.mark.parametrize("step", [1, 10], ids=["each-with-an-object", "one-in-ten-with-an-object"])
def test_twenty_thousand_categories_take_250_mb(tmp_path: Path, step: int) -> None:
    labels = range(0, CATEGORIES, step)
    rows = [(k // step % 1000, k, [k % 300, k % 200, 40 + k % 9, 50]) for k in labels]
    names = {k: f"category {k}" for k in range(CATEGORIES)}
    truth = truth_of(rows, names, range(1000))
    # Each is found by its only detection, but for those of every fourth object.
    numbered = enumerate(results_of(rows))
    detections = [row | {"score": (n % 97) / 97} for n, row in numbered if n % 4]
    (tmp_path / "gt.json").write_text(json.dumps(truth), "utf-8")
    (tmp_path / "dt.json").write_text(json.dumps(detections), "utf-8")
    line = ["eval", "--format", "coco", "--gt", "gt.json", "--dt", "dt.json", "-o", "report.json"]
    command = [sys.executable, "-c", RUN, *line]
    run = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert report["summary"]["AP"] == pytest.approx(0.75, abs=1e-12)
    assert int(run.stderr.split()[-1]) < MOST
    omitted = f"{CATEGORIES - len(labels)} classes without ground truth and detections are not"
    assert (omitted in run.stdout) == (step > 1)
    assert len(report["classes"]) == CATEGORIES
    assert run.stdout.count("\ncategory ") == len(labels)
