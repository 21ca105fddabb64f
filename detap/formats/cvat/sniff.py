"""Whether an XML is an export of CVAT."""

import os
import re

from detap.formats.reading.sniffing import head

_ROOT = re.compile(rb"<(?![?!])\s*([A-Za-z_][\w.:-]*)")


def fits(path: str) -> bool:
    """Return whether a file, or a folder's ``annotations.xml``, begins as CVAT's exports do."""
    file = os.path.join(path, "annotations.xml") if os.path.isdir(path) else path
    found = _ROOT.search(head(file))
    return found is not None and found.group(1) == b"annotations"
