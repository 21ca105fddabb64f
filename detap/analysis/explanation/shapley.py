"""What each of several steps has in a difference: a walk, and Shapley's value over all contexts.

A context is a set of steps that have been taken, as the bits of a number. Shapley's value of a step
is what it changes, as the mean over all orders in which the steps can be taken (L. S. Shapley, A
value for n-person games, 1953): it adds up to the difference, gives a step that never changes
anything 0, and depends on no order.
"""

from collections.abc import Sequence
from math import comb, fsum, nan
from typing import NamedTuple


class Part(NamedTuple):
    """What one step has in a difference.

    Attributes
    ----------
    forward, backward : float
        What it changes where the steps are taken in their order, and in reverse.
    shapley : float
        What it changes as the mean over all orders; NaN where only the walk is known.
    least, most : float
        What it changes where that is lowest and highest, over all contexts; likewise.
    """

    forward: float
    backward: float
    shapley: float = nan
    least: float = nan
    most: float = nan


def contexts_of_walk(steps: int) -> list[int]:
    """Return the contexts of the walk in order, none to all, and then those of the one in reverse.

    Returns
    -------
    list of 2 * steps int
        Each once; of a single step there are no others than none and all.
    """
    everything = (1 << steps) - 1
    forward = [(1 << taken) - 1 for taken in range(steps + 1)]
    return [*forward, *(everything & ~context for context in forward[1:-1])]


def walk(numbers: Sequence[float], steps: int) -> list[Part]:
    """Return what each step changes in a walk and in the reverse one.

    Parameters
    ----------
    numbers : sequence of float
        In the contexts of :func:`contexts_of_walk`.
    steps : int
    """
    at = dict(zip(contexts_of_walk(steps), numbers, strict=True))
    everything = (1 << steps) - 1
    found = []
    for step in range(steps):
        before, behind = (1 << step) - 1, everything & ~((2 << step) - 1)
        change = at[before | 1 << step] - at[before]
        found.append(Part(change, at[behind | 1 << step] - at[behind]))
    return found


def attribute(numbers: Sequence[float]) -> list[Part]:
    """Return what each step has in the difference of the last number and the first.

    Parameters
    ----------
    numbers : sequence of 2**n float
        In every context: number c is that where the steps are taken that are bits of c.
    """
    steps = (len(numbers) - 1).bit_length()
    walked = walk([numbers[context] for context in contexts_of_walk(steps)], steps)
    return [part._replace(**_over_all(numbers, step, steps)) for step, part in enumerate(walked)]


def _over_all(numbers: Sequence[float], step: int, steps: int) -> dict[str, float]:
    bit = 1 << step
    changes = [
        (context.bit_count(), numbers[context | bit] - numbers[context])
        for context in range(len(numbers))
        if not context & bit
    ]
    # Of the orders of n steps, so many have a given context of k others before this one.
    share = [1 / (steps * comb(steps - 1, taken)) for taken in range(steps)]
    return {
        "shapley": fsum(change * share[taken] for taken, change in changes),
        "least": min(change for _, change in changes),
        "most": max(change for _, change in changes),
    }
