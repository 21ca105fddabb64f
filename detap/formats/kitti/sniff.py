"""Detect KITTI folders by the first line of a few files."""

import os

from detap.formats.reading.sniffing import first_line
from detap.formats.text.lines import NUMBER

_BELOW = ("label_2", os.path.join("training", "label_2"), "data", "")
_COUNTS = (15, 16)


def fits(path: str) -> bool:
    """Return True if the first line is a word and 14 or 15 numbers."""
    return any(_fits(first_line(os.path.join(path, below))) for below in _BELOW)


def _fits(line: str) -> bool:
    numbers = [NUMBER.fullmatch(column) is not None for column in line.split()]
    return len(numbers) in _COUNTS and not numbers[0] and all(numbers[1:])
