"""Time and peak memory of whole processes, and statistics of them.

This module uses only the standard library and little memory: on Linux a process starts with the
peak memory of its parent, so the benchmark has to stay smaller than anything it measures.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

SLOW = 20.0
"""Seconds. A peer whose trial took longer is run three times only."""


@dataclass(frozen=True, slots=True)
class Run:
    """Cost of one process.

    Attributes
    ----------
    wall, user, system : float
        Seconds; the latter two are counted by the kernel over all threads.
    peak : int
        Peak resident memory in bytes, including pages of mapped files.
    """

    wall: float
    user: float
    system: float
    peak: int

    @property
    def processor(self) -> float:
        return self.user + self.system


@dataclass(frozen=True, slots=True)
class Spread:
    """Minimum, median and maximum of a few numbers."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(min(values), median(values), max(values))


class CommandError(Exception):
    """Failure of a measured command, which has no time therefore."""


def run(command: Sequence[str], environment: dict[str, str] | None = None) -> tuple[Run, str]:
    """Run a command and return its cost and its stdout.

    Its stdout is a pipe that is read concurrently, its stderr a file.
    """
    with tempfile.TemporaryFile() as complaints:
        start = time.perf_counter()
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env={**os.environ, **(environment or {})},
        )
        assert process.stdout is not None
        with process.stdout as pipe:
            written = pipe.read()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            complaints.seek(0)
            said = complaints.read().decode(errors="replace").strip()[-2000:]
            raise CommandError(f"{' '.join(command)}: status {process.returncode}\n{said}")
    unit = 1 if sys.platform == "darwin" else 1024
    cost = Run(wall, usage.ru_utime, usage.ru_stime, usage.ru_maxrss * unit)
    return cost, written.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Pairs:
    """Runs of two commands in alternation; runs with the same index are adjacent in time."""

    ours: list[Run]
    theirs: list[Run]

    def ratios(self, cost: str = "wall") -> list[float]:
        """Return ours divided by theirs, pair by pair."""
        return [
            getattr(one, cost) / getattr(other, cost)
            for one, other in zip(self.ours, self.theirs, strict=True)
        ]


def alternate(
    ours: Sequence[str],
    theirs: Sequence[str],
    pairs: int,
    *,
    measure: Callable[[Sequence[str]], Run] | None = None,
) -> Pairs:
    """Run two commands alternately; the first one changes from pair to pair, against drift."""
    timed = measure or (lambda command: run(command)[0])
    result = Pairs([], [])
    for number in range(pairs):
        if number % 2 == 0:
            result.ours.append(timed(ours))
            result.theirs.append(timed(theirs))
        else:
            result.theirs.append(timed(theirs))
            result.ours.append(timed(ours))
    return result


def pairs_for(trial: Run, runs: int) -> int:
    """Return the number of pairs to run, given the time of one run."""
    return min(runs, 3) if trial.wall > SLOW else runs


def summary(runs: Sequence[Run]) -> dict[str, float]:
    """Return the medians of a command's runs and the range of its wall times."""
    wall = Spread.of([entry.wall for entry in runs])
    return {
        "runs": len(runs),
        "wall": wall.median,
        "wall_low": wall.low,
        "wall_high": wall.high,
        "processor": median(entry.processor for entry in runs),
        "peak": median(entry.peak for entry in runs),
    }


def comparison(pairs: Pairs) -> dict[str, Any]:
    """Return the recorded statistics of two commands run in alternation."""
    return {
        "ours": summary(pairs.ours),
        "theirs": summary(pairs.theirs),
        "ratio": asdict(Spread.of(pairs.ratios())),
        "processor_ratio": asdict(Spread.of(pairs.ratios("processor"))),
        "memory_ratio": asdict(Spread.of(pairs.ratios("peak"))),
        "samples": {
            "ours": [asdict(entry) for entry in pairs.ours],
            "theirs": [asdict(entry) for entry in pairs.theirs],
        },
    }


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Fit a straight line; return its slope, intercept and R squared."""
    n = len(points)
    mean_x = sum(x for x, _ in points) / n
    mean_y = sum(y for _, y in points) / n
    spread_x = sum((x - mean_x) ** 2 for x, _ in points)
    spread_y = sum((y - mean_y) ** 2 for _, y in points)
    together = sum((x - mean_x) * (y - mean_y) for x, y in points)
    slope = together / spread_x
    share = together**2 / (spread_x * spread_y) if spread_y else 1.0
    return slope, mean_y - slope * mean_x, share


def largest_difference(ours: Sequence[float | None], theirs: Sequence[float | None]) -> float:
    """Return the largest difference of two lists; undefined equals only undefined."""
    if len(ours) != len(theirs):
        return float("inf")
    worst = 0.0
    for one, other in zip(ours, theirs, strict=True):
        if (one is None) != (other is None):
            return float("inf")
        if one is not None and other is not None:
            worst = max(worst, abs(one - other))
    return worst
