"""The hook, run by pre-commit in a temporary repository."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from detap import __version__
from tests.cli.conftest import Files, coco
from tests.conftest import ROOT
from tests.processes import finished

__all__ = ["coco"]

yaml = pytest.importorskip("yaml", reason="PyYAML is absent: pip install 'detap[around]'")
pytest.importorskip("pre_commit", reason="pre-commit is absent: pip install 'detap[around]'")

MANIFEST = ROOT / ".pre-commit-hooks.yaml"


def run(folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return finished(
        command,
        None,
        cwd=folder,
        env={
            **kept,
            "PRE_COMMIT_HOME": str(folder.parent / "cache"),
            "PYTHONPATH": str(ROOT),
            "GIT_CONFIG_GLOBAL": os.devnull,
        },
        timeout=120,
    )


def pre_commit(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run(folder, sys.executable, "-m", "pre_commit", *arguments)


def test_the_manifest_is_valid() -> None:
    assert pre_commit(ROOT, "validate-manifest", MANIFEST).returncode == 0


def test_the_hook_of_the_docs_is_in_the_manifest() -> None:
    text = (ROOT / "examples" / "ci" / "pre-commit-check.yaml").read_text("utf-8")
    (shown,) = yaml.safe_load(text)["repos"]
    (hook,) = yaml.safe_load(MANIFEST.read_text("utf-8"))
    assert shown["rev"] == f"v{__version__}"
    assert [entry["id"] for entry in shown["hooks"]] == [hook["id"]]


@pytest.fixture
def repository(coco: Files, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with ground truth and the hook, which uses this detap."""
    if shutil.which("git") is None:
        pytest.skip("git is absent")
    folder = tmp_path_factory.mktemp("work") / "repository"
    folder.mkdir()
    shutil.copy(coco.gt, folder)
    (hook,) = yaml.safe_load(MANIFEST.read_text("utf-8"))
    assert (hook["id"], hook["language"]) == ("detap-check", "python")
    command = hook["entry"].replace("detap", f"{sys.executable} -m detap", 1)
    hook |= {"language": "system", "entry": command, "args": ["--gt", "instances.json"]}
    config = {"repos": [{"repo": "local", "hooks": [hook]}]}
    (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    run(folder, "git", "init", "--quiet")
    run(folder, "git", "add", "--all")
    return folder


def test_it_accepts_valid_ground_truth(repository: Path) -> None:
    ended = pre_commit(repository, "run", "--all-files")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Passed" in ended.stdout


def test_it_rejects_invalid_ground_truth_with_its_location(repository: Path) -> None:
    path = repository / "instances.json"
    path.write_text(path.read_text().replace('"category_id": 2', '"category_id": 9'))
    run(repository, "git", "add", "--all")
    ended = pre_commit(repository, "run", "--all-files")
    assert ended.returncode == 1
    assert "Failed" in ended.stdout
    assert "instances.json" in ended.stdout
    assert "category_id 9" in ended.stdout


def test_it_runs_only_for_changed_ground_truth(repository: Path) -> None:
    (repository / "notes.md").write_text("nothing")
    ended = pre_commit(repository, "run", "--files", "notes.md")
    assert (ended.returncode, "Skipped" in ended.stdout) == (0, True)
