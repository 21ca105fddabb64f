"""Work that several threads share, in pieces that no result depends on the sharing of."""

import os
from collections.abc import Callable
from threading import Thread

SMALL_WORK = 20_000
"""Below so many boxes a second thread costs more than it brings."""


def thread_count(work: int) -> int:
    """Return how many threads suit so many boxes on this machine."""
    if work < SMALL_WORK:
        return 1
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def share(work: Callable[[], None], threads: int) -> None:
    """Let so many threads, this one among them, call `work`, which takes pieces until none is left.

    Raises
    ------
    BaseException
        The first that any of them ended with, once all have ended.
    """
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # handed to the caller's thread below
            failures.append(error)

    helpers = [Thread(target=guarded, daemon=True) for _ in range(threads - 1)]
    for helper in helpers:
        helper.start()
    guarded()
    for helper in helpers:
        helper.join()
    if failures:
        raise failures[0]
