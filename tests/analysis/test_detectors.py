"""Several detectors: ranking, p-values of pairs, Holm's adjustment, letters."""

from dataclasses import replace
from itertools import combinations, permutations
from math import isnan, nan

import numpy as np
import pytest

import detap
from detap import Detections, GroundTruth, Result, UsageError, evaluate
from detap.analysis.bootstrap import Draws, differing, draw_weights, leave_out, resampled
from detap.analysis.comparison import compare as compare_two
from detap.analysis.detectors import default_resamples, holm, letter_groups, name_of
from detap.analysis.power import power_analysis
from detap.gates.config import RESAMPLES as RESAMPLES_OF_COMMAND
from detap.protocols import protocol
from detap.report.sections.comparison import detectors_report
from detap.tables.concat import align_classes

IMAGES = 60
BOX = [0, 0, 100, 100]

TRUTH = GroundTruth.from_arrays(
    image=[i for i in range(IMAGES) for _ in "ab"],
    label=["cat", "dog"] * IMAGES,
    boxes=[box for _ in range(IMAGES) for box in (BOX, [200, 0, 300, 100])],
)


def detector(seed: int, quality: float, *, scores: bool = True) -> Result:
    """Evaluate a detector that finds each object with a probability, and as many that are none."""
    random = np.random.default_rng(seed)
    rows = np.flatnonzero(random.random(len(TRUTH)) < quality)
    false = np.flatnonzero(random.random(len(TRUTH)) > quality)
    boxes = np.concatenate([TRUTH.corners[rows], TRUTH.corners[false] + 400])
    index = np.concatenate([rows, false])
    label = [TRUTH.classes[label] for label in TRUTH.label[index]]
    score = random.random(len(index)) + 0.2 * (np.arange(len(index)) < len(rows))
    table = Detections.from_arrays(
        image=TRUTH.image[index], label=label, boxes=boxes, score=score if scores else None
    )
    return evaluate(TRUTH, table, "coco")


RESULTS = {
    name: detector(seed, quality)
    for seed, (name, quality) in enumerate(
        {"poor": 0.3, "fair": 0.6, "good": 0.9, "alike": 0.9, "other": 0.62}.items()
    )
}
RESAMPLES = 300


def compared(*names: str, **options: object) -> detap.analysis.detectors.Detectors:
    results = {name: RESULTS[name] for name in names or RESULTS}
    return detap.compare(results, **({"resamples": RESAMPLES} | options))  # type: ignore[arg-type]


def test_the_best_is_first_and_each_has_its_own_interval() -> None:
    detectors = compared()
    values = [one.value for one in detectors.detectors]
    assert values == sorted((r.summary["AP"] for r in RESULTS.values()), reverse=True)
    assert [detectors.rank(name) for name in detectors.names] == [1, 2, 3, 4, 5]
    assert detectors.reference == detectors.names[0]
    assert repr(detectors).startswith("Detectors(5 detectors, best ")
    for name, result in RESULTS.items():
        assert detectors.interval(name) == result.intervals(resamples=RESAMPLES).summary["AP"]
        assert detectors[name].summary == result.summary


def test_a_pair_is_that_of_two_detectors() -> None:
    # Value, interval and minimum detectable difference of each pair are bit for bit those of the
    # comparison of these two alone, as are those of a difference to the reference.
    detectors = compared(reference="fair")
    assert detectors.to_reference("fair")[2:5] == (0, 0, 0)
    for pair in (*detectors.pairs, detectors.to_reference("good")):
        alone = compare_two(RESULTS[pair.first], RESULTS[pair.second], resamples=RESAMPLES)
        power = power_analysis(alone)
        assert power is not None
        assert pair.difference == alone.second.summary["AP"] - alone.first.summary["AP"]
        assert (pair.low, pair.high) == alone.interval("AP")
        assert pair.min_detectable_difference == power.metrics[0].min_detectable_drop


