"""Parts of reports by hand: their keys, data, tables and sentences."""

from fractions import Fraction
from math import nan
from typing import Any

import numpy as np
import pytest

from detap.analysis.breakdowns import Breakdown, Breakdowns
from detap.analysis.explanation.protocol_search import ProtocolSearch, TargetValue
from detap.analysis.power import Criterion, DetectableDrop, PowerAnalysis
from detap.gates.checks import Gate
from detap.report.model import Cell, Column, Report, Table
from detap.report.numbers import UNDEFINED
from detap.report.sections.breakdowns import _group_label, block_of
from detap.report.sections.explanation import (
    protocol_search_report,
)
from detap.report.sections.gates import gate_block
from detap.report.sections.power import power_block
from detap.report.sections.ranking import brief
from detap.report.writers.registry import Style
from detap.report.writers.text import table_lines


@pytest.mark.parametrize(
    ("breakdown", "group", "label"),
    [
        ("size", "16-32", "size 16-32 px"),
        ("size", "512", "size 512+ px"),
        ("aspect_ratio", "0.5-1", "width/height 0.5-1"),
        ("crowding", "1-2", "1 object in image"),
        ("crowding", "2-4", "2-3 objects in image"),
        ("crowding", "5-6", "5 objects in image"),
        ("crowding", "16", "16+ objects in image"),
        ("position", "center", "center"),
    ],
)
def test_labels_of_breakdowns(breakdown: str, group: str, label: str) -> None:
    """A range of counts is shown with its last count."""
    assert _group_label(breakdown, group) == label


def test_breakdowns_without_positions() -> None:
    two, one = np.array([2]), np.array([1])
    part = Breakdown(
        groups=("16-32",), ground_truths=two, matched=one, detections=two, true_positives=one
    )
    parts: dict[str, Any] = {"size": part, "aspect_ratio": part, "crowding": part}
    result = Breakdowns(iou=0.5, score_threshold=None, **parts, position=None)
    lines = ("No breakdown by position: image sizes are unknown",)
    assert block_of(result, {}).lines == lines
    placed = Breakdowns(iou=0.5, score_threshold=None, **parts, position=part)
    assert block_of(placed, {}).lines == ()


@pytest.mark.parametrize(
    ("scored", "words"),
    [
        ((3,), "3 presets."),
        ((3, 20), "3 presets, 20 with one changed field."),
        ((3, 20, 50), "3 presets, 20 with one changed field, 50 with two, the most likely of 90."),
    ],
)
def test_the_extent_of_a_protocol_search(scored: tuple[int, ...], words: str) -> None:
    search = ProtocolSearch(TargetValue("0.5", Fraction(1, 2), 1), (), scored, 90, 50)
    (block,) = protocol_search_report(search).blocks
    assert block.lines == (f"Scored: {words} Shown: 0 of 0 values",)


def test_many_passed_gates_are_counted() -> None:
    gates = [Gate("minimum", f"m{n}", "passed", 0.5, "0.4", f"m{n} is fine") for n in range(30)]
    gates.append(Gate("minimum", "AP", "failed", 0.5, "0.6", "AP 0.5, required >= 0.6"))
    block = gate_block(gates)
    assert block.title == "Gates: 1 of 31 failed"
    assert (block.lines[0], block.verdicts[0]) == ("FAILED   AP 0.5, required >= 0.6", "failed")
    hidden = 31 - (len(block.lines) - 1)
    assert (block.lines[-1], block.verdicts[-1]) == (f"passed   {hidden} more", "passed")
    assert len(block.lines) == len(block.verdicts)
    few = gate_block(gates[:2])
    assert few.lines == ("passed   m0 is fine", "passed   m1 is fine")
    assert few.verdicts == ("passed", "passed")


def test_unknown_detectable_drops_are_one_line() -> None:
    drop = DetectableDrop("AP", 100, 0.0625, 0.125)
    unknown = DetectableDrop("AP50", 100, nan, nan)
    classes = tuple(DetectableDrop(f"class:{name}.AP", 100, nan, nan) for name in "ab")
    block = power_block(PowerAnalysis(Criterion(), "image", (drop, unknown), classes))
    assert block.table is not None
    assert [row["name"] for row in block.table.rows] == ["AP"]
    assert block.lines[0] == (
        "3 metrics are left out: all resamples are equal, so that the noise cannot be estimated."
    )
    one = power_block(PowerAnalysis(Criterion(), "image", (drop, unknown)))
    assert one.lines[0].startswith("1 metric is left out: ")
    assert [row["name"] for row in one.data["metrics"]] == ["AP", "AP50"]
    none = power_block(PowerAnalysis(Criterion(), "image", (unknown,), classes))
    assert none.table is None
    assert none.lines == ("All resamples are equal: the noise cannot be estimated.",)


def test_many_queries_are_summarized() -> None:
    """Of 0, 1, 2, 4 and 8 tenths the quartiles are values; an undefined one is counted."""
    columns = (
        Column("name", "query", "query", "name"),
        Column("AP", "AP", "AP", "fraction"),
        Column("P", "P", "P", "fraction"),
        Column("relevant", "relevant", "rel", "count"),
    )
    rows: tuple[dict[str, Cell], ...] = tuple(
        {"name": name, "AP": value, "P": nan, "relevant": 1}
        for name, value in zip("abcdef", (0.8, 0.0, nan, 0.2, 0.1, 0.4), strict=True)
    )
    totals: dict[str, Cell] = {"name": "mean / sum", "AP": 0.3, "P": nan, "relevant": 6}
    report = Report(kind="retrieval", table=Table(columns, rows, totals))
    assert brief(report, 6) is report
    short = brief(report, 5)
    assert short.title == "Metrics over 6 queries"
    text = "\n".join("".join(p for p, _ in line) for line in table_lines(short.table, Style()))
    assert [line.split() for line in text.splitlines() if not line.startswith("─")] == [
        ["metric", "mean", "min", "25%", "median", "75%", "max", "undefined"],
        ["AP", "0.3000", "0.0000", "0.1000", "0.2000", "0.4000", "0.8000", "1"],
        ["P", *[UNDEFINED] * 6, "6"],
    ]
    (block,) = short.blocks
    assert (block.key, block.title, block.data) == ("rows", "Queries", {})
    assert block.lines == ("6 queries; --per-query shows each, as JSON and CSV do",)
