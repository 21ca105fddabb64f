"""What each of several steps has in a difference: a walk, and Shapley's value over all contexts.

A context is a set of steps that have been taken, as the bits of a number. Shapley's value of a step
is what it changes, as the mean over all orders in which the steps can be taken (L. S. Shapley, A
value for n-person games, 1953): it adds up to the difference, gives a step that never changes
anything 0, and depends on no order.
"""

from collections.abc import Sequence
from math import comb, fsum, nan
from typing import NamedTuple


class StepEffect(NamedTuple):
    """What one step has in a difference.

    Attributes
    ----------
    in_order, reversed : float
        What it changes where the steps are taken in their order, and in reverse.
    shapley : float
        What it changes as the mean over all orders; NaN where only the walk is known.
    minimum, maximum : float
        What it changes where that is lowest and highest, over all contexts; likewise.
    """

    in_order: float
    reversed: float
    shapley: float = nan
    minimum: float = nan
    maximum: float = nan


def walk_combinations(steps: int) -> list[int]:
    """Return the contexts of the walk in order, none to all, and then those of the one in reverse.

    Returns
    -------
    list of 2 * steps int
        Each once; of a single step there are no others than none and all.
    """
    everything = (1 << steps) - 1
    forward = [(1 << taken) - 1 for taken in range(steps + 1)]
    return [*forward, *(everything & ~context for context in forward[1:-1])]


def walk_effects(values: Sequence[float], steps: int) -> list[StepEffect]:
    """Return what each step changes in a walk and in the reverse one.

    Parameters
    ----------
    values : sequence of float
        In the contexts of :func:`walk_combinations`.
    steps : int
    """
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
    """Return what each step has in the difference of the last number and the first.

    Parameters
    ----------
    values : sequence of 2**n float
        In every context: number c is that where the steps are taken that are bits of c.
    """
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
    # Of the orders of n steps, so many have a given context of k others before this one.
    weight = [1 / (steps * comb(steps - 1, taken)) for taken in range(steps)]
    return {
        "shapley": fsum(change * weight[taken] for taken, change in changes),
        "minimum": min(change for _, change in changes),
        "maximum": max(change for _, change in changes),
    }
