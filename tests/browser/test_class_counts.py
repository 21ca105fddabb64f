"""Pages of 3 to 1,203 classes: they fit, axe finds nothing, and their parts show what they say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from detap import evaluate
from tests.browser.pages import COUNTS, SIZES, Open, audit
from tests.browser.test_curves import legend
from tests.depth import SAMPLED

PageOf = Callable[[int], Path]

VIEWS = [(size, scheme) for size in SIZES for scheme in ("light", "dark")]


def views(classes: int) -> list[tuple[tuple[int, int], str]]:
    """Return all sizes and color schemes, or one: another for each number."""
    return VIEWS[3 * COUNTS.index(classes) % len(VIEWS) :][:1] if SAMPLED else VIEWS


def fits(tab: Any, selector: str) -> None:
    """Check that an element ends within the window."""
    box = tab.locator(selector).bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= tab.viewport_size["width"]


@pytest.mark.parametrize("classes", COUNTS)
def test_a_page_of_any_number_of_classes_fits(
    open_page: Open, page_of: PageOf, classes: int
) -> None:
    for size in SIZES:
        tab = open_page(page_of(classes), "", size)
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert tab.locator("#classes-table tbody tr").count() == classes
        for region in ("#classes .scroll", "#confusion-region", "#curves-chart"):
            fits(tab, region)
        assert tab.locator("#classes .scroll").bounding_box()["height"] <= 0.96 * size[1]
        if size[0] == 1400:
            assert tab.locator("#classes .scroll").evaluate("x => x.scrollWidth <= x.clientWidth")
        tab.close()


@pytest.mark.parametrize("classes", COUNTS)
def test_axe_finds_nothing_in_any_number_of_classes(
    browser: Any, axe: str, page_of: PageOf, classes: int
) -> None:
    for size, scheme in views(classes):
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, bypass_csp=True
        )
        tab = context.new_page()
        tab.goto(page_of(classes).as_uri())
        tab.wait_for_function("!document.querySelector('[aria-busy]')")
        violations = audit(tab, axe)
        assert not violations, (size, scheme, violations)
        context.close()


@pytest.mark.parametrize("classes", [80, 1203])
def test_the_largest_confusions_come_first(open_page: Open, page_of: PageOf, classes: int) -> None:
    tab, folder = open_page(page_of(classes)), page_of(classes).parent
    result = evaluate(str(folder / "gt.json"), str(folder / "dt.json"))
    matrix = result.confusion(score=result.operating_point().overall.score).matrix
    counts = {
        f"{of} predicted as {prediction}": int(matrix[row, column])
        for row, of in enumerate(result.classes)
        for column, prediction in enumerate(result.classes)
        if row != column and matrix[row, column]
    }
    texts = tab.locator("#confusion-list button").all_inner_texts()
    shown = [counts[text] for text in texts]
    assert shown == sorted(counts.values(), reverse=True)[:24]
    assert len(set(shown)) > 1
    # The whole text can be read: it breaks where it does not fit.
    narrow = open_page(page_of(classes), "", SIZES[-1])
    for view in (tab, narrow):
        assert view.locator("#confusion-list button").evaluate_all(
            "all => all.every(x => x.scrollWidth <= x.clientWidth)"
        )


@pytest.mark.parametrize("classes", COUNTS)
def test_more_than_a_hundred_classes_have_no_curves_of_their_own(
    open_page: Open, page_of: PageOf, classes: int
) -> None:
    tab, mean = open_page(page_of(classes)), f"mean of {classes:,} classes"
    few = classes <= 100
    caption = tab.locator("#curves-caption")
    assert list(legend(tab)) == ([mean, "one class"] if few else [mean])
    assert caption.inner_text().endswith(
        "Click the curve of a class to select it." if few else "Select a class to draw its curve."
    )
    tab.locator("#class").select_option("class 0002")
    point = "at the score threshold"
    assert list(legend(tab)) == ["class 0002", "another class" if few else mean, point]
    assert tab.locator("#curves-text").inner_text().startswith("class 0002: AP ")
