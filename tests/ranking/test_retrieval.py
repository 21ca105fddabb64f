"""Galleries: codes, embeddings and scores; presets; excluded items; blocks."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.core import _ranking, curves, ranking
from detap.errors import InputError, UsageError
from detap.io.paths import SourceFile
from detap.ranking import bootstrap, classification, protocols, retrieval
from detap.ranking.objectives import objectives
from detap.tables.ranking import Gallery, Samples
from tests.ranking.cases import gallery

RULES = protocols.retrieval("retrieval").with_changes(cutoffs=(1, 5, 20))


def random_codes(seed: int, *, bits: int = 12, queries: int = 9, items: int = 150) -> Gallery:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 5, queries), random.integers(0, 5, items)
    return gallery(
        "codes", random.random((queries, bits)) < 0.5, random.random((items, bits)) < 0.5, labels
    )


def as_embeddings(table: Gallery, kind: Any = np.float32) -> Gallery:
    """Return codes as vectors of -1 and 1, whose products rank items as distances do."""
    vectors = [np.where(bits, 1, -1).astype(kind) for bits in (table.query, table.gallery)]
    return gallery("embeddings", vectors[0], vectors[1], (table.query_labels, table.gallery_labels))


@pytest.mark.parametrize("similarity", ["dot", "euclidean"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("ties", ["file", "trec", "expected"])
def test_codes_and_their_vectors_rank_alike(similarity: Any, kind: Any, ties: Any) -> None:
    table = random_codes(1)
    protocol = RULES.with_changes(tie_break=ties, similarity=similarity)
    one, other = (retrieval.evaluate(t, protocol) for t in (table, as_embeddings(table, kind)))
    assert one.summary == other.summary


def by_hand(table: Gallery, scores: Any) -> float:
    """Return mAP from explicitly sorted rankings."""
    values = []
    for row, label in zip(scores, table.query_labels, strict=True):
        relevant = (table.gallery_labels == label)[np.argsort(-row, kind="stable")]
        hits = curves.hits_of(relevant)
        values.append(curves.average_precision(hits, len(hits), interpolated=False))
    return float(np.nanmean(values))


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_embeddings_rank_by_the_given_similarity(similarity: Any) -> None:
    random = np.random.default_rng(4)
    vectors = random.normal(size=(7, 16)), random.normal(size=(80, 16))
    table = gallery(
        "embeddings", vectors[0], vectors[1], (random.integers(0, 3, 7), random.integers(0, 3, 80))
    )
    norms = [np.linalg.norm(v, axis=1) for v in vectors]
    scores = {
        "dot": vectors[0] @ vectors[1].T,
        "cosine": vectors[0] @ vectors[1].T / norms[0][:, None] / norms[1],
        "euclidean": -((vectors[0][:, None] - vectors[1]) ** 2).sum(-1),
    }[similarity]
    result = retrieval.evaluate(table, RULES.with_changes(similarity=similarity))
    assert result.summary["mAP"] == pytest.approx(by_hand(table, scores), abs=1e-12)


def test_distances_do_not_cancel_far_from_the_origin() -> None:
    """[10000, 10000] is its own nearest item; computed as 2 q.g - g.g in float32 it ranked last."""
    items = np.array([[10000.3, 10000.1], [9999.8, 10000.2], [10000, 10000]], np.float32)
    table = gallery("embeddings", items[2:], items, ([1], [0, 0, 1]))
    protocol = RULES.with_changes(similarity="euclidean")
    assert retrieval.evaluate(table, protocol).summary["mAP"] == 1.0


def side_by_side(items: Any) -> ranking.Panels:
    """Return rows as panels."""
    return ranking.make_panels(
        [np.ascontiguousarray(items.T)], items.shape[1], len(items), items.dtype
    )


@given(
    st.integers(0, 10**6),
    st.sampled_from((np.float32, np.float64)),
    st.integers(1, 70) | st.just(300),  # more than are added at a time
)
def test_sums_are_added_in_order_for_any_row(seed: int, kind: Any, width: int) -> None:
    """The same bits as adding term by term in Python, on every machine and in every block."""
    random = np.random.default_rng(seed)
    queries, items = (
        (random.normal(size=(n, width)) * 10.0 ** random.integers(-17, 17, (n, width))).astype(kind)
        for n in (random.integers(1, 20), random.integers(1, 150))
    )
    index = random.integers(0, len(queries)), random.integers(0, len(items))
    pair = [x[i].tolist() for x, i in zip((queries, items), index, strict=True)]
    product = square = 0.0
    for a, b in zip(*pair, strict=True):
        product += a * b
        square += (a - b) * (a - b)
    # Every place: the last of the sums on the way, which numpy takes one by one.
    ways = queries[:, None].astype(float) * items, queries[:, None].astype(float) - items
    products = np.cumsum(ways[0], axis=2)[:, :, -1].astype(kind)
    squares = -np.cumsum(ways[1] ** 2, axis=2)[:, :, -1]
    assert products[index] == kind(product)
    assert squares[index] == -square
    panels = side_by_side(items)
    for plain in (True, False):
        _ranking.use_plain_loops(plain)
        for threads in (1, 2):
            for make, expected in (
                (ranking.products, products),
                (ranking.negative_distances, squares),
            ):
                computed = np.empty_like(expected)
                make(queries, panels, computed, threads)
                np.testing.assert_array_equal(computed, expected)


def test_a_gallery_equal_to_its_queries_is_noted() -> None:
    table = random_codes(0, queries=20, items=20)
    same = gallery("codes", table.query, table.query.copy(), (np.arange(20) // 2,) * 2)
    for one in (same, as_embeddings(same)):
        result = retrieval.evaluate(one, RULES)
        (note,) = result.notes
        assert (note.code, note.severity) == ("queries-in-gallery", "warning")
        assert "each query retrieves itself; exclude it with --exclude-self" in note.message
        assert result.summary["hit-rate@1"] == 1.0
        # The remedy gives the number that is meant: the one other item of the label.
        alone = retrieval.evaluate(one, RULES.with_changes(exclude_self=True))
        assert alone.notes == ()
        assert alone.relevant.tolist() == [1] * 20
    assert retrieval.evaluate(table, RULES).notes == ()


@given(st.integers(0, 10**6), st.sampled_from(("file", "trec")), st.booleans())
def test_the_first_k_items_give_the_metrics_at_k(seed: int, ties: Any, alone: bool) -> None:
    table = random_codes(seed, bits=6, queries=40, items=40)
    protocol = RULES.with_changes(tie_break=ties, exclude_self=alone)
    whole = retrieval.evaluate(table, protocol)
    names = [name for name in whole.summary if name[-1].isdigit()]
    for one in (table, as_embeddings(table)):
        similar = protocol.with_changes(similarity="dot")
        first = retrieval.evaluate(one, similar, names=names)
        assert first.summary == {name: whole.summary[name] for name in names}
        assert not len(first.levels)


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_an_invalid_number_of_threads_is_rejected(threads: Any) -> None:
    with pytest.raises(UsageError, match=f"threads is {threads}; expected an integer from 1 to"):
        retrieval.evaluate(random_codes(0), RULES, threads=threads)


def test_blocks_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    table = random_codes(2, queries=70, items=500)
    random = np.random.default_rng(2)
    many = gallery(
        "codes",
        table.query,
        table.gallery,
        (random.random((70, 90)) < 0.02, random.random((500, 90)) < 0.05),
    )
    for one in (table, as_embeddings(table), many):
        whole = retrieval.evaluate(one, RULES, threads=1)
        with monkeypatch.context() as patch:
            patch.setattr(retrieval, "_HITS", 900)
            patch.setattr(retrieval, "_SCORES", 1)  # two queries at a time
            patch.setattr(retrieval, "_MAX_BLOCK", 24)
            parts = retrieval.evaluate(one, RULES, threads=3)
        assert parts.summary == whole.summary
        np.testing.assert_equal(parts.values, whole.values)


def test_equal_items_get_equal_scores_in_any_position() -> None:
    """Equal vectors must tie, so products must not depend on the position in the gallery."""
    random = np.random.default_rng(8)
    vectors = random.normal(size=(4099, 67)).astype(np.float32)
    vectors[[17, 2048, 4098]] = vectors[5]
    labels = np.zeros(4099, np.int32)
    labels[[5, 17, 2048, 4098]] = 1
    table = gallery("embeddings", vectors[5:6], vectors, ([1], labels))
    result = retrieval.evaluate(table, RULES.with_changes(tie_break="expected"))
    assert result.summary["mAP"] == 1  # the four are one group, above all others


@pytest.mark.parametrize("ties", ["file", "trec"])
def test_a_zero_vector_is_reported_by_its_position_in_the_file(ties: Any) -> None:
    """trec ranks ties by later names first, so in that order the item is first, not last."""
    table = gallery(
        "embeddings", np.ones((1, 2)), [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], ([0], [0] * 3)
    )
    with pytest.raises(InputError, match="item 2: vector of length 0 has no cosine"):
        retrieval.evaluate(table, RULES.with_changes(tie_break=ties))


def test_a_query_is_excluded_from_its_own_ranking() -> None:
    """By hand: items 0 and 1 are equal and of one label, item 2 has the other label."""
    codes = np.array([[1, 1], [1, 1], [1, 0]], bool)
    table = gallery("codes", codes, codes, ([0, 0, 1], [0, 0, 1]))
    protocol = protocols.retrieval("metric-learning").with_changes(cutoffs=(1,))
    result = retrieval.evaluate(table, protocol)
    assert result.relevant.tolist() == [1, 1, 0]
    assert result.ranked.tolist() == [2, 2, 2]
    assert result.summary["P@1"] == result.summary["mAP@R"] == 1
    assert retrieval.evaluate(table, protocol.with_changes(no_relevant="zero")).summary[
        "P@1"
    ] == pytest.approx(2 / 3)
    fewer = gallery("codes", codes[:2], codes, ([0] * 2, [0] * 3))
    with pytest.raises(InputError, match="has 2 queries and 3 items; --exclude-self requires"):
        retrieval.evaluate(fewer, protocol)


def test_a_query_without_relevant_items_is_noted() -> None:
    table = gallery("scores", [[1.0, 2.0], [1.0, 2.0]], None, ([0, 7], [0, 1]))
    result = retrieval.evaluate(table, RULES)
    assert [(note.code, note.count) for note in result.notes] == [("no-relevant", 1)]
    assert result.summary["mAP"] == 1 / 4  # second of two, and 0
    assert np.isnan(result.values["AP"][1])
    left = retrieval.evaluate(table, RULES.with_changes(no_relevant="exclude"))
    assert left.summary["mAP"] == 1 / 2
    assert left.contributions("mAP").tolist()[0] == 1 / 2
    none = gallery("scores", [[1.0, 2.0]], None, ([7], [0, 1]))
    empty = retrieval.evaluate(none, RULES.with_changes(no_relevant="exclude"))
    assert np.isnan(empty.summary["mAP"])


def test_products_that_overflow_are_refused() -> None:
    table = as_embeddings(random_codes(3))
    huge = gallery(
        "embeddings",
        table.query * np.float32(1e30),
        table.gallery * np.float32(1e30),
        (table.query_labels, table.gallery_labels),
    )
    with pytest.raises(InputError, match=r"products of components up to 1e\+30 overflow; divide"):
        retrieval.evaluate(huge, RULES.with_changes(similarity="dot"))
    one = retrieval.evaluate(huge, RULES)
    assert one.summary == retrieval.evaluate(table, RULES).summary


@pytest.mark.parametrize("seed", range(3))
def test_losses_of_a_gallery_equal_those_of_its_scores(seed: int) -> None:
    from detap.ranking import losses

    table = random_codes(seed, queries=3, items=20)
    cosine = as_embeddings(table, np.float64)
    relevant = table.query_labels[:, None] == table.gallery_labels
    scores = cosine.query @ cosine.gallery.T / 12
    expected = losses.smooth_ap_loss(scores, relevant).value
    for one in (table, cosine):
        result = objectives(one, RULES).losses["smooth_ap"]
        assert result == pytest.approx(expected, abs=1e-9, nan_ok=True)
    distance = objectives(cosine, RULES.with_changes(similarity="euclidean"))
    square = -((cosine.query[:, None] - cosine.gallery) ** 2).sum(-1)
    expected = losses.calibration_loss(square, relevant).value
    kept = relevant.any(axis=1)
    assert distance.losses["calibration"][kept] == pytest.approx(expected[kept], abs=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: protocols.retrieval("trec"), "unknown protocol 'trec'; did you mean trec_eval"),
        (lambda: protocols.classification("x"), "unknown protocol 'x'; choose from voc2012"),
        (lambda: RULES.with_changes(cutoffs=(0,)), "cutoffs: 0 is not an integer"),
        (lambda: RULES.with_changes(cutoffs=(5, 1)), "cutoffs: the values must be in ascending"),
        (lambda: RULES.with_changes(tie_break="x"), "tie_break: 'x' is unknown; choose from file"),
        (lambda: RULES.with_changes(relevant_from=0.0), "relevant_from: 0.0 is outside"),
        (
            lambda: retrieval.evaluate(random_codes(0), RULES, names=["map@5"]),
            "unknown metric 'map@5'; did you mean mAP@5",
        ),
        (
            lambda: retrieval.evaluate(random_codes(0), RULES, names=["zzz"]),
            "unknown metric 'zzz'; choose from mAP, ",
        ),
        (
            lambda: protocols.classification("voc2007").with_changes(recall_grid="linspace"),
            "recall_grid 'linspace' has 101 levels, not 11-point",
        ),
        (
            lambda: protocols.classification("voc2007").with_changes(recall_grid="x"),
            "recall_grid: 'x' is unknown",
        ),
    ],
)
def test_invalid_arguments_are_rejected(call: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()


def test_signatures_list_changed_fields() -> None:
    protocol = protocols.retrieval("hashing").with_changes(cutoffs=(5,), exclude_self=True)
    assert protocol.signature("1.0") == (
        "protocol:hashing|divisor:hits|tie-break:file|no-relevant:zero|cutoffs:5|exclude-self:yes|"
        "detap:1.0"
    )
    curve = protocols.classification("voc2012").with_changes(curve="101-point")
    assert curve.signature("1.0") == (
        "protocol:voc2012|curve:101-point|recall-grid:linspace|detap:1.0"
    )
    assert protocols.classification("voc2007").signature("1.0") == (
        "protocol:voc2007|curve:11-point|detap:1.0"
    )


def test_trec_rounds_scores_to_float32() -> None:
    """1 and 1 + 1e-9 are one float32, and of equal items the one with the later name is first."""
    table = gallery("scores", [[1 + 1e-9, 1.0]], None, ([0], [0, 1]))
    for ties, expected in (("file", 1), ("trec", 1 / 2)):
        result = retrieval.evaluate(table, RULES.with_changes(tie_break=ties))
        assert result.summary["mAP"] == expected


def test_squared_distances_that_overflow() -> None:
    """(1e154)^2 is a float64, the square of the difference of 1e154 and -1e154 is not."""
    table = gallery(
        "embeddings", [[1e154]], [[-1e154]], ([0], [0]), files=(SourceFile("far.npz", 1),)
    )
    with pytest.raises(InputError) as caught:
        retrieval.evaluate(table, RULES.with_changes(similarity="euclidean"))
    assert str(caught.value) == (
        "far.npz: products of components up to 1e+154 overflow; "
        "divide all vectors by the same number"
    )


def test_curves_over_ranks_end_at_rank_1000() -> None:
    table = gallery("scores", np.arange(1001.0)[None], None, ([0], [0] * 1001))
    result = retrieval.evaluate(table, RULES)
    assert result.precision_at_ranks.tolist() == [1] * 1000
    assert result.recall_at_ranks[-1] == pytest.approx(1000 / 1001)


def test_objectives_exclude_the_query_itself() -> None:
    """By hand: query 0 ranks item 2, of another label, before item 1, of its label: AP 1/2."""
    codes = np.array([[1, 1, 1], [1, 0, 0], [1, 1, 0]], bool)
    labels = [0, 0, 1]
    table = gallery("codes", codes, codes, (labels, labels))
    result = objectives(table, RULES.with_changes(exclude_self=True))
    assert result.losses["ap"].tolist()[0] == 1 / 2
    assert np.isnan(result.losses["ap"][2])
    assert (result.batches, result.gaps, result.applies.tolist()) == (None, {}, [])


def test_objectives_of_batches() -> None:
    """By hand: items 0 and 1 are a batch of AP 1, items 2 and 3 one of AP 1/2; in all 5/6."""
    table = gallery("scores", [[3.0, 0.0, 2.0, 1.0]] * 2, None, ([0, 9], [0, 1, 2, 0]))
    result = objectives(table, RULES, with_losses=False, batches=2)
    assert (result.losses, result.batches) == ({}, 2)
    assert result.gaps["gap"][0] == pytest.approx((1 + 1 / 2) / 2 - (1 + 2 / 3) / 2)
    assert np.isnan(result.gaps["gap"][1])
    assert result.applies.tolist() == [False, False]


def test_bootstrap_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.array([1.0, 2.0, 4.0])
    whole = bootstrap.resampled_means(values, resamples=5, seed=1)
    monkeypatch.setattr(bootstrap, "_BLOCK", 6)  # two resamples at a time
    parts = bootstrap.resampled_means(values, resamples=5, seed=1)
    assert parts.tolist() == whole.tolist()
    assert len(parts) == 5


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 3.0, 8.0], [11 / 2, 9 / 2, 2.0]),
        ([1.0, np.nan, 3.0], [3.0, 2.0, 1.0]),
        ([np.nan, 5.0], [5.0, np.nan]),
        ([], [np.nan]),
    ],
)
def test_means_without_one_query(values: list[float], expected: list[float]) -> None:
    assert bootstrap.left_out_means(np.array(values)).tolist() == pytest.approx(
        expected, nan_ok=True
    )


def test_parts_leave_out_several_of_many_queries() -> None:
    """Of 512, each of 256 parts leaves out two."""
    values = np.arange(512.0)
    means = bootstrap.left_out_means(values)
    assert means[3] == pytest.approx((values.sum() - 3 - 259) / 510)


def test_notes_of_a_classification() -> None:
    """Class b has no score for two samples and class c no positives; sample 2 has no label."""
    table = Samples(
        score=np.array([[3.0, 0.0, 1.0], [2.0, 0.0, 1.0], [1.0, 2.0, 0.0]]),
        scored=np.array([[True, False, True], [True, False, True], [True, True, True]]),
        truth=np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0]], np.int8),
        classes=("a", "b", "c"),
        samples=("0", "1", "2"),
    )
    protocol = protocols.classification("voc2012").with_changes(cutoffs=(1,))
    result = classification.evaluate(table, protocol)
    assert [(note.code, note.count) for note in result.notes] == [
        ("class-without-positives", 1),
        ("unscored-sample", 2),
        ("no-relevant", 1),
    ]
    assert result.unscored.tolist() == [0, 2, 0]
    # Class b: its one positive is unscored, hence after the scored sample; of two, in file order.
    assert result.average_precision.tolist() == pytest.approx([1, 1 / 3, np.nan], nan_ok=True)
