"""Ground truth without boxes, for detections that are read alone."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np

from detap.tables.columns import ordered
from detap.tables.detection import GroundTruth, Name


def empty_ground_truth(
    images: Iterable[Name],
    classes: Iterable[Name],
    class_names: Mapping[Name, str] = MappingProxyType({}),
) -> GroundTruth:
    """Return a ground truth without boxes; ids name classes without a name."""
    return GroundTruth.from_arrays(
        image=(),
        label=(),
        boxes=np.zeros((0, 4)),
        images=ordered(images),
        classes={name: class_names.get(name, str(name)) for name in ordered(classes)},
    )
