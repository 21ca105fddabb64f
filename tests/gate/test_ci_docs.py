"""Every command of docs/ci.md, run as printed from top to bottom."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.processes import finished

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text("utf-8")
EXAMPLES = ROOT / "examples" / "ci"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the example at the beginning of the page."""
    return Path(shutil.copytree(ROOT / "fixtures" / "quickstart" / "coco", tmp_path / "coco"))


def environment(**more: str) -> dict[str, str]:
    """Return environment variables whose `detap` is this one."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GITHUB_")}
    return {**kept, "PATH": path, **more}


def shell(line: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return finished(
        ["sh", "-c", line], None, cwd=folder, env=environment(**more), encoding="utf-8", timeout=60
    )


needs_detap = pytest.mark.skipif(
    not shutil.which("detap", path=environment()["PATH"]),
    reason="detap is not installed as a command",
)


@needs_detap
def test_every_command_works_as_printed_in_order(folder: Path) -> None:
    ran = 0
    for language, content in BLOCK.findall(PAGE):
        if language == "toml" and not (folder / "detap.toml").exists():
            (folder / "detap.toml").write_text(content)
        if language != "sh":
            continue
        for line in content.splitlines():
            command, _, comment = line.partition("  # ")
            status = int(comment.removeprefix("status ")) if comment else 0
            ended = shell(command, folder)
            assert ended.returncode == status, f"{command}\n{ended.stdout}{ended.stderr}"
            assert ended.stdout or ">" in command
            ran += 1
    assert ran == 7
    assert (folder / "summary.md").read_text().startswith("## detap: 9 of 9 gates passed\n")


def test_the_page_shows_the_examples() -> None:
    shown = [content for language, content in BLOCK.findall(PAGE) if language != "sh"]
    shown = [content.removeprefix("# test_detector.py\n") for content in shown]
    for path in EXAMPLES.iterdir():
        assert path.read_text() in shown, f"docs/ci.md does not show {path.name} as it is"


@pytest.fixture
def project(folder: Path) -> Path:
    """Return a project in the state at the end of the page."""
    shutil.copy(EXAMPLES / "detap.toml", folder)
    ended = shell(
        "detap eval --isolated --gt instances.json --dt results.json -o baseline.json", folder
    )
    assert ended.returncode == 0, ended.stderr
    return folder


def run_lines(text: str) -> list[str]:
    """Return the commands of a workflow without the installation."""
    lines = re.findall(r"^\s+- (?:run: )?((?:detap|pip) .*)$", text, re.MULTILINE)
    assert lines[0] == "pip install detap"
    return lines[1:]


@needs_detap
@pytest.mark.parametrize(("dt", "status"), [("results.json", 0), ("results-worse.json", 1)])
def test_the_github_workflow(project: Path, dt: str, status: int) -> None:
    (line,) = run_lines((EXAMPLES / "github.yml").read_text())
    summary = project / "step-summary.md"
    summary.write_text("# before\n")
    ended = shell(line, project, GITHUB_STEP_SUMMARY=str(summary), DETAP_DT=dt)
    assert ended.returncode == status, ended.stderr
    kinds = {entry.split(" ")[0] for entry in ended.stdout.splitlines()}
    assert kinds == ({"::notice", "::error"} if status else {"::notice"})
    text = summary.read_text()
    assert text.startswith("# before\n## detap: ")
    assert ("failed" in text) == bool(status)
    assert {"report.json", "junit.xml"} <= {path.name for path in project.iterdir()}


@needs_detap
@pytest.mark.parametrize(("dt", "status"), [("results.json", 0), ("results-worse.json", 1)])
def test_the_gitlab_job(project: Path, dt: str, status: int) -> None:
    text = (EXAMPLES / "gitlab-ci.yml").read_text()
    (line,) = run_lines(text)
    ended = shell(line, project, DETAP_DT=dt)
    assert ended.returncode == status, ended.stderr
    for name in re.findall(r"(?:junit|metrics|codequality): (\S+)", text):
        assert (project / name).stat().st_size
    assert bool(json.loads((project / "quality.json").read_text())) == bool(status)


@needs_detap
def test_the_hook(project: Path) -> None:
    text = (EXAMPLES / "pre-commit-config.yaml").read_text()
    (entry,) = re.findall(r"entry: (.*)", text)
    (pattern,) = re.findall(r"files: (.*)", text)
    assert re.search(pattern, "results.json")
    assert shell(entry, project).returncode == 0
    assert shell(entry, project, DETAP_DT="results-worse.json").returncode == 1


def test_the_test_module(project: Path) -> None:
    shutil.copy(EXAMPLES / "test_detector.py", project)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_detector.py"]
    ended = finished(command, cwd=project)
    shutil.copy(project / "results-worse.json", project / "results.json")
    ended = finished(command, 1, cwd=project)
    assert "AP dropped by 0.1231" in ended.stdout


def test_toml_blocks_are_valid_and_a_target_works(folder: Path) -> None:
    blocks = [content for language, content in BLOCK.findall(PAGE) if language == "toml"]
    for block in blocks:
        tomllib.loads(block)
    (folder / "detap.toml").write_text(blocks[-1])
    shutil.copy(folder / "results.json", folder / "results-night.json")
    ended = shell(f"{sys.executable} -m detap eval --target night", folder)
    assert ended.returncode == 0, ended.stderr
