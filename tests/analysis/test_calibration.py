"""Score calibration."""

from dataclasses import replace
from math import isnan

import numpy as np
import pytest

from detap.analysis.calibration import calibration
from detap.errors import UsageError
from detap.evaluation.detection import evaluate
from tests.analysis.data import fixture


def test_the_case_computed_by_hand() -> None:
    """Bins of tenths: .05; .40; .50 and .55; .60; .70; .80 and .85; .95."""
    bins = fixture().calibration()
    assert bins.overall.edges.tolist() == [n / 10 for n in range(11)]
    assert bins.overall.count.tolist() == [1, 0, 0, 0, 1, 2, 1, 1, 2, 1]
    gaps = [0.05, 0.4, 2 * abs(0.525 - 0.5), 0.4, 0.7, 2 * 0.825, 0.05]
    assert bins.expected_error == pytest.approx(sum(gaps) / 9, abs=1e-15)
    assert bins.largest_error == pytest.approx(0.825)
    # In 25ths every detection is alone in its bin; of a and b in turn.
    a = [1 - 0.95, 0.85, 0.8, 0.7, abs(70 / 130 - 0.55), 0.5, 0.05]
    b = [0.8 - 0.6, 0.4]
    assert bins.localized_error == pytest.approx((sum(a) / 7 + sum(b) / 2) / 2, abs=1e-15)
    assert [int(part.count.sum()) for part in bins.by_class] == [7, 2]


def test_a_score_on_a_bin_edge_counts_in_the_upper_bin() -> None:
    result = fixture()
    scores = np.array([0.0, 0.1, 0.3, 0.7, 0.8, 0.9, 0.6, 1.0, 0.2])
    bins = evaluate(result.ground_truth, replace(result.detections, score=scores)).calibration()
    assert bins.overall.count.tolist() == [1, 1, 1, 1, 0, 0, 1, 1, 1, 2]


def test_without_detections_it_is_undefined() -> None:
    result = fixture()
    empty = evaluate(result.ground_truth, result.detections.select(np.zeros(0, np.int32)))
    bins = empty.calibration()
    assert isnan(bins.expected_error)
    assert isnan(bins.largest_error)
    assert isnan(bins.localized_error)


def test_scores_outside_0_to_1_are_rejected() -> None:
    result = fixture()
    logits = replace(result.detections, score=result.detections.score * 4 - 1)
    with pytest.raises(UsageError, match=r"7 scores lie outside \[0, 1\], such as 2.8"):
        evaluate(result.ground_truth, logits).calibration()
    with pytest.raises(UsageError, match="0 bins; calibration takes at least 1"):
        calibration(result, bins=0)
