"""The history section of the page: the trend and each run."""

import json
import re
from html.parser import HTMLParser
from math import nan
from pathlib import Path

import pytest

from detap.cli import main
from detap.report.model import Block, Column, Table
from tests.cli.conftest import Run
from tests.report.page.cases import write_case, write_page

pytest.importorskip("jinja2", reason="the extra detap[report] is not installed")

DASH = "\N{EN DASH}"


def block(values: list[float | None]) -> Block:
    columns = (Column("name", "report", "report", "name"), Column("AP", "AP", "AP", "fraction"))
    rows = tuple({"name": str(index), "AP": value} for index, value in enumerate(values))
    return Block("history", "", {}, table=Table(columns, rows))


def test_the_line_spans_the_chart() -> None:
    from detap.report.page.assembly import _trend

    trend = _trend(block([0.5, 0.75, 0.25]))
    assert trend is not None
    # 620 wide from 10, 100 high from 110 up: 0.5 is half way.
    assert trend["lines"] == [["10.0,60.0", "320.0,10.0", "630.0,110.0"]]
    assert (trend["low"], trend["high"]) == ("0.2500", "0.7500")


def test_undefined_values_split_the_line_and_equal_ones_are_centered() -> None:
    from detap.report.page.assembly import _trend

    trend = _trend(block([0.5, nan, 0.5, None, None]))
    assert trend is not None
    assert trend["lines"] == [["10.0,60.0"], ["320.0,60.0"]]
    assert _trend(block([0.5, nan])) is None
    assert _trend(block([])) is None


def test_cells_have_the_texts_of_other_reports_with_separators_in_counts() -> None:
    from detap.report.page.assembly import cells_of

    kinds = {"exact": nan, "count_change": 5, "precise_change": 1e-7, "count": 1200}
    columns = tuple(Column(kind, kind, kind, kind) for kind in kinds)  # type: ignore[arg-type]
    expected = (DASH, "+5", "+0.000000100", "1,200")
    assert cells_of(Table(columns, (kinds,))) == [[*zip(kinds, expected, strict=True)]]


class _Rows(HTMLParser):
    """Cells of the history section, row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = self.cell = False
        self.rows: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = self.inside or ("id", "history") in attrs
        if self.inside and tag == "tr":
            self.rows.append([])
        self.cell = self.inside and tag in ("td", "th")

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "section"

    def handle_data(self, data: str) -> None:
        if self.cell and self.rows and data.strip():
            self.rows[-1].append(data)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Return a folder with the reports of two runs, the first of another detector."""
    folder = tmp_path / "kept"
    folder.mkdir()
    now = write_case(tmp_path)
    before = [*now[:3], str(tmp_path / "before.json"), *now[4:]]
    for name, arguments in (("run-9", before), ("run-10", now)):
        target = str(folder / f"{name}.json")
        assert main(["eval", *arguments, "-o", target, "-q", "--fail-under", "0.99"]) == 1
    return folder


def ap_of(path: Path) -> float:
    ap: float = json.loads(path.read_text("utf-8"))["summary"]["AP"]
    return ap


def test_the_page_shows_earlier_runs_and_this_one(tmp_path: Path, kept: Path) -> None:
    text = write_page(tmp_path, "--history", str(kept)).read_text("utf-8")
    parser = _Rows()
    parser.feed(text)
    heading, *rows = parser.rows
    assert heading[:4] == ["report", "AP", "change", "gates"]
    then, now = ap_of(kept / "run-9.json"), ap_of(kept / "run-10.json")
    expected = [
        [str(kept / "run-9.json"), f"{then:.4f}", DASH, "FAILED"],
        [str(kept / "run-10.json"), f"{now:.4f}", f"{now - then:+.4f}", "FAILED"],
        ["this report", f"{now:.4f}", "0.0000", DASH],
    ]
    assert [row[:4] for row in rows] == expected
    (line,) = re.findall(r'<polyline points="([^"]+)"', text)
    assert len(line.split()) == 3
    assert '<a href="#history">' in text
    assert "style=" not in text.partition('id="history"')[2].partition("</section>")[0]


def test_without_earlier_runs_there_is_no_history_section(tmp_path: Path) -> None:
    assert 'id="history"' not in write_page(tmp_path).read_text("utf-8")


def test_runs_that_are_not_comparable_are_omitted_and_reported(tmp_path: Path, kept: Path) -> None:
    arguments = write_case(tmp_path)
    other = kept / "run-11.json"
    assert main(["eval", *arguments, "--protocol", "voc2012", "-o", str(other), "-q"]) == 0
    text = write_page(tmp_path, "--history", str(other)).read_text("utf-8")
    assert 'id="history"' not in text
    assert "reports not comparable with the latest" in text


def test_an_invalid_report_is_rejected_before_evaluation(tmp_path: Path, command: Run) -> None:
    arguments = write_case(tmp_path)
    page = tmp_path / "page.html"
    said = command("report", *arguments, "--history", arguments[1], "-o", str(page)).refused()
    assert "not a detap report" in said
    assert not page.exists()
