"""Which ground truths choose detections, class by class, where the pairing is by ground truth."""

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
"""The column of the ground truth that each axis looks at."""


class Choosers(NamedTuple):
    """N detections and G ground truths, as the protocol sees them.

    Attributes
    ----------
    detections, truths : Boxes
    ignored, crowd : (G,) bool
    extra : mapping of str to (G,) float64
        Further columns of the ground truths.
    """

    detections: Boxes
    truths: Boxes
    ignored: Flags
    crowd: Flags
    extra: Mapping[str, Floats]


def parts_of(
    protocol: Protocol, classes: Sequence[str], columns: Choosers
) -> tuple[list[Part], Flags]:
    """Return what the rows are to each class that is scored, and which detections are outside.

    Returns
    -------
    parts : list of Part
    low : (A, N) bool
        Detections outside each range.

    Raises
    ------
    UsageError
        Where the protocol scores other classes than there are, or looks at a column that is not
        there.
    """
    label, inside = columns.truths.label, _inside(protocol, columns)
    chooses = ~columns.crowd
    parts = []
    for number, threshold in thresholds_of(protocol, classes).items():
        own = label == number
        concerned = own | np.isin(label, _neighbours(protocol, classes, classes[number]))
        part = Part(
            label=number,
            threshold=protocol.searched(threshold),
            chooses=concerned & chooses,
            crowd=concerned & columns.crowd,
            due=inside & own & ~columns.ignored,
        )
        parts.append(part)
    return parts, _low(protocol, columns.detections)


def thresholds_of(protocol: Protocol, classes: Sequence[str]) -> dict[int, float]:
    """Return the IoU threshold of each class that is scored, by number.

    Raises
    ------
    UsageError
        Where no class is.
    """
    found = _scored(protocol, classes)
    if protocol.class_iou and not found:
        listed = ", ".join(name for name, _ in protocol.class_iou)
        raise UsageError(
            f"protocol {protocol.name} scores {listed}, and there is none of them; name the "
            "classes and their thresholds with --class-iou, or say --class-iou none for all"
        )
    return found


def _scored(protocol: Protocol, classes: Sequence[str]) -> dict[int, float]:
    if not protocol.class_iou:
        return dict.fromkeys(range(len(classes)), protocol.iou_thresholds[0])
    due = {name.casefold(): threshold for name, threshold in protocol.class_iou}
    names = [name.casefold() for name in classes]
    return {number: due[name] for number, name in enumerate(names) if name in due}


def without_unscored(
    protocol: Protocol, classes: Sequence[str], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], tuple[Note, ...]]:
    """Return counts (7, K), 0 for classes that are not scored, and a note of their detections."""
    kept = np.zeros_like(counts)
    scored = [*_scored(protocol, classes)]
    kept[:, scored] = counts[:, scored]
    rest = counts[2] - kept[2]
    if not rest.any():
        return kept, ()
    names = join_names([classes[number] for number in np.flatnonzero(rest).tolist()])
    message = f"{protocol.name} does not score classes of which there are detections ({names}); "
    message += "--class-iou says which it does"
    return kept, (Note("classes-not-scored", message, int(rest.sum()), severity="info"),)


def _neighbours(protocol: Protocol, classes: Sequence[str], name: str) -> list[int]:
    """Return the numbers of the classes that are neutral to another."""
    near = {
        neighbour.casefold()
        for owner, neighbour in protocol.neighbor_classes
        if owner == "*" or owner.casefold() == name.casefold()
    }
    return [k for k, other in enumerate(classes) if other.casefold() in near and other != name]


def _inside(protocol: Protocol, columns: Choosers) -> Flags:
    """Return which ground truths are in each range, (A, G) bool."""
    truths, bands = columns.truths, protocol.area_ranges
    inside = np.array([(truths.area >= b.low) & (truths.area <= b.high) for b in bands])
    if protocol.min_height:
        inside &= truths.corners[:, 3] - truths.corners[:, 1] > _by_range(protocol.min_height)
    for axis, column in COLUMNS.items():
        most = getattr(protocol, axis)
        if most and column not in columns.extra:
            option = f"--{axis.replace('_', '-')}"
            raise UsageError(
                f"protocol {protocol.name} asks how far each ground truth is {column}, which these "
                "do not say: give labels of KITTI's form (--gt-format kitti), or leave it out with "
                f"{option} none"
            )
        if most:
            inside &= columns.extra[column] <= _by_range(most)
    return inside


def _low(protocol: Protocol, detections: Boxes) -> Flags:
    """Return which detections are outside each range, (A, N) bool."""
    bands = protocol.area_ranges
    low = np.array([(detections.area < b.low) | (detections.area > b.high) for b in bands])
    if protocol.min_height:
        height = np.abs(detections.corners[:, 3] - detections.corners[:, 1])
        low |= height < _by_range(protocol.min_height)
    return low


def _by_range(values: tuple[float, ...]) -> Floats:
    """Return a value for each range, or one for all, as rows."""
    return np.array(values)[:, None]
