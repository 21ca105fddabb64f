"""What derives from the program is what the program says."""

from pathlib import Path

import pytest

from docs import derive


@pytest.mark.parametrize("path", derive.derived(), ids=lambda path: path.name)
def test_derived_parts_are_up_to_date(path: Path) -> None:
    assert path.read_text("utf-8") == derive.derived()[path], "run python -m docs.derive"


def test_a_page_without_the_place_for_a_table_is_told() -> None:
    with pytest.raises(ValueError, match="no <!-- derived: axes -->"):
        derive.page("nothing here", {"axes": ["a table"]})
