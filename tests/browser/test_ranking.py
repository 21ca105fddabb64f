"""The page of several detectors: sorting, heat map, and the command of a pair."""

import json
import shlex
from pathlib import Path

import pytest

from detap.cli import main
from tests.browser.pages import NARROW, Open, audit
from tests.cli.conftest import instances, results

HOSTILE = "<b>&'\"x"


@pytest.fixture
def ranking(cwd: Path) -> Path:
    (cwd / "gt.json").write_text(json.dumps(instances()))
    for name, images in (("a b", (1, 2)), ("c", (1,)), ("d", (2,)), (HOSTILE, ())):
        records = [record for record in results() if record["image_id"] in images]
        (cwd / f"{name}.json").write_text(json.dumps(records))
    paths = ["a b.json", "c.json", "d.json", f"{HOSTILE}.json"]
    options = ["--gt", "gt.json", "--min-ground-truths", "0", "--resamples", "50"]
    assert main(["compare", *paths, *options, "-o", "page.html", "-q"]) == 0
    return cwd / "page.html"


def test_tables_are_sorted_by_their_headings(ranking: Path, open_page: Open) -> None:
    tab = open_page(ranking)
    names = tab.locator("#ranking tbody th")
    # AP is 0.7525 with both images, 0.2525 with image 1 and 0.5 with image 2 alone.
    assert names.all_inner_texts() == ["a b", "d", "c", HOSTILE]
    assert tab.locator("#ranking circle").count() == 4
    assert tab.locator("#classes td.fraction").first.get_attribute("style") is not None
    value = tab.locator("#ranking thead button", has_text="AP").first
    value.click()
    value.click()
    assert names.all_inner_texts() == [HOSTILE, "c", "d", "a b"]
    assert tab.locator("#ranking th[aria-sort]").get_attribute("aria-sort") == "ascending"
    tab.locator("#classes thead button", has_text="a b").click()
    assert tab.locator("#classes tbody th").all_inner_texts() == ["dog", "cat"]
    # Rows minus the column: of d, the detector without detections is the worst.
    tab.locator("#pairs .matrix thead button", has_text="d").last.click()
    assert tab.locator("#pairs .matrix tbody th").all_inner_texts() == ["a b", "c", HOSTILE, "d"]


@pytest.mark.usefixtures("ranking")
def test_the_command_of_a_pair_makes_its_page(ranking: Path, open_page: Open) -> None:
    tab = open_page(ranking)
    tab.select_option("#before", label="a b")
    tab.select_option("#after", label=HOSTILE)
    command = tab.locator("#pairs code").inner_text()
    assert command == (
        f"detap report --gt gt.json --dt {shlex.quote(HOSTILE + '.json')} "
        "--baseline-detections 'a b.json' -o pair.html"
    )
    assert main(shlex.split(command)[1:]) == 0
    changes = open_page(ranking.with_name("pair.html")).locator("#change-metrics tbody tr").first
    assert changes.inner_text().split()[:3] == ["AP", "0.7525", "0.0000"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_ranking_fits_and_is_accessible(
    ranking: Path, open_page: Open, axe: str, scheme: str
) -> None:
    tab = open_page(ranking, size=NARROW, scheme=scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") == NARROW[0]
    assert audit(tab, axe) == []
