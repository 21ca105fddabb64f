"""The pictures of the terminal show what the commands print today."""

import re
from html import unescape
from pathlib import Path

import pytest

from docs.pictures import FOLDER, PICTURES, drawn


def words(picture: str) -> str:
    """Return the text of a picture, without the blanks that lay it out."""
    return "".join(unescape(re.sub(r"<[^>]+>", "", picture)).split())


def text_of(picture: str) -> str:
    return words(picture.partition("</style>")[2])


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_of_today(name: str) -> None:
    kept = (FOLDER / f"{name}.svg").read_text("utf-8")
    assert text_of(kept) == text_of(drawn(PICTURES[name])), "run python -m docs.pictures"
    assert words(PICTURES[name]) in text_of(kept)


def test_no_picture_is_of_nothing() -> None:
    assert {path.stem for path in Path(FOLDER).glob("*.svg")} == set(PICTURES)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_needs_nothing_from_elsewhere(name: str) -> None:
    text = (FOLDER / f"{name}.svg").read_text("utf-8")
    assert "@font-face" not in text
    assert not re.search(r"""(?:href|src|url)\s*[=(]\s*["']?https?:""", text)
