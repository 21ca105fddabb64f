"""Memory while writing or reading a partial: little more than the partial itself."""

import tracemalloc
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import detap
from detap.evaluation.detection import score_tables
from detap.evaluation.partial import Partial, merging
from detap.io.stream import read_bytes
from detap.tables.detection import Detections, GroundTruth

partial_module = import_module("detap.evaluation.partial.partial")

SHARES, IMAGES, EACH = 4, 50, 1000  # detections of an image
DETECTIONS = SHARES * IMAGES * EACH


def peak(act: Callable[[], Any]) -> int:
    """Return the peak of additional bytes during a call."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def some_union(classes: int) -> Partial:
    """Return the merge of partials with every other image, so that all rows are moved."""
    random = np.random.default_rng(4)
    label = np.arange(classes)
    parts = []
    for share in range(SHARES):
        images = np.arange(share, SHARES * IMAGES, SHARES)
        corner = random.uniform(0, 500, (IMAGES * EACH, 2))
        truth = GroundTruth.from_arrays(
            image=np.repeat(images, classes),
            label=np.tile(label, IMAGES),
            boxes=np.tile([10.0, 10.0, 90.0, 90.0], (IMAGES * classes, 1)),
        )
        detections = Detections.from_arrays(
            image=np.repeat(images, EACH),
            label=random.integers(0, classes, len(corner)),
            boxes=np.hstack([corner, corner + 80.0]),
            score=random.random(len(corner)),
        )
        parts.append(Partial.of(score_tables(truth, detections, "coco", match_table=True)))
    return detap.merge(parts)


@pytest.fixture(params=[40, 1], ids=["classes", "one-class"])
def union(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Partial:
    for name in ("CHUNK", "MAX_CHUNK"):
        monkeypatch.setattr(partial_module, name, 1 << 11)
    merged = some_union(request.param)
    assert len(merged) == DETECTIONS
    return merged


def test_columns_are_written_in_chunks(union: Partial) -> None:
    """They have ten bytes a detection: score, image and match."""
    sizes: list[int] = []
    held = peak(lambda: sizes.extend(len(piece) for piece in union.buffers()))
    assert sum(sizes) > 10 * len(union)
    assert max(sizes) < len(union)
    assert held < 4 * len(union)


def test_bytes_are_held_once(union: Partial) -> None:
    size = len(union.to_bytes())
    assert peak(union.to_bytes) < 1.6 * size


def test_a_file_is_held_once(tmp_path: Path) -> None:
    (tmp_path / "all.part").write_bytes(bytes(16 << 20))
    assert peak(lambda: read_bytes(tmp_path / "all.part")) < 1.3 * (16 << 20)


def test_finding_repeated_images_needs_little_memory() -> None:
    images = 100_000
    parts: Any = [SimpleNamespace(images=range(n * images, (n + 1) * images)) for n in range(3)]
    assert peak(lambda: [*merging._kept_images(parts, [], identical=False)]) < 3 * images * 48
