"""Random cases that detap and a reference score equally, to the last bit or a stated tolerance.

Each module has `check(random, folder)`: it draws one case, runs both, and fails if they differ.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np

SWEEPS = {
    "boxes": "coco:check_boxes",
    "masks": "coco:check_masks",
    "keypoints": "coco:check_keypoints",
    "boundary": "boundary:check",
    "lvis": "lvis:check",
    "tidecv": "tide:check",
    "polygons": "quadrilaterals:check",
    "torchmetrics": "metrics:check",
    "options": "options:check",
}
"""Name of each sweep, and the module and function of this package that run it."""

Check = Callable[[np.random.Generator, Path], None]


def sweep_of(name: str) -> Check:
    """Return the function that draws and compares one case."""
    module, _, function = SWEEPS[name].partition(":")
    check: Check = getattr(import_module(f"tests.parity.sweep.{module}"), function)
    return check
