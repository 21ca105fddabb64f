"""The peers: their environment, and the command that has each evaluate two files."""

import hashlib
import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable
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

Numbers = list[float | None]


@dataclass(frozen=True, slots=True)
class Peer:
    """Another evaluator.

    Attributes
    ----------
    package : str
        What the registry calls it; empty for a script of this folder alone.
    command : callable
        Takes the ground truth, the detections; returns what to run.
    checked : callable
        The same, for the run whose stdout gives the numbers.
    read : callable
        Takes that stdout; returns the numbers in COCO's order, undefined as None.
    """

    name: str
    format: str
    package: str
    command: Callable[[Path, Path], list[str]]
    checked: Callable[[Path, Path], list[str]]
    read: Callable[[str], Numbers]


def binary(name: str) -> Path:
    """Return the path of a program of the environment."""
    if os.name == "nt":
        return ENVIRONMENT / "Scripts" / f"{name}.exe"
    return ENVIRONMENT / "bin" / name


def prepare() -> None:
    """Make the environment and fill it from the registry, unless that was done."""
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()
    stamp = ENVIRONMENT / "requirements.sha256"
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    venv.create(ENVIRONMENT, clear=True, with_pip=True)
    subprocess.run(
        [binary("python"), "-m", "pip", "install", "--quiet", "--requirement", REQUIREMENTS],
        check=True,
        stdout=sys.stderr,
    )
    stamp.write_text(wanted)


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
    """Read the last line as a JSON list; the reference's -1 is what we call undefined."""
    values: list[float] = json.loads(text.splitlines()[-1])
    return [None if value == -1 else value for value in values]


def read_hotcoco(text: str) -> Numbers:
    """Read the JSON of hotcoco's command line."""
    metrics: dict[str, float] = json.loads(text)["metrics"]
    return [None if metrics[name] == -1 else metrics[name] for name in COCO_NUMBERS]


def script(name: str, format_: str = "coco", package: str = "") -> Peer:
    """Return a peer that is run by a script of this folder."""

    def command(truth: Path, detections: Path) -> list[str]:
        path = SCRIPTS / f"run_{name.replace('-', '_')}.py"
        return [str(binary("python")), str(path), str(truth), str(detections)]

    return Peer(name, format_, package, command, command, read_list)


def hotcoco_command(truth: Path, detections: Path) -> list[str]:
    return [str(binary("coco")), "eval", "--gt", str(truth), "--dt", str(detections)]


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
            "coco",
            "hotcoco",
            hotcoco_command,
            lambda truth, detections: [*hotcoco_command(truth, detections), "--json"],
            read_hotcoco,
        ),
        script("voc-baseline", "voc"),
    )
}
