"""The page of detections without scores: images and confusions of all detections, no slider."""

import json
from pathlib import Path

import numpy as np
import pytest

import detap
from detap.analysis.confusion import confusion
from detap.evaluation.detection import Result
from tests.browser.pages import NARROW, Open, audit
from tests.browser.test_confusion import shown_matrix
from tests.coco import results_of, truth_of

QUICKSTART = Path("fixtures/quickstart/coco")

pytestmark = pytest.mark.filterwarnings("ignore::detap.errors.DetapWarning")


def page_of(result: Result, folder: Path) -> Path:
    path = folder / "page.html"
    path.write_text(result.to_page(), encoding="utf-8")
    return path


def quickstart() -> Result:
    return detap.evaluate(QUICKSTART / "instances.json", QUICKSTART / "no-scores.json")


def test_images_have_the_counts_of_the_table(open_page: Open, tmp_path: Path) -> None:
    tab = open_page(page_of(quickstart(), tmp_path))
    # 13 true positives, 10 false positives and a missed bird, as in the specification.
    assert tab.locator("#gallery-text").inner_text() == "6 images: 10 FP, 1 FN."
    assert tab.locator("#gallery-lists button").all_inner_texts() == [
        "All images",
        "False positives",
    ]
    assert not tab.locator("#score").is_visible()
    tab.locator("#gallery-tiles button").first.click()
    tab.wait_for_selector("#viewer[open]")
    assert "score" not in tab.locator("#viewer-text").inner_text()
    assert "score" not in tab.locator("#viewer-picture").inner_html()
    tab.keyboard.press("Escape")
    tab.locator("#gallery-lists button").last.click()
    assert tab.locator("#gallery-text").inner_text() == "10 false positives."
    assert all(":" in text for text in tab.locator("#gallery-tiles .caption").all_inner_texts())


def test_the_matrix_is_that_of_the_report(open_page: Open, tmp_path: Path) -> None:
    """Two dogs are taken for cats. In file order, the first cat would take the dog of the other."""
    dogs = [(1, 1, [10, 0, 10, 10]), (1, 1, [14, 0, 10, 10])]
    cat = (1, 2, [50, 0, 9, 9])
    detections = results_of([(1, 2, [11, 0, 10, 10]), (1, 2, [7, 0, 10, 10]), cat])
    for row in detections:
        del row["score"]
    truth = truth_of([*dogs, cat], {1: "dog", 2: "cat"}, (1,))
    for name, content in (("gt", truth), ("dt", detections)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    result = detap.evaluate(tmp_path / "gt.json", tmp_path / "dt.json")
    tab = open_page(page_of(result, tmp_path))
    tab.wait_for_selector("#confusion:not([aria-busy])")
    shown = shown_matrix(tab, len(result.classes))
    assert shown.tolist() == [[0, 2, 0], [0, 1, 0], [0, 0, 0]]
    np.testing.assert_array_equal(shown, confusion(result).matrix)
    tab.locator("#confusion-list button").first.click()
    assert tab.locator("#gallery-text").inner_text().startswith("2 false positives of ")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_is_accessible(
    open_page: Open, axe: str, tmp_path: Path, scheme: str
) -> None:
    tab = open_page(page_of(quickstart(), tmp_path), size=NARROW, scheme=scheme)
    tab.wait_for_selector("#gallery:not([aria-busy])")
    assert tab.evaluate("document.documentElement.scrollWidth") == NARROW[0]
    assert audit(tab, axe) == []
