"""Invariants of the scanner of YOLO lines: it equals the fallback reader bitwise, or falls back."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.formats.test_voc_scan import gaps, mutated, numbers
from tests.formats.voc_oracle import check_lines

fractions = st.one_of(
    st.floats(0, 1).map(lambda value: f"{value:.6g}"),
    st.floats(0, 1).map(repr),
    st.sampled_from(["0", "1", "-0.0", "0.0", ".5", "1.", "1e-5", "-0.01"]),
    numbers,
)


@st.composite
def files(draw: st.DrawFn, scored: bool) -> bytes:
    """Return lines of boxes and polygons, valid except for numbers that are too large."""
    text = ""
    for _ in range(draw(st.integers(0, 4))):
        count = draw(st.sampled_from([4, 4, 6, 8, 10, 20])) + scored
        columns = [str(draw(st.integers(0, 90))), *(draw(fractions) for _ in range(count))]
        margin = draw(st.sampled_from(["", " ", "\t"]))
        end = draw(st.sampled_from(["\n", "\r\n", "\n\n", " \n \n"]))
        text += margin + draw(gaps).join(columns) + end
    return (text.rstrip("\r\n") if draw(st.booleans()) else text).encode()


@given(files(scored=False))
@example(b"")
@example(b"0 0.0 -0.0 -0.0 0.0 0 -0 -0 0")
@example(b"0 .5 .5 .2 .2\n")
def test_labels(content: bytes) -> None:
    check_lines(content, 4, "fractions", None)


@given(files(scored=True))
@example(b"0 .1 .2 .3 .1 .2 .4 .9")
def test_predictions(content: bytes) -> None:
    check_lines(content, 5, "fractions", None)


FORMS = [(4, (13,)), (4, (4, 13)), (8, (8,)), (8, (4, 8)), (10, (10,))]
"""Coordinates kept and coordinates per line: keypoints, corners, polygons."""


@st.composite
def rows_of(draw: st.DrawFn) -> tuple[bytes, int, tuple[int, ...]]:
    """Return lines of a form, some of another width, the expected values, and the form."""
    kept, counts = draw(st.sampled_from(FORMS))
    scored = draw(st.booleans())
    text = ""
    for _ in range(draw(st.integers(0, 4))):
        odd = draw(st.sampled_from([0] * 9 + [-1, 1]))
        count = draw(st.sampled_from(counts)) + scored + odd
        text += " ".join([str(draw(st.integers(0, 9))), *(draw(fractions) for _ in range(count))])
        text += "\n"
    return text.encode(), kept + scored, counts


@given(rows_of())
@example((b"0 .5 .5 .2 .2 .1 .2 .3 .4 .5 .6 .7 .8 .9\n", 4, (13,)))
@example((b"0 .5 .5 .2 .2 .9\n1 .1 .2 .3 .4 .5 .6 .7 .8 .9", 9, (4, 8)))
def test_rows_of_a_form(rows: tuple[bytes, int, tuple[int, ...]]) -> None:
    content, width, counts = rows
    check_lines(content, width, "fractions", None, counts)


@given(mutated(files(scored=False)))
def test_mutated_labels(content: bytes) -> None:
    check_lines(content, 4, "fractions", None)


@given(mutated(files(scored=True)))
def test_mutated_predictions(content: bytes) -> None:
    check_lines(content, 5, "fractions", None)


REGULAR = [
    (4, b"0 .5 .5 .2 .2\n1 0.25 0.5 0.125 1\n"),
    (4, b"0 .1 .2 .3 .1 .2 .4\n"),
    (5, b"0 .5 .5 .2 .2 .9\r\n"),
    (5, b"7 .1 .2 .3 .1 .2 .4 .9"),
    (5, b"12\t.1 .2 .3 .1 .2 .4 .5 .6 1e-3 \n\n"),
]
IRREGULAR = [
    (4, b"0 .5 .5 .2\n"),
    (4, b"0 .5 .5 .2 .2 .9\n"),
    (4, b"0 .1 .2 .3 .1 .2 .4 .5\n"),
    (5, b"0 .5 .5 .2 .2\n"),
    (5, b"0 .5 .5 .2 .2 .9 7\n"),
    (5, b"0 .5 .5 .2 .2 nan\n"),
    (4, b"0 .5 .5 .2 .2\r"),
    (4, b"0 .5 .5 .2.2 .3\n"),
]


@pytest.mark.parametrize(("width", "content"), REGULAR)
def test_regular_lines_are_scanned(width: int, content: bytes) -> None:
    assert check_lines(content, width, "fractions", None)


def test_rows_of_a_form_are_scanned() -> None:
    pose = b"0 .5 .5 .2 .2 .1 .2 2 .3 .4 0 .5 .6 1\n"
    assert check_lines(pose * 3, 4, "fractions", None, (13,))
    assert check_lines(b"0 .5 .5 .2 .2 .9\n", 5, "fractions", None, (4, 13))
    assert check_lines(
        b"0 .5 .5 .2 .2 .9\n0 .1 .2 .3 .4 .5 .6 .7 .8 .9", 9, "fractions", None, (4, 8)
    )
    assert not check_lines(pose, 4, "fractions", None, (12,))
    assert not check_lines(pose, 4, "fractions", None, (4, 8))


@pytest.mark.parametrize(("width", "content"), IRREGULAR)
def test_lines_left_to_the_fallback_reader(width: int, content: bytes) -> None:
    assert not check_lines(content, width, "fractions", None)
