"""pycocotools' interface over detap's core: the same bits and the same printed text.

>>> from detap.compat.pycocotools import COCO, COCOeval

For libraries that import pycocotools themselves, call before importing them:

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
    """Make later imports of ``pycocotools`` in this process return this package.

    Earlier imports keep pycocotools' own objects.
    """
    sys.modules["pycocotools"] = sys.modules[__name__]
    for module in (coco, cocoeval, mask):
        sys.modules[f"pycocotools.{module.__name__.rpartition('.')[2]}"] = module
