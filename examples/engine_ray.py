"""Evaluate shards with Ray, using the same two functions as `detap eval --engine dask`.

::

    python examples/engine_ray.py instances.json shards/*.json

Workers turn shards into partials and then accumulate classes; the metrics have the same bits as
`detap eval --gt instances.json --dt 'shards/*.json'`. If a worker dies, Ray calls the function
again; the same shard gives the same bytes, so no metric depends on it.
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
    """Implementation of :class:`detap.engines.Engine`."""

    def __init__(self) -> None:
        ray.init(ignore_reinit_error=True, log_to_driver=False)
        self.workers = max(int(ray.cluster_resources().get("CPU", 1)), 1)
        self.threads = 1  # Ray gives each call one core

    def submit(
        self, name: str, function: Callable[..., Any], *arguments: Any, **options: Any
    ) -> Any:
        """Submit a function; Ray replaces submitted arguments by their values."""
        return ray.remote(function).options(name=name, max_retries=3).remote(*arguments, **options)

    def gather(self, submitted: Sequence[Any]) -> list[Any]:
        """Return the values of submitted calls."""
        values: list[Any] = ray.get(list(submitted))
        return values

    def close(self) -> None:
        """Shut down Ray."""
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
        result = evaluate(engine, tasks, remaining=Shard(truth, None, rules)).compute()
    finally:
        engine.close()
    for name, value in result.summary.items():
        print(f"{name:6} {value!r}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
