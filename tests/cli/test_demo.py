"""``detap demo``: the bundled example is evaluated, gated and reported."""

import subprocess
import sys
from pathlib import Path

import pytest

from detap.cli import example
from tests.cli.conftest import Run


def test_table_gate_and_page(tmp_path: Path) -> None:
    """As a process, since its child processes write to the same terminal."""
    pytest.importorskip("jinja2")
    ended = subprocess.run(
        [sys.executable, "-m", "detap", "demo", str(tmp_path / "tour")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert "$ detap eval instances.json yesterday.json" in lines
    assert any(line.startswith("mean / sum") for line in lines)
    assert "FAILED   AP dropped by " in ended.stdout
    assert "(status 1)" in lines
    assert (
        lines[-1] == f"It is all in {tmp_path / 'tour'}: look around, and try other commands there."
    )
    page = (tmp_path / "tour" / "page.html").read_text("utf-8")
    assert "<html" in page
    assert page.count("data:image/") >= 5


def test_an_existing_folder_is_not_overwritten(tmp_path: Path, detap: Run) -> None:
    ended = detap("demo", str(tmp_path))
    assert ended.status == 2
    assert f"{tmp_path} cannot be made (File exists); use a new folder" in ended.err
    assert not list(tmp_path.iterdir())


def test_the_example_is_the_same_everywhere(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        example.write(str(tmp_path / name))
    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*.*"))
    assert len(files) == 3 + example.IMAGES
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    # Lehmer's generator from 1: 48271, then 48271 squared modulo 2**31 - 1.
    draw = example.Sequence(1)
    assert next(draw) * 0x7FFFFFFF == 48271
    assert round(next(draw) * 0x7FFFFFFF) == 48271**2 % (2**31 - 1)
