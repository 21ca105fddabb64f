"""Whole processes, timed by the kernel, and what is made of the times.

Only the standard library, and nothing large is ever held here: on Linux a process begins with the
peak memory of the one that started it, so the benchmark itself has to stay smaller than anything
that it measures.
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
    """One process from its start to its end.

    Attributes
    ----------
    wall, user, system : float
        Seconds; the latter two as the kernel counted them over all threads.
    peak : int
        Most memory resident at once, in bytes. Pages of mapped files count.
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
    """Smallest, median and largest of a few numbers."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(min(values), median(values), max(values))


class CommandError(Exception):
    """A measured command failed: nothing may be said about its speed."""


def run(command: Sequence[str], environment: dict[str, str] | None = None) -> tuple[Run, str]:
    """Run a command to its end and return its cost and what it wrote to stdout.

    Its stdout is a pipe that is read as it writes, its stderr a file.
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
    """One command run in alternation with another: run i of each were neighbours in time."""

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
    """Run two commands in turn. Who goes first changes from pair to pair, against drift."""
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
    """Return how many pairs to run, given how long one run took."""
    return min(runs, 3) if trial.wall > SLOW else runs


def summary(runs: Sequence[Run]) -> dict[str, float]:
    """Return the medians of a command's runs, and how far its wall times spread."""
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
    """Return what is kept of two commands run in alternation."""
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
    """Fit a straight line; return its slope, its height at 0, and R squared."""
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
    """Return by how much two lists of numbers differ at most; undefined equals undefined only."""
    if len(ours) != len(theirs):
        return float("inf")
    worst = 0.0
    for one, other in zip(ours, theirs, strict=True):
        if (one is None) != (other is None):
            return float("inf")
        if one is not None and other is not None:
            worst = max(worst, abs(one - other))
    return worst
