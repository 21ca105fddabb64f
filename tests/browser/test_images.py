"""The images of the page at score thresholds, against evaluations of the detections kept there."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap import Detections, GroundTruth, Protocol, Result, evaluate, protocol
from detap.analysis.errors import errors
from detap.analysis.examples import label_errors
from detap.analysis.image_results import ImageResults, image_results
from detap.analysis.match_results import MatchResults
from detap.formats import read_detections, read_ground_truth
from detap.tables.detection import Name
from tests.browser.pages import Open
from tests.depth import SAMPLED
from tests.report.page.cases import model_of

LABELS = {
    "true-positive": "True positive",
    "near-miss": "Near miss",
    "missed": "Missed (TIDE)",
    "outside-area-range": "Outside the area range",
    "beyond-max-dets": "Beyond max dets",
}
NOTHING = "\N{EN DASH}"
TRUTHS = {"matched", "near-miss", "missed"}
COUNTED = {"true-positive", "classification", "localization", "both", "duplicate", "background"}

# Captions and boxes of all tiles, then text, boxes and table of each image in the viewer.
READ = """() => {
  const counts = (root) => {
    const found = {};
    for (const node of root.querySelectorAll("[data-result]")) {
      found[node.dataset.result] = (found[node.dataset.result] || 0) + 1;
    }
    return found;
  };
  const $ = (id) => document.getElementById(id);
  while (!$("gallery-more").hidden) $("gallery-more").click();
  const tiles = [...document.querySelectorAll("#gallery-tiles li")].map((tile) =>
    [tile.querySelector("strong").textContent, tile.querySelector(".caption").textContent,
     counts(tile)]);
  document.querySelector("#gallery-tiles button").click();
  const views = [];
  for (;;) {
    views.push([$("viewer-title").textContent, $("viewer-text").textContent,
      counts($("viewer-picture")),
      [...$("viewer-table").querySelectorAll("tbody tr")].map((row) =>
        [...row.children].map((cell) => cell.textContent))]);
    if ($("next").disabled) break;
    $("next").click();
  }
  return {text: $("gallery-text").textContent, tiles, views};
}"""

Case = tuple[GroundTruth, Detections, Protocol, Sequence[Name] | None]


def generated(name: str, difficult: bool) -> Case:
    """Return crowded random boxes with ignored objects and few max. detections."""
    rng = np.random.default_rng(5)
    count, classes = 30, ["cat", "dog", "cow"]
    image = np.sort(rng.integers(0, count, 8 * count))
    left, size = rng.uniform(0, 60, (len(image), 2)), rng.uniform(5, 40, (len(image), 2))
    flags = rng.random(len(image)) < 0.2
    truth = GroundTruth.from_arrays(
        image=image,
        label=rng.choice(classes, len(image)),
        boxes=np.hstack([left, left + size]),
        images=range(count),
        classes=classes,
        difficult=flags if difficult else None,
        crowd=None if difficult else flags,
    )
    rows = np.repeat(np.arange(len(image)), 3)
    labels = np.array(truth.classes)[truth.label[rows]]
    other = rng.random(len(rows)) < 0.2
    moved = truth.corners[rows] + rng.normal(0, 4, (len(rows), 4))
    detections = Detections.from_arrays(
        image=image[rows],
        label=np.where(other, rng.choice(classes, len(rows)), labels),
        boxes=np.hstack([moved[:, :2], np.maximum(moved[:, 2:], moved[:, :2] + 1)]),
        score=np.round(rng.random(len(rows)), 2),  # with ties
    )
    rules = protocol(name)
    return truth, detections, rules if difficult else replace(rules, max_dets=(1, 2, 4)), None


def coco(data: Path) -> Case:
    folder = data / "coco-val2014-100"
    truth = read_ground_truth(str(folder / "instances_val2014_100.json"))
    path = folder / "instances_val2014_fakebbox100_results.json"
    return truth, read_detections(str(path), truth), protocol("coco"), None


def voc(data: Path) -> Case:
    folder = data / "voc2007-test"
    truth = read_ground_truth(str(folder / "Annotations"), format="voc")
    detections = read_detections(str(folder / "detections"), truth, format="voc")
    return truth, detections, protocol("voc2007"), truth.images[:: 20 if SAMPLED else 4]


CASES: dict[str, Callable[[Path], Case]] = {
    "crowd, max dets": lambda _: generated("coco", difficult=False),
    "difficult": lambda _: generated("voc2007", difficult=True),
    "coco-val2014-100": coco,
    "voc2007-test": voc,
}


def page_of(path: Path, result: Result, before: Result | None = None) -> Path:
    from detap.report.page import render
    from detap.report.sections.detection import detection_report
    from detap.report.writers.registry import Style

    report = detection_report(result)
    assert report.page_source is not None
    source = replace(report.page_source, before=before, earlier="before")
    path.write_text(render(replace(report, page_source=source), Style()), "utf-8")
    return path


def evaluated_at(case: Case, score: float) -> tuple[Result, list[ImageResults]]:
    """Evaluate the detections with at least a score."""
    truth, detections, rules, images = case
    kept = detections.select(np.flatnonzero(detections.score >= score))
    result = evaluate(truth, kept, rules, images=images, as_is=True)
    results = MatchResults.of(result)
    types = errors(results)
    return result, [image_results(results, name, types=types) for name in result.images]


def named(result: str) -> str:
    return LABELS.get(result, result.capitalize())


def table_of(image: ImageResults, classes: tuple[str, ...]) -> list[list[str]]:
    """Return the table of the viewer with nothing hidden; scores and IoU as numbers."""
    detection = {entry.row: n for n, entry in enumerate(image.detections, 1)}
    truth = {entry.row: n for n, entry in enumerate(image.ground_truths, 1)}
    label = {entry.row: classes[entry.label] for entry in image.ground_truths}
    rows = []
    for n, gt in enumerate(image.ground_truths, 1):
        by = f"detection {detection[gt.detection]}" if gt.detection >= 0 else NOTHING
        rows.append([f"GT {n}", classes[gt.label], named(gt.result), by])
    return rows + [
        [
            f"detection {n}",
            classes[entry.label],
            named(entry.result),
            NOTHING
            if entry.ground_truth < 0
            else f"{label[entry.ground_truth]} {truth[entry.ground_truth]}",
        ]
        for n, entry in enumerate(image.detections, 1)
    ]


@pytest.fixture(scope="module", params=list(CASES))
def case(request: pytest.FixtureRequest, browser: Any) -> Case:
    data = Path() if "," in request.param else request.getfixturevalue("real_data")
    return CASES[request.param](data)


@pytest.mark.parametrize("position", ["best F1", "all detections", "another"])
def test_images_follow_the_threshold(
    open_page: Open,
    case: Case,
    position: str,
    tmp_path: Path,
) -> None:
    truth, detections, rules, images = case
    whole = evaluate(truth, detections, rules, images=images, as_is=True)
    best = whole.operating_point().overall.score
    score = {
        "best F1": best,
        "all detections": float(detections.score.min()),
        "another": float(np.sort(detections.score)[len(detections) // 4]),
    }[position]
    page = page_of(tmp_path / "page.html", whole)
    tab = open_page(page, f"#score={score!r}&hide=matched.other")
    score = threshold_of(page, score)
    result, expected = evaluated_at(case, score)
    by_name = {str(entry.image): entry for entry in expected}
    seen = tab.evaluate(READ)
    assert {title for title, *_ in seen["tiles"]} == {title for title, *_ in seen["views"]}
    assert {title for title, *_ in seen["tiles"]} == by_name.keys()
    errors_by_tile = []
    for title, caption, boxes in seen["tiles"]:
        drawn, wrong, missed = expected_of(by_name[title])
        assert caption == f"{wrong:,} FP, {missed:,} FN", title
        assert boxes == drawn, title
        errors_by_tile.append(wrong + missed)
    assert errors_by_tile == sorted(errors_by_tile, reverse=True)
    for title, text, boxes, rows in seen["views"]:
        drawn, wrong, missed = expected_of(by_name[title])
        assert f"{wrong:,} FP, {missed:,} FN at score" in text, title
        assert boxes == drawn, title
        table = table_of(by_name[title], result.classes)
        assert [[row[0], row[1], row[3], row[4]] for row in rows] == table, title
        entries = by_name[title].detections
        shown = [row for row in rows if row[0].startswith("detection")]
        np.testing.assert_allclose(
            [float(row[2]) for row in shown], [d.score for d in entries], atol=6e-5
        )
    point = result.operating_point(score).overall
    assert f": {point.false_positives:,} FP, {point.false_negatives:,} FN." in seen["text"]
    at_score = tab.locator("#errors-table tbody tr").evaluate_all(
        "all => all.map(row => [row.querySelector('button, th').firstChild.textContent,"
        " row.children[3].textContent])"
    )
    types = errors(result)
    for name in ("classification", "localization", "both", "duplicate", "background", "missed"):
        assert dict(at_score)[named(name)] == f"{types.of_type(name)[1]:,}"


def threshold_of(page: Path, score: float) -> float:
    """Return the slider's threshold for a score: the next above."""
    scores: list[float] = model_of(page)["analysis"]["operating"]["scores"]
    return min(threshold for threshold in scores if threshold >= score)


