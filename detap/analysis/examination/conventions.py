"""Boxes in another convention: what they would be, and whether far more of them would meet."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from detap.analysis.examination.sample import MOST_MET, Change, Sample
from detap.errors import Note
from detap.tables.detection import Floats


def _as_corners(corners: Floats, _: Floats) -> Floats:
    changed = corners.copy()
    changed[:, 2:] -= corners[:, :2]
    return changed


def _as_sides(corners: Floats, _: Floats) -> Floats:
    changed = corners.copy()
    changed[:, 2:] += corners[:, :2]
    return changed


def _from_centre(corners: Floats, _: Floats) -> Floats:
    half = (corners[:, 2:] - corners[:, :2]) / 2
    return corners - np.hstack((half, half))


def _axes_swapped(corners: Floats, _: Floats) -> Floats:
    return corners[:, [1, 0, 3, 2]]


def _sides_swapped(corners: Floats, _: Floats) -> Floats:
    sides = corners[:, 2:] - corners[:, :2]
    return np.hstack((corners[:, :2], corners[:, :2] + sides[:, ::-1]))


def _scaled(corners: Floats, sizes: Floats) -> Floats:
    return corners * np.hstack((sizes, sizes))


def _centre_scaled(corners: Floats, sizes: Floats) -> Floats:
    return _scaled(_from_centre(corners, sizes), sizes)


_CONVENTIONS: tuple[tuple[str, str, Change], ...] = (
    ("look-like-corners", "x1, y1, x2, y2 where x, y, width, height is due", _as_corners),
    ("look-like-sides", "x, y, width, height where x1, y1, x2, y2 is due", _as_sides),
    ("look-centred", "given by their centre where the corner is due", _from_centre),
    ("axes-look-swapped", "given with x and y swapped", _axes_swapped),
    ("sides-look-swapped", "given with width and height swapped", _sides_swapped),
    ("look-relative", "shares of the image's size where pixels are due", _scaled),
    ("look-relative", "shares of the image's size, by their centre", _centre_scaled),
)


class _Reading(NamedTuple):
    """Another reading of one table's boxes: what it would change."""

    met: float
    outside: float
    what: str
    code: str
    meaning: str


def convention(sample: Sample, met: float) -> Note | None:
    """Return the note of another reading of the boxes by which far more of them meet."""
    if met > MOST_MET:
        return None
    best = max(_readings(sample), default=None)
    if best is None or best.met <= max(0.3, 2 * met + 0.1):
        return _relative(sample)
    table = sample.detections if best.what == "detections" else sample.truth
    message = (
        f"the boxes of the {best.what.replace('-', ' ')} look like {best.meaning}: read so, "
        f"{best.met:.0%} of the ground truths would be met by a detection, and {met:.0%} are as "
        "they stand"
    )
    return Note(f"{best.what}-{best.code}", message, len(table))


def _readings(sample: Sample) -> Iterator[_Reading]:
    """Give every other reading; the best is the largest.

    To read one side's sides as corners helps as much as the reverse on the other side. Then the
    side that leaves its images is the one that is wrong.
    """
    truth, detections = sample.truth, sample.detections
    sizes = truth.image_sizes
    for what, table in (("ground-truth", truth), ("detections", detections)):
        known = np.full((len(table), 2), np.nan) if sizes is None else sizes[table.image]
        outside = float((table.corners[:, 2:] > known).any(axis=1).mean())
        relative = bool(table.corners.max(initial=0.0) <= 2)
        for code, meaning, change in _CONVENTIONS:
            if code == "look-relative" and (sizes is None or not relative):
                continue
            share = (
                sample.met_share(change)
                if table is detections
                else sample.met_share(of_truths=change)
            )
            order = 1.0 if table is detections else 0.0
            yield _Reading(round(share, 1), outside + order / 100, what, code, meaning)


def _relative(sample: Sample) -> Note | None:
    """Return the note of boxes within the first pixels where the other table's are not."""
    tables = {"detections": sample.detections, "ground truth": sample.truth}
    reach = {what: float(table.corners.max(initial=0.0)) for what, table in tables.items()}
    for what, other in (("detections", "ground truth"), ("ground truth", "detections")):
        if reach[what] <= 2 and reach[other] >= 10:
            message = (
                f"the boxes of the {what} look like shares of the image's size where pixels are "
                f"due: none reaches beyond {reach[what]:.3g}"
            )
            code = f"{what.replace(' ', '-')}-look-relative"
            return Note(code, message, len(tables[what]))
    return None
