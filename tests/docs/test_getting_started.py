"""docs/getting-started.md: each command as printed, in a folder as the page has it."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEP = re.compile(r"^```console\n\$ (detap [^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_command_prints_what_the_page_shows(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    folder = tmp_path / "quickstart"
    shutil.copytree(ROOT / "fixtures" / "quickstart", folder)
    steps = STEP.findall((ROOT / "docs" / "getting-started.md").read_text("utf-8"))
    assert len(steps) >= 5
    statuses = []
    for line, shown in steps:
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(line)],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            encoding="utf-8",
        )
        assert done.stdout.rstrip() == shown.rstrip(), done.stderr
        statuses.append(done.returncode)
    assert statuses == [0, 0, 1, 0, 0]
    assert "<html" in (folder / "page.html").read_text("utf-8")
