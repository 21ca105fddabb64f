"""Column headings of each section of a report, long and short."""

from dataclasses import replace

import pytest

from detap.analysis.comparison import KINDS, compare
from detap.evaluation.detection import evaluate
from detap.gates.detection import Scored
from detap.gates.regressions import Regressions
from detap.protocols import ALL_AREAS, Protocol, protocol
from detap.report.model import Column, Table
from detap.report.sections import SECTIONS
from detap.report.sections.analysis import analysis_blocks
from detap.report.sections.comparison import comparison_report
from detap.report.sections.detection import class_columns
from detap.report.sections.gates import regressions_block
from detap.report.sections.slices import slices_block
from detap.report.sections.tie_range import tie_block
from tests.analysis.data import fixture


def describe(table: Table | None) -> str:
    """Return the headings of a table: kind, heading, and the short one if it differs."""
    assert table is not None
    return "; ".join(
        f"{column.kind} {column.heading}"
        + (f" = {column.short}" if column.short != column.heading else "")
        for column in table.columns
    )


def test_headings_of_analyses() -> None:
    requested = {section.name: section.flag_value for section in SECTIONS}
    requested |= {"confusion": "class-agnostic", "examples": 1}
    blocks = {block.title: block for block in analysis_blocks(fixture(), requested)}
    assert {title: describe(block.table) for title, block in blocks.items()} == ANALYSES


ANALYSES = {
    "TIDE errors at IoU 0.5 (matching: protocol), AP 0.4861": (
        "name error; change dAP if fixed = dAP; count count"
    ),
    "dAP by class": (
        "name class; fraction AP50 = AP; change missed (TIDE) = Miss; change localization = Loc; "
        "change classification = Cls; change duplicate = Dupe; change both = Both; "
        "change background = Bkg; change all FP = FP; change all FN = FN"
    ),
    "Operating point: best F1 per class, IoU 0.5": (
        "name class; threshold score; fraction F1; fraction precision = prec; "
        "fraction recall = rec; fraction FP per image = FP/img; count true positives = TP; "
        "count false positives = FP; count false negatives = FN"
    ),
    "Confusion matrix at IoU 0.5 (matching: class-agnostic)": (
        "name class; count ground truths = GT; count matched; "
        "count misclassified = misclass.; "
        "count background FN = bkg FN; count background FP = bkg FP"
    ),
    "Score calibration at IoU 0.5": (
        "name score bin = score; fraction confidence = conf; fraction accuracy = acc; "
        "change gap; count detections = det"
    ),
    "Breakdowns at IoU 0.5": (
        "name group; fraction recall; fraction precision = prec; count ground truths = GT; "
        "count matched; count detections = det; count true positives = TP"
    ),
    "Worst images": ("name image; count false positives = FP; count false negatives = FN"),
    "Most confident errors": (
        "name image; name class; fraction score; text error; name ground truth = GT; fraction IoU"
    ),
    "Possible label errors": (
        "name image; name class; fraction score; text reason; name ground truth = GT"
    ),
}


def test_headings_of_slices() -> None:
    scored = Scored.of(fixture(), {"one": [1]})
    block = slices_block(scored.overall, scored.slices)
    assert describe(block.table).startswith(
        "name slice; fraction AP; fraction AP50; fraction AP75;"
    )
    assert describe(block.table).endswith("; count images = img; count ground truths = GT")
    assert block.table is not None
    priorities = [column.priority for column in block.table.columns]
    assert priorities == [0, 0, 1, *[2] * 10, 0, 0]


def test_headings_of_tied_scores() -> None:
    block = tie_block(fixture())
    assert block.title == "Bounds over all orders of tied scores"
    assert describe(block.table) == (
        "name metric; fraction lowest; fraction reported; fraction highest"
    )


def test_headings_of_a_comparison() -> None:
    result = fixture()
    other = replace(result.detections, score=result.detections.score[::-1].copy())
    after = evaluate(result.ground_truth, other)
    report = comparison_report(compare(result, after, resamples=100, confidence=0.9))
    columns = "fraction first; fraction second; change diff; change CI low; change CI high"
    assert describe(report.table) == f"name metric; {columns}"
    blocks = {block.key: block.table for block in report.blocks}
    assert describe(blocks["classes"]) == f"name class; {columns}; count ground truths = GT"
    assert describe(blocks["images"]) == (
        "name image; count_change errors = all; count_change FN; "
        "count_change localization = Loc; count_change duplicate = Dupe; "
        "count_change classification = Cls; count_change background = Bkg"
    )
    assert describe(blocks["errors"]) == (
        "name errors; count first; count second; count_change diff"
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
def test_headings_of_classes(protocol: Protocol, shares: str) -> None:
    name, *columns = class_columns(protocol)
    assert name == Column("name", "class", "class", "name")
    headings = [
        f"{column.priority} {column.heading}"
        + (f" = {column.short}" if column.short != column.heading else "")
        for column in columns
        if column.kind == "fraction"
    ]
    assert headings == shares.split("; ")
    assert describe(
        Table(tuple(column for column in columns if column.kind != "fraction"), ())
    ) == (
        "count ground truths = GT; count ignored; count detections = det; "
        "count true positives = TP; count false positives = FP; count duplicates = dup"
    )


FALLEN = {"name": "cat", "AP": 0.25, "baseline": 0.5, "ground_truths": 7}
LOOSER = {"lowest": {"iou": 0.5, "drop": -0.01}, "worst": {"iou": 0.75, "drop": 0.125}}
SAME = LOOSER | {"lowest": {"iou": 0.5, "drop": 0.0}}
IMAGE = {"name": 3, "errors": 1, **dict.fromkeys(KINDS, 0), "missed": 2, "duplicate": -1}


@pytest.mark.parametrize(
    ("regressions", "title", "lines"),
    [
        (
            Regressions(None, (FALLEN,), LOOSER, (IMAGE,), True, True),
            "Regressions",
            (
                "class cat: AP 0.5000 -> 0.2500 (7 ground truths)",
                "localization: AP dropped 0.1250 at IoU 0.75, rose 0.0100 at IoU 0.5",
                "image 3: +2 FN, -1 duplicate at IoU 0.75",
            ),
        ),
        (
            Regressions("night", (FALLEN,), None, (IMAGE,), True, False),
            "Regressions and worst images, in slice night",
            ("class cat: AP 0.5000 -> 0.2500 (7 ground truths)", "image 3: 2 FN"),
        ),
        (
            Regressions(None, (), None, (IMAGE,), True, False),
            "Worst classes and images",
            ("image 3: 2 FN",),
        ),
        (
            Regressions(None, (FALLEN | {"baseline": None},), None, (), False, False),
            "Worst classes and images",
            ("class cat: AP 0.2500 (7 ground truths)",),
        ),
        (
            Regressions(None, (), SAME, (), True, True),
            "Regressions",
            ("localization: AP dropped 0.1250 at IoU 0.75, unchanged at IoU 0.5",),
        ),
    ],
)
def test_headings_of_regressions(
    regressions: Regressions, title: str, lines: tuple[str, ...]
) -> None:
    block = regressions_block(regressions)
    assert (block.key, block.title, block.lines) == ("regressions", title, lines)
    assert block.data["slice"] == regressions.slice
    assert block.data["images_compared"] == regressions.images_compared
