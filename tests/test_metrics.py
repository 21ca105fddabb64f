"""A metric declared in one object appears everywhere metrics do."""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import detap as package
from detap import metrics
from detap.core.resampling import Weights
from detap.errors import UnknownNameError
from detap.evaluation.detection import Result
from detap.metrics import METRICS, Metric, metric_named
from detap.metrics.metric import MatchedResult, MetricSpec, metric_spec
from detap.protocols import PRESETS, Protocol
from detap.report import schema
from detap.tables.detection import Floats
from docs import derive
from tests.browser.conftest import CHROMIUM, QUIET
from tests.cli.conftest import Run
from tests.coco import truth_of
from tests.processes import finished


class MissesPerImage(Metric):
    """Missed ground truths per image at the lowest IoU threshold."""

    name = "MPI"
    title = "misses per image"
    unit = "per image"
    higher_is_better = False
    bounds = (0.0, float("inf"))

    def listed(self, protocol: Protocol) -> Iterator[MetricSpec]:
        yield metric_spec(protocol, self, self.name, (0, 0, len(protocol.max_dets) - 1))

    def by_class(self, result: MatchedResult, entry: MetricSpec) -> Floats:
        missed = result.ground_truths - result.true_positives
        return np.where(result.ground_truths > 0, missed / len(result.images), np.nan)

    def resample(
        self,
        result: MatchedResult,
        weights: Weights,
        entries: Sequence[MetricSpec],
        threads: int | None,
    ) -> Sequence[Floats]:
        match_table = result.match_table
        missed = np.zeros((match_table.classes, match_table.images))
        np.add.at(missed, (match_table.truth_label, match_table.truth_image), 1)
        rows = np.flatnonzero(match_table.is_true_positive(0, 0))
        np.subtract.at(missed, (match_table.label[rows], match_table.image[rows]), 1)
        drawn = weights.table().astype(float)
        return [missed @ drawn.T / drawn.sum(axis=1)] * len(entries)


CATS = [[0, 0, 40, 40], [100, 0, 40, 40], [200, 0, 40, 40], [300, 0, 40, 40]]
DOG = [0, 200, 60, 60]


def results_of(cats: int, images: int = 3) -> list[dict[str, Any]]:
    """Return detections of the dog and of some of the four cats of each image."""
    return [
        {"image_id": image, "category_id": label, "bbox": box, "score": 0.9}
        for image in range(1, images + 1)
        for label, box in [(2, DOG), *((1, box) for box in CATS[:cats])]
    ]


