"""The data folder of a page, and pages whose images exceed their limit."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from detap.cli import main
from detap.report.page import assembly
from tests.browser.pages import Open
from tests.browser.test_shapes import drawn, write
from tests.report.page.cases import pictures_of, write_case, write_pictures


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, browser: Any) -> Path:
    """Return a folder of a page, and of its data in another one."""
    root = tmp_path_factory.mktemp("a page")
    write_pictures(root)
    words = [*write_case(root), "--images", str(root / "images"), "-q"]
    assert main(["report", *words, "-o", str(root / "whole.html")]) == 0
    data = ["--page-data", str(root / "the data #1")]
    assert main(["report", *words, *data, "-o", str(root / "page.html")]) == 0
    return root


def contents(tab: Any) -> list[str]:
    more = tab.locator("#gallery-more")
    while more.is_visible():
        more.click()
    texts: list[str] = tab.locator("#gallery-tiles li").all_inner_texts()
    return texts


def test_a_page_with_a_data_folder_shows_the_same(open_page: Open, folder: Path) -> None:
    whole, page = open_page(folder / "whole.html"), open_page(folder / "page.html")
    assert contents(page) == contents(whole)
    assert len(contents(page)) == 24
    assert len(pictures_of(folder / "page.html")) == 24
    assert (folder / "page.html").stat().st_size < (folder / "whole.html").stat().st_size
    # All pictures are loaded from the folder.
    asked = [url for url in open_page.asked if url.endswith(".webp")]  # type: ignore[attr-defined]
    assert len(set(asked)) == 24
    sizes = page.evaluate(
        """() => Promise.all([...document.querySelectorAll("#gallery-tiles image")].map((x) => {
          const image = new Image();
          image.src = x.getAttribute("href");
          return image.decode().then(() => image.naturalWidth);
        }))"""
    )
    assert sizes == [480] * 24


def test_a_page_without_its_data_folder_says_so(browser: Any, folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "page.html", tmp_path)
    tab = browser.new_page()
    tab.goto((tmp_path / "page.html").as_uri())
    text = tab.locator("#gallery-text")
    tab.wait_for_function("!document.querySelector('[aria-busy]')")
    assert text.inner_text() == "the%20data%20%231/images.js cannot be read."
    tab.close()


def test_eval_writes_a_data_folder(open_page: Open, tmp_path: Path, capsys: Any) -> None:
    words = ["eval", *write_case(tmp_path), "-q", "--page-data", str(tmp_path / "data")]
    assert main([*words, "-o", str(tmp_path / "page.html")]) == 0
    assert len(contents(open_page(tmp_path / "page.html"))) == 24
    for more in ([], ["-o", str(tmp_path / "a.html"), "-o", str(tmp_path / "b.html")]):
        assert main([*words, *more]) == 2
        message = "--page-data needs one HTML page; use -o page.html"
        assert message in capsys.readouterr().err


def test_a_page_on_stdout_has_no_data_folder(tmp_path: Path, capsys: Any) -> None:
    words = ["report", *write_case(tmp_path), "--page-data", str(tmp_path / "data"), "-o", "-"]
    assert main(words) == 2
    assert "--page-data needs a page in a file; use -o page.html" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("limit", [100_000, 10_000_000])
def test_images_beyond_the_limit_need_a_data_folder(
    open_page: Open, tmp_path: Path, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "MOST_BYTES", limit)
    words = ["report", *write_case(tmp_path), "-q", "-o", str(tmp_path / "page.html")]
    assert main(words) == 0
    note = "a page has at most 20 MB; use --page-data DIR"
    left_out = "The images are left out; see the notes."
    tab = open_page(tmp_path / "page.html")
    assert (tab.locator("#gallery-text").inner_text() == left_out) == (limit < 1_000_000)
    assert (note in (tmp_path / "page.html").read_text("utf-8")) == (limit < 1_000_000)
    assert main([*words, "--page-data", str(tmp_path / "data")]) == 0  # as the note says
    assert note not in (tmp_path / "page.html").read_text("utf-8")
    assert len(contents(open_page(tmp_path / "page.html"))) == 24


def test_masks_beyond_the_limit_are_boxes(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    square = {"segmentation": [[1.0, 2.0, 4.0, 2.0, 4.0, 6.0, 1.0, 6.0]]}
    files = write(tmp_path, square, square)
    page = tmp_path / "page.html"
    words = ["report", *files, "--protocol", "coco-segm", "-o", str(page)]
    from detap.report import packing

    has_shapes: list[bool] = []

    def packed(columns: Any) -> str:
        has_shapes.append(bool(columns["truths"]["shapes"]))
        return packing.packed(columns) + (" " * 30_000_000 if has_shapes[-1] else "")

    monkeypatch.setattr(assembly, "packed", packed)
    assert main(words) == 0
    assert has_shapes == [True, False]
    assert drawn(browser, page, "rect")[0] == ["1 2 3 4"]
    note = "masks, polygons and keypoints are drawn as boxes: a page has at most 20 MB"
    assert note in page.read_text("utf-8")
