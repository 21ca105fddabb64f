"""Fractions of images to pixels, and what may be wrong with them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from detap.errors import InputError, Note, Problem
from detap.formats.by_name.problems import Problems
from detap.formats.text.rows import Rows
from detap.formats.yolo.lines import COLUMNS, TITLES
from detap.tables.detection import Flags, Floats
from detap.tables.notes import INSIST, too_many

Place = Callable[[int], tuple[str, str]]
"""From a row to its file and its line."""

LOWEST, HIGHEST = -0.01, 1.01
"""What a fraction may be: Ultralytics leaves out images whose labels are further beyond."""
_SIDES = ("the lowest x", "the lowest y", "the highest x", "the highest y")
_PIXELS = 2.0


FEW = 20
"""Fewer rows than this may fit either order of columns by chance."""
_FAR = 0.25
"""By how much the shares of rows that meet a ground truth have to differ."""


class Columns(NamedTuple):
    """The order of the columns of predictions.

    Attributes
    ----------
    order : {"conf-last", "conf-first"}
    note : tuple of Note
        That it was inferred.
    doubtful : bool
        Whether so few rows may fit an order by chance that ground truths are to confirm it.
    """

    order: str
    note: tuple[Note, ...] = ()
    doubtful: bool = False

    def split(self, rows: Rows) -> tuple[Floats, Floats]:
        """Return the box (N, 4) and the confidence (N,) of each row of five numbers."""
        last, score = rows.values[:, :4], rows.values[:, 4]
        if self.order == COLUMNS[0]:
            return last.copy(), score.copy()
        polygon = rows.flag
        box = np.where(polygon[:, None], last, rows.values[:, 1:])
        return box, np.where(polygon, score, rows.values[:, 0])


def order_of_columns(rows: Rows, *, named: bool, box_format: str) -> Columns:
    """Return where the confidence stands: last, unless boxes refute that and fit the other order.

    Parameters
    ----------
    rows : Rows
        Of five numbers each.
    named : bool
        Whether classes are given by name, as Padilla's tools do, which write the confidence first.
    box_format : {"cxcywh", "xywh", "xyxy"}
    """
    values = rows.values[~rows.flag]
    if not len(values):
        return Columns(COLUMNS[0])
    few = len(values) < FEW and not named
    last, first = (
        int(np.count_nonzero(~_fits(b, box_format))) for b in (values[:, :4], values[:, 1:])
    )
    if named:
        chosen = not first
        why = "classes are given by name"
    else:
        chosen = bool(last) and not first
        # Detectors that let boxes reach beyond their images leave few rows that fit no order.
        chosen |= too_many(last, len(values)) and not too_many(first, len(values))
        why = f"{last} of {len(values)} boxes would lie beyond their image if it stood last"
    if chosen:
        message = f"the confidence is read as the second column: {why}; --columns conf-last differs"
        note = Note("columns-conf-first", message, len(values), severity="info")
        return Columns(COLUMNS[1], (note,), doubtful=few and last > 0)
    return Columns(COLUMNS[0], doubtful=few and last == first == 0)


def settle(chosen: Columns, last: Floats, first: Floats, path: str) -> Columns:
    """Return the order of few rows: as chosen, unless ground truths contradict.

    Parameters
    ----------
    chosen : Columns
        As :func:`order_of_columns` returns it.
    last, first : (N,) float64
        The greatest overlap of each row with a ground truth of its class, read either way.
    path : str

    Raises
    ------
    InputError
        If boxes fit either way, and far more rows meet a ground truth as conf-first.
    """
    met, other = (float(np.mean(overlap > 0.5)) for overlap in (last, first))
    if chosen.order != COLUMNS[0] and met < other + _FAR:
        return chosen
    if chosen.order == COLUMNS[0] and other >= met + _FAR:
        message = (
            "the confidence may be the last column or the second: boxes fit their images either "
            f"way, and {other:.0%} of {len(last)} overlap a ground truth of their class by more "
            f"than .5 if it is the second, {met:.0%} if it is the last"
        )
        hint = (
            "give --columns conf-first, as Padilla's tools write, or --columns conf-last, as "
            "Ultralytics does"
        )
        raise InputError(Problem(path, "", message, hint))
    message = (
        "rows fit `class xc yc w h conf` and `class conf xc yc w h`, and are read as the first; "
        "--columns conf-first reads the second"
    )
    return Columns(COLUMNS[0], (Note("columns-conf-last", message, len(last), severity="info"),))


def _fits(box: Floats, box_format: str) -> Flags:
    """Return whether boxes (N, 4) lie in their images."""
    low, high = _corners(box, box_format)
    inside: Flags = (low >= LOWEST) & (high <= HIGHEST) & (high >= low)
    return inside[:, 0] & inside[:, 1]


def _corners(box: Floats, box_format: str) -> tuple[Floats, Floats]:
    """Return the first and the last corner, (N, 2) each, of boxes (N, 4)."""
    first, second = box[:, :2], box[:, 2:]
    if box_format == "xyxy":
        return first, second
    if box_format == "xywh":
        return first, first + second
    return first - second / 2, first + second / 2


def check_fractions(
    rows: Rows,
    box: Floats,
    location: Place,
    problems: Problems,
    *,
    as_is: bool,
    box_format: str,
    reach: float | None = None,
) -> None:
    """Refuse files of boxes and polygons, and numbers that are no fractions.

    Parameters
    ----------
    rows : Rows
    box : (N, 4) float64
        Of a polygon its lowest and highest x and y, else as encoded.
    location : callable
    problems : Problems
        Gets what is wrong.
    as_is : bool
        Whether boxes may reach beyond their images.
    box_format : {"cxcywh", "xywh", "xyxy"}
    reach : float, optional
        How far polygons may reach beyond: as far as boxes, if not given.
    """
    _refuse_mixed(rows, location, problems)
    outside = (box < LOWEST) | (box > HIGHEST)
    if reach is not None:
        far = (box < -reach) | (box > 1 + reach)
        outside = np.where(rows.flag[:, None], far, outside)
    if as_is or not outside.any():
        return
    at = np.flatnonzero(outside.any(axis=1))
    hint = f"correct it; or, if boxes reach beyond their images indeed, give {INSIST}"
    if 2 * len(at) > len(rows) and np.median(box[at].max(axis=1)) > _PIXELS:
        hint = (
            "these look like pixels: divide x and width by the image's width, y and height by its "
            "height; or, where lines are `class x1 y1 x2 y2`, or `class conf x1 y1 x2 y2`, give "
            "--format voc"
        )
    for row in at[: problems.limit].tolist():
        column = int(outside[row].argmax())
        title = (_SIDES if rows.flag[row] else TITLES[box_format])[column]
        message = f"{title} {box[row, column]:.6g} is no fraction of the image, from 0 to 1"
        problems.add(*location(row), message, hint)
    problems.count += max(0, len(at) - problems.limit)


def _refuse_mixed(rows: Rows, location: Place, problems: Problems) -> None:
    if not rows.flag.any() or rows.flag.all():
        return
    both = np.flatnonzero(rows.flag[1:] != rows.flag[:-1]) + 1
    both = both[rows.file[both] == rows.file[both - 1]]
    _, first = np.unique(rows.file[both], return_index=True)
    for row in both[first].tolist():
        here, above = ("a polygon", "a box") if rows.flag[row] else ("a box", "a polygon")
        message = f"is {here}, where the line above is {above}: a file holds one of the two"
        problems.add(*location(row), message, "write all objects of an image alike")


def in_pixels(box: Floats, is_polygon: Flags, size: Floats, box_format: str = "cxcywh") -> Floats:
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
    box_format : {"cxcywh", "xywh", "xyxy"}
        What the four numbers are that are not of a polygon.
    """
    polygon = is_polygon[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = box * np.tile(size, (1, 2))
        low, high = _corners(scaled, box_format)
        sides = scaled[:, 2:] if box_format == "xywh" else high - low
        low = np.where(polygon, scaled[:, :2], low)
        sides = np.where(polygon, scaled[:, 2:] - scaled[:, :2], sides)
    pixels: Floats = np.concatenate([low, sides], axis=1)
    return pixels


def check_areas(pixels: Floats, location: Place, problems: Problems) -> None:
    """Refuse boxes (N, 4) whose area is beyond every number."""
    with np.errstate(over="ignore", invalid="ignore"):
        fine = np.isfinite(pixels).all(axis=1) & np.isfinite(pixels[:, 2] * pixels[:, 3])
    for row in np.flatnonzero(~fine)[: problems.limit].tolist():
        problems.add(*location(row), "box area overflows", "correct the box")
