"""A table of image sizes: ``image,width,height``, an image a line."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from detap.formats.reading.image_headers import IMAGE_SUFFIXES
from detap.io.file_kinds import BYTE_ORDER_MARK, kind_of
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import Problems
from detap.io.stream import read_bytes

COLUMNS = ("image", "width", "height")

_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")


def stem_of(name: str) -> str:
    """Return what an image is called: without folders, and without an image's suffix.

    What stands behind the last point of ``frame.0001`` is no suffix of an image, and stays.
    """
    base = name.replace("\\", "/").rpartition("/")[2]
    stem, point, suffix = base.rpartition(".")
    return stem if stem and (point + suffix).lower() in IMAGE_SUFFIXES else base


def read_image_sizes(path: Path, limits: Limits = DEFAULT_LIMITS) -> dict[str, tuple[int, int]]:
    """Read a table of image sizes.

    Parameters
    ----------
    path : str or path
        CSV in UTF-8 with the header ``image,width,height``, columns in any order and others beside
        them; an image with or without folders and suffix, its sides in pixels.
    limits : Limits
        What is accepted at most.

    Returns
    -------
    dict of str to (int, int)
        Width and height of each image, by its stem.

    Raises
    ------
    InputError
        With every line that is wrong, up to the limit.
    """
    file = os.fspath(path)
    problems = Problems(file, limits.problems)
    sizes: dict[str, tuple[int, int]] = {}
    for number, name, width, height in _rows(read_bytes(path, limits), problems):
        size = int(width), int(height)
        if not all(size):
            problems.add(f"line {number}", f"the image {name!r} has no area", "give its pixels")
        elif sizes.setdefault(stem_of(name), size) != size:
            message = f"the image {name!r} has had another size in an earlier line"
            problems.add(f"line {number}", message, "give each image one size")
    if not sizes and not problems.count:
        problems.add("", "has no image", f"write `{','.join(COLUMNS)}`, and an image a line")
    problems.raise_any()
    return sizes


def _rows(data: bytes, problems: Problems) -> Iterator[tuple[int, str, str, str]]:
    """Give the image, width and height of each line, and its number."""
    kind = kind_of(data)
    if kind or b"\0" in data[:4096]:
        problems.add("", f"looks like {kind or 'binary data'}", f"`{','.join(COLUMNS)}` is due")
        return
    try:
        lines = data.removeprefix(BYTE_ORDER_MARK).decode().split("\n")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        problems.add(f"line {number}", "is not UTF-8", "save it so")
        return
    at = _header(lines[0], problems)
    due = max(at, default=0) + 1
    for number, text in enumerate(lines[1:] if at else [], 2):
        line = text.removesuffix("\r")
        if not line.strip():
            continue
        columns = _columns(line)
        if len(columns) < due:
            message = f"has {len(columns)} columns, the header has {due} or more"
            problems.add(f"line {number}", message, f"write `{','.join(COLUMNS)}`")
            continue
        name, width, height = (columns[place].strip() for place in at)
        wrong = [side for side in (width, height) if not _WHOLE_NUMBER.fullmatch(side)]
        if wrong or not name:
            message = f"{wrong[0]!r} is no whole number of pixels" if wrong else "names no image"
            problems.add(f"line {number}", message, f"write `{','.join(COLUMNS)}`")
            continue
        yield number, name, width, height


def _header(line: str, problems: Problems) -> tuple[int, ...]:
    """Return the places of the three columns; none where the header lacks one."""
    found = [name.strip().lower() for name in _columns(line.removesuffix("\r"))]
    if any(found.count(name) != 1 for name in COLUMNS):
        message = f"has the header {line[:60]!r}, where image, width and height are due once each"
        problems.add("line 1", message, f"begin with the line `{','.join(COLUMNS)}`")
        return ()
    return tuple(found.index(name) for name in COLUMNS)


def _columns(line: str) -> list[str]:
    if '"' not in line:
        return line.split(",")
    import csv  # seldom needed

    try:
        return next(csv.reader([line]), [])
    except csv.Error:  # a return in the middle of a line, say
        return []


def sizes_of(images: Sequence[object], table: Mapping[str, tuple[int, int]]) -> NDArray[np.float64]:
    """Return the sizes (I, 2) of images by their stems; NaN for those that a table lacks."""
    unknown: tuple[float, float] = (np.nan, np.nan)
    names = map(str, images)
    found = [table.get(name) or table.get(stem_of(name)) or unknown for name in names]
    return np.array(found, np.float64).reshape(-1, 2)
