"""The confusion matrix in a browser: the largest confusions first, and the missed in view."""

from pathlib import Path

import pytest

from tests.browser.pages import NARROW, WIDE, Open, fragment_of
from tests.report.page.cases import model_of


def confusions(path: Path) -> dict[str, int]:
    """Return the number of confusions of each class at the best F1, as either class."""
    model = model_of(path)
    classes, data = model["classes"], model["analysis"]["confusion"]
    step = data["steps"].index(model["analysis"]["operating"]["best"])
    totals = dict.fromkeys(classes, 0)
    for row, column, *counts in data["cells"]:
        if row != column and max(row, column) < len(classes):
            totals[classes[row]] += counts[step]
            totals[classes[column]] += counts[step]
    return totals


def test_the_most_confused_classes_come_first(open_page: Open, lvis_page: Path) -> None:
    tab, totals = open_page(lvis_page), confusions(lvis_page)
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
        assert tab.locator("#confusion-table thead th").first.inner_text() == "missed"
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
