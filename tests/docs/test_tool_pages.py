"""docs/other-tools.md has a section for each tool, and its commands work."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from detap.protocols import PRESETS
from tests.cli.conftest import Run
from tests.conftest import ROOT

PAGE, CHOOSING = (
    (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    for name in ("other-tools", "choosing-a-metric")
)
OF_BENCHMARKS = (
    *("coco-", "crowdpose", "dota", "lvis-", "kaist-", "citypersons-"),
    *("ultralytics-pose", "visdrone"),
)
TOOLS = (
    *("pycocotools", "torchmetrics", "Ultralytics", "Detectron2", "mmdetection"),
    *("TensorFlow object detection", "Cartucho", "Padilla", "KITTI", "Others"),
)
IN_TABLE = ("globox", "TIDE", "supervision", "hotcoco", "vernier", "FiftyOne")
COMMANDS = re.findall(
    r"^(detap .+)$", "\n".join(re.findall(r"```sh\n(.*?)```", PAGE + CHOOSING, re.S)), re.M
)

BOXES = [(0, 0, 40, 40), (50, 10, 90, 60)]


def text_files(folder: Path, lines_of: list[str], images: int = 2) -> None:
    folder.mkdir(parents=True)
    for image in range(images):
        (folder / f"{image:06}.txt").write_text("".join(f"{line}\n" for line in lines_of))


def write_other_tools_files(folder: Path) -> None:
    corners = [" ".join(map(str, box)) for box in BOXES]
    text_files(folder / "input" / "ground-truth", [f"cat {box}" for box in corners])
    text_files(folder / "input" / "detection-results", [f"cat 0.9 {box}" for box in corners])
    shares = [
        f"{(x + x2) / 200} {(y + y2) / 200} {(x2 - x) / 100} {(y2 - y) / 100}"
        for x, y, x2, y2 in BOXES
    ]
    text_files(folder / "labels", [f"0 {box}" for box in shares])
    text_files(folder / "runs" / "detect" / "val" / "labels", [f"0 {box} 0.9" for box in shares])
    (folder / "images" / "val").mkdir(parents=True)
    (folder / "labels" / "val").mkdir()
    for image in range(2):
        shutil.copy(folder / "labels" / f"{image:06}.txt", folder / "labels" / "val")
    (folder / "data.yaml").write_text("val: images/val\nnames: [cat]\n")


def png(width: int, height: int) -> bytes:
    """Return the header of a PNG image of a size."""
    size = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return b"\x89PNG\r\n\x1a\n" + b"\0\0\0\x0dIHDR" + size + b"\x08\2\0\0\0" + b"\0" * 4


@pytest.fixture
def folder(cwd: Path) -> Path:
    """Return a folder with files named as on the pages."""
    quickstart = ROOT / "fixtures" / "quickstart"
    for name, source in (
        ("instances.json", "instances.json"),
        ("results.json", "results.json"),
    ):
        shutil.copy(quickstart / "coco" / source, cwd / name)
    shutil.copytree(quickstart / "voc" / "Annotations", cwd / "VOC2007" / "Annotations")
    shutil.copytree(quickstart / "voc" / "detections", cwd / "results")
    for side, score in (("label_2", ""), ("data", " 0.9")):
        (cwd / side).mkdir()
        for image in range(2):
            line = f"Car 0.00 0 0.0 10 10 90 90 1 1 1 1 1 1 0{score}\n"
            (cwd / side / f"{image:06}.txt").write_text(line)
    write_other_tools_files(cwd)
    for image in range(2):
        (cwd / "images" / "val" / f"{image:06}.png").write_bytes(png(100, 100))
    return cwd


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_has_a_section(tool: str) -> None:
    section = re.search(rf"^### {tool}\n(.*?)(?=^### |\Z)", PAGE, re.M | re.S)
    assert section, f"no section about {tool}"
    assert re.search(r"^detap (explain|eval) ", section[1], re.M), f"no command for {tool}"


@pytest.mark.parametrize("tool", IN_TABLE)
def test_other_tools_have_a_row(tool: str) -> None:
    assert re.search(rf"^\| {tool}\b", PAGE, re.M), f"no row about {tool}"


def test_every_preset_of_another_implementation_is_mentioned() -> None:
    of_tools = [name for name in PRESETS if not name.startswith(OF_BENCHMARKS)]
    for name in {*of_tools} - {"voc2012-py", "proposals"}:
        assert f"`{name}`" in PAGE + CHOOSING, f"no page names {name}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_tools_works(command: str, folder: Path, detap: Run) -> None:
    words = shlex.split(command)[1:]
    assert detap(words[0], "--isolated", *words[1:]).passed().out
