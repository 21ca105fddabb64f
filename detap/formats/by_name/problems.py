"""Readers of rows, and boxes of negative size."""

from detap.checks.tables import look_normalized, negative_size_error, normalized_problem
from detap.errors import InputError, Note, Problem
from detap.io.limits import Limits
from detap.io.stream import refuse
from detap.tables.detection import Flags, Floats, encode_boxes
from detap.tables.notes import Rows, backward, backward_note, exchanged, too_many

CORNERS = ("x1", "y1", "x2", "y2")
_CORRECT = "correct the boxes"


def refuse_empty(path: str, records: int, limits: Limits, missing: str, content: str) -> None:
    """Raise InputError for ground truth without records, unless allowed."""
    if not records and not limits.empty:
        refuse(path, f"no {missing}", f"use the {content} that belong to these detections")


class RowReader:
    """A reader of rows that provides their locations for messages."""

    path: str  # the input's name in messages
    limits: Limits
    as_is: bool  # failed plausibility checks are warnings
    corner_names = CORNERS
    fixed_boxes = False  # True if no option changes the format of the boxes
    without_scores = False  # True if the file has no place for scores
    refuses_negative_sizes = True  # many of them; False if a note is enough
    extra_images: tuple[Note, ...] = ()  # of detections that are left out
    correct = _CORRECT  # hint for boxes of negative size
    swapped = ""  # hint for swapped corners that are valid as xywh, if the format allows that

    def location(self, row: int) -> tuple[str, str]:
        """Return the file of a row and its location: ``("a.xml", "object 2")``."""
        raise NotImplementedError

    def box_problem(self, box: list[float], box_format: str) -> str:
        """Return a message for a box of negative size, or ""."""
        first, second, third, fourth = box
        if box_format == "xywh":
            for name, size in (("width", third), ("height", fourth)):
                if size < 0:
                    return f"{name} {size:g} is negative"
            return ""
        x1, y1, x2, y2 = self.corner_names
        for low, high, begin, end in ((first, third, x1, x2), (second, fourth, y1, y2)):
            if high < low:
                return f"{end} = {high:g} is less than {begin} = {low:g}"
        return ""

    def box_problems(
        self, boxes: Floats, rows: Rows, box_format: str, hint: str = _CORRECT
    ) -> list[Problem]:
        """Return the problems of `rows`, whose boxes have negative size."""
        return [
            Problem(*self.location(row), self.box_problem(boxes[row].tolist(), box_format), hint)
            for row in rows.tolist()
        ]


def negative_size_notes(
    kind: str,
    reader: RowReader,
    boxes: Floats,
    box_format: str,
    rows: Rows,
    *,
    selected: Flags | None = None,
) -> tuple[Note, ...]:
    """Note rows of negative size; raise InputError if many of the `selected` rows have one."""
    if not len(rows):
        return ()
    counts = len(rows), len(boxes)
    if selected is not None:
        counts = int(selected[rows].sum()), int(selected.sum())
    noted = reader.as_is or not reader.refuses_negative_sizes or reader.limits.is_part(kind)
    if noted or not (counts[0] and too_many(*counts)):
        first = reader.box_problems(boxes, rows[:1], box_format)[0]
        where = ": ".join(filter(None, (first.file, first.location, first.message)))
        return (backward_note(kind, len(rows), where),)
    if look_normalized(boxes):
        example = " ".join(f"{value:.6g}" for value in boxes[0].tolist())
        raise InputError(normalized_problem(reader.path, kind, example))
    looks, hint = "", reader.correct
    if box_format == "xyxy":
        looks, _ = exchanged(boxes, reader.corner_names)
        if reader.swapped and not looks and not len(backward(*encode_boxes(boxes, "xywh"))):
            looks, hint = "they look like x, y, width and height", reader.swapped
    listed = reader.box_problems(boxes, rows[: reader.limits.problems], box_format, hint)
    raise negative_size_error(reader.path, len(rows), len(boxes), listed, looks)
