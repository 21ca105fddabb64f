"""Run `python -m detap` in forks of one process that has imported detap and NumPy already.

A process of its own takes 0.2 s to start, most of the time of a small command. This script reads a
request per line (JSON) and answers with the exit status. The first request names no command: it
checks where detap is imported from.
"""

import gc
import json
import os
import pkgutil
import runpy
import signal
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

import detap

LEFT_OUT = ("detap.torch", "detap.ranking.torch", "detap.engines", "detap.pytest_plugin")


def import_all() -> None:
    """Import every module of detap, except those of other frameworks."""
    for module in pkgutil.walk_packages(detap.__path__, "detap."):
        if not module.name.startswith(LEFT_OUT) and not module.name.endswith("__main__"):
            with suppress(ImportError):
                import_module(module.name)


def become(request: dict[str, Any]) -> None:
    """Run a command in this process, which ends with it."""
    signal.alarm(request["timeout"])
    os.chdir(request["folder"])
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        flags = os.O_RDONLY if name == "stdin" else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(request[name], flags, 0o600), number)
    os.environ["COLUMNS"] = str(request["columns"])
    sys.argv = request["arguments"]
    if sys.argv[0] == "detap":
        runpy.run_module("detap", run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


def main() -> None:
    """Answer requests until the input ends."""
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    import_all()
    gc.freeze()
    print(detap.__file__, file=answers, flush=True)
    while line := requests.readline():
        child = os.fork()
        if child == 0:
            become(json.loads(line))
            return
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, file=answers, flush=True)


if __name__ == "__main__":
    main()
