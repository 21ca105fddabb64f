"""Generated parts of the docs agree with the program."""

import json
from pathlib import Path

import pytest

from detap.report.schemas import NAMES, PAGES
from docs import derive


@pytest.mark.parametrize("path", derive.derived(), ids=lambda path: path.name)
def test_derived_parts_are_up_to_date(path: Path) -> None:
    assert path.read_text("utf-8") == derive.derived()[path], "run python -m docs.derive"


@pytest.mark.parametrize("name", derive.EXAMPLES)
def test_the_output_of_the_commands_is_up_to_date(name: str) -> None:
    text = (derive.ROOT / name).read_text("utf-8")
    assert "<!-- lines: " in text
    assert text == derive.with_output(text, derive.EXAMPLES[name]), "run python -m docs.derive"


def test_a_command_without_the_line_is_reported() -> None:
    page = "<!-- lines: nothing so -->\n```console\n$ detap eval instances.json results.json\n```\n"
    with pytest.raises(ValueError, match=r"results.json: no line begins with one of nothing so: "):
        derive.with_output(page, derive.QUICKSTART)


def test_every_schema_is_published_at_its_address(tmp_path: Path) -> None:
    derive.publish(tmp_path)
    published = {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*.json")}
    assert set(published) == {
        "schemas/settings-1.json",
        *(f"schemas/{name}-2.json" for name in NAMES),
    }
    for name, path in published.items():
        assert json.loads(path.read_text("utf-8"))["$id"] == f"{PAGES}/{name}"


def test_a_page_without_the_marker_of_a_table_is_reported() -> None:
    with pytest.raises(ValueError, match="no <!-- derived: axes -->"):
        derive.page("nothing here", {"axes": ["a table"]})
