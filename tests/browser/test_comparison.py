"""Two detectors side by side at score thresholds, against evaluations of the detections kept."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap import Detections, evaluate
from detap.analysis.image_results import ImageResults
from detap.analysis.match_results import MatchResults
from detap.cli import main
from tests.browser.pages import NARROW, SIZES, Open, audit
from tests.browser.test_images import (
    CASES,
    COUNTED,
    TRUTHS,
    evaluated_at,
    expected_of,
    page_of,
    table_of,
    threshold_of,
)
from tests.report.page.cases import detections_for, model_of, truth_of

# Title, text and, of each detector, heading, name, counts, boxes and table, of each image.
READ = """() => {
  const $ = (id) => document.getElementById(id);
  const texts = (root, selector) =>
    [...root.querySelectorAll(selector)].map((node) => node.textContent);
  const views = [];
  document.querySelector("#gallery-tiles button").click();
  for (;;) {
    const figures = [...$("viewer-picture").children], bodies = [...$("viewer-table").tBodies];
    views.push([$("viewer-title").textContent, $("viewer-text").textContent,
      figures.map((figure, n) => [
        ...texts(figure, "figcaption > *"),
        [...figure.querySelectorAll("rect[data-result]")].map((box) => [box.dataset.result,
          ...["x", "y", "width", "height"].map((key) => Math.round(10 * box.getAttribute(key)))]),
        [...bodies[n].rows].map((row) => texts(row, "th, td")),
      ])]);
    if ($("next").disabled) break;
    $("next").click();
  }
  return views;
}"""


def earlier_than(detections: Detections) -> Detections:
    """Return some of the detections, with other scores and some other classes."""
    rng = np.random.default_rng(8)
    kept = detections.select(np.flatnonzero(rng.random(len(detections)) < 0.8))
    flipped = np.where(rng.random(len(kept)) < 0.1, rng.permutation(kept.label), kept.label).astype(
        kept.label.dtype
    )
    score = np.round(kept.score * rng.uniform(0.6, 1, len(kept)), 4)
    return replace(kept, score=score, label=flipped)


def boxes_of(results: MatchResults, image: ImageResults) -> list[list[Any]]:
    """Return the expected boxes: result, then left, top, width and height in tenths of a pixel."""
    detections, truths = results.boxes
    rows: list[tuple[Any, Any, set[str]]] = [
        *((detections, entry, COUNTED) for entry in image.detections),
        *((truths, entry, TRUTHS) for entry in image.ground_truths),
    ]
    drawn = []
    for table, entry, known in rows:
        left, top, right, bottom = np.rint(10 * table.corners[entry.row]).astype(int).tolist()
        result = entry.result if entry.result in known else "other"
        drawn.append([result, left, top, max(right - left, 0), max(bottom - top, 0)])
    return sorted(drawn)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("position", ["best F1", "all detections", "another"])
def test_both_detectors_follow_the_threshold(
    open_page: Open,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    name: str,
    position: str,
) -> None:
    data = request.getfixturevalue("real_data") if re.search(r"\d", name) else Path()
    truth, detections, rules, images = CASES[name](data)
    earlier = earlier_than(detections)
    whole, before = (
        evaluate(truth, rows, rules, images=images, as_is=True) for rows in (detections, earlier)
    )
    page = page_of(tmp_path / "page.html", whole, before)
    score = threshold_of(
        page,
        {
            "best F1": whole.operating_point().overall.score,
            "all detections": min(detections.score.min(), earlier.score.min()),
            "another": float(np.sort(detections.score)[len(detections) // 3]),
        }[position],
    )
    evaluated = [
        evaluated_at((truth, rows, rules, images), score) for rows in (earlier, detections)
    ]
    results = [MatchResults.of(result) for result, _ in evaluated]
    by_name = [{str(image.image): image for image in entries} for _, entries in evaluated]
    tab = open_page(page, f"#score={score!r}&hide=matched.other&order=worse")
    views = tab.evaluate(READ)
    assert [title for title, *_ in views] != sorted(by_name[0])
    assert {title for title, *_ in views} == by_name[0].keys()
    totals: list[Counter[str]] = [Counter(), Counter()]
    changes = []
    for title, text, figures in views:
        assert text.startswith("score >= ")
        assert [figure[:2] for figure in figures] == [["Baseline", "before"], ["This detector", ""]]
        errors = []
        for n, (heading, _, counts, drawn, table) in enumerate(figures):
            image = by_name[n][title]
            _, wrong, missed = expected_of(image)
            right = sum(entry.result == "true-positive" for entry in image.detections)
            assert counts == f"{right:,} TP, {wrong:,} FP, {missed:,} FN", (title, heading)
            assert sorted(drawn) == boxes_of(results[n], image), (title, heading)
            assert table[0] == [heading]
            rows = [[row[0], row[1], row[3], row[4]] for row in table[1:]]
            assert rows == table_of(image, whole.classes), (title, heading)
            totals[n] += Counter(TP=right, FP=wrong, FN=missed)
            errors.append(wrong + missed)
        changes.append(errors[1] - errors[0])
    assert changes == sorted(changes, reverse=True)
    assert len(set(changes)) > 1
    for total, (result, _) in zip(totals, evaluated, strict=True):
        point = result.operating_point(score).overall
        assert total == Counter(
            TP=point.true_positives, FP=point.false_positives, FN=point.false_negatives
        )


@pytest.mark.parametrize("threshold", [0.6, 0.3, 0.0])
def test_counts_are_those_of_the_reports_of_both(
    open_page: Open, page: Path, tmp_path: Path, threshold: float
) -> None:
    """Of detections cut at the score before they are evaluated."""
    scores = model_of(page)["analysis"]["operating"]["scores"]
    score = min(value for value in scores if value >= threshold)
    truth, reports = truth_of(), []
    (tmp_path / "gt.json").write_text(json.dumps(truth), "utf-8")
    for rows in (detections_for(truth, 2, worse=0.2), detections_for(truth)):
        kept = [row for row in rows if row["score"] >= score]
        (tmp_path / "dt.json").write_text(json.dumps(kept), "utf-8")
        command = ["eval", str(tmp_path / "gt.json"), str(tmp_path / "dt.json"), "--errors", "-q"]
        command += ["--score-threshold", repr(score), "-o", str(tmp_path / "report.json")]
        assert main(command) == 0
        reports.append(json.loads((tmp_path / "report.json").read_text("utf-8")))
    tab = open_page(page, f"#score={score!r}")
    sums = [
        np.sum([list(map(int, re.findall(r"\d+", figures[n][2]))) for *_, figures in views], axis=0)
        for views in [tab.evaluate(READ)]
        for n in range(2)
    ]
    for counts, report in zip(sums, reports, strict=True):
        point = report["operating_point"]["overall"]
        keys = ("true_positives", "false_positives", "false_negatives")
        assert counts.tolist() == [point[key] for key in keys]
    tab.locator("#close").click()
    rows = tab.locator("#errors-table tbody tr").evaluate_all(
        "all => all.map(row => [...row.children].map(cell => cell.textContent))"
    )
    types = list(reports[0]["errors"]["types"])
    assert len(rows) == len(types)
    for kind in types:
        label = {
            "false_positives": "All FP",
            "false_negatives": "All FN",
            "missed": "Missed (TIDE)",
        }.get(kind, kind.capitalize())
        row = next(cells for cells in rows if cells[0].startswith(label))
        before, now = (report["errors"]["types"][kind]["count"] for report in reports)
        assert row[4:] == [f"{now:,}", f"{before:,}"], kind


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_detectors_are_side_by_side_or_stacked(
    open_page: Open, page: Path, axe: str, size: tuple[int, int], scheme: str
) -> None:
    tab = open_page(page, "#image=0", size, scheme)
    left, right = (figure.bounding_box() for figure in tab.locator("#viewer figure").all())
    if size == NARROW:
        assert left["y"] + left["height"] <= right["y"]
        assert left["x"] == right["x"]
    else:
        assert left["x"] + left["width"] <= right["x"]
        pictures = [svg.bounding_box() for svg in tab.locator("#viewer figure svg").all()]
        assert pictures[0]["y"] == pictures[1]["y"]
    assert tab.locator("#viewer figcaption strong").all_inner_texts() == [
        "Baseline",
        "This detector",
    ]
    paths = tab.locator("#viewer figcaption .path").all_inner_texts()
    assert [Path(path).name for path in paths] == ["before.json", "dt.json"]
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert audit(tab, axe) == []


def test_one_detector_is_drawn_alone(open_page: Open, many_classes: Path) -> None:
    tab = open_page(many_classes, "#image=0")
    assert tab.locator("#viewer-picture svg").count() == 1
    assert tab.locator("#viewer figure").count() == 0
    assert " FN at score >= " in tab.locator("#viewer-text").inner_text()
