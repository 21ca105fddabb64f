"""The error rate of the gate agrees with its confidence, within chance.

Each bound is a quantile of the binomial distribution: at the expected rate, one run in a thousand
would exceed it. The seeds are fixed, so the tests do not fail by chance;
`benchmarks/simulation.py` and `benchmarks/studies.py` run more pairs.
"""

from math import comb

import pytest

from benchmarks.simulation import EVEN, GOOD, RARE, WORSE, World, trials, true_drop
from benchmarks.studies import few, near_perfect
from tests.depth import sampled

PAIRS, RESAMPLES = sampled(200, least=100), 200


def most(rate: float, count: int) -> int:
    """Return the bound that a binomial count exceeds with a probability of at most 0.001."""
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
def test_false_alarms_over_null_pairs(world: World) -> None:
    results = list(trials(world, (GOOD, GOOD), range(PAIRS), resamples=RESAMPLES))
    failed = sum(entry.low > 0 for entry in results)
    excluded = failed + sum(entry.high < 0 for entry in results)
    assert failed <= most(0.025, PAIRS)  # the gate: only a drop fails
    assert excluded <= most(0.05, PAIRS)  # the interval, on both sides
    assert excluded >= 1  # intervals that never exclude 0 would be too wide


def test_the_interval_covers_a_real_drop_at_its_confidence() -> None:
    true = true_drop(EVEN, (GOOD, WORSE))
    results = list(trials(EVEN, (GOOD, WORSE), range(PAIRS), resamples=RESAMPLES))
    missed = sum(not entry.low <= true <= entry.high for entry in results)
    assert missed <= most(0.05, PAIRS)
    assert true > 0.1
    assert all(entry.low > 0 for entry in results)  # a drop of this size is always found


def test_few_small_objects_have_no_interval() -> None:
    without, ruled = few(2.4, range(60), resamples=100)
    assert without.above > most(0.025, without.count)  # what the rule is for
    assert ruled.count == 0
    _, ruled = few(40, range(40), resamples=100)
    assert ruled.count == 40
    assert ruled.above <= most(0.025, 40)


def test_the_expanded_interval_covers_near_perfect_detectors() -> None:
    shares = near_perfect("1 % missed, 1 % jitter, 0.1 false an image", range(100), resamples=200)
    expanded, percentile = shares["expanded"], shares["percentile"]
    assert expanded.above <= most(0.025, 100)
    assert expanded.above + expanded.below <= most(0.05, 100)
    assert expanded.above + expanded.below < percentile.above + percentile.below
