"""CSV table of image sizes: ``image,width,height``."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.formats.stem_matching import stem_of
from detap.formats.text.csv_rows import read_csv
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import FaultError, Problems
from detap.io.stream import read_bytes

COLUMNS = ("image", "width", "height")

_USAGE = f"write `{','.join(COLUMNS)}` and one image per line"

_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")


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
        for line, values in rows:
            with problems.collected(f"line {line}"):
                by_name = dict(zip(names, values.values(), strict=True))
                name, size = by_name["image"], (_side(by_name, "width"), _side(by_name, "height"))
                if not name:
                    raise FaultError("image is empty", _USAGE)
                if sizes.setdefault(stem_of(name), size) != size:
                    message = f"image {name!r} has another size in an earlier line"
                    raise FaultError(message, "use one size per image")
        if not rows and not problems.count:
            raise FaultError("no images", _USAGE)
    problems.raise_any()
    return sizes


def _side(values: Mapping[str, str], name: str) -> int:
    """Return the width or height in a row."""
    text = values[name]
    if not _WHOLE_NUMBER.fullmatch(text) or not int(text):
        raise FaultError(f"{name} is {text!r}, expected an integer above 0", _USAGE)
    return int(text)


def sizes_of(images: Sequence[object], table: Mapping[Any, Sequence[float]]) -> NDArray[np.float64]:
    """Return the image sizes (I, 2) by stem; NaN if not in the table."""
    unknown = (np.nan, np.nan)
    names = map(str, images)
    sizes = [table.get(name) or table.get(stem_of(name)) or unknown for name in names]
    return np.array(sizes, np.float64).reshape(-1, 2)
