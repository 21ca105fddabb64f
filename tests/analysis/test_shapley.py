"""Shapley's value and the walk, on games worked by hand and by their laws."""

from itertools import permutations
from math import fsum, isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.analysis.explanation.shapley import Part, attribute, contexts_of_walk, walk

shares = st.floats(0, 1)


@st.composite
def games(draw: st.DrawFn, least: int = 1, most: int = 5) -> list[float]:
    steps = draw(st.integers(least, most))
    return draw(st.lists(shares, min_size=1 << steps, max_size=1 << steps))


def renamed(game: list[float], order: tuple[int, ...]) -> list[float]:
    """Return the game whose step i is step order[i] of the other."""

    def context(new: int) -> int:
        return sum(1 << old for number, old in enumerate(order) if new >> number & 1)

    return [game[context(new)] for new in range(len(game))]


def by_definition(game: list[float], step: int) -> float:
    """Return the mean of what a step changes over all orders, one by one."""
    count = (len(game) - 1).bit_length()
    changes = []
    for order in permutations(range(count)):
        before = sum(1 << other for other in order[: order.index(step)])
        changes.append(game[before | 1 << step] - game[before])
    return fsum(changes) / len(changes)


def test_two_steps_by_hand() -> None:
    # Alone the first gives .25, the second .125; both .5. So the first changes .25 where the second
    # is not taken and .375 where it is.
    first, second = attribute([0.0, 0.25, 0.125, 0.5])
    assert first == Part(0.25, 0.375, shapley=0.3125, least=0.25, most=0.375)
    assert second == Part(0.25, 0.125, shapley=0.1875, least=0.125, most=0.25)


def test_three_steps_by_hand() -> None:
    """The gloves: a left one and two right ones; a pair is worth 1. 2/3, 1/6 and 1/6."""
    left, *rights = attribute([0, 0, 0, 1, 0, 1, 0, 1])
    assert left.shapley == pytest.approx(2 / 3, abs=1e-15)
    assert [part.shapley for part in rights] == pytest.approx([1 / 6, 1 / 6], abs=1e-15)
    assert (left.forward, rights[0].forward, rights[1].forward) == (0, 1, 0)
    assert (left.backward, rights[0].backward, rights[1].backward) == (1, 0, 0)


@given(games())
def test_it_adds_up_to_the_difference(game: list[float]) -> None:
    parts = attribute(game)
    total = game[-1] - game[0]
    assert fsum(part.shapley for part in parts) == pytest.approx(total, rel=0, abs=1e-15)
    assert fsum(part.forward for part in parts) == pytest.approx(total, rel=0, abs=1e-15)
    assert fsum(part.backward for part in parts) == pytest.approx(total, rel=0, abs=1e-15)


@given(games(most=4))
def test_it_is_the_mean_over_all_orders(game: list[float]) -> None:
    for step, part in enumerate(attribute(game)):
        assert part.shapley == pytest.approx(by_definition(game, step), rel=0, abs=1e-15)
        assert part.least <= min(part.forward, part.backward)
        assert part.most >= max(part.forward, part.backward)
        assert part.least - 1e-15 <= part.shapley <= part.most + 1e-15


@given(games(), st.data())
def test_a_step_that_changes_nothing_has_nothing(game: list[float], data: st.DataObject) -> None:
    step = data.draw(st.integers(0, (len(game) - 1).bit_length() - 1))
    dummy = [game[context & ~(1 << step)] for context in range(len(game))]
    assert attribute(dummy)[step] == Part(0, 0, 0, 0, 0)


@given(games(), st.data())
def test_it_depends_on_no_order(game: list[float], data: st.DataObject) -> None:
    order = tuple(data.draw(st.permutations(range((len(game) - 1).bit_length()))))
    ours, theirs = attribute(game), attribute(renamed(game, order))
    for number, step in enumerate(order):
        assert theirs[number][2:] == ours[step][2:]


@given(games())
def test_the_walk_alone_is_that_of_all_contexts(game: list[float]) -> None:
    steps = (len(game) - 1).bit_length()
    contexts = contexts_of_walk(steps)
    assert len(set(contexts)) == len(contexts) == 2 * steps
    alone = walk([game[context] for context in contexts], steps)
    assert [part[:2] for part in alone] == [part[:2] for part in attribute(game)]
    assert all(isnan(number) for part in alone for number in part[2:])
