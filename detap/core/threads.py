"""Threads that share work; results do not depend on their number."""

import os
import sys
from collections.abc import Callable
from threading import Thread

if sys.platform != "win32":
    from resource import RLIMIT_AS, getrlimit

SMALL_WORK = 20_000
"""Fewer boxes are not worth a second thread."""

MIN_ADDRESS_SPACE = 2 << 30
"""Bytes of address space below which no thread is started."""


def memory_is_tight() -> bool:
    """Return True if address space is too small for threads."""
    # A thread reserves tens of MiB; one that fails to start can hang its starter, and libraries
    # loaded at the same time lack the memory.
    if sys.platform == "win32":
        return False
    return 0 <= getrlimit(RLIMIT_AS)[0] < MIN_ADDRESS_SPACE  # -1: unlimited


def thread_count(work: int) -> int:
    """Return the number of threads for a number of boxes."""
    if work < SMALL_WORK:
        return 1
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        return os.cpu_count() or 1


def run_threads(work: Callable[[], None], threads: int) -> None:
    """Run `work` in several threads, including this one; raise the first exception."""
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # raised in the caller's thread
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


def run_chunks(work: Callable[[int, int], None], count: int, step: int, threads: int) -> None:
    """Run `work` for ranges of `step` numbers up to `count`, which several threads share."""
    starts = iter(range(0, count, step))  # next() is atomic under the GIL

    def work_chunks() -> None:
        for low in starts:
            work(low, min(low + step, count))

    run_threads(work_chunks, min(threads, -(-count // step)))
