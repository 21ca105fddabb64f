"""Cython sources."""

import re

import pytest

from tests.conftest import ROOT

SOURCES = sorted((ROOT / "detap").rglob("*.pyx"))


@pytest.mark.skipif(not SOURCES, reason="an installed package has no sources")
def test_no_index_counts_from_the_end() -> None:
    """With ``wraparound=False`` Cython passes it to NumPy's C slot, which NumPy 2.5 refuses."""
    assert '"wraparound": False' in (ROOT / "setup.py").read_text("utf-8")
    uses = [
        f"{path.name}:{number}"
        for path in SOURCES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.search(r"[\w)]\[([^],]*:)?-\w+\]", line.partition("#")[0])
    ]
    assert uses == []
