"""`detap eval` reproduces the numbers worked by hand."""

import contextlib
import io
import json
import math
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from detap.cli import main
from tests.conftest import ROOT
from tests.golden.worked import Worked, calculate, number_of, read

FIXTURES = ROOT / "fixtures"
NUMBERS = read(FIXTURES)


def _run_of(row: Worked) -> tuple[str, str, tuple[str, ...]]:
    return row.case, row.files, row.options


RUNS = [list(rows) for _, rows in groupby(sorted(NUMBERS, key=_run_of), key=_run_of)]


@cache
def _report(arguments: tuple[str, ...]) -> dict[str, Any]:
    """Return the report of a run in this process."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["eval", *arguments, "--output-format", "json"])
    assert status == 0, err.getvalue()
    out.flush()
    out.seek(0)
    return json.loads(out.read())  # type: ignore[no-any-return]


def _name_of(rows: list[Worked]) -> str:
    return " ".join([rows[0].case, rows[0].files, *rows[0].options])


@pytest.mark.parametrize("rows", RUNS, ids=_name_of)
def test_detap_eval_gives_the_numbers_worked_by_hand(rows: list[Worked]) -> None:
    report = _report(tuple(rows[0].arguments(FIXTURES)))
    actual = {row.number: number_of(report, row.number) for row in rows}
    expected = {row.number: row.expected for row in rows}
    undefined = {number for number, value in expected.items() if value is None}
    assert {number for number, value in actual.items() if value is None} == undefined
    for number in expected.keys() - undefined:
        # pycocotools' guard of 2**-52 in the precision is all that may part them.
        assert actual[number] == pytest.approx(expected[number], abs=1e-12, rel=0), number


@pytest.mark.parametrize("row", NUMBERS, ids=lambda row: f"{row.case} {row.files} {row.number}")
def test_expressions_equal_their_rounded_values(row: Worked) -> None:
    if row.expected is not None and row.worked:
        assert math.isclose(calculate(row.worked), float(row.value), abs_tol=5e-7)


def test_every_fixture_has_a_why_md() -> None:
    folders = {folder.name for folder in FIXTURES.iterdir() if (folder / "coco").exists()}
    assert folders <= {row.case for row in NUMBERS}
    assert folders


def test_precision_and_recall_at_every_rank(tmp_path: Path) -> None:
    """The table of ranking-10101, from the exported curve: precision, recall, and the envelope."""
    row = Worked("ranking-10101", "voc", (), "", "", "0")
    curves = tmp_path / "curves.json"
    _report((*row.arguments(FIXTURES), "--curves", str(curves)))
    (curve,) = json.loads(curves.read_text("utf-8"))["curves"]
    assert curve["precision"] == pytest.approx([1, 1 / 2, 2 / 3, 2 / 4, 3 / 5])
    assert curve["recall"] == pytest.approx([1 / 3, 1 / 3, 2 / 3, 2 / 3, 3 / 3])
    assert curve["interpolated_recall"] == pytest.approx([1 / 3, 2 / 3, 3 / 3])
    assert curve["interpolated_precision"] == pytest.approx([1, 2 / 3, 3 / 5])


def test_precision_at_the_eleven_levels(tmp_path: Path) -> None:
    row = Worked("ranking-10101", "coco", ("--protocol", "voc2007"), "", "", "0")
    curves = tmp_path / "curves.json"
    _report((*row.arguments(FIXTURES), "--curves", str(curves)))
    (curve,) = json.loads(curves.read_text("utf-8"))["curves"]
    assert curve["interpolated_recall"] == pytest.approx([k / 10 for k in range(11)])
    assert curve["interpolated_precision"] == pytest.approx([1] * 4 + [2 / 3] * 3 + [0.6] * 4)
