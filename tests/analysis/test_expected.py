"""Results of tidecv, hotcoco and the reference of report.md, case by case."""

from typing import Any

import numpy as np
import pytest

from detap.analysis.calibration import calibration
from detap.analysis.confusion import Rule, confusion
from detap.analysis.errors import TYPES, errors
from detap.analysis.match_results import MatchResults
from detap.analysis.operating import Point, sweeps
from tests.analysis.data import CASES, expected, scored

SHORT = dict(
    zip(TYPES, ("Cls", "Loc", "Both", "Dupe", "Bkg", "Miss", "FalsePos", "FalseNeg"), strict=True)
)

pytestmark = pytest.mark.parametrize("case", CASES)


def test_errors_under_the_protocol(case: str) -> None:
    reference = expected()[case]["errors_protocol_coco_iou50"]
    result = errors(scored(case))
    assert result.average_precision == pytest.approx(reference["ap"], abs=1e-12)
    assert int(np.isfinite(result.average_precision_by_class).sum()) == reference["classes"]
    assert named(result.delta_ap) == pytest.approx(reference["delta"], abs=1e-9)
    assert {name: named(result.count)[name] for name in reference["counts"]} == reference["counts"]


def test_errors_as_tidecv(case: str) -> None:
    reference = expected()[case]["tidecv_1_0_1"]
    result = errors(scored(case), "tidecv")
    assert 100 * result.average_precision == pytest.approx(reference["mAP"], abs=1e-9)
    points = reference["dAP"] | reference["dAP_special"]
    assert named(100 * result.delta_ap) == pytest.approx(points, abs=1e-9)
    assert {name: named(result.count)[name] for name in reference["counts"]} == reference["counts"]
    assert int(np.isfinite(result.average_precision_by_class).sum()) == reference["classes_in_mean"]
    after = result.average_precision_by_class + result.delta_ap_by_class
    assert named(np.isfinite(after).sum(axis=1)) == reference["classes_in_mean_after_fix"]
    for name, entry in reference["per_class"].items():
        label = result.classes.index(name)
        assert 100 * result.average_precision_by_class[label] == pytest.approx(
            entry["ap"], abs=1e-9
        )
        after_class = named(100 * after[:, label]).items()
        fixed = {key: None if np.isnan(value) else value for key, value in after_class}
        assert fixed == pytest.approx(entry["fixed"], abs=1e-9)
        counts = named(result.count_by_class[:, label])
        assert {name: counts[name] for name in reference["counts"] if counts[name]} == entry[
            "counts"
        ]


def named(values: Any) -> dict[str, Any]:
    return dict(zip(SHORT.values(), values.tolist(), strict=True))


def test_counts(case: str) -> None:
    reference = expected()[case]["reference_iou50"]
    outcome = MatchResults.of(scored(case))
    counts = (
        outcome.true_positive,
        outcome.false_positive,
        outcome.positive,
        outcome.within_max_dets & outcome.ignored,
    )
    assert [int(count.sum()) for count in counts] == [
        reference[name] for name in ("tp", "fp", "gt", "ignored")
    ]
    assert outcome.images == reference["images"]


def test_operating_point(case: str) -> None:
    reference = expected()[case]["reference_iou50"]
    best = sweeps(scored(case)).best
    micro = reference["best_f1_micro"]
    assert facts(best.overall) == [micro[name] for name in ("f1", "score", "tp", "fp", "fn")]
    assert best.overall.precision == pytest.approx(micro["precision"], abs=1e-15)
    assert best.overall.recall == pytest.approx(micro["recall"], abs=1e-15)
    assert best.overall.false_positives_per_image == pytest.approx(micro["fppi"], abs=1e-15)
    assert best.macro_f1 == pytest.approx(reference["macro_best_f1"], abs=1e-12)
    for name, entry in reference["best_f1_per_class"].items():
        point = best.by_class[best.classes.index(name)]
        assert facts(point)[:4] == [entry[key] for key in ("f1", "score", "tp", "fp")]


def facts(point: Point) -> list[float]:
    counts = (point.true_positives, point.false_positives, point.false_negatives)
    return [point.f1, point.score, *counts]


@pytest.mark.parametrize("score", [None, 0.5])
@pytest.mark.parametrize("rule", ["protocol", "class-agnostic"])
def test_confusion(case: str, rule: Rule, score: float | None) -> None:
    key = {"protocol": "protocol_first", "class-agnostic": "class_agnostic"}[rule]
    reference = expected()[case]["reference_iou50"][f"confusion_{key}"][str(score or "all")]
    result = confusion(scored(case), rule, score=score)
    assert {
        "diagonal": result.matched,
        "confused": result.misclassified,
        "missed": result.missed,
        "background": result.background,
    } == {name: reference[name] for name in ("diagonal", "confused", "missed", "background")}
    assert [cell.pairs for cell in result.largest(5)] == [count for count, _, _ in reference["top"]]
    if "matrix" in reference:
        assert result.matrix.tolist() == reference["matrix"]


def test_calibration(case: str) -> None:
    reference = expected()[case]["reference_iou50"]
    result = calibration(scored(case))
    assert result.expected_error == pytest.approx(reference["ece10"], abs=1e-12)
    assert result.largest_error == pytest.approx(reference["mce10"], abs=1e-12)
    assert result.localized_error == pytest.approx(reference["laece25_tau0.5"], abs=1e-12)
    assert calibration(scored(case), bins=15).expected_error == pytest.approx(
        reference["ece15"], abs=1e-12
    )
