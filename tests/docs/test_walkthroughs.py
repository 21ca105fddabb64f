"""docs/walkthroughs: the blocks of each page run in order, in the folder that the page names."""

import contextlib
import io
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.test_examples import check_example
from tests.processes import finished

PAGES = sorted((ROOT / "docs" / "walkthroughs").glob("*.md"))
BLOCK = re.compile(r"^```(console|python|sh|toml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FOLDER = re.compile(r"`fixtures/([\w/-]+)`")
MAX_WORDS = 400


def test_all_are_there() -> None:
    names = ["labelling-tools", "retrieval", "training", "voc"]
    assert [page.stem for page in PAGES] == names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_does_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jinja2")
    text = page.read_text("utf-8")
    (name,) = FOLDER.findall(text)
    folder = tmp_path / "example"
    shutil.copytree(ROOT / "fixtures" / name, folder)
    monkeypatch.chdir(folder)
    names: dict[str, object] = {"__name__": "example"}
    for kind, block in BLOCK.findall(text):
        if kind == "toml":
            (folder / "detap.toml").write_text(block)
        elif kind == "python":
            run_python(block, names)
        elif kind == "sh":
            for line in block.splitlines():
                run_line(line, folder)
        else:
            command, _, shown = block.partition("\n")
            check_example(command.removeprefix("$ "), shown, folder)


def run_line(line: str, folder: Path) -> None:
    """Run a command of detap, whose output the page leaves out."""
    command, *words = shlex.split(line)
    if command == "detap":
        run = [sys.executable, "-m", "detap", *words]
        finished(run, cwd=folder)


def run_python(code: str, names: dict[str, object]) -> None:
    """Run a block; a comment after a print has the beginning of its line."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "example", "exec"), names)
    expected = re.findall(r"print\(.*\)  # (.+)", code)
    if expected:
        printed = out.getvalue().splitlines()
        assert [line[: len(e)] for line, e in zip(printed, expected, strict=True)] == expected


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_walkthrough_is_short(page: Path) -> None:
    assert len(page.read_text("utf-8").split()) <= MAX_WORDS
