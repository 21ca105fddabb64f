"""Compiled functions without the GIL do not acquire it on return.

Cython acquires the GIL at the end of every function that has Python objects, even on a path without
any: a reader that did so for each block waited while other threads imported. Such a block is
therefore a separate function, `with gil`.
"""

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from tests.conftest import ROOT

SOURCES = sorted(p for kind in ("*.pyx", "*.pxd") for p in (ROOT / "detap").rglob(kind))
_SIGNATURE = re.compile(r"^ *cdef\b[^\n(]*\((?:[^()]|\([^()]*\))*\)([^\n]*):\n", re.MULTILINE)


def partly_with_gil(source: str) -> Iterator[str]:
    """Yield the first line of each function without the GIL that has a block with it."""
    for match in _SIGNATURE.finditer(source):
        if "nogil" not in match[1]:
            continue
        first = match[0].splitlines()[0]
        if any(line.strip() == "with gil:" for line in _body(_depth(first), source[match.end() :])):
            yield first.strip()


def _body(depth: int, below: str) -> Iterator[str]:
    return takewhile(lambda line: not line.strip() or _depth(line) > depth, below.splitlines())


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "detap")))
def test_no_nogil_function_acquires_the_gil(path: Path) -> None:
    assert list(partly_with_gil(path.read_text())) == []


def test_such_a_function_is_detected() -> None:
    source = """
cdef class Scan:
    cdef int read(
        self, int (*how)(int) noexcept nogil
    ) noexcept nogil:
        if self.plain:
            return 1
        with gil:
            return self.reader()

    cdef int ask(self) noexcept with gil:
        return self.reader()

def wanted():
    with nogil:
        with gil:
            pass
"""
    assert list(partly_with_gil(source)) == ["cdef int read("]
