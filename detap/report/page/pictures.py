"""Thumbnails of images, small enough to travel inside a page.

Whatever a file holds, and whatever it is called, the page is made: what cannot be shown is said.
Nothing outside the given folder is opened by a name from an annotation. A link inside the folder
is its owner's own affair, and followed.
"""

import os
import warnings
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import BytesIO
from typing import NamedTuple

from PIL import Image, ImageOps

from detap.errors import InputError
from detap.escaping import escape
from detap.io.stream import open_regular

SIDE = 480
QUALITY = 60
MOST_BYTES = 9_000_000
"""Of all pictures of a page together, as base64."""

MOST_PIXELS = 100_000_000
MOST_FILE_BYTES = 200_000_000

_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF")
_EXTENSIONS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif")
_ORIENTATION = 0x0112
_SIDEWAYS = (5, 6, 7, 8)
_ALIKE = 0.02


class Wanted(NamedTuple):
    """An image that is to be shown.

    Attributes
    ----------
    name : str
        What it is called.
    file_name : str or None
        What its annotation says that its file is called.
    size : sequence of two float, or None
        Width and height as annotated.
    """

    name: str
    file_name: str | None
    size: tuple[float, float] | None


class Thumbnails(NamedTuple):
    """The pictures that could be had.

    Attributes
    ----------
    uris : dict of str to str
        From an image's name to a ``data:`` URI.
    sizes : dict of str to tuple of int
        From its name to width and height of the picture as shown, before it was made smaller.
    problems : tuple of str
        One sentence for each image without a picture, or with one of another size.
    """

    uris: dict[str, str]
    sizes: dict[str, tuple[int, int]]
    problems: tuple[str, ...]


class _UnusableError(Exception):
    """Why there is no picture of an image."""


def thumbnails(folder: str, wanted: Iterable[Wanted], *, most: int = MOST_BYTES) -> Thumbnails:
    """Return thumbnails of images.

    Parameters
    ----------
    folder : str
        Where the files are.
    wanted : iterable of Wanted
        The most important first: the pictures end before they would exceed `most` bytes.
    most : int
        Of all URIs together.
    """
    uris: dict[str, str] = {}
    sizes: dict[str, tuple[int, int]] = {}
    problems: list[str] = []
    left_out = total = 0
    for image in wanted:
        try:
            uri, size = _thumbnail(_path(folder, image), image.size)
        except _UnusableError as error:
            problems.append(f"{escape(image.name)}: {escape(error)}")
            continue
        if total + len(uri) > most:
            left_out += 1
            continue
        total += len(uri)
        uris[image.name], sizes[image.name] = uri, size
        if image.size is not None and not _alike(image.size, size):
            problems.append(
                f"{escape(image.name)}: the picture has {size[0]} x {size[1]} pixels, its "
                f"annotation says {image.size[0]:g} x {image.size[1]:g}; boxes are scaled to fit"
            )
    if left_out:
        problems.append(
            f"{left_out} more pictures were left out: the page holds at most {most / 1e6:g} MB"
        )
    return Thumbnails(uris, sizes, tuple(problems))


def any_there(folder: str, wanted: Iterable[Wanted]) -> bool:
    """Return whether the folder has a file of any of these images."""
    for image in wanted:
        with suppress(_UnusableError):
            return bool(_path(folder, image))
    return False


def _path(folder: str, image: Wanted) -> str:
    """Return the first file there is of those that an image may lie in."""
    refused = None
    for name in _names(image):
        path = os.path.normpath(name)
        if os.path.isabs(path) or path.split(os.sep)[0] == os.pardir or "\0" in path:
            refused = refused or name
            continue
        whole = os.path.join(folder, path)
        if os.path.lexists(whole):
            return whole
    if refused is not None:
        raise _UnusableError(f"{refused!r} lies outside the folder of pictures")
    raise _UnusableError("there is no such file in the folder of pictures")


def _names(image: Wanted) -> Iterator[str]:
    given = [name for name in (image.file_name, image.name) if name]
    for name in given:
        yield name
        # The folder may hold the files without the folders that the annotation names.
        yield os.path.basename(name.replace("\\", "/")) or name
    for name in given:
        for extension in _EXTENSIONS:
            yield name + extension
            yield name + extension.upper()


def _thumbnail(path: str, annotated: tuple[float, float] | None) -> tuple[str, tuple[int, int]]:
    try:
        descriptor = open_regular(path)
    except InputError as error:
        raise _UnusableError(error.problems[0].message) from error
    with os.fdopen(descriptor, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > MOST_FILE_BYTES:
            raise _UnusableError(f"the file is enormous ({size / 1e6:.0f} MB)")
        try:
            return _made_small(stream, annotated)
        except _UnusableError:
            raise
        except Exception as error:  # the readers of damaged pictures raise whatever they like
            raise _UnusableError(f"the picture cannot be read: {error}") from error


def _made_small(
    stream: object, annotated: tuple[float, float] | None
) -> tuple[str, tuple[int, int]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opened = Image.open(stream, formats=_FORMATS)
    with opened as picture:
        if picture.width * picture.height > MOST_PIXELS:
            raise _UnusableError(
                f"the picture is enormous ({picture.width} x {picture.height} pixels)"
            )
        turned = picture.getexif().get(_ORIENTATION) in _SIDEWAYS
        upright = picture.size[::-1] if turned else picture.size
        # Annotated on the pixels as stored, by a tool that takes no notice of the camera's turn.
        as_stored = annotated is not None and (
            _alike(annotated, picture.size) and not _alike(annotated, upright)
        )
        size = picture.size if as_stored else upright
        picture.draft("RGB", (2 * SIDE, 2 * SIDE))
        picture.load()
        small: Image.Image = picture if as_stored else ImageOps.exif_transpose(picture)
        small = _in_colour(small)
        small.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
        out = BytesIO()
        small.save(out, "WEBP", quality=QUALITY, method=4)
    return f"data:image/webp;base64,{b64encode(out.getvalue()).decode()}", size


def _in_colour(picture: Image.Image) -> Image.Image:
    if picture.mode.startswith("I;16") or picture.mode in ("I", "F"):
        # More than 8 bits a pixel: stretched from the darkest to the brightest.
        low, high = picture.convert("F").getextrema()
        span = (float(high) - float(low)) or 1.0
        picture = picture.convert("F").point(lambda v: v * (255 / span) - float(low) * 255 / span)
    return picture.convert("RGB")


def _alike(annotated: tuple[float, float], size: tuple[int, int]) -> bool:
    return all(
        abs(there - here) <= max(2.0, _ALIKE * there)
        for there, here in zip(annotated, size, strict=True)
    )
