"""Match results of one image."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.analysis.errors import TYPES, errors
from detap.analysis.image_results import (
    DetectionResult,
    image_results,
)
from detap.analysis.match_results import MatchResults
from detap.errors import UsageError
from detap.evaluation.detection import evaluate
from detap.protocols import Protocol
from tests.cases import Case, Detection, Truth, cases
from tests.parity.test_core_is_oracle import any_protocol


def test_the_target_of_an_error_comes_before_the_nearest_object() -> None:
    """IoU 60/140 with the ground truth of its class, 80/120 with one of another class."""
    case = Case(
        truths=(Truth(1, 1, (0, 0, 10, 10)), Truth(1, 2, (6, 0, 10, 10))),
        dt=(Detection(1, 1, (4, 0, 10, 10), 0.9),),
        classes=(1, 2),
    )
    result = image_results(evaluate(*case.tables()), 1)
    assert result.detections == (DetectionResult(0, 0, 0.9, "localization", 0, 60 / 140, -1),)


def test_ignored_and_excluded_detections() -> None:
    """One detection matches a crowd, another is outside every area range."""
    case = Case(
        truths=(Truth(1, 1, (0, 0, 100, 100), crowd=True), Truth(1, 1, (0, 0, 3e5, 3e5))),
        dt=(
            Detection(1, 1, (10, 10, 10, 10), 0.9),
            Detection(1, 1, (4e5, 0, 2e5, 2e5), 0.8),
            *(Detection(1, 1, (200, 200, 10, 10), 0.5) for _ in range(99)),
        ),
    )
    result = image_results(evaluate(*case.tables()), 1)
    assert result.detections[0] == DetectionResult(0, 1 - 1, 0.9, "ignored", 0, 1.0, -1)
    assert result.detections[1].result == "outside-area-range"
    assert [entry.result for entry in result.detections[-2:]] == ["background", "beyond-max-dets"]
    assert [entry.result for entry in result.ground_truths] == ["ignored", "outside-area-range"]


def test_an_unknown_image_gets_suggestions() -> None:
    case = Case(truths=(Truth(301, 1, (0, 0, 1, 1)),), images=(301, 302))
    with pytest.raises(UsageError, match="'303' is not in the ground truth; did you mean 30"):
        image_results(evaluate(*case.tables()), 303)


@given(cases(), any_protocol(), st.data())
def test_every_row_of_an_image_has_one_result(
    case: Case, protocol: Protocol, data: st.DataObject
) -> None:
    outcome = MatchResults.of(evaluate(*case.tables(), protocol))
    kinds = errors(outcome)
    image = data.draw(st.sampled_from(case.images))
    result = image_results(outcome, image, types=kinds)
    number = case.images.index(image)
    table = outcome.run.detections
    rows = [n for n in range(len(table)) if table.image[n] == number]
    assert sorted(entry.row for entry in result.detections) == rows
    scores = [entry.score for entry in result.detections]
    assert scores == sorted(scores, reverse=True)
    for entry in result.detections:
        assert (entry.result == "true-positive") == outcome.true_positive[entry.row]
        assert (entry.result in TYPES) == outcome.false_positive[entry.row]
    for truth in result.ground_truths:
        assert (truth.result == "matched") == outcome.matched[truth.row]
        assert (truth.result == "missed") == kinds.missed[truth.row]
        if truth.result == "matched":
            assert outcome.matched_gt[truth.detection] == truth.row
