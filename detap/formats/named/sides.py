"""Boxes that end before they begin: counted where they are few, refused where they are many."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detap.checks.tables import fractions_problem, in_fractions, too_many_backward
from detap.errors import InputError, Note, Problem
from detap.io.limits import Limits
from detap.tables.detection import Floats, encode_boxes
from detap.tables.notes import backward, backward_note, too_many

CORNERS = ("x1", "y1", "x2", "y2")


@dataclass(frozen=True, slots=True)
class Stand:
    """Where rows stand, which is asked only when something is to be said of them.

    Attributes
    ----------
    path : str
        The input as it was given.
    limits : Limits
        `problems` is obeyed.
    as_is : bool
        Whether a refusal that rests on a suspicion becomes a warning.
    place : callable
        Takes a row, returns its file and its place there: ``("a.xml", "object 2")``.
    encoding : {"xyxy", "xywh"}
        What the four numbers of a box are.
    corners : tuple of str
        What the format calls them where they are corners.
    swapped : str
        The remedy of corners in the wrong order that would be fine as x, y, width and height;
        empty where the format leaves no such doubt.
    """

    path: str
    limits: Limits
    as_is: bool
    place: Callable[[int], tuple[str, str]]
    encoding: str = "xyxy"
    corners: tuple[str, str, str, str] = CORNERS
    swapped: str = ""

    def fault(self, box: list[float]) -> str:
        """Return which side of a box is negative, or an empty string where none is."""
        first, second, third, fourth = box
        if self.encoding == "xywh":
            for name, side in (("width", third), ("height", fourth)):
                if side < 0:
                    return f"{name} {side:g} is negative"
            return ""
        x1, y1, x2, y2 = self.corners
        for low, high, begin, end in ((first, third, x1, x2), (second, fourth, y1, y2)):
            if high < low:
                return f"{end} = {high:g} is less than {begin} = {low:g}"
        return ""

    def faults(self, boxes: Floats, at: NDArray[np.intp]) -> list[Problem]:
        """Return a problem for each of the rows `at`, whose box ends before it begins."""
        remedy = "correct the boxes"
        if self.swapped and self.encoding == "xyxy":
            remedy = remedy if len(backward(*encode_boxes(boxes[at], "xywh"))) else self.swapped
        return [
            Problem(*self.place(row), self.fault(boxes[row].tolist()), remedy)
            for row in at.tolist()
        ]


def negative_sides(
    kind: str, stand: Stand, boxes: Floats, at: NDArray[np.intp]
) -> tuple[Note, ...]:
    """Warn of the rows `at`, whose boxes end before they begin; refuse them where they are many.

    Parameters
    ----------
    kind : {"detections", "ground-truth"}
    stand : Stand
    boxes : (N, 4) float64
        As the files have them.
    at : (n,) array of int
    """
    if not len(at):
        return ()
    part = stand.limits.is_part(kind)
    if stand.as_is or part or not too_many(len(at), len(boxes)):
        first = stand.faults(boxes, at[:1])[0]
        where = ": ".join(part for part in (first.file, first.place, first.message) if part)
        return (backward_note(kind, len(at), where),)
    if in_fractions(boxes):
        example = " ".join(f"{value:.6g}" for value in boxes[0].tolist())
        what = "the detections" if kind == "detections" else "the ground truth"
        raise InputError(fractions_problem(stand.path, what, example))
    listed = stand.faults(boxes, at[: stand.limits.problems])
    looks = ": they look like x, y, width and height" if listed[0].remedy == stand.swapped else ""
    raise too_many_backward(stand.path, len(at), len(boxes), listed, looks)
