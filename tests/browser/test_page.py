"""The page in a browser: every control, without console messages or network requests."""

import base64
import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from detap.cli import main
from tests.browser.pages import (
    CLASSES,
    HEADLINES,
    NARROW,
    SHEET,
    SIZES,
    WIDE,
    Open,
    audit,
    column,
    fragment_of,
)
from tests.report.page.cases import (
    HOSTILE,
    at_step,
    detections_for,
    model_of,
    truth_of,
    write_case,
    write_page,
)

RED = "rgb(255, 0, 0)"


def is_rounded_down(text: str, score: float) -> bool:
    """Return True if a text is that of a score, or of a little less: it keeps the detection."""
    return score * (1 - 1e-6) <= float(text) <= score


def slide(tab: Any, model: dict[str, Any]) -> None:
    """Move the slider by keyboard to its ends and back, and compare the display to the data."""
    operating = model["analysis"]["operating"]
    scores, best = operating["scores"], operating["best"]
    slider = tab.get_by_role("slider")
    slider.focus()
    for key, step in (("ArrowRight", best - 1), ("End", 0), ("Home", len(scores) - 1)):
        tab.keyboard.press(key)
        shown = tab.locator("#score-text").inner_text()
        assert is_rounded_down(shown, scores[step])
        assert slider.get_attribute("aria-valuetext").startswith(f"{shown}, precision ")
        condition = "x => Number(new URLSearchParams(location.hash.slice(1)).get('score')) === x"
        tab.wait_for_function(condition, arg=scores[step])
    # Everything below the lowest score that occurs is kept: all detections of the case.
    tiles = dict(
        zip(
            tab.locator("#operating-tiles dt").all_inner_texts(),
            tab.locator("#operating-tiles dd").all_inner_texts(),
            strict=True,
        )
    )
    columns = [entry["key"] for entry in model["table"]["columns"]]
    totals = dict(zip(columns, model["table"]["totals"], strict=True))
    assert tiles["True positives"] == f"{totals['true_positives']:,}"
    assert tiles["False positives"] == f"{totals['false_positives']:,}"
    tab.get_by_role("button", name="Best F1").click()
    assert is_rounded_down(tab.locator("#score-text").inner_text(), scores[best])


def test_no_page_scrolls_sideways(open_page: Open, page: Path, many_classes: Path) -> None:
    for path in (page, many_classes):
        for fragment in ("", "#class=dog&list=errors", "#list=label_errors&image=0", "#image=3.d0"):
            tab = open_page(path, fragment, NARROW)
            for width in (NARROW[0], 700, 701, 800, 899, 900, 1099, 1100, 1400):
                tab.set_viewport_size({"width": width, "height": 900})
                assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
            tab.close()


