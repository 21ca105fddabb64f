"""Run command lines in forked children: fast, and isolated like processes.

Reads one JSON object per line from stdin, writes one per line to stdout. Started by `runner`.
"""

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
from typing import Any, NoReturn

NEEDED = (
    *("detap.analysis.bootstrap", "detap.analysis.comparison", "detap.checks"),
    *("detap.checks.box_formats", "detap.checks.statistics", "detap.checks.sample"),
    *("detap.checks.mismatch", "detap.cli.commands.check", "detap.cli.commands.compare"),
    *("detap.cli.commands.eval", "detap.evaluation.scoring", "detap.evaluation.overlaps.keypoints"),
    *("detap.evaluation.overlaps.masks", "detap.formats.coco.results", "detap.formats.coco.truth"),
    *("detap.formats.coco.masks", "detap.formats.coco.format", "detap.io.digest"),
    *("detap.formats.voc.tables", "detap.report.sections.comparison"),
    *("detap.report.sections.data_checks", "detap.report.sections.power"),
    *("detap.report.writers.json", "detap.report.writers.text", "lxml.etree", "numpy.ma"),
    "numpy.random",
)
"""Modules that most commands import; a child imports only what its case needs in addition."""


def serve() -> None:
    """Answer jobs until stdin ends."""
    for name in NEEDED:  # imported once, here, and not in each child
        importlib.import_module(name)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """Run one job and return how it ended."""
    child = os.fork()
    if not child:
        run(job)
    late = False
    with _alarm(job["seconds"]):
        try:
            _, status, usage = os.wait4(child, 0)
        except TimeoutError:
            late = True
            os.kill(child, signal.SIGKILL)
            _, status, usage = os.wait4(child, 0)
    return {
        "status": os.waitstatus_to_exitcode(status),
        "late": late,
        "seconds": usage.ru_utime + usage.ru_stime,
        "peak": usage.ru_maxrss * 1024,
    }


@contextlib.contextmanager
def _alarm(seconds: int) -> Any:
    def ring(_: int, __: object) -> NoReturn:
        raise TimeoutError

    signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def run(job: dict[str, Any]) -> NoReturn:
    """Run the command in this process; never returns."""
    status = 70
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        os.chdir(job["folder"])
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        for stream, name, how in (
            (0, job["stdin"] or os.devnull, os.O_RDONLY),
            (1, job["stdout"], flags),
            (2, job["stderr"], flags),
        ):
            opened = os.open(name, how, 0o600)
            os.dup2(opened, stream)
            os.close(opened)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(0, encoding="utf-8", closefd=False),
            os.fdopen(1, "w", encoding="utf-8", closefd=False),
            os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False),
        )
        if job["memory"]:
            resource.setrlimit(resource.RLIMIT_AS, (job["memory"], job["memory"]))
        forbid_network()
        from detap.cli import main

        status = main(job["arguments"])
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException as error:
        with contextlib.suppress(Exception):
            print(f"the worker saw {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def forbid_network() -> None:
    """Exit if Python code creates a socket."""

    def hook(event: str, _: tuple[Any, ...]) -> None:
        if event.startswith(("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn")):
            os.write(2, f"forbidden: {event}\n".encode())
            os._exit(99)

    sys.addaudithook(hook)


if __name__ == "__main__":
    serve()
