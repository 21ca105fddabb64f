"""Confusion matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.analysis.confusion import Cell, Confusion, confusion
from detap.analysis.match_results import MatchResults
from detap.errors import UsageError
from detap.evaluation.detection import evaluate
from tests.analysis.data import fixture
from tests.cases import RANKED, Case, Detection, Truth, cases


def test_the_case_computed_by_hand() -> None:
    """The .80 of class a overlaps a b that a .60 of class b matches: only one can match it."""
    result = fixture()
    mine = result.confusion()
    assert mine.matrix.tolist() == [[2, 0, 1], [0, 1, 1], [5, 1, 0]]
    assert (mine.matched, mine.misclassified, mine.missed, mine.background) == (3, 0, 2, 6)
    assert mine.largest(3) == []
    other = result.confusion("class-agnostic")
    assert other.matrix.tolist() == [[2, 0, 1], [1, 0, 1], [4, 2, 0]]
    assert other.largest(3) == [Cell(1, 0, 1)]
    pair = (other.ground_truth == 1) & (other.detection == 2)
    assert pair.sum() == 1


def test_at_another_iou_threshold() -> None:
    """At .75 the third a, of IoU .54, is a background FP, and its ground truth is missed."""
    result = confusion(fixture(), iou=0.75)
    assert result.iou == 0.75
    assert result.matrix.tolist() == [[1, 0, 2], [0, 1, 1], [6, 1, 0]]


def test_most_confused_classes() -> None:
    """Equal cells are in the order of their rows; empty ones are left out."""
    nothing = np.zeros(0, np.int32)
    result = Confusion(
        rule="protocol",
        iou=0.5,
        score_threshold=None,
        classes=("a", "b", "c"),
        matrix=np.array([[9, 1, 2, 5], [2, 9, 0, 5], [0, 3, 9, 5], [5, 5, 5, 0]]),
        detection=nothing,
        ground_truth=nothing,
    )
    cells = [Cell(2, 1, 3), Cell(0, 2, 2), Cell(1, 0, 2), Cell(0, 1, 1)]
    assert result.largest(2) == cells[:2]
    assert result.largest(9) == cells


def test_unmatched_detections_match_the_best_iou_of_another_class() -> None:
    """Both dogs overlap cats; the higher score gets the higher IoU, the other the remaining cat."""
    case = Case(
        truths=(Truth(1, 1, (0, 0, 10, 10)), Truth(1, 1, (2, 0, 10, 10))),
        dt=(
            Detection(1, 2, (1.5, 0, 10, 10), 0.6),
            Detection(1, 2, (2, 0, 10, 10), 0.9),
            Detection(1, 2, (90, 0, 5, 5), 0.99),
        ),
        classes=(1, 2),
    )
    result = confusion(evaluate(*case.tables()))
    assert result.matrix.tolist() == [[0, 2, 0], [0, 0, 0], [0, 1, 0]]
    assert dict(zip(result.detection.tolist(), result.ground_truth.tolist(), strict=True)) == {
        2: -1,
        1: 1,
        0: 0,
    }
    kept = confusion(evaluate(*case.tables()), score=0.9)
    assert kept.score_threshold == 0.9
    assert kept.matrix.tolist() == [[0, 1, 1], [0, 0, 0], [0, 1, 0]]


@given(cases(), st.sampled_from([*RANKED]), st.sampled_from([None, 0.3]))
def test_sums_equal_ground_truths_and_detections(
    case: Case, rules: str, score: float | None
) -> None:
    outcome = MatchResults.of(evaluate(*case.tables(), rules))
    labels = outcome.boxes[0].label
    kept = np.ones(len(labels), np.bool_)
    if score is not None:
        kept = outcome.run.detections.score >= score
    for rule, counted in (
        ("protocol", outcome.scored & kept),
        ("class-agnostic", outcome.within_max_dets & kept),
    ):
        result = confusion(outcome, rule, score=score)  # type: ignore[arg-type]
        assert result.matrix[:-1].sum(axis=1).tolist() == outcome.ground_truth_counts.tolist()
        assert (
            result.matrix[:, :-1].sum(axis=0).tolist() == outcome.by_class(labels[counted]).tolist()
        )
        assert result.matrix[-1, -1] == 0
        assert len(result.detection) == result.matrix.sum()
        if rule == "protocol":
            right = outcome.by_class(labels[outcome.true_positive & kept])
            assert np.diagonal(result.matrix)[:-1].tolist() == right.tolist()


def test_an_unknown_rule_is_rejected() -> None:
    with pytest.raises(UsageError, match="rule 'agnostic' is unknown; choose from protocol, class"):
        fixture().confusion("agnostic")  # type: ignore[arg-type]
