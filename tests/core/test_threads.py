"""Number of threads that share work: by its size, allowed processors and address space."""

import os
import sys
from threading import get_ident

import pytest

from detap.core import threads

UNLIMITED = -1
GIB = 1 << 30


def limit_address_space(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(threads, "getrlimit", lambda _: (limit, limit))


@pytest.mark.parametrize(
    ("limit", "tight"),
    [(UNLIMITED, False), (0, True), (2 * GIB - 1, True), (2 * GIB, False), (8 * GIB, False)],
)
def test_memory_is_tight_below_two_gib_of_address_space(
    monkeypatch: pytest.MonkeyPatch, limit: int, tight: bool
) -> None:
    limit_address_space(monkeypatch, limit)
    assert threads.memory_is_tight() is tight


def test_windows_has_no_limit_of_the_address_space(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_address_space(monkeypatch, 0)
    monkeypatch.setattr(sys, "platform", "win32")
    assert threads.memory_is_tight() is False


def test_few_boxes_get_one_thread_and_many_one_per_allowed_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 3}, raising=False)
    assert threads.thread_count(19_999) == 1
    assert threads.thread_count(20_000) == 3


@pytest.mark.parametrize(("processors", "count"), [(6, 6), (None, 1)])
def test_every_processor_counts_where_the_allowed_ones_are_unknown(
    monkeypatch: pytest.MonkeyPatch, processors: int | None, count: int
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    assert threads.thread_count(20_000) == count


@pytest.mark.parametrize(("limit", "calls"), [(UNLIMITED, 3), (GIB, 1)])
def test_work_runs_once_per_thread_and_in_one_where_memory_is_tight(
    monkeypatch: pytest.MonkeyPatch, limit: int, calls: int
) -> None:
    limit_address_space(monkeypatch, limit)
    callers: list[int] = []
    threads.run_threads(lambda: callers.append(get_ident()), 3)
    assert len(callers) == calls
    assert get_ident() in callers


def test_the_first_exception_of_a_thread_is_raised() -> None:
    def work() -> None:
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        threads.run_threads(work, 3)
