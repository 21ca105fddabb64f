"""Precision, recall and F1 by score threshold."""

from fractions import Fraction
from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.analysis.match_results import MatchResults
from detap.analysis.operating import Point, Sweep, sweeps
from detap.evaluation.detection import evaluate
from tests.analysis.data import fixture
from tests.cases import Case, cases


@pytest.mark.parametrize(
    ("score", "right", "wrong"),
    [(1.0, 0, 0), (0.95, 1, 0), (0.7, 1, 3), (0.6999, 1, 3), (0.6, 2, 3), (0.0, 3, 6)],
)
def test_at_a_given_threshold(score: float, right: int, wrong: int) -> None:
    point = fixture().operating_point(score)
    assert point.overall == Point(score, right, wrong, 5 - right, 3)
    assert sum(entry.true_positives for entry in point.by_class) == right


def test_precision_is_undefined_without_detections() -> None:
    point = fixture().operating_point(2.0).overall
    assert isnan(point.precision)
    assert (point.recall, point.f1) == (0, 0)


def test_an_empty_case() -> None:
    result = fixture()
    empty = evaluate(
        result.ground_truth.select(np.zeros(0, np.int32)),
        result.detections.select(np.zeros(0, np.int32)),
    )
    best = empty.operating_point()
    assert isnan(best.overall.score)
    assert isnan(best.overall.f1)
    assert isnan(best.macro_f1)
    assert sweeps(empty).overall.precision.tolist() == []


def sweep(right: list[int], wrong: list[int], positives: int) -> Sweep:
    return Sweep(
        score=np.arange(len(right), 0, -1) / 8,
        true_positives=np.array(right),
        false_positives=np.array(wrong),
        positives=positives,
        images=1,
    )


def test_equal_f1_goes_to_the_highest_score() -> None:
    """F1 of 2/4, 2/5, 4/8 and 4/9: the first and the third are equal."""
    assert sweep([1, 1, 2, 2], [0, 1, 3, 4], 3).best.score == 4 / 8


def test_f1_is_compared_as_fractions_of_integers() -> None:
    """Two fractions that round to one float64; the second is larger."""
    big = 10**8
    right, wrong = [big - 1, big], [0, 1]
    first, second = (Fraction(2 * r, 3 * big + r + w) for r, w in zip(right, wrong, strict=True))
    assert first != second
    assert (sweep(right, wrong, 3 * big).best.score == 1 / 8) == (second > first)
    tie = sweep([big, 2 * big], [0, 5 * big + 1], 3 * big)
    larger = Fraction(4, 3 + 2 + 5) * 1 > Fraction(2, 4)
    assert not larger
    assert tie.best.score == 2 / 8


@given(cases(), st.sampled_from(["coco", "voc2007", "voc2012-py"]))
def test_every_threshold_equals_a_plain_count(case: Case, rules: str) -> None:
    outcome = MatchResults.of(evaluate(*case.tables(), rules))
    candidates = sweeps(outcome)
    table = outcome.run.detections
    for label, one in [(None, candidates.overall), *enumerate(candidates.by_class)]:
        rows = [
            n
            for n in np.flatnonzero(outcome.scored).tolist()
            if label is None or table.label[n] == label
        ]
        assert one.score.tolist() == sorted({table.score[n] for n in rows}, reverse=True)
        for index, score in enumerate(one.score.tolist()):
            kept = [n for n in rows if table.score[n] >= score]
            right = sum(bool(outcome.true_positive[n]) for n in kept)
            assert one.true_positives[index] == right
            assert one.false_positives[index] == len(kept) - right
            point = one.at(score)
            for name in ("precision", "recall", "f1", "false_positives_per_image"):
                values = getattr(one, name)
                assert values[index] == pytest.approx(getattr(point, name), nan_ok=True)
        best = max((one.at(score).f1 for score in one.score.tolist()), default=nan)
        if not isnan(best):
            assert one.best.f1 == best
            assert one.best.score == max(
                score for index, score in enumerate(one.score.tolist()) if one.f1[index] == best
            )
