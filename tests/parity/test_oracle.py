"""The oracle is correct: it equals pycocotools and a standard voc_eval."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.protocols import ALL_AREAS, AreaRange, Protocol, protocol
from tests.cases import Case, cases, crowded_cases, on_integers
from tests.depth import examples
from tests.oracle import score
from tests.parity import reference
from tests.parity.compare import assert_same_bits
from tests.parity.voc_eval import voc_eval


def _compare(case: Case, protocol: Protocol) -> None:
    theirs = reference.run(*case.coco(), protocol)
    ours = score(*case.tables(), protocol)
    assert_same_bits(ours.precision, theirs.precision, "precision")
    assert_same_bits(ours.recall, theirs.recall, "recall")
    assert_same_bits(ours.matched, theirs.matched, "matches")
    assert_same_bits(ours.ignored, theirs.ignored, "ignored")
    assert_same_bits(ours.counted, theirs.counted, "counted")


@given(cases())
def test_the_oracle_equals_pycocotools_on_small_cases(case: Case) -> None:
    _compare(case, protocol("coco"))


@given(crowded_cases())
@examples(6)
def test_the_oracle_equals_pycocotools_on_many_detections(case: Case) -> None:
    _compare(case, protocol("coco"))


@given(cases(), st.booleans())
def test_the_oracle_equals_pycocotools_with_other_fields(case: Case, agnostic: bool) -> None:
    rules = replace(
        protocol("coco"),
        iou_thresholds=(0.3, 0.5, 0.6, 0.8, 1.0),
        max_dets=(2, 3),
        area_ranges=(ALL_AREAS, AreaRange("odd", 1.0, 1024.0, "o")),
        class_agnostic=agnostic,
    )
    _compare(case, rules)


@pytest.mark.parametrize("eleven_points", [False, True])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("pixel", [0.0, 1.0])
@given(cases(crowds=False))
@examples(25)
def test_the_oracle_equals_voc_eval(
    eleven_points: bool, strict: bool, pixel: float, case: Case
) -> None:
    truth, detections = case.tables()
    # voc_eval knows corners only; integer ones, so that no last bit depends on the encoding.
    truth = on_integers(truth)
    detections = on_integers(detections)
    rules = replace(
        protocol("voc2007-py" if eleven_points else "voc2012"),
        strict_iou=strict,
        inclusive_pixels=bool(pixel),
    )
    ours = score(truth, detections, rules)
    for label in range(len(truth.classes)):
        recall, _, average = voc_eval(
            truth, detections, label, eleven_points=eleven_points, strict=strict, pixel=pixel
        )
        final = recall[-1] if len(recall) else 0.0
        np.testing.assert_allclose(ours.average_precision[0, label, 0], average, atol=1e-12)
        if not np.isnan(average):
            assert ours.recall[0, label, 0, 0] == final
