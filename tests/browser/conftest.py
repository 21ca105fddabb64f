"""Debian's Chromium, driven by Playwright, without network access."""

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from detap.cli import main
from tests.browser.pages import CLASSES, REAL, WIDE, Open
from tests.report.page.cases import (
    crowded_truth,
    write_case,
    write_page,
    write_pictures,
    write_truth,
)

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


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory, browser: Any) -> Path:
    """Return the page of the synthetic case, with images, a baseline, slices and earlier runs."""
    folder = tmp_path_factory.mktemp("page")
    write_pictures(folder)
    now = write_case(folder)
    kept = [str(folder / f"run-{number}.json") for number in (1, 2)]
    for dt, target in zip(("before.json", "dt.json"), kept, strict=True):
        arguments = [*now[:3], str(folder / dt), *now[4:]]
        assert main(["eval", *arguments, "-q", "-o", target]) == 0
    slices = folder / "slices.csv"
    slices.write_text("image,tag\n" + "".join(f"{n},even\n" for n in range(2, 25, 2)), "utf-8")
    return write_page(
        folder,
        *("--images", str(folder / "images")),
        *("--baseline-detections", str(folder / "before.json")),
        *("--slices", str(slices)),
        *(word for path in kept for word in ("--history", path)),
    )


@pytest.fixture(scope="session", params=list(CLASSES))
def whole_page(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, browser: Any
) -> tuple[str, Path]:
    """Return the name and the page of a real detector, or of a simulated one on 5,000 images."""
    folder, name = tmp_path_factory.mktemp("whole"), request.param
    if name not in REAL:
        return name, write_page(
            folder, names=tuple(f"class {n:02}" for n in range(80)), images=5000
        )
    data = request.getfixturevalue("real_data") / name
    gt, dt = (str(data / part) for part in REAL[name])
    page = folder / "page.html"
    assert main(["report", "--gt", gt, "--dt", dt, "-o", str(page), "-q"]) == 0
    return name, page


@pytest.fixture(scope="session")
def many_classes(tmp_path_factory: pytest.TempPathFactory, browser: Any) -> Path:
    """Return the page of 60 classes."""
    folder = tmp_path_factory.mktemp("many")
    return write_page(folder, names=tuple(f"class {n:02}" for n in range(60)))


@pytest.fixture(scope="session")
def page_of(tmp_path_factory: pytest.TempPathFactory, browser: Any) -> Callable[[int], Path]:
    """Return a function that returns the page of so many classes."""

    @cache
    def write_page_of(classes: int) -> Path:
        folder = tmp_path_factory.mktemp(f"classes-{classes}")
        inputs = write_truth(folder, crowded_truth(classes))
        assert main(["report", *inputs, "-o", str(folder / "page.html"), "-q"]) == 0
        return folder / "page.html"

    return write_page_of


@pytest.fixture(scope="session")
def lvis_page(tmp_path_factory: pytest.TempPathFactory, browser: Any, real_data: Path) -> Path:
    """Return a page of 1,230 classes."""
    page = tmp_path_factory.mktemp("lvis") / "page.html"
    gt = real_data / "lvis-val-100" / "lvis_val_100.json"
    dt = real_data / "lvis-val-100-results" / "lvis_results_bbox.json"
    inputs = ["--gt", str(gt), "--dt", str(dt), "--protocol", "lvis"]
    assert main(["report", *inputs, "-o", str(page), "-q"]) == 0
    return page


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Return a function that opens a page and finally checks that it reported nothing."""
    contexts, said, asked = [], [], []

    def show(
        path: Path,
        fragment: str = "",
        size: tuple[int, int] = WIDE,
        scheme: str = "light",
        **more: Any,
    ) -> Any:
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, **more
        )
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(20_000)
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(f"{path.as_uri()}{fragment}")
        tab.wait_for_function("!document.querySelector('[aria-busy]')")  # the images are unpacked
        return tab

    show.said, show.asked = said, asked  # type: ignore[attr-defined]
    yield show
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
