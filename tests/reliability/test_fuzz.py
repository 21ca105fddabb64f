"""A short run of the fuzzer, and former findings."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from detap.formats.coco.results import ResultsFile
from fuzz import targets
from fuzz.__main__ import run
from fuzz.mutate import Mutator
from fuzz.seeds import SEEDS
from fuzz.targets import TARGETS, Disagreement


@pytest.mark.parametrize("target", TARGETS)
def test_seeds_are_valid(target: str) -> None:
    assert set(TARGETS[target](SEEDS[target])) == {"valid"}


@pytest.mark.parametrize("target", TARGETS)
def test_mutated_inputs_are_handled(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    counts, wrong = run(target, 2_000, seed=20)
    assert wrong == 0, capsys.readouterr().out
    # Enough of both, or the mutations would test little.
    assert counts["valid"] > 50
    assert counts["refused"] > 500


def test_mutations_depend_only_on_the_seed() -> None:
    one, other = (Mutator("coco-truth", 3) for _ in range(2))
    assert [one.next() for _ in range(50)] == [other.next() for _ in range(50)]
    assert Mutator("coco-truth", 4).next() != Mutator("coco-truth", 3).next()


def test_a_differing_reader_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    valid = SEEDS["coco-results"][0]
    real = ResultsFile.columns

    def off_by_an_ulp(*given: Any) -> Any:
        table = real(*given)
        return replace(table, score=np.array([0.9000000000000001, *table.score[1:]]))

    monkeypatch.setattr(ResultsFile, "columns", off_by_an_ulp)
    with pytest.raises(Disagreement, match="reads other values"):
        targets.coco_results(valid)


def test_a_crashing_reader_is_detected(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def crash(*_: Any) -> Any:
        raise RecursionError("deep")

    monkeypatch.setattr(targets, "read_annotation", crash)
    _, wrong = run("voc-xml", 5, seed=1)
    assert wrong == 5
    assert "RecursionError: deep" in capsys.readouterr().out


# --- former findings

FOUND = {
    # The reader did not check for NaN among the categories of a results object.
    "nan-among-categories": (
        "coco-results",
        b'{"annotations": [], "categories": [{"id": NaN, "name": "cat"}]}',
        "refused",
    ),
    "infinity-among-categories": (
        "coco-results",
        b'{"annotations": [], "categories": [{"id": -Infinity, "name": "cat"}]}',
        "refused",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_former_findings(name: str) -> None:
    target, data, expected = FOUND[name]
    assert TARGETS[target]([data]) == [expected]
