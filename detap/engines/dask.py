"""Dask engine: a local cluster or an existing distributed scheduler."""

import logging
import os
import signal
import sys
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import active_children
from multiprocessing.resource_tracker import ensure_running
from threading import current_thread, main_thread
from typing import Any
from uuid import uuid4

from detap.errors import InputError, Problem, UsageError


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Defer signals while worker processes start.

    A starting process that is interrupted prints a traceback. Workers ignore Ctrl-C: the process
    that started them stops them.
    """
    with _sigterm_deferred(), _interrupts_blocked():
        yield


@contextmanager
def _sigterm_deferred() -> Iterator[None]:
    """Defer SIGTERM until the block ends, without blocking it in child processes."""
    previous = signal.getsignal(signal.SIGTERM)
    if current_thread() is not main_thread() or previous is None:
        yield
        return
    received: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
        if received:
            signal.raise_signal(signal.SIGTERM)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C in processes started inside the block."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Started inside the block, the resource tracker would unblock interrupts. After an
    # interrupted run it warns of leaked resources, although it removes them.
    sys.warnoptions.append("ignore:resource_tracker")
    ensure_running()
    sys.warnoptions.pop()
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


RETRIES = 2
"""Number of retries of a failed function."""

NO_WORKERS_TIMEOUT = 60.0
"""Seconds without workers after which a run fails."""


_LEAN = {
    "distributed.worker.profile.enabled": False,
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 27,
}
"""Settings of local workers: no profiler, and freed memory is kept for the next shard."""


class Engine:
    """Runs functions by Dask; see :class:`detap.engines.Engine`.

    Parameters
    ----------
    scheduler : str, optional
        The address of a running scheduler, such as ``tcp://10.0.0.1:8786``; by default one worker
        per core is started on this machine.

    Raises
    ------
    UsageError
        If Dask is not installed, or no scheduler answers at the address.
    """

    def __init__(self, scheduler: str | None = None) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise UsageError(f"--engine dask requires {error.name}; install detap[dask]") from error
        # Tasks of an interrupted run log tracebacks.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        self._cluster: Any = None
        self._existing_processes = active_children()
        if scheduler is None:
            self._cluster = self._start_workers()
        try:
            self._client = Client(scheduler or self._cluster, timeout=30)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"--scheduler {scheduler}: no scheduler answers there ({error}); give the address "
                "that dask scheduler prints"
            ) from error
        self._names: dict[str, str] = {}

    @property
    def workers(self) -> int:
        """The number of workers."""
        return max(len(self._workers), 1)

    @property
    def threads(self) -> int:
        """The number of threads that a function running alone may use."""
        allowed = [worker["nthreads"] for worker in self._workers.values()]
        return max(sum(allowed) if self._cluster is not None else min(allowed, default=1), 1)

    @property
    def _workers(self) -> dict[str, Any]:
        workers: dict[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
        return workers

    def submit(
        self, name: str, function: Callable[..., Any], *arguments: Any, **options: Any
    ) -> Any:
        """Schedule a function call on values or results of this method."""
        key = f"{function.__name__}-{uuid4().hex}"
        self._names[key] = name
        return self._client.submit(
            function, *arguments, key=key, pure=False, retries=RETRIES, **options
        )

    def gather(self, submitted: Sequence[Any]) -> list[Any]:
        """Return the values of submitted calls."""
        from distributed.scheduler import KilledWorker, NoWorkerError

        try:
            values: list[Any] = self._client.gather(list(submitted))
        except NoWorkerError as error:
            message = f"--engine dask: for {error.timeout:.0f} s no worker was left"
            hint = "see the workers' logs; they may need more memory"
            raise UsageError(f"{message}; {hint}") from None
        except KilledWorker as error:
            name = self._names.get(str(error.task), str(error.task))
            message = "every worker that evaluated it died"
            hint = "see the workers' logs; they may need more memory"
            raise InputError(Problem(name, "", message, hint)) from None
        except (OSError, CancelledError) as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise UsageError(f"the scheduler of --engine dask went away ({reason})") from error
        return values

    def close(self) -> None:
        """Close the client and stop the workers started for it."""
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()
            self._stop_workers()

    def _start_workers(self) -> Any:
        """Start a worker for each core; start all again if one dies before it is ready."""
        import dask
        from distributed import LocalCluster

        # Dask does not replace a worker that dies while starting. Without a timeout, a run without
        # workers would wait forever.
        settings = {"distributed.scheduler.no-workers-timeout": NO_WORKERS_TIMEOUT, **_LEAN}
        for _ in range(1 + RETRIES):
            try:
                with _signals_deferred(), dask.config.set(settings):
                    return LocalCluster(
                        n_workers=os.cpu_count() or 1,
                        threads_per_worker=1,
                        dashboard_address="127.0.0.1:0",
                        silence_logs=logging.CRITICAL,
                    )
            except RuntimeError as error:
                self._stop_workers()
                reason = str(error)
            except BaseException:  # e.g. an interrupt: starting workers would wait for a minute
                self._stop_workers()
                raise
        raise UsageError(
            f"--engine dask: the workers died {1 + RETRIES} times while starting ({reason}); give "
            "them more memory, or start dask scheduler and dask worker and give --scheduler"
        )

    def _stop_workers(self) -> None:
        """Kill the worker processes that are still running."""
        for child in active_children():
            if child not in self._existing_processes:
                child.kill()
