"""An empty ground truth of the names that detections mention."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np

from detap.tables.columns import ordered
from detap.tables.detection import GroundTruth, Name


def empty_truth(
    images: Iterable[Name],
    classes: Iterable[Name],
    titles: Mapping[Name, str] = MappingProxyType({}),
) -> GroundTruth:
    """Return a ground truth without any box; `titles` has what is called other than its id."""
    return GroundTruth.from_arrays(
        image=np.zeros(0, np.int64),
        label=np.zeros(0, np.int64),
        boxes=np.zeros((0, 4)),
        images=ordered(images),
        classes={name: titles.get(name, str(name)) for name in ordered(classes)},
    )
