"""Detect responses of Roboflow's hosted models."""

import os
from itertools import islice

from detap.formats.reading.sniffing import json_paths

_LOOKED_AT = 3


def fits(path: str) -> bool:
    """Return True if a file, or the first few of a folder, hold predictions of an image."""
    try:
        if os.path.isdir(path):
            with os.scandir(path) as entries:
                names = (e.path for e in entries if e.name.lower().endswith(".json"))
                return {fits(name) for name in islice(names, _LOOKED_AT)} == {True}
    except OSError:
        return False
    paths = json_paths(path)
    first = {".predictions[].x", ".predictions[].width", ".predictions[].confidence"}
    is_empty = ".predictions[]" in paths and ".image.width" in paths
    return first <= paths or (is_empty and ".predictions[].image_id" not in paths)
