"""Shards given by URLs, through the functions of engines."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Ended, detap
from tests.cli.test_shards import JSON, WHOLE, numbers, shards

__all__ = ["detap", "shards"]

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def bucket(shards: Path) -> Iterator[str]:
    """Store the shards in memory, as an object store would."""
    store = fsspec.filesystem("memory")
    for path in (Path("gt.json"), *Path("dts").iterdir()):
        store.pipe(f"/bucket/{path}", path.read_bytes())
    yield "memory://bucket"
    store.rm("/bucket", recursive=True)


@pytest.mark.parametrize("more", [(), ("--resume", "kept")], ids=["", "resume"])
def test_shards_of_a_store_give_the_metrics_of_one_file(
    shards: Path, detap: Callable[..., Ended], bucket: str, more: tuple[str, ...]
) -> None:
    files = ("--gt", f"{bucket}/gt.json", "--dt", f"{bucket}/dts/*.json")
    one = numbers(detap("eval", *WHOLE, *JSON))
    assert numbers(detap("eval", *files, *more, *JSON)) == one
    assert numbers(detap("eval", *files, *more, *JSON)) == one


def test_changed_shards_of_a_store_are_evaluated_again(
    shards: Path, detap: Callable[..., Ended], bucket: str
) -> None:
    files = ("--gt", f"{bucket}/gt.json", "--dt", f"{bucket}/dts/*.json", "--resume", "kept")
    detap("eval", *files)
    fsspec.filesystem("memory").pipe("/bucket/dts/2.json", b"[]")
    ended = detap("eval", *files, *JSON)
    Path("dts/2.json").write_text("[]")
    assert numbers(ended) == numbers(detap("eval", "--gt", "gt.json", "--dt", "dts/*.json", *JSON))


def test_the_functions_of_engines_read_urls(shards: Path, bucket: str) -> None:
    from detap.engines.shards import InputFiles, Shard, shard_to_partial
    from detap.evaluation.partial import Partial
    from detap.protocols import protocol

    truth = InputFiles("coco", (f"{bucket}/gt.json",), folder="/elsewhere")
    detections = InputFiles("coco", (f"{bucket}/dts/1.json",), folder="/elsewhere")
    partial = Partial.from_bytes(shard_to_partial(Shard(truth, detections, protocol("coco"))))
    named = {record["image_id"] for record in json.loads(Path("dts/1.json").read_text())}
    assert set(partial.images) == named


def test_a_partial_does_not_contain_a_url_signature() -> None:
    from detap.evaluation.partial.provenance import displayed_path

    assert displayed_path("https://me:pass@host/dt.json?sign=abc") == "https://host/dt.json?..."
    assert displayed_path("dts/a?b.json") == "dts/a?b.json"
