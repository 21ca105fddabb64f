"""The detap that is measured."""

import json
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers import COCO_NUMBERS, IOU_TYPES, KEYPOINT_NUMBERS, Numbers

HERE = Path(__file__).resolve().parent
BUILT = HERE / "cache" / "detap"
VOC_PROTOCOL = "voc2012-py"  # what the baseline computes


@dataclass(frozen=True, slots=True)
class Detap:
    """Command of detap, and the Python that can import it, if known."""

    program: tuple[str, ...]
    python: str | None

    def command(self, format_: str, truth: Path, detections: Path, *more: str) -> list[str]:
        """Return the command that evaluates two files."""
        name, _, kind = format_.partition("-")
        rules = ("--iou-type", kind) if kind else ()
        if format_ == "voc":
            rules = ("--protocol", VOC_PROTOCOL)
        files = ("--format", name, "--gt", str(truth), "--dt", str(detections))
        return [*self.program, "eval", *files, *rules, *more]

    def version(self) -> str:
        said = subprocess.run(
            [*self.program, "--version"], check=True, capture_output=True, text=True
        )
        return said.stdout.strip()


def installed() -> Detap:
    """Return the detap of the environment that runs this."""
    program = Path(sysconfig.get_path("scripts")) / (
        "detap.exe" if sys.platform == "win32" else "detap"
    )
    if not program.exists():
        raise SystemExit(
            f"there is no detap in the environment of {sys.executable}; install it there "
            "(pip install .), or give --build, or --detap COMMAND"
        )
    return Detap((str(program),), sys.executable)


def build() -> Detap:
    """Install this checkout with pip into a new environment and return its detap.

    An editable installation or an environment with many packages starts more slowly.
    """
    venv.create(BUILT, clear=True, with_pip=True)
    bin_ = BUILT / ("Scripts" if sys.platform == "win32" else "bin")
    subprocess.run(
        [bin_ / "python", "-m", "pip", "install", "--quiet", f"{HERE.parent}[arrow,dask]"],
        check=True,
        stdout=sys.stderr,
    )
    return Detap((str(bin_ / "detap"),), str(bin_ / "python"))


def read_coco(text: str) -> Numbers:
    """Return the twelve metrics of a JSON report, or the ten of keypoints."""
    summary = json.loads(text)["summary"]
    names = KEYPOINT_NUMBERS if "AR20" in summary else COCO_NUMBERS
    return [summary[name] for name in names]


def read_voc(text: str) -> Numbers:
    """Return the mean AP and that of each class, sorted by name."""
    report = json.loads(text)
    rows = sorted(report["classes"], key=lambda row: str(row["name"]))
    return [report["summary"]["mAP"], *(row["AP"] for row in rows)]


READ = {**dict.fromkeys(IOU_TYPES, read_coco), "voc": read_voc}
