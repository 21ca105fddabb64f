"""What is wrong with an input of many files, and boxes that end before they begin."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from detap.checks.tables import fractions_problem, in_fractions, too_many_backward
from detap.errors import InputError, Note, Problem
from detap.io.limits import Limits
from detap.io.problems import Listed
from detap.io.stream import refuse
from detap.tables.detection import Floats, encode_boxes
from detap.tables.notes import backward, backward_note, too_many

CORNERS = ("x1", "y1", "x2", "y2")


def refuse_empty(path: str, records: int, limits: Limits, what: str, of: str) -> None:
    """Refuse ground truth without any record, unless that is meant.

    Parameters
    ----------
    path : str
    records : int
        How many were found.
    limits : Limits
        `empty` is obeyed.
    what : str
        Which are missing, and where.
    of : str
        What people call such files: annotations, labels.
    """
    if not records and not limits.empty:
        refuse(path, f"has no {what}", f"give the {of} that belong to these detections")


class Problems(Listed):
    """What is wrong with the files of one input so far.

    Attributes
    ----------
    lead : Problem or None
        What explains the others, to be read before them.
    cause : callable
        Returns another such problem, or None; it is asked when they are raised.
    strangers : dict of str to None
        The images that the ground truth lacks, in the order met; a few of them.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.lead: Problem | None = None
        self.cause: Callable[[], Problem | None] = lambda: None
        self.strangers: dict[str, None] = {}

    def add(self, file: str, location: str, message: str, hint: str = "") -> None:
        """Note one problem."""
        self.note(Problem(file, location, message, hint))

    def raise_any(self) -> None:
        """Raise likewise, led by the cause that many problems share."""
        if self.listed and (lead := self.cause() or self.lead) is not None:
            raise InputError([lead, *self.listed], self.count - len(self.listed))
        super().raise_any()


class RowReader:
    """Reads rows, and says where they stand, which is asked when something is wrong with them.

    Attributes
    ----------
    path : str
        What messages call the input.
    limits : Limits
        `problems` is obeyed.
    as_is : bool
        Whether a refusal that rests on a suspicion becomes a warning.
    corner_names : tuple of str
        What the format calls the coordinates of two corners.
    swapped : str
        The remedy of corners in the wrong order that would be fine as x, y, width and height;
        empty where the format leaves no such doubt.
    """

    path: str
    limits: Limits
    as_is: bool
    corner_names = CORNERS
    swapped = ""

    def location(self, row: int) -> tuple[str, str]:
        """Return the file of a row, and its place there: ``("a.xml", "object 2")``."""
        raise NotImplementedError

    def fault(self, box: list[float], encoding: str) -> str:
        """Return which side of a box is negative, or an empty string where none is."""
        first, second, third, fourth = box
        if encoding == "xywh":
            for name, side in (("width", third), ("height", fourth)):
                if side < 0:
                    return f"{name} {side:g} is negative"
            return ""
        x1, y1, x2, y2 = self.corner_names
        for low, high, begin, end in ((first, third, x1, x2), (second, fourth, y1, y2)):
            if high < low:
                return f"{end} = {high:g} is less than {begin} = {low:g}"
        return ""

    def faults(self, boxes: Floats, at: NDArray[np.intp], encoding: str = "xyxy") -> list[Problem]:
        """Return a problem for each of the rows `at`, whose box ends before it begins."""
        hint = "correct the boxes"
        if self.swapped and encoding == "xyxy":
            hint = hint if len(backward(*encode_boxes(boxes[at], "xywh"))) else self.swapped
        return [
            Problem(*self.location(row), self.fault(boxes[row].tolist(), encoding), hint)
            for row in at.tolist()
        ]


def negative_sides(
    kind: str, reader: RowReader, boxes: Floats, encoding: str, at: NDArray[np.intp]
) -> tuple[Note, ...]:
    """Warn of the rows `at`, whose boxes end before they begin; refuse them where they are many.

    Parameters
    ----------
    kind : {"detections", "ground-truth"}
    reader : RowReader
    boxes : (N, 4) float64
        As the files have them, in the encoding ``"xyxy"`` or ``"xywh"``.
    at : (n,) array of int
    """
    if not len(at):
        return ()
    part = reader.limits.is_part(kind)
    if reader.as_is or part or not too_many(len(at), len(boxes)):
        first = reader.faults(boxes, at[:1], encoding)[0]
        where = ": ".join(filter(None, (first.file, first.location, first.message)))
        return (backward_note(kind, len(at), where),)
    if in_fractions(boxes):
        example = " ".join(f"{value:.6g}" for value in boxes[0].tolist())
        what = "the detections" if kind == "detections" else "the ground truth"
        raise InputError(fractions_problem(reader.path, what, example))
    listed = reader.faults(boxes, at[: reader.limits.problems], encoding)
    looks = ": they look like x, y, width and height" if listed[0].hint == reader.swapped else ""
    raise too_many_backward(reader.path, len(at), len(boxes), listed, looks)
