"""Examples of the README and the API page are run as written."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import finished

ROOT = Path(__file__).parents[2]
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(
    r"(?<! -->\n)^```console\n\$ (detap [^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL
)
STATUS = re.compile(r"# status (\d+)$")
FAILED_GATE = re.compile(r"^FAILED ", re.MULTILINE)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOCS = ROOT / "docs"
IN_FOLDERS = {DOCS / "getting-started.md", *(DOCS / "walkthroughs").glob("*.md")}
"""Pages whose commands run in a folder of their own, by tests of these pages."""


def blocks(pattern: re.Pattern[str]) -> list[object]:
    return [
        pytest.param(*match.groups(), id=f"{page.relative_to(ROOT)}:{number}")
        for page in PAGES
        if page not in IN_FOLDERS
        for number, match in enumerate(pattern.finditer(page.read_text("utf-8")))
    ]


def expected_status(command: str, shown: str) -> int:
    """Return the exit status that a comment states, else 1 if a gate failed, else 0."""
    if stated := STATUS.search(command):
        return int(stated[1])
    return 1 if FAILED_GATE.search(shown) else 0


def check_example(command: str, shown: str, folder: Path) -> None:
    """Run a command in a folder; compare its output and exit status with those of the example."""
    ended = finished(
        [sys.executable, "-m", *shlex.split(command, comments=True)],
        None,
        cwd=folder,
        encoding="utf-8",
    )
    assert ended.stdout.rstrip() == shown.rstrip(), ended.stderr
    assert ended.returncode == expected_status(command, shown), ended.stderr


@pytest.mark.parametrize("code", blocks(PYTHON))
def test_python_examples_run(
    code: str,
    capsys: pytest.CaptureFixture[str],
    cwd: Path,
) -> None:
    """A comment after a print has the beginning of its output."""
    (cwd / "fixtures").symlink_to(ROOT / "fixtures")
    for extra in ("pyarrow",):
        if f"import {extra}" in code:
            pytest.importorskip(extra)
    expected = re.findall(r"print\(.*?\)\s+# ([^:\n]+)", code)
    exec(compile(code, "example", "exec"), {"__name__": "example"})
    printed = capsys.readouterr().out.splitlines()
    assert [
        line[: len(expected)] for line, expected in zip(printed, expected, strict=True)
    ] == expected


def test_the_commands_of_the_readme_run_in_the_quick_start(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="the extra detap[report] is not installed")
    shutil.copytree(ROOT / "fixtures" / "quickstart" / "coco", tmp_path, dirs_exist_ok=True)
    use = (ROOT / "README.md").read_text("utf-8").partition("## Use")[2].partition("```sh")[2]
    lines = [line for line in use.partition("```")[0].splitlines() if "instances.json" in line]
    assert len(lines) == 4
    statuses = [
        subprocess.run(
            [sys.executable, "-m", *shlex.split(line, comments=True)], cwd=tmp_path, check=False
        ).returncode
        for line in lines
    ]
    assert statuses == [0, 1, 0, 0]
    assert {path.name for path in tmp_path.iterdir()} >= {"old.json", "report.html"}


@pytest.mark.parametrize(("command", "shown"), blocks(EXAMPLE))
def test_console_examples_print_what_they_show(command: str, shown: str) -> None:
    check_example(command, shown, ROOT)


@pytest.mark.parametrize(
    ("command", "shown", "status"),
    [
        ("detap eval --gt a --dt b", "mAP  0.5\n", 0),
        ("detap eval --fail-under 0.9", "Gates: 1 of 1 failed\nFAILED   mAP 0.5\n", 1),
        ("detap eval --fail-under 0.1", "Gates: 1 of 1 passed\npassed   mAP 0.5\n", 0),
        ("detap eval --gt absent.json  # status 2", "", 2),
    ],
)
def test_the_exit_status_of_an_example(command: str, shown: str, status: int) -> None:
    assert expected_status(command, shown) == status


def test_an_example_that_shows_nothing_may_not_crash() -> None:
    with pytest.raises(AssertionError, match="no such file"):
        check_example("detap eval --gt absent.json --dt absent.json -q", "", ROOT)
