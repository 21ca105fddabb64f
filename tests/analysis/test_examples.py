"""Worst images, confident errors and possible label errors."""

from detap.analysis.errors import errors
from detap.analysis.examples import label_errors, worst_images
from detap.analysis.match_results import MatchResults
from detap.evaluation.detection import evaluate
from tests.analysis.data import fixture
from tests.cases import Case, Detection, Truth


def test_worst_images() -> None:
    """FP + FN: 2 + 0 in the first image, 2 + 2 in the second, 2 in the third."""
    outcome = MatchResults.of(fixture())
    worst = worst_images(outcome, max_count=9)
    assert worst.image.tolist() == [1, 0, 2]
    assert worst.false_positives.tolist() == [2, 2, 2]
    assert worst.false_negatives.tolist() == [2, 0, 0]
    surer = worst_images(outcome, score=0.9, max_count=2)
    assert surer.image.tolist() == [0, 1]
    assert surer.false_positives.tolist() == [0, 0]
    assert surer.false_negatives.tolist() == [2, 2]
    assert worst_images(outcome, score=0.9, max_count=9).image.tolist() == [0, 1]


def test_possible_label_errors() -> None:
    """Confident means at least .6, the median TP score; only one of two b's is matched."""
    outcome = MatchResults.of(fixture())
    for max_count in (1, 9):
        suspicious = label_errors(outcome, errors(outcome), max_count=max_count)
        assert suspicious == [("wrong_label", 2, 1)]
    assert label_errors(outcome, errors(outcome), max_count=0) == []


def test_confident_detections_score_the_median_of_true_positives() -> None:
    """True positives of .9, .7, .5 and .1: .6, and one background detection is surer."""
    boxes = [(30.0 * n, 0.0, 10.0, 10.0) for n in range(6)]
    boxes_found = [
        Detection(1, 1, box, score)
        for box, score in zip(boxes, (0.9, 0.7, 0.5, 0.1, 0.65, 0.55), strict=True)
    ]
    truths = tuple(Truth(1, 1, box) for box in boxes[:4])
    outcome = MatchResults.of(evaluate(*Case(truths=truths, dt=tuple(boxes_found)).tables()))
    suspicious = label_errors(outcome, errors(outcome), max_count=9)
    assert suspicious == [("missing_annotation", 4, -1)]


def test_never_detected_objects_of_a_mostly_detected_class() -> None:
    """2 of 4 of the first class are matched, 3 of 5 of the second: its two others, larger first."""
    boxes = [(30.0 * n, 0.0, 10.0 + n, 10.0) for n in range(9)]
    case = Case(
        truths=tuple(Truth(1, 1 + (n > 3), box) for n, box in enumerate(boxes)),
        dt=tuple(Detection(1, 1 + (n > 3), boxes[n], 0.9) for n in (0, 1, 4, 5, 6)),
        classes=(1, 2),
    )
    outcome = MatchResults.of(evaluate(*case.tables()))
    suspicious = label_errors(outcome, errors(outcome), max_count=9)
    assert suspicious == [("never_detected", -1, 8), ("never_detected", -1, 7)]
