"""The confusion matrix in a browser: the largest confusions first, and the missed in view."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from detap import evaluate
from detap.analysis.confusion import Confusion
from detap.evaluation.detection import Result
from detap.formats import read_detections, read_ground_truth
from tests.browser.pages import NARROW, WIDE, Open, fragment_of
from tests.browser.test_images import CASES, page_of
from tests.report.page.cases import model_of

CELLS = """() => {
  const more = document.getElementById("confusion-more");
  while (!more.hidden) more.click();
  return [...document.querySelectorAll("#confusion-table td.some")].map((cell) =>
    [...cell.dataset.cell.split(","), cell.title.split(": ").at(-1).replaceAll(",", "")]
      .map(Number));
}"""


def shown_matrix(tab: Any, classes: int) -> NDArray[np.int64]:
    """Return the matrix of the page, with the background last."""
    matrix = np.zeros((classes + 1, classes + 1), np.int64)
    for row, column, count in tab.evaluate(CELLS):
        matrix[row, column] = count
    return matrix


@pytest.mark.parametrize("classes", ["all", "one"])
@pytest.mark.parametrize("name", list(CASES))
def test_the_matrix_follows_the_threshold(
    open_page: Open, request: pytest.FixtureRequest, tmp_path: Path, name: str, classes: str
) -> None:
    """It is the matrix of detap eval --confusion --score-threshold at any score."""
    data = Path() if "," in name or name == "difficult" else request.getfixturevalue("real_data")
    truth, detections, rules, _ = CASES[name](data)
    chosen = truth.classes[1:2] if classes == "one" else None
    result = evaluate(truth, detections, rules, classes=chosen, as_is=True)
    page = page_of(tmp_path / "page.html", result)
    scores = model_of(page)["analysis"]["operating"]["scores"]
    steps = np.linspace(0, len(scores) - 1, 6).astype(int).tolist()
    best = result.operating_point().overall.score
    tab = open_page(page)
    for score in (best, *(scores[step] for step in steps)):
        tab.evaluate(f"location.hash = 'score={score!r}'")
        tab.wait_for_timeout(400)  # the matrix follows a slider that rests
        expected = result.confusion(score=score).matrix
        np.testing.assert_array_equal(shown_matrix(tab, len(result.classes)), expected, str(score))


def confusion_of(data: Path) -> Confusion:
    """Return the matrix of the LVIS page at the best F1."""
    gt = read_ground_truth(str(data / "lvis-val-100" / "lvis_val_100.json"))
    dt = read_detections(str(data / "lvis-val-100-results" / "lvis_results_bbox.json"), gt)
    result: Result = evaluate(gt, dt, "lvis")
    return result.confusion(score=result.operating_point().overall.score)


def confusions(confusion: Confusion) -> dict[str, int]:
    """Return the number of confusions of each class, as either class."""
    wrong = confusion.matrix[:-1, :-1] * (1 - np.eye(len(confusion.classes), dtype=np.int64))
    return dict(zip(confusion.classes, (wrong.sum(0) + wrong.sum(1)).tolist(), strict=True))


def test_the_most_confused_classes_come_first(
    open_page: Open, lvis_page: Path, real_data: Path
) -> None:
    tab, totals = open_page(lvis_page), confusions(confusion_of(real_data))
    names = tab.locator("#confusion-table tbody th")
    shown = names.all_text_contents()
    assert len(shown) == 21
    assert shown[-1] == "background"
    numbers = [totals[name] for name in shown[:-1]]
    assert numbers == sorted(totals.values(), reverse=True)[:20]
    assert len(set(numbers)) > 1
    assert tab.locator("#confusion-classes").inner_text() == (
        "The 20 of 1,230 classes with the most confusions."
    )
    more = tab.get_by_role("button", name="Show 20 more classes")
    more.press("Enter")
    assert names.count() == 41
    assert names.all_text_contents()[:20] == shown[:20]
    # The chosen class comes first, then those confused with it.
    tab.locator("#class").select_option(shown[5])
    assert names.first.text_content() == shown[5]


def test_all_classes_are_shown_by_keyboard(open_page: Open, many_classes: Path) -> None:
    tab = open_page(many_classes)
    more = tab.locator("#confusion-more")
    more.focus()
    tab.keyboard.press("Enter")
    tab.keyboard.press("Enter")
    assert not more.is_visible()
    assert tab.locator("#confusion-table td[data-cell]").count() == 61 * 61
    focused = "document.activeElement.dataset.cell"
    column, row = 60, tab.locator("#confusion-table tbody td").first.get_attribute("data-cell")
    assert tab.evaluate(focused) == row
    assert row.endswith(f",{column}")  # the missed ones
    tab.keyboard.press("ArrowLeft")
    assert tab.evaluate(focused) == row
    tab.keyboard.press("ArrowRight")
    first = row.partition(",")[0]
    assert tab.evaluate(focused) == f"{first},{first}"
    tab.locator("#confusion-list button").first.click()
    assert "→" in (fragment_of(tab, "pair") or "")


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_missed_objects_stay_in_view(
    open_page: Open, lvis_page: Path, page: Path, size: tuple[int, int]
) -> None:
    for path in (lvis_page, page):
        tab, totals = open_page(path, "", size), len(model_of(path)["classes"])
        region = tab.locator("#confusion-region")
        region.scroll_into_view_if_needed()
        for scroll in ("0", "x.scrollWidth"):
            region.evaluate(f"x => {{ x.scrollLeft = {scroll}; }}")
            ground = region.bounding_box()
            for cell in (
                tab.locator("#confusion-table thead th").first,
                tab.locator(f"#confusion-table td[data-cell$=',{totals}']").first,
            ):
                box = cell.bounding_box()
                assert ground["x"] < box["x"] < ground["x"] + size[0] / 2
                # Nothing covers it.
                assert cell.evaluate(
                    """x => { x.scrollIntoView({block: "center"});
                    const b = x.getBoundingClientRect();
                    const at = document.elementFromPoint(b.x + b.width / 2, b.y + b.height / 2);
                    return at === x || x.contains(at); }"""
                )
        assert tab.locator("#confusion-table thead th").first.inner_text() == "background FN"
        tab.close()


def test_the_matrix_shows_so_many_classes_at_a_time(open_page: Open, lvis_page: Path) -> None:
    """The work depends on the classes shown, not on the 1,230 squared cells of all."""
    tab = open_page(lvis_page)
    nodes, counts = tab.locator("#confusion-table *"), []
    more = tab.locator("#confusion-more")
    for step in range(3):
        assert tab.locator("#confusion-table td[data-cell]").count() == (20 * step + 21) ** 2
        counts.append(nodes.count())
        more.click()
    assert counts[0] < 800


def test_the_colors_of_the_matrix_have_a_legend(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    shares = tab.locator("#confusion-legend span").all_inner_texts()
    assert shares == ["0 %", "1 %", "10 %", "50 %", "100 %"]
    assert tab.locator("#confusion-legend").inner_text().endswith("of the sum of the row")
    none = tab.locator("#confusion-legend rect").first.evaluate("x => getComputedStyle(x).fill")
    cell = tab.locator("#confusion-table td[data-cell]:not(.some)").first
    assert cell.evaluate("x => x.style.backgroundColor") == none
