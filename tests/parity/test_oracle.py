"""The oracle is correct: it equals pycocotools and a standard voc_eval."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from detap.protocols import protocol
from tests.cases import Case, cases, on_integers
from tests.depth import examples
from tests.oracle import score
from tests.parity.voc_eval import voc_eval


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
