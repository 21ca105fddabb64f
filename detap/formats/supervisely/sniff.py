"""Detect Supervisely's projects."""

import os
from itertools import islice

from detap.formats.reading.sniffing import json_paths

FOLDER, META = "ann", "meta.json"
_LOOKED_AT = 3


def fits(path: str) -> bool:
    """Return True if a file, or the first few of a folder, are Supervisely's annotations.

    The folder is a project with ``meta.json``, a data set with ``ann``, or ``ann``.
    """
    if not os.path.isdir(path):
        paths = json_paths(path)
        sized = {".size.height", ".size.width"} <= paths
        return ".objects" in paths and (sized or ".objects[].classTitle" in paths)
    if ".classes[].title" in json_paths(os.path.join(path, META)):
        return True
    inside = os.path.join(path, FOLDER)
    try:
        with os.scandir(inside if os.path.isdir(inside) else path) as entries:
            names = (e.path for e in entries if e.name.lower().endswith(".json"))
            return {fits(name) for name in islice(names, _LOOKED_AT)} == {True}
    except OSError:
        return False
