"""Gallery ranking, compared with explicitly sorted rankings."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.core import _ranking, ranking


def sorted_hits(score: Any, relevant: Any, itself: int) -> tuple[list[int], list[int], list[int]]:
    """Return hits, items above and tied items of one query by sorting its ranking."""
    order = [i for i in sorted(range(len(score)), key=lambda i: (-score[i], i)) if i != itself]
    hits, above, level = [], [], []
    for rank, item in enumerate(order):
        if relevant[item]:
            others = [i for i in order if not relevant[i]]
            hits.append(sum(not relevant[i] for i in order[:rank]))
            above.append(sum(bool(score[i] > score[item]) for i in others))
            level.append(sum(bool(score[i] == score[item]) for i in others))
    return hits, above, level


def check(detections: ranking.Hits, scores: Any, relevant: Any, itself: Any) -> None:
    for q in range(len(scores)):
        own = slice(detections.start[q], detections.start[q + 1])
        got = tuple(column[own].tolist() for column in detections[1:])
        assert got == sorted_hits(scores[q], relevant[q], itself[q])


@pytest.fixture(params=["best", "plain"])
def popcount(request: pytest.FixtureRequest) -> Iterator[None]:
    _ranking.use_plain_loops(request.param == "plain")
    yield
    _ranking.use_plain_loops(False)


@st.composite
def galleries(draw: st.DrawFn) -> dict[str, Any]:
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    queries, items = draw(st.integers(1, 20)), draw(st.integers(1, 60))
    if draw(st.booleans()):
        labels: list[Any] = [random.integers(0, 3, n) for n in (queries, items)]
        relevant = labels[0][:, None] == labels[1]
    else:
        width = draw(st.sampled_from((1, 3, 64, 65, 130)))
        labels = [random.random((n, width)) < 2 / (width + 3) for n in (queries, items)]
        relevant = (labels[0][:, None] & labels[1]).any(-1)
    itself = np.full(queries, -1, np.int32)
    if draw(st.booleans()):
        itself = random.integers(-1, items, queries).astype(np.int32)
    relevant = relevant.copy()
    relevant[np.arange(queries)[itself >= 0], itself[itself >= 0]] = False
    return {
        "random": random,
        "shape": (queries, items),
        "relevance": ranking.make_relevance(labels[0], labels[1], itself),
        "relevant": relevant,
        "itself": itself,
    }


@given(galleries(), st.sampled_from((1, 8, 63, 64, 65, 128, 200)))
def test_ranking_by_codes_equals_sorting(case: dict[str, Any], bits: int) -> None:
    queries, items = case["shape"]
    codes = [case["random"].random((n, bits)) < 0.5 for n in (queries, items)]
    scores = -(codes[0][:, None] != codes[1]).sum(-1)
    packed = ranking.pack_bits(codes[0]), ranking.pack_bits(codes[1], by_item=True)
    counts = ranking.count_relevant(case["relevance"])
    assert counts.tolist() == case["relevant"].sum(1).tolist()
    actual = ranking.rank_codes(*packed, case["relevance"], counts, threads=2)
    check(actual, scores, case["relevant"], case["itself"])


@given(galleries(), st.sampled_from((2, 5, 10**6)), st.sampled_from((np.float32, np.float64)))
def test_ranking_by_scores_equals_sorting(case: dict[str, Any], levels: int, kind: Any) -> None:
    scores = (case["random"].integers(-levels, levels, case["shape"]) / 8).astype(kind)
    scores[scores == 0] *= case["random"].choice((-1, 1), (scores == 0).sum())  # -0.0 ties with 0.0
    counts = ranking.count_relevant(case["relevance"])
    actual = ranking.rank_scores(scores, case["relevance"], 0, counts, threads=2)
    check(actual, scores, case["relevant"], case["itself"])


@given(galleries(), st.sampled_from((1, 4, 64)), st.data())
def test_the_nearest_items_are_the_first_of_the_sorted_ones(
    case: dict[str, Any], bits: int, data: st.DataObject
) -> None:
    queries, items = case["shape"]
    itself = case["itself"]
    most = data.draw(st.integers(0, items - bool((itself >= 0).any())))
    codes = [case["random"].random((n, bits)) < 0.5 for n in (queries, items)]
    scores = -(codes[0][:, None] != codes[1]).sum(-1).astype(np.float64)
    expected = [
        [i for i in np.argsort(-row, kind="stable").tolist() if i != own][:most]
        for row, own in zip(scores, itself, strict=True)
    ]
    packed = ranking.pack_bits(codes[0]), ranking.pack_bits(codes[1], by_item=True)
    assert ranking.nearest_codes(*packed, most, itself).tolist() == expected
    assert ranking.nearest_scores(scores, most, itself).tolist() == expected
    assert ranking.nearest_scores(scores.astype(np.float32), most, itself).tolist() == expected


@pytest.mark.usefixtures("popcount")
@pytest.mark.parametrize("bits", [60, 128, 1000])
def test_tiles_and_threads_do_not_change_results(bits: int) -> None:
    random = np.random.default_rng(bits)
    queries, items = 33, 20_011  # more than two tiles, more than two groups of queries
    codes = [random.random((n, bits)) < 0.5 for n in (queries, items)]
    labels = [random.integers(0, 40, n) for n in (queries, items)]
    packed = ranking.pack_bits(codes[0]), ranking.pack_bits(codes[1], by_item=True)
    distance = np.stack([(row != codes[1]).sum(1) for row in codes[0]])
    relevance = ranking.make_relevance(labels[0], labels[1])
    counts = ranking.count_relevant(relevance)
    for threads in (1, 2, 8):
        actual = ranking.rank_codes(*packed, relevance, counts, threads)
        best = ranking.nearest_codes(*packed, 100, None, threads)
        for q in range(queries):
            order = np.argsort(distance[q], kind="stable")
            assert best[q].tolist() == order[:100].tolist()
            places = np.flatnonzero(labels[1][order] == labels[0][q])
            own = slice(actual.start[q], actual.start[q + 1])
            assert actual.hits[own].tolist() == (places - np.arange(len(places))).tolist()


@pytest.mark.parametrize("by_label_set", [False, True])
def test_scores_and_label_sets_of_more_than_a_tile(by_label_set: bool) -> None:
    """The ranks equal those of stable sorting; the gallery has more than two tiles."""
    random = np.random.default_rng(6)
    queries, items = 3, 20_011
    scores = random.integers(0, 5000, (queries, items)) / 8.0
    labels: list[Any]
    relevant: Any
    if by_label_set:
        labels = [random.random((n, 70)) < p for n, p in ((queries, 0.1), (items, 0.002))]
        relevant = (labels[0][:, None] & labels[1]).any(-1)
    else:
        labels = [random.integers(0, 40, n) for n in (queries, items)]
        relevant = labels[0][:, None] == labels[1]
    relevance = ranking.make_relevance(labels[0], labels[1])
    counts = ranking.count_relevant(relevance)
    assert counts.tolist() == relevant.sum(1).tolist()
    actual = ranking.rank_scores(scores, relevance, 0, counts)
    for q in range(queries):
        order = np.argsort(-scores[q], kind="stable")
        places = np.flatnonzero(relevant[q][order])
        irrelevant = np.sort(-scores[q][~relevant[q]])
        own = -scores[q][order[places]]
        above = np.searchsorted(irrelevant, own, side="left")
        level = np.searchsorted(irrelevant, own, side="right") - above
        part = slice(actual.start[q], actual.start[q + 1])
        assert actual.hits[part].tolist() == (places - np.arange(len(places))).tolist()
        assert actual.above[part].tolist() == above.tolist()
        assert actual.level[part].tolist() == level.tolist()


@pytest.mark.parametrize("relevant", [[0, 5], [1, 4], [2, 3], [6, 7], [0], [5]])
def test_scores_whose_differences_overflow_or_vanish(relevant: list[int]) -> None:
    scores = np.array([[np.inf, 1.7e308, 5e-324, 0.0, -1.7e308, -np.inf, 1.0, 1.0, 0.5]])
    labels = np.zeros(1, np.int32), np.ones(9, np.int32)
    labels[1][relevant] = 0
    relevance = ranking.make_relevance(*labels)
    actual = ranking.rank_scores(scores, relevance, 0, ranking.count_relevant(relevance))
    check(actual, scores, (labels[1] == 0)[None], [-1])


def test_codes_that_differ_in_every_bit() -> None:
    """The largest distance, 64 bits, is counted for each query by itself."""
    codes = np.repeat([True, False], 64).reshape(2, 64), np.zeros((5, 64), np.bool_)
    labels = np.zeros(2, np.int32), np.array([1, 0, 1, 0, 1], np.int32)
    relevance = ranking.make_relevance(*labels)
    packed = ranking.pack_bits(codes[0]), ranking.pack_bits(codes[1], by_item=True)
    actual = ranking.rank_codes(*packed, relevance, ranking.count_relevant(relevance))
    assert actual.hits.tolist() == [1, 2, 1, 2]
    assert actual.above.tolist() == [0, 0, 0, 0]
    assert actual.level.tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize("best", [[70], [70, 5, 190], [64, 127, 128, 191, 199]])
def test_the_best_scores_lie_anywhere_in_a_gallery(best: list[int]) -> None:
    """The items are passed over 64 at a time, unless one of them is good enough."""
    scores = np.linspace(1.0, 0.0, 200).reshape(1, 200)
    scores[0, best] = np.arange(len(best), 0, -1) + 1.0
    assert ranking.nearest_scores(scores, len(best)).tolist() == [best]


def test_lists_rank_by_score_and_then_by_tie_break() -> None:
    start = np.array([0, 3, 3, 5])
    score = np.array([1.0, 2.0, 1.0, 5.0, 5.0])
    assert ranking.rank_lists(start, score).tolist() == [1, 0, 2, 3, 4]
    assert ranking.rank_lists(start, score, np.array([4, 3, 2, 1, 0])).tolist() == [1, 2, 0, 4, 3]


def test_an_empty_gallery_has_no_hits() -> None:
    none = np.zeros(0, np.int32)
    relevance = ranking.make_relevance(np.zeros(2, np.int32), none)
    counts = ranking.count_relevant(relevance)
    packed = ranking.pack_bits(np.zeros((2, 8), bool)), np.zeros((1, 0), np.uint64)
    assert counts.tolist() == [0, 0]
    assert ranking.rank_codes(*packed, relevance, counts).start.tolist() == [0, 0, 0]
    assert ranking.nearest_codes(*packed, 0).shape == (2, 0)
