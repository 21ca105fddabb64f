"""Gate evaluation shared by all callers, and class regressions hidden by a mean."""

import json
import re
import shlex
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from detap.errors import DetapWarning, UsageError
from detap.gates.config import GateConfig, Limit, OptionNames
from detap.gates.evaluate import evaluate_gates
from detap.gates.metric_names import Metrics
from detap.metrics import Metric
from detap.testing import assert_detections
from tests.cli.conftest import Ended, Files, Run, results, write_coco
from tests.coco import results_of, truth_of

OPTIONS = OptionNames(options=True, interval_source="--baseline-detections", names={})
DROP = [Limit.of("drop", "0.1")]
FLOOR = [Limit.of("minimum", "0.1")]


def gate_config(limits: list[Limit], **asked: Any) -> GateConfig:
    return GateConfig.of(
        limits, OPTIONS, **{"baseline": False, "baseline_detections": False, **asked}
    )


REPORT, EARLIER = {"baseline": True}, {"baseline_detections": True}
NOISY = {**EARLIER, "confidence": 0.9}
NO_CHANGE = "requires --max-drop or --max-rise"
NO_RESAMPLES = "--confidence requires --baseline-detections (a JSON report cannot"


@pytest.mark.parametrize(
    ("limits", "asked", "message"),
    [
        (DROP, {}, "--max-drop requires --baseline or --baseline-detections"),
        ([Limit.of("rise", "1")], {}, "--max-rise requires --baseline or --baseline-detections"),
        (FLOOR, REPORT, f"--baseline {NO_CHANGE}"),
        (FLOOR, EARLIER, f"--baseline-detections {NO_CHANGE}"),
        (FLOOR, {**REPORT, "writes_baseline": True}, f"--baseline {NO_CHANGE}"),
        (FLOOR, {**NOISY, "writes_baseline": True}, f"--confidence {NO_CHANGE}"),
        (
            FLOOR,
            {**EARLIER, "writes_baseline": True, "min_ground_truths": 5},
            f"--min-ground-truths {NO_CHANGE}",
        ),
        (DROP, {**REPORT, "confidence": 0.9}, NO_RESAMPLES),
        (DROP, {**REPORT, "confidence": 0.9, "detectable_drop": 0.1}, NO_RESAMPLES),
        (DROP, {**EARLIER, "resamples": 200}, "--resamples requires --confidence"),
        (DROP, {**EARLIER, "seed": 0}, "--seed requires --confidence"),
        (DROP, {**EARLIER, "allow_mismatch": True}, "--allow-mismatch requires --baseline"),
        (DROP, {**EARLIER, "confidence": 1.0}, "--confidence: 1.0 is not between 0 and 1"),
        (DROP, {**EARLIER, "confidence": nan}, "--confidence: nan is not between 0 and 1"),
        (DROP, {**NOISY, "resamples": 99}, "--resamples: 99 is not an integer from 100 to 1000000"),
        (DROP, {**NOISY, "seed": -1}, "--seed: -1 is not an integer"),
        *(
            (
                DROP,
                {**REPORT, "min_ground_truths": value},
                f"--min-ground-truths: {value} is not an integer",
            )
            for value in (-1, 0.5, True)
        ),
    ],
)
def test_contradictory_options(limits: list[Limit], asked: Any, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        gate_config(limits, **asked)


class Scored(NamedTuple):
    """A gate subject reduced to its metrics."""

    all: Metrics

    def metrics(self) -> Metrics:
        return self.all

    def resample(self, baseline: "Scored | None", config: GateConfig) -> Any:
        raise AssertionError

    def intervals(self, config: GateConfig) -> None:
        return

    def find_regressions(self, *_: object) -> None:
        return None


# --- one grammar, whoever asks


CALLS = ("eval", "compare", "rank")


def call(command: str, coco: Files) -> list[str]:
    return {
        "eval": [*coco.arguments, "--baseline-detections", str(coco.dt), "--max-drop", "0"],
        "compare": ["compare", str(coco.dt), str(coco.dt), "--gt", str(coco.gt)],
        "rank": [
            *("rank", "retrieval", "--npz", str(coco.folder / "a.npz")),
            *("--baseline-ranking", str(coco.folder / "a.npz"), "--max-drop", "0"),
        ],
    }[command]


@pytest.fixture
def ranking(coco: Files) -> Files:
    rng = np.random.default_rng(1)
    arrays = {
        "scores": rng.random((6, 9)),
        "query_labels": np.arange(6) % 3,
        "gallery_labels": np.arange(9) % 3,
    }
    np.savez(coco.folder / "a.npz", **arrays)  # type: ignore[arg-type]
    return coco


@pytest.mark.parametrize("command", CALLS)
@pytest.mark.parametrize("level", ["nan", "0.9_5", "0", "1", "95", "inf", "95%"])
def test_a_confidence_level_is_written_the_same_way(
    ranking: Files, detap: Run, command: str, level: str
) -> None:
    assert detap(*call(command, ranking), "--confidence", "0.9").status == 0
    said = detap(*call(command, ranking), "--confidence", level).refused()
    assert f"'{level}' is not between 0 and 1" in said


@pytest.mark.parametrize("command", CALLS)
@pytest.mark.parametrize("count", ["1_000", "\uff11000", "1e3", "x"])
def test_a_count_is_written_the_same_way(
    ranking: Files, detap: Run, command: str, count: str
) -> None:
    said = detap(*call(command, ranking), "--confidence", "0.9", "--resamples", count).refused()
    assert "is not a whole number" in said


def test_a_ranking_names_its_own_options(ranking: Files, detap: Run) -> None:
    npz = str(ranking.folder / "a.npz")
    ended = detap("rank", "retrieval", "--npz", npz, "--max-drop", "0")
    assert "--max-drop requires --baseline or --baseline-ranking" in ended.err
    ended = detap("rank", "retrieval", "--npz", npz, "--baseline-ranking", npz)
    assert "--baseline-ranking requires --max-drop or --max-rise" in ended.err


def test_a_ranking_baseline_of_other_scores_is_rejected(ranking: Files, detap: Run) -> None:
    base, npz = ranking.folder / "base.json", str(ranking.folder / "a.npz")
    other = ranking.folder / "b.npz"
    arrays = dict(np.load(npz))
    np.savez(other, **{**arrays, "scores": -arrays["scores"]})
    assert detap("rank", "retrieval", "--npz", npz, "-o", base).status == 0
    both = ["--baseline", base, "--baseline-ranking", other, "--max-drop", "0"]
    assert "; --baseline-ranking: " in detap("rank", "retrieval", "--npz", npz, *both).refused()


@pytest.mark.parametrize(
    "case",
    [
        ("--max-drop", "false-positives-per-image=0.1", "lower", "--max-rise"),
        ("--max-drop", "class:cat.false-positives-per-image=10%", "lower", "--max-rise"),
        ("--max-drop", "class:cat.false_positives=5", "lower", "--max-rise"),
        ("--max-drop", "min-class.duplicates=0", "lower", "--max-rise"),
        ("--fail-under", "false-positives-per-image=0.1", "lower", "--fail-over"),
        ("--fail-under", "class:cat.duplicates=1", "lower", "--fail-over"),
        ("--fail-over", "0.9", "higher", "--fail-under"),
        ("--fail-over", "class:*.AP50=0.9", "higher", "--fail-under"),
        ("--fail-over", "F1=0.9", "higher", "--fail-under"),
        ("--max-rise", "AP=1%", "higher", "--max-drop"),
        ("--max-rise", "min-class.AR100=0.1", "higher", "--max-drop"),
    ],
)
def test_a_limit_that_passes_when_the_metric_gets_worse_is_refused(
    coco: Files, detap: Run, case: tuple[str, str, str, str]
) -> None:
    option, limit, better, other = case
    base = coco.folder / "base.json"
    best = ["--score-threshold", "best"]
    assert detap(*coco.arguments, *best, "-o", base).status == 0
    against = ["--baseline", base] if option.startswith("--max") else []
    said = detap(*coco.arguments, *best, *against, option, limit).refused()
    message = f"passes when the metric gets worse ({better} is better); use {other}"
    assert said.startswith(f"Error: {option} ")
    assert said.endswith(f" {message}\n")
    accepted = detap(*coco.arguments, *best, *against, other, limit)
    assert accepted.status < 2, accepted.err


def test_such_a_limit_is_refused_in_python(coco: Files) -> None:
    message = r"fail_under=\{'false-positives-per-image': '1'\} passes .*; use fail_over$"
    with pytest.raises(UsageError, match=message):
        assert_detections(coco.gt, coco.dt, fail_under={"false-positives-per-image": 1})


@pytest.mark.parametrize("column", ["ap_loss", "gap"])
def test_losses_may_not_drop_but_rise(ranking: Files, detap: Run, column: str) -> None:
    base, npz = ranking.folder / "base.json", str(ranking.folder / "a.npz")
    words = ["rank", "retrieval", "--npz", npz, "--losses", "--batches", "2"]
    assert detap(*words, "-o", base).status == 0
    limit = f"min-query.{column}=0"
    ended = detap(*words, "--baseline", base, "--max-drop", limit)
    assert (ended.status, "(lower is better); use --max-rise" in ended.err) == (2, True)
    assert detap(*words, "--baseline", base, "--max-rise", limit).status == 0


@pytest.mark.parametrize(
    "case",
    [
        ("--fail-over", "class:bird.false_positives=0", 1),
        ("--fail-over", "class:bird.false_positives=1", 0),
        ("--max-rise", "class:cat.duplicates=0", 1),
        ("--max-rise", "class:cat.duplicates=1", 0),
    ],
)
def test_lower_is_better_in_every_interface(
    coco: Files, detap: Run, monkeypatch: pytest.MonkeyPatch, case: tuple[str, str, int]
) -> None:
    option, limit, status = case
    base, fewer = coco.folder / "base.json", coco.folder / "fewer.json"
    fewer.write_text(json.dumps([box for box in results() if box["score"] != 0.8]))
    assert detap("eval", "--gt", coco.gt, "--dt", fewer, "-o", base).status == 0
    against = ["--baseline", str(base)] if option == "--max-rise" else []
    assert detap(*coco.arguments, *against, option, limit).status == status
    name, _, bound = limit.rpartition("=")
    settings = coco.folder / "detap.toml"
    settings.write_text(f'[{option[2:]}]\n"{name}" = {bound}\n')
    assert detap(*coco.arguments, *against, "--config", settings).status == status
    argument = option[2:].replace("-", "_")
    asked: dict[str, Any] = {
        argument: {name: int(bound)},
        **({"baseline": base} if against else {}),
    }
    if status:
        with pytest.raises(AssertionError, match="FAILED"):
            assert_detections(coco.gt, coco.dt, **asked)
    else:
        assert_detections(coco.gt, coco.dt, **asked)
    monkeypatch.setenv(f"DETAP_{argument.upper()}", limit)
    assert detap(*coco.arguments, *against).status == status


def test_junit_names_each_kind_of_limit(coco: Files, detap: Run) -> None:
    base, junit = coco.folder / "base.json", coco.folder / "junit.xml"
    assert detap(*coco.arguments, "-o", base).status == 0
    errors = "class:cat.false_positives=9"
    gates = ["--fail-under", "0.1", "--fail-over", errors, "--max-drop", "0.2"]
    gates += ["--max-rise", errors]
    assert detap(*coco.arguments, "--baseline", base, *gates, "-o", junit).status == 0
    text, count = junit.read_text(), "class:cat.false_positives"
    for name in ("AP &gt;= 0.1", f"{count} &lt;= 9", "AP drop &lt;= 0.2", f"{count} rise &lt;= 9"):
        assert f'name="{name}"' in text
    for kind in ("minimum", "maximum", "drop", "rise"):
        assert f'classname="detap.{kind}"' in text


# --- what a mean hides

VOC = ["--protocol", "voc2012", "--max-dets", "none"]


def many(folder: Path, lost: int, objects: int = 1000, classes: int = 40) -> tuple[Files, Path]:
    """Write one large class, classes of one object, and a detector that misses some."""
    names = ["odd $(x) 'name'", *(f"c{number}" for number in range(1, classes))]
    rows = [
        (label, label, [20 * (index % 25), 20 * (index // 25), 15, 15])
        for label, count in enumerate([objects, *[1] * (classes - 1)], 1)
        for index in range(count)
    ]
    named = dict(enumerate(names, 1))
    detections = results_of(rows, 0.5)
    files = write_coco(folder, truth_of(rows, named, named, size=(999, 999)), detections)
    worse = folder / "worse.json"
    worse.write_text(json.dumps(detections[lost:]))
    (folder / "detap.toml").write_text("max-dets = 1000\n")
    return files, worse


def gated(detap: Run, files: Files, worse: Path, *gates: str) -> Ended:
    return detap(
        *("eval", "--gt", files.gt, "--dt", worse, "--config", files.folder / "detap.toml"), *gates
    )


@pytest.mark.parametrize(
    ("against", "rules", "mean"),
    [
        *((against, [], "AP") for against in ("report", "detector", "confidence")),
        *((against, VOC, "mAP") for against in ("report", "detector")),
    ],
)
def test_the_suggested_gate_would_have_failed(
    tmp_path: Path, detap: Run, against: str, rules: list[str], mean: str
) -> None:
    # 19 of 101 recall levels are lost to the large class: the mean of 40 falls by 0.0047. With
    # intervals that is inconclusive: the one image that has the class is in a resample or not.
    files, worse = many(tmp_path, lost=190)
    base = tmp_path / "base.json"
    assert gated(detap, files, files.dt, *rules, "-o", str(base)).status == 0
    earlier = {
        "report": ["--baseline", str(base)],
        "detector": ["--baseline-detections", str(files.dt)],
        "confidence": ["--baseline-detections", str(files.dt), "--confidence", "0.9"],
    }[against]
    call = [*rules, *earlier, "--max-drop"]
    report = tmp_path / "r.json"
    ended = gated(detap, files, worse, *call, "0.005", "-o", str(report)).passed()
    notes = json.loads(report.read_text())["notes"]
    (note,) = (note for note in notes if note["code"] == "gate-hides-class-drop")
    assert note["severity"] == "warning"
    lost = "0.19" if rules else "0.18"
    passed = "did not fail" if against == "confidence" else "passed"
    said = f"{mean} {passed} but class:odd $(x) 'name'.AP dropped by {lost}"
    assert note["message"].startswith(said)
    assert said in ended.err
    assert ", 1000 ground truths); " in note["message"]
    proposed = re.search(r"; gate it with (--max-drop .*)$", note["message"])
    assert proposed is not None
    option, gate = shlex.split(proposed[1])
    assert (option, gate) == ("--max-drop", "class:odd $(x) 'name'.AP=0.005")
    assert gated(detap, files, worse, *call, gate).status == 1
    # Once it is asked for, nothing is hidden.
    ended = gated(detap, files, worse, *call, "0.005", "--max-drop", gate)
    assert "gate-hides-class-drop" not in ended.err


@pytest.mark.parametrize(
    "case",
    [
        # Of 1,000 objects 3 standard errors are at most 0.067: beyond 0.072 is far.
        (70, 1000, "0.005", False),
        (80, 1000, "0.005", True),
        # Of 100, 0.212.
        (19, 100, "0.005", False),
        (25, 100, "0.01", True),
        # Twice the limit is not yet far.
        (190, 1000, "0.1", False),
        (250, 1000, "0.1", True),
        # A share of the mean's.
        (80, 1000, "1%", True),
        (80, 1000, "5%", False),
    ],
)
def test_size_of_a_hidden_class_regression(
    tmp_path: Path, detap: Run, case: tuple[int, int, str, bool]
) -> None:
    lost, objects, limit, warned = case
    files, worse = many(tmp_path, lost, objects)
    earlier = ["--baseline-detections", str(files.dt)]
    ended = gated(detap, files, worse, *earlier, "--max-drop", limit).passed()
    assert ("gate-hides-class-drop" in ended.err) == warned


class Bounded(Metric):
    """A metric with other bounds."""

    def __init__(self, low: float, high: float) -> None:
        self.bounds = low, high


def of_classes(metric: Metric | None, *values: float) -> Scored:
    """Return the AP of classes of 10,000 ground truths each, and their mean."""
    rows = [
        {"name": name, "AP": value, "ground_truths": 10_000}
        for name, value in zip(("cat", "dog", "bird"), values, strict=True)
    ]
    mean = sum(values) / len(values)
    return Scored(Metrics("AP", {"AP": mean}, rows, metric_of=lambda _: metric))


@pytest.mark.parametrize("metric", [None, Bounded(0, 1), Bounded(0, float("inf"))])
def test_hidden_drops_are_counted(metric: Metric | None) -> None:
    """Two classes drop and one rises by as much: their mean is unchanged.

    A drop of an unbounded metric is not compared with the standard error of a fraction.
    """
    then, now = of_classes(metric, 0.75, 0.875, 0.25), of_classes(metric, 0.5, 0.5, 0.875)
    config = gate_config([Limit.of("drop", "0.01")], baseline_detections=True)
    notes = evaluate_gates(config, now, dict, baseline=then).notes
    if metric is not None and metric.bounds != (0, 1):
        assert notes == ()
        return
    (note,) = notes
    assert (note.code, note.count) == ("gate-hides-class-drop", 2)
    assert note.message == (
        "AP passed but class:dog.AP dropped by 0.3750 (0.8750 to 0.5000, 10000 ground truths), and "
        "1 more class dropped; gate it with --max-drop class:dog.AP=0.01"
    )


def test_a_gate_that_would_not_fail_is_not_suggested(tmp_path: Path, detap: Run) -> None:
    files, worse = many(tmp_path, lost=190)
    call = ["--baseline-detections", str(files.dt), "--max-drop", "0.005", "--min-ground-truths"]
    assert "gate-hides-class-drop" in gated(detap, files, worse, *call, "1000").err
    # Of a class of fewer than this, the proposed gate would only warn.
    assert "gate-hides-class-drop" not in gated(detap, files, worse, *call, "1001").err


def test_python_suggests_its_own_arguments(tmp_path: Path) -> None:
    files, worse = many(tmp_path, lost=190)
    from dataclasses import replace

    from detap import read_detections, read_ground_truth
    from detap.protocols import protocol

    truth = read_ground_truth(files.gt)
    before, now = (read_detections(path, truth) for path in (files.dt, worse))
    rules = replace(protocol("coco"), max_dets=(1000,))
    with pytest.warns(DetapWarning, match="AP passed but class:odd") as caught:
        result = assert_detections(truth, now, protocol=rules, baseline=before, max_drop=0.005)
    proposed = """max_drop={"class:odd $(x) 'name'.AP": '0.005'}"""
    assert str(caught[0].message).find(proposed) > 0
    assert result.notes[-1].code == "gate-hides-class-drop"
