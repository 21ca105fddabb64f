"""The HTML page as a file: complete, self-contained, reproducible and safe."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap import UsageError, evaluate
from detap.analysis.breakdowns import breakdowns, iou_histogram
from detap.analysis.errors import errors
from detap.cli import main
from detap.report.packing import packed
from detap.tables.detection import Detections, GroundTruth
from tests.analysis.data import raw_tables
from tests.cli.conftest import Run, written
from tests.report.page.cases import (
    HOSTILE,
    SIZE,
    at_step,
    detections_for,
    images_of,
    model_of,
    truth_of,
    unpacked,
    write_case,
    write_page,
)

pytest.importorskip("jinja2", reason="the extra detap[report] is not installed")
pytest.importorskip("PIL", reason="the extra detap[report] is not installed")

PAGE = files("detap.report.page")


class _Elements(HTMLParser):
    """Elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def elements_of(page: Path) -> list[tuple[str, dict[str, str | None]]]:
    parser = _Elements()
    parser.feed(page.read_text("utf-8"))
    return parser.elements


def test_vendored_files_are_unmodified() -> None:
    lines = PAGE.joinpath("vendor/sha256sums.txt").read_text("utf-8").splitlines()
    assert len(lines) == 3
    for line in lines:
        digest, name = line.split()
        actual = hashlib.sha256(PAGE.joinpath("vendor", name).read_bytes()).hexdigest()
        assert actual == digest, name
    script = PAGE.joinpath("vendor/uPlot.iife.min.js").read_text("utf-8")
    assert script.startswith("/*! https://github.com/leeoniya/uPlot (v1.6.32) */")
    assert len(script) == 51_081  # as report.md lists it


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    first = write_page(tmp_path).read_bytes()
    assert write_page(tmp_path).read_bytes() == first


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    for tag, attributes in elements_of(write_page(tmp_path)):
        assert tag not in {"link", "iframe", "object", "embed", "base"}
        assert "src" not in attributes
        assert "style" not in attributes, "the policy refuses style attributes"
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")


