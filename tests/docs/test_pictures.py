"""Terminal pictures of the docs show the current output of the commands."""

import re
from html import unescape
from pathlib import Path

import pytest

from docs.pictures import FOLDER, PICTURES, drawn


def words(picture: str) -> str:
    """Return the text of a picture without layout blanks."""
    return "".join(unescape(re.sub(r"<[^>]+>", "", picture)).split())


def text_of(picture: str) -> str:
    return words(picture.partition("</style>")[2])


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_up_to_date(name: str) -> None:
    kept = (FOLDER / f"{name}.svg").read_text("utf-8")
    assert text_of(kept) == text_of(drawn(PICTURES[name])), "run python -m docs.pictures"
    assert words(PICTURES[name]) in text_of(kept)


def test_every_picture_has_a_command() -> None:
    assert {path.stem for path in Path(FOLDER).glob("*.svg")} == set(PICTURES)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_self_contained(name: str) -> None:
    text = (FOLDER / f"{name}.svg").read_text("utf-8")
    assert "@font-face" not in text
    assert not re.search(r"""(?:href|src|url)\s*[=(]\s*["']?https?:""", text)
