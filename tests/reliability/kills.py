"""Kill the command at random moments: the report must be the old or the new one, complete.

A few kills in the suite; ``python -m tests.reliability kills --count 1000`` for many.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.coco import results_of, saved, truth_of
from tests.reliability.runner import ROOT

IMAGES = 30


@dataclass
class Kills:
    """Outcomes of the kills."""

    reports: Counter[str] = field(default_factory=Counter)  # "old" or "new" afterwards
    statuses: Counter[int] = field(default_factory=Counter)  # negative for a signal
    leftovers: int = 0  # unfinished files next to the report

    def clear(self, folder: Path) -> None:
        """Count and remove unfinished files."""
        for entry in [*folder.glob("*.tmp")]:
            self.leftovers += 1
            entry.unlink()


def write_inputs(folder: Path, classes: int = 400) -> None:
    """Write inputs of many classes, so that writing their report takes a while."""
    chance = random.Random(5)
    rows = [
        (n % IMAGES + 1, n % classes + 1, [chance.randrange(400), chance.randrange(400), 40, 30])
        for n in range(3 * classes)
    ]
    names = {n: f"class {n}" for n in range(1, classes + 1)}
    detections = [row | {"score": round(chance.random(), 4)} for row in results_of(rows)]
    saved(folder, truth_of(rows, names, range(1, IMAGES + 1), size=(500, 500)), detections)
    (folder / "fewer.json").write_text(json.dumps(detections[::2]))


def command(detections: str) -> list[str]:
    line = [sys.executable, "-m", "detap", "eval", "--format", "coco", "--gt", "gt.json"]
    return [*line, "--dt", detections, "-o", "report.json", "--output-format", "csv"]


def hear_signals() -> None:
    """Restore the default signal handlers in a child: under nohup it inherits ignored ones."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


UNBORN = b"Fatal Python error: "
"""Python's message if it fails during its own start, before detap is loaded."""


def is_unborn(said: bytes) -> bool:
    """Return True if stderr shows that Python failed before it ran detap.

    If interrupted then, Python exits with 1, which detap cannot change.
    """
    if said.startswith(UNBORN):
        return True
    return b"Traceback" in said and f"{ROOT}/detap/".encode() not in said


def start(folder: Path, detections: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command(detections),
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=hear_signals,  # noqa: PLW1509 - no threads here
    )


def finish(process: "subprocess.Popen[bytes]") -> bytes:
    assert process.stderr is not None
    with process.stderr:
        said = process.stderr.read()
    process.wait(60)
    return said


def run(folder: Path, count: int, seed: int = 1, how: signal.Signals = signal.SIGKILL) -> Kills:
    """Kill `count` runs in an empty folder; raise if a report is neither the old nor the new."""
    write_inputs(folder)
    report = folder / "report.json"
    versions, seconds = {}, 0.0
    for name in ("dt.json", "fewer.json"):
        began = time.monotonic()
        assert finish(start(folder, name)).find(b"Traceback") < 0
        seconds = max(seconds, time.monotonic() - began)
        versions[name] = report.read_bytes()
    assert versions["dt.json"] != versions["fewer.json"]
    chance = random.Random(seed)
    kills = Kills()
    before = "fewer.json"
    for number in range(count):
        after = "dt.json" if before == "fewer.json" else "fewer.json"
        process = start(folder, after)
        # Half of the moments over the whole run, half in its end, where the report is written.
        share = chance.random() if number % 2 else chance.uniform(0.7, 1.05)
        time.sleep(share * seconds)
        process.send_signal(how)
        said = finish(process)
        kills.statuses[-how if is_unborn(said) else process.returncode] += 1
        # An interrupt before the command line is loaded is shown by Python itself.
        assert b"Traceback" not in said or b"detap/cli/" not in said, said
        now = report.read_bytes() if report.exists() else b""
        kills.clear(folder)
        if now == versions[after]:
            kills.reports["new"] += 1
            before = after
        elif now == versions[before]:
            kills.reports["old"] += 1
        else:
            raise AssertionError(f"kill {number}: a report of {len(now)} bytes that is neither")
    return kills


WRITING = """
import sys
from detap.io.writing import write
versions = [bytes([65 + n]) * size for n, size in ((0, 300_000), (1, 900_000))]
print("ready", flush=True)
for turn in range(10**9):
    write("report.json", versions[turn % 2])
"""
"""Only writing, so that every kill hits it."""


def run_writes(folder: Path, count: int, seed: int = 1) -> Kills:
    """Kill a process that only writes reports; raise if one is neither old nor new."""
    report = folder / "report.json"
    report.write_bytes(b"A" * 300_000)
    chance = random.Random(seed)
    kills = Kills()
    for number in range(count):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITING],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        with process.stdout:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(chance.uniform(0, 0.05))
            process.kill()
            process.wait(60)
        kills.statuses[process.returncode] += 1
        kills.clear(folder)
        now = report.read_bytes()
        if now not in (b"A" * 300_000, b"B" * 900_000):
            raise AssertionError(f"kill {number}: a report of {len(now)} bytes that is neither")
        kills.reports["old" if now[:1] == b"A" else "new"] += 1
    return kills
