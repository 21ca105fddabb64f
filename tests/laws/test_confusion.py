"""The candidates of false positives give the confusion matrix at any score threshold."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from detap.analysis.confusion import confusion, misclassifiable
from detap.analysis.match_results import MatchResults
from detap.evaluation.detection import evaluate
from detap.evaluation.results import Result
from detap.protocols import Protocol
from tests.cases import Case, cases
from tests.depth import examples
from tests.laws.test_keypoints import keypoint_cases
from tests.laws.test_keypoints import scored as scored_keypoints
from tests.laws.test_masks import Scene, mask_cases
from tests.laws.test_masks import scored as scored_masks
from tests.laws.test_match_table import PRESETS
from tests.parity.test_core_is_oracle import any_protocol


def check(result: Result) -> None:
    """Compare the pairs of two classes with those of confusion() at each score."""
    results = MatchResults.of(result)
    possible, score = misclassifiable(results), results.boxes[0].score
    candidates = np.split(possible.candidate, np.cumsum(possible.candidate_count)[:-1])
    for threshold in np.unique(score).tolist():
        pairs, taken = set(), set()
        for detection, choices in zip(possible.detection.tolist(), candidates, strict=False):
            if score[detection] < threshold:
                continue
            for choice in choices.tolist():
                by = possible.matched_by[choice]
                if choice not in taken and not (by >= 0 and score[by] >= threshold):
                    taken.add(choice)
                    pairs.add((detection, int(possible.ground_truth[choice])))
                    break
        matrix = confusion(results, score=threshold)
        both = (matrix.detection >= 0) & (matrix.ground_truth >= 0)
        expected = {
            pair
            for pair in zip(
                matrix.detection[both].tolist(), matrix.ground_truth[both].tolist(), strict=True
            )
            if not results.true_positive[pair[0]]
        }
        assert pairs == expected


@given(cases(), st.one_of(PRESETS, any_protocol()))
@examples(200)
def test_candidates_give_the_matrix_of_boxes(case: Case, protocol: Protocol) -> None:
    check(evaluate(*case.tables(), protocol))


@given(mask_cases())
def test_candidates_give_the_matrix_of_masks(case: Scene) -> None:
    check(scored_masks(*case, "coco-segm"))


@given(keypoint_cases())
def test_candidates_give_the_matrix_of_keypoints(case: Scene) -> None:
    check(scored_keypoints(*case))