@pytest.mark.parametrize("others", [(), ("poor",), ("other", "alike")])
def test_a_pair_does_not_depend_on_the_others(others: tuple[str, ...]) -> None:
    (pair,) = (p for p in compared("fair", "good", *others).pairs if p[:2] == ("good", "fair"))
    (alone,) = compared("fair", "good").pairs
    assert pair._replace(adjusted_p=0) == alone._replace(adjusted_p=0)


def test_the_order_of_arguments_changes_nothing() -> None:
    expected = compared()
    for order in [*permutations(RESULTS)][::17]:
        detectors = compared(*order)
        assert detectors.pairs == expected.pairs
        assert detectors.groups == expected.groups
        assert detectors.by_class == expected.by_class


def test_equal_detectors_keep_their_order_and_share_all_letters() -> None:
    again = RESULTS | {"again": RESULTS["good"]}
    for names in permutations(("good", "again", "poor")):
        detectors = detap.compare({n: again[n] for n in names}, resamples=RESAMPLES)
        assert detectors.names == (*(n for n in names if n != "poor"), "poor")
        assert [detectors.rank(name) for name in detectors.names] == [1, 1, 3]
        assert detectors.letters("good") == detectors.letters("again") == "a"
        assert detectors.letters("poor") == "b"
        (same,) = (p for p in detectors.pairs if "poor" not in p[:2])
        assert (same.difference, same.low, same.high, same.p, same.adjusted_p) == (0, 0, 0, 1, 1)
        assert isnan(same.min_detectable_difference)


def independent_p(first: Result, second: Result, resamples: int) -> float:
    """Compute a p-value from the same resamples: count, and take scipy's Student."""
    stats = pytest.importorskip("scipy.stats")
    weights = leave_out(draw_weights(IMAGES, resamples, 0))
    before, after = (resampled(result, weights, ["AP"]).of("AP") for result in (first, second))
    differences = (after - before).drawn
    reached = [sum(d <= 0 for d in differences), sum(d >= 0 for d in differences)]
    tail = (1 + min(reached)) / (resamples + 1)
    u = (after - before).left_out
    u = u - u.mean()
    freedom = round((u**2).sum() ** 2 / (u**4).sum())
    return float(min(1, 2 * stats.t.sf(stats.norm.isf(tail), freedom)))


def test_p_values_against_an_independent_computation_and_the_interval() -> None:
    for pair in compared().pairs:
        expected = independent_p(RESULTS[pair.first], RESULTS[pair.second], RESAMPLES)
        assert pair.p == pytest.approx(expected, abs=1e-8)
        # Both have the tail of Student's t; they differ by one resample of 300 at most.
        if abs(pair.p - 0.05) > 0.02:
            assert (pair.p < 0.05) == (pair.low > 0 or pair.high < 0)


def test_a_p_value_by_hand() -> None:
    # 2 of 99 resamples at or below 0: a tail of 3 in 100. With very many images it is doubled.
    values = np.array([-0.1, 0.0, *[0.2] * 97])
    even = np.tile([-1.0, 1.0], 128)
    assert differing(even) == 256
    assert Draws(values, even).p_value() == pytest.approx(0.06, abs=0.002)
    assert Draws(-values, even).p_value() == Draws(values, even).p_value()
    # Two images that differ: t with 2 degrees of freedom, z(0.97) = 1.8808, whose two-sided p is
    # 1 - t / sqrt(2 + t * t).
    two = np.array([1.0, -1.0, *[0.0] * 8])
    assert Draws(values, two).p_value() == pytest.approx(
        1 - 1.8808 / (2 + 1.8808**2) ** 0.5, abs=1e-4
    )
    assert Draws(np.zeros(99), np.zeros(9)).p_value() == 1
    assert isnan(Draws(np.full(99, nan), even).p_value())


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # 3 * 0.01, 2 * 0.02, 1 * 0.03 which may not be below the one before.
        ([0.01, 0.02, 0.03], [0.03, 0.04, 0.04]),
        ([0.03, 0.01, 0.02], [0.04, 0.03, 0.04]),
        ([0.5, 0.9], [1.0, 1.0]),
        ([0.01, nan, 0.04], [0.02, nan, 0.04]),
        ([], []),
    ],
)
def test_holm_by_hand(values: list[float], expected: list[float]) -> None:
    assert holm(values) == pytest.approx(expected, nan_ok=True)


