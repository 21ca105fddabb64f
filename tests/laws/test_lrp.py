"""Localization recall precision against plain loops, for any data."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.evaluation.detection import evaluate
from detap.evaluation.results import Result
from detap.metrics import of_matched_iou
from detap.protocols import Protocol, protocol
from tests.cases import MORE, RANKED, Case, cases
from tests.laws.test_keypoints import RULES, keypoint_cases, scored
from tests.laws.test_masks import Scene
from tests.oracle import lrp as plain
from tests.oracle.jaccard import SAME, jaccard_index
from tests.parity.compare import assert_same_bits

PROTOCOLS = [
    *RANKED.values(),
    replace(protocol("coco"), tie_break="file"),
    replace(protocol("coco"), class_agnostic=True),
    replace(protocol("coco"), max_dets_scope="image", max_dets=(1, 2, 4)),
    replace(protocol("coco"), iou_thresholds=(0.3, 0.5, 1.0)),
    replace(protocol("voc2012"), iou_thresholds=(0.3, 0.5)),
]
OPTIMUM = ("oLRP", "oLRP-loc", "oLRP-fp", "oLRP-fn")


def names(protocol: Protocol, stems: tuple[str, ...]) -> Iterator[tuple[str, str, int, int]]:
    """Yield stem, name, threshold and area at the first and last threshold and each area."""
    for area, area_range in enumerate(protocol.area_ranges):
        for t in {0, len(protocol.iou_thresholds) - 1}:
            percent = format(100 * protocol.iou_thresholds[t], ".6g")
            for stem in stems:
                yield stem, f"{stem}@{percent}{area_range.suffix}", t, area


@given(cases(), st.sampled_from(PROTOCOLS))
def test_the_optimum_is_that_of_the_oracle(case: Case, protocol: Protocol) -> None:
    """At each IoU threshold and area range, with ties, ignored objects and empty images."""
    tables = case.tables()
    result = evaluate(*tables, protocol)
    for stem, name, t, area in names(protocol, OPTIMUM):
        tau = protocol.iou_thresholds[t]
        for label, value in enumerate(result.metric_by_class(name).tolist()):
            ranked, count = plain.ranking(*tables, protocol, label, threshold=t, area=area)
            expected = plain.optimum(ranked, count, tau)[stem]
            assert value == pytest.approx(expected, abs=1e-11, nan_ok=True), name


@given(cases(), st.sampled_from(PROTOCOLS), st.sampled_from(("0", "0.2", "0.5", "0.9", "99")))
def test_the_value_at_a_score_is_that_of_the_oracle(
    case: Case, protocol: Protocol, score: str
) -> None:
    tables = case.tables()
    result = evaluate(*tables, protocol)
    for _, name, t, area in names(protocol, (f"LRP@score={score}",)):
        tau = protocol.iou_thresholds[t]
        for label, value in enumerate(result.metric_by_class(name).tolist()):
            ranked, count = plain.ranking(*tables, protocol, label, threshold=t, area=area)
            expected = plain.at_score(ranked, count, tau, float(score))
            assert value == pytest.approx(expected, abs=1e-12, nan_ok=True), name


def listing(protocol: Protocol) -> Protocol:
    """Return the protocol with oLRP at each area range and with its components."""
    areas = [f"oLRP{area_range.suffix}" for area_range in protocol.area_ranges]
    last = format(100 * protocol.iou_thresholds[-1], ".6g")
    return replace(protocol, metrics=(*areas, *OPTIMUM[1:], f"oLRP@{last}", "LRP@score=0.5"))


every_protocol = st.sampled_from([*PROTOCOLS, *MORE.values(), protocol("coco-segm")]).map(listing)


@given(cases(), every_protocol)
def test_the_iou_of_a_match_is_that_of_all_pairs(case: Case, protocol: Protocol) -> None:
    """Boxes, masks, boundaries and quadrilaterals; matches may differ between areas."""
    assert_ious_of_pairs(evaluate(*case.tables_for(protocol), protocol))


@pytest.mark.filterwarnings("ignore::detap.errors.DetapWarning")
@given(keypoint_cases())
def test_the_oks_of_a_match_is_that_of_all_pairs(case: Scene) -> None:
    assert_ious_of_pairs(scored(*case, listing(RULES)))


def assert_ious_of_pairs(result: Result) -> None:
    run = result._run
    for pair, spec in of_matched_iou(result.protocol).items():
        iou = result.matched_iou(spec)
        hits = result.match_table.is_true_positive(*pair)
        assert_same_bits(iou > 0, hits, "true positives")
        matched = result.match_table_for(pair).matched_gt_at(*pair)
        for row in np.flatnonzero(hits).tolist():
            alone = run.overlaps(run.boxes(), np.array([row]), matched[row : row + 1])
            assert iou[row] == alone[0, 0]


# --- the Jaccard index against every matching


WITH_INDEX = [
    *(one for one in RANKED.values() if one.group_of_weight is None),
    replace(protocol("coco"), max_dets_scope="image", max_dets=(1, 2, 4)),
    replace(protocol("voc2012"), iou_thresholds=(0.3, 0.5)),
]


@given(cases(), st.sampled_from(WITH_INDEX))
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
