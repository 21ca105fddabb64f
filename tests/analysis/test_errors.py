"""Error types against hand-computed values, tidecv, a second implementation and invariants."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.analysis.errors import TYPES, errors
from detap.analysis.match_results import MatchResults
from detap.errors import UsageError
from detap.evaluation.detection import evaluate
from detap.protocols import PRESETS, Protocol
from tests.analysis.data import fixture, raw_tables
from tests.cases import Case, Detection, Truth, cases
from tests.coco import results_of, truth_of
from tests.oracle.errors import errors as plain_errors
from tests.parity.test_core_is_oracle import any_protocol

TIDECV = json.loads((Path(__file__).parent / "tidecv_cases.json").read_text("utf-8"))


@pytest.mark.parametrize("convention", ["protocol", "tidecv"])
def test_the_case_computed_by_hand(convention: Any) -> None:
    result = fixture().errors(convention)
    assert result.average_precision == pytest.approx((34 + 33 * 2 / 5 + 51) / 202, abs=1e-12)
    # cli/test_analyses.py has all; what AP gains: 3/5 of 67 levels for 2/5 of 33.
    assert result.of_type("localization") == pytest.approx(((3 / 5 * 67 - 2 / 5 * 33) / 202, 1))
    assert result.by_delta_ap()[:2] == ["missed", "localization"]
    kinds = ["-", "duplicate", "classification", "-", "-", "localization", "both"]
    names = [TYPES[kind] if kind >= 0 else "-" for kind in result.kind.tolist()]
    assert names == [*kinds, "background", "background"]
    assert result.target.tolist() == [-1, 0, 1, -1, -1, 3, -1, -1, -1]
    assert result.similarity.tolist() == [0, 0.9, 1, 0, 0, 60 / 140, 0, 0, 0]
    assert np.flatnonzero(result.fixes_target).tolist() == [5]
    assert np.flatnonzero(result.missed).tolist() == [4]
    assert np.flatnonzero(result.unmatched).tolist() == [3, 4]
    # By class: a and b.
    assert result.count_by_class[:, 1].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert result.delta_ap_by_class[TYPES.index("missed")] == pytest.approx(
        [0, 50 / 101], abs=1e-12
    )


@pytest.mark.parametrize("number", range(len(TIDECV)))
def test_small_cases_equal_tidecv(number: int) -> None:
    """tidecv 1.0.1 on synthetic cases: ties, crowds, negative sizes and empty images."""
    case = TIDECV[number]
    result = errors(evaluate(*made(case)), "tidecv")
    assert 100 * result.average_precision == pytest.approx(case["mAP"], abs=1e-9)
    assert result.count[:6].tolist() == case["counts"]
    assert (100 * result.delta_ap).tolist() == pytest.approx(case["changes"], abs=1e-9)


def made(case: dict[str, Any]) -> Any:
    names = {k: str(k) for k in range(1, case["classes"] + 1)}
    rows = [(i, k, box) for i, k, *box, _ in case["truths"]]
    truth = truth_of(rows, names, range(1, case["images"] + 1), size=None)
    for annotation, (*_, flag) in zip(truth["annotations"], case["truths"], strict=True):
        annotation["iscrowd"] = flag
    detections = results_of((i, k, box, score) for i, k, *box, score in case["found"])
    return raw_tables(truth, detections)


@given(cases(), any_protocol())
def test_any_protocol_equals_the_second_implementation(case: Case, protocol: Protocol) -> None:
    result = evaluate(*case.tables(), protocol)
    outcome = MatchResults.of(result)
    ours, plain = errors(outcome), plain_errors(result, outcome.threshold)
    assert ours.average_precision == pytest.approx(plain.average_precision, abs=1e-9, nan_ok=True)
    counts = dict(zip(TYPES, ours.count.tolist(), strict=True))
    assert {name: counts[name] for name in plain.counts} == plain.counts
    changes = dict(zip(TYPES, ours.delta_ap.tolist(), strict=True))
    assert changes == pytest.approx(plain.changes, abs=1e-9, nan_ok=True)


@given(cases(), any_protocol())
def test_every_detection_has_one_type(case: Case, protocol: Protocol) -> None:
    """Types without missed, true positives and excluded detections add up to all detections."""
    result = evaluate(*case.tables(), protocol)
    outcome = MatchResults.of(result)
    error_types = errors(outcome)
    left_out = int((~outcome.within_max_dets | outcome.ignored).sum())
    assert error_types.count[:5].sum() + outcome.true_positive.sum() + left_out == len(
        result.detections
    )
    assert error_types.count[6] == outcome.false_positive.sum()
    assert error_types.count[7] == outcome.ground_truth_counts.sum() - outcome.true_positive.sum()
    assert (error_types.count_by_class.sum(axis=1) == error_types.count).all()
    assert (error_types.missed <= error_types.unmatched).all()


@given(cases(distinct_scores=True, crowds=False, shifts=False), st.randoms(use_true_random=False))
def test_the_order_of_detections_changes_nothing(case: Case, random: Any) -> None:
    """With distinct scores."""
    shuffled = list(case.dt)
    random.shuffle(shuffled)
    for convention in ("protocol", "tidecv"):
        one, other = (
            errors(evaluate(*entry.tables()), convention)
            for entry in (case, case.with_dt(tuple(shuffled)))
        )
        assert one.count.tolist() == other.count.tolist()
        assert one.delta_ap.tolist() == pytest.approx(
            other.delta_ap.tolist(), abs=1e-12, nan_ok=True
        )


def test_without_detections_all_are_missed() -> None:
    result = fixture()
    nothing = result.detections.select(np.zeros(0, np.int32))
    for convention in ("protocol", "tidecv"):
        types = evaluate(result.ground_truth, nothing).errors(convention)
        assert types.average_precision == 0
        assert types.count.tolist() == [0, 0, 0, 0, 0, 5, 0, 5]


def test_invalid_arguments_are_rejected() -> None:
    result = fixture()
    with pytest.raises(UsageError, match="convention 'tide' is unknown; choose from protocol, tid"):
        result.errors("tide")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"IoU 0.52 is not among the thresholds of the evaluation"):
        result.errors(iou=0.52)
    proposals = evaluate(result.ground_truth, result.detections, "proposals")
    for convention in ("protocol", "tidecv"):
        with pytest.raises(UsageError, match="uses matching by-iou, which labels no detection"):
            proposals.errors(convention)
    truth = replace(result.ground_truth, listed={"negative": np.zeros((0, 2), np.int32)})
    listed = evaluate(truth, result.detections, replace(PRESETS["coco"], verified="listed"))
    with pytest.raises(UsageError, match="; type the errors by the protocol: --errors, or eval"):
        listed.errors("tidecv")
    with pytest.raises(UsageError, match="convention tidecv has its own matching; pass a Result"):
        errors(MatchResults.of(result), "tidecv")
    with pytest.raises(KeyError):
        result.errors().of_type("occluded")


def test_errors_of_masks() -> None:
    """A second detection of a mask is a duplicate; one of another class a classification error."""
    box = (0, 0, 20, 20)
    case = Case(
        truths=(Truth(1, 1, box),),
        dt=(Detection(1, 1, box, 0.9), Detection(1, 1, box, 0.8), Detection(1, 2, box, 0.7)),
        classes=(1, 2),
    )
    masks = PRESETS["coco-segm"]
    result = evaluate(*case.tables_for(masks), masks).errors()
    assert [TYPES[kind] for kind in result.kind[1:]] == ["duplicate", "classification"]
    assert result.target.tolist() == [-1, 0, 0]
    assert result.similarity.tolist() == [0, 1, 1]


def test_the_default_threshold_is_0_5_if_evaluated() -> None:
    result = fixture()
    assert result.errors().iou == 0.5
    assert result.errors(iou=0.75).iou == 0.75
    strict = evaluate(
        result.ground_truth, result.detections, Protocol(name="coco", iou_thresholds=(0.6, 0.7))
    )
    assert strict.errors().iou == 0.6
