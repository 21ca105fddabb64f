"""Expected values over all orders of ties, against each order one by one."""

from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.formats.ranking.runs import read_npz_retrieval
from detap.ranking import protocols, retrieval
from detap.ranking.lists import Expected, Ordered, TieGroups, tie_groups
from detap.tables.ranking import Run
from tests.ranking.cases import gallery

CUTOFFS = (1, 2, 3, 5, 9)


def one_query(score: list[int], grade: list[int], unranked: list[int]) -> Run:
    judged = sorted((g for g in grade + unranked if g > 0), reverse=True)
    return Run(
        queries=("q",),
        start=np.array([0, len(score)]),
        score=np.array(score, np.float64),
        grade=np.array(grade, np.float64),
        name_order=np.arange(len(score)),
        judged_start=np.array([0, len(judged)]),
        judged=np.array(judged, np.float64),
        present=np.array([True]),
    )


def all_orders(score: list[int]) -> Any:
    """Yield every ranking of the items with scores in descending order."""
    for order in permutations(range(len(score))):
        if all(score[a] >= score[b] for a, b in pairwise(order)):
            yield list(order)


@st.composite
def queries(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    count = draw(st.integers(1, 6))
    score = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    grade = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    return score, grade, draw(st.lists(st.integers(1, 2), max_size=2))


@given(queries(), st.sampled_from(("all", "hits", "min")))
def test_every_metric_is_its_mean_over_all_orders(
    query: tuple[list[int], list[int], list[int]], divisor: Any
) -> None:
    score, grade, unranked = query
    protocol = protocols.retrieval("retrieval").with_changes(cutoffs=CUTOFFS, divisor=divisor)
    expected = retrieval.evaluate(
        one_query(score, grade, unranked), protocol.with_changes(tie_break="expected")
    )
    each = []
    for order in all_orders(score):
        falling = list(range(len(order), 0, -1))
        table = one_query(falling, [grade[item] for item in order], unranked)
        each.append(retrieval.evaluate(table, protocol))
    for name, value in expected.summary.items():
        # Divided by hits, an order without any counts 0, as the rules have it here.
        assert value == pytest.approx(np.mean([one.summary[name] for one in each])), name
    mean = np.mean([one.precision_at_ranks for one in each], axis=0)
    assert expected.precision_at_ranks == pytest.approx(mean)


@given(queries())
def test_without_ties_the_expectation_equals_the_file_order(
    query: tuple[list[int], list[int], list[int]],
) -> None:
    score, grade, unranked = query
    score = list(range(len(score)))
    protocol = protocols.retrieval("retrieval").with_changes(cutoffs=CUTOFFS)
    table = one_query(score, grade, unranked)
    one, other = (
        retrieval.evaluate(table, protocol.with_changes(tie_break=t)) for t in ("file", "expected")
    )
    assert one.summary == pytest.approx(other.summary, nan_ok=True)
    assert one.precision_at_levels == pytest.approx(other.precision_at_levels)


def test_expected_metrics_of_a_gallery_equal_those_of_its_run(tmp_path: Any) -> None:
    random = np.random.default_rng(3)
    score = random.integers(0, 4, (5, 60)) / 4
    labels = random.integers(0, 3, 5), random.integers(0, 3, 60)
    protocol = protocols.retrieval("retrieval").with_changes(cutoffs=CUTOFFS, tie_break="expected")
    one = retrieval.evaluate(
        gallery("scores", score, None, labels),
        protocol,
    )
    relevance = (labels[0][:, None] == labels[1]).astype(int)
    np.savez(tmp_path / "graded.npz", scores=score, relevance=relevance)
    other = retrieval.evaluate(read_npz_retrieval(tmp_path / "graded.npz"), protocol)
    assert one.summary == pytest.approx(other.summary, abs=1e-12)
    assert one.precision_at_levels == pytest.approx(other.precision_at_levels)


def test_interpolated_precision_of_expected_counts() -> None:
    """Two items of equal score, one relevant: half a hit each, precision 1/2 at every rank."""
    groups = TieGroups(np.array([0]), np.array([2]), np.array([1]))
    assert Expected(groups, 1, 2).precision_at_levels() == pytest.approx(np.full(11, 0.5))
    # With a second relevant item below, alone: 1/2 up to recall 1/2, then 2/3 everywhere.
    groups = TieGroups(np.array([0, 2]), np.array([2, 1]), np.array([1, 1]))
    assert Expected(groups, 2, 3).precision_at_levels() == pytest.approx(np.full(11, 2 / 3))


def test_the_expected_reciprocal_rank_of_one_relevant_item() -> None:
    """Equally often first, second, third and fourth of four items of equal score."""
    groups = TieGroups(np.array([0]), np.array([4]), np.array([1]))
    assert Expected(groups, 1, 4).reciprocal_rank(4) == pytest.approx(
        (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4
    )


def test_no_relevant_item_retrieved() -> None:
    none = tie_groups(np.zeros(0, np.int32), np.zeros(0, np.int32))
    for ranked in (Expected(none, 2, 4), Ordered(np.zeros(0, np.int32), 2, 4)):
        assert ranked.relevant_within(3) == ranked.hit(3) == ranked.reciprocal_rank(4) == 0
        assert ranked.average_precision(3, "all") == 0
        assert np.isnan(ranked.average_precision(3, "hits"))
        assert ranked.precision_at_levels().tolist() == [0] * 11
