"""``pycocotools.coco``: pycocotools' own data set, whose files orjson parses where installed."""

import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pycocotools.coco

_loads: Callable[[bytes], Any] | None = None
with suppress(ImportError):
    from orjson import loads as _loads

_LONG_INTEGER = re.compile(rb"(?<![.\d])\d{19,}(?![.\d])")
"""An integer possibly beyond 64 bits, which orjson reads as a float."""

_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")


class COCO(pycocotools.coco.COCO):  # type: ignore[misc]
    """A data set, as in pycocotools.

    Parameters
    ----------
    annotation_file : str or path, optional
        A COCO file.
    """

    def __init__(self, annotation_file: Any = None) -> None:
        start = time.time()
        dataset = None if annotation_file is None else _by_orjson(annotation_file)
        if type(dataset) is not dict:
            super().__init__(annotation_file)
            return
        super().__init__()
        print("loading annotations into memory...")
        print(f"Done (t={time.time() - start:0.2f}s)")
        self.dataset = dataset
        self.createIndex()

    def loadRes(self, resFile: Any) -> "COCO":
        """Return the results of a detector as a data set.

        Parameters
        ----------
        resFile : str, list of dict, or (N, 7) array
            A results file; its records, to which fields (id, area, ...) are added; or an array
            with columns image id, x, y, width, height, score, category id.

        Raises
        ------
        AssertionError
            If they are not a list, or have an image that is not in this data set.
        """
        content = _by_orjson(resFile) if type(resFile) is str else None
        records = resFile if content is None else content
        results = COCO()
        results.__dict__ |= super().loadRes(records).__dict__
        return results


def _by_orjson(path: Any) -> Any:
    """Return the content of a JSON file; None where orjson is absent or may differ from json.

    It refuses NaN and lone surrogates, which json accepts.
    """
    if _loads is None:
        return None
    try:
        content = Path(path).read_bytes()
        if b"0" * 19 in content.translate(_AS_ZEROS) and _LONG_INTEGER.search(content):
            return None
        return _loads(content)
    except (OSError, TypeError, ValueError):
        return None  # json.load reads it, or reports the error
