"""The same bytes for the same input, in any environment."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.processes import finished
from tests.reliability import kills
from tests.reliability.runner import ROOT
from tests.reliability.voc_cases import Tree, object_xml, xml

SHUFFLED = """
import os, random, sys
chance = random.Random(int(sys.argv.pop(1)))
scandir, listdir = os.scandir, os.listdir
class Entries(list):
    __enter__ = lambda self: self
    __exit__ = lambda *_: None
    close = lambda self: None
def shuffled(function, kind):
    def call(*given):
        entries = kind(function(*given))
        chance.shuffle(entries)
        return entries
    return call
os.scandir, os.listdir = shuffled(scandir, Entries), shuffled(listdir, list)
from detap.__main__ import main
main()
"""


def locales() -> list[str]:
    listed = finished(["locale", "-a"], None).stdout
    names = ("C", "C.utf8", "tr_TR.utf8", "de_DE.utf8")
    return [name for name in names if name in listed.split()]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    kills.write_inputs(folder, classes=40)
    names = ["I", "i", "\u0130", "\u0131", "\u00e9", "z"]
    files = {
        f"gt/{name}{number}.xml": xml(object_xml(name, (10 * number + 1, 5, 10 * number + 9, 40)))
        for number, name in enumerate(names * 2)
    }
    files |= {
        f"dt/{name}{number}.txt": f"{name} 0.{9 - number % 3} {10 * number + 1} 5 "
        f"{10 * number + 9} 40\n"
        for number, name in enumerate(names * 2)
    }
    usual = ("gt/a.xml", "gt/b.xml", "dt/det_test_cat.txt", "dt/det_test_dog.txt")
    Tree(files | dict.fromkeys(usual))(folder)
    return folder


def line(kind: str, inputs: Path) -> list[str]:
    if kind == "coco":
        return ["eval", "--gt", str(inputs / "gt.json"), "--dt", str(inputs / "dt.json")]
    return ["eval", "--format", "voc", "--gt", str(inputs / "gt"), "--dt", str(inputs / "dt")]


def report(
    kind: str,
    inputs: Path,
    *more: str,
    environment: dict[str, str] | None = None,
    cwd: Path | None = None,
    program: tuple[str, ...] = ("-m", "detap"),
) -> bytes:
    done: Any = finished(
        [sys.executable, *program, *line(kind, inputs), "--output-format", "json", "-q", *more],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | (environment or {}),
        cwd=cwd or inputs,
        text=False,
    )
    assert done.stderr == b""
    assert json.loads(done.stdout)["classes"]
    out: bytes = done.stdout
    return out


@pytest.fixture(scope="module", params=["coco", "voc"])
def first(request: pytest.FixtureRequest, inputs: Path) -> tuple[str, bytes]:
    return request.param, report(request.param, inputs)


ENVIRONMENTS = (
    *({"PYTHONHASHSEED": seed} for seed in ("0", "1", "4294967295")),
    *({"TZ": zone} for zone in ("UTC", "Asia/Kolkata", "America/St_Johns")),
    *({"COLUMNS": columns, "TERM": "dumb"} for columns in ("1", "40", "10000")),
)


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=str)
def test_hash_seeds_time_zones_and_widths_of_the_terminal(
    inputs: Path, first: tuple[str, bytes], environment: dict[str, str]
) -> None:
    kind, expected = first
    assert report(kind, inputs, environment=environment) == expected


@pytest.mark.parametrize("threads", ["1", "2", "8"])
def test_threads(inputs: Path, first: tuple[str, bytes], threads: str) -> None:
    kind, expected = first
    assert report(kind, inputs, "--threads", threads) == expected


@pytest.mark.parametrize("name", locales())
def test_locales(inputs: Path, first: tuple[str, bytes], name: str) -> None:
    kind, expected = first
    for more in ({}, {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        if more and kind == "voc" and name == "C":
            continue  # names beyond ASCII then are other names to the system itself
        environment = {"LC_ALL": name, "LANG": name, **more}
        assert report(kind, inputs, environment=environment) == expected


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_order_of_folder_entries(inputs: Path, first: tuple[str, bytes], seed: str) -> None:
    kind, expected = first
    assert report(kind, inputs, program=("-c", SHUFFLED, seed)) == expected


def test_working_folders_and_homes(inputs: Path, first: tuple[str, bytes], tmp_path: Path) -> None:
    kind, expected = first
    home = {"HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent", "TMPDIR": "/nonexistent"}
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    assert report(kind, inputs, environment=home, cwd=closed) == expected
    assert list(closed.iterdir()) == []
