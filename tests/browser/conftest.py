"""Debian's Chromium, driven by Playwright, without network access."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = os.environ.get("DETAP_CHROMIUM", "/usr/bin/chromium")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Return a browser, or skip with what is missing."""
    for module in ("jinja2", "PIL"):
        pytest.importorskip(module, reason="the extra detap[report] is not installed")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the extra detap[browser] is not installed"
    )
    if not Path(CHROMIUM).exists():
        pytest.skip(f"there is no browser: no file {CHROMIUM}; set DETAP_CHROMIUM")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """Return axe-core's script, or skip."""
    path = os.environ.get("DETAP_AXE")
    if not path or not Path(path).is_file():
        pytest.skip("axe-core is absent: set DETAP_AXE to its axe.min.js")
    return Path(path).read_text("utf-8")