def test_holm_against_statsmodels() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    random = np.random.default_rng(0)
    for count in (1, 2, 10, 45):
        values = random.random(count) ** 4
        expected = multitest.multipletests(values, method="holm")[1]
        assert holm(values.tolist()) == pytest.approx(expected.tolist())


@pytest.mark.parametrize(
    ("apart", "expected"),
    [
        ("", ["abcd"]),
        ("ab ac ad bc bd cd", ["a", "b", "c", "d"]),
        # A chain: neighbors alike.
        ("ac ad bd", ["ab", "bc", "cd"]),
        # Piepho's point: b and c overlap with both ends, which differ.
        ("ad", ["abc", "bcd"]),
        # a-c, b-d apart: four groups of two.
        ("ac bd", ["ab", "ad", "bc", "cd"]),
        ("ab", ["acd", "bcd"]),
    ],
)
def test_letters_by_hand(apart: str, expected: list[str]) -> None:
    pairs = [(pair[0], pair[1]) for pair in apart.split()]
    groups = letter_groups("abcd", pairs)
    assert ["".join(group) for group in groups.values()] == expected
    assert [*groups] == [*"abcd"[: len(groups)]]


def test_letters_are_the_law_of_the_display() -> None:
    # Two share a letter exactly if they are not apart, and no group is part of another.
    random = np.random.default_rng(1)
    names = [*"abcdefg"]
    for _ in range(50):
        apart = [pair for pair in combinations(names, 2) if random.random() < 0.5]
        groups = [*map(set, letter_groups(names, apart).values())]
        for pair in combinations(names, 2):
            assert any(set(pair) <= group for group in groups) == (pair not in apart)
        assert not any(one < other for one in groups for other in groups)


def test_letters_go_on_after_z_and_are_not_those_of_their_first_letter() -> None:
    names = [f"n{number}" for number in range(28)]
    groups = letter_groups(names, [*combinations(names, 2)])
    assert [*groups][24:] == ["y", "z", "a2", "b2"]
    alike = compared("good", "alike")
    best, other = alike.names
    report = detectors_report(replace(alike, groups={"a": (best,), "a2": (other,)}))
    assert report.conclusion.endswith("; all others are significantly worse")


@pytest.mark.parametrize("metric", ["AP50", "AP90", "MR-2"])
def test_another_metric_ranks(metric: str) -> None:
    detectors = compared(metric=metric)
    values = [one.summary[metric] for one in detectors.detectors]
    lower = metric == "MR-2"
    assert values == sorted((r.metric(metric) for r in RESULTS.values()), reverse=not lower)
    assert [*detectors.detectors[0].summary][:2] == [metric, "AP"]
    assert detectors.rank(detectors.names[0]) == 1
    assert (detectors.pairs[0].difference > 0) == lower


def test_detections_without_scores_are_ranked_by_f1() -> None:
    results = [detector(seed, quality, scores=False) for seed, quality in enumerate((0.5, 0.9))]
    detectors = detap.compare(results, resamples=RESAMPLES)
    assert detectors.metric.name == "F1"
    assert detectors.names == ("2", "1")
    assert [detectors.letters(name) for name in detectors.names] == ["a", "b"]


