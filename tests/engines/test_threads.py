"""Threads used to accumulate classes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from detap.engines import driver
from detap.engines.driver import evaluate
from detap.engines.shards import InputFiles, Shard, accumulate_classes
from detap.protocols import protocol
from tests.cli.test_shards import shards

__all__ = ["shards"]


class Here:
    """An in-process engine that records the threads of each accumulation."""

    workers = 2
    threads = 4

    def __init__(self) -> None:
        self.noted: list[int] = []

    def submit(
        self, name: str, function: Callable[..., Any], *arguments: Any, **options: Any
    ) -> Any:
        if function is accumulate_classes:
            self.noted.append(options["threads"])
        return function(*arguments, **options)

    def gather(self, submitted: Sequence[Any]) -> list[Any]:
        return list(submitted)

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def by_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accumulate as workers do with more rows."""
    monkeypatch.setattr(driver, "_MAX_MERGED_ROWS", 0)


@pytest.mark.parametrize(
    ("one_class", "threads", "expected"),
    [(True, None, {4}), (True, 3, {3}), (True, 9, {4}), (False, None, {1}), (False, 3, {1})],
)
def test_classes_use_one_thread_each_and_a_single_class_all(
    shards: Path, one_class: bool, threads: int | None, expected: set[int]
) -> None:
    engine = Here()
    rules = replace(protocol("coco"), class_agnostic=one_class)
    truth = InputFiles("coco", ("gt.json",), folder=str(shards))
    inputs = [
        Shard(truth, InputFiles("coco", (str(path),), folder=str(shards)), rules)
        for path in sorted(shards.glob("dts/*.json"))
    ]
    evaluate(engine, inputs, remaining=Shard(truth, None, rules), threads=threads)
    assert set(engine.noted) == expected


def test_classes_of_an_engine_are_selected(shards: Path) -> None:
    truth = InputFiles("coco", ("gt.json",))
    inputs = [
        Shard(truth, InputFiles("coco", (f"dts/{part}.json",)), protocol("coco"))
        for part in range(4)
    ]
    rest = Shard(truth, None, protocol("coco"))
    union = evaluate(Here(), inputs, remaining=rest)
    whole, part = union.compute(), union.select(["class 3"]).compute()
    assert repr(part.class_metrics(0)) == repr(whole.class_metrics(2))
    assert part.signature.split("|")[1].startswith("classes:1-of-3-")
