"""Parts of reports by hand: their keys, data, tables and sentences."""

from dataclasses import replace
from fractions import Fraction
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from detap.analysis.breakdowns import Breakdown, Breakdowns
from detap.analysis.crosscheck import CrossCheck
from detap.analysis.explanation.protocol_search import ProtocolSearch, TargetValue
from detap.analysis.explanation.report_diff import Cause, Contribution, ReportDiff
from detap.analysis.power import Criterion, DetectableDrop, PowerAnalysis, ThresholdMargin
from detap.checks.statistics import DataCheck, Statistic
from detap.errors import Problem
from detap.gates.checks import Gate
from detap.gates.metric_names import MetricName
from detap.protocols import PRESETS
from detap.ranking.objectives import Objectives
from detap.report.model import Cell, Column, Report, Table
from detap.report.numbers import UNDEFINED, plain
from detap.report.sections.breakdowns import _group_label, block_of
from detap.report.sections.crosscheck import cross_check_block
from detap.report.sections.data_checks import data_check_report
from detap.report.sections.detection import _param_columns
from detap.report.sections.explanation import (
    protocol_search_report,
    report_diff_report,
    report_diff_sentence,
)
from detap.report.sections.gates import gate_block
from detap.report.sections.power import power_block
from detap.report.sections.ranking import _objective_blocks, brief
from detap.report.writers.registry import Style
from detap.report.writers.text import table_lines


def headings(table: Table | None) -> list[tuple[str, str, str, str]]:
    """Return key, heading, short heading and kind of each column."""
    assert table is not None
    return [(one.key, one.heading, one.short, one.kind) for one in table.columns]


def test_a_cross_check() -> None:
    arrays = {"precision": (10, 2, 0.5)}
    check = CrossCheck({"AP": (0.5, 0.25), "AR": (0.5, nan)}, arrays, 3, "pycocotools 2.0", ())
    block = cross_check_block(check)
    data = plain(block.data)
    assert (block.key, block.title) == ("cross_check", "Cross-check against pycocotools 2.0")
    assert data["reference"] == "pycocotools 2.0"
    assert (data["equal"], data["largest_difference"]) == (False, None)
    assert data["arrays"] == [
        {"name": "precision", "entries": 10, "differing": 2, "largest_difference": 0.5}
    ]
    assert block.table is not None
    first, second = block.table.rows
    assert first == {"name": "AP", "detap": 0.5, "reference": 0.25, "difference": 0.25}
    assert (second["name"], second["difference"]) == ("AR", inf)
    assert data["metrics"][1]["difference"] is None


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


def test_a_data_check() -> None:
    check = DataCheck((Statistic("boxes", "Number of boxes", 3),), (), ())
    report = data_check_report(check, problems=[Problem("a", "", "bad", "")])
    assert report.table.totals is None
    errors, statistics = report.blocks
    assert errors.title == "1 error"
    assert statistics.data == {"boxes": 3}
    assert headings(statistics.table) == [
        ("name", "Data set", "Data set", "name"),
        ("value", "", "", "name"),
    ]
    assert statistics.table is not None
    assert statistics.table.rows == ({"name": "Number of boxes", "value": "3"},)
    rows = ({"name": "cat", "id": 1, "ground_truths": 2}, {"name": "dog", "ground_truths": 3})
    report = data_check_report(replace(check, classes=rows), omitted=2)
    assert report.table.totals == {"name": "total", "ground_truths": 5}
    assert report.blocks[0].title == "2 errors"


@pytest.mark.parametrize(
    ("preset", "names"),
    [
        ("coco", ["IoU", "area", "max dets"]),
        ("coco-keypoints", ["OKS", "area", "max dets"]),
        ("kitti", ["IoU", "difficulty", "max dets"]),
        ("lvis", ["IoU", "area", "max dets", "classes"]),
    ],
)
def test_columns_of_parameters(preset: str, names: list[str]) -> None:
    columns = _param_columns(PRESETS[preset])
    assert [one.heading for one in columns] == [one.short for one in columns] == names
    assert [one.kind for one in columns] == ["text", "text", "count", "text"][: len(names)]


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


