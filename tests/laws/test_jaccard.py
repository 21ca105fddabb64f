"""The Jaccard index against every matching, for any data."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.analysis.bootstrap import Weights, resampled
from detap.evaluation.detection import evaluate, on_images
from detap.protocols import Protocol, protocol
from tests.cases import RANKED, Case, cases
from tests.oracle.jaccard import SAME, jaccard_index
from tests.oracle.resampling import repeated

PROTOCOLS = [
    *(one for one in RANKED.values() if one.group_of_weight is None),
    replace(protocol("coco"), max_dets_scope="image", max_dets=(1, 2, 4)),
    replace(protocol("voc2012"), iou_thresholds=(0.3, 0.5)),
]


@given(cases(), st.sampled_from(PROTOCOLS))
def test_the_index_is_that_of_a_matching_of_largest_total_iou(
    case: Case, protocol: Protocol
) -> None:
    """With ties, ignored objects and images without objects or detections."""
    tables = case.tables()
    result = evaluate(*tables, protocol)
    for t in (0, len(protocol.iou_thresholds) - 1):
        percent = format(100 * protocol.iou_thresholds[t], ".6g")
        for label, value in enumerate(result.metric_by_class(f"JI@{percent}").tolist()):
            low, high = jaccard_index(*tables, protocol, label, t)
            if np.isnan(low):
                assert np.isnan(value)
            else:
                assert low - SAME <= value <= high + SAME


@given(cases(distinct_scores=True), st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_a_weight_equals_copies_of_the_image(case: Case, drawn: list[int]) -> None:
    truth, detections = case.tables()
    weights = drawn[: len(truth.images)]
    if not any(weights):
        return
    ours = resampled(
        evaluate(truth, detections, "coco"), Weights.from_table(np.array([weights])), ["JI"]
    )
    copied = evaluate(*repeated(truth, detections, weights), "coco")
    expected = copied.metric_by_class("JI")
    np.testing.assert_allclose(ours.by_class["JI"][:, 0], expected, atol=1e-12)
    assert ours.overall["JI"][0] == pytest.approx(copied.metric("JI"), abs=1e-12, nan_ok=True)


@given(cases())
def test_a_slice_of_all_images_changes_nothing(case: Case) -> None:
    result = evaluate(*case.tables(), "coco")
    again = on_images(result, result.images)
    assert result.metric_by_class("JI").tobytes() == again.metric_by_class("JI").tobytes()
