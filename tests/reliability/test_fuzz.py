"""A short run of the fuzzer, and former findings."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from detap.formats.coco.results import ResultsFile
from fuzz import targets
from fuzz.__main__ import run
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


def test_a_differing_reader_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    valid = SEEDS["coco-results"][0]
    real = ResultsFile.columns

    def off_by_an_ulp(*given: Any) -> Any:
        table = real(*given)
        return replace(table, score=np.array([0.9000000000000001, *table.score[1:]]))

    monkeypatch.setattr(ResultsFile, "columns", off_by_an_ulp)
    with pytest.raises(Disagreement, match="reads other values"):
        targets.coco_results(valid)


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