def test_a_difference_of_reports() -> None:
    causes = (Cause("protocol", True, "coco", "voc2012"), Cause("detections", False, "a", "a"))
    parts = (Contribution(("protocol",), -0.25),)
    diff = ReportDiff(
        ("AP", "mAP"),
        (0.5, 0.25),
        causes,
        steps=(None,),  # type: ignore[arg-type]  # only their number is read
        protocol_change="that inclusive pixels is off",
        contributions=parts,
    )
    sentence = "Main cause: inclusive pixels is off (100% of the difference)"
    assert report_diff_sentence(diff) == sentence
    blocks = {block.key: block for block in report_diff_report(diff).blocks}
    assert list(blocks) == ["metrics", "causes"]
    names = ("name", "differs", "first", "second")
    assert headings(blocks["causes"].table) == [
        (name, heading, heading, "name" if name == "name" else "text")
        for name, heading in zip(names, ("cause", "differs", "first", "second"), strict=True)
    ]
    several = replace(diff, steps=(None, None))  # type: ignore[arg-type]
    blocks = {block.key: block for block in report_diff_report(several).blocks}
    assert blocks["remarks"].lines == (
        "Pass the inputs of one report with --gt and --dt to compute the contribution of each "
        "protocol field",
    )


def test_many_passed_gates_are_counted() -> None:
    texts = ["AP", *(f"m{n}" for n in range(30))]
    names = [MetricName(text, None, None, None, text) for text in texts]
    gates = [
        Gate("minimum", name, "passed", 0.5, "0.4", f"{name.text} is fine") for name in names[1:]
    ]
    gates.append(Gate("minimum", names[0], "failed", 0.5, "0.6", "AP 0.5, required >= 0.6"))
    block = gate_block(gates)
    assert block.title == "Gates: 1 of 31 failed"
    assert (block.lines[0], block.verdicts[0]) == ("FAILED   AP 0.5, required >= 0.6", "failed")
    hidden = 31 - (len(block.lines) - 1)
    assert (block.lines[-1], block.verdicts[-1]) == (f"passed   {hidden} more", "passed")
    assert len(block.lines) == len(block.verdicts)
    few = gate_block(gates[:2])
    assert few.lines == ("passed   m0 is fine", "passed   m1 is fine")
    assert few.verdicts == ("passed", "passed")


def test_detectable_drops() -> None:
    drop = DetectableDrop("AP", 100, 0.0625, 0.125, images_needed=400)
    margins = tuple(ThresholdMargin("AP", kind, "0.5", 0.25, 0.0625) for kind in KINDS)
    analysis = PowerAnalysis(Criterion(drop=0.0625), "image", (drop,), margins=margins)
    block = power_block(analysis)
    assert headings(block.table) == [
        ("name", "metric", "metric", "name"),
        ("min_detectable_drop", "min. drop", "min. drop", "fraction"),
        ("images_needed", "images needed for 0.0625", "needed for 0.0625", "count"),
    ]
    assert block.lines[1:] == (
        "AP, limit 0.5: a true value 0.0625 below the limit fails with 80% power, one 0.0625 above "
        "it passes with 80% power.",
        "AP, limit 0.5: a true value 0.0625 above the limit fails with 80% power, one 0.0625 below "
        "it passes with 80% power.",
    )
    plain = power_block(replace(analysis, criterion=Criterion(), margins=()))
    assert headings(plain.table)[-1][1:3] == ("images needed", "needed")


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


KINDS = ("minimum", "maximum")


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


def test_decomposability() -> None:
    gaps = {"gap": np.array([0.25, 0.75, nan])}
    value = Objectives(losses={}, batches=2, gaps=gaps, applies=np.array([True, False, False]))
    (block,) = _objective_blocks(value)
    assert (block.key, block.title) == ("decomposability", "Decomposability")
    assert block.lines == (
        "2 batches; the bounds suppose that each batch ranks all its relevant items first, as in "
        "1 of 2 queries",
    )
    assert block.table is not None
    assert [row["value"] for row in block.table.rows] == [0.5]
    assert block.data == {"batches": 2, "applies": 1, "queries": 2, "means": {"gap": 0.5}}
