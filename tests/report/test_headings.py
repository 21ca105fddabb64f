"""What stands above the numbers of each part of a report, in full and with little room."""

from dataclasses import replace

import pytest

from detap.analysis.comparison import compare
from detap.evaluation.detection import evaluate
from detap.evaluation.tie_range import tie_range
from detap.gates.detection import Scored
from detap.gates.regressions import (
    ClassRegression,
    ImageErrors,
    LocalizationRegression,
    Regressions,
)
from detap.protocols import ALL_AREAS, Protocol, protocol
from detap.report.model import Column, Table
from detap.report.sections import SECTIONS
from detap.report.sections.analysis import analysis_blocks
from detap.report.sections.comparison import comparison_report
from detap.report.sections.detection import class_columns, sorted_rows
from detap.report.sections.regressions import culprits_block
from detap.report.sections.slices import slices_block
from detap.report.sections.tie_range import tie_block
from tests.analysis.data import fixture


def told(table: Table | None) -> str:
    """Return the headings of a table: the kind, the heading, and the short one if another."""
    assert table is not None
    return "; ".join(
        f"{column.kind} {column.heading}"
        + (f" = {column.short}" if column.short != column.heading else "")
        for column in table.columns
    )


def test_of_analyses() -> None:
    requested = {section.name: section.flag_value for section in SECTIONS}
    requested |= {"confusion": "class-agnostic", "examples": 1}
    blocks = {block.title: block for block in analysis_blocks(fixture(), requested)}
    assert {title: told(block.table) for title, block in blocks.items()} == ANALYSES


ANALYSES = {
    "Errors at IoU 0.5, convention protocol: AP 0.4861, and what it gains where each is repaired": (
        "name error; change change of AP = AP; count count"
    ),
    "The same by class": (
        "name class; share AP50 = AP; change missed = miss; change localisation = loc; "
        "change classification = class; change duplicate = dup; change both; "
        "change background = bkg; change all false positives = FP; "
        "change all false negatives = FN"
    ),
    "Operating point at the best F1 of each, IoU 0.5": (
        "name class; share score; share F1; share precision = prec; share recall = rec; "
        "share false pos. per image = FP/img; count true pos. = TP; "
        "count false pos. = FP; count not found = FN"
    ),
    "Confusion at IoU 0.5, rule class-agnostic": (
        "name class; count ground truths = GT; count found; "
        "count taken for another = confused; count not found = missed; "
        "count detections of nothing = bkg"
    ),
    "Calibration of the scores at IoU 0.5": (
        "name score; share mean score = mean; share share that is right = right; "
        "change gap; count detections = det"
    ),
    "Parts at IoU 0.5": (
        "name part; share recall; share precision = prec; count ground truths = GT; "
        "count found; count detections = det; count true pos. = TP"
    ),
    "Worst images": ("name image; count false pos. = FP; count not found = FN"),
    "Most confident mistakes": (
        "name image; name class; share score; text error; name ground truth = GT; share IoU"
    ),
    "Annotations that may be wrong": (
        "name image; name class; share score; text reason; name ground truth = GT"
    ),
}


def test_of_slices() -> None:
    scored = Scored.of(fixture(), {"one": [1]})
    block = slices_block(scored.slice_numbers())
    assert told(block.table).startswith("name slice; share AP; share AP50; share AP75; share APs;")
    assert told(block.table).endswith("; count images = img; count ground truths = GT")
    assert block.table is not None
    priorities = [column.priority for column in block.table.columns]
    assert priorities == [0, 0, 1, *[2] * 10, 0, 0]


def test_of_equal_scores() -> None:
    block = tie_block(tie_range(fixture()))
    assert block.title == "no order of equal scores goes beyond"
    assert told(block.table) == (
        "name number; share lowest; share as ranked = ranked; share highest"
    )


def test_of_a_comparison() -> None:
    result = fixture()
    other = replace(result.detections, score=result.detections.score[::-1].copy())
    after = evaluate(result.ground_truth, other)
    report = comparison_report(compare(result, after, resamples=100, confidence=0.9))
    columns = "share first; share second; change difference = diff; "
    columns += "change 90 % CI low = 90 % low; change 90 % CI high = 90 % high"
    assert told(report.table) == f"name number; {columns}"
    blocks = {block.key: block.table for block in report.blocks}
    assert told(blocks["classes"]) == f"name class; {columns}; count ground truths = GT"
    assert told(blocks["images"]) == (
        "name image; more mistakes = all; more missed = miss; more mislocated = misl; "
        "more duplicate = dupl; more confused = conf; more background = back"
    )
    assert told(blocks["mistakes"]) == (
        "name mistakes; count first; count second; more difference = diff"
    )


