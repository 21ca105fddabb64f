"""Every control of the page, used once: the page reports no error (see `open_page`)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.pages import COUNTS, NARROW, SIZES, WIDE, Open
from tests.depth import SAMPLED

USE = """async () => {
  const visible = (node) => node.checkVisibility() && !node.disabled;
  // Sections that wait until the slider rests do not wait here.
  const later = window.setTimeout;
  window.setTimeout = (run, wait) => later(run, wait < 150 ? 0 : wait);
  const rest = () => new Promise((resolve) => later(resolve, 30));
  const used = [];
  const use = async (node) => {
    used.push(node.id || node.tagName);
    node.scrollIntoView();
    if (node.tagName === "SELECT") {
      const options = [...node.options];
      for (const option of new Set([...options.slice(0, 12), options.at(-1)])) {
        node.value = option.value;
        node.dispatchEvent(new Event("change", {bubbles: true}));
        await rest();
      }
      node.selectedIndex = 0;
      node.dispatchEvent(new Event("change", {bubbles: true}));
    } else if (node.type === "range") {
      for (const value of [node.min, node.max, (Number(node.min) + Number(node.max)) / 2]) {
        node.value = value;
        node.dispatchEvent(new Event("input", {bubbles: true}));
        await rest();
      }
    } else if (node.type === "search") {
      for (const text of ["1", "nothing has this name", ""]) {
        node.value = text;
        node.dispatchEvent(new Event("input", {bubbles: true}));
        await rest();
      }
    } else node.click();
    await rest();
    const viewer = document.getElementById("viewer");
    if (viewer && viewer.open && !viewer.contains(node)) {
      for (const inner of [...viewer.querySelectorAll("button")].filter(visible)) {
        if (inner.id !== "close" && inner.isConnected) { inner.click(); await rest(); }
      }
      document.getElementById("close").click();
    }
  };
  // A few of each kind: the cells, tiles and classes are many.
  const kinds = new Map();
  const kindOf = (node) =>
    node.id || `${node.closest("[id]")?.id} ${node.tagName} ${node.className}`;
  const controls = () => [...document.querySelectorAll(
    ":is(main, nav) :is(button, select, input, summary, nav a, td[data-cell])")];
  for (const node of controls()) kinds.set(kindOf(node), (kinds.get(kindOf(node)) || 0) + 1);
  for (const [kind, count] of kinds) {
    for (let n = 0; n < Math.min(count, 3); n++) {
      const same = controls().filter((node) => kindOf(node) === kind && visible(node));
      if (same[n]) await use(same[n]);
    }
  }
  return used;
}"""


@pytest.mark.parametrize("size", [WIDE, NARROW])
@pytest.mark.parametrize("fragment", ["", "#list=errors", "#list=label_errors"])
def test_every_control_is_used_without_an_error(
    open_page: Open, page: Path, size: tuple[int, int], fragment: str
) -> None:
    tab = open_page(page, fragment, size, accept_downloads=True)
    used: list[Any] = tab.evaluate(USE)
    assert {"class", "type", "score", "best", "all", "reset", "find", "csv", "filter"} <= {*used}
    assert len(used) > 40
    has_no_raw_values(tab)


@pytest.mark.parametrize("classes", COUNTS)
def test_every_control_of_any_number_of_classes(
    open_page: Open, page_of: Callable[[int], Path], classes: int
) -> None:
    for size in SIZES[:1] if SAMPLED else SIZES:
        tab = open_page(page_of(classes), "", size, accept_downloads=True)
        used: list[Any] = tab.evaluate(USE)
        assert {"class", "type", "score", "find", "csv", "filter"} <= {*used}
        assert ("confusion-more" in used) == (classes > 20)
        has_no_raw_values(tab)
        tab.close()


def has_no_raw_values(tab: Any) -> None:
    text = " ".join(tab.locator("main > section:not(#method)").all_inner_texts())
    assert not [word for word in ("NaN", "undefined", "[object") if word in text]
