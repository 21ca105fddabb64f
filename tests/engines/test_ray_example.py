"""The Ray example gives the metrics of one process."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ended, detap
from tests.cli.test_shards import JSON, WHOLE, shards
from tests.conftest import ROOT

__all__ = ["detap", "shards"]


def test_the_ray_example(shards: Path, detap: Callable[..., Ended]) -> None:
    pytest.importorskip("ray")
    paths = [f"dts/{n}.json" for n in range(5)]
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "engine_ray.py"), "gt.json", *paths],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stderr
    actual = dict(line.split() for line in ran.stdout.splitlines())
    one = json.loads(detap("eval", *WHOLE, *JSON).out)["summary"]
    assert actual == {name: repr(float("nan") if v is None else v) for name, v in one.items()}
