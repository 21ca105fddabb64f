"""A progress bar at a terminal for work that takes long, at no cost for work that does not.

A thread sleeps; only if the work still goes on after two seconds does it import rich and draw. What
is at work is asked how far it is: it does not report, so that it loses nothing.
"""

import threading
from collections.abc import Callable

QUICK = 2.0
"""Seconds of work that need no bar."""

_EVERY = 0.1


class Progress:
    """What goes on, for a person at a terminal.

    Parameters
    ----------
    after : float
        Seconds before anything is drawn.
    """

    def __init__(self, after: float = QUICK) -> None:
        self._after = after
        self._what = ""
        self._fraction: Callable[[], float | None] | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def doing(self, what: str, fraction: Callable[[], float | None] | None = None) -> None:
        """Say what goes on from now, and how to ask which share of it is done, if that is known."""
        self._what, self._fraction = what, fraction
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Take the bar away, if there is one."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _watch(self) -> None:
        if self._over.wait(self._after):
            return
        from rich.console import Console  # only where the work is long
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(self._what, total=None)
            while not self._over.wait(_EVERY):
                share = self._fraction() if self._fraction is not None else None
                bar.update(
                    task,
                    description=self._what,
                    total=None if share is None else 1.0,
                    completed=share or 0.0,
                )
