"""Release files: the publishing workflow, the citation and the container image."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from detap import __version__
from docs.release import LINES, filled, values
from tests.conftest import ROOT
from tests.docs.tracked import project_files
from tests.processes import finished

yaml = pytest.importorskip("yaml", reason="PyYAML is absent: pip install 'detap[around]'")


def load(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text("utf-8"))


def test_publishing_needs_tested_wheels_and_no_secret() -> None:
    text = (ROOT / ".github" / "workflows" / "publish.yml").read_text("utf-8")
    assert "secrets." not in text
    assert not re.search(r"password|token:(?! write)", text.partition("  image:")[0])
    jobs = load(".github/workflows/publish.yml")["jobs"]
    assert jobs["publish"]["needs"] == "wheels"
    assert jobs["publish"]["environment"]
    assert jobs["publish"]["permissions"]["id-token"] == "write"
    assert [job for job, entry in jobs.items() if "permissions" in entry] == ["publish", "image"]
    assert jobs["image"]["needs"] == "publish"
    assert jobs["image"]["permissions"] == {"contents": "read", "packages": "write"}
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
    step, check = (entry for entry in jobs["version"]["steps"] if "run" in entry)
    assert check["run"] == "make release-check"
    ended = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        cwd=ROOT,
        env={**os.environ, "GITHUB_REF_NAME": tag},
        check=False,
    )
    assert ended.returncode == status


PLACEHOLDERS = [
    "release.toml: owner is the placeholder OWNER",
    "release.toml: repository is the placeholder https://detap.example/REPOSITORY",
    "release.toml: pages is the placeholder https://detap.example",
]


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Return a copy of the files that a release is checked by."""
    names = ["release.toml", "docs/release.py", "detap/_version.py", "CHANGELOG.md", *LINES]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def checked(folder: Path) -> tuple[int, list[str]]:
    command = [sys.executable, "docs/release.py"]
    ended = finished(command, None, cwd=folder)
    return ended.returncode, ended.stderr.splitlines()


def fill(release: Path) -> None:
    """Write the values into the files, as docs.derive does."""
    given = values(release)
    for name in LINES:
        text = filled(name, (release / name).read_text("utf-8"), given)
        (release / name).write_text(text, "utf-8")


def test_placeholders_are_not_released(release: Path) -> None:
    (release / "release.toml").write_text(
        'owner = "OWNER"\nrepository = "https://detap.example/REPOSITORY"\n'
        'pages = "https://detap.example"\n'
    )
    fill(release)
    assert checked(release) == (1, PLACEHOLDERS)


def test_real_values_reach_every_file(release: Path) -> None:
    (release / "release.toml").write_text(
        'owner = "acme"\nrepository = "https://git.acme.org/detap"\npages = "https://acme.org/d"\n'
    )
    version = release / "detap" / "_version.py"
    version.write_text(version.read_text().replace(__version__, "7.8.9"))
    status, reasons = checked(release)
    assert status == 1
    stale = [f"{name} is out of date; run python -m docs.derive" for name in LINES]
    assert reasons == [*stale, f"CHANGELOG.md: the newest section is {__version__}, not 7.8.9"]
    fill(release)
    for name in LINES:
        text = (release / name).read_text("utf-8")
        assert "OWNER" not in text
        assert "REPOSITORY" not in text
        assert "detap.example" not in text
    changes = release / "CHANGELOG.md"
    changes.write_text(changes.read_text("utf-8").replace(f"## {__version__}", "## 7.8.9"), "utf-8")
    assert checked(release) == (0, [])
    assert "uses: acme/detap@v7.8.9\n" in (release / "docs/ci.md").read_text("utf-8")


def test_a_file_without_the_line_is_reported() -> None:
    with pytest.raises(ValueError, match=r"CITATION.cff has no "):
        filled("CITATION.cff", "title: detap", values())


def test_no_other_file_has_a_placeholder() -> None:
    pattern = re.compile(r"\bOWNER\b|\bREPOSITORY\b|detap\.example")
    known = {*LINES, "release.toml", "docs/release.py", "tests/around/test_release.py"}
    texts = {
        name: (ROOT / name).read_bytes().decode("utf-8", "replace") for name in project_files()
    }
    using = {name for name, text in texts.items() if pattern.search(text)}
    assert using <= known


SYSTEMS = {
    "linux": ("x86_64", "aarch64"),
    "macos": ("x86_64", "arm64"),
    "windows": ("AMD64",),
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_wheels_are_built_for_every_python_and_system(system: str) -> None:
    pytest.importorskip("cibuildwheel", reason="absent: pip install 'detap[around]'")
    words = [
        "--platform",
        system,
        "--archs",
        ",".join(SYSTEMS[system]),
        "--print-build-identifiers",
    ]
    ended = finished([sys.executable, "-m", "cibuildwheel", *words], cwd=ROOT)
    tags = {
        "linux": [f"{libc}linux_{arch}" for libc in ("many", "musl") for arch in SYSTEMS["linux"]],
        "macos": [f"macosx_{arch}" for arch in SYSTEMS["macos"]],
        "windows": ["win_amd64"],
    }
    versions = ("311", "312", "313", "314")
    expected = {f"cp{version}-{tag}" for version in versions for tag in tags[system]}
    assert set(ended.stdout.split()) == expected


def test_the_recipe_has_the_dependencies_of_the_project() -> None:
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    run = [line.replace(" ", "") for line in recipe["requirements"]["run"]]
    assert run == ["python", *project["project"]["dependencies"]]
    host = [line.replace(" ", "").lower() for line in recipe["requirements"]["host"]]
    assert host == ["python", "pip", *map(str.lower, project["build-system"]["requires"])]


def test_the_recipe_is_rendered() -> None:
    """By rattler-build, with the variants of conda-forge that it uses."""
    rattler_build = pytest.importorskip(
        "rattler_build", reason="absent: pip install py-rattler-build"
    )
    variants = {"c_compiler": ["gcc"], "c_stdlib": ["sysroot"], "c_stdlib_version": ["2.17"]}
    config = rattler_build.VariantConfig(variants | {"python": ["3.12.*"]})
    recipe = rattler_build.Stage0Recipe.from_file(str(ROOT / "conda" / "recipe.yaml"))
    (rendered,) = recipe.render(config)
    package = rendered.recipe.package
    assert (str(package.name), str(package.version)) == ("detap", __version__)


def test_the_citation_has_this_version_and_matches_the_schema() -> None:
    assert load("CITATION.cff")["version"] == __version__
    pytest.importorskip("check_jsonschema", reason="absent: pip install 'detap[around]'")
    schema = "vendor.citation-file-format"
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, "CITATION.cff"]
    finished(command, cwd=ROOT)


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
    finished([linter, "Dockerfile"], cwd=ROOT)
