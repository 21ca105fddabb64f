"""Shards by Ray: the same two functions as `detap eval --engine dask`, under another scheduler.

::

    python examples/engine_ray.py instances.json shards/*.json

Each shard becomes a partial in some process, classes are finished in some, and the numbers are
those of `detap eval --gt instances.json --dt 'shards/*.json'` to the last bit. Ray calls a function
again whose worker died; the same shard gives the same bytes, so that no number depends on it.
"""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import ray

from detap.engines.driver import evaluate
from detap.engines.shards import InputFiles, Shard
from detap.protocols import protocol


class Engine:
    """What :class:`detap.engines.Engine` asks for."""

    def __init__(self) -> None:
        ray.init(ignore_reinit_error=True, log_to_driver=False)
        self.workers = max(int(ray.cluster_resources().get("CPU", 1)), 1)
        self.threads = 1  # Ray gives each call one core

    def submit(
        self, name: str, function: Callable[..., Any], *arguments: Any, **options: Any
    ) -> Any:
        """Have a function called; Ray puts the values of what was submitted in their places."""
        return ray.remote(function).options(name=name, max_retries=3).remote(*arguments, **options)

    def gather(self, submitted: Sequence[Any]) -> list[Any]:
        """Return the values of what was submitted."""
        values: list[Any] = ray.get(list(submitted))
        return values

    def close(self) -> None:
        """End what was begun."""
        ray.shutdown()


def main(gt: str, shards: Sequence[str]) -> None:
    """Print the summary of shards of detections."""
    truth = InputFiles("coco", (gt,), folder=os.getcwd())
    rules = protocol("coco")
    tasks = [
        Shard(truth, InputFiles("coco", (path,), folder=os.getcwd()), rules)
        for path in sorted(shards)
    ]
    engine = Engine()
    try:
        # The images that no shard names have no detections: that is a shard of its own.
        result = evaluate(engine, tasks, rest=Shard(truth, None, rules)).compute()
    finally:
        engine.close()
    for name, value in result.summary.items():
        print(f"{name:6} {value!r}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
