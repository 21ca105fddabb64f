import re
import subprocess
import sys
from dataclasses import replace
from math import nan

import pytest

from detap.escaping import width
from detap.report.writers.registry import Style
from detap.report.writers.text import render
from tests.report.reports import COLUMNS, report, row

DASH = "\N{EN DASH}"
HEADINGS = ["class", "AP", "AP50", "AP75", "AR", "GT", "ignored", "det", "TP", "FP", "dup"]


def test_all_required_columns_fit_in_80() -> None:
    text = render(report(row("a class of usual length", count=999_999)), Style(80, fold=True))
    lines = text.splitlines()
    assert lines[0].split() == HEADINGS
    assert max(map(width, lines)) <= 80
    assert lines[2].split()[-6:] == ["999999"] * 6


def test_a_long_name_is_folded_not_cut() -> None:
    name = "a_very_long_class_name_" * 6
    lines = render(report(row(name)), Style(80, fold=True)).splitlines()
    end = next(n for n, line in enumerate(lines[2:], 2) if line.startswith("─"))
    size = lines[2].index(" ")
    assert "".join(line[: max(size, 24)].split(" ")[0] for line in lines[2:end]) == name
    assert max(map(width, lines)) <= 80


def test_a_name_in_a_pipe_stays_whole() -> None:
    name = "a_very_long_class_name_" * 6
    assert any(line.startswith(name) for line in render(report(row(name)), Style()).splitlines())


def test_wide_terminals_show_more() -> None:
    first = render(report(row("cat")), Style(200, fold=True)).splitlines()[0]
    assert re.split(r"\s{2,}", first) == [column.heading for column in COLUMNS]
    assert width(first) < 140  # not stretched


@pytest.mark.parametrize("columns", [20, 30, 40, 60])
def test_narrow_terminals_split_the_table(columns: int) -> None:
    text = render(report(row("cat", count=1234567)), Style(columns, fold=True))
    table = text.partition("\nAP  ")[0] if columns > 20 else text
    for heading in HEADINGS:
        assert heading in table.split()
    assert text.count("1234567") == 6
    headings = [line for line in text.splitlines() if line.startswith("class")]
    assert len(headings) > 1
    assert all(width(line) <= columns for line in headings)


def test_wide_characters_keep_the_columns_aligned() -> None:
    lines = render(report(row("猫"), row("cat"), row("e\u0301")), Style()).splitlines()
    assert len({width(line) for line in lines[:5]}) == 1


def test_color_changes_nothing_but_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    rows = (row("\x1b[1m:smile:[bold]"), row("bird", nan, 0), row("x" * 200))
    plain = render(report(*rows), Style(90, fold=True))
    colored = render(report(*rows), Style(90, fold=True, color=True))
    assert "\x1b[1m" in colored
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    assert [line.rstrip() for line in stripped.splitlines()] == plain.splitlines()


def test_the_summary_has_the_parameters_in_columns() -> None:
    lines = render(report(row("cat")), Style(80)).splitlines()
    start = lines.index("metric   value  IoU        area  max dets")
    assert lines[start + 1 : start + 3] == [
        "AP      0.5000  0.50:0.95  all        100",
        f"AP50         {DASH}  0.50       all        100",
    ]


def test_the_summary_wraps() -> None:
    summary = {"AP": 0.5, "AR": 0.25}
    params = {"AP": ("0.50:0.95", "all", "100"), "AR": ("0.50", "small", "10")}
    made = replace(report(row("cat")), summary=summary, params=params)
    lines = render(made, Style(36, fold=True)).splitlines()
    assert lines[-6:-2] == [
        "AP      0.5000  IoU 0.50:0.95, area",
        "                all, max dets 100",
        "AR      0.2500  IoU 0.50, area",
        "                small, max dets 10",
    ]


def test_plain_text_needs_no_rich() -> None:
    code = (
        "import sys; from tests.report.reports import report, row; "
        "from detap.report.writers.registry import Style; "
        "from detap.report.writers.text import render; "
        "render(report(row('cat')), Style()); sys.exit('rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
