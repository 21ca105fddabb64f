"""Terminal colors: a metric whose gate failed is never shown in the color of a good one."""

import re
from dataclasses import replace

from detap.report.model import Block, Cell, Column, Report, Table
from detap.report.writers.registry import Style
from detap.report.writers.text import render

RED, GREEN = "\x1b[1;31m", "\x1b[1;32m"


def gated(*failed: str) -> Report:
    """Return a report of two good classes whose gates on these metrics failed."""
    names = ("AP", "AP50", "class:cat.AP", "class:dog.AP50")
    checks = [{"name": n, "status": "failed" if n in failed else "passed"} for n in names]
    columns = (
        Column("class", "class", "class", "name", 0),
        Column("AP", "AP", "AP", "fraction", 0),
        Column("AP50", "AP50", "AP50", "fraction", 0),
    )
    rows = tuple({"class": name, "AP": 0.91, "AP50": 0.95} for name in ("cat", "dog"))
    table = Table(columns, rows, {"class": "mean", "AP": 0.91, "AP50": 0.95})
    verdicts = tuple("failed" if n in failed else "passed" for n in names)
    lines = tuple(
        f"{'FAILED' if v == 'failed' else v}   {n}" for n, v in zip(names, verdicts, strict=True)
    )
    block = Block("gates", "Gates: done", {"checks": checks}, lines=lines, verdicts=verdicts)
    numbers = {"AP": 0.91, "AP50": 0.95}
    return Report("detection", table, summary=numbers, blocks=(block,))


def colored(report: Report) -> list[str]:
    return render(report, Style(width=80, fold=True, color=True)).splitlines()


def test_metrics_whose_gate_failed_are_red() -> None:
    lines = colored(gated("AP", "class:dog.AP50"))
    cat, dog = (next(line for line in lines if line.startswith(name)) for name in ("cat", "dog"))
    assert "\x1b" not in cat
    assert f"{RED}  0.9500" in dog
    mean = next(line for line in lines if "mean" in line)
    assert f"{RED}  0.9100" in mean
    assert f"{RED}  0.9500" not in mean
    assert any(f"{RED}0.9100" in line for line in lines)  # of the summary


def test_the_voc_mean_has_another_name() -> None:
    report = gated("AP")
    block = report.blocks[0]
    checks = [{"name": "mAP", "status": "failed"}]
    lines = colored(replace(report, blocks=(block._replace(data={"checks": checks}),)))
    mean = next(line for line in lines if "mean" in line)
    assert f"{RED}  0.9100" in mean


def test_verdicts_have_their_colors_and_their_words() -> None:
    lines = colored(gated("AP"))
    assert f"{RED}Gates: done\x1b[0m" in lines
    assert f"{RED}FAILED\x1b[0m   AP" in lines
    assert f"{GREEN}passed\x1b[0m   AP50" in lines
    assert f"{GREEN}Gates: done\x1b[0m" in colored(gated())


def test_values_have_no_color_of_their_own() -> None:
    """Only gates give values a color: a good AP of one data set is a bad one of another."""
    columns = (
        Column("class", "class", "class", "name", 0),
        Column("AP", "AP", "AP", "fraction"),
        Column("miss", "miss", "miss", "fraction", higher_is_better=False),
    )
    rows: tuple[dict[str, Cell], ...] = tuple(
        {"class": f"{value}", "AP": value, "miss": value} for value in (0.0, 0.1, 0.5, 0.9, 1.0)
    )
    summary = {"AP": 0.1, "miss": 0.9}
    text = "\n".join(colored(Report("x", Table(columns, rows), summary=summary)))
    assert set(re.findall(r"\x1b\[([0-9;]+)m", text)) == {"0", "1", "2"}  # bold and dim alone
