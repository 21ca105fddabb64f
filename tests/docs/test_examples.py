"""What the README and the API page show is run as it stands there."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n\$ (detap [^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WALKED = ROOT / "docs" / "getting-started.md"  # by test_getting_started.py, in a folder of its own


def blocks(pattern: re.Pattern[str]) -> list[object]:
    return [
        pytest.param(*match.groups(), id=f"{page.relative_to(ROOT)}:{number}")
        for page in PAGES
        if page != WALKED
        for number, match in enumerate(pattern.finditer(page.read_text("utf-8")))
    ]


@pytest.mark.parametrize("code", blocks(PYTHON))
def test_python_examples_run(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A comment behind a print says how its output begins."""
    for extra in ("pyarrow",):
        if f"import {extra}" in code:
            pytest.importorskip(extra)
    expected = re.findall(r"print\(.*?\)\s+# ([^:\n]+)", code)
    exec(compile(code, "example", "exec"), {"__name__": "example"})
    printed = capsys.readouterr().out.splitlines()
    assert [line[: len(due)] for line, due in zip(printed, expected, strict=True)] == expected


@pytest.mark.parametrize(("command", "shown"), blocks(CONSOLE))
def test_console_examples_print_what_they_show(command: str, shown: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
    )
    assert done.stdout.rstrip() == shown.rstrip(), done.stderr
