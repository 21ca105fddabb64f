"""The pages about other tools: the numbers that they say detap gives of the data they name."""

import re
from pathlib import Path

import pytest

from detap.evaluation.detection import evaluate
from detap.formats.kitti import tables as kitti
from detap.protocols import Protocol, protocol
from tests.conftest import ROOT
from tests.parity.test_presets import Tables, data, value

__all__ = ["data"]

WHY = (ROOT / "docs" / "why-does-my-ap-differ.md").read_text("utf-8")
QUOTE = (ROOT / "docs" / "which-number-do-i-quote.md").read_text("utf-8")
TABLE = re.compile(r"^\|(.+)\|\n\|[-|]+\|\n((?:\|.+\|\n)+)", re.MULTILINE)
HERE = re.compile(r"`([\w-]+)` here(?:, at (\.\d))?")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def tables(page: str, first: str) -> list[tuple[list[str], list[list[str]]]]:
    """Return the tables whose first heading is this one, as headings and rows."""
    found = []
    for head, body in TABLE.findall(page):
        if cells(head)[0] == first:
            found.append((cells(head), [cells(line) for line in body.splitlines()]))
    return found


def number(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-"))


def shown() -> list[tuple[str, str, str, str]]:
    """Return what the tables of the tools say: preset, data, threshold, number."""
    rows = []
    for head, body in tables(WHY, "data"):
        for row in body:
            where, _, what = row[0].partition("`, ")
            for heading, text in zip(head, row, strict=True):
                match = HERE.match(heading)
                if match and where.strip("`") != "kitti":
                    at = match[2] or (what.removeprefix("at ") if what.startswith("at ") else "")
                    rows.append((match[1], where.strip("`"), at, text))
    return rows


def test_the_pages_have_tables() -> None:
    assert len(shown()) > 30
    assert len(tables(WHY, "decided otherwise")) == 1


@pytest.mark.parametrize(("preset", "where", "at", "text"), shown())
def test_a_number_here(
    data: dict[str, Tables], preset: str, where: str, at: str, text: str
) -> None:
    rules = protocol(preset)
    name = rules.headline + ("50" if at == ".5" and len(rules.iou_thresholds) > 1 else "")
    digits = len(text.partition(".")[2])
    assert number(text) == pytest.approx(value(data[where], rules, name), abs=0.6 * 10**-digits)


def test_the_numbers_of_kitti(real_data: Path) -> None:
    folder = real_data / "kitti-from-voc"
    truth = kitti.read_ground_truth(folder / "label_2")
    found = kitti.read_detections(folder / "results", truth)
    rows = [row for _, body in tables(WHY, "data") for row in body if row[0].startswith("`kitti`")]
    assert len(rows) == 4
    for where, theirs, ours in rows:
        _, name, _, points = where.split(", ")
        result = evaluate(truth, found, {"R40": "kitti", "R11": "kitti-r11"}[points])
        value = result.by_class["AP-moderate"][result.classes.index(name)]
        assert number(ours) == number(theirs) == pytest.approx(value, abs=6e-11)


def test_what_each_axis_is_worth(data: dict[str, Tables]) -> None:
    ((head, body),) = tables(WHY, "decided otherwise")
    columns = [heading.split("`")[1] for heading in head[3:]]
    base = {where: evaluate(*data[where], "coco").summary for where in columns}
    for row in body:
        rules = Protocol.spelt("|".join(["coco", *re.findall(r"`([^`]+)`", row[1])]))
        for where, cell in zip(columns, row[3:], strict=True):
            now = evaluate(*data[where], rules).summary
            for name, text in zip(("AP", "AP50"), cell.split(", "), strict=True):
                change = now[name] - base[where][name]
                assert number(text) == pytest.approx(change, abs=6e-5), (row[0], where)


def test_one_detector_by_several_presets(data: dict[str, Tables]) -> None:
    ((_, body),) = tables(QUOTE, "preset")
    assert len(body) > 6
    for preset, name, text in body:
        assert number(text) == pytest.approx(
            value(data["voc07"], protocol(preset.strip("`")), name), abs=6e-5
        )
