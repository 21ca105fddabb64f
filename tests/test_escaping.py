import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.escaping import escape, escape_lines, fold, widest, width


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("traffic light", "traffic light"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc\rd", "a\\x0ab\\x09c\\x0dd"),
        ("\x00\x7f\x85\x9b", "\\x00\\x7f\\x85\\x9b"),
        ("\u202egod", "\\u202egod"),
        ("do\u200bg", "do\\u200bg"),
        ("\ufeffdog", "\\ufeffdog"),
        ("\u2028", "\\u2028"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("\u3164", "\\u3164"),
        ("a\ufe0f", "a\\ufe0f"),
        ("a\u00a0b", "a\u00a0b"),
        ("猫", "猫"),
        ("Ωmega é", "Ωmega é"),
        (7, "7"),
        # Commands to GitHub, Azure and TeamCity.
        (" ::error::x", " \\x3a:error::x"),
        ("a ::error::x", "a ::error::x"),
        ("##[group]", "#\\x23[group]"),
        ("a ##vso[x] b ##vso[y]", "a #\\x23vso[x] b #\\x23vso[y]"),
        ("##teamcity[x]", "#\\x23teamcity[x]"),
        ("## a heading", "## a heading"),
    ],
)
def test_names_are_escaped(name: object, shown: str) -> None:
    assert escape(name) == shown


@given(st.text())
def test_printable_text_is_kept_and_control_characters_are_escaped(text: str) -> None:
    shown = escape(text)
    assert escape(shown) == shown
    assert all(ord(c) >= 0x20 and not 0x7F <= ord(c) < 0xA0 for c in shown)


def test_line_breaks_are_kept() -> None:
    assert escape_lines("one\ntwo\x1b") == "one\ntwo\\x1b"


@pytest.mark.parametrize(
    ("text", "columns"),
    [("", 0), ("cat", 3), ("猫", 2), ("\uff43\uff41\uff54", 6), ("e\u0301", 1), ("é\u2013…─", 4)],
)
def test_width_equals_that_on_a_terminal(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize(
    ("texts", "columns"), [([], 0), (["ab", "a"], 2), (["猫猫", "abc"], 4), (["e\u0301", ""], 1)]
)
def test_width_of_the_widest_text(texts: list[str], columns: int) -> None:
    assert widest(texts) == columns


@pytest.mark.parametrize(
    ("text", "limit", "lines"),
    [
        ("cat", 8, ["cat"]),
        ("traffic light", 10, ["traffic ", "light"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("a bcdefghijk", 8, ["a bcdefg", "hijk"]),  # a break so early would waste the line
        ("猫猫猫", 5, ["猫猫", "猫"]),
        ("猫猫", 1, ["猫", "猫"]),  # no narrower than its widest character
        ("", 4, [""]),
    ],
)
def test_folding(text: str, limit: int, lines: list[str]) -> None:
    assert fold(text, limit) == lines


@given(st.text(), st.integers(2, 30))
def test_folding_loses_nothing_and_fits(text: str, limit: int) -> None:
    lines = fold(text, limit)
    assert "".join(lines) == text
    assert all(width(line) <= limit for line in lines)
