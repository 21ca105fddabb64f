"""``detap demo``: the bundled example is evaluated, gated and reported."""

import struct
import sys
import zlib
from pathlib import Path

import pytest

from detap.cli import example
from tests.cli.conftest import Run
from tests.processes import finished


def test_table_gate_and_page(tmp_path: Path) -> None:
    """As a process, since its child processes write to the same terminal."""
    pytest.importorskip("jinja2")
    ended = finished([sys.executable, "-m", "detap", "demo", str(tmp_path / "tour")])
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
    said = detap("demo", str(tmp_path)).refused()
    assert f"{tmp_path} cannot be made (File exists); use a new folder" in said
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


def test_objects_lie_in_their_images_without_overlap() -> None:
    for objects in example.objects_by_image():
        for number, (_, (x, y, width, height)) in enumerate(objects):
            assert x >= 0
            assert y >= 0
            assert x + width <= example.WIDTH
            assert y + height <= example.HEIGHT
            for _, (x2, y2, width2, height2) in objects[:number]:
                apart = x2 + width2 <= x or x + width <= x2 or y2 + height2 <= y or y + height <= y2
                assert apart


def test_pictures_show_objects_where_they_are() -> None:
    objects = [(0, (100.0, 50.0, 60.0, 40.0))]
    data = example.picture(objects)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (example.WIDTH, example.HEIGHT)
    start = data.index(b"IDAT") + 4
    rows = zlib.decompress(data[start : data.index(b"IEND") - 8])
    stride = 3 * example.WIDTH + 1

    def pixel(x: int, y: int) -> bytes:
        return rows[y * stride + 1 + 3 * x :][:3]

    meadow, cat = pixel(0, 0), pixel(130, 70)  # a corner, and the middle of the box
    assert meadow != cat
    assert pixel(102, 70) == cat  # just inside the left end of the middle line
    assert pixel(101, 52) == meadow  # a corner of the box is outside its ellipse
