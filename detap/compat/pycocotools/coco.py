"""``pycocotools.coco``: pycocotools' own data set, whose files orjson parses where installed."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pycocotools.coco

try:
    import orjson
except ImportError:
    orjson = None  # type: ignore[assignment]

_LONG_INTEGER = re.compile(rb"(?<![.\d])\d{19,}(?![.\d])")
"""An integer possibly beyond 64 bits, which orjson reads as a float."""


class COCO(pycocotools.coco.COCO):  # type: ignore[misc]
    """A data set, as in pycocotools.

    Parameters
    ----------
    annotation_file : str or path, optional
        A COCO file.
    """

    def __init__(self, annotation_file: Any = None) -> None:
        super().__init__()
        if annotation_file is not None:
            print("loading annotations into memory...")
            start = time.time()
            dataset = parse_file(annotation_file)
            if type(dataset) is not dict:
                raise AssertionError(f"annotation file format {type(dataset)} not supported")
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
        records = parse_file(resFile) if type(resFile) is str else resFile
        results = COCO()
        vars(results).update(vars(super().loadRes(records)))
        return results


def parse_file(path: Any) -> Any:
    """Return the content of a JSON file as :mod:`json` does, by orjson where it agrees."""
    if orjson is not None:
        content = Path(path).read_bytes()
        if not _LONG_INTEGER.search(content):
            try:
                return orjson.loads(content)
            except orjson.JSONDecodeError:
                pass  # NaN and lone surrogates, which json accepts; or an error, which json reports
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)