def test_the_policy_allows_only_the_scripts_and_styles_of_the_page(tmp_path: Path) -> None:
    text = write_page(tmp_path).read_text("utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    rules = policy[1].replace("&#39;", "'")
    assert rules.startswith("default-src 'none'; img-src data:; ")
    assert "unsafe" not in rules
    for tag in ("script", "style"):
        bodies = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digests = {base64.b64encode(hashlib.sha256(b.encode()).digest()).decode() for b in bodies}
        named = re.search(rf"{tag}-src ([^;]*)", rules)
        assert named
        assert set(re.findall(r"sha256-([^']*)", named[1])) == digests
        assert len(bodies) == 2


def test_hostile_names_create_no_element(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "hostile").mkdir()
    plain = [tag for tag, _ in elements_of(write_page(tmp_path / "plain"))]
    hostile = write_page(tmp_path / "hostile", names=HOSTILE)
    assert [tag for tag, _ in elements_of(hostile)] == plain
    shown = model_of(hostile)["classes"]
    assert shown[:4] == list(HOSTILE[:4])
    assert shown[4] == "\\u202egnp.exe", "a mark that turns text round is shown as an escape"


def test_lines_without_a_title_are_on_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    asked = ["--confidence", ".95", "--resamples", "100"]
    assert main(["eval", *write_case(tmp_path), *asked, "-o", str(page)]) == 0
    text = page.read_text("utf-8")
    assert re.search(r'<p class="line">95% CI: bootstrap, 100 resamples of \d+ images', text)
    assert "<h2></h2>" not in text
    assert 'aria-label=""' not in text


def test_counts_at_each_step_equal_the_operating_point(tmp_path: Path) -> None:
    page = write_page(tmp_path, "--baseline-detections", str(tmp_path / "before.json"))
    analysis = model_of(page)["analysis"]
    result, before = _evaluated(), _evaluated(detections_for(truth_of(), 2, worse=0.2))
    scores = analysis["operating"]["scores"]
    assert scores[-1] == min(result.detections.score.min(), before.detections.score.min())
    assert scores[-1] < result.detections.score.min()
    for evaluated, key in ((result, "added"), (before, "added_before")):
        for step, score in enumerate(scores):
            point = evaluated.operating_point(score)
            kept = evaluated.detections.select(np.flatnonzero(evaluated.detections.score >= score))
            kinds = errors(evaluate(evaluated.ground_truth, kept)).count_by_class
            for label, of_class in enumerate(point.by_class):
                counts = [at_step(text, step) for text in analysis["operating"][key][label]]
                assert counts[0] == of_class.true_positives
                assert sum(counts[1:]) == of_class.false_positives
                assert counts[1:] == kinds[:5, label].tolist()
    best = result.operating_point()
    assert scores[analysis["operating"]["best"]] == best.overall.score
    for label, of_class in enumerate(best.by_class):
        assert scores[analysis["operating"]["best_by_class"][label]] == of_class.score


def test_the_curves_are_those_of_pycocotools(tmp_path: Path) -> None:
    coco = pytest.importorskip("pycocotools.coco")
    cocoeval = pytest.importorskip("pycocotools.cocoeval")
    page = write_page(tmp_path, "--baseline-detections", str(tmp_path / "before.json"))
    analysis = model_of(page)["analysis"]
    truth = coco.COCO(str(tmp_path / "gt.json"))
    for name, curves in (("dt", "curves"), ("before", "curves_before")):
        detections = truth.loadRes(str(tmp_path / f"{name}.json"))
        reference = cocoeval.COCOeval(truth, detections, "bbox")
        reference.evaluate()
        reference.accumulate()
        precision = reference.eval["precision"][0, :, :, 0, 2].T  # IoU 0.5, all areas
        np.testing.assert_allclose(np.array(analysis[curves]["by_class"]) / 1e4, precision, 0, 6e-5)
        mean = precision.mean(axis=0)
        np.testing.assert_allclose(np.array(analysis[curves]["mean"]) / 1e4, mean, 0, 6e-5)


def test_the_errors_of_a_baseline_are_those_of_its_own_report(tmp_path: Path) -> None:
    page = write_page(tmp_path, "--baseline-detections", str(tmp_path / "before.json"))
    inputs = ["--gt", str(tmp_path / "gt.json"), "--dt", str(tmp_path / "before.json")]
    assert main(["eval", *inputs, "--errors", "-o", str(tmp_path / "own.json"), "-q"]) == 0
    own = json.loads((tmp_path / "own.json").read_text("utf-8"))["errors"]
    analysis = model_of(page)["analysis"]
    for entry in analysis["errors"]["types"]:
        name = entry["name"]
        assert entry["before"] == own["types"][name]["count"]
        by_class = [row["types"][name]["count"] for row in own["classes"]]
        assert entry["before_by_class"] == by_class
    assert analysis["average_precision_before"] == own["AP"]
    by_class = [row["AP"] for row in own["classes"]]
    assert analysis["average_precision_before_by_class"] == by_class


def test_breakdowns_at_each_step_are_of_the_detections_kept(tmp_path: Path) -> None:
    analysis = model_of(write_page(tmp_path))["analysis"]
    whole = _evaluated()
    scores = whole.detections.score
    truth = replace(whole.ground_truth, image_sizes=np.array([SIZE] * 24, np.float64))
    for step, score in [*enumerate(analysis["operating"]["scores"])][::8]:
        kept = whole.detections.select(np.flatnonzero(scores >= score))
        result = evaluate(truth, kept)
        for part in analysis["breakdowns"]:
            expected = getattr(breakdowns(result), part["name"])
            assert part["truths"] == expected.ground_truths.tolist()
            for name in ("matched", "detections", "true_positives"):
                shown = [at_step(text, step) for text in part[name]]
                assert shown == getattr(expected, name).tolist()
        histogram = iou_histogram(result)
        for name in ("true_positives", "false_positives"):
            shown = [at_step(text, step) for text in analysis["histograms"]["iou"][name]]
            assert shown == getattr(histogram, name).tolist()


def test_the_columns_have_every_object(tmp_path: Path) -> None:
    """Sorted by image and descending score; boxes in tenths of a pixel."""
    write_case(tmp_path)
    images = images_of(write_page(tmp_path, "--baseline-detections", str(tmp_path / "before.json")))
    truth, order = truth_of(), range(1, 25)
    assert images["names"] == [str(n) for n in order]
    assert images["sizes"].tolist() == [640.0, 480.0] * 24
    for key, objects in (
        ("truths", truth["annotations"]),
        ("detector", detections_for(truth)),
        ("baseline", detections_for(truth, 2, worse=0.2)),
    ):
        table = images[key]
        rows = sorted(objects, key=lambda row: (row["image_id"], -row.get("score", 0)))
        assert table["count"].tolist() == [sum(r["image_id"] == n for r in rows) for n in order]
        assert table["label"].tolist() == [row["category_id"] - 1 for row in rows]
        boxes = [[round(10 * value) for value in row["bbox"]] for row in rows]
        assert np.stack([table[side] for side in "xywh"], axis=1).tolist() == boxes
        if key != "truths":
            np.testing.assert_allclose(table["score"], [row["score"] for row in rows])


@pytest.mark.parametrize("seed", range(3))
def test_packing_keeps_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    types = (np.uint8, np.int8, np.uint16, np.int16, np.int32, np.float32)
    values = {f"é<{n}>": rng.integers(0, 100, n).astype(types[n % 6]) for n in range(20)}
    back = unpacked(packed({"arrays": values, "names": ["a", "</script>"], "none": None}))
    assert back["names"] == ["a", "</script>"]
    assert back["none"] is None
    for name, value in values.items():
        np.testing.assert_array_equal(back["arrays"][name], value)


def test_a_baseline_report_is_shown_for_comparison(tmp_path: Path) -> None:
    arguments = write_case(tmp_path)
    arguments[3] = str(tmp_path / "before.json")
    kept = tmp_path / "kept.json"
    assert main(["eval", *arguments, "-o", str(kept), "-q"]) == 0
    baseline = model_of(write_page(tmp_path, "--baseline", str(kept)))["baseline"]
    record = json.loads(kept.read_text("utf-8"))
    assert baseline["name"] == str(kept)
    assert {row["name"]: row["first"] for row in baseline["metrics"]} == record["summary"]
    then = {row["name"]: row["AP"] for row in record["classes"]}
    assert {row["name"]: row["first"] for row in baseline["classes"]} == then
    # A detector's own detections give the same numbers.
    page = write_page(tmp_path, "--baseline-detections", str(tmp_path / "before.json"))
    again = model_of(page)["baseline"]
    assert (baseline["compared"], again["compared"]) == (False, True)
    for rows, compared in ((baseline[key], again[key]) for key in ("metrics", "classes")):
        assert [row | {"low": None, "high": None} for row in compared] == rows


@pytest.mark.parametrize("protocol", ["coco", "voc2007"])
def test_changes_and_intervals_are_those_of_compare(tmp_path: Path, protocol: str) -> None:
    # Three classes, so that each has enough ground truths for an interval.
    arguments = write_case(tmp_path, ("cat", "dog", "horse"))
    before, now = str(tmp_path / "before.json"), str(tmp_path / "dt.json")
    page, kept = tmp_path / "page.html", tmp_path / "compared.json"
    inputs = [*arguments[:2], "--protocol", protocol, "-q"]
    assert main(["compare", before, now, *inputs, "-o", str(kept)]) == 0
    report = ["report", "--dt", now, "--baseline-detections", before, *inputs, "-o", str(page)]
    assert main(report) == 0
    compared = json.loads(kept.read_text("utf-8"))
    shown = model_of(page)["baseline"]
    rows = shown["classes"]
    for row in (*shown["metrics"], *rows):
        del row["lower_is_better"]
    assert shown["metrics"] == compared["metrics"]
    expected = {row["name"]: row for row in compared["classes"]["all"]}
    assert rows == [{key: expected[row["name"]][key] for key in row} for row in rows]
    assert shown["conclusion"] == compared["conclusion"]
    assert f'<p class="lead">{compared["conclusion"]}.</p>' in page.read_text("utf-8")
    for pairs in (compared["metrics"], rows):
        # Some have an interval, and not of width 0.
        assert any(row["low"] is not None and row["low"] < row["high"] for row in pairs)


@pytest.mark.parametrize(
    ("folders", "expected"),
    [
        ((".", "."), ["before.json", "dt.json"]),
        (("old", "new"), ["old/dt.json", "new/dt.json"]),
        (("x/run", "y/run"), ["x/run/dt.json", "y/run/dt.json"]),
    ],
)
def test_detectors_are_named_by_file_as_far_as_names_differ(
    tmp_path: Path, folders: tuple[str, str], expected: list[str]
) -> None:
    arguments = write_case(tmp_path)
    paths = []
    for source, folder, name in zip(("before", "dt"), folders, expected, strict=True):
        paths.append(tmp_path / folder / Path(name).name)
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        paths[-1].write_bytes((tmp_path / f"{source}.json").read_bytes())
    page = tmp_path / "page.html"
    compared = ["--dt", str(paths[1]), "--baseline-detections", str(paths[0])]
    assert main(["report", *arguments[:2], *compared, "-o", str(page), "-q"]) == 0
    text = page.read_text("utf-8")
    shown = f'Compared with <span class="path" title="{paths[0]}">{expected[0]}</span>. '
    assert shown in text


@pytest.mark.parametrize("options", [(), ("--seed", "3"), ("--resamples", "900")])
def test_resamples_of_gates_do_not_change_the_page(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    arguments, page = write_case(tmp_path), tmp_path / "page.html"
    before = ["--baseline-detections", str(tmp_path / "before.json")]
    expected = model_of(write_page(tmp_path, *before))["baseline"]
    gate = ("--max-drop", "AP=0.9", "--confidence", "0.9", *options)
    assert main(["eval", *arguments, *before, *gate, "-o", str(page), "-q"]) == 0
    assert model_of(page)["baseline"] == expected


def test_changes_of_a_protocol_without_resamples_have_no_intervals(tmp_path: Path) -> None:
    before = str(tmp_path / "before.json")
    page = write_page(tmp_path, "--protocol", "proposals", "--baseline-detections", before)
    baseline = model_of(page)["baseline"]
    assert baseline["metrics"]
    assert not baseline["compared"]


def test_a_baseline_that_is_not_comparable_is_reported(tmp_path: Path, command: Run) -> None:
    kept = tmp_path / "kept.json"
    arguments = write_case(tmp_path)
    assert command("eval", *arguments, "--protocol", "voc2012", "-o", str(kept), "-q").status == 0
    page = tmp_path / "page.html"
    said = command("report", *arguments, "--baseline", str(kept), "-o", str(page)).passed().err
    assert "[baseline-differs]" in said
    assert "is not comparable" in page.read_text("utf-8")


def test_eval_writes_the_page_when_a_gate_fails(tmp_path: Path) -> None:
    page, plain = tmp_path / "gate.html", tmp_path / "plain.json"
    arguments = write_case(tmp_path)
    status = main(["eval", *arguments, "--fail-under", "0.99", "-o", str(page), "-q"])
    assert status == 1
    assert "<strong>Failed</strong>" in page.read_text("utf-8")
    assert main(["eval", *arguments, "-o", str(plain), "-q"]) == 0
    assert "material" not in json.loads(plain.read_text("utf-8"))


@pytest.mark.parametrize("rows", ["none", "scores"])
def test_missing_analyses_are_explained(tmp_path: Path, rows: str) -> None:
    truth = truth_of()
    detections = detections_for(truth) if rows == "scores" else []
    for entry in detections:
        entry["score"] *= 10
    page = tmp_path / "page.html"
    inputs = written(tmp_path, truth, detections)
    assert main(["report", *inputs, "-o", str(page), "-q"]) == 0
    analysis = model_of(page)["analysis"]
    if rows == "scores":
        assert "lie outside [0, 1]" in analysis["calibration"]["refused"]
    else:
        assert analysis["operating"]["scores"] == []
        assert not any(len(column) for column in unpacked(analysis["confusion"]).values())


def test_a_page_is_no_pdf(tmp_path: Path, command: Run) -> None:
    target = str(tmp_path / "report.pdf")
    said = command("report", *write_case(tmp_path), "-o", target).refused()
    assert f"-o {target}: the page is HTML; use -o report.html" in said


def test_the_folder_of_images_must_exist(tmp_path: Path, command: Run) -> None:
    absent = str(tmp_path / "absent")
    said = command("report", *write_case(tmp_path), "--images", absent).refused()
    assert "no such folder" in said


def test_settings_with_another_meaning_for_eval_are_ignored(cwd: Path) -> None:
    """For eval, `images` selects images and `output` is a report of any format."""
    gt, dt = write_case(cwd)[1::2]
    settings = f'gt = "{gt}"\ndt = "{dt}"\nimages = ["1"]\noutput = ["other.json"]\niou = [0.5]\n'
    (cwd / "detap.toml").write_text(settings, "utf-8")
    assert main(["report", "-q"]) == 0
    model = model_of(cwd / "report.html")
    assert model["images"] == 24
    assert [column["key"] for column in model["table"]["columns"]][:1] == ["AP"]
    assert "AP75" not in [column["key"] for column in model["table"]["columns"]]
    assert not (cwd / "other.json").exists()


def test_a_ranking_has_no_page() -> None:
    from detap.report.page import render
    from detap.report.writers.registry import Style
    from tests.report.reports import report

    with pytest.raises(
        UsageError, match="a retrieval report has no HTML page; use json or markdown"
    ):
        render(replace(report(), kind="retrieval"), Style())


def test_80_classes_and_5000_images_stay_below_their_size(tmp_path: Path) -> None:
    """The limit of report.md section 6: 1.5 MB without images and their boxes."""
    from detap.report.page import render
    from detap.report.sections.detection import detection_report
    from detap.report.writers.registry import Style

    rng = np.random.default_rng(3)
    image = np.repeat(np.arange(5000), 7)
    label = rng.integers(0, 80, len(image))
    corner = rng.uniform(0, 400, (len(image), 2))
    boxes = np.hstack([corner, corner + rng.uniform(10, 200, (len(image), 2))])
    truth = GroundTruth.from_arrays(
        image=image, label=[f"class {n}" for n in label], boxes=boxes, images=range(5000)
    )
    rows = rng.integers(0, len(image), 100_000)
    other = rng.random(len(rows)) < 0.3
    detections = Detections.from_arrays(
        image=image[rows],
        label=[f"class {n}" for n in np.where(other, rng.integers(0, 80, len(rows)), label[rows])],
        boxes=boxes[rows] + rng.normal(0, 15, (len(rows), 1)),
        score=rng.random(len(rows)),
    )
    result = evaluate(truth, detections)
    assert len(result.classes) == 80
    page = tmp_path / "page.html"
    page.write_text(render(detection_report(result), Style()), "utf-8")
    columns = len(packed(images_of(page)))
    assert page.stat().st_size - columns < 1_500_000
    assert columns < 40 * (len(truth) + len(detections))  # 500,000 detections within 20 MB


def _evaluated(detections: list[dict[str, Any]] | None = None) -> Any:
    truth = truth_of()
    return evaluate(*raw_tables(truth, detections_for(truth) if detections is None else detections))
