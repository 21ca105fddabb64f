"""Analyses of a merged result: gates, slices, intervals, comparisons."""

from functools import cache

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import detap
from detap.analysis.comparison import Comparison, compare
from detap.evaluation.detection import score_tables
from detap.evaluation.partial import Partial
from detap.evaluation.results import Result
from detap.gates.checks import Limit
from detap.gates.config import GateConfig, GateResults, OptionNames
from detap.gates.detection import Scored
from detap.gates.evaluate import evaluate_gates
from detap.report import schema
from detap.report.sections.comparison import comparison_report
from detap.report.writers.json import as_dict
from detap.tables.detection import Detections, GroundTruth
from tests.gate.simulation import Quality, World

WORLD = World(60, (0.6, 0.3, 0.1))


@cache
def tables(missed: float) -> tuple[GroundTruth, Detections]:
    truth = WORLD.truth(np.random.default_rng(5))
    return truth, WORLD.detections(truth, Quality(missed, 0.08, 1.0), np.random.default_rng(6))


@cache
def both(missed: float) -> tuple[Result, Result]:
    """Return the result of one run, and of three merged partials."""
    truth, detections = tables(missed)
    parts = []
    for first in range(3):
        share = detap.select(truth, detections, images=truth.images[first::3])
        parts.append(Partial.of(score_tables(*share, "coco", match_table=True), ground_truth=truth))
    return score_tables(truth, detections, "coco"), detap.merge(parts).compute()


def gate_results(now: Result, before: Result) -> GateResults:
    limits = [
        Limit.of("minimum", "F1=.9"),
        Limit.of("minimum", "slice:night.AP=.1"),
        Limit.of("drop", "AP50=.01"),
        Limit.of("drop", "slice:day.AP=.9"),
    ]
    slices = {"day": now.images[:25], "night": now.images[25:]}
    subjects = [Scored.of(result, slices) for result in (now, before)]
    spell = OptionNames(options=True, interval_source="", names={})
    asked = GateConfig.of(
        limits, spell, baseline=False, baseline_detections=True, confidence=0.9, resamples=100
    )
    return evaluate_gates(asked, subjects[0], dict, baseline=subjects[1])


def test_gates_slices_and_intervals() -> None:
    now, before = both(0.5), both(0.2)
    plain, merged = gate_results(now[0], before[0]), gate_results(now[1], before[1])
    assert [gate.status for gate in plain.gates] == ["failed", "passed", "failed", "passed"]
    assert merged.gates == plain.gates
    # Images with errors need boxes; classes need only metrics.
    assert plain.regressions is not None
    assert merged.regressions is not None
    assert merged.regressions.classes == plain.regressions.classes
    assert plain.regressions.images
    assert not merged.regressions.images


def test_the_operating_point_at_every_threshold() -> None:
    plain, merged = both(0.5)
    for iou in plain.protocol.iou_thresholds:
        left, right = (result.operating_point(iou=iou) for result in (merged, plain))
        assert repr(left) == repr(right)
        left, right = (result.operating_point(0.4, iou=iou) for result in (merged, plain))
        assert repr(left) == repr(right)


def compared(first: Result, second: Result) -> Comparison:
    return compare(first, second, resamples=20)


def test_comparisons() -> None:
    plain = compared(both(0.2)[0], both(0.5)[0])
    merged = compared(both(0.2)[1], both(0.5)[1])
    for name in plain.names:
        assert repr(merged.difference(name)) == repr(plain.difference(name))
        assert repr(merged.interval(name)) == repr(plain.interval(name))
        assert repr(merged.interval(name, 1)) == repr(plain.interval(name, 1))
    assert plain.errors is not None
    assert merged.errors is None
    ours, theirs = (as_dict(comparison_report(each)) for each in (merged, plain))
    Draft202012Validator(schema("comparison")).validate(ours)
    assert theirs.keys() - ours.keys() == {"images", "errors"}
    for row, whole in zip(ours["classes"]["all"], theirs["classes"]["all"], strict=True):
        assert row == {key: whole[key] for key in row}


@pytest.mark.parametrize("name", ["to_dict", "_repr_html_"])
def test_a_merged_result_is_displayed_like_one_run(name: str) -> None:
    plain, merged = both(0.2)
    assert getattr(merged, name)() == getattr(plain, name)()
