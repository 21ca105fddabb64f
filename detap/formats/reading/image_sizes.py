"""CSV table of image sizes: ``image,width,height``."""

import csv
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.formats.reading.image_headers import IMAGE_SUFFIXES
from detap.io.file_kinds import kind_of
from detap.io.json_text import decode
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import Problems
from detap.io.stream import read_bytes

COLUMNS = ("image", "width", "height")

_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")


def stem_of(name: str) -> str:
    """Return the file name of an image without folders and image suffix.

    ``.0001`` in ``frame.0001`` is not an image suffix and stays.
    """
    base = name.replace("\\", "/").rpartition("/")[2]
    stem, point, suffix = base.rpartition(".")
    return stem if stem and (point + suffix).lower() in IMAGE_SUFFIXES else base


def read_image_sizes(path: Path, limits: Limits = DEFAULT_LIMITS) -> dict[str, tuple[int, int]]:
    """Return the width and height of images, by stem, from CSV.

    Its header is ``image,width,height``, in any order, also with other columns. Images may have
    folders and suffix.
    """
    file = os.fspath(path)
    problems = Problems(limits.problems, file)
    sizes: dict[str, tuple[int, int]] = {}
    for number, name, width, height in _rows(read_bytes(path, limits), problems):
        size = int(width), int(height)
        if not all(size):
            problems.add_here(f"line {number}", f"image {name!r} has size 0")
        elif sizes.setdefault(stem_of(name), size) != size:
            message = f"image {name!r} has another size in an earlier line"
            problems.add_here(f"line {number}", message, "use one size per image")
    if not sizes and not problems.count:
        problems.add_here("", "no images", f"write `{','.join(COLUMNS)}` and one image per line")
    problems.raise_any()
    return sizes


def _rows(data: bytes, problems: Problems) -> Iterator[tuple[int, str, str, str]]:
    """Yield the line number, image, width and height of each line."""
    kind = kind_of(data)
    if kind or b"\0" in data[:4096]:
        problems.add_here("", f"looks like {kind or 'binary data'}, expected `{','.join(COLUMNS)}`")
        return
    lines = decode(data, problems.file, 1).split("\n")
    positions = _header(lines[0], problems)
    required = max(positions, default=0) + 1
    for number, text in enumerate(lines[1:] if positions else [], 2):
        line = text.removesuffix("\r")
        if not line.strip():
            continue
        columns = _columns(line)
        if len(columns) < required:
            message = f"has {len(columns)} columns, expected at least {required}"
            problems.add_here(f"line {number}", message, f"write `{','.join(COLUMNS)}`")
            continue
        name, width, height = (columns[k].strip() for k in positions)
        invalid = [side for side in (width, height) if not _WHOLE_NUMBER.fullmatch(side)]
        if invalid or not name:
            message = f"{invalid[0]!r} is not an integer" if invalid else "image is empty"
            problems.add_here(f"line {number}", message, f"write `{','.join(COLUMNS)}`")
            continue
        yield number, name, width, height


def _header(line: str, problems: Problems) -> tuple[int, ...]:
    """Return the positions of the three columns; empty if the header lacks one."""
    names = [name.strip().lower() for name in _columns(line.removesuffix("\r"))]
    if any(names.count(name) != 1 for name in COLUMNS):
        message = f"header is {line[:60]!r}, expected `{','.join(COLUMNS)}`"
        problems.add_here("line 1", message)
        return ()
    return tuple(names.index(name) for name in COLUMNS)


def _columns(line: str) -> list[str]:
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line]), [])
    except csv.Error:  # such as a carriage return within a line
        return []


def sizes_of(images: Sequence[object], table: Mapping[Any, Sequence[float]]) -> NDArray[np.float64]:
    """Return the image sizes (I, 2) by stem; NaN if not in the table."""
    unknown = (np.nan, np.nan)
    names = map(str, images)
    sizes = [table.get(name) or table.get(stem_of(name)) or unknown for name in names]
    return np.array(sizes, np.float64).reshape(-1, 2)
