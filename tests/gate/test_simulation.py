"""The gate is wrong as often as its confidence says, within what chance allows.

Each bound is a quantile of the binomial distribution: were the rate exactly as expected, one run
in a thousand would be beyond it. The seeds are fixed, so that the tests do not fail by chance;
`tests/gate/simulation.py` runs more pairs.
"""

from math import comb

import pytest

from tests.gate.simulation import EVEN, GOOD, RARE, WORSE, World, trials, true_drop

PAIRS, RESAMPLES = 200, 200


def most(rate: float, count: int) -> int:
    """Return the number that a binomial count exceeds in at most one case of a thousand."""
    below = 0.0
    for number in range(count + 1):
        below += comb(count, number) * rate**number * (1 - rate) ** (count - number)
        if below >= 0.999:
            return number
    return count


def test_the_bound_is_that_of_the_binomial_distribution() -> None:
    # Of 10 fair coins, all heads has the chance 1/1024 < 1/1000, nine or more 11/1024.
    assert most(0.5, 10) == 9


@pytest.mark.parametrize("world", [EVEN, RARE], ids=["even classes", "rare classes"])
def test_false_alarms_over_200_null_pairs(world: World) -> None:
    found = list(trials(world, (GOOD, GOOD), range(PAIRS), resamples=RESAMPLES))
    failed = sum(entry.low > 0 for entry in found)
    excluded = failed + sum(entry.high < 0 for entry in found)
    assert failed <= most(0.025, PAIRS)  # the gate: only a drop fails
    assert excluded <= most(0.05, PAIRS)  # the interval, on both sides
    assert excluded >= 1  # intervals that never exclude 0 would be too wide


def test_the_interval_covers_a_real_drop_as_often_as_it_says() -> None:
    true = true_drop(EVEN, (GOOD, WORSE))
    found = list(trials(EVEN, (GOOD, WORSE), range(PAIRS), resamples=RESAMPLES))
    missed = sum(not entry.low <= true <= entry.high for entry in found)
    assert missed <= most(0.05, PAIRS)
    assert true > 0.1
    assert all(entry.low > 0 for entry in found)  # a drop of this size is always found
