"""Detect LabelMe files."""

import os
from collections.abc import Iterator
from itertools import islice

from detap.formats.reading.sniffing import head

_LOOKED_AT = 3
_FOLDERS, _ENTRIES = 32, 256
_TAIL = 1024


def fits(path: str) -> bool:
    """Return True if a JSON file, or the first few of a folder or below it, have LabelMe's keys.

    The keys are near the ends of a file: the image itself may be between them.
    """
    try:
        if os.path.isdir(path):
            return {fits(name) for name in islice(_files(path), _LOOKED_AT)} == {True}
        data = head(path) if path.lower().endswith(".json") else b""
        if not data:
            return False
        with open(path, "rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            data += b" " + os.pread(opened.fileno(), _TAIL, max(0, size - _TAIL))
    except OSError:
        return False
    return b'"shapes"' in data and (b'"imagePath"' in data or b'"shape_type"' in data)


def _files(folder: str) -> Iterator[str]:
    """Yield JSON files of a folder, or else of the first sub-folders that have any."""
    below = [folder]
    for _ in range(_FOLDERS):
        if not below:
            return
        with os.scandir(below.pop(0)) as entries:
            visible = [entry for entry in islice(entries, _ENTRIES) if entry.name[0] != "."]
        files = [entry.path for entry in visible if entry.name.lower().endswith(".json")]
        yield from files
        if files:
            return
        below += sorted(entry.path for entry in visible if entry.is_dir())
