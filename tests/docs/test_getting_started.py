"""docs/getting-started.md: each command as printed, in the folder that the page describes."""

import shutil
from pathlib import Path

from tests.docs.test_examples import EXAMPLE, check_example, expected_status

ROOT = Path(__file__).parents[2]


def test_every_command_prints_what_the_page_shows(tmp_path: Path) -> None:
    folder = tmp_path / "quickstart"
    shutil.copytree(ROOT / "fixtures" / "quickstart", folder)
    steps = EXAMPLE.findall((ROOT / "docs" / "getting-started.md").read_text("utf-8"))
    assert [expected_status(*step) for step in steps] == [0, 1]
    for command, shown in steps:
        check_example(command, shown, folder)
