"""Thumbnails of images, embedded in the page.

An unreadable file does not prevent the page: the problem is reported. File names from annotations
never open files outside the folder. Symbolic links inside it are followed if the user gave the
folder, else only inside its root.
"""

import os
import warnings
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from io import BytesIO
from typing import NamedTuple

from detap.errors import InputError
from detap.escaping import escape
from detap.formats.image_folders import ImageFolder
from detap.formats.reading.image_headers import IMAGE_SUFFIXES
from detap.io.stream import open_regular
from detap.report.packing import LIMIT, MOST_BYTES

with suppress(ImportError):  # the search for images does not need it
    from PIL import Image, ImageOps, UnidentifiedImageError

SIDE = 480
QUALITY = 60
MOST_THREADS = 8  # each may hold a decoded picture
_BATCH = 32  # thumbnails made ahead
MOST_PIXELS = 100_000_000
MOST_FILE_BYTES = 200_000_000

_SAMPLE = 50  # images to search for in a folder
_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF")
_ORIENTATION = 0x0112
_SIDEWAYS = (5, 6, 7, 8)
_ALIKE = 0.02


Size = tuple[float, float]
# A thumbnail and the size of its picture, the reason for none, or None without a file.
_Made = tuple[bytes, tuple[int, int]] | str | None


