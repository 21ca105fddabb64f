"""The peers: their environment and their command for two files."""

import hashlib
import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE / "cache" / "environment"
REQUIREMENTS = HERE / "requirements.txt"
SCRIPTS = HERE / "scripts"

COCO_NUMBERS = (
    *("AP", "AP50", "AP75", "APs", "APm", "APl"),
    *("AR1", "AR10", "AR100", "ARs", "ARm", "ARl"),
)
"""Our names of the twelve numbers, in the order in which pycocotools prints them."""

KEYPOINT_NUMBERS = (
    *("AP", "AP50", "AP75", "APm", "APl"),
    *("AR20", "AR50", "AR75", "ARm", "ARl"),
)
"""Those of the ten of keypoints."""

IOU_TYPES = {"coco": "bbox", "coco-segm": "segm", "coco-keypoints": "keypoints"}
"""IoU type of pycocotools by format of a workload."""

Numbers = list[float | None]


@dataclass(frozen=True, slots=True)
class Peer:
    """Another evaluator.

    Attributes
    ----------
    package : str
        Name in the registry; empty for a script of this folder.
    formats : collection of str
        Formats of the workloads that it reads.
    command : callable
        Takes the ground truth, the detections and the format; returns the command line.
    checked : callable
        The same, for the run whose stdout has the metrics.
    read : callable
        Takes that stdout; returns the metrics in COCO's order, undefined as None.
    """

    name: str
    formats: Collection[str]
    package: str
    command: Callable[[Path, Path, str], list[str]]
    checked: Callable[[Path, Path, str], list[str]]
    read: Callable[[str], Numbers]


def binary(name: str) -> Path:
    """Return the path of a program of the environment."""
    if os.name == "nt":
        return ENVIRONMENT / "Scripts" / f"{name}.exe"
    return ENVIRONMENT / "bin" / name


def prepare() -> None:
    """Create the environment and install the peers, unless already done."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()
    stamp = ENVIRONMENT / "requirements.sha256"
    if stamp.is_file() and stamp.read_text() == digest:
        return
    venv.create(ENVIRONMENT, clear=True, with_pip=True)
    subprocess.run(
        [binary("python"), "-m", "pip", "install", "--quiet", "--requirement", REQUIREMENTS],
        check=True,
        stdout=sys.stderr,
    )
    stamp.write_text(digest)


def versions() -> dict[str, str]:
    """Return the version of every package in the environment."""
    listing = subprocess.run(
        [binary("python"), "-m", "pip", "list", "--format", "json"],
        check=True,
        capture_output=True,
        text=True,
    )
    return {entry["name"]: entry["version"] for entry in json.loads(listing.stdout)}


def read_list(text: str) -> Numbers:
    """Read the last line as a JSON list; pycocotools' -1 is undefined."""
    values: list[float] = json.loads(text.splitlines()[-1])
    return [None if value == -1 else value for value in values]


def read_hotcoco(text: str) -> Numbers:
    """Read the JSON of hotcoco's command line."""
    metrics: dict[str, float] = json.loads(text)["metrics"]
    if "AR" in metrics:
        metrics["AR20"] = metrics.pop("AR")
    names = KEYPOINT_NUMBERS if "AR20" in metrics else COCO_NUMBERS
    return [None if metrics[name] == -1 else metrics[name] for name in names]


def script(name: str, formats: Collection[str] = IOU_TYPES, package: str = "") -> Peer:
    """Return a peer that is run by a script of this folder."""

    def command(truth: Path, detections: Path, format_: str) -> list[str]:
        path = SCRIPTS / f"run_{name.replace('-', '_')}.py"
        kind = [IOU_TYPES[format_]] if format_ in IOU_TYPES else []
        return [str(binary("python")), str(path), str(truth), str(detections), *kind]

    return Peer(name, formats, package, command, command, read_list)


def hotcoco_command(truth: Path, detections: Path, format_: str) -> list[str]:
    files = ["--gt", str(truth), "--dt", str(detections)]
    return [str(binary("coco")), "eval", *files, "--iou-type", IOU_TYPES[format_]]


PEERS = {
    peer.name: peer
    for peer in (
        script("ultrafast-pycocotools", package="ultrafast-pycocotools"),
        script("hotcoco", package="hotcoco"),
        script("vernier", package="vernier"),
        script("faster-coco-eval", package="faster-coco-eval"),
        script("pycocotools", package="pycocotools"),
        Peer(
            "hotcoco-cli",
            IOU_TYPES,
            "hotcoco",
            hotcoco_command,
            lambda *files_and_format: [*hotcoco_command(*files_and_format), "--json"],
            read_hotcoco,
        ),
        script("voc-baseline", ["voc"]),
    )
}
