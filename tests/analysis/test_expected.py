"""The numbers of tidecv, hotcoco and the reference of report.md, case by case."""

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
    due = expected()[case]["errors_protocol_coco_iou50"]
    found = errors(scored(case))
    assert found.average_precision == pytest.approx(due["ap"], abs=1e-12)
    assert int(np.isfinite(found.average_precision_by_class).sum()) == due["classes"]
    assert named(found.delta_ap) == pytest.approx(due["delta"], abs=1e-9)
    assert {name: named(found.count)[name] for name in due["counts"]} == due["counts"]


def test_errors_as_tidecv(case: str) -> None:
    due = expected()[case]["tidecv_1_0_1"]
    found = errors(scored(case), "tidecv")
    assert 100 * found.average_precision == pytest.approx(due["mAP"], abs=1e-9)
    points = due["dAP"] | due["dAP_special"]
    assert named(100 * found.delta_ap) == pytest.approx(points, abs=1e-9)
    assert {name: named(found.count)[name] for name in due["counts"]} == due["counts"]
    assert int(np.isfinite(found.average_precision_by_class).sum()) == due["classes_in_mean"]
    after = found.average_precision_by_class + found.delta_ap_by_class
    assert named(np.isfinite(after).sum(axis=1)) == due["classes_in_mean_after_fix"]
    for name, entry in due["per_class"].items():
        label = found.classes.index(name)
        assert 100 * found.average_precision_by_class[label] == pytest.approx(entry["ap"], abs=1e-9)
        after_class = named(100 * after[:, label]).items()
        fixed = {key: None if np.isnan(value) else value for key, value in after_class}
        assert fixed == pytest.approx(entry["fixed"], abs=1e-9)
        counts = named(found.count_by_class[:, label])
        assert {name: counts[name] for name in due["counts"] if counts[name]} == entry["counts"]


def named(values: Any) -> dict[str, Any]:
    return dict(zip(SHORT.values(), values.tolist(), strict=True))


def test_counts(case: str) -> None:
    due = expected()[case]["reference_iou50"]
    outcome = MatchResults.of(scored(case))
    counts = (
        outcome.true_positive,
        outcome.false_positive,
        outcome.positive,
        outcome.within_max_dets & outcome.ignored,
    )
    assert [int(count.sum()) for count in counts] == [
        due[name] for name in ("tp", "fp", "gt", "ignored")
    ]
    assert outcome.images == due["images"]


def test_operating_point(case: str) -> None:
    due = expected()[case]["reference_iou50"]
    best = sweeps(scored(case)).best
    micro = due["best_f1_micro"]
    assert facts(best.overall) == [micro[name] for name in ("f1", "score", "tp", "fp", "fn")]
    assert best.overall.precision == pytest.approx(micro["precision"], abs=1e-15)
    assert best.overall.recall == pytest.approx(micro["recall"], abs=1e-15)
    assert best.overall.false_positives_per_image == pytest.approx(micro["fppi"], abs=1e-15)
    assert best.macro_f1 == pytest.approx(due["macro_best_f1"], abs=1e-12)
    for name, entry in due["best_f1_per_class"].items():
        point = best.by_class[best.classes.index(name)]
        assert facts(point)[:4] == [entry[key] for key in ("f1", "score", "tp", "fp")]


def facts(point: Point) -> list[float]:
    counts = (point.true_positives, point.false_positives, point.false_negatives)
    return [point.f1, point.score, *counts]


@pytest.mark.parametrize("score", [None, 0.5])
@pytest.mark.parametrize("rule", ["protocol", "class-agnostic"])
def test_confusion(case: str, rule: Rule, score: float | None) -> None:
    key = {"protocol": "protocol_first", "class-agnostic": "class_agnostic"}[rule]
    due = expected()[case]["reference_iou50"][f"confusion_{key}"][str(score or "all")]
    found = confusion(scored(case), rule, score=score)
    assert {
        "diagonal": found.matched,
        "confused": found.misclassified,
        "missed": found.missed,
        "background": found.background,
    } == {name: due[name] for name in ("diagonal", "confused", "missed", "background")}
    assert [cell.pairs for cell in found.largest(5)] == [count for count, _, _ in due["top"]]
    if "matrix" in due:
        assert found.matrix.tolist() == due["matrix"]


def test_calibration(case: str) -> None:
    due = expected()[case]["reference_iou50"]
    found = calibration(scored(case))
    assert found.expected_error == pytest.approx(due["ece10"], abs=1e-12)
    assert found.largest_error == pytest.approx(due["mce10"], abs=1e-12)
    assert found.localized_error == pytest.approx(due["laece25_tau0.5"], abs=1e-12)
    assert calibration(scored(case), bins=15).expected_error == pytest.approx(
        due["ece15"], abs=1e-12
    )
