"""Small hand-computed files, and two ways to run the command on them."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from detap.cli import main
from tests.coco import results_of, truth_of
from tests.processes import finished

# Image 1 has two cats and image 2 a dog. One cat is found twice, the other never; the dog is
# found; a bird is seen where the ground truth knows of none.
CLASSES = {1: "cat", 2: "dog", 3: "bird"}
TRUTHS = [(1, 1, [0, 0, 100, 100]), (1, 1, [200, 0, 100, 100]), (2, 2, [0, 0, 50, 50])]
FOUND = [
    (1, 1, [0, 0, 100, 100], 0.9),
    (1, 1, [0, 0, 100, 100], 0.8),
    (1, 1, [400, 400, 10, 10], 0.7),
    (2, 2, [0, 0, 50, 50], 0.6),
    (2, 3, [0, 0, 50, 50], 0.5),
]


def instances() -> dict[str, Any]:
    """Return the ground truth in COCO format."""
    return truth_of(TRUTHS, CLASSES, (1, 2))


def results() -> list[dict[str, Any]]:
    """Return the detections in COCO results format."""
    return results_of(FOUND)


@dataclass(frozen=True)
class Ended:
    """Exit status and output of a run."""

    status: int
    out: str
    err: str

    def passed(self) -> "Ended":
        """Return the run, which ends with status 0."""
        assert self.status == 0, self.err
        return self

    def refused(self, *, shown: bool = False) -> str:
        """Return the messages of a run that ends with status 2, without output unless `shown`."""
        assert (self.status, bool(self.out)) == (2, shown), self.err
        return self.err

    def report(self, status: int = 0) -> Any:
        """Return the JSON report on stdout of a run that ends so."""
        assert self.status == status, self.err
        return json.loads(self.out)


Run = Callable[..., Ended]


def summary(ended: Ended) -> dict[str, float]:
    """Return the summary of a JSON report on stdout."""
    numbers: dict[str, float] = ended.report()["summary"]
    return numbers


@dataclass(frozen=True)
class Files:
    """Paths of a ground-truth file and a detections file."""

    folder: Path
    gt: Path
    dt: Path

    @property
    def arguments(self) -> list[str]:
        return ["eval", "--gt", str(self.gt), "--dt", str(self.dt)]


def write_coco(folder: Path, truth: Any = None, detections: Any = None) -> Files:
    """Write a COCO case, by default the one above."""
    gt, dt = folder / "instances.json", folder / "results.json"
    gt.write_text(json.dumps(instances() if truth is None else truth))
    dt.write_text(json.dumps(results() if detections is None else detections))
    return Files(folder, gt, dt)


def written(folder: Path, truth: Any, detections: Any) -> list[str]:
    """Write a COCO case; return its command-line arguments."""
    gt, dt = folder / "gt.json", folder / "dt.json"
    gt.write_text(json.dumps(truth))
    dt.write_text(json.dumps(detections))
    return ["--gt", str(gt), "--dt", str(dt)]


def write_voc(folder: Path) -> Files:
    """Write the case above as XML and as text files of the VOC devkit."""
    gt, dt = folder / "Annotations", folder / "results"
    gt.mkdir()
    dt.mkdir()
    for image in (1, 2):
        objects = "".join(
            f"<object><name>{CLASSES[label]}</name><difficult>0</difficult><bndbox>"
            f"<xmin>{box[0] + 1}</xmin><ymin>{box[1] + 1}</ymin>"
            f"<xmax>{box[0] + box[2]}</xmax><ymax>{box[1] + box[3]}</ymax></bndbox></object>"
            for where, label, box in TRUTHS
            if where == image
        )
        size = "<size><width>640</width><height>480</height><depth>3</depth></size>"
        (gt / f"{image}.xml").write_text(f"<annotation>{size}{objects}</annotation>")
    for number, name in CLASSES.items():
        lines = [
            f"{image} {score} {box[0] + 1} {box[1] + 1} {box[0] + box[2]} {box[1] + box[3]}\n"
            for image, label, box, score in FOUND
            if label == number
        ]
        (dt / f"comp4_det_test_{name}.txt").write_text("".join(lines))
    return Files(folder, gt, dt)


@pytest.fixture
def coco(tmp_path: Path) -> Files:
    return write_coco(tmp_path)


@pytest.fixture
def voc(tmp_path: Path) -> Files:
    return write_voc(tmp_path)


@pytest.fixture
def detap(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command line in this process."""

    def run(*arguments: str | Path) -> Ended:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ended(status, captured.out, captured.err)

    return run


@pytest.fixture
def command(detap: Run) -> Run:
    """Return the same function, for modules that import a package of its name."""
    return detap


def spawn(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the real command until it exits."""
    command = [sys.executable, "-m", "detap", *map(str, arguments)]
    return finished(command, None, encoding="utf-8", **options)
