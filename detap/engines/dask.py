"""Run functions by Dask, on workers started here or those of a running scheduler."""

import logging
import os
import signal
import sys
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import active_children
from multiprocessing.resource_tracker import ensure_running
from typing import Any
from uuid import uuid4

from detap.errors import InputError, Problem, UsageError

try:
    import dask
    import distributed
    from distributed.scheduler import KilledWorker, NoWorkerError
except ImportError as missing:
    raise UsageError(f"--engine dask requires {missing.name}; install detap[dask]") from missing

RETRIES = 2
NO_WORKERS_TIMEOUT = 60.0  # seconds


class Engine:
    """Workers that run functions; calls of a worker that dies are repeated.

    `scheduler` is the address of a running scheduler; by default, one worker per core is started.
    """

    def __init__(self, scheduler: str | None = None) -> None:
        # No tracebacks of interrupted tasks.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        dask.config.set(
            {
                "distributed.admin.large-graph-warning-threshold": "1 TiB",  # ground truth
                "distributed.scheduler.no-workers-timeout": NO_WORKERS_TIMEOUT,
                "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 27,  # faster
                "distributed.worker.profile.enabled": False,
            }
        )
        self._existing_processes = active_children()
        self._cluster: Any = self._start_workers() if scheduler is None else None
        try:
            self._client = distributed.Client(scheduler or self._cluster, timeout=30)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"--scheduler {scheduler}: no scheduler answers there ({error}); give the address "
                "that dask scheduler prints"
            ) from error
        self._names: dict[str, str] = {}
        self.workers = max(len(self._client.scheduler_info(n_workers=-1)["workers"]), 1)

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Schedule a call on values or results of this method; errors contain the name."""
        key = f"{function.__name__}-{uuid4().hex}"
        self._names[key] = name
        return self._client.submit(function, *arguments, key=key, pure=False, retries=RETRIES)

    def gather(self, submitted: Sequence[Any]) -> list[Any]:
        """Return the values of submitted calls, or raise the error of one."""
        hint = "see the workers' logs; they may need more memory"
        try:
            return list(self._client.gather(list(submitted)))
        except NoWorkerError as error:
            message = f"--engine dask: for {error.timeout:.0f} s no worker was left"
            raise UsageError(f"{message}; {hint}") from None
        except KilledWorker as error:
            name = self._names.get(str(error.task), str(error.task))
            message = "every worker that evaluated it died"
            raise InputError(Problem(name, "", message, hint)) from None
        except (OSError, CancelledError) as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise UsageError(f"the scheduler of --engine dask went away ({reason})") from error

    def close(self) -> None:
        """Close the client and stop the workers started for it."""
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()
            self._stop_workers()

    def _start_workers(self) -> Any:
        """Start a worker for each core; start all again if one dies before it is ready."""
        for _ in range(1 + RETRIES):
            try:
                with _signals_blocked():
                    return distributed.LocalCluster(
                        n_workers=os.cpu_count() or 1,
                        threads_per_worker=1,
                        dashboard_address="127.0.0.1:0",
                        silence_logs=logging.CRITICAL,
                    )
            except BaseException as error:  # also interrupts: starting workers wait for a minute
                self._stop_workers()
                if not isinstance(error, RuntimeError):
                    raise
                reason = str(error)
        raise UsageError(
            f"--engine dask: the workers died {1 + RETRIES} times while starting ({reason}); give "
            "them more memory, or start dask scheduler and dask worker and give --scheduler"
        )

    def _stop_workers(self) -> None:
        """Kill the worker processes that are still running."""
        for child in active_children():
            if child not in self._existing_processes:
                child.kill()


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block Ctrl-C and SIGTERM; a process that is interrupted while starting prints a traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Started inside the block, the resource tracker would unblock signals. After an interrupted
    # run it warns of leaked resources, although it removes them.
    sys.warnoptions.append("ignore:resource_tracker")
    ensure_running()
    sys.warnoptions.pop()
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
