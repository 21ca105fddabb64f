"""Work that several threads share, in pieces that no result depends on the sharing of."""

import os
import sys
from collections.abc import Callable
from threading import Thread

if sys.platform != "win32":
    from resource import RLIMIT_AS, getrlimit

SMALL_WORK = 20_000
"""Below so many boxes a second thread costs more than it brings."""


LARGE = 1 << 16
"""Rows up to which a class is never taken apart."""

TIGHT = 2 << 30
"""Bytes of address space below which no thread is begun."""


def memory_is_tight() -> bool:
    """Return whether threads would be a risk.

    Each asks for tens of MiB, one that finds no memory to begin with hangs its starter, and what
    they hold is missing where a library is loaded at the same time.
    """
    if sys.platform == "win32":
        return False
    return 0 <= getrlimit(RLIMIT_AS)[0] < TIGHT  # -1 is no limit


def thread_count(work: int) -> int:
    """Return how many threads suit so many boxes on this machine."""
    if work < SMALL_WORK:
        return 1
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def fair_share(rows: int, threads: int) -> int:
    """Return how many rows of a class one thread may take: of more, the others would wait.

    Taking a class apart costs up to a quarter of its time.
    """
    if threads == 1 or memory_is_tight():
        return rows
    return max(LARGE, rows * 5 // (4 * threads))


def share(work: Callable[[], None], threads: int) -> None:
    """Let so many threads, this one among them, call `work`, which takes pieces until none is left.

    Where memory is tight, this one does it all.

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

    count = 0 if threads > 1 and memory_is_tight() else threads - 1
    helpers = [Thread(target=guarded, daemon=True) for _ in range(count)]
    for helper in helpers:
        helper.start()
    guarded()
    for helper in helpers:
        helper.join()
    if failures:
        raise failures[0]
