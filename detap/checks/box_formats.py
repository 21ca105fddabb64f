"""Boxes in another convention: what they would be, and whether far more of them would meet."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from detap.checks.sample import MOST_MET, Change, Sample, beyond_chance, share_of
from detap.errors import Note
from detap.tables.detection import Flags, Floats


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


def _shares_swapped(corners: Floats, sizes: Floats) -> Floats:
    """Swap the sides of boxes that were shares of their image's, about the centre."""
    middle = (corners[:, :2] + corners[:, 2:]) / 2
    half = ((corners[:, 2:] - corners[:, :2]) / sizes)[:, ::-1] * sizes / 2
    return np.hstack((middle - half, middle + half))


def _share_axes_swapped(corners: Floats, sizes: Floats) -> Floats:
    return _sizes_swapped(corners, sizes)[:, [1, 0, 3, 2]]


def _from_corner(corners: Floats, _: Floats) -> Floats:
    half = (corners[:, 2:] - corners[:, :2]) / 2
    return corners + np.hstack((half, half))


def _corners_centred(corners: Floats, _: Floats) -> Floats:
    """Take centres and sides for the two corners."""
    return np.hstack(((corners[:, :2] + corners[:, 2:]) / 2, corners[:, 2:] - corners[:, :2]))


def _scaled(corners: Floats, sizes: Floats) -> Floats:
    return corners * np.hstack((sizes, sizes))


def _sizes_swapped(corners: Floats, sizes: Floats) -> Floats:
    turned = sizes[:, ::-1] / sizes
    return corners * np.hstack((turned, turned))


def _centre_scaled(corners: Floats, sizes: Floats) -> Floats:
    return _scaled(_from_centre(corners, sizes), sizes)


_CONVENTIONS: tuple[tuple[str, str, Change], ...] = (
    ("look-xyxy", "x1, y1, x2, y2 where x, y, width, height is due", _as_corners),
    ("look-xywh", "x, y, width, height where x1, y1, x2, y2 is due", _as_sides),
    (
        "look-xyxy",
        "x1, y1, x2, y2 where the centre and the sides are due",
        _corners_centred,
    ),
    ("look-centered", "given by their centre where the corner is due", _from_centre),
    ("look-top-left", "given by their corner where the centre is due", _from_corner),
    ("xy-swapped", "given with x and y swapped", _axes_swapped),
    (
        "xy-swapped",
        "shares given with x and y swapped, unless those of the other side are",
        _share_axes_swapped,
    ),
    ("width-height-swapped", "given with width and height swapped", _sides_swapped),
    ("width-height-swapped", "shares given with width and height swapped", _shares_swapped),
    (
        "sizes-look-swapped",
        "multiplied by the height of the image where its width is due, and the reverse",
        _sizes_swapped,
    ),
    ("look-normalized", "shares of the image's size where pixels are due", _scaled),
    ("look-normalized", "shares of the image's size, by their centre", _centre_scaled),
)


_OF_SIZES = (_share_axes_swapped, _shares_swapped, _sizes_swapped, _scaled, _centre_scaled)

_SOME = 10


class _Reading(NamedTuple):
    """Another reading of one table's boxes: what it would change."""

    met: float
    outside: float
    what: str
    code: str
    meaning: str
    of_found: Change | None
    of_truths: Change | None


def convention(sample: Sample, met: float) -> Note | None:
    """Return the note of another reading of the boxes by which far more of them meet."""
    if met > MOST_MET:
        return None
    rounded = (one._replace(met=round(one.met, 1)) for one in _readings(sample, _CONVENTIONS))
    best = max(rounded, default=None)
    if best is None or best.met <= max(0.3, 2 * met + 0.1):
        return _relative(sample)
    table = sample.detections if best.what == "detections" else sample.ground_truth
    message = (
        f"the boxes of the {best.what.replace('-', ' ')} look like {best.meaning}: read so, "
        f"{best.met:.0%} of the ground truths would be met by a detection, and {met:.0%} are as "
        "they stand"
    )
    return Note(f"{best.what}-{best.code}", message, len(table))


def mixed_conventions(sample: Sample) -> Note | None:
    """Return the note of another reading by which many more are met that are not as they stand.

    Only of corners taken for sides, and the reverse: in any other reading a box that is nearly
    right may become so.
    """
    count = len(sample.rows)
    found = []
    for one in _readings(sample, _CONVENTIONS[:2], ~sample.met):
        gained = one.met * count
        if gained >= max(_SOME, 0.1 * count) and beyond_chance(
            gained, sample.chance(*one[-2:]), count
        ):
            found.append((one.outside, gained, one))
    if not found:
        return None
    _, gained, best = max(found)
    message = (
        f"some boxes of the {best.what.replace('-', ' ')} look like {best.meaning}: read so, they "
        f"would meet {gained:.0f} more of the {count} ground truths looked at, and "
        f"{np.count_nonzero(sample.met)} are met as they stand"
    )
    return Note(f"{best.what}-mixed-conventions", message, round(gained))


def _readings(
    sample: Sample,
    conventions: Sequence[tuple[str, str, Change]],
    among: Flags | bool = True,
) -> Iterator[_Reading]:
    """Give every other reading, and the share of ground truths, of those marked, that it meets.

    To read one side's sides as corners helps as much as the reverse on the other side. Then the
    side that leaves its images is the one that is wrong.
    """
    truth, detections = sample.ground_truth, sample.detections
    sizes = truth.image_sizes
    for what, table in (("ground-truth", truth), ("detections", detections)):
        known = np.full((len(table), 2), np.nan) if sizes is None else sizes[table.image]
        outside = float((table.corners[:, 2:] > known).any(axis=1).mean())
        relative = bool(table.corners.max(initial=0.0) <= 2)
        for code, meaning, function in conventions:
            if sizes is None and function in _OF_SIZES:
                continue
            if code == "look-normalized" and not relative:
                continue
            change = (function, None) if table is detections else (None, function)
            share = share_of(sample.met_if(*change) & among)
            order = 1.0 if table is detections else 0.0
            yield _Reading(share, outside + order / 100, what, code, meaning, *change)


def _relative(sample: Sample) -> Note | None:
    """Return the note of boxes within the first pixels where the other table's are not."""
    tables = {"detections": sample.detections, "ground truth": sample.ground_truth}
    reach = {what: float(table.corners.max(initial=0.0)) for what, table in tables.items()}
    for what, other in (("detections", "ground truth"), ("ground truth", "detections")):
        if reach[what] <= 2 and reach[other] >= 10:
            message = (
                f"the boxes of the {what} look like shares of the image's size where pixels are "
                f"due: none reaches beyond {reach[what]:.3g}"
            )
            code = f"{what.replace(' ', '-')}-look-normalized"
            return Note(code, message, len(tables[what]))
    return None
