"""Detect LabelMe files."""

import os
from itertools import islice

from detap.formats.reading.sniffing import head

_LOOKED_AT = 3
_TAIL = 1024


def fits(path: str) -> bool:
    """Return True if a JSON file, or the first few of a folder, have LabelMe's keys.

    The keys are near the ends of a file: the image itself may be between them.
    """
    try:
        if os.path.isdir(path):
            with os.scandir(path) as entries:
                names = (e.path for e in entries if e.name.lower().endswith(".json"))
                return {fits(name) for name in islice(names, _LOOKED_AT)} == {True}
        data = head(path) if path.lower().endswith(".json") else b""
        if not data:
            return False
        with open(path, "rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            data += b" " + os.pread(opened.fileno(), _TAIL, max(0, size - _TAIL))
    except OSError:
        return False
    return b'"shapes"' in data and (b'"imagePath"' in data or b'"shape_type"' in data)
