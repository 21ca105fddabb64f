"""The class table in a browser: its columns, its width, and rows that are clicked."""

from pathlib import Path

import pytest

from tests.browser.pages import Open, fragment_of


def headings(tab: object) -> list[str]:
    texts: list[str] = tab.locator("#classes-table thead button").all_inner_texts()  # type: ignore[attr-defined]
    return [" ".join(text.split()) for text in texts]


def test_the_class_table_fits_1400_pixels(
    open_page: Open, whole_page: tuple[str, Path], page: Path
) -> None:
    for path in (whole_page[1], page):
        tab = open_page(path, "", (1400, 900))
        region = tab.locator("#classes .scroll")
        # A scroll bar of the window and one of the region may take 15 pixels each.
        width = region.evaluate("x => x.clientWidth - x.querySelector('table').scrollWidth")
        assert region.evaluate("x => x.scrollWidth <= x.clientWidth")
        region.evaluate("x => { x.style.width = `${x.clientWidth - 30}px`; }")
        assert region.evaluate("x => x.scrollWidth <= x.clientWidth"), width
        tab.close()


def test_columns_are_chosen_and_kept_in_the_link(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    at_first = headings(tab)
    assert at_first[:5] == ["class", "AP", "AP50", "AP75", "AR100"]
    assert "APs" not in at_first
    tab.locator("#classes summary").press("Enter")
    choices = tab.get_by_role("group", name="Columns of the table")
    choices.get_by_role("checkbox", name="APs").check()
    choices.get_by_role("checkbox", name="AP75").press("Space")
    chosen = headings(tab)
    assert set(chosen) ^ set(at_first) == {"APs", "AP75"}
    assert fragment_of(tab, "columns") == "APs AP75"
    again = open_page(page, tab.url.partition("#")[2].join(["#", ""]))
    assert headings(again) == chosen
    assert not again.get_by_role("checkbox", name="AP75", include_hidden=True).is_checked()
    # A column that is chosen twice is as at first, and an unknown one is ignored.
    choices.get_by_role("checkbox", name="APs").uncheck()
    choices.get_by_role("checkbox", name="AP75").check()
    assert fragment_of(tab, "columns") is None
    assert headings(open_page(page, "#columns=nothing+AP75+%3Cb%3E")) == [
        name for name in at_first if name != "AP75"
    ]


def test_the_class_table_counts_at_the_threshold(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    columns = headings(tab)
    for key in ("Home", "End"):
        tab.get_by_role("slider").press(key)
        cells = tab.locator("#classes-table tfoot :is(th, td)").all_inner_texts()
        foot = dict(zip(columns, cells, strict=True))
        tiles = dict(
            zip(
                tab.locator("#operating-tiles dt").all_inner_texts(),
                tab.locator("#operating-tiles dd").all_inner_texts(),
                strict=True,
            )
        )
        for name in ("True positives", "False positives", "False negatives"):
            assert foot[f"{name.lower()} at score"] == tiles[name]


@pytest.mark.parametrize(
    ("table", "cell", "key"),
    [
        ("#classes-table", "tbody tr:nth-child(2) td:last-child", "class"),
        ("#change-classes", "tbody tr:nth-child(2) td:nth-child(3)", "class"),
        ("#errors-table", "tbody:first-of-type tr:nth-child(2) td:last-child", "type"),
    ],
)
def test_whole_rows_are_clicked(
    open_page: Open, page: Path, table: str, cell: str, key: str
) -> None:
    tab = open_page(page)
    row = tab.locator(f"{table} {cell}")
    name = row.locator("xpath=..").locator("button").inner_text()
    row.click()
    assert (fragment_of(tab, key) or "").casefold() == name.casefold()
    # The same row again clears the choice; in the table of changes, too.
    tab.locator(f"{table} tr", has=tab.get_by_role("button", name=name)).locator("td").last.click()
    assert fragment_of(tab, key) is None


def test_selecting_text_of_a_row_does_not_choose_it(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    cell = tab.locator("#classes-table tbody tr:nth-child(2) td:nth-child(2)")
    cell.dblclick()  # selects a word; its first click chose the row, its second cleared it
    assert tab.evaluate("String(getSelection())")
    before = fragment_of(tab, "class")
    cell.dispatch_event("click")
    assert fragment_of(tab, "class") == before
