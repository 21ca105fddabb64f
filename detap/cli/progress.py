"""A progress bar for long work at a terminal.

A thread waits two seconds; if the work is still running, it imports rich and draws. The thread
polls the progress, so that short work has no overhead.
"""

import threading
from collections.abc import Callable

QUICK = 2.0  # seconds of work without a bar
_EVERY = 0.1


class Progress:
    """A progress bar that is drawn after a delay in seconds."""

    def __init__(self, delay: float = QUICK) -> None:
        self._delay = delay
        self._step = ""
        self._fraction: Callable[[], float | None] | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def show(self, step: str, fraction: Callable[[], float | None] | None = None) -> None:
        """Show a step; `fraction` returns its completed fraction, if known."""
        self._step, self._fraction = step, fraction
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Remove the bar, if any."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _watch(self) -> None:
        if self._stopped.wait(self._delay):
            return
        from rich import console, progress  # lazy import (start-up time)

        columns = (
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TimeElapsedColumn(),
        )
        with progress.Progress(
            *columns, console=console.Console(stderr=True), transient=True
        ) as bar:
            task = bar.add_task(self._step, total=None)
            while not self._stopped.wait(_EVERY):
                fraction = self._fraction() if self._fraction is not None else None
                bar.update(
                    task,
                    description=self._step,
                    total=None if fraction is None else 1.0,
                    completed=fraction or 0.0,
                )
