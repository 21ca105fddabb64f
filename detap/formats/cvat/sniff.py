"""Detect CVAT exports."""

import os
import re

from detap.formats.reading.sniffing import head

_ROOT = re.compile(rb"<(?![?!])\s*([A-Za-z_][\w.:-]*)")


def fits(path: str) -> bool:
    """Return True if a file, or a folder's ``annotations.xml``, is a CVAT export."""
    file = os.path.join(path, "annotations.xml") if os.path.isdir(path) else path
    root = _ROOT.search(head(file))
    return root is not None and root.group(1) == b"annotations"
