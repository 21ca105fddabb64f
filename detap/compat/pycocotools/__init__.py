"""pycocotools' classes over detap's core: the same bits and the same printed text.

>>> from detap.compat.pycocotools import COCO, COCOeval

For libraries that import pycocotools themselves, call before importing them:

>>> from detap.compat.pycocotools import install
>>> install()

See docs/pycocotools.md.
"""

import sys
from types import ModuleType

from pycocotools import mask

from detap.compat.pycocotools import coco, cocoeval
from detap.compat.pycocotools.coco import COCO
from detap.compat.pycocotools.cocoeval import COCOeval, Params

__all__ = [
    "COCO",
    "COCOeval",
    "Params",
    "coco",
    "cocoeval",
    "init_as_pycocotools",
    "install",
    "mask",
    "uninstall",
]

_replaced: dict[str, ModuleType | None] = {}
"""The modules that were loaded before :func:`install`; None if it was not."""


def install(package: str = "pycocotools") -> None:
    """Make later imports of ``pycocotools`` in this process return this package.

    Earlier imports keep pycocotools' own objects.

    Parameters
    ----------
    package : str
        Another package with pycocotools' interface, such as ``"ultrafast_pycocotools"``, for
        libraries that choose a backend by name.
    """
    modules = {package: sys.modules[__name__]}
    for module in (coco, cocoeval, mask):
        modules[f"{package}.{module.__name__.rpartition('.')[2]}"] = module
    for name, module in modules.items():
        _replaced.setdefault(name, sys.modules.get(name))
        sys.modules[name] = module


def uninstall() -> None:
    """Make later imports return what they did before :func:`install`.

    Imports in between keep the objects of this package.
    """
    for name, module in _replaced.items():
        if module is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module
    _replaced.clear()


init_as_pycocotools = install  # the name in faster-coco-eval and ultrafast-pycocotools