def test_few_ground_truths_or_resamples_are_noted_and_the_remedy_helps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = compared(min_ground_truths=121)
    assert not few.groups
    assert [note.message for note in few.notes] == [
        "AP: fewer than 121 ground truths are counted (--min-ground-truths), so that there is no "
        "interval"
    ]
    # With 5 detectors there are 10 pairs: 10 * 2 / 101 > 0.05. 400 are too few by Student's t.
    for resamples, enough in ((100, 2000), (400, 4000)):
        detectors = compared(resamples=resamples)
        (note,) = detectors.notes
        assert note.message == (
            f"pairs of detectors differ in all of {resamples} resamples, but these are too few for "
            f"significance at the 95% level; use --resamples {enough}"
        )
        drawn = [one.draws.drawn for one in detectors.detectors]  # none differ significantly
        differ = [first - second for first, second in combinations(drawn, 2)]
        assert note.count == sum((d > 0).all() or (d < 0).all() for d in differ) > 0
        for most, noted in ((enough, True), (enough - 1, False)):
            monkeypatch.setattr(detap.analysis.detectors, "_LIMIT", most)
            assert bool(detectors.notes) == noted
        monkeypatch.undo()
    assert RESAMPLES_OF_COMMAND[1] == detap.analysis.detectors._LIMIT
    detectors = compared(resamples=2000)
    assert detectors.notes == ()
    assert detectors.letters("good") != detectors.letters("poor")
    # 8 * pairs / 0.05, in thousands: 4 detectors have 6 pairs, 5 have 10, 10 have 45.
    counts = [default_resamples(count, 0.95) for count in (2, 4, 5, 10, 40)]
    assert counts == [1000, 1000, 2000, 8000, 10_000]


@pytest.mark.parametrize("absent", ["undefined", "zero", "zero-if-detected"])
def test_classes_without_ground_truth(absent: str) -> None:
    # AP of cat at 11 points is 6/11 (one of two found), of dog 1: their mean is 17/22. One detector
    # also finds bird and fish, which have no objects: over four classes it is 17/44.
    truth = GroundTruth.from_arrays(image=[0, 0, 1], label=["cat", "dog", "cat"], boxes=[BOX] * 3)
    names = ["cat", "dog", "bird", "fish"]
    some, more = (
        Detections.from_arrays(image=[0] * n, label=names[:n], boxes=[BOX] * n, score=[0.9] * n)
        for n in (2, 4)
    )
    rules = protocol("voc2007").with_changes(absent_class=absent)
    results = {"some": evaluate(truth, some, rules), "more": evaluate(truth, more, rules)}
    detectors = detap.compare(results, resamples=10, min_ground_truths=0)
    assert detectors["some"].value == results["some"].summary["mAP"] == pytest.approx(17 / 22)
    expected = 17 / 22 if absent == "undefined" else 17 / 44
    assert detectors["more"].value == results["more"].summary["mAP"] == pytest.approx(expected)
    # Two are compared on the classes of both.
    pair = [evaluate(truth, table, rules) for table in align_classes(some, more)]
    two = compare_two(*pair, resamples=10)
    of_two = 17 / 44 if absent == "zero" else 17 / 22
    assert two.first.summary["mAP"] == pytest.approx(of_two)
    assert two.second.summary["mAP"] == pytest.approx(expected)


def test_bad_arguments_are_named() -> None:
    good, poor = RESULTS["good"], RESULTS["poor"]
    unscored = detector(1, 0.5, scores=False)
    on_some = evaluate(TRUTH, good.detections, "coco", images=range(10))
    for results, options, message in (
        ([good], {}, "expected two or more results, got 1"),
        ({}, {}, "expected two or more results, got 0"),
        ([good, 3], {}, "expected Result, got int; detap.evaluate returns it"),
        (RESULTS, {"reference": "god"}, "no detector is named 'god'; did you mean good?"),
        (RESULTS, {"metric": "AP5"}, "AP5"),
        ({"a": unscored, "b": good}, {}, "'a' has no scores, and 'b' has"),
        (
            {"a": good, "b": evaluate(TRUTH, poor.detections, "voc2012")},
            {},
            "the results of 'a' and 'b' are of different protocols",
        ),
        ({"a": good, "b": on_some}, {}, "the results of 'a' and 'b' are of different images"),
    ):
        with pytest.raises(UsageError) as caught:
            detap.compare(results, **options)  # type: ignore[arg-type]
        assert message in str(caught.value)
    with pytest.raises(UsageError, match="uses matching by-iou"):
        detap.compare([evaluate(TRUTH, good.detections, protocol("proposals"))] * 2)


def test_names_are_stems() -> None:
    assert name_of("runs/base-v1.2.json") == "base-v1.2"
    assert name_of("runs/base.json.gz") == "base"
    assert name_of("s3://bucket/base.json") == "base"
    assert name_of(".json") == ".json"
