"""Shapley values of the steps of a change, and their effects in one order.

A combination is a set of steps, as the bits of an integer. The Shapley value of a step is its mean
effect over all orders of the steps (L. S. Shapley, A value for n-person games, 1953). The values
sum to the difference; a step without any effect has the value 0.
"""

from collections.abc import Sequence
from math import comb, fsum, nan
from typing import NamedTuple


class StepEffect(NamedTuple):
    """Effect of one step on a difference.

    Attributes
    ----------
    in_order, reversed : float
        Effect in order and in reversed order.
    shapley : float
        Mean effect over all orders; NaN if not all combinations were scored.
    minimum, maximum : float
        Lowest and highest effect over all combinations; NaN as `shapley`.
    """

    in_order: float
    reversed: float
    shapley: float = nan
    minimum: float = nan
    maximum: float = nan


def walk_combinations(steps: int) -> list[int]:
    """Return the combinations of adding the steps in order, then in reversed order."""
    everything = (1 << steps) - 1
    forward = [(1 << taken) - 1 for taken in range(steps + 1)]
    return [*forward, *(everything & ~context for context in forward[1:-1])]


def walk_effects(values: Sequence[float], steps: int) -> list[StepEffect]:
    """Compute the effect of each step in order and in reversed order."""
    value_by_combination = dict(zip(walk_combinations(steps), values, strict=True))
    everything = (1 << steps) - 1
    effects = []
    for step in range(steps):
        before, after = (1 << step) - 1, everything & ~((2 << step) - 1)
        change = value_by_combination[before | 1 << step] - value_by_combination[before]
        effects.append(
            StepEffect(
                change, value_by_combination[after | 1 << step] - value_by_combination[after]
            )
        )
    return effects


def shapley_effects(values: Sequence[float]) -> list[StepEffect]:
    """Compute the Shapley value of each step in the difference of last and first value."""
    steps = (len(values) - 1).bit_length()
    effects = walk_effects([values[context] for context in walk_combinations(steps)], steps)
    return [
        effect._replace(**_over_all(values, step, steps)) for step, effect in enumerate(effects)
    ]


def _over_all(values: Sequence[float], step: int, steps: int) -> dict[str, float]:
    bit = 1 << step
    changes = [
        (context.bit_count(), values[context | bit] - values[context])
        for context in range(len(values))
        if not context & bit
    ]
    # Fraction of all orders in which a given set of `taken` steps precedes this one.
    weight = [1 / (steps * comb(steps - 1, taken)) for taken in range(steps)]
    return {
        "shapley": fsum(change * weight[taken] for taken, change in changes),
        "minimum": min(change for _, change in changes),
        "maximum": max(change for _, change in changes),
    }
