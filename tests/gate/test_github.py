"""GitHub's step summary: appended, only if requested by GitHub, within its size limit."""

from pathlib import Path

import pytest

from detap.report.writers.github import MOST_SUMMARY, annotation
from tests.cli.conftest import Files, Run


@pytest.fixture
def summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    return path


def test_the_report_is_appended(coco: Files, detap: Run, summary: Path) -> None:
    summary.write_text("before\n")
    for _ in range(2):
        assert detap(*coco.arguments, "--output-format", "github").status == 0
    text = summary.read_text()
    assert text.startswith("before\n## detap: AP 0.7525\n")
    assert text.count("## detap: ") == 2


def test_other_formats_do_not_write_it(coco: Files, detap: Run, summary: Path) -> None:
    assert detap(*coco.arguments, "--output-format", "markdown").status == 0
    assert not summary.exists()


def test_it_is_also_written_if_the_github_format_goes_to_a_file(
    coco: Files, detap: Run, summary: Path
) -> None:
    target = coco.folder / "annotations.txt"
    assert detap(*coco.arguments, "-o", f"github={target}").status == 0
    assert summary.exists()
    warning, notice = target.read_text().splitlines()
    assert warning.startswith(
        "::warning title=detap%3A classes-only-in-detections::detections of classes "
    )
    assert notice.startswith("::notice title=detap%3A detap::AP 0.7525, AP50 0.7525, AP75 0.7525, ")


def test_a_full_summary_gets_one_line_then_nothing(coco: Files, detap: Run, summary: Path) -> None:
    call = [*coco.arguments, "--output-format", "github", "--fail-under", "0.1"]
    summary.write_text("x" * (MOST_SUMMARY - 100))
    assert detap(*call).status == 0
    assert summary.read_text().endswith("x## detap: 1 of 1 gates passed\n")
    summary.write_text("x" * MOST_SUMMARY)
    assert detap(*call).status == 0
    assert summary.stat().st_size == MOST_SUMMARY


@pytest.mark.parametrize("path", ["/dev/null", ".", "absent/summary.md"])
def test_an_invalid_summary_file_is_an_error(
    coco: Files, detap: Run, cwd: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", path)
    said = detap(*coco.arguments, "--output-format", "github").refused()
    assert f"$GITHUB_STEP_SUMMARY: {path}" in said


def test_an_annotation_is_escaped_as_github_documents() -> None:
    assert annotation("error", "a:b,c%", "50%: x,y") == (
        "::error title=detap%3A a%3Ab%2Cc%25::50%25: x,y"
    )
    assert len(annotation("error", "t" * 1000, "m" * 10_000)) < 4300


@pytest.mark.parametrize("between", [";", "; ", " ;\n"])
def test_several_limits_in_the_environment(
    between: str, coco: Files, detap: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DETAP_FAIL_UNDER", f"AP50=0.7{between}class:cat.AP=0.9")
    checks = detap(*coco.arguments, "--output-format", "json").report(1)["gates"]["checks"]
    assert [(check["name"], check["status"]) for check in checks] == [
        ("class:cat.AP", "failed"),
        ("AP50", "passed"),
    ]
