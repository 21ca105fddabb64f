"""`detap rank` gives the hand-computed metrics of fixtures/ranking-*/why.md."""

import json
import shlex
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from detap.cli import main
from tests.conftest import ROOT
from tests.golden.worked import calculate, number_of, table_rows
from tests.ranking.cases import save

FIXTURES = ROOT / "fixtures"
COLUMNS = ["command", "number", "worked", "value"]


class Worked(NamedTuple):
    """A hand-computed metric."""

    case: str
    command: str
    number: str
    worked: str
    value: str


NUMBERS = [Worked(case, *cells) for case, cells in table_rows(FIXTURES, "ranking-*", COLUMNS)]
RUNS = [list(rows) for _, rows in groupby(sorted(NUMBERS), key=lambda row: row[:2])]


def arguments(case: str, command: str, folder: Path) -> list[str]:
    """Return a command with file paths; .npz files are created from JSON arrays."""
    words = shlex.split(command)
    for index, word in enumerate(words):
        source = FIXTURES / case / word
        if word.endswith(".npz"):
            arrays = json.loads(source.with_suffix(".json").read_text())
            save(folder / word, **{key: np.array(rows) for key, rows in arrays.items()})
            words[index] = str(folder / word)
        elif source.exists():
            words[index] = str(source)
    return words


@pytest.mark.parametrize("rows", RUNS, ids=lambda rows: f"{rows[0].case} {rows[0].command}")
def test_the_command_gives_the_hand_computed_metrics(
    rows: list[Worked], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = arguments(rows[0].case, rows[0].command, tmp_path)
    out = tmp_path / "out.json"
    assert main(["rank", *words, "-o", str(out)]) == 0, capsys.readouterr().err
    report = json.loads(out.read_text())
    for row in rows:
        value = number_of(report, row.number)
        if row.value == "undefined":
            assert value is None, row
            continue
        assert value == pytest.approx(calculate(row.worked), abs=1e-11), row
        assert value == pytest.approx(float(row.value), abs=5.1e-7), row


def test_all_worked_examples_of_the_specification_are_tested() -> None:
    values = {row.value for row in NUMBERS}
    for value in (
        *("0.755556", "0.763636", "0.756436", "0.333333", "0.5", "1", "0.166667", "0.458333"),
        *("0.361111", "0.444444", "0.594444", "0.602646", "0.6", "0.375"),
    ):
        assert value in values


def test_precision_and_recall_over_ranks(tmp_path: Path) -> None:
    case, out = FIXTURES / "ranking-list", tmp_path / "curve.csv"
    given = ["--run", str(case / "run.txt"), "--qrels", str(case / "qrels.txt")]
    assert main(["rank", "retrieval", *given, "--curves", str(out), "-q"]) == 0
    lines = [line.split(",") for line in out.read_text().splitlines()]
    assert lines[0] == ["curve", "rank", "recall", "precision"]
    ranks = [tuple(map(float, line[2:])) for line in lines if line[0] == "ranks"]
    expected = [(1 / 3, 1), (1 / 3, 1 / 2), (2 / 3, 2 / 3), (2 / 3, 2 / 4), (1, 3 / 5)]
    assert ranks == [pytest.approx(pair) for pair in expected]
    levels = [tuple(map(float, line[2:])) for line in lines if line[0] == "levels"]
    precision = [1] * 4 + [2 / 3] * 3 + [3 / 5] * 4
    assert levels == [pytest.approx((r / 10, p)) for r, p in enumerate(precision)]
    points = tmp_path / "curve.json"
    assert main(["rank", "retrieval", *given, "--curves", str(points), "-q"]) == 0
    points_by_rank = json.loads(points.read_text())["points"]
    assert [point["rank"] for point in points_by_rank] == [1, 2, 3, 4, 5, *[None] * 11]
    assert [(point["recall"], point["precision"]) for point in points_by_rank[:5]] == ranks


@pytest.mark.parametrize("key", ["ap", "smoothap", "supap", "quantised_ap_nq20"])
def test_the_loss_case_of_the_specification(key: str, loss_report: dict[str, Any]) -> None:
    names = {
        "ap": "ap_loss",
        "smoothap": "smooth_ap_loss",
        "supap": "sup_ap_loss",
        "quantised_ap_nq20": "quantized_ap_loss",
    }
    values = [1 - row[names[key]] for row in loss_report["rows"]]
    assert values == pytest.approx(loss_report["expected"][key], abs=1e-9)


def test_the_loss_case_of_the_specification_ties_and_calibration(
    loss_report: dict[str, Any],
) -> None:
    rows, expected = loss_report["rows"], loss_report["expected"]
    values = [1 - row["quantized_tie_ap_loss"] for row in rows]
    assert values == pytest.approx(expected["quantised_tie_ap_nq20"], abs=1e-9)
    values = [row["calibration_loss"] for row in rows]
    assert values == pytest.approx(expected["calibration"], abs=1e-9)


@pytest.fixture
def loss_report(
    real_data: Path, tmp_path: Path, convert: Callable[[Path, Path], dict[str, Any]]
) -> dict[str, Any]:
    """Return the rows of the specification's loss case and their expected values."""
    source = real_data.parent / "spec" / "loss_case.json"
    if not source.is_file():
        pytest.skip(f"the specification is absent: no file {source}")
    return convert(source, tmp_path)


@pytest.fixture
def convert() -> Callable[[Path, Path], dict[str, Any]]:
    def run(source: Path, folder: Path) -> dict[str, Any]:
        case = json.loads(source.read_text())
        arrays = {"scores": np.array(case["scores"]), "relevance": np.array(case["labels"])}
        save(folder / "case.npz", **arrays)
        out = folder / "out.json"
        given = ["--npz", str(folder / "case.npz"), "--losses", "-o", str(out), "-q"]
        assert main(["rank", "retrieval", *given]) == 0
        return {"rows": json.loads(out.read_text())["queries"], "expected": case["expected"]}

    return run
