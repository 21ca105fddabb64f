"""Detect misread box formats: far more boxes would overlap if read differently."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from detap.checks.boxes import as_corners, half_sizes
from detap.checks.sample import (
    MOST_OVERLAPPED,
    Change,
    Changes,
    Sample,
    beyond_chance,
    fraction_of,
)
from detap.errors import Note
from detap.tables.detection import Flags, Floats


def _from_top_left(corners: Floats, _: Floats) -> Floats:
    """Move boxes whose top-left corner was read as their center."""
    return corners + half_sizes(corners)


def _center_as_corners(corners: Floats, _: Floats) -> Floats:
    """Reinterpret center, width and height as two corners."""
    return np.hstack(((corners[:, :2] + corners[:, 2:]) / 2, corners[:, 2:] - corners[:, :2]))


def _width_height_swapped(corners: Floats, _: Floats) -> Floats:
    width_height = corners[:, 2:] - corners[:, :2]
    return np.hstack((corners[:, :2], corners[:, :2] + width_height[:, ::-1]))


def _normalized_width_height_swapped(corners: Floats, sizes: Floats) -> Floats:
    """Swap width and height of normalized boxes, keeping the center."""
    center = (corners[:, :2] + corners[:, 2:]) / 2
    half = ((corners[:, 2:] - corners[:, :2]) / sizes)[:, ::-1] * sizes / 2
    return np.hstack((center - half, center + half))


def _sizes_swapped(corners: Floats, sizes: Floats) -> Floats:
    return corners * np.tile(sizes[:, ::-1] / sizes, 2)


def _normalized_xy_swapped(corners: Floats, sizes: Floats) -> Floats:
    return _sizes_swapped(corners, sizes)[:, [1, 0, 3, 2]]


def _scaled(corners: Floats, sizes: Floats) -> Floats:
    return corners * np.tile(sizes, 2)


def _center_scaled(corners: Floats, sizes: Floats) -> Floats:
    return _scaled(corners - half_sizes(corners), sizes)


_CORNERS_AND_XYWH: tuple[tuple[str, str, Change], ...] = (
    (
        "look-xyxy",
        "[x1, y1, x2, y2], expected [x, y, width, height]",
        lambda corners, _: as_corners(corners),
    ),
    (
        "look-xywh",
        "[x, y, width, height], expected [x1, y1, x2, y2]",
        lambda corners, _: np.hstack((corners[:, :2], corners[:, 2:] + corners[:, :2])),
    ),
)

# Of two readings that overlap equally many ground truths, the later is noted.
_CONVENTIONS: tuple[tuple[str, str, Change], ...] = (
    ("xy-swapped", "boxes with x and y swapped", lambda corners, _: corners[:, [1, 0, 3, 2]]),
    (
        "xy-swapped",
        "normalized boxes with x and y swapped, or the other file's boxes do",
        _normalized_xy_swapped,
    ),
    (
        "look-centered",
        "boxes given by their center, expected the top-left corner",
        lambda corners, _: corners - half_sizes(corners),
    ),
    ("look-top-left", "boxes given by their top-left corner, expected the center", _from_top_left),
    (
        "look-xyxy",
        "[x1, y1, x2, y2], expected [x center, y center, width, height]",
        _center_as_corners,
    ),
    *_CORNERS_AND_XYWH,
    ("look-normalized", "normalized boxes, expected pixels", _scaled),
    (
        "look-normalized",
        "normalized [x center, y center, width, height], expected pixels",
        _center_scaled,
    ),
    ("width-height-swapped", "boxes with width and height swapped", _width_height_swapped),
    (
        "width-height-swapped",
        "normalized boxes with width and height swapped",
        _normalized_width_height_swapped,
    ),
    ("sizes-look-swapped", "boxes scaled with image width and height swapped", _sizes_swapped),
)


_CENTERS_READ_AS: dict[Change, str] = {_from_top_left: "xywh", _center_as_corners: "xyxy"}
"""Values of --boxes that read boxes as a change of centers does; only YOLO's have an option."""

_OF_SIZES = (
    _normalized_xy_swapped,
    _normalized_width_height_swapped,
    _sizes_swapped,
    _scaled,
    _center_scaled,
)

