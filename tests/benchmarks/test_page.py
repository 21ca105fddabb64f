"""Images of the benchmark of the page."""

import json
from io import BytesIO
from pathlib import Path

import pytest

from benchmarks import page

Image = pytest.importorskip("PIL.Image", reason="the extra detap[report] is not installed")


def test_images_have_the_sizes_of_the_ground_truth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "BASES", 1)
    monkeypatch.setattr(page, "SIDE", 300)
    sizes = {"a.jpg": (120, 80), "b.jpg": (90, 300)}
    images = [{"file_name": name, "width": w, "height": h} for name, (w, h) in sizes.items()]
    (tmp_path / "gt.json").write_text(json.dumps({"images": images}), "utf-8")
    page.write(str(tmp_path / "gt.json"), tmp_path / "images")
    made = {path.name: path.read_bytes() for path in (tmp_path / "images").iterdir()}
    assert {name: Image.open(BytesIO(data)).size for name, data in made.items()} == sizes
