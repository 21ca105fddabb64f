"""What becomes of the detections of one image and class over all orders of equal scores.

Which of two tied detections comes first matters where both want one ground truth: the first takes
it, the other goes to its next choice, which others may want in turn; and it matters where a limit
lets only some of them count. All orders are followed at once, group of equal scores by group, as
the set of states that they lead to: a state is which ground truths are taken. Detections that want
the same ones are interchangeable, and those that want different ones do not concern each other, so
that the states are few. Where they are too many after all, each detection is given whatever it
could come to by itself: bounds that no order goes beyond, but that none may reach.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

HIT, MISS, NEITHER = "hit", "miss", "neither"

MOST_STATES = 512
"""How many states are followed at once."""


class MatchOptions(NamedTuple):
    """What a detection goes for.

    Attributes
    ----------
    tries : tuple of (int, str, bool)
        The ground truths it would take, the preferred one first: its number, what the detection is
        then, and whether it is used up by that.
    otherwise : str
        What the detection is without any.
    """

    tries: tuple[tuple[int, str, bool], ...]
    otherwise: str


class Tie(NamedTuple):
    """Detections of equal score, and how many of them count at least and at most."""

    options: tuple[MatchOptions, ...]
    least: int
    most: int


class CountBounds(NamedTuple):
    """Bounds after a group of equal scores, over all orders; all but the last are totals so far.

    Attributes
    ----------
    hits_least, hits_most, misses_least, misses_most : int
        True and false positives.
    misses_ahead : int
        At most so many false positives stand before the group's first true positive.
    """

    hits_least: int
    hits_most: int
    misses_least: int
    misses_most: int
    misses_ahead: int


_State = tuple[int, tuple[int, ...], bool]
"""Taken ground truths as bits, how many claims of each kind are left, whether one has hit."""


def spans(ties: Iterable[Tie], truths: int) -> list[CountBounds]:
    """Return the bounds after each group.

    Parameters
    ----------
    ties : iterable of Tie
        By falling score.
    truths : int
        How many ground truths can be found at all.
    """
    found: list[CountBounds] = []
    states: dict[int, CountBounds] | None = {0: CountBounds(0, 0, 0, 0, 0)}
    for tie in ties:
        after = None if states is None else _follow(states, tie)
        if after is None:
            last = found[-1] if found else CountBounds(0, 0, 0, 0, 0)
            found.append(_loosely(last, tie, truths))
        else:
            found.append(_widest(after.values()))
        states = after
    return found


def _widest(found: Iterable[CountBounds]) -> CountBounds:
    columns = list(zip(*found, strict=True))
    return CountBounds(
        min(columns[0]), max(columns[1]), min(columns[2]), max(columns[3]), max(columns[4])
    )


def _follow(states: dict[int, CountBounds], tie: Tie) -> dict[int, CountBounds] | None:
    """Return the states after a group, or None where they are too many."""
    now = {taken: span._replace(misses_ahead=span.misses_most) for taken, span in states.items()}
    if tie.least < len(tie.options):
        return _in_any_order(now, tie.options, tie.least, tie.most)
    for options in _rivals(tie.options):
        after = _in_any_order(now, options, len(options), len(options))
        if after is None:
            return None
        now = after
    return now


def _rivals(options: Sequence[MatchOptions]) -> list[list[MatchOptions]]:
    """Return the claims in sets of which no two want a ground truth that can be used up."""
    sets: list[tuple[set[int], list[MatchOptions]]] = []
    for option in options:
        wanted = {number for number, _, used_up in option.tries if used_up}
        members = [option]
        apart = []
        for others, known in sets:
            if others & wanted:
                wanted |= others
                members = known + members
            else:
                apart.append((others, known))
        sets = [*apart, (wanted, members)]
    return [members for _, members in sets]


def _in_any_order(
    states: dict[int, CountBounds], options: Sequence[MatchOptions], least: int, most: int
) -> dict[int, CountBounds] | None:
    """Return the states after `least` to `most` of the claims, in any order."""
    kinds = Counter(options)
    counts = tuple(kinds.values())
    layer: dict[_State, CountBounds] = {
        (taken, counts, False): span for taken, span in states.items()
    }
    ends: dict[int, list[CountBounds]] = {}
    for step in range(most + 1):
        if step >= least:
            for (taken, _, _), span in layer.items():
                ends.setdefault(taken, []).append(span)
        if step == most:
            break
        after: dict[_State, CountBounds] = {}
        for state, span in layer.items():
            for place, option in enumerate(kinds):
                if state[1][place]:
                    new, changed = _take(state, span, place, option)
                    known = after.get(new)
                    after[new] = changed if known is None else _widest((known, changed))
            if len(after) > MOST_STATES:
                return None
        layer = after
    return {taken: _widest(found) for taken, found in ends.items()}


def _take(
    state: _State, span: CountBounds, place: int, option: MatchOptions
) -> tuple[_State, CountBounds]:
    taken, left, hit = state
    outcome = option.otherwise
    for number, becomes, used_up in option.tries:
        if used_up and taken >> number & 1:
            continue
        outcome = becomes
        taken |= used_up << number
        break
    if outcome == HIT:
        hit = True
        span = span._replace(hits_least=span.hits_least + 1, hits_most=span.hits_most + 1)
    elif outcome == MISS:
        span = CountBounds(
            span.hits_least,
            span.hits_most,
            span.misses_least + 1,
            span.misses_most + 1,
            span.misses_ahead + (not hit),
        )
    return (taken, (*left[:place], left[place] - 1, *left[place + 1 :]), hit), span


def _loosely(before: CountBounds, tie: Tie, truths: int) -> CountBounds:
    """Return bounds after a group whose claims may each come to whatever they could by itself."""
    possible = [_outcomes(option) for option in tie.options]
    left_out = len(possible) - tie.least

    def least(outcome: str) -> int:
        return max(0, sum(each == {outcome} for each in possible) - left_out)

    def most(outcome: str) -> int:
        return min(sum(outcome in each for each in possible), tie.most)

    misses = before.misses_most + most(MISS)
    return CountBounds(
        before.hits_least + least(HIT),
        min(before.hits_most + most(HIT), truths),
        before.misses_least + least(MISS),
        misses,
        misses,
    )


def _outcomes(option: MatchOptions) -> set[str]:
    found = set()
    for _, becomes, used_up in option.tries:
        found.add(becomes)
        if not used_up:
            return found
    return found | {option.otherwise}
