"""The Jaccard index against every matching, for any data."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from detap.evaluation.detection import evaluate
from detap.protocols import Protocol, protocol
from tests.cases import RANKED, Case, cases
from tests.oracle.jaccard import SAME, jaccard_index

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
