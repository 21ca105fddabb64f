"""docs/proofs.md: each command, on the public files, gives the numbers of its table."""

import json
import re
import sys
import tarfile
from pathlib import Path

import pytest

from tests.conftest import ROOT, extract
from tests.processes import finished

PAGE = ROOT / "docs" / "proofs.md"
PROOF = re.compile(r"^```sh\n(.+?)\n```\n\n((?:\|[^\n]*\n)+)", re.MULTILINE | re.DOTALL)
PREPARATION = re.compile(r"^```bash\n(.+?)\n```", re.MULTILINE | re.DOTALL)
FOLDERS: dict[str, tuple[str | Path, ...]] = {
    "COCO's sample results": ("coco-val2014-100",),
    "Padilla's example": ("odm-sample-2",),
    "KITTI, Car": ("measures",),
    "KAIST pedestrians": (Path("measures", "kaist"),),
    "Scalabel's tests": (Path("formats3", "scalabel"),),
    "CrowdPose's example": (Path("formats3", "crowdpose"),),
    "COCO-WholeBody's example": (Path("formats3", "wholebody"),),
}
"""Folders of the real data with the files of each section."""


def proofs() -> list[object]:
    """Return section, command (after what prepares it) and table of each proof."""
    sections = PAGE.read_text("utf-8").split("\n## ")[1:]
    return [
        pytest.param(
            section.partition("\n")[0], "\n".join([*PREPARATION.findall(section), command]), table
        )
        for section in sections
        for command, table in PROOF.findall(section)
    ]


@pytest.fixture
def files(request: pytest.FixtureRequest, real_data: Path, tmp_path: Path) -> Path:
    """Link the files of a section into one folder, as its commands expect them."""
    for name in FOLDERS[request.node.callspec.params["title"]]:
        if not (real_data / name).is_dir():
            pytest.skip(f"real data is absent: no folder {real_data / name}")
        for path in (real_data / name).iterdir():
            if not (tmp_path / path.name).exists():
                (tmp_path / path.name).symlink_to(path)
    (tmp_path / "VOC2007").symlink_to(real_data / "voc2007-test")
    if (archive := tmp_path / "kitti_kittibox.tar.gz").exists():
        with tarfile.open(archive) as packed:
            extract(packed, tmp_path)
    return tmp_path


@pytest.mark.parametrize(("title", "command", "table"), proofs())
def test_the_command_gives_the_numbers(title: str, command: str, table: str, files: Path) -> None:
    assert title in FOLDERS
    words = command.replace("detap ", f"{sys.executable} -m detap ", 1) + " -q -o proof.json"
    finished(["bash", "-c", words], cwd=files)
    report = json.loads((files / "proof.json").read_text("utf-8"))
    summary = report["summary"]
    for tag, part in report.get("slices", {}).items():
        summary |= {f"slice:{tag}.{name}": value for name, value in part["summary"].items()}
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()[2:]]
    for names, published, ours, *cause in rows:
        shown = ours.split()
        values = [summary[name] for name in names.split()]
        assert [decimals(*pair) for pair in zip(values, shown, strict=True)] == shown
        scale = 100 if "%" in published else 1
        pairs = zip(values, numbers(published), strict=True)
        equal = all(decimals(value * scale, text) == text for value, text in pairs)
        assert equal != any(cause), names


def numbers(cell: str) -> list[str]:
    """Return the numbers of a cell, of which some are in percent."""
    return [word for word in cell.split() if word != "%"]


def decimals(value: float, like: str) -> str:
    """Round a value to the decimals of a number, written as the page does."""
    return format(value, f".{len(like.partition('.')[2])}f").removeprefix("0") or "0"


def test_every_table_is_read() -> None:
    text = PAGE.read_text("utf-8")
    assert (
        len(PROOF.findall(text))
        == text.count("```sh")
        == len(re.findall(r"^\|(?:---\|)+$", text, re.M))
    )
