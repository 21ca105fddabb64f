"""Measurements of processes and their statistics."""

import sys
from collections.abc import Sequence

import pytest

from benchmarks import measure
from benchmarks.measure import CommandError, Pairs, Run
from tests.conftest import ROOT

PYTHON = sys.executable


def cost(wall: float, processor: float = 0.0, peak: int = 1) -> Run:
    return Run(wall, processor, 0.0, peak)


def test_a_whole_process_is_timed() -> None:
    spent, text = measure.run([PYTHON, "-c", "import time; time.sleep(0.2); print('done')"])
    assert text == "done\n"
    assert 0.2 < spent.wall < 30
    assert 0 < spent.processor < spent.wall + 0.1
    assert 2**20 < spent.peak < 2**30


def test_peak_memory_is_that_of_the_process() -> None:
    # A child begins with the peak of its parent, and who runs tests may have held anything.
    small = (
        "import sys; from benchmarks import measure; "
        "spent, _ = measure.run([sys.executable, '-c', \"b = bytearray(b'x') * 400_000_000\"]); "
        "print(spent.peak)"
    )
    _, text = measure.run([PYTHON, "-c", small], {"PYTHONPATH": str(ROOT)})
    assert 400_000_000 < int(text) < 500_000_000


def test_a_failing_command_is_an_error() -> None:
    with pytest.raises(CommandError, match=r"status 3\nout of order"):
        measure.run(
            [PYTHON, "-c", "import sys; print('out of order', file=sys.stderr); sys.exit(3)"]
        )


def test_pairs_alternate_and_swap_order() -> None:
    order: list[str] = []

    def timed(command: Sequence[str]) -> Run:
        order.append(command[0])
        return cost(len(order))

    pairs = measure.alternate(["we"], ["they"], 3, measure=timed)
    assert order == ["we", "they", "they", "we", "we", "they"]
    assert [entry.wall for entry in pairs.ours] == [1, 4, 5]
    assert [entry.wall for entry in pairs.theirs] == [2, 3, 6]
    assert pairs.ratios() == [1 / 2, 4 / 3, 5 / 6]


def test_medians_and_ranges_are_computed_over_pairs() -> None:
    ours = [cost(1.0, 2.0, 10), cost(3.0, 2.0, 30), cost(2.0, 4.0, 20)]
    theirs = [cost(4.0, 4.0, 40), cost(4.0, 8.0, 40), cost(4.0, 4.0, 40)]
    kept = measure.comparison(Pairs(ours, theirs))
    assert kept["ours"] == {
        "runs": 3,
        "wall": 2.0,
        "wall_low": 1.0,
        "wall_high": 3.0,
        "processor": 2.0,
        "peak": 20,
    }
    assert kept["ratio"] == {"low": 0.25, "median": 0.5, "high": 0.75}
    assert kept["processor_ratio"] == {"low": 0.25, "median": 0.5, "high": 1.0}
    assert kept["memory_ratio"] == {"low": 0.25, "median": 0.5, "high": 0.75}
    assert kept["samples"]["ours"][1]["wall"] == 3.0
