"""One score threshold, one set of counts: the page, its slider, and the report of the option."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from detap.cli import main
from detap.report.numbers import threshold
from tests.browser.pages import REAL, Open
from tests.conftest import ROOT

COUNTS = ("true_positives", "false_positives", "false_negatives")

# Score text, tiles, counts by error type, sums of the class table, caption, first image, matrix.
READ = """() => {
  const $ = (id) => document.getElementById(id);
  const texts = (selector) => [...document.querySelectorAll(selector)].map((x) => x.textContent);
  const heads = [...$("classes-table").tHead.rows[0].cells].map((cell) => cell.textContent);
  return {
    score: $("score-text").textContent,
    tiles: texts("#operating-tiles dd").slice(-3),
    types: [...document.querySelectorAll("#errors-table tbody tr")].map((row) =>
      [row.querySelector("button, th").firstChild.textContent, row.cells[3].textContent]),
    heading: $("errors-table").tHead.rows[0].cells[3].textContent,
    classes: ["true positives", "false positives", "false negatives"].map((name) => {
      const column = heads.findIndex((head) => head.startsWith(`${name} at score`));
      return $("classes-table").tFoot.rows[0].cells[column].textContent;
    }),
    caption: $("gallery-text").textContent,
    image: document.querySelector("#gallery-tiles .caption").textContent,
    matrix: [...document.querySelectorAll("#confusion-table td[data-cell]")].map((cell) =>
      [...cell.dataset.cell.split(",").map(Number), Number(cell.textContent || 0)]),
  };
}"""


@pytest.fixture(params=["error-types", "quickstart", "coco-val2014-100"])
def inputs(request: pytest.FixtureRequest) -> list[str]:
    """Return ground truth and detections."""
    if request.param in REAL:
        folder = request.getfixturevalue("real_data") / request.param
        return [str(folder / name) for name in REAL[request.param]]
    folder = ROOT / "fixtures" / request.param / "coco"
    return [str(folder / name) for name in ("instances.json", "results.json")]


@pytest.mark.parametrize("requested", ["best", "0.3", "0.65", "0"])
def test_the_same_threshold_gives_the_same_counts(
    open_page: Open, inputs: list[str], tmp_path: Path, requested: str
) -> None:
    # A page of the option opens at its threshold.
    page, plain = tmp_path / "with.html", tmp_path / "without.html"
    report = report_at(inputs, requested, "-o", str(page))
    shown = read(open_page, page)
    assert shown["score"] == threshold(report["operating_point"]["overall"]["score"], 4)
    compare(shown, report)
    # Another goes there by its slider: to the next of many scores, which it shows.
    assert main(["eval", *inputs, "-q", "-o", str(plain)]) == 0
    shown = read(open_page, plain, "" if requested == "best" else f"#score={requested}")
    compare(shown, report_at(inputs, shown["score"]))


def report_at(inputs: list[str], score: str, *more: str) -> dict[str, Any]:
    """Return the JSON report of the sections at a score threshold."""
    words = ["--errors", "--confusion", "--examples", "1", "--score-threshold", score, *more]
    with TemporaryDirectory() as folder:
        kept = Path(folder) / "report.json"
        assert main(["eval", *inputs, *words, "-q", "-o", str(kept)]) == 0
        return json.loads(kept.read_text("utf-8"))  # type: ignore[no-any-return]


def read(open_page: Open, page: Path, fragment: str = "") -> dict[str, Any]:
    """Return the texts of a page."""
    tab = open_page(page, fragment)
    for name in ("gallery", "confusion"):
        tab.wait_for_function(f"!document.querySelector('#{name}[aria-busy]')")
    shown: dict[str, Any] = tab.evaluate(READ)
    tab.close()
    return shown


def compare(shown: dict[str, Any], report: dict[str, Any]) -> None:
    """Compare the texts of a page with a report, and the parts of the report with each other."""
    overall, errors, confusion = (
        report[name] for name in ("operating_point", "errors", "confusion")
    )
    overall = overall["overall"]
    right, wrong, lost = (overall[key] for key in COUNTS)
    types = {name: row["count_at_score"] for name, row in errors["types"].items()}
    assert (types["false_positives"], types["false_negatives"]) == (wrong, lost)
    assert confusion["matched"] == right
    assert confusion["misclassified"] + confusion["background"] == wrong
    assert confusion["misclassified"] + confusion["missed"] == lost
    scores = {report[name]["score_threshold"] for name in ("errors", "confusion", "examples")}
    assert scores == {overall["score"]}
    (worst,) = report["examples"]["worst_images"]

    assert shown["heading"] == f"count, score >= {shown['score']}"
    assert shown["tiles"] == shown["classes"] == [f"{count:,}" for count in (right, wrong, lost)]
    labels = {"missed": "Missed (TIDE)", "false_positives": "All FP", "false_negatives": "All FN"}
    assert dict(shown["types"]) == {
        labels.get(name, name.capitalize()): f"{count:,}" for name, count in types.items()
    }
    assert shown["caption"].endswith(f" score >= {shown['score']}: {wrong:,} FP, {lost:,} FN.")
    assert shown["image"] == f"{worst['false_positives']} FP, {worst['false_negatives']} FN"
    background = len(confusion["classes"])
    for row, column, count in shown["matrix"]:
        if (row, column) != (background, background):
            assert confusion["matrix"][row][column] == count
