"""Inputs given by URLs, as workers read them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from detap.formats import read_ground_truth
from detap.formats.multi_file import LocatedInput
from detap.io.limits import DEFAULT_LIMITS

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def bucket(shards: Path) -> Iterator[str]:
    """Store the shards in memory, as an object store would."""
    store = fsspec.filesystem("memory")
    for path in (Path("gt.json"), *Path("dts").iterdir()):
        store.pipe(f"/bucket/{path}", path.read_bytes())
    yield "memory://bucket"
    store.rm("/bucket", recursive=True)


def test_workers_read_urls(shards: Path, bucket: str) -> None:
    truth = read_ground_truth(f"{bucket}/gt.json")
    reading = {"limits": DEFAULT_LIMITS}
    source = LocatedInput("coco", f"{bucket}/dts/1.json", "/elsewhere", reading)
    table = source.read(truth)
    named = {record["image_id"] for record in json.loads(Path("dts/1.json").read_text())}
    assert {table.images[number] for number in table.image.tolist()} == named