@pytest.fixture
def folder(cwd: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write four cats and a dog on each of three images; ``one`` detects one cat each, ``two`` two.

    By hand: 3 and 2 cats are missed per image and no dogs, so the means are 1.5 and 1.
    """
    monkeypatch.setattr(metrics, "METRICS", [MissesPerImage(), *METRICS])
    write_images(3)
    return cwd


def write_images(count: int) -> None:
    ids = range(1, count + 1)
    objects = [(2, DOG), *((1, box) for box in CATS)]
    boxes = [(image, label, box) for image in ids for label, box in objects]
    truth = truth_of(boxes, {1: "cat", 2: "dog"}, ids)
    Path("gt.json").write_text(json.dumps(truth))
    Path("one.json").write_text(json.dumps(results_of(1, count)))
    Path("two.json").write_text(json.dumps(results_of(2, count)))


def call(name: str, *arguments: str) -> tuple[str, ...]:
    return ("eval", "--gt", "gt.json", "--dt", f"{name}.json", *arguments)


def result(name: str) -> Result:
    truth = package.read_ground_truth("gt.json")
    return package.evaluate(truth, package.read_detections(f"{name}.json", truth))


@pytest.mark.usefixtures("folder")
def test_its_values_match_the_schema(detap: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema has the bounds of all metrics; only metrics that are not fractions exceed 1."""
    Path("slices.json").write_text('{"night": [1, 2], "day": [3]}')
    detap(*call("one", "--slices", "slices.json", "--tie-range", "-o", "r.json"))
    record = json.loads(Path("r.json").read_text())
    assert record["slices"]["day"]["summary"]["MPI"] == 1.5
    assert "AR100" in record["tie_range"]
    assert "MPI" not in record["tie_range"]  # it is not bounded over the orders of ties
    Draft202012Validator(schema("report")).validate(record)
    record["summary"]["MPI"] = -0.1
    faults = Draft202012Validator(schema("report")).iter_errors(record)
    assert [[*fault.path] for fault in faults] == [["summary", "MPI"]]
    monkeypatch.setattr(metrics, "METRICS", METRICS)
    faults = Draft202012Validator(schema("report")).iter_errors(record)
    assert {fault.path[0] for fault in faults} == {"summary", "classes", "slices"}


NOISY = (
    *("--baseline-detections", "two.json", "--confidence", "0.95"),
    *("--min-ground-truths", "1"),
)


@pytest.mark.usefixtures("folder")
def test_every_output_format_has_it(detap: Run) -> None:
    text = detap(*call("one")).out
    assert text.splitlines()[0].split()[1:4] == ["AP", "AP50", "AP75"]
    assert re.search(r"MPI +1\.5000? +0\.50 ", text), text
    outputs = ("r.json", "r.csv", "r.md", "r.html")
    detap(*call("one", *(word for name in outputs for word in ("-o", name))))
    record = json.loads(Path("r.json").read_text())
    assert record["summary"]["MPI"] == 1.5
    assert [(row["name"], row["MPI"]) for row in record["classes"]] == [("cat", 3), ("dog", 0)]
    assert next(iter(record["summary"])) == "AP"  # it is not the protocol's primary metric
    assert record["classes"][0]["AP"] == pytest.approx(26 / 101)  # the recalls 0 to 0.25
    with Path("r.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["MPI"]) for row in rows[:2]] == [3, 0]
    for name in ("r.md", "r.html"):
        assert "MPI" in Path(name).read_text(encoding="utf-8")
    assert "| MPI &#91;per image&#93; |" in Path("r.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "arguments", "status"),
    [
        ("one", ["--fail-over", "MPI=1.4"], 1),
        ("one", ["--fail-over", "MPI=1.6"], 0),
        ("one", ["--fail-over", "class:cat.MPI=2.9"], 1),
        ("one", ["--fail-over", "class:dog.MPI=2.9"], 0),
        ("one", ["--baseline", "two.report.json", "--max-rise", "MPI=0.4"], 1),
        ("one", ["--baseline", "two.report.json", "--max-rise", "MPI=0.6"], 0),
        ("one", ["--slices", "slices.json", "--fail-over", "slice:night.MPI=1.4"], 1),
        ("one", ["--slices", "slices.json", "--fail-over", "slice:night.MPI=1.6"], 0),
    ],
)
@pytest.mark.usefixtures("folder")
def test_gates_accept_it(detap: Run, name: str, arguments: list[str], status: int) -> None:
    """Minimums and maximums above 1 are valid, as the metric is not a fraction."""
    detap(*call("two", "-o", "two.report.json"))
    Path("slices.json").write_text('{"night": [1, 2], "day": [3]}')
    ended = detap(*call(name, *arguments))
    assert ended.status == status, ended.err


@pytest.mark.parametrize("option", ["--baseline-detections", "--baseline"])
@pytest.mark.usefixtures("folder")
def test_on_the_page_a_fall_is_an_improvement(detap: Run, option: str) -> None:
    """Classes are compared by AP, the protocol's primary metric."""
    detap(*call("one", "-o", "one.report.json"))
    earlier = "one.report.json" if option == "--baseline" else "one.json"
    assert detap("report", *call("two", option, earlier, "-o", "r.html")[1:]).status == 0
    page = Path("r.html").read_text(encoding="utf-8")
    script = re.search(r'<script [^>]*id="data"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert script is not None
    change = json.loads(script[1])["baseline"]
    numbers = {row.pop("name"): row for row in change["metrics"]}
    keys = ("first", "second", "difference", "lower_is_better")
    assert [numbers["MPI"][key] for key in keys] == [1.5, 1, -0.5, True]
    assert not numbers["AP"]["lower_is_better"]
    cat = change["classes"][0]
    assert cat == {
        "name": "cat",
        "first": pytest.approx(26 / 101),  # the recalls 0 to 0.25
        "second": pytest.approx(51 / 101),  # and to 0.5
        "difference": pytest.approx(25 / 101),
        "lower_is_better": False,
        "low": None,  # too few ground truths
        "high": None,
    }
    assert change["compared"] == (option != "--baseline")  # a report keeps no boxes to resample


@pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="there is no browser")
@pytest.mark.parametrize(
    ("now", "then", "images", "color"),
    [
        ("two", "one", 5, "up"),
        ("one", "two", 5, "down"),
        ("one", "two", 3, ""),  # 15 ground truths have no interval
    ],
)
@pytest.mark.usefixtures("folder")
def test_the_page_colors_it_by_its_direction(
    detap: Run, now: str, then: str, images: int, color: str
) -> None:
    write_images(images)
    detap("report", *call(now, "--baseline-detections", f"{then}.json", "-o", "r.html")[1:])
    page = Path("r.html").absolute().as_uri()
    command = [CHROMIUM, "--headless", *QUIET, "--virtual-time-budget=3000", "--dump-dom", page]
    drawn = finished(command, timeout=120).stdout
    row = re.search(r'<th scope="row">MPI</th>.*?</tr>', drawn)
    assert row is not None
    change = "\u22120.5000" if now == "two" else "+0.5000"
    assert f'<td class="{color}">{change}</td>' in row[0]
    kind = {"up": "gain", "down": "loss", "": "loss noise"}[color]
    assert f'<i class="{kind}"' in row[0]


@pytest.mark.parametrize(("first", "then"), [("one", "two"), ("two", "one")])
@pytest.mark.usefixtures("folder")
def test_a_baseline_keeps_the_lower_value(detap: Run, first: str, then: str) -> None:
    for name in (first, then):
        detap(*call(name, "-o", f"{name}.report.json"))
        detap("baseline", "update", "base.json", f"{name}.report.json")
    record = json.loads(Path("base.json").read_text())
    assert record["summary"]["MPI"] == 1
    assert record["classes"][0]["MPI"] == 2


@pytest.mark.usefixtures("folder")
def test_two_detectors_are_compared_with_an_interval() -> None:
    """Each image has one more missed cat, so each resample has too."""
    from detap.analysis.comparison import compare

    compared = compare(result("one"), result("two"), resamples=50, min_ground_truths=1)
    assert compared.interval("MPI") == pytest.approx((-0.5, -0.5))
    assert compared.interval("MPI", 0) == pytest.approx((-1, -1))


@pytest.mark.parametrize(
    ("limit", "message", "status"),
    [
        ("MPI=0.4", "95% CI of the rise [0.5", 1),
        ("MPI=0.6", "", 0),
        ("class:cat.MPI=0.9", "CI of the rise [1", 1),
        ("slice:night.MPI=0.4", "CI of the rise [0.5", 1),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_gate_has_its_interval(detap: Run, limit: str, message: str, status: int) -> None:
    """Each image has one more missed cat, so each resample has too."""
    Path("slices.json").write_text('{"night": [1, 2], "day": [3]}')
    ended = detap(*call("one", *NOISY, "--slices", "slices.json", "--max-rise", limit))
    assert ended.status == status, ended.err
    assert message in ended.err


@pytest.mark.parametrize("name", ["MPI", "class:cat.MPI", "slice:night.MPI"])
@pytest.mark.usefixtures("folder")
def test_a_gate_rejects_an_interval_if_it_cannot_be_resampled(
    detap: Run, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MissesPerImage, "resample", Metric.resample)
    Path("slices.json").write_text('{"night": [1, 2], "day": [3]}')
    limits = ("--slices", "slices.json", "--max-rise", f"{name}=0.4")
    ended = detap(*call("one", *NOISY, *limits))
    message = "has no interval: MPI cannot be resampled; remove it or --confidence"
    assert (ended.status, f"{name!r} {message}" in ended.err) == (2, True)
    without = [word for word in NOISY if word not in ("--confidence", "0.95")]
    assert detap(*call("one", *without, *limits)).status == 1


@pytest.mark.usefixtures("folder")
def test_a_comparison_omits_its_interval_if_it_cannot_be_resampled(
    detap: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MissesPerImage, "resample", Metric.resample)
    few = ("--min-ground-truths", "1")
    ended = detap("compare", "--gt", "gt.json", "one.json", "two.json", "-o", "c.json", *few)
    assert ended.status == 0
    assert "MPI: cannot be resampled, so that there is no interval [not-resampled]" in ended.err
    numbers = {row["name"]: row for row in json.loads(Path("c.json").read_text())["metrics"]}
    assert (numbers["MPI"]["difference"], numbers["MPI"]["low"]) == (-0.5, None)
    assert numbers["AR100"]["low"] == pytest.approx(0.125)  # of cats 0.5 instead of 0.25


@pytest.mark.parametrize(
    ("options", "first", "second"),
    [([], 26 / 101, 51 / 101), (["--primary-metric", "AR", "--max-dets", "100"], 0.25, 0.5)],
)
@pytest.mark.usefixtures("folder")
def test_classes_are_compared_by_the_primary_metric(
    detap: Run, options: list[str], first: float, second: float
) -> None:
    detap("compare", "--gt", "gt.json", "one.json", "two.json", "-o", "c.json", *options)
    record = json.loads(Path("c.json").read_text())
    numbers = {row["name"]: row for row in record["metrics"]}
    assert (numbers["MPI"]["first"], numbers["MPI"]["difference"]) == (1.5, -0.5)
    cat, dog = record["classes"]["all"]
    assert (cat["name"], cat["first"], cat["second"]) == (
        "cat",
        pytest.approx(first),
        pytest.approx(second),
    )
    assert (dog["first"], dog["difference"]) == (pytest.approx(1), 0)


@pytest.mark.usefixtures("folder")
def test_a_loop_and_a_merged_loop_have_it() -> None:
    truth = package.read_ground_truth("gt.json")
    loop = package.Evaluator(truth)
    for image in (1, 2, 3):
        rows = [row for row in results_of(1) if row["image_id"] == image]
        loop.update(
            [image],
            [np.array([row["bbox"] for row in rows], float)],
            [np.array([row["score"] for row in rows])],
            [np.array([row["category_id"] for row in rows])],
        )
    for evaluator in (loop, loop.merge([loop.to_bytes()])):
        assert evaluator.compute().summary["MPI"] == 1.5


@pytest.mark.parametrize(
    ("scope", "in_summary", "in_table"),
    [("both", True, True), ("class", False, True), ("overall", True, False)],
)
@pytest.mark.usefixtures("folder")
def test_its_scope_determines_where_it_is_listed(
    scope: str, monkeypatch: pytest.MonkeyPatch, *, in_summary: bool, in_table: bool
) -> None:
    monkeypatch.setattr(MissesPerImage, "scope", scope)
    record = result("one").to_dict()
    assert ("MPI" in record["summary"], "MPI" in record["classes"][0]) == (in_summary, in_table)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("interpolation", "all-point"),
        ("recall_grid", "float32"),
        ("precision_eps", 0.5),
        ("absent_class", "zero"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_metric_depends_only_on_its_fields(field: str, value: object) -> None:
    """Among the fields that matching does not depend on."""
    assert field in metrics.after_matching()
    truth = package.read_ground_truth("gt.json")
    detections = package.read_detections("one.json", truth)
    usual = package.protocol("coco")
    plain, changed = (
        package.evaluate(truth, detections, protocol).summary
        for protocol in (usual, usual.with_changes(**{field: value}))
    )
    others = [entry for entry in metrics.summary(usual) if field not in entry.metric.fields]
    assert {"AR", "MPI"} <= {entry.metric.name for entry in others}
    for entry in others:
        assert repr(changed[entry.name]) == repr(plain[entry.name])


def test_the_class_metric_has_its_own_name() -> None:
    voc = package.protocol("voc2012")
    assert metrics.named_of_class(voc, "AP").name == "mAP"
    assert metrics.named_of_class(voc, "mAP").name == "mAP"
    assert metrics.named_of_class(voc, "recall").metric.scope == "class"
    for find in (metrics.named, metrics.named_of_class):
        with pytest.raises(UnknownNameError, match="has no metric 'nAP'"):
            find(voc, "nAP")
    with pytest.raises(UnknownNameError, match="has no metric 'recall'"):
        metrics.named(voc, "recall")


@pytest.mark.usefixtures("folder")
def test_a_metric_that_is_primary_in_no_protocol_is_not_explained(detap: Run) -> None:
    said = detap(
        *("explain", "--gt", "gt.json", "--dt", "one.json"),
        *("--from", "coco", "--to", "coco-strict", "--metric", "MPI"),
    ).refused()
    assert "MPI cannot be explained: no protocol has MPI alone; use AP or AR" in said


def test_the_docs_list_it(monkeypatch: pytest.MonkeyPatch) -> None:
    known = derive.metrics_table()
    monkeypatch.setattr(metrics, "METRICS", [*METRICS, MissesPerImage()])
    added = [row for row in derive.metrics_table() if row not in known]
    assert added == ["| `MPI` | misses per image; may exceed 1 | lower |  |"]
    assert (
        "| `AP` | average precision | higher | "
        "`interpolation`, `recall_grid`, `precision_eps`, `absent_class`, `class_mean` |"
    ) in known
    assert "| `F1` | F1; no interval | higher |  |" in known


def test_every_value_of_every_preset_belongs_to_a_metric() -> None:
    for preset in PRESETS:
        protocol = package.protocol(preset)
        for entry in (*metrics.summary(protocol), *metrics.columns(protocol)):
            assert metric_named(protocol, entry.name) is entry.metric
            assert metric_named(protocol, entry.class_name) is entry.metric
        assert metric_named(protocol, "true_positives") is None


def test_a_metric_is_recognized_by_its_full_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """MR is not a prefix match: MRR is another metric and MRX is unknown."""

    class MissRate(MissesPerImage):
        name = "MR"

    class ReciprocalRank(MissesPerImage):
        name = "MRR"
        higher_is_better = True

    monkeypatch.setattr(metrics, "METRICS", [*METRICS, MissRate(), ReciprocalRank()])
    protocol = package.protocol("coco")
    known = {name: metric_named(protocol, name) for name in ("MR", "MRR", "MRX", "APX", "AP55")}
    assert {name: metric and metric.name for name, metric in known.items()} == {
        "MR": "MR",
        "MRR": "MRR",
        "MRX": None,
        "APX": None,
        "AP55": "AP",
    }


@pytest.mark.parametrize("resampled", [True, False])
@pytest.mark.usefixtures("folder")
def test_it_has_an_interval_without_a_baseline_if_it_can_be_resampled(
    detap: Run, monkeypatch: pytest.MonkeyPatch, *, resampled: bool
) -> None:
    """Every image misses three cats, so that the interval has no width."""
    if not resampled:
        monkeypatch.setattr(MissesPerImage, "resample", Metric.resample)
    options = ("--confidence", "0.95", "--min-ground-truths", "1", "--fail-over", "class:cat.MPI=4")
    ended = detap(*call("one", *options, "-o", "r.json"))
    record = json.loads(Path("r.json").read_text())
    assert ended.status == 0
    cat = record["intervals"]["classes"][0]["MPI"]
    (gate,) = record["gates"]["checks"]
    if resampled:
        assert (record["intervals"]["summary"]["MPI"], cat) == ([1.5, 1.5], [3, 3])
        assert gate["message"].endswith("; 95% CI [3.0000, 3.0000] is below the limit")
    else:
        assert (record["intervals"]["summary"]["MPI"], cat) == ([None, None], [None, None])
        assert gate["interval"] is None
        assert re.search(r"MPI +1\.5000 +\N{EN DASH} ", ended.out)
        assert "MPI: cannot be resampled, so that there is no interval" in ended.err
