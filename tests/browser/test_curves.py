"""Curves, errors and changes in a browser, with those of a baseline."""

from pathlib import Path
from typing import Any

import pytest

from detap.cli import main
from tests.browser.pages import NARROW, SIZES, Open
from tests.report.page.cases import model_of, write_case, write_page

BLUE, ORANGE = (10, 91, 196), (213, 94, 0)

DRAWN = """(canvas, [values, color]) => {
  const over = canvas.parentNode.querySelector(".u-over").getBoundingClientRect();
  const ground = canvas.getBoundingClientRect(), { width, height } = canvas;
  canvas.pixels ??= canvas.getContext("2d").getImageData(0, 0, width, height).data;
  const near = ([r, g, b]) => Math.hypot(r - color[0], g - color[1], b - color[2]) < 60;
  const found = [];
  for (let step = 0; step < 400; step++) {
    const at = step / 4, low = Math.floor(at), part = at - low;
    const value = values[low] * (1 - part) + values[low + 1] * part;
    const x = Math.round(over.x - ground.x + over.width * at / 100);
    const y = Math.round(over.y - ground.y + over.height * (1 - value / 1e4 / 1.02));
    found.push([-2, -1, 0, 1, 2].some((n) => near(canvas.pixels.slice(4 * ((y + n) * width + x)))));
  }
  return found.filter(Boolean).length / found.length;
}"""


def drawn(tab: Any, values: list[int], ink: tuple[int, int, int]) -> float:
    """Return the fraction of a curve that the chart shows in a color."""
    share: float = tab.locator("#curves-chart canvas").evaluate(DRAWN, [values, ink])
    return share


def legend(tab: Any) -> dict[str, str]:
    """Return the dashes of the lines in the legend by their names."""
    entries = tab.locator("#curves-legend span").all()
    return {
        entry.inner_text(): entry.locator("line, circle").get_attribute("stroke-dasharray")
        for entry in entries
    }


def test_the_mean_is_drawn_over_that_of_the_baseline(open_page: Open, page: Path) -> None:
    tab, analysis = open_page(page), model_of(page)["analysis"]
    solid = drawn(tab, analysis["curves"]["mean"], BLUE)
    dashed = drawn(tab, analysis["curves_before"]["mean"], ORANGE)
    assert solid > 0.5  # the dashes of the other cover parts
    assert 0.3 < dashed < 0.9  # dashes
    names = ["mean of 6 classes", "mean of 6 classes, baseline", "one class"]
    assert legend(tab) == dict(zip(names, ["", "8 4", ""], strict=True))
    now, before = (
        f"{analysis[key]:.4f}" for key in ("average_precision", "average_precision_before")
    )
    text = f"Mean of 6 classes: AP {now}, baseline AP {before}."
    assert tab.locator("#curves-text").inner_text() == text
    tab.locator("#curves summary").click()
    rows = tab.locator("#curves-table tbody tr").all_inner_texts()
    assert rows[0].startswith(f"mean of 6 classes\t{now}\t")
    assert rows[1].startswith(f"mean of 6 classes, baseline\t{before}\t")
    assert rows[1].split("\t")[7] == f"{analysis['curves_before']['mean'][50] / 1e4:.3f}"
    assert len(rows) == 14


def test_a_class_is_drawn_over_that_of_the_baseline(open_page: Open, page: Path) -> None:
    tab, analysis = open_page(page, "#class=dog"), model_of(page)["analysis"]
    assert drawn(tab, analysis["curves"]["by_class"][1], BLUE) > 0.5
    assert 0.3 < drawn(tab, analysis["curves_before"]["by_class"][1], ORANGE) < 0.9
    assert list(legend(tab)) == ["dog", "dog, baseline", "another class", "at the score threshold"]


def test_without_a_baseline_there_is_one_curve(open_page: Open, many_classes: Path) -> None:
    tab = open_page(many_classes)
    assert model_of(many_classes)["analysis"]["curves_before"] is None
    assert len(legend(tab)) == 2
    assert "baseline" not in tab.locator("#curves").inner_text()
    assert tab.locator("#errors-table thead th").all_inner_texts()[2:] == [
        "count, all scores",
        f"count, score >= {tab.locator('#score-text').inner_text()}",
    ]


@pytest.mark.parametrize("size", SIZES)
def test_the_columns_of_errors_name_detector_and_threshold(
    open_page: Open, page: Path, size: tuple[int, int]
) -> None:
    types = {entry["name"]: entry for entry in model_of(page)["analysis"]["errors"]["types"]}
    for fragment, before in (
        ("#score=0.5", types["localization"]["before"]),
        ("#score=0.5&class=dog", types["localization"]["before_by_class"][1]),
    ):
        tab = open_page(page, fragment, size)
        heads = [
            "type",
            "dAP if fixed",
            "count, all scores",
            "baseline count, all scores",
            "count, score >= {0}",
            "baseline count, score >= {0}",
        ]
        threshold = tab.locator("#score-text").inner_text()
        texts = tab.locator("#errors-table thead th").all_text_contents()
        assert texts == [text.format(threshold) for text in heads]
        row = tab.locator("#errors-table tr", has=tab.get_by_role("button", name="Localization"))
        assert row.locator("td").nth(2).text_content() == f"{before:,}"
        # On a phone, "All detections" shows those of all scores.
        shown = [cell.is_visible() for cell in tab.locator("#errors-table thead th").all()]
        assert shown == [True, True, size != NARROW, size != NARROW, True, True]
        region = tab.locator("#errors .scroll")
        assert region.evaluate("x => x.scrollWidth <= x.clientWidth")


@pytest.mark.parametrize("size", SIZES)
def test_changes_of_metrics_have_intervals(
    open_page: Open, page: Path, size: tuple[int, int]
) -> None:
    tab, metrics = open_page(page, "", size), model_of(page)["baseline"]["metrics"]
    for name in ("metric", "class"):
        heads = tab.locator(f"#change .scroll:has(th:text-is('{name}')) thead th").all_inner_texts()
        assert heads == [name, "before", "now", "diff", "95 % CI of diff"]
    for row, metric in zip(tab.locator("#change-metrics tbody tr").all(), metrics, strict=True):
        cells = row.locator("td").all_inner_texts()
        low, high = metric["low"], metric["high"]
        if low is None:
            assert cells[3] == "\N{EN DASH}"
        else:
            # A minus sign, and at least one unit of the last decimal.
            assert all(
                abs(float(text.replace("\N{MINUS SIGN}", "-")) - value) < 1e-4
                for text, value in zip(cells[3].split(" to "), (low, high), strict=True)
            )
    assert any(metric["low"] is not None for metric in metrics)
    for region in tab.locator("#change .scroll").all():
        assert region.evaluate("x => x.scrollWidth <= x.clientWidth")
    assert "detap compare" in tab.locator("#change .intro").inner_text()


def test_changes_from_a_report_have_no_intervals(
    open_page: Open, tmp_path: Path, page: Path
) -> None:
    inputs, kept = write_case(tmp_path), str(tmp_path / "kept.json")
    assert main(["eval", *inputs, "-q", "-o", kept]) == 0
    tab = open_page(write_page(tmp_path, "--baseline", kept))
    assert tab.locator("#change-metrics thead th").count() == 4
    text = tab.locator("#change").inner_text()
    assert "\nAP is unchanged; 0 of 6 classes changed, none has an interval.\n" in text
    assert "the interval" not in text
    assert "CI" not in text
