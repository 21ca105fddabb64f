"""Sizes of images from options: one for all, or a CSV table ``image,width,height``."""

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from detap.errors import InputError, Problem, UsageError
from detap.formats.stem_matching import stem_of
from detap.formats.text.csv_rows import read_csv
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path, SourceFile
from detap.io.problems import FaultError, Problems
from detap.io.stream import read_bytes
from detap.tables.detection import Floats, Integers, Name
from detap.text_input import quote

COLUMNS = ("image", "width", "height")

_USAGE = f"write `{','.join(COLUMNS)}` and one image per line"

Size = str | tuple[float, float]

_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")
_SIZE = re.compile(r"([1-9][0-9]{0,8})[xX]([1-9][0-9]{0,8})")


def read_image_sizes(path: Path, limits: Limits = DEFAULT_LIMITS) -> dict[str, tuple[int, int]]:
    """Return the width and height of images, by stem, from CSV.

    Its header is ``image,width,height``, in any order, also with other columns. Images may have
    folders and suffix.
    """
    problems = Problems(limits.problems, os.fspath(path))
    sizes: dict[str, tuple[int, int]] = {}
    with problems.collected():
        header, rows = read_csv(read_bytes(path, limits), problems, _USAGE)
        names = [name.lower() for name in header]
        if any(names.count(name) != 1 for name in COLUMNS):
            raise FaultError(f"header is {','.join(header)[:60]!r}", _USAGE, "line 1")
        columns = itemgetter(*(header[names.index(name)] for name in COLUMNS))
        for line, values in rows:
            name, width, height = columns(values)
            size = _side(width), _side(height)
            message, hint = "", _USAGE
            if not all(size):
                title, text = ("height", height) if size[0] else ("width", width)
                message = f"{title} is {text!r}, expected an integer above 0"
            elif not name:
                message = "image is empty"
            elif sizes.setdefault(stem_of(name), size) != size:
                message = f"image {name!r} has another size in an earlier line"
                hint = "use one size per image"
            if message:
                problems.add_here(f"line {line}", message, hint)
        if not rows and not problems.count:
            raise FaultError("no images", _USAGE)
    problems.raise_any()
    return sizes


@lru_cache
def _side(text: str) -> int:
    """Return a width or height, 0 if it is not a whole number."""
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else 0


def sizes_of(images: Sequence[object], table: Mapping[Any, Sequence[float]]) -> Floats:
    """Return the image sizes (I, 2) by stem; NaN if not in the table."""
    unknown = (np.nan, np.nan)
    names = map(str, images)
    sizes = [table.get(name) or table.get(stem_of(name)) or unknown for name in names]
    return np.array(sizes, np.float64).reshape(-1, 2)


class GivenSizes(NamedTuple):
    """Image sizes from options: one for all images (``"640x480"``), or a table by stem.

    `source` is the table's file, if there is one.
    """

    size: tuple[float, float]
    table: dict[str, tuple[int, int]]
    source: tuple[SourceFile, ...]

    @classmethod
    def read(cls, one: Size | None, image_sizes: Path | None, limits: Limits) -> "GivenSizes":
        """Return the sizes of the two options, at most one of which is given."""
        if image_sizes is None:
            return cls((np.nan, np.nan) if one is None else _parsed(one), {}, ())
        if one is not None:
            raise UsageError("use either --image-size or --image-sizes, not both")
        table = read_image_sizes(image_sizes, limits)
        return cls((np.nan, np.nan), table, (SourceFile(str(image_sizes), len(table)),))

    def of(self, images: Sequence[Name]) -> Floats:
        """Return the width and height of images, (I, 2), NaN if unknown."""
        return sizes_of(images, self.table) if self.table else np.tile(self.size, (len(images), 1))

    def check_against(self, other: Floats, images: Sequence[Name], path: str, source: str) -> None:
        """Raise InputError if other sizes (I, 2), those of `path`, differ."""
        sizes = self.of(images)
        wrong = (sizes != other) & ~np.isnan(sizes) & ~np.isnan(other)
        differing = np.flatnonzero(wrong.any(axis=1))
        if not len(differing):
            return
        first = differing[0]
        given, actual = ("{:g}x{:g}".format(*table[first]) for table in (sizes, other))
        swapped = (sizes[differing] == other[differing][:, ::-1]).all()
        looks = ": width and height look swapped" if swapped else ""
        origin = self.source[0].path if self.source else "--image-size"
        message = f"image {quote(str(images[first]))} is {actual} {source}, but {given} in {origin}"
        raise InputError(Problem(path, "", f"{message}{looks}", f"correct {origin}, or omit it"))


def _parsed(size: Size) -> tuple[float, float]:
    if not isinstance(size, str):
        width, height = size
        if not (0 < width < 1e9 and 0 < height < 1e9):
            raise UsageError(f"image_size {size!r} is not a width and height in pixels")
        return float(width), float(height)
    match = _SIZE.fullmatch(size)
    if match is None:
        usage = "use WIDTHxHEIGHT, e.g. 640x480"
        raise UsageError(f"--image-size {quote(size)} is not a size; {usage}")
    return float(match[1]), float(match[2])


def refuse_unknown(
    sizes: Floats, image: Integers, images: Sequence[Name], path: str, first_hint: str = ""
) -> None:
    """Raise InputError if the size (I, 2) of an `image` (N,) is unknown.

    `first_hint` precedes the hint.
    """
    is_used = np.bincount(image, minlength=len(sizes)) > 0
    unknown = np.flatnonzero(is_used & np.isnan(sizes[:, 0]))
    if len(unknown):
        others = f" (and {len(unknown) - 1} others)" if len(unknown) > 1 else ""
        name = quote(str(images[int(unknown[0])]))
        message = f"unknown size of image {name}{others}, required for normalized boxes"
        hint = (
            f"{first_hint}pass --image-sizes FILE (image,width,height; also images without "
            "objects), or --image-size WxH if all are equal"
        )
        raise InputError(Problem(path, "", message, hint))
