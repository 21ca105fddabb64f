"""Detect CSV files of boxes in pixels."""

from collections.abc import Sequence
from contextlib import suppress

from detap.formats.reading.sniffing import head

COORDINATES = (
    ("xmin", "ymin", "xmax", "ymax"),
    ("x_min", "y_min", "x_max", "y_max"),
)


def fits(path: str) -> bool:
    """Return True if a CSV's header names corners in pixels, or it looks like Keras RetinaNet's.

    The latter have no header: ``path,x1,y1,x2,y2,class``.
    """
    line = head(path).removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0]
    names = [name.strip(' "\r') for name in line.decode("utf-8", "replace").split(",")]
    return any(set(corners) <= set(names) for corners in COORDINATES) or without_header(names)


def without_header(values: Sequence[str]) -> bool:
    """Return True for a first row ``path,x1,y1,x2,y2,class``."""
    if len(values) != 6 or not values[0]:
        return False
    if not any(values[1:]):
        return True  # an image without objects
    with suppress(ValueError):
        return all(abs(float(value)) >= 0 for value in values[1:5])
    return False
