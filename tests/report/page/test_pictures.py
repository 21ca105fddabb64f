"""Thumbnails of the images of a folder."""

import base64
import io
import os
from pathlib import Path
from typing import Any

import pytest

Image = pytest.importorskip("PIL.Image", reason="the extra detap[report] is not installed")

from detap.formats.image_folders import ImageFolder  # noqa: E402
from detap.report.page import pictures  # noqa: E402 - after what it needs was asked for
from detap.report.page.pictures import Pictures, thumbnails  # noqa: E402
from tests.cli.conftest import Run  # noqa: E402
from tests.report.page.cases import SIZE, images_of, pictures_of, write_case, write_page  # noqa: E402


def draw(path: Path, size: tuple[int, int] = (640, 480), turn: int | None = None) -> None:
    """Write an image whose left half is red and whose right half is blue."""
    picture = Image.new("RGB", size, (0, 0, 255))
    picture.paste((255, 0, 0), (0, 0, size[0] // 2, size[1]))
    exif = Image.Exif()
    if turn is not None:
        exif[0x0112] = turn
    picture.save(path, exif=exif)


def thumbnails_of(
    folder: Path, images: dict[str, Any], names: dict[str, str] | None = None, **more: Any
) -> tuple[dict[str, tuple[str, int, int]], list[str]]:
    """Return the thumbnails of images in a folder, and the problems."""
    return thumbnails(Pictures(ImageFolder(str(folder)), names or {}), images, **more)


def decoded(uri: str) -> Any:
    head, _, data = uri.partition(",")
    assert head == "data:image/webp;base64"
    return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")


def reddish(color: tuple[int, ...]) -> bool:
    return color[0] > 150 > color[2]


def test_an_image_is_scaled_down(tmp_path: Path) -> None:
    draw(tmp_path / "a.jpg")
    shown, problems = thumbnails_of(tmp_path, {"a": (640, 480)})
    assert decoded(shown["a"][0]).size == (480, 360)
    assert shown["a"][1:] == (640, 480)
    assert problems == []


def test_exif_rotation_is_applied_if_annotations_match_it(tmp_path: Path) -> None:
    # Orientation 6: the top of the scene is at the right of the pixels as stored.
    draw(tmp_path / "a.jpg", turn=6)
    shown, problems = thumbnails_of(tmp_path, {"a": (480, 640)})
    upright = decoded(shown["a"][0])
    assert upright.size == (360, 480)
    assert reddish(upright.getpixel((180, 20)))
    assert not reddish(upright.getpixel((180, 460)))
    assert problems == []
    # And as its pixels lie where that is how it was annotated.
    shown, problems = thumbnails_of(tmp_path, {"a": (640, 480)})
    stored = decoded(shown["a"][0])
    assert stored.size == (480, 360)
    assert reddish(stored.getpixel((20, 180)))
    assert problems == []


@pytest.mark.parametrize(
    ("name", "file_name", "said"),
    [
        ("truncated", None, "truncated: the picture cannot be read: "),
        (
            "text",
            None,
            "text: the picture cannot be read: expected JPEG, PNG, WEBP, BMP, TIFF or GIF",
        ),
        ("folder.jpg", None, "folder.jpg: is a folder, expected a file"),
        ("fifo.jpg", None, "fifo.jpg: is a FIFO, expected a file"),
        ("../secret", None, "'../secret' is outside the image folder"),
        ("x", "../secret.jpg", "'../secret.jpg' is outside the image folder"),
        ("x", "/etc/passwd", "'/etc/passwd' is outside the image folder"),
        ("x", "a\0b.jpg", "is outside the image folder"),
        ("wide", None, "wide: the picture is too large (30000 x 5000 pixels)"),
        ("heavy", None, "heavy: the file is too large (0 MB)"),
    ],
)
def test_files_that_are_not_images_are_reported(
    tmp_path: Path,
    name: str,
    file_name: str | None,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "images"
    (folder / "folder.jpg").mkdir(parents=True)
    os.mkfifo(folder / "fifo.jpg")
    draw(tmp_path / "secret.jpg")
    draw(folder / "whole.jpg")
    (folder / "truncated.jpg").write_bytes((folder / "whole.jpg").read_bytes()[:1500])
    (folder / "text.jpg").write_text("no picture", "utf-8")
    if name == "wide":
        Image.new("1", (30_000, 5_000)).save(folder / "wide.png")
    if name == "heavy":
        (folder / "heavy.jpg").write_bytes(bytes(200_000))
        monkeypatch.setattr(pictures, "MOST_FILE_BYTES", 100_000)
    names = {} if file_name is None else {name: file_name}
    shown, problems = thumbnails_of(folder, {name: None, "whole": None}, names)
    assert list(shown) == ["whole"]
    (problem,) = problems
    assert said in problem


@pytest.mark.parametrize("suffix", [".jpe", ".JPE"])
def test_the_page_knows_the_image_suffixes_of_the_readers(tmp_path: Path, suffix: str) -> None:
    draw(tmp_path / "a.jpg")
    (tmp_path / "a.jpg").rename(tmp_path / f"a{suffix}")
    assert thumbnails_of(tmp_path, {"a": None})[0].keys() == {"a"}


def test_a_file_name_with_folders_matches_without_them(tmp_path: Path) -> None:
    draw(tmp_path / "a.jpg")
    assert thumbnails_of(tmp_path, {"1": None}, {"1": "train\\a.jpg"})[0].keys() == {"1"}
    assert thumbnails_of(tmp_path, {"1": None}, {"1": "train/a.jpg"})[0].keys() == {"1"}


def test_a_size_other_than_annotated_is_reported(tmp_path: Path) -> None:
    draw(tmp_path / "a.jpg")
    shown, problems = thumbnails_of(tmp_path, {"a": (1000, 200)})
    assert shown.keys() == {"a"}
    assert problems == [
        "a: the picture has 640 x 480 pixels, the annotations 1000 x 200; boxes are scaled"
    ]


def test_thumbnails_stop_at_the_size_limit(tmp_path: Path) -> None:
    for name in "abc":
        draw(tmp_path / f"{name}.jpg")
    one = len(thumbnails_of(tmp_path, {"a": None})[0]["a"][0])
    draw(tmp_path / "e.jpg")
    requested = dict.fromkeys("abcde")  # there is no d
    shown, problems = thumbnails_of(tmp_path, requested, max_bytes=2 * one + 1)
    assert list(shown) == ["a", "b"]
    assert problems == ["2 pictures left out: a page has at most 20 MB; use --page-data DIR"]


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "I;16", "1", "LA", "F"])
def test_images_of_any_mode(tmp_path: Path, mode: str) -> None:
    Image.new(mode, (50, 40)).save(tmp_path / "a.tiff")
    assert decoded(thumbnails_of(tmp_path, {"a": None})[0]["a"][0]).size == (50, 40)


def test_16_bit_images_are_rescaled(tmp_path: Path) -> None:
    picture = Image.new("I;16", (100, 40), 1000)
    picture.paste(1400, (50, 0, 100, 40))
    picture.save(tmp_path / "a.png")
    small = decoded(thumbnails_of(tmp_path, {"a": None})[0]["a"][0])
    assert small.getpixel((10, 20))[0] < 20
    assert small.getpixel((90, 20))[0] > 235


def test_the_command_shows_images_and_reports_missing_ones(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    for n in range(1, 20):
        draw(folder / f"{n}.png", SIZE)
    page = write_page(tmp_path, "--images", str(folder))
    names = images_of(page)["names"]
    assert {int(names[int(n)]) for n in pictures_of(page)} == set(range(1, 20))
    assert all(picture[1:] == list(SIZE) for picture in pictures_of(page).values())


def test_missing_images_are_counted_once(tmp_path: Path, command: Run) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    for n in range(1, 20):
        draw(folder / f"{n}.png", SIZE)
    page = tmp_path / "page.html"
    words = ["report", *write_case(tmp_path), "--images", str(folder), "-o", str(page)]
    # Of 24 images, 20 to 24 have no file.
    note = f"images without a file in {folder}: '20', '21', '22', ... (5) [images-missing]"
    assert command(*words).passed().err.count(f"info: {note}\n") == 1
    text = page.read_text("utf-8").replace("&#39;", "'")
    assert text.count(note) == 1
    assert "no such file" not in text
    for n in range(20, 25):
        draw(folder / f"{n}.jpg", SIZE)
    said = command(*words).passed().err
    assert "images-missing" not in said + page.read_text("utf-8")


@pytest.mark.parametrize("max_bytes", [10**7, 10**5])
def test_the_number_of_threads_changes_nothing(tmp_path: Path, max_bytes: int) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    images = dict.fromkeys(map(str, range(20)), (640, 480))
    for name in images:
        noise = Image.frombytes("RGB", (16, 12), os.urandom(3 * 16 * 12))
        noise.resize((640, 480)).save(folder / f"{name}.jpg")
    (folder / "0.jpg").unlink()
    (folder / "1.jpg").write_text("no picture", "utf-8")
    draw(folder / "2.jpg", (320, 480))
    alone, *others = (
        thumbnails_of(folder, images, max_bytes=max_bytes, threads=threads) for threads in (1, 2, 5)
    )
    shown, problems = alone
    assert [list(other[0].items()) for other in others] == [list(shown.items())] * 2
    assert others == [alone] * 2
    assert len(shown) == 18 if max_bytes == 10**7 else 1 < len(shown) < 18
    assert problems[0].startswith("1: the picture cannot be read: ")


def test_a_folder_without_images_is_reported(tmp_path: Path, command: Run) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    draw(folder / "other.png", SIZE)
    page = tmp_path / "page.html"
    words = ["report", *write_case(tmp_path), "--images", str(folder), "-o", str(page)]
    message = (
        f"{folder} has no image file of the data set; the page has no images [no-images-found]"
    )
    assert f"warning: {message}\n" in command(*words).passed().err
    assert message in page.read_text("utf-8")
    draw(folder / "24.png", SIZE)
    assert "no-images-found" not in command(*words).passed().err
    assert "no-images-found" not in page.read_text("utf-8")


def test_a_page_with_pictures_stays_below_the_size_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On noise, which no encoder compresses; the images with the most errors come first."""
    from detap.report.page import assembly

    noise = Image.frombytes("RGB", (640, 640), os.urandom(3 * 640 * 640))
    folder = tmp_path / "images"
    folder.mkdir()
    for n in range(1, 25):
        noise.save(folder / f"{n}.jpg", quality=95)
    monkeypatch.setattr(assembly, "MOST_BYTES", 3_000_000)
    page = write_page(tmp_path, "--images", str(folder))
    shown = [*pictures_of(page)]
    assert page.stat().st_size < 3_000_000
    assert 0 < len(shown) < 24
    assert f"{24 - len(shown)} pictures left out" in page.read_text("utf-8")