def test_the_class_table_sorts_by_click_and_by_enter(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    values = model_of(page)["table"]["rows"]
    tab.locator("#classes-table button[data-key=AP]").click()
    heading = tab.locator("#classes-table th[aria-sort]")
    assert heading.get_attribute("aria-sort") == "descending"
    expected = sorted((row[0] for row in values), reverse=True)
    assert column(tab, 2) == [f"{value:.4f}" for value in expected]
    assert fragment_of(tab, "sort") == "-AP"
    # The button keeps the focus through the new order, so that Enter turns it round.
    tab.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    assert column(tab, 2) == [f"{value:.4f}" for value in reversed(expected)]
    tab.locator("#classes-table button[data-key=name]").press("Enter")
    assert column(tab, 1) == sorted(model_of(page)["classes"])


def test_the_class_table_filters(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    tab.get_by_role("searchbox", name="Filter").fill("LIGHT")
    assert column(tab, 1) == ["traffic light"]
    assert tab.locator("#classes-count").inner_text() == "1 of 6 classes"
    assert fragment_of(tab, "filter") == "LIGHT"


def test_the_class_table_is_saved_as_csv(open_page: Open, page: Path) -> None:
    tab = open_page(page, accept_downloads=True)
    with tab.expect_download() as saved:
        tab.get_by_role("button", name="Download CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(saved.value.path()).read_text("utf-8"))))
    assert [row["class"] for row in rows] == model_of(page)["classes"]
    assert [float(row["AP"]) for row in rows] == [row[0] for row in model_of(page)["table"]["rows"]]


def test_the_slider_is_used_by_keyboard(open_page: Open, page: Path) -> None:
    slide(open_page(page), model_of(page))


def test_selecting_a_class_applies_everywhere(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    tab.locator("#classes-table").get_by_role("button", name="horse").click()
    assert tab.locator("#class").input_value() == "horse"
    assert "horse" in tab.locator("#operating-scope").inner_text()
    assert tab.locator("#curves-text").inner_text().startswith("horse: AP ")
    assert "for horse" in tab.locator("#errors-ap").inner_text()
    assert "horse" in tab.locator("#calibration-text").inner_text()
    assert "class horse" in tab.locator("#gallery-text").inner_text()
    assert "horse" in tab.locator("#status").inner_text()
    assert fragment_of(tab, "class") == "horse"
    tab.get_by_role("button", name="Reset").click()
    assert tab.locator("#class").input_value() == ""
    assert fragment_of(tab, "class") is None


def test_selecting_an_error_type(open_page: Open, page: Path) -> None:
    tab = open_page(page, "#list=errors")
    tab.locator("#errors-table").get_by_role("button", name="Localization").press("Enter")
    assert tab.locator("#type").input_value() == "localization"
    captions = tab.locator("#gallery-tiles .caption").all_inner_texts()
    assert captions
    assert all("localization" in caption for caption in captions)
    tab.locator("#type").select_option("duplicate")
    assert fragment_of(tab, "type") == "duplicate"


def test_a_cell_opens_its_images(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    names = model_of(page)["classes"]
    cells = tab.locator("#confusion-table td.some").evaluate_all(
        "all => all.map(cell => cell.dataset.cell.split(',').map(Number))"
    )
    row, col = next(cell for cell in cells if cell[0] != cell[1] and max(cell) < len(names))
    first = tab.locator("#confusion-table td[data-cell='0,0']")
    first.focus()
    for _ in range(row):
        tab.keyboard.press("ArrowDown")
    for _ in range(col):
        tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Enter")
    assert fragment_of(tab, "pair") == f"{names[row]}→{names[col]}"
    captions = tab.locator("#gallery-tiles .caption").all_inner_texts()
    assert captions
    for caption in captions:
        assert caption.startswith(names[col])
        assert caption.endswith(f"classification with {names[row]}")


def test_images_are_browsed_by_keys(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    tiles = tab.locator("#gallery-tiles li")
    assert tiles.count() == 12
    tab.get_by_role("button", name="Show 12 more").click()
    assert tiles.count() == 24
    assert not tab.locator("#gallery-more").is_visible()
    tiles.first.get_by_role("button").press("Enter")
    title = tab.locator("#viewer-title")
    first = title.inner_text()
    assert fragment_of(tab, "image") is not None
    tab.keyboard.press("ArrowRight")
    second = title.inner_text()
    assert second != first
    tab.keyboard.press("p")
    assert title.inner_text() == first
    assert tab.get_by_role("button", name="Previous").is_disabled()
    tab.get_by_role("button", name="Next").click()
    assert title.inner_text() == second
    tab.keyboard.press("Escape")
    assert not tab.locator("#viewer").is_visible()
    assert fragment_of(tab, "image") is None
    # The tile of the last image shown has the focus.
    assert tab.evaluate("document.activeElement.querySelector('strong').textContent") == second


def test_arrows_move_between_the_tiles(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    tiles = tab.locator("#gallery-tiles button")
    focused = (
        "[...document.querySelectorAll('#gallery-tiles button')].indexOf(document.activeElement)"
    )
    tiles.first.focus()
    columns = tiles.evaluate_all("all => all.filter(x => x.offsetTop === all[0].offsetTop).length")
    for key, index in (("ArrowRight", 1), ("ArrowDown", 1 + columns), ("ArrowLeft", columns)):
        tab.keyboard.press(key)
        assert tab.evaluate(focused) == index
    tab.keyboard.press("ArrowUp")
    assert tab.evaluate(focused) == 0
    tab.keyboard.press("End")
    tab.keyboard.press("ArrowRight")  # shows more
    assert tab.evaluate(focused) == 12
    tab.keyboard.press("Home")
    assert tab.evaluate(focused) == 0


def test_images_are_sorted_and_searched(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    order, more = tab.locator("#gallery-order"), tab.locator("#gallery-more")

    def shown() -> list[tuple[str, list[int]]]:
        while more.is_visible():
            more.click()
        titles = tab.locator("#gallery-tiles strong").all_inner_texts()
        captions = tab.locator("#gallery-tiles .caption").all_inner_texts()
        numbers = [[int(n) for n in re.findall(r"\d+", caption)] for caption in captions]
        return list(zip(titles, numbers, strict=True))  # FP, FN; before FP, FN

    keys: dict[str, Callable[[list[int]], int]] = {
        "errors": lambda n: n[0] + n[1],
        "wrong": lambda n: n[0],
        "lost": lambda n: n[1],
        "worse": lambda n: n[0] + n[1] - n[2] - n[3],
        "better": lambda n: n[2] + n[3] - n[0] - n[1],
    }
    for name, key in keys.items():
        order.select_option(name)
        values = [key(numbers) for _, numbers in shown()]
        assert len(values) == 24
        assert values == sorted(values, reverse=True)
        assert len(set(values)) > 1
        assert fragment_of(tab, "order") == (None if name == "errors" else name)
    order.select_option("name")
    assert [title for title, _ in shown()] == [f"{n}.png" for n in range(1, 25)]
    tab.locator("#find").fill("2.P")
    assert [title for title, _ in shown()] == ["2.png", "12.png", "22.png"]
    assert fragment_of(tab, "find") == "2.P"


def test_match_results_are_toggled_and_also_text(open_page: Open, page: Path) -> None:
    tab = open_page(page, "#image=0")
    viewer = tab.locator("#viewer")
    drawn = viewer.locator("#viewer-picture rect[data-result=true-positive]")
    before = drawn.count()
    assert before
    texts = viewer.locator("#viewer-table tbody tr").all_inner_texts()
    assert sum("True positive" in text for text in texts) == before
    viewer.get_by_role("button", name="True positive").click()
    assert drawn.count() == 0
    assert fragment_of(tab, "hide") == "true-positive"
    viewer.get_by_role("button", name="True positive").click()
    assert drawn.count() == before
    # Distinguished by dashes as well as by color.
    dashes = viewer.locator("#viewer-results line[stroke-width='3.5']").evaluate_all(
        "all => all.map(x => x.getAttribute('stroke-dasharray') + x.getAttribute('stroke'))"
    )
    assert len(set(dashes)) == 10


def test_selecting_a_curve_by_click(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    over = tab.locator("#curves-chart .u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    curve = max(curve[30] for curve in model_of(page)["analysis"]["curves"]["by_class"] if curve)
    x = box["x"] + 0.3 * box["width"]
    y = box["y"] + box["height"] * (1 - curve / 1e4 / 1.02)
    tab.mouse.move(x - 5, y)
    tab.mouse.move(x, y)
    tab.mouse.click(x, y)
    assert fragment_of(tab, "class") in model_of(page)["classes"]
    tab.locator("#curves summary").click()
    assert tab.locator("#curves-table tbody tr").count() == 2  # and the baseline


def test_the_chart_of_scores_moves_the_threshold(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    over = tab.locator("#operating-chart .u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    tab.mouse.move(box["x"] + 0.9 * box["width"] - 3, box["y"] + 50)
    tab.mouse.click(box["x"] + 0.9 * box["width"], box["y"] + 50)
    assert float(fragment_of(tab, "score") or 0) > 0.8


def test_the_change_shows_all_classes_when_asked(
    open_page: Open, many_classes: Path, page: Path
) -> None:
    tab = open_page(page)
    numbers = tab.locator("#change-metrics tbody tr")
    assert numbers.count() == len(model_of(page)["baseline"]["metrics"])
    tab.locator("#change-classes").get_by_role("button").first.click()
    assert fragment_of(tab, "class") in model_of(page)["classes"]
    assert "before" in tab.locator("#gallery-tiles .caption").first.inner_text()


def test_changes_are_colored_where_their_interval_excludes_0(
    open_page: Open, tmp_path: Path
) -> None:
    names = ("cat", "dog", "horse")
    before = tmp_path / "worse.json"
    worse = detections_for(truth_of(names), worse=0.6)
    before.write_text(json.dumps(worse), "utf-8")
    page = write_page(tmp_path, "--baseline-detections", str(before), names=names)
    tab = open_page(page)
    baseline = model_of(page)["baseline"]
    shown: dict[tuple[str, str], list[str]] = {}
    for table in ("metrics", "classes"):
        rows = tab.locator(f"#change-{table} tbody tr").evaluate_all(
            "all => all.map(row => [row.cells[0].textContent, row.cells[3].className, "
            "row.querySelector('.swing i')?.className])"
        )
        shown |= {(table, name): classes for name, *classes in rows}
    kinds = set()
    for (table, name), (kind, bar) in shown.items():
        row = next(row for row in baseline[table] if row["name"] == name)
        low, high = (float("nan") if end is None else end for end in (row["low"], row["high"]))
        kind_of_row = "up" if low > 0 else "down" if high < 0 else ""
        assert kind == kind_of_row, (table, name)
        assert bar is None or ("noise" in bar) == (not kind)
        kinds.add(kind)
    assert kinds == {"", "up"}


def test_navigation_to_sections(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    tab.get_by_role("navigation").get_by_role("link", name="Calibration").click()
    assert fragment_of(tab, "at") == "calibration"
    assert tab.locator("#calibration-title").is_visible()


def test_a_link_restores_the_state(open_page: Open, page: Path) -> None:
    scores = model_of(page)["analysis"]["operating"]["scores"]
    fragment = f"#class=dog&type=localization&score={scores[3]}&sort=-AP50&filter=o"
    fragment += "&list=errors&hide=missed"
    tab = open_page(page, fragment)
    assert tab.locator("#class").input_value() == "dog"
    assert tab.locator("#type").input_value() == "localization"
    assert tab.locator("#score-text").inner_text() == f"{scores[3]:.4f}"
    assert tab.locator("#classes-table th[aria-sort]").inner_text().startswith("AP50")
    assert tab.get_by_role("searchbox", name="Filter").input_value() == "o"
    assert set(column(tab, 1)) == {name for name in model_of(page)["classes"] if "o" in name}
    pressed = tab.locator("#gallery-lists [aria-pressed=true]").inner_text()
    assert pressed == "Confident errors"
    missed = tab.locator("#gallery-results button[data-result=missed]")
    assert missed.get_attribute("aria-pressed") == "false"
    # And a fragment that changes is followed, whatever it holds.
    tab.evaluate(
        "location.hash = '#class=nobody&score=x&sort=%00&list=no&image=-7&hide=..&type=zz'"
    )
    tab.wait_for_timeout(300)
    assert tab.locator("#class").input_value() == ""


def test_hostile_names_are_escaped(
    open_page: Open, page: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    hostile = write_page(tmp_path_factory.mktemp("hostile"), names=HOSTILE)
    tab = open_page(hostile)
    tab.locator("#curves summary").click()
    tab.locator("#class").select_option(index=1)
    tab.get_by_role("button", name="Confident errors").click()
    tab.locator("#gallery-tiles button").first.click()
    assert tab.locator("img, iframe, script[src]").count() == 0
    assert tab.locator("script").count() == 5
    assert column(tab, 1)[0] == HOSTILE[0]
    tab.evaluate("location.hash = '#class=<img src=x onerror=alert(1)>&pair=<b>x</b>'")
    tab.wait_for_timeout(300)
    assert tab.locator("img, #gallery b").count() == 0


@pytest.mark.parametrize("case", ["no detections", "one", "scores", "proposals"])
def test_pages_of_edge_cases(open_page: Open, tmp_path: Path, case: str) -> None:
    truth = truth_of()
    detections = {"no detections": [], "one": detections_for(truth)[:1]}.get(
        case, detections_for(truth)
    )
    if case == "scores":
        detections = [{**entry, "score": 10 * entry["score"]} for entry in detections]
    (tmp_path / "gt.json").write_text(json.dumps(truth), "utf-8")
    (tmp_path / "dt.json").write_text(json.dumps(detections), "utf-8")
    inputs = ["--gt", str(tmp_path / "gt.json"), "--dt", str(tmp_path / "dt.json")]
    if case == "proposals":  # paired by coverage, which knows no errors
        inputs += ["--protocol", "proposals"]
    path = tmp_path / "page.html"
    assert main(["report", *inputs, "-o", str(path), "-q"]) == 0
    for fragment in ("", "#class=dog&list=errors&score=0.1"):
        tab = open_page(path, fragment)
        assert tab.locator("#classes-table tbody tr").count() == (1 if case == "proposals" else 6)
        assert tab.locator("#errors").count() == (case != "proposals")
        assert "NaN" not in tab.locator("main").inner_text()
        assert "undefined" not in tab.locator("main").inner_text()
        tab.close()


def test_each_mark_of_a_chart_has_a_legend(open_page: Open, page: Path) -> None:
    tab = open_page(page)
    legends = {
        "#operating-legend": ["Precision", "Recall", "F1", "Score threshold"],
        "#reliability .legend": ["accuracy", "confidence", "calibrated"],
        "#scores .legend": ["all", "TP"],
        "#overlaps .legend": ["all", "TP"],
    }
    for selector, names in legends.items():
        entries = tab.locator(f"{selector} > span")
        assert entries.all_inner_texts() == names
        assert entries.locator("line, rect").count() == len(names)
    # The marks of the SVG charts are of the kinds that their legends show.
    for chart in ("reliability", "scores", "overlaps"):
        kinds, shown = (
            tab.locator(f"#{chart} {within} :is(line, rect)").evaluate_all(
                "all => all.map(x => x.getAttribute('class'))"
            )
            for within in ("> svg", ".legend")
        )
        assert {*kinds} - {"axis", "base"} == {*shown}


def test_an_injected_script_is_blocked(browser: Any, page: Path) -> None:
    context = browser.new_context()
    tab = context.new_page()
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.goto(page.as_uri())
    tab.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.broken = 1";
          document.body.append(script);
          document.body.insertAdjacentHTML("beforeend",
            "<img src=x onerror='window.broken = 2'><p style='color: red' id='red'>x</p>");
          const far = document.createElement("img");
          far.src = "http://127.0.0.1:9/x.png";
          document.body.append(far);
        }"""
    )
    tab.wait_for_timeout(500)
    assert tab.evaluate("window.broken") is None
    assert tab.evaluate("getComputedStyle(document.getElementById('red')).color") != RED
    assert sum("Content Security Policy" in text for text in said) >= 4
    context.close()


def violations_of(
    browser: Any, axe: str, url: str, size: tuple[int, int], scheme: str
) -> list[Any]:
    """Return the violations of a page with its details open, or of the dialog of an image."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, bypass_csp=True
    )
    tab = context.new_page()
    tab.goto(url)
    tab.wait_for_timeout(300)
    for summary in tab.locator("details > summary").all():
        if summary.is_visible() and "#" not in url:
            summary.click()
    violations = audit(tab, axe)
    context.close()
    return violations


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("fragment", ["", "#class=dog&list=errors&image=3.d0"])
def test_axe_finds_nothing(  # noqa: PLR0917 - fixtures and parameters
    browser: Any, axe: str, page: Path, size: tuple[int, int], scheme: str, fragment: str
) -> None:
    assert violations_of(browser, axe, f"{page.as_uri()}{fragment}", size, scheme) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_a_whole_page_reports_nothing_and_fits(
    open_page: Open, whole_page: tuple[str, Path], size: tuple[int, int], scheme: str
) -> None:
    name, path = whole_page
    model, tab = model_of(path), open_page(path, "", size, scheme)
    if name in HEADLINES:
        assert tab.locator("h1 .value").inner_text() == HEADLINES[name]
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert tab.locator("#classes-table tbody tr").count() == CLASSES[name]
    # A bar for what is more than nothing, one color for the figures of the ninths.
    changes = [entry["delta_ap"] for entry in model["analysis"]["errors"]["types"]]
    assert tab.locator("#errors-table .meter i").count() == sum(x > 0 for x in changes)
    colors = tab.locator(".regions td").evaluate_all("all => all.map(x => x.style.color)")
    assert len(set(colors)) == 1
    slide(tab, model)
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_equal_confusions_of_fewer_objects_come_first(
    open_page: Open, whole_page: tuple[str, Path]
) -> None:
    tab = open_page(whole_page[1])
    texts = tab.locator("#confusion-list li > span").all_inner_texts()  # as "17 (2.2 %)"
    shown = [tuple(float(part) for part in text[:-3].split(" (")) for text in texts]
    assert len(shown) > 1
    assert shown == sorted(shown, reverse=True)


def test_the_ticks_of_counts_reach_near_the_top(
    open_page: Open, whole_page: tuple[str, Path]
) -> None:
    tab = open_page(whole_page[1])
    for panel, data in (("scores", "score"), ("overlaps", "iou")):
        analysis = model_of(whole_page[1])["analysis"]
        counts = analysis["histograms"][data]
        columns = [counts["true_positives"], counts["false_positives"]]
        if data == "iou":  # at the best F1
            best = analysis["operating"]["best"]
            columns = [[at_step(text, best) for text in column] for column in columns]
        largest = max(a + b for a, b in zip(*columns, strict=True))
        texts = tab.locator(f"#{panel} text[text-anchor=end]").all_text_contents()[:-1]
        ticks = [float(text.replace("k", "e3")) for text in texts]
        assert largest / 2.5 <= max(ticks) <= largest


def test_scrollable_regions_are_marked_and_leave_margin(
    open_page: Open, whole_page: tuple[str, Path]
) -> None:
    tab = open_page(whole_page[1], "", NARROW)
    region = tab.locator("#classes .scroll")
    assert region.bounding_box()["height"] <= 0.76 * NARROW[1]
    shadow = "x => getComputedStyle(x).boxShadow"
    assert "inset" in region.evaluate(shadow)
    region.evaluate("x => { x.scrollLeft = x.scrollWidth; }")
    tab.wait_for_function(
        "() => getComputedStyle(document.querySelector('#classes .scroll'))"
        ".boxShadow.startsWith('rgba(0, 0, 0, 0)')"
    )


def test_a_printed_page_has_all_columns(open_page: Open, whole_page: tuple[str, Path]) -> None:
    tab = open_page(whole_page[1])
    tab.emulate_media(media="print")
    tab.set_viewport_size({"width": SHEET[0], "height": SHEET[1]})
    assert tab.evaluate("document.documentElement.scrollWidth") <= SHEET[0]
    assert not tab.get_by_text("Table", exact=True).first.is_visible()


def test_a_printed_page_fits_paths_of_any_length(open_page: Open, tmp_path: Path) -> None:
    folder = tmp_path / ("a_long_name_without_any_place_to_break_" * 4) / "one-more"
    folder.mkdir(parents=True)
    write_case(folder)
    tab = open_page(write_page(folder))
    tab.emulate_media(media="print")
    tab.set_viewport_size({"width": SHEET[0], "height": SHEET[1]})
    assert tab.evaluate("document.documentElement.scrollWidth") <= SHEET[0]


def test_a_slider_step_changes_few_nodes(open_page: Open, whole_page: tuple[str, Path]) -> None:
    """A step writes six cells per class and some parts; it does not rebuild the class table."""
    tab = open_page(whole_page[1])
    nodes = tab.evaluate(
        """() => {
          const slider = document.getElementById("score"), counts = [];
          const seen = new MutationObserver(() => {});
          const all = (node) => 1 + (node.querySelectorAll?.("*").length || 0);
          const added = (sum, record) => [...record.addedNodes].reduce((n, x) => n + all(x), sum);
          seen.observe(document.body, {childList: true, subtree: true, characterData: true});
          for (let step = 20; step < 220; step += 10) {
            slider.value = step;
            slider.dispatchEvent(new Event("input"));
            counts.push(seen.takeRecords().reduce(added, 0));
          }
          return counts;
        }"""
    )
    assert min(nodes) > 6
    assert max(nodes) <= 6 * CLASSES[whole_page[0]] + 150


def test_images_are_drawn_as_annotated(open_page: Open, page: Path) -> None:
    tab = open_page(page, "#image=0")
    picture = tab.locator("#viewer-picture image").last  # of this detector
    head, _, data = picture.get_attribute("href").partition(",")
    assert head == "data:image/webp;base64"
    assert base64.b64decode(data)[8:12] == b"WEBP"
    assert tab.locator("#viewer-picture svg").last.get_attribute("viewBox") == "0 0 640 480"
    assert (picture.get_attribute("width"), picture.get_attribute("height")) == ("640", "480")
