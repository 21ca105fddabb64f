"""The pages of protocols, presets and differences against the presets, options and tests."""

import re
from dataclasses import fields, replace

import pytest

from detap.cli.commands.eval import command
from detap.protocols import PRESETS, Protocol, protocol
from detap.protocols.fields import protocol_fields
from tests.conftest import ROOT

FIELDS, PRESETS_PAGE, QUIRKS = (
    (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    for name in ("protocols", "presets", "implementation-differences")
)
FACTS = (ROOT / "tests" / "test_facts.py").read_text("utf-8")
UNSPOKEN = {"name", "source", "tolerance", "residue"}
KINDS = {axis.name: axis.kind for axis in protocol_fields(Protocol)}


def table(text: str, name: str) -> list[list[str]]:
    """Return the rows of a generated table, without its header."""
    text = text.partition(f"<!-- derived: {name} -->")[2].partition("<!-- end -->")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def plain(cell: str) -> str:
    return cell.strip("`")


def test_every_field_is_documented_with_its_option_and_default() -> None:
    rows = {
        plain(row[0].partition(",")[0]).removeprefix("--").replace("-", "_"): row
        for row in table(FIELDS, "fields")
    }
    rows = {"iou_thresholds": rows.pop("iou"), **rows}
    assert list(rows) == [entry.name for entry in fields(Protocol) if entry.name not in UNSPOKEN]
    option_of = {str(parameter.name): parameter.opts for parameter in command.params}
    standard = Protocol(name="coco")
    for field, (option, values, _meaning) in rows.items():
        assert field == "scores" or plain(option.partition(",")[0]) in option_of[field]
        assert f"**`{KINDS[field].format(getattr(standard, field))}`**" in values
        for choice in KINDS[field].choices:
            assert f"`{choice}`" in values or choice in ("yes", "no")


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_listed_with_its_departures(name: str) -> None:
    """A row has a base preset or the defaults, and the options that turn it into this preset."""
    row = next(row for row in table(PRESETS_PAGE, "presets") if plain(row[0]) == name)
    base, *changes = re.findall(r"`[^`]+`|\S+", row[2])
    start = Protocol(name=name) if base == "defaults" else protocol(plain(base))
    changed = dict(plain(change).split(":", 1) for change in changes)
    values = {
        axis.name: axis.kind.parse(changed.pop(axis.option[2:]))
        for axis in protocol_fields(Protocol)
        if axis.option[2:] in changed
    }
    assert not changed
    made, preset = replace(start, **values), protocol(name)
    for entry in fields(Protocol):
        if entry.name not in UNSPOKEN:
            assert getattr(made, entry.name) == getattr(preset, entry.name), entry.name


def test_no_unknown_preset_is_listed() -> None:
    assert [plain(row[0]) for row in table(PRESETS_PAGE, "presets")] == list(PRESETS)


def test_every_difference_has_a_test_of_its_number() -> None:
    tested = {int(number) for number in re.findall(r"^def test_fact_(\d+)_", FACTS, re.MULTILINE)}
    numbers = [int(number) for number in re.findall(r"^## (\d+)\. ", QUIRKS, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert tested == {*numbers} - {14}  # definitions of other metrics
    for fixture in re.findall(r"[Ff]ixtures?:\s+((?:`[\w-]+`(?:, )?)+)", QUIRKS):
        for name in re.findall(r"`([\w-]+)`", fixture):
            assert (ROOT / "fixtures" / name / "why.md").is_file()
