"""Fractions of images to pixels, and what may be wrong with them."""

from collections.abc import Callable

import numpy as np

from detap.errors import InputError, Problem
from detap.formats.named.problems import Problems
from detap.formats.text.rows import Rows
from detap.formats.yolo.lines import BOX, COLUMNS
from detap.tables.detection import Flags, Floats
from detap.tables.doubts import INSIST, too_many

Place = Callable[[int], tuple[str, str]]
"""From a row to its file and its line."""

LOWEST, HIGHEST = -0.01, 1.01
"""What a fraction may be: Ultralytics leaves out images whose labels are further beyond."""
_SIDES = ("the lowest x", "the lowest y", "the highest x", "the highest y")
_PIXELS = 2.0


def boxes_and_scores(rows: Rows, columns: str | None, path: str) -> tuple[Floats, Floats]:
    """Return the box (N, 4) and the confidence (N,) of each row of detections.

    Parameters
    ----------
    rows : Rows
        With five numbers each.
    columns : {"conf-last", "conf-first"} or None
        Where the confidence stands; told from the boxes where None.
    path : str

    Raises
    ------
    InputError
        Where it cannot be told.
    """
    if (columns or _told(rows, path)) == "conf-first":
        return np.where(rows.flag[:, None], rows.values[:, :4], rows.values[:, 1:]), np.where(
            rows.flag, rows.values[:, 4], rows.values[:, 0]
        )
    return rows.values[:, :4].copy(), rows.values[:, 4].copy()


def _told(rows: Rows, path: str) -> str:
    """Return where the confidence stands: where the other four numbers are boxes that fit."""
    values = rows.values[~rows.flag]
    if not len(values):
        return COLUMNS[0]
    odd = [int(np.count_nonzero(~_fits(box))) for box in (values[:, :4], values[:, 1:])]
    # All that fit tell; and nearly all, where a detector lets boxes reach beyond their images.
    for last, first in ([not count for count in odd], [not too_many(n, len(values)) for n in odd]):
        if last != first:
            return COLUMNS[0] if last else COLUMNS[1]
    if not last and np.median(values[:, 1:4].max(axis=1)) > _PIXELS:
        return COLUMNS[0]  # pixels, of which is said what they are
    how = "both fit their images" if last else "neither fits its image"
    raise InputError(
        Problem(
            path,
            "",
            "the confidence may be the last column or the one behind the class: read either way, "
            f"boxes are such that {how}",
            "say --columns conf-last, as Ultralytics writes them, or --columns conf-first, as "
            "Padilla's tools do",
        )
    )


def _fits(box: Floats) -> Flags:
    """Return whether boxes (N, 4), centre and sides, lie in their images."""
    low, high = box[:, :2] - box[:, 2:] / 2, box[:, :2] + box[:, 2:] / 2
    inside: Flags = (low >= LOWEST) & (high <= HIGHEST) & (box[:, 2:] >= 0)
    return inside[:, 0] & inside[:, 1]


def check_fractions(
    rows: Rows, box: Floats, place: Place, problems: Problems, *, as_is: bool
) -> None:
    """Refuse files of boxes and polygons, and numbers that are no fractions.

    Parameters
    ----------
    rows : Rows
    box : (N, 4) float64
        Of a polygon its lowest and highest x and y, else centre and sides.
    place : callable
    problems : Problems
        Gets what is wrong.
    as_is : bool
        Whether boxes may reach beyond their images.
    """
    _refuse_mixed(rows, place, problems)
    outside = (box < LOWEST) | (box > HIGHEST)
    if as_is or not outside.any():
        return
    at = np.flatnonzero(outside.any(axis=1))
    remedy = f"correct it; or, if boxes reach beyond their images indeed, give {INSIST}"
    if 2 * len(at) > len(rows) and np.median(box[at].max(axis=1)) > _PIXELS:
        remedy = (
            "these look like pixels: divide x and width by the image's width, y and height by its "
            "height; or, where lines are `class x1 y1 x2 y2`, or `class conf x1 y1 x2 y2`, give "
            "--format voc"
        )
    for row in at[: problems.limit].tolist():
        column = int(outside[row].argmax())
        title = (_SIDES if rows.flag[row] else BOX)[column]
        message = f"{title} {box[row, column]:.6g} is no fraction of the image, from 0 to 1"
        problems.add(*place(row), message, remedy)
    problems.count += max(0, len(at) - problems.limit)


def _refuse_mixed(rows: Rows, place: Place, problems: Problems) -> None:
    if not rows.flag.any() or rows.flag.all():
        return
    both = np.flatnonzero(rows.flag[1:] != rows.flag[:-1]) + 1
    both = both[rows.file[both] == rows.file[both - 1]]
    _, first = np.unique(rows.file[both], return_index=True)
    for row in both[first].tolist():
        here, above = ("a polygon", "a box") if rows.flag[row] else ("a box", "a polygon")
        message = f"is {here}, where the line above is {above}: a file holds one of the two"
        problems.add(*place(row), message, "write all objects of an image alike")


def in_pixels(box: Floats, is_polygon: Flags, size: Floats) -> Floats:
    """Return x, y, width and height (N, 4) in pixels.

    The order of operations is that of writers of COCO's JSON, who go by way of the corners: another
    one moves last bits, and with them overlaps that lie on a threshold.

    Parameters
    ----------
    box : (N, 4) float64
        As :func:`check_fractions` has it.
    is_polygon : (N,) bool
    size : (N, 2) float64
        Of the image of each.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        first, second = box[:, :2] * size, box[:, 2:] * size
        low = np.where(is_polygon[:, None], first, first - second / 2)
        high = np.where(is_polygon[:, None], second, first + second / 2)
        pixels: Floats = np.concatenate([low, high - low], axis=1)
    return pixels


def check_areas(pixels: Floats, place: Place, problems: Problems) -> None:
    """Refuse boxes (N, 4) whose area is beyond every number."""
    with np.errstate(over="ignore", invalid="ignore"):
        fine = np.isfinite(pixels).all(axis=1) & np.isfinite(pixels[:, 2] * pixels[:, 3])
    for row in np.flatnonzero(~fine)[: problems.limit].tolist():
        problems.add(*place(row), "the area of the box overflows", "correct the box")
