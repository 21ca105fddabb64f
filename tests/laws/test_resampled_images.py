"""Resampled and selected images have the metrics of tables with these images."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.analysis.bootstrap import Weights, resampled
from detap.evaluation.detection import evaluate
from detap.evaluation.scoring import on_images
from detap.protocols import protocol
from tests.cases import Case, cases
from tests.laws import test_lrp as lrp
from tests.laws import test_ranked as ranked
from tests.oracle.resampling import repeated

RANKED = st.builds(
    lambda rules, fields, froc: rules.with_changes(**fields, **froc),
    st.sampled_from(ranked.PROTOCOLS),
    ranked.FIELDS,
    ranked.FROC,
)
FAMILIES: dict[str, tuple[Any, Any, float]] = {
    "JI": (("JI",), st.just(protocol("coco")), 1e-12),
    # The optimum is searched anew in each resample.
    "LRP": ((*lrp.OPTIMUM, "LRP@score=0.6"), st.sampled_from(lrp.PROTOCOLS), 1e-11),
    # Whole images are drawn, with those that have neither ground truths nor detections.
    "ranked": (ranked.NAMES, RANKED, 1e-12),
}


@pytest.mark.parametrize("family", FAMILIES)
@given(cases(distinct_scores=True), st.lists(st.integers(0, 3), min_size=3, max_size=3), st.data())
def test_a_weight_equals_copies_of_the_image(
    family: str, case: Case, drawn: list[int], data: st.DataObject
) -> None:
    names, rules, tolerance = FAMILIES[family]
    protocol = data.draw(rules)
    truth, detections = case.tables()
    weights = drawn[: len(truth.images)]
    ours = resampled(
        evaluate(truth, detections, protocol),
        Weights.from_table(np.array([weights, [1] * len(weights)], np.uint8)),
        names,
    )
    for index, counts in enumerate((weights, [1] * len(weights))):
        if not any(counts):
            continue
        copied = evaluate(*repeated(truth, detections, counts), protocol)
        for name in names:
            expected = copied.metric_by_class(name)
            np.testing.assert_allclose(
                ours.by_class[name].drawn[:, index], expected, atol=tolerance
            )
            assert ours.overall[name].drawn[index] == pytest.approx(
                copied.metric(name), abs=tolerance, nan_ok=True
            )


@given(cases(), st.sampled_from(("JI", *ranked.NAMES)))
def test_a_slice_of_all_images_changes_nothing(case: Case, name: str) -> None:
    result = evaluate(*case.tables(), "coco")
    again = on_images(result, result.images)
    assert result.metric_by_class(name).tobytes() == again.metric_by_class(name).tobytes()