def expected_of(image: ImageResults) -> tuple[dict[str, int], int, int]:
    """Return the number of drawn boxes by result, of false positives and of negatives."""
    results = [entry.result for entry in image.detections]
    truths = [entry.result for entry in image.ground_truths]
    drawn = Counter(result if result in COUNTED else "other" for result in results)
    drawn += Counter(result if result in TRUTHS else "other" for result in truths)
    wrong = sum(result in COUNTED - {"true-positive"} for result in results)
    return dict(drawn), wrong, sum(result in TRUTHS - {"matched"} for result in truths)


LISTS = """async () => {
  const more = document.getElementById("gallery-more");
  while (!more.hidden) more.click();
  return [...document.querySelectorAll("#gallery-tiles li")].map((tile) =>
    [tile.querySelector("button").dataset.key, tile.querySelector(".caption").textContent]);
}"""


@pytest.mark.parametrize("quantile", [0.02, 0.4, 0.7])
def test_lists_follow_the_threshold(open_page: Open, tmp_path: Path, quantile: float) -> None:
    """Confident errors, possible label errors, errors of a type, and the change of each image."""
    case = generated("coco", difficult=False)
    truth, detections, rules, _ = case
    rng = np.random.default_rng(2)
    earlier = detections.select(rng.permutation(len(detections))[: len(detections) // 2])
    whole = evaluate(truth, detections, rules)
    page = page_of(tmp_path / "page.html", whole, evaluate(truth, earlier, rules))
    score = threshold_of(page, np.sort(detections.score)[int(quantile * len(detections))])
    result, now = evaluated_at(case, score)
    _, before = evaluated_at((truth, earlier, rules, None), score)

    tab = open_page(page, f"#score={score!r}&list=errors")
    captions = [caption for _, caption in tab.evaluate(LISTS)]
    wrong = [
        d for image in now for d in image.detections if d.result in COUNTED - {"true-positive"}
    ]
    wrong.sort(key=lambda d: -d.score)
    assert [float(c.split(":")[0].split()[-1]) for c in captions] == [
        pytest.approx(d.score, abs=6e-3) for d in wrong
    ]
    kinds = Counter((result.classes[d.label], d.result.capitalize().lower()) for d in wrong)
    shown = Counter((c.split()[0], c.split(": ")[1].split(" with")[0]) for c in captions)
    assert shown == kinds

    tab = open_page(page, f"#score={score!r}&type=duplicate")
    counts = {image: int(caption.split()[0]) for image, caption in tab.evaluate(LISTS)}
    duplicates = {
        str(image.image): sum(d.result == "duplicate" for d in image.detections) for image in now
    }
    assert counts == {image: count for image, count in duplicates.items() if count}

    tab = open_page(page, f"#score={score!r}&order=worse")
    changes = []
    for image, caption in tab.evaluate(LISTS):
        expected = [expected_of(entries[int(image)])[1:] for entries in (now, before)]
        (fp, fn), (fp_before, fn_before) = expected
        assert caption == f"{fp} FP, {fn} FN; before {fp_before} FP, {fn_before} FN"
        changes.append(fp + fn - fp_before - fn_before)
    assert changes == sorted(changes, reverse=True)

    tab = open_page(page, f"#score={score!r}&list=label_errors")
    results = MatchResults.of(result)
    expected_errors = label_errors(results, errors(results), max_count=24)
    assert Counter(reason_of(caption) for _, caption in tab.evaluate(LISTS)) == Counter(
        reason for reason, _, _ in expected_errors
    )


def reason_of(caption: str) -> str:
    phrases = {
        "missing annotation": "missing_annotation",
        "annotated as": "wrong_label",
        "never detected": "never_detected",
    }
    return next(reason for phrase, reason in phrases.items() if phrase in caption)
