"""Whether JSON files are LabelMe's."""

import os
from itertools import islice

from detap.formats.reading.sniffing import head

_LOOKED_AT = 3
_TAIL = 1024


def fits(path: str) -> bool:
    """Return whether a JSON file, or the first few of a folder, have LabelMe's keys."""
    if not os.path.isdir(path):
        return path.lower().endswith(".json") and _fits(path)
    try:
        with os.scandir(path) as entries:
            names = (e.path for e in entries if e.name.lower().endswith(".json"))
            found = [_fits(name) for name in islice(names, _LOOKED_AT)]
    except OSError:
        return False
    return bool(found) and all(found)


def _fits(file: str) -> bool:
    """Return whether the keys stand at either end: between them may be the picture itself."""
    data = head(file)
    try:
        with open(file, "rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            data += b" " + os.pread(opened.fileno(), _TAIL, max(0, size - _TAIL)) if data else b""
    except OSError:
        return False
    return b'"shapes"' in data and (b'"imagePath"' in data or b'"shape_type"' in data)