class Pictures(NamedTuple):
    """The files of images in a folder."""

    folder: ImageFolder
    file_names: Mapping[str, str]  # in the annotations, by the name of the image

    def exists(self, name: str) -> bool:
        """Return True if the folder has a file of an image, which is not refused."""
        return self.path(name)[0] is not None

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return the images that have no file in the folder, not even a refused one."""
        return [name for name in names if self.path(name) == (None, "")]

    def path(self, name: str) -> tuple[str | None, str]:
        """Return the first existing file of an image; or None, and why a path is refused."""
        folder, root = self.folder
        refused = ""
        for candidate in _names(name, self.file_names.get(name)):
            path = os.path.normpath(candidate)
            full = os.path.join(folder, path)
            if os.path.isabs(path) or path.split(os.sep)[0] == os.pardir or "\0" in path:
                refused = refused or f"{candidate!r} is outside the image folder"
            elif os.path.lexists(full):
                if _is_inside(full, root):
                    return full, ""
                refused = refused or f"{candidate!r} is a link out of {root}; use --images"
        return None, refused


def data_uri(data: bytes) -> str:
    """Return the ``data:`` URI of a thumbnail."""
    return f"data:image/webp;base64,{b64encode(data).decode()}"


def thumbnails(
    pictures: Pictures,
    images: Mapping[str, Size | None],
    *,
    save: Callable[[int, bytes], str] = lambda _, data: data_uri(data),
    max_bytes: int = MOST_BYTES,
    threads: int = 1,
) -> tuple[dict[str, tuple[str, int, int]], list[str]]:
    """Return the URI and size of each picture, and the problems; `images` has annotated sizes."""
    shown: dict[str, tuple[str, int, int]] = {}
    problems: list[str] = []
    total, sized = 0, [*images.items()]
    with ThreadPoolExecutor(min(threads, MOST_THREADS)) as pool, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of all threads
        made = (
            thumbnail
            for start in range(0, len(images), _BATCH)
            for thumbnail in pool.map(partial(_made, pictures), sized[start : start + _BATCH])
        )
        for number, ((name, annotated), thumbnail) in enumerate(zip(sized, made, strict=True)):
            if thumbnail is None:
                continue
            if isinstance(thumbnail, str):
                problems.append(f"{escape(name)}: {escape(thumbnail)}")
                continue
            data, size = thumbnail
            uri = save(number, data)
            if total + len(uri) > max_bytes:
                left_out = sum(pictures.exists(other) for other, _ in sized[number:])
                problems.append(f"{left_out:,} pictures left out: {LIMIT}")
                break
            total += len(uri)
            shown[name] = uri, *size
            if annotated is not None and not _alike(annotated, size):
                problems.append(
                    f"{escape(name)}: the picture has {size[0]} x {size[1]} pixels, the "
                    f"annotations {annotated[0]:g} x {annotated[1]:g}; boxes are scaled"
                )
    return shown, problems


def _made(pictures: Pictures, image: tuple[str, Size | None]) -> _Made:
    """Return the thumbnail of an image, the reason why it has none, or None without a file."""
    name, annotated = image
    try:
        path, refused = pictures.path(name)
        if path is None:
            return refused or None
        with os.fdopen(open_regular(path), "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > MOST_FILE_BYTES:
                return f"the file is too large ({size / 1e6:.0f} MB)"
            return _thumbnail(stream, annotated)
    except InputError as error:
        return error.problems[0].message
    except UnidentifiedImageError:  # whose text has the number of the open file
        expected = f"expected {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}"
        return f"the picture cannot be read: {expected}"
    except Exception as error:  # decoders raise any exception on damaged pictures
        return f"the picture cannot be read: {error}"


def find_folder(
    folders: Iterable[ImageFolder], file_names: Mapping[str, str], images: Sequence[str]
) -> tuple[ImageFolder | None, list[str], list[str]]:
    """Return the first folder with files of at least half of the images; and others, and links."""
    images = images[:: -(-len(images) // _SAMPLE) or 1]  # evenly spaced
    searched: list[str] = []
    missing: list[str] = []
    links: list[str] = []
    for folder in folders:
        if not os.path.isdir(folder.path):
            missing.append(folder.path)
        elif not _is_inside(folder.path, folder.root):
            links.append(folder.path)
        elif 2 * sum(map(Pictures(folder, file_names).exists, images)) < max(1, len(images)):
            searched.append(folder.path)
        else:
            return folder, searched + missing, links
    return None, searched + missing, links


def _is_inside(path: str, root: str) -> bool:
    """Return True if a path without its symbolic links is below a folder, or any for ""."""
    return not root or os.path.commonpath([root, os.path.realpath(path)]) == root


def _names(image: str, file_name: str | None) -> Iterator[str]:
    """Yield the names that the file of an image may have."""
    given = [name for name in (file_name, image) if name]
    for name in given:
        yield name
        # The folder may have the files without the subfolders of the annotations.
        yield os.path.basename(name.replace("\\", "/")) or name
    for name in given:
        for suffix in IMAGE_SUFFIXES:
            yield name + suffix
            yield name + suffix.upper()


def _thumbnail(stream: object, annotated: Size | None) -> _Made:
    with Image.open(stream, formats=_FORMATS) as picture:
        if picture.width * picture.height > MOST_PIXELS:
            return f"the picture is too large ({picture.width} x {picture.height} pixels)"
        turned = picture.getexif().get(_ORIENTATION) in _SIDEWAYS
        upright = picture.size[::-1] if turned else picture.size
        # Annotated on the stored pixels, without the EXIF rotation.
        as_stored = annotated is not None and (
            _alike(annotated, picture.size) and not _alike(annotated, upright)
        )
        size = picture.size if as_stored else upright
        picture.draft("RGB", (2 * SIDE, 2 * SIDE))
        picture.load()
        if not as_stored:
            ImageOps.exif_transpose(picture, in_place=True)
        small: Image.Image = picture
        if picture.mode.startswith("I;16") or picture.mode in ("I", "F"):
            # More than 8 bits per pixel: stretched from the darkest to the brightest.
            small = picture.convert("F")
            low, high = small.getextrema()
            span = (float(high) - float(low)) or 1.0
            small = small.point(lambda v: v * (255 / span) - float(low) * 255 / span)
        small = small if small.mode == "RGB" else small.convert("RGB")
        small.thumbnail((SIDE, SIDE), Image.Resampling.HAMMING)
        out = BytesIO()
        # Of the encoder's methods the fastest: the slowest saves 3% of the bytes, in three times
        # the time.
        small.save(out, "WEBP", quality=QUALITY, method=0)
    return out.getvalue(), size


def _alike(annotated: Size, size: tuple[int, int]) -> bool:
    return all(
        abs(expected - actual) <= max(2.0, _ALIKE * expected)
        for expected, actual in zip(annotated, size, strict=True)
    )
