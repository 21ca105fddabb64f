"""Metrics of the ranking in gates, baselines, comparisons, slices and loops.

Real data: KAIST's test images with two published detectors, INSANet (MR-2 5.76 %) and MLPD
(7.58 %) by the evaluation of their authors with all people counted.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap as package
from detap.analysis.comparison import compare
from detap.evaluation.scoring import on_images, score_tables
from detap.protocols import protocol
from tests.cli.conftest import Ended
from tests.gate.test_resampling import IMAGES, scene

LOWER = ("MR-2", "MR-4", "miss@0.5")
HIGHER = (
    *("recall@fppi=0.5", "CPM", "FROC", "macro-F1", "F2", "precision@recall=0.5"),
    *("recall@precision=0.5", "pooled-CPM"),
)
NAMES = LOWER + HIGHER
LISTED = replace(protocol("coco"), metrics=NAMES)


@pytest.fixture(scope="module")
def kaist(kaist_files: dict[str, Path]) -> tuple[str, str, str]:
    """Return the paths of the ground truth and of both detectors, as COCO results."""
    truth, *detectors = map(str, kaist_files.values())
    return truth, detectors[0], detectors[1]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--fail-over", "MR-2=0.08"], 0, ""),
        (["--fail-over", "MR-2=0.05"], 1, "MR-2 0.0576, required <= 0.05"),
        (["--fail-over", "max-class.MR-2=0.05"], 1, "max-class.MR-2 (person) 0.0576, required"),
        (["--fail-under", "recall@fppi=0.125=0.96"], 1, "recall@fppi=0.125 0.9526, required"),
        (["--fail-under", "class:person.recall@precision=0.9=0.9"], 0, ""),
        (["--fail-under", "MR-2=0.05"], 2, "(lower is better); use --fail-over"),
        (["--fail-over", "min-class.MR-2=0.05"], 2, "use max-class.MR-2"),
        (["--fail-under", "max-class.CPM=0.9"], 2, "use min-class.CPM"),
    ],
)
def test_limits_follow_the_direction(
    kaist: tuple[str, str, str], detap: Any, arguments: list[str], status: int, message: str
) -> None:
    ended: Ended = detap("eval", *kaist[:2], "--protocol", "kaist", *arguments)
    assert (ended.status, message in ended.err) == (status, True), ended.err


@pytest.mark.parametrize(("more", "value"), [([], "0.9258"), (["--score-threshold", "0.99"], "0.")])
def test_f1_of_a_gate_is_at_the_given_threshold(
    kaist: tuple[str, str, str], detap: Any, more: list[str], value: str
) -> None:
    """Listed or not, the best F1 is 0.9258 at score 0.628; hardly any score is above 0.99."""
    words = ("eval", *kaist[:2], "--protocol", "kaist", "--fail-under", "F1=0.93", *more)
    plain = detap(*words).err
    assert f"F1 {value}" in plain
    assert detap(*words, "--metrics", "F1").err == plain
    assert ("F1 0.9258" in plain) != bool(more)


def test_a_rise_of_the_miss_rate_has_an_interval(kaist: tuple[str, str, str], detap: Any) -> None:
    """MLPD misses more than INSANet: 7.58 % instead of 5.76 %, on the same images."""
    words = ["eval", kaist[0], kaist[2], "--protocol", "kaist", "--baseline-detections", kaist[1]]
    plain = detap(*words, "--max-rise", "MR-2=0.005")
    assert "MR-2 rose by 0.0181 (0.0576 to 0.0758), allowed 0.005" in plain.err
    noisy = detap(*words, "--max-rise", "MR-2=0.1", "--confidence", "0.95", "--resamples", "100")
    assert noisy.status == 0
    drop = detap(*words, "--max-drop", "MR-2=0.005")
    assert "--max-drop MR-2=0.005 passes when the metric gets worse" in drop.err


def test_a_baseline_never_raises_the_miss_rate_unasked(
    kaist: tuple[str, str, str], detap: Any, tmp_path: Path
) -> None:
    base, reports = str(tmp_path / "base.json"), []
    for index in (1, 2):
        reports.append(str(tmp_path / f"{index}.json"))
        words = ("--protocol", "kaist", "-q", "-o", reports[-1])
        assert detap("eval", kaist[0], kaist[index], *words).status == 0
        assert detap("baseline", "update", base, reports[-1]).status == 0
    record = json.loads(Path(base).read_text())
    assert record["summary"]["MR-2"] == pytest.approx(0.05762129992712171)
    assert "MR-2" in record["retained_metrics"]
    assert detap("baseline", "update", base, reports[1], "--allow-drop").status == 0
    record = json.loads(Path(base).read_text())
    assert record["summary"]["MR-2"] == pytest.approx(0.07575611246270622)


def test_a_comparison_has_intervals_in_which_the_difference_lies() -> None:
    truth, detections = scene(7)
    rng = np.random.default_rng(7)
    fewer = detections.select(np.flatnonzero(rng.random(len(detections)) < 0.6))
    first = score_tables(truth, detections, LISTED)
    second = score_tables(truth, fewer, LISTED)
    compared = compare(first, second, resamples=200)
    for name in NAMES:
        low, high = compared.interval(name)
        assert low <= second.metric(name) - first.metric(name) <= high, name
        assert low < high or name == "precision@recall=0.5", name
    same = compare(first, first, resamples=20)
    assert [same.interval(name) for name in NAMES] == [(0, 0)] * len(NAMES)


def test_a_slice_equals_the_evaluation_of_its_images() -> None:
    truth, detections = scene(4)
    names = truth.images[: IMAGES // 3]
    of_slice = on_images(score_tables(truth, detections, LISTED), names)
    alone = score_tables(*package.select(truth, detections, images=names), LISTED)
    assert list(of_slice.summary.items()) == list(alone.summary.items())
    assert of_slice.metric("MR-2") != score_tables(truth, detections, LISTED).metric("MR-2")


def test_a_loop_has_them() -> None:
    truth, detections = scene(5)
    loop = package.Evaluator(truth, LISTED, "xyxy")
    for number, image in enumerate(truth.images):
        rows = np.flatnonzero(detections.image == number)
        loop.update(
            [image],
            [detections.corners[rows]],
            [detections.score[rows]],
            [np.array(detections.class_ids)[detections.label[rows]]],
        )
    summary = loop.compute().summary
    expected = score_tables(truth, detections, LISTED).summary
    for name in NAMES:
        assert summary[name] == pytest.approx(expected[name], abs=1e-9), name