_BOXES = {"detections": "detections", "ground-truth": "ground truth boxes"}

_SOME = 10


class _Reading(NamedTuple):
    """Another reading of one table's boxes, and the overlaps with it."""

    overlapped: float
    outside: float
    role: str
    preference: int
    code: str
    meaning: str
    changes: Changes


def convention(sample: Sample, overlapped: float) -> Note | None:
    """Return the note of another reading with which far more ground truths are overlapped."""
    if overlapped > MOST_OVERLAPPED:
        return None
    rounded = (
        reading._replace(overlapped=round(reading.overlapped, 1))
        for reading in _readings(sample, _CONVENTIONS)
    )
    best = max(rounded, default=None)
    if best is None or best.overlapped <= max(0.3, 2 * overlapped + 0.1):
        return _normalized(sample)
    table = sample.detections if best.role == "detections" else sample.ground_truth
    message = (
        f"{_BOXES[best.role]} look like {best.meaning}: {best.overlapped:.0%} of "
        f"ground truths would be overlapped instead of {overlapped:.0%}"
    )
    layout = next((_CENTERS_READ_AS[one] for one in best.changes if one in _CENTERS_READ_AS), "")
    if layout and table.files:
        role = "dt" if best.role == "detections" else "gt"
        message += f"; for YOLO files pass --{role}-boxes {layout}"
    return Note(f"{best.role}-{best.code}", message, len(table))


def mixed_conventions(sample: Sample) -> Note | None:
    """Return the note of another reading with which many more ground truths are overlapped."""
    # Readings other than corners and x, y, width, height also improve boxes that are nearly right.
    count = len(sample.rows)
    candidates = []
    for reading in _readings(sample, _CORNERS_AND_XYWH, ~sample.overlapped):
        gained = reading.overlapped * count
        if gained >= max(_SOME, 0.1 * count) and beyond_chance(
            gained, sample.chance(reading.changes), count
        ):
            candidates.append((reading.outside, gained, reading))
    if not candidates:
        return None
    _, gained, best = max(candidates)
    message = (
        f"some {_BOXES[best.role]} look like {best.meaning}: {gained:.0f} more of "
        f"{count} sampled ground truths would be overlapped ({np.count_nonzero(sample.overlapped)} "
        "are now)"
    )
    return Note(f"{best.role}-mixed-conventions", message, round(gained))


def _readings(
    sample: Sample,
    conventions: Sequence[tuple[str, str, Change]],
    among: Flags | bool = True,
) -> Iterator[_Reading]:
    """Yield every other reading, and the fraction of ground truths in `among` it overlaps."""
    # Changing the ground truth can help as much as the reverse change of the detections. Then the
    # boxes that extend beyond their images are the wrong ones.
    truth, detections = sample.ground_truth, sample.detections
    sizes = truth.image_sizes
    for role, table in (("ground-truth", truth), ("detections", detections)):
        known = np.full((len(table), 2), np.nan) if sizes is None else sizes[table.image]
        outside = float((table.corners[:, 2:] > known).any(axis=1).mean())
        normalized = bool(table.corners.max(initial=0.0) <= 2)
        for preference, (code, meaning, function) in enumerate(conventions):
            if sizes is None and function in _OF_SIZES:
                continue
            if code == "look-normalized" and not normalized:
                continue
            changes = (function, None) if table is detections else (None, function)
            overlapped = fraction_of(sample.overlapped_if(changes) & among)
            outside_first = outside + (0.01 if table is detections else 0.0)
            yield _Reading(overlapped, outside_first, role, preference, code, meaning, changes)


def _normalized(sample: Sample) -> Note | None:
    """Return the note of boxes within the first pixels if the other table's are larger."""
    tables = {"detections": sample.detections, "ground-truth": sample.ground_truth}
    largest = {role: float(table.corners.max(initial=0.0)) for role, table in tables.items()}
    for role, other in (("detections", "ground-truth"), ("ground-truth", "detections")):
        if largest[role] <= 2 and largest[other] >= 10:
            message = (
                f"{_BOXES[role]} look normalized, expected pixels: no coordinate exceeds "
                f"{largest[role]:.3g}"
            )
            return Note(f"{role}-look-normalized", message, len(tables[role]))
    return None