@pytest.mark.parametrize(
    ("protocol", "shares"),
    [
        (
            protocol("coco"),
            "0 AP; 0 AP50; 0 AP75; 1 APs; 1 APm; 1 APl; 2 AR1; 2 AR10; 0 AR100 = AR; "
            "2 ARs; 2 ARm; 2 ARl",
        ),
        (protocol("voc2012"), "0 AP; 0 recall"),
        (
            replace(protocol("proposals"), max_dets=(10, 100), area_ranges=(ALL_AREAS,)),
            "2 AR10; 0 AR100",
        ),
    ],
)
def test_of_classes(protocol: Protocol, shares: str) -> None:
    name, *columns = class_columns(protocol)
    assert name == Column("name", "class", "class", "name")
    found = [
        f"{column.priority} {column.heading}"
        + (f" = {column.short}" if column.short != column.heading else "")
        for column in columns
        if column.kind == "share"
    ]
    assert found == shares.split("; ")
    assert told(Table(tuple(column for column in columns if column.kind != "share"), ())) == (
        "count ground truths = GT; count neutral = neut; count detections = det; "
        "count true pos. = TP; count false pos. = FP; count duplicates = dup"
    )


def test_the_order_of_rows() -> None:
    rows = [{"name": name, "AP": ap} for name, ap in (("b", 0.5), ("a", None), ("c", 0.9))]

    def order(key: str | None, *, reverse: bool = False) -> str:
        return "".join(str(row["name"]) for row in sorted_rows([*rows], key, reverse))

    assert [order(None), order(None, reverse=True)] == ["bac", "cab"]
    assert [order("name"), order("name", reverse=True)] == ["abc", "cba"]
    assert [order("AP"), order("AP", reverse=True)] == ["cba", "bca"]
    assert sorted_rows([], "AP", False) == ()
    assert len(sorted_rows([{"AP": None}, {"AP": None}], "AP", True)) == 2


FALLEN = ClassRegression("cat", 0.25, 0.5, 7)
LOOSER = LocalizationRegression(2, (0.5, 0.75), (-0.01, 0.125))
IMAGE = ImageErrors(3, {"missed": 2, "duplicates": -1, "class": 0})


@pytest.mark.parametrize(
    ("found", "title", "lines"),
    [
        (
            Regressions(None, (FALLEN,), LOOSER, (IMAGE,), True, True),
            "What got worse",
            (
                "class cat: AP 0.2500, was 0.5000, 7 ground truths",
                "boxes became looser: AP at IoU 0.5 changed by +0.0100, "
                "at IoU 0.75 it fell by 0.1250",
                "image 3: 2 more missed, 1 fewer duplicates at IoU 0.75",
            ),
        ),
        (
            Regressions("night", (FALLEN,), None, (IMAGE,), True, False),
            "What got worse, and where it is worst now, in slice night",
            (
                "class cat: AP 0.2500, was 0.5000, 7 ground truths",
                "image 3: 2 missed",
            ),
        ),
        (
            Regressions(None, (), None, (IMAGE,), True, False),
            "Where it is worst now",
            ("image 3: 2 missed",),
        ),
        (
            Regressions(None, (replace(FALLEN, baseline=None),), None, (), False, False),
            "Where it is worst now",
            ("class cat: AP 0.2500, 7 ground truths",),
        ),
        (
            Regressions(None, (), replace(LOOSER, drop=(0.0, 0.125)), (), True, True),
            "What got worse",
            ("boxes became looser: AP at IoU 0.5 stands, at IoU 0.75 it fell by 0.1250",),
        ),
    ],
)
def test_of_what_got_worse(found: Regressions, title: str, lines: tuple[str, ...]) -> None:
    block = culprits_block(found)
    assert (block.key, block.title, block.lines) == ("culprits", title, lines)
    assert block.data["slice"] == found.slice
    assert block.data["images_compared"] == found.before
