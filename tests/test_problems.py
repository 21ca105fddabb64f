"""Problems of an input: alike ones are one line with a count."""

import pytest

from detap.errors import InputError
from detap.formats.json.document import RecordProblems
from detap.io.problems import Problems
from tests.raised import raised


def said(problems: Problems) -> list[str]:
    return str(raised(InputError, problems.raise_any)).split("\n")


def test_three_alike_have_a_line_each() -> None:
    problems = Problems(20, "a.json")
    for row in range(3):
        problems.add_here(f"[{row}]", f"score is {row}.5, expected text", "correct it")
    assert said(problems) == [
        f"a.json: [{row}]: score is {row}.5, expected text; correct it" for row in range(3)
    ]


@pytest.mark.parametrize(
    "values", [["1", "-2.5e3", ".5", "4"], ['"a"', '"b \\" c"', '""', '"1"'], ["'a'", "'b'"] * 2]
)
def test_more_are_one_line(values: list[str]) -> None:
    """Messages are alike if they differ in numbers and quoted texts only."""
    problems = Problems(20, "a.json")
    for row, value in enumerate(values):
        problems.add_here(f"[{row}]", f"score is {value}, expected more")
    problems.add_here("[9]", "x1 is missing")
    problems.add_here("[9]", "x2 is missing")
    assert said(problems) == [
        f"a.json: 4 records ([0], [1], [2], ...): score is {values[0]}, expected more",
        "a.json: [9]: x1 is missing",
        "a.json: [9]: x2 is missing",
    ]


def test_lines_of_one_file_and_of_several() -> None:
    problems = Problems(20)
    for line in range(1, 6):
        problems.add("a.txt", f"line {line}", f"has {line} columns")
    assert said(problems) == ["a.txt: 5 lines (1, 2, 3, ...): has 1 columns"]
    problems.add("b.txt", "line 1", "has 9 columns")
    assert said(problems) == ["a.txt: line 1: has 1 columns (6 times, in several files)"]


def test_kinds_beyond_the_limit_are_counted() -> None:
    problems = Problems(2, "a.json")
    for name in "abcd":
        for row in range(5):
            problems.add_here(f"[{row}]", f"{name} is {row}")
    assert said(problems) == [
        "a.json: 5 records ([0], [1], [2], ...): a is 0",
        "a.json: 5 records ([0], [1], [2], ...): b is 0",
        "... and 10 more",
    ]


def test_the_first_records_are_named_in_whatever_order_they_are_added() -> None:
    problems = RecordProblems(20, "a.json")
    for row in (7, 3, 5, 1, 9):
        problems.at(row, f"[{row}]", f"score is {row}")
    problems.at(0, "[0]", "is null")
    assert said(problems) == [
        "a.json: [0]: is null",
        "a.json: 5 records ([1], [3], [5], ...): score is 1",
    ]


def test_problems_of_another_list_keep_their_count() -> None:
    """That list has room for one kind of problem; the others are counted only."""
    one, other = Problems(20, "a.txt"), Problems(1, "a.txt")
    for row in range(9):
        other.add_here(f"line {row}", f"has {row} columns")
    other.add_here("line 9", "is empty")
    one.take(other)
    assert said(one) == ["a.txt: 9 lines (0, 1, 2, ...): has 0 columns", "... and 1 more"]
