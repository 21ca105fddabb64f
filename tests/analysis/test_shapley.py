"""Shapley values and in-order effects, on hand-computed games and by their axioms."""

from itertools import permutations
from math import fsum, isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.analysis.explanation.protocol_diff import (
    StepEffect,
    shapley_effects,
    walk_combinations,
    walk_effects,
)

shares = st.floats(0, 1)


@st.composite
def games(draw: st.DrawFn, least: int = 1, most: int = 5) -> list[float]:
    steps = draw(st.integers(least, most))
    return draw(st.lists(shares, min_size=1 << steps, max_size=1 << steps))


def by_definition(game: list[float], step: int) -> float:
    """Return the mean effect of a step over all orders, one by one."""
    count = (len(game) - 1).bit_length()
    changes = []
    for order in permutations(range(count)):
        before = sum(1 << other for other in order[: order.index(step)])
        changes.append(game[before | 1 << step] - game[before])
    return fsum(changes) / len(changes)


def test_two_steps_by_hand() -> None:
    # Alone the first gives .25, the second .125; both .5. So the first changes .25 where the second
    # is not taken and .375 where it is.
    first, second = shapley_effects([0.0, 0.25, 0.125, 0.5])
    assert first == StepEffect(0.25, 0.375, shapley=0.3125, minimum=0.25, maximum=0.375)
    assert second == StepEffect(0.25, 0.125, shapley=0.1875, minimum=0.125, maximum=0.25)


def test_three_steps_by_hand() -> None:
    """The glove game: one left and two right gloves, a pair is worth 1: 2/3, 1/6 and 1/6."""
    left, *rights = shapley_effects([0, 0, 0, 1, 0, 1, 0, 1])
    assert left.shapley == pytest.approx(2 / 3, abs=1e-15)
    assert [part.shapley for part in rights] == pytest.approx([1 / 6, 1 / 6], abs=1e-15)
    assert (left.in_order, rights[0].in_order, rights[1].in_order) == (0, 1, 0)
    assert (left.reversed, rights[0].reversed, rights[1].reversed) == (1, 0, 0)


@given(games())
def test_effects_add_up_to_the_difference(game: list[float]) -> None:
    parts = shapley_effects(game)
    total = game[-1] - game[0]
    assert fsum(part.shapley for part in parts) == pytest.approx(total, rel=0, abs=1e-15)
    assert fsum(part.in_order for part in parts) == pytest.approx(total, rel=0, abs=1e-15)
    assert fsum(part.reversed for part in parts) == pytest.approx(total, rel=0, abs=1e-15)


@given(games(most=4))
def test_the_value_is_the_mean_over_all_orders(game: list[float]) -> None:
    for step, part in enumerate(shapley_effects(game)):
        assert part.shapley == pytest.approx(by_definition(game, step), rel=0, abs=1e-15)
        assert part.minimum <= min(part.in_order, part.reversed)
        assert part.maximum >= max(part.in_order, part.reversed)
        assert part.minimum - 1e-15 <= part.shapley <= part.maximum + 1e-15


@given(games())
def test_in_order_effects_equal_those_of_the_exhaustive_run(game: list[float]) -> None:
    steps = (len(game) - 1).bit_length()
    contexts = walk_combinations(steps)
    assert len(set(contexts)) == len(contexts) == 2 * steps
    alone = walk_effects([game[context] for context in contexts], steps)
    assert [part[:2] for part in alone] == [part[:2] for part in shapley_effects(game)]
    assert all(isnan(number) for part in alone for number in part[2:])
