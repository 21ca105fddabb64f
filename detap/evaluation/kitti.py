"""Step 2b, match (KITTI): roles of the rows for each evaluated class."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core.kitti import Part
from detap.core.matching import Boxes
from detap.errors import Note, UsageError
from detap.protocols import Protocol
from detap.tables.detection import Flags, Floats
from detap.text_input import join_names

COLUMNS = {"max_occlusion": "occluded", "max_truncation": "truncated"}
"""The ground truth's column that each field uses."""


class KittiTables(NamedTuple):
    """N detections and G ground truths with the columns that KITTI's rules need.

    Attributes
    ----------
    detections, ground_truths : Boxes
    ignored, crowd : (G,) bool
    extra : mapping of str to (G,) float64
        Further columns of the ground truths.
    """

    detections: Boxes
    ground_truths: Boxes
    ignored: Flags
    crowd: Flags
    extra: Mapping[str, Floats]


def kitti_parts(
    protocol: Protocol, classes: Sequence[str], tables: KittiTables
) -> tuple[list[Part], Flags]:
    """Return the rows' roles per evaluated class, and detections outside each range."""
    label, inside = tables.ground_truths.label, _inside_range(protocol, tables)
    chooses = ~tables.crowd
    parts = []
    for class_label, threshold in thresholds_of(protocol, classes).items():
        of_class = label == class_label
        relevant = of_class | np.isin(
            label, _neighbor_labels(protocol, classes, classes[class_label])
        )
        part = Part(
            label=class_label,
            threshold=protocol.searched(threshold),
            chooses=relevant & chooses,
            crowd=relevant & tables.crowd,
            valid=inside & of_class & ~tables.ignored,
        )
        parts.append(part)
    return parts, _outside_range(protocol, tables.detections)


def thresholds_of(protocol: Protocol, classes: Sequence[str]) -> dict[int, float]:
    """Return the IoU threshold of each evaluated class, by index."""
    thresholds = _scored_classes(protocol, classes)
    if protocol.class_iou and not thresholds:
        listed = ", ".join(name for name, _ in protocol.class_iou)
        raise UsageError(
            f"protocol {protocol.name} evaluates only {listed}, which the data lacks; pass "
            "classes and thresholds with --class-iou, or --class-iou none for all classes"
        )
    return thresholds


def _scored_classes(protocol: Protocol, classes: Sequence[str]) -> dict[int, float]:
    if not protocol.class_iou:
        return dict.fromkeys(range(len(classes)), protocol.iou_thresholds[0])
    threshold_by_name = {name.casefold(): threshold for name, threshold in protocol.class_iou}
    names = [name.casefold() for name in classes]
    return {
        number: threshold_by_name[name]
        for number, name in enumerate(names)
        if name in threshold_by_name
    }


def without_unscored(
    protocol: Protocol, classes: Sequence[str], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], tuple[Note, ...]]:
    """Return the counts (7, K) of evaluated classes only, and a note on the others."""
    scored_counts = np.zeros_like(counts)
    scored = [*_scored_classes(protocol, classes)]
    scored_counts[:, scored] = counts[:, scored]
    remaining = counts[2] - scored_counts[2]
    if not remaining.any():
        return scored_counts, ()
    names = join_names([classes[number] for number in np.flatnonzero(remaining).tolist()])
    message = f"detections of classes that protocol {protocol.name} does not evaluate ({names}); "
    message += "select classes with --class-iou"
    return scored_counts, (
        Note("classes-not-scored", message, int(remaining.sum()), severity="info"),
    )


def _neighbor_labels(protocol: Protocol, classes: Sequence[str], name: str) -> list[int]:
    """Return the indices of the neighbor classes, ignored for a class."""
    neighbors = {
        neighbor.casefold()
        for class_name, neighbor in protocol.neighbor_classes
        if class_name == "*" or class_name.casefold() == name.casefold()
    }
    return [k for k, other in enumerate(classes) if other.casefold() in neighbors and other != name]


def _inside_range(protocol: Protocol, tables: KittiTables) -> Flags:
    """Return masks of the ground truths inside each range, (A, G) bool."""
    ground_truths = tables.ground_truths
    inside = np.array(
        [
            (ground_truths.area >= low) & (ground_truths.area <= high)
            for low, high in protocol.area_bounds
        ]
    )
    if protocol.min_height:
        inside &= ground_truths.corners[:, 3] - ground_truths.corners[:, 1] > _by_range(
            protocol.min_height
        )
    for field, column in COLUMNS.items():
        maximum = getattr(protocol, field)
        if maximum and column not in tables.extra:
            option = f"--{field.replace('_', '-')}"
            raise UsageError(
                f"protocol {protocol.name} requires the column {column!r} of the ground truth; use "
                f"KITTI labels (--gt-format kitti) or {option} none"
            )
        if maximum:
            inside &= tables.extra[column] <= _by_range(maximum)
    return inside


def _outside_range(protocol: Protocol, detections: Boxes) -> Flags:
    """Return masks of the detections outside each range, (A, N) bool."""
    outside = np.array(
        [(detections.area < low) | (detections.area > high) for low, high in protocol.area_bounds]
    )
    if protocol.min_height:
        height = np.abs(detections.corners[:, 3] - detections.corners[:, 1])
        outside |= height < _by_range(protocol.min_height)
    return outside


def _by_range(values: tuple[float, ...]) -> Floats:
    """Return one value per range, or one for all, as rows."""
    return np.array(values)[:, None]
