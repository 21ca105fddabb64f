"""docs/other-tools.md: the values that detap gives on the named data sets."""

import re
from pathlib import Path

import pytest

from detap.evaluation.detection import evaluate
from detap.formats import kitti
from detap.protocols import Protocol, protocol
from tests.conftest import ROOT
from tests.parity.test_presets import Tables, data, value

__all__ = ["data"]

PAGE = (ROOT / "docs" / "other-tools.md").read_text("utf-8")
THRESHOLDS = {"AP": "", "AP at IoU 0.5": "50"}
TABLE = re.compile(r"^\|(.+)\|\n\|[-|]+\|\n((?:\|.+\|\n)+)", re.MULTILINE)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def tables(page: str, first: str) -> list[tuple[list[str], list[list[str]]]]:
    """Return the tables with this first heading, as headings and rows."""
    return [
        (cells(head), [cells(line) for line in body.splitlines()])
        for head, body in TABLE.findall(page)
        if cells(head)[0] == first
    ]


def number(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-"))


def shown() -> list[tuple[str, str, str, str]]:
    """Return the values of presets in the page: preset, data, metric's suffix, value."""
    rows = []
    for first, suffix in THRESHOLDS.items():
        for head, body in tables(PAGE, first):
            for name, *values in body:
                for preset in re.findall(r"`([\w-]+)`", name):
                    rows += [
                        (preset, where.strip("`"), suffix, text)
                        for where, text in zip(head[1:], values, strict=True)
                        if text != "\N{EN DASH}"
                    ]
    return rows


def test_the_page_has_tables() -> None:
    assert len(shown()) >= 30
    assert len(tables(PAGE, "setting")) == 1


@pytest.mark.parametrize(("preset", "where", "suffix", "text"), shown())
def test_a_value_of_a_preset(
    data: dict[str, Tables], preset: str, where: str, suffix: str, text: str
) -> None:
    rules = protocol(preset)
    name = rules.primary_metric + (suffix if len(rules.iou_thresholds) > 1 else "")
    digits = len(text.partition(".")[2])
    assert number(text) == pytest.approx(value(data[where], rules, name), abs=0.6 * 10**-digits)


def test_the_values_of_kitti(real_data: Path) -> None:
    folder = real_data / "kitti-from-voc"
    truth = kitti.read_ground_truth(folder / "label_2")
    detections = kitti.read_detections(folder / "results", truth)
    ((_, rows),) = tables(PAGE, "moderate")
    assert len(rows) == 4
    for what, text in rows:
        name, points = what.split(", ")
        result = evaluate(truth, detections, {"R40": "kitti", "R11": "kitti-r11"}[points])
        value = result.by_class["AP-moderate"][result.classes.index(name)]
        assert number(text) == pytest.approx(value, abs=6e-11)


def test_the_effect_of_each_field(data: dict[str, Tables]) -> None:
    ((head, body),) = tables(PAGE, "setting")
    columns = [heading.strip("`") for heading in head[2:]]
    base = {where: evaluate(*data[where], "coco").summary for where in columns}
    for row in body:
        protocol = Protocol.parse("|".join(["coco", *re.findall(r"`([^`]+)`", row[0])]))
        for where, cell in zip(columns, row[2:], strict=True):
            now = evaluate(*data[where], protocol).summary
            for name, text in zip(("AP", "AP50"), cell.split(", "), strict=True):
                change = now[name] - base[where][name]
                assert number(text) == pytest.approx(change, abs=6e-5), (row[0], where)
