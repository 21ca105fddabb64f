"""pycocotools' interface over detap's core: the same bits and the same printed text.

>>> from detap.compat.pycocotools import COCO, COCOeval

or, for libraries that import pycocotools by themselves, before any of them is imported:

>>> from detap.compat.pycocotools import init_as_pycocotools
>>> init_as_pycocotools()

See docs/pycocotools.md.
"""

import sys

from detap.compat.pycocotools import coco, cocoeval, mask
from detap.compat.pycocotools.coco import COCO
from detap.compat.pycocotools.cocoeval import COCOeval, Params

__all__ = ["COCO", "COCOeval", "Params", "coco", "cocoeval", "init_as_pycocotools", "mask"]


def init_as_pycocotools() -> None:
    """Let every later import of ``pycocotools`` in this process find this package instead.

    What was imported from pycocotools before keeps what it has.
    """
    sys.modules["pycocotools"] = sys.modules[__name__]
    for module in (coco, cocoeval, mask):
        sys.modules[f"pycocotools.{module.__name__.rpartition('.')[2]}"] = module
