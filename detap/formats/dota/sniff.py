"""Whether a folder is of DOTA's format, by the first line of a few files."""

import os
from contextlib import suppress
from itertools import islice

from detap.formats.dota.lines import without_head
from detap.formats.reading.sniffing import head
from detap.formats.text.lines import NUMBER

_FILES = 16


def fits(path: str, side: str) -> bool:
    """Return whether the first line found has the eight coordinates of DOTA's, in pixels.

    Parameters
    ----------
    path : str
    side : str
        It makes no difference: what is on the wrong side is for the reader to say.
    """
    del side
    return any(_fits(_first_line(os.path.join(path, below))) for below in ("labelTxt", ""))


def _first_line(folder: str) -> list[str]:
    """Return the columns of the first line of the first text files of a folder that have any."""
    with suppress(OSError, ValueError), os.scandir(folder) as entries:
        texts = (e.path for e in entries if e.name.lower().endswith(".txt") and e.is_file())
        for path in islice(texts, _FILES):
            text = without_head(head(path)).decode("utf-8", "replace").strip()
            if text:
                return text.split("\n")[0].split()
    return []


def _fits(columns: list[str]) -> bool:
    numbers = [NUMBER.fullmatch(column) is not None for column in columns]
    labels = len(columns) in (9, 10) and all(numbers[:8]) and not numbers[8]
    results = len(columns) == 10 and all(numbers[1:])
    # Numbers that are all fractions are YOLO's.
    coordinates = columns[:8] if labels else columns[2:]
    return (labels or results) and any(abs(float(column)) > 2 for column in coordinates)
