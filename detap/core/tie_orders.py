"""Bounds on TP and FP counts over all orders of tied detections of an image and class.

The order of tied detections matters if they compete for a ground truth: the first matches it, the
others fall back to their next candidate. It also matters if max dets admits only some of them. All
orders are followed at once, tie by tie, as a set of states; a state is the set of matched ground
truths. Detections with equal candidates are interchangeable, and those with disjoint candidates are
independent, so states are few. If they are too many, each detection is bounded by itself: the
bounds hold but may not be attained.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

HIT, MISS, NEITHER = "hit", "miss", "neither"

MAX_STATES = 512
"""Maximum number of states."""


class MatchOptions(NamedTuple):
    """Candidates of a detection."""

    matches: tuple[tuple[int, str, bool], ...]  # preferred first: ground truth, outcome, used up
    unmatched: str  # outcome without a match


class Tie(NamedTuple):
    """Detections of equal score; minimum and maximum number that count."""

    options: tuple[MatchOptions, ...]
    min_counted: int
    max_counted: int


class CountBounds(NamedTuple):
    """Bounds after a tie, over all orders; all but the last are cumulative."""

    min_hits: int  # true positives
    max_hits: int
    min_misses: int
    max_misses: int
    misses_ahead: int  # maximum number of false positives above the tie's first true positive


_State = tuple[int, tuple[int, ...], bool]
"""Matched ground truths as bits, remaining detections per kind, True after a hit."""


def count_bounds(ties: Iterable[Tie], ground_truths: int) -> list[CountBounds]:
    """Return the bounds after each tie."""
    bounds: list[CountBounds] = []
    states: dict[int, CountBounds] | None = {0: CountBounds(0, 0, 0, 0, 0)}
    for tie in ties:
        after = None if states is None else _follow(states, tie)
        if after is None:
            last = bounds[-1] if bounds else CountBounds(0, 0, 0, 0, 0)
            bounds.append(_loose_bounds(last, tie, ground_truths))
        else:
            bounds.append(_combine(after.values()))
        states = after
    return bounds


def _combine(bounds: Iterable[CountBounds]) -> CountBounds:
    columns = list(zip(*bounds, strict=True))
    return CountBounds(
        min(columns[0]), max(columns[1]), min(columns[2]), max(columns[3]), max(columns[4])
    )


def _follow(states: dict[int, CountBounds], tie: Tie) -> dict[int, CountBounds] | None:
    """Return the states after a tie, or None if there are too many."""
    current = {
        taken: bounds._replace(misses_ahead=bounds.max_misses) for taken, bounds in states.items()
    }
    if tie.min_counted < len(tie.options):
        return _follow_orders(current, tie.options, tie.min_counted, tie.max_counted)
    for options in _competing_sets(tie.options):
        after = _follow_orders(current, options, len(options), len(options))
        if after is None:
            return None
        current = after
    return current


def _competing_sets(options: Sequence[MatchOptions]) -> list[list[MatchOptions]]:
    """Split detections into sets that compete for no common ground truth."""
    sets: list[tuple[set[int], list[MatchOptions]]] = []
    for option in options:
        ground_truths = {number for number, _, used_up in option.matches if used_up}
        members = [option]
        disjoint = []
        for other_ground_truths, other_members in sets:
            if other_ground_truths & ground_truths:
                ground_truths |= other_ground_truths
                members = other_members + members
            else:
                disjoint.append((other_ground_truths, other_members))
        sets = [*disjoint, (ground_truths, members)]
    return [members for _, members in sets]


def _follow_orders(
    states: dict[int, CountBounds],
    options: Sequence[MatchOptions],
    min_counted: int,
    max_counted: int,
) -> dict[int, CountBounds] | None:
    """Return the states after some of the detections, in any order."""
    option_counts = Counter(options)
    counts = tuple(option_counts.values())
    layer: dict[_State, CountBounds] = {
        (taken, counts, False): bounds for taken, bounds in states.items()
    }
    ends: dict[int, list[CountBounds]] = {}
    for step in range(max_counted + 1):
        if step >= min_counted:
            for (taken, _, _), bounds in layer.items():
                ends.setdefault(taken, []).append(bounds)
        if step == max_counted:
            break
        after: dict[_State, CountBounds] = {}
        for state, bounds in layer.items():
            for index, option in enumerate(option_counts):
                if state[1][index]:
                    new, new_bounds = _take(state, bounds, index, option)
                    previous = after.get(new)
                    after[new] = (
                        new_bounds if previous is None else _combine((previous, new_bounds))
                    )
            if len(after) > MAX_STATES:
                return None
        layer = after
    return {taken: _combine(bounds) for taken, bounds in ends.items()}


def _take(
    state: _State, bounds: CountBounds, index: int, option: MatchOptions
) -> tuple[_State, CountBounds]:
    taken, left, hit = state
    outcome = option.unmatched
    for number, outcome_if_matched, used_up in option.matches:
        if used_up and taken >> number & 1:
            continue
        outcome = outcome_if_matched
        taken |= used_up << number
        break
    if outcome == HIT:
        hit = True
        bounds = bounds._replace(min_hits=bounds.min_hits + 1, max_hits=bounds.max_hits + 1)
    elif outcome == MISS:
        bounds = CountBounds(
            bounds.min_hits,
            bounds.max_hits,
            bounds.min_misses + 1,
            bounds.max_misses + 1,
            bounds.misses_ahead + (not hit),
        )
    return (taken, (*left[:index], left[index] - 1, *left[index + 1 :]), hit), bounds


def _loose_bounds(previous: CountBounds, tie: Tie, ground_truths: int) -> CountBounds:
    """Return bounds after a tie with each detection bounded by itself."""
    possible = [_outcomes(option) for option in tie.options]
    left_out = len(possible) - tie.min_counted

    def at_least(outcome: str) -> int:
        return max(0, sum(each == {outcome} for each in possible) - left_out)

    def at_most(outcome: str) -> int:
        return min(sum(outcome in each for each in possible), tie.max_counted)

    misses = previous.max_misses + at_most(MISS)
    return CountBounds(
        previous.min_hits + at_least(HIT),
        min(previous.max_hits + at_most(HIT), ground_truths),
        previous.min_misses + at_least(MISS),
        misses,
        misses,
    )


def _outcomes(option: MatchOptions) -> set[str]:
    outcomes = set()
    for _, becomes, used_up in option.matches:
        outcomes.add(becomes)
        if not used_up:
            return outcomes
    return outcomes | {option.unmatched}
