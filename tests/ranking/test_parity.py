"""Rankings give the metrics of trec_eval, ir_measures and scikit-learn.

Deliberate differences are in docs/ranking.md; each has a test here that shows its size.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.formats.ranking.runs import read_run
from detap.ranking import classification, protocols, retrieval
from detap.tables.ranking import Samples
from tests.ranking.cases import Qrels, Run, gallery, random_run, write_trec

SEEDS = range(8)
CUTOFFS = (1, 3, 5, 10, 100)


def scored(
    folder: Path, run: Run, qrels: Qrels, preset: str, **changes: Any
) -> retrieval.RetrievalResult:
    table = read_run(*write_trec(folder, run, qrels))
    protocol = protocols.retrieval(preset).with_changes(cutoffs=CUTOFFS, **changes)
    return retrieval.evaluate(table, protocol)


TREC_NAMES = {
    "AP": "map",
    "R-precision": "Rprec",
    "RR": "recip_rank",
    "nDCG": "ndcg",
    **{f"AP@{k}": f"map_cut_{k}" for k in CUTOFFS},
    **{f"P@{k}": f"P_{k}" for k in CUTOFFS},
    **{f"R@{k}": f"recall_{k}" for k in CUTOFFS},
    **{f"hit-rate@{k}": f"success_{k}" for k in CUTOFFS},
    **{f"nDCG@{k}": f"ndcg_cut_{k}" for k in CUTOFFS},
}


@pytest.mark.parametrize("grades", [1, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_query_equals_trec_eval(seed: int, grades: int, tmp_path: Path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    run, qrels = random_run(seed, grades=grades)
    result = scored(tmp_path, run, qrels, "trec_eval")
    cuts = ",".join(map(str, CUTOFFS))
    names = {f"{name}.{cuts}" for name in ("map_cut", "P", "recall", "success", "ndcg_cut")}
    evaluator = pytrec_eval.RelevanceEvaluator(
        qrels, names | {"map", "Rprec", "recip_rank", "ndcg"}
    )
    expected = evaluator.evaluate(run)
    assert set(expected) == {
        q for q, lost in zip(result.queries, result.missing, strict=True) if not lost
    }
    for row, query in enumerate(result.queries):
        for ours, theirs in TREC_NAMES.items():
            value = result.values[ours][row]
            if result.missing[row] or not result.relevant[row]:
                assert math.isnan(value)
                assert expected.get(query, {theirs: 0.0})[theirs] == 0
            else:
                assert value == pytest.approx(expected[query][theirs], abs=1e-12), (query, ours)
    for metric in result.metrics:
        if metric.key in TREC_NAMES:
            mean = np.mean([numbers[TREC_NAMES[metric.key]] for numbers in expected.values()])
            assert result.summary[metric.name] == pytest.approx(mean, abs=1e-12), metric.name


@pytest.mark.parametrize("seed", SEEDS)
def test_interpolated_precision_equals_trec_eval(seed: int, tmp_path: Path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    run, qrels = random_run(seed)
    result = scored(tmp_path, run, qrels, "trec_eval")
    expected = pytrec_eval.RelevanceEvaluator(qrels, {"iprec_at_recall"}).evaluate(run)
    means = [
        np.mean([numbers[f"iprec_at_recall_{level:.2f}"] for numbers in expected.values()])
        for level in result.levels
    ]
    exact = [number for number in range(11) if number != 7]  # of .7, see the next test
    precision = result.precision_at_levels[exact]
    assert precision == pytest.approx(np.array(means)[exact], abs=1e-12)


def test_trec_eval_uses_two_of_three_items_for_recall_0_7(tmp_path: Path) -> None:
    """It needs int(.7 * 3 + .9) relevant items, and .7 * 3 is 2.0999999999999996: two."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    run = {"q": {item: -float(rank) for rank, item in enumerate("abcdefghij")}}
    qrels = {"q": {"a": 1, "b": 1, "j": 1}}
    expected = pytrec_eval.RelevanceEvaluator(qrels, {"iprec_at_recall"}).evaluate(run)["q"]
    ours = scored(tmp_path, run, qrels, "trec_eval").precision_at_levels
    assert (
        (ours[6], ours[8])
        == (1.0, 0.3)
        == (expected["iprec_at_recall_0.60"], expected["iprec_at_recall_0.80"])
    )
    assert (ours[7], expected["iprec_at_recall_0.70"]) == (0.3, 1.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_means_equal_ir_measures(seed: int, tmp_path: Path) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    run, qrels = random_run(seed, grades=2)
    result = scored(tmp_path, run, qrels, "ir_measures")
    names = {
        "mAP": "AP",
        "MRR": "RR",
        "R-precision": "Rprec",
        "nDCG": "nDCG",
        **{f"mAP@{k}": f"AP@{k}" for k in CUTOFFS},
        **{f"P@{k}": f"P@{k}" for k in CUTOFFS},
        **{f"R@{k}": f"R@{k}" for k in CUTOFFS},
        **{f"hit-rate@{k}": f"Success@{k}" for k in CUTOFFS},
        **{f"nDCG@{k}": f"nDCG@{k}" for k in CUTOFFS},
    }
    measures = {ours: ir_measures.parse_measure(theirs) for ours, theirs in names.items()}
    expected = ir_measures.calc_aggregate(list(measures.values()), qrels, run)
    for ours, measure in measures.items():
        assert result.summary[ours] == pytest.approx(expected[measure], abs=1e-12), ours


def test_a_missing_query_counts_as_zero_or_is_excluded(tmp_path: Path) -> None:
    """The two libraries differ on this case, in which 2 of 3 queries have a ranking."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    ir_measures = pytest.importorskip("ir_measures")
    run = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"a": 2.0, "b": 1.0}}
    qrels = {"q1": {"b": 1}, "q2": {"b": 1, "c": 1}, "q3": {"a": 1}}
    counted = scored(tmp_path, run, qrels, "ir_measures").summary["mAP"]
    left_out = scored(tmp_path, run, qrels, "trec_eval").summary["mAP"]
    each = pytrec_eval.RelevanceEvaluator(qrels, {"map"}).evaluate(run).values()
    assert left_out == np.mean([row["map"] for row in each]) == (1 / 2 + 1 / 4) / 2
    theirs = ir_measures.calc_aggregate([ir_measures.AP], qrels, run)[ir_measures.AP]
    assert counted == theirs == (1 / 2 + 1 / 4) / 3


def test_trec_eval_rounds_scores_to_single_precision(tmp_path: Path) -> None:
    """Scores that differ only in double precision are ties there, broken by name."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    run = {"q": {"a": 0.5 + 1e-12, "b": 0.5}}
    qrels = {"q": {"a": 1}}
    expected = pytrec_eval.RelevanceEvaluator(qrels, {"map"}).evaluate(run)["q"]["map"]
    assert scored(tmp_path, run, qrels, "trec_eval").summary["mAP"] == expected == 1 / 2
    assert scored(tmp_path, run, qrels, "trec_eval", tie_break="file").summary["mAP"] == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_non_interpolated_ap_equals_scikit_learn(seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(seed)
    score = random.permutation(200 * 4).reshape(200, 4) / 7.0  # no ties
    truth = (random.random((200, 4)) < 0.2).astype(np.int8)
    table = Samples(
        score=score,
        scored=np.ones(score.shape, np.bool_),
        truth=truth,
        classes=tuple("abcd"),
        samples=tuple(map(str, range(200))),
    )
    result = classification.evaluate(table, "non-interpolated")
    expected = [metrics.average_precision_score(truth[:, k], score[:, k]) for k in range(4)]
    assert result.average_precision == pytest.approx(expected, abs=1e-12)
    assert result.summary["mAP"] == pytest.approx(np.mean(expected), abs=1e-12)


def test_scikit_learn_groups_ties_and_ignores_items_not_retrieved() -> None:
    """The size of both differences on the smallest cases that show them."""
    metrics = pytest.importorskip("sklearn.metrics")
    # One of two equally scored samples is positive: ours takes the file's order, theirs both.
    table = Samples(
        score=np.array([[0.5], [0.5]]),
        scored=np.ones((2, 1), np.bool_),
        truth=np.array([[1], [0]], np.int8),
        classes=("a",),
        samples=("1", "2"),
    )
    assert classification.evaluate(table, "non-interpolated").summary["mAP"] == 1
    assert metrics.average_precision_score([1, 0], [0.5, 0.5]) == 1 / 2
    # Three relevant items, two of them retrieved at ranks 1 and 3 of 3: (1 + 2/3)/3 or /2.
    retrieved = metrics.average_precision_score([1, 0, 1], [3, 2, 1])
    assert retrieved == pytest.approx((1 + 2 / 3) / 2)


def test_ndcg_equals_scikit_learn(tmp_path: Path) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(5)
    score, grade = random.permutation(30) / 7, random.integers(0, 4, 30)
    run = {"q": {f"d{i}": float(s) for i, s in enumerate(score)}}
    qrels = {"q": {f"d{i}": int(g) for i, g in enumerate(grade)}}
    result = scored(tmp_path, run, qrels, "retrieval")
    assert result.summary["nDCG"] == pytest.approx(metrics.ndcg_score([grade], [score]))
    assert result.summary["nDCG@5"] == pytest.approx(metrics.ndcg_score([grade], [score], k=5))
    worth = 2.0**grade - 1
    steep = scored(tmp_path, run, qrels, "retrieval", gain="exponential")
    assert steep.summary["nDCG"] == pytest.approx(metrics.ndcg_score([worth], [score]))


@pytest.mark.parametrize("offset", [0, 1000, 10000])
def test_distances_do_not_depend_on_the_origin(offset: int) -> None:
    """Computed as 2 q.g - g.g in float32, the offset would change the ranking."""
    datasets = pytest.importorskip("sklearn.datasets")
    metrics = pytest.importorskip("sklearn.metrics")
    values, labels = datasets.load_breast_cancer(return_X_y=True)
    points, queries = (values + offset).astype(np.float32), 60
    table = gallery(
        "embeddings",
        points[:queries],
        points[queries:],
        (labels[:queries].astype(np.int32), labels[queries:].astype(np.int32)),
    )
    protocol = protocols.retrieval("retrieval").with_changes(similarity="euclidean")
    distances = metrics.pairwise_distances(points[:queries].astype(float), points[queries:])
    expected = [
        metrics.average_precision_score(labels[queries:] == labels[query], -distances[query])
        for query in range(queries)
    ]
    value = retrieval.evaluate(table, protocol).summary["mAP"]
    assert value == pytest.approx(np.mean(expected), abs=1e-12)
