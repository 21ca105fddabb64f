"""The command line without the packages of the extras."""

import subprocess
import sys
from pathlib import Path

import pytest

from detap.cli import COMMANDS
from tests.conftest import ROOT
from tests.processes import finished

PACKAGES = (
    *("PIL", "jinja2", "markupsafe", "pyarrow", "fsspec", "orjson", "scipy", "matplotlib"),
    *("pandas", "torch", "distributed"),
)
START = f"""
import sys
sys.modules.update(dict.fromkeys({PACKAGES}))
from detap.__main__ import main
main()
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return finished([sys.executable, "-c", START, *arguments], None)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_starts_without_extras(command: str) -> None:
    ended = run(command, "--help")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("command", ["report", "eval"])
def test_the_page_names_its_extra(tmp_path: Path, command: str) -> None:
    coco = ROOT / "fixtures" / "quickstart" / "coco"
    files = str(coco / "instances.json"), str(coco / "results.json")
    ended = run(command, *files, "-o", str(tmp_path / "page.html"))
    assert (ended.returncode, ended.stdout) == (2, "")
    needs = "the HTML page needs Jinja2, which is not installed; pip install 'detap[report]'"
    assert ended.stderr == f"Error: {needs}\n"
    assert not list(tmp_path.iterdir())
