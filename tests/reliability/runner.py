"""Runs cases through the command, in a worker or as real processes."""

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
"""Whether there is a device without room: a test that went wrong as root may have replaced it."""
SECONDS = 300
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
"""Whether AddressSanitizer is at work, which reserves terabytes and multiplies memory."""
MEMORY = 0 if SANITIZED else 2 << 30
"""Address space that a child may have: numpy, lxml and the threads' stacks take most of it."""


@dataclass(frozen=True)
class Outcome:
    """What a run left behind.

    Attributes
    ----------
    status : int
        The exit status; negative for a signal.
    stdout, stderr : bytes
        What was said.
    report : bytes or None
        What the report's path holds; None where there is nothing, or no regular file.
    strangers : tuple of str
        Entries of the folder that were not there before.
    late : bool
        Whether it was killed after `SECONDS`.
    seconds : float
        Of the processor: other work on the machine does not count.
    peak : int
        Resident bytes at most.
    """

    status: int
    stdout: bytes
    stderr: bytes
    report: bytes | None
    strangers: tuple[str, ...]
    late: bool
    seconds: float
    peak: int


def arguments(case: Case, command: str = "eval") -> list[str]:
    """Return the command line of a case."""
    detections = [command, "--format", case.format, "--gt", case.gt, "--dt", case.dt]
    options = [*(("--iou-type", case.iou_type) if case.iou_type else ()), *case.options]
    if command == "compare":
        return [
            "compare",
            "--format",
            case.format,
            "--gt",
            case.gt,
            *options,
            case.dt,
            case.dt,
        ]
    if command == "eval" or case.row == "target":
        detections += ["-o", case.output]
    # What only an evaluation takes is no part of an examination.
    return [*detections, *options]


def report_path(case: Case, folder: Path) -> Path:
    return folder / case.output.removeprefix("json=")


def prepare(case: Case, folder: Path) -> set[str]:
    """Write the inputs and an old report; return what the folder then holds."""
    folder.mkdir(parents=True)
    case.build(folder)
    if case.row != "target":
        report_path(case, folder).write_bytes(OLD)
    return {entry.name for entry in folder.iterdir()}


def _outcome(
    case: Case, folder: Path, before: set[str], aside: Path, ended: dict[str, Any]
) -> Outcome:
    path = report_path(case, folder)
    known = before | {path.name}
    return Outcome(
        status=ended["status"],
        stdout=(aside / "stdout").read_bytes(),
        stderr=(aside / "stderr").read_bytes(),
        report=path.read_bytes() if path.is_file() else None,
        strangers=tuple(sorted({entry.name for entry in folder.iterdir()} - known)),
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
        folder, aside = work / "case", work / "aside"
        before = prepare(case, folder)
        aside.mkdir()
        job = {
            "folder": str(folder),
            "arguments": arguments(case, command),
            "stdin": case.stdin,
            "stdout": str(aside / "stdout"),
            "stderr": str(aside / "stderr"),
            "seconds": SECONDS,
            "memory": MEMORY,
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return _outcome(case, folder, before, aside, json.loads(self.process.stdout.readline()))

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
    aside: Path,
    *,
    stdin: str = "",
    seconds: float = SECONDS,
    environment: dict[str, str] | None = None,
    memory: int = 0,
) -> dict[str, Any]:
    """Run any command line in a folder, in a process of its own; return how it ended."""
    aside.mkdir(exist_ok=True)

    def limit() -> None:
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    started = time.monotonic()
    with (
        open(folder / stdin if stdin else os.devnull, "rb") as source,
        open(aside / "stdout", "wb") as out,
        open(aside / "stderr", "wb") as err,
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
        "peak": usage.ru_maxrss * 1024,
    }


def run_command(case: Case, work: Path, command: str = "eval") -> Outcome:
    """Build a case in `work` and run it as ``python -m detap``."""
    folder, aside = work / "case", work / "aside"
    before = prepare(case, folder)
    line = [sys.executable, "-m", "detap", *arguments(case, command)]
    ended = run_process(
        line, folder, aside, stdin=case.stdin, environment=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    return _outcome(case, folder, before, aside, ended)
