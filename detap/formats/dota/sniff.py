"""Detect DOTA folders by the first line of a few files."""

import os

from detap.formats.dota.lines import without_head
from detap.formats.reading.sniffing import first_line
from detap.formats.text.lines import NUMBER


def fits(path: str) -> bool:
    """Return True if the first line has eight coordinates in pixels."""
    below = (os.path.join(path, name) for name in ("labelTxt", ""))
    return any(_fits(first_line(folder, without_head).split()) for folder in below)


def _fits(columns: list[str]) -> bool:
    numbers = [NUMBER.fullmatch(column) is not None for column in columns]
    labels = len(columns) in (9, 10) and all(numbers[:8]) and not numbers[8]
    results = len(columns) == 10 and all(numbers[1:])
    # Only small numbers are YOLO's normalized coordinates.
    coordinates = columns[:8] if labels else columns[2:]
    return (labels or results) and any(abs(float(column)) > 2 for column in coordinates)
