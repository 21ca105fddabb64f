"""Recall and precision by group, and histograms."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from detap.analysis.breakdowns import breakdowns, iou_histogram, score_histogram
from detap.analysis.match_results import MatchResults
from detap.evaluation.detection import evaluate
from tests.analysis.data import fixture
from tests.cases import Case, Detection, Truth, cases


def test_by_size_and_aspect_ratio() -> None:
    """Sizes of 16 and 31.9, each with 32 as other size; aspect ratios of 2 and 1/4."""
    case = Case(
        truths=(
            Truth(1, 1, (0, 0, 16, 16)),
            Truth(1, 1, (100, 0, 32, 16)),
            Truth(1, 1, (200, 0, 16, 64)),
        ),
        dt=(Detection(1, 1, (0, 0, 16, 16), 0.9), Detection(1, 1, (200, 0, 64, 64), 0.2)),
    )
    groups = breakdowns(evaluate(*case.tables()))
    assert groups.size.groups == ("0-16", "16-32", "32-64", "64-96", "96-192", "192-")
    assert groups.size.ground_truths.tolist() == [0, 2, 1, 0, 0, 0]
    assert groups.size.matched.tolist() == [0, 1, 0, 0, 0, 0]
    assert groups.size.detections.tolist() == [0, 1, 0, 1, 0, 0]
    assert groups.size.recall.tolist()[1:3] == [0.5, 0]
    assert np.isnan(groups.size.recall[0])
    assert groups.size.precision.tolist()[1:4:2] == [1, 0]
    assert groups.aspect_ratio.groups[:2] == ("0-0.333", "0.333-0.667")
    assert groups.aspect_ratio.ground_truths.tolist() == [1, 0, 1, 1, 0]
    assert groups.crowding.ground_truths.tolist() == [0, 0, 3, 0, 0, 0]
    assert groups.position is None
    surer = breakdowns(evaluate(*case.tables()), score=0.5)
    assert surer.size.detections.tolist() == [0, 1, 0, 0, 0, 0]


def test_the_last_group_has_no_upper_bound() -> None:
    """400 by 100: size 200, aspect ratio 4."""
    case = Case(truths=(Truth(1, 1, (0, 0, 400, 100)),))
    groups = breakdowns(evaluate(*case.tables()))
    assert groups.size.ground_truths.tolist() == [0, 0, 0, 0, 0, 1]
    assert groups.aspect_ratio.ground_truths.tolist() == [0, 0, 0, 0, 1]


def test_by_crowding_and_position() -> None:
    """The images are 60 wide: boxes at 0, 20 and 40 are left, center and right."""
    groups = breakdowns(fixture())
    assert groups.crowding.groups == ("0-1", "1-2", "2-4", "4-8", "8-16", "16-")
    assert groups.crowding.ground_truths.tolist() == [0, 0, 5, 0, 0, 0]
    assert groups.crowding.detections.tolist() == [2, 0, 7, 0, 0, 0]
    assert groups.position is not None
    assert groups.position.groups[0] == "top left"
    # 10 high in 30: the centre, at 5, is in the top third.
    assert groups.position.ground_truths.tolist() == [2, 2, 1, 0, 0, 0, 0, 0, 0]
    assert groups.position.matched.tolist() == [1, 1, 1, 0, 0, 0, 0, 0, 0]
    assert groups.position.detections.tolist() == [3, 3, 1, 0, 0, 0, 0, 0, 2]


def test_images_of_unknown_size_have_no_position() -> None:
    result = fixture()
    sizes = np.array([[60.0, 30.0], [np.nan, np.nan], [60.0, 60.0]])
    truth = replace(result.ground_truth, image_sizes=sizes)
    position = breakdowns(evaluate(truth, result.detections)).position
    assert position is not None
    assert position.ground_truths.sum() == 3
    unknown = replace(truth, image_sizes=np.full((3, 2), np.nan))
    assert breakdowns(evaluate(unknown, result.detections)).position is None


@given(cases())
def test_groups_add_up_to_the_total(case: Case) -> None:
    outcome = MatchResults.of(evaluate(*case.tables()))
    groups = breakdowns(outcome)
    for part in (groups.size, groups.aspect_ratio, groups.crowding):
        assert part.ground_truths.sum() == outcome.positive.sum()
        assert part.matched.sum() == part.true_positives.sum() == outcome.true_positive.sum()
        assert part.detections.sum() == outcome.scored.sum()
    for histogram in (score_histogram(outcome), iou_histogram(outcome)):
        assert histogram.true_positives.sum() == outcome.true_positive.sum()
        assert histogram.false_positives.sum() == outcome.false_positive.sum()


def test_histograms() -> None:
    """IoU of TPs: 1, .8 and 70/130; of FPs: .9, .43 and four times 0."""
    overlap = iou_histogram(fixture(), bins=10)
    assert overlap.true_positives.tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 1, 1]
    assert overlap.false_positives.tolist() == [4, 0, 0, 0, 1, 0, 0, 0, 0, 1]
    score = score_histogram(fixture(), bins=2)
    assert score.edges.tolist() == [0, 0.5, 1]
    assert (score.true_positives.tolist(), score.false_positives.tolist()) == ([0, 3], [2, 4])
    # At IoU .75 the true positive of IoU .54, with score .55, is a false positive.
    strict = score_histogram(fixture(), bins=2, iou=0.75)
    assert (strict.true_positives.tolist(), strict.false_positives.tolist()) == ([0, 2], [2, 5])
    result = fixture()
    logits = replace(result.detections, score=result.detections.score * 20)
    wide = score_histogram(evaluate(result.ground_truth, logits), bins=2)
    assert wide.edges.tolist() == pytest.approx([1, 10, 19])
