"""docs/walkthroughs: the blocks of each page run in order, in the folder that the page names."""

import re
import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.test_examples import check_example

PAGES = sorted((ROOT / "docs" / "walkthroughs").glob("*.md"))
BLOCK = re.compile(r"^```(console|toml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FOLDER = re.compile(r"`fixtures/([\w/-]+)`")
MAX_WORDS = 400


def test_all_are_there() -> None:
    assert [page.stem for page in PAGES] == ["labelling-tools"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_does_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page.read_text("utf-8")
    (name,) = FOLDER.findall(text)
    folder = tmp_path / "example"
    shutil.copytree(ROOT / "fixtures" / name, folder)
    monkeypatch.chdir(folder)
    for kind, block in BLOCK.findall(text):
        if kind == "toml":
            (folder / "detap.toml").write_text(block)
        else:
            command, _, shown = block.partition("\n")
            check_example(command.removeprefix("$ "), shown, folder)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_walkthrough_is_short(page: Path) -> None:
    assert len(page.read_text("utf-8").split()) <= MAX_WORDS
