"""docs/protocols.md against the presets, the options and the tests that it names."""

import re
from dataclasses import fields

import pytest

from detap.cli.commands.eval import command
from detap.protocols import PRESETS, Protocol, protocol
from detap.protocols.fields import protocol_fields
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "protocols.md").read_text("utf-8")
FACTS = (ROOT / "tests" / "test_facts.py").read_text("utf-8")
UNSPOKEN = {"name", "source", "tolerance", "residue"}
COCO_THRESHOLDS = "linspace(0.5, 0.95, 10)"
KINDS = {axis.name: axis.kind for axis in protocol_fields(Protocol)}


def section(heading: str) -> str:
    """Return the text under a heading, up to the next of its rank or a higher one."""
    rank = heading.split(maxsplit=1)[0]
    _, _, rest = PAGE.partition(f"\n{heading}\n")
    assert rest, f"no heading {heading!r}"
    return re.split(rf"^#{{1,{len(rank)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def table(text: str) -> list[list[str]]:
    """Return the rows of the first table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def spelt(rules: Protocol, field: str) -> str:
    """Return a value as the signature spells it; COCO's ten thresholds by how they are made."""
    value = getattr(rules, field)
    if field == "iou_thresholds" and value == protocol("coco").iou_thresholds:
        return COCO_THRESHOLDS
    return KINDS[field].format(value)


def plain(cell: str) -> str:
    return cell.strip("`")


def test_every_axis_is_explained_with_its_option_and_default() -> None:
    rows = {plain(row[0]): row for row in table(section("## Axes"))}
    assert list(rows) == [entry.name for entry in fields(Protocol) if entry.name not in UNSPOKEN]
    option_of = {str(parameter.name): parameter.opts for parameter in command.params}
    standard = Protocol(name="coco")
    for field, (_, option, values, default, _meaning) in rows.items():
        assert plain(option) in option_of[field]
        assert plain(default) == spelt(standard, field)
        for choice in KINDS[field].choices:
            assert f"`{choice}`" in values


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_listed_with_its_departures(name: str) -> None:
    rules, standard = protocol(name), Protocol(name=name)
    listed = {plain(field): plain(value) for field, value in table(section(f"### {name}"))}
    due = {
        entry.name: spelt(rules, entry.name)
        for entry in fields(Protocol)
        if entry.name not in UNSPOKEN
        and getattr(rules, entry.name) != getattr(standard, entry.name)
    }
    assert listed == due


def test_no_preset_is_listed_that_is_not_there() -> None:
    assert set(re.findall(r"^### (\S+)$", section("## Presets"), re.MULTILINE)) == set(PRESETS)


def test_quirks_and_their_tests_name_each_other() -> None:
    quirks = section("## Quirks")
    named = set(re.findall(r"`(test_\w+)`", quirks))
    written = set(re.findall(r"^def (test_fact_\w+)\(", FACTS, re.MULTILINE))
    assert named == written
    parts = re.split(r"^### (\d+)\. ", quirks, flags=re.MULTILINE)[1:]
    numbers = [int(number) for number in parts[::2]]
    assert numbers == list(range(1, len(numbers) + 1))
    for number, text in zip(numbers, parts[1::2], strict=True):
        for test in re.findall(r"`test_fact_(\d+)_\w+`", text):
            assert int(test) == number, f"quirk {number} names a test of {test}"
    for fixture in re.findall(r"[Ff]ixtures?:\s+((?:`[\w-]+`(?:, )?)+)", quirks):
        for name in re.findall(r"`([\w-]+)`", fixture):
            assert (ROOT / "fixtures" / name / "why.md").is_file()
