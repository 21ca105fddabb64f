"""Run cases through the command, in a worker or as separate processes."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.reliability.cases import Case

ROOT = Path(__file__).parents[2]
OLD = b"the old report\n"
FULL_DEVICE = Path("/dev/full").is_char_device()
"""True if /dev/full exists: a failed test run as root may have replaced it."""
SECONDS = 300
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
"""True with AddressSanitizer, which reserves terabytes of address space."""
MEMORY = 0 if SANITIZED else 2 << 30
"""Address space of a child: NumPy, lxml and the threads' stacks take most of it."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run."""

    status: int  # negative for a signal
    stdout: bytes
    stderr: bytes
    report: bytes | None  # None if there is nothing, or no regular file
    new_files: tuple[str, ...]
    late: bool  # killed after SECONDS
    seconds: float  # of the processor: other work on the machine does not count
    peak: int  # resident bytes


def arguments(case: Case, command: str = "eval") -> list[str]:
    """Return the command line of a case."""
    detections = [command, "--format", case.format, "--gt", case.gt, "--dt", case.dt]
    options = [*(("--iou-type", case.iou_type) if case.iou_type else ()), *case.options]
    if command == "compare":
        return ["compare", "--format", case.format, "--gt", case.gt, *options, case.dt, case.dt]
    if command == "eval" or case.row == "target":
        detections += ["-o", case.output]
    # What only an evaluation takes is no part of an examination.
    return [*detections, *options]


def report_path(case: Case, folder: Path) -> Path:
    return folder / case.output.removeprefix("json=")


def prepare(case: Case, folder: Path) -> set[str]:
    """Write the inputs and an old report; return the names in the folder."""
    folder.mkdir(parents=True)
    case.build(folder)
    if case.row != "target":
        report_path(case, folder).write_bytes(OLD)
    return {entry.name for entry in folder.iterdir()}


def _outcome(
    case: Case, folder: Path, before: set[str], streams: Path, ended: dict[str, Any]
) -> Outcome:
    path = report_path(case, folder)
    known = before | {path.name}
    return Outcome(
        status=ended["status"],
        stdout=(streams / "stdout").read_bytes(),
        stderr=(streams / "stderr").read_bytes(),
        report=path.read_bytes() if path.is_file() else None,
        new_files=tuple(sorted({entry.name for entry in folder.iterdir()} - known)),
        late=ended["late"],
        seconds=ended["seconds"],
        peak=ended["peak"],
    )


class Worker:
    """A process that runs cases in forked children."""

    def __init__(self) -> None:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
        environment = {k: v for k, v in environment.items() if not k.startswith("DETAP_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.reliability.worker"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, case: Case, work: Path, command: str = "eval") -> Outcome:
        """Build a case in `work` and run it."""
        folder, streams = work / "case", work / "output"
        before = prepare(case, folder)
        streams.mkdir()
        job = {
            "folder": str(folder),
            "arguments": arguments(case, command),
            "stdin": case.stdin,
            "stdout": str(streams / "stdout"),
            "stderr": str(streams / "stderr"),
            "seconds": SECONDS,
            "memory": MEMORY,
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return _outcome(case, folder, before, streams, json.loads(self.process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def run_process(
    line: Sequence[str],
    folder: Path,
    streams: Path,
    *,
    stdin: str = "",
    seconds: float = SECONDS,
    environment: dict[str, str] | None = None,
    memory: int = 0,
) -> dict[str, Any]:
    """Run a command line in a folder as a separate process; return how it ended."""
    streams.mkdir(exist_ok=True)

    def limit() -> None:
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    # A process begins with the peak memory of its parent: below that its own is not known.
    inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    with (
        open(folder / stdin if stdin else os.devnull, "rb") as source,
        open(streams / "stdout", "wb") as out,
        open(streams / "stderr", "wb") as err,
    ):
        process = subprocess.Popen(
            line,
            cwd=folder,
            stdin=source,
            stdout=out,
            stderr=err,
            env=environment,
            preexec_fn=limit,  # noqa: PLW1509 - no threads here
        )
        late = False
        while True:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            if time.monotonic() - started > seconds:
                late = True
                process.send_signal(signal.SIGKILL)
                _, status, usage = os.wait4(process.pid, 0)
                break
            time.sleep(0.005)
        process.returncode = os.waitstatus_to_exitcode(status)
    return {
        "status": process.returncode,
        "late": late,
        "seconds": usage.ru_utime + usage.ru_stime,
        "peak": usage.ru_maxrss * 1024 if usage.ru_maxrss > inherited else 0,
    }


def run_command(case: Case, work: Path, command: str = "eval") -> Outcome:
    """Build a case in `work` and run it as ``python -m detap``."""
    folder, streams = work / "case", work / "output"
    before = prepare(case, folder)
    line = [sys.executable, "-m", "detap", *arguments(case, command)]
    ended = run_process(
        line, folder, streams, stdin=case.stdin, environment=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    return _outcome(case, folder, before, streams, ended)
