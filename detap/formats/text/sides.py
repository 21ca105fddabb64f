"""Boxes that end before they begin: counted where they are few, refused where they are many."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detap.errors import InputError, Note, Problem, UsageError
from detap.formats.reading.stream import Limits
from detap.formats.text.folder import (
    Folder,
)
from detap.formats.text.lines import (
    SWAPPED,
    LineForm,
    Problems,
    read_lines,
    side_fault,
)
from detap.formats.text.rows import (
    Rows,
    content,
    rows_of,
)
from detap.tables.detection import (
    BOX_ENCODINGS,
    encode_boxes,
)
from detap.tables.doubts import (
    backward,
    backward_note,
    fractions_problem,
    in_fractions,
    too_many,
    too_many_backward,
)


def check_encoding(boxes: str) -> None:
    """Raise UsageError where the four numbers of a box are nothing that is known."""
    if boxes not in BOX_ENCODINGS:
        raise UsageError(f"boxes {boxes!r} is unknown; use one of {', '.join(BOX_ENCODINGS)}")


@dataclass(frozen=True, slots=True)
class Stand:
    """Where boxes stand: in lines of a form, or (None) in XML."""

    folder: Folder
    members: Sequence[str]
    form: LineForm | None
    limits: Limits
    as_is: bool

    @property
    def encoding(self) -> str:
        """What the four numbers of a box are."""
        return "corners" if self.form is None else self.form.encoding

    def faults(self, rows: Rows, at: NDArray[np.intp]) -> Iterator[Problem]:
        """Give a problem for each of the rows `at`, whose box ends before it begins."""
        fine = encode_boxes(rows.values[at, -4:], "xywh")
        swapped = self.encoding == "corners" and not len(backward(*fine))
        remedy = SWAPPED if swapped and self.form is not None else "correct the boxes"
        for row in at.tolist():
            number = int(rows.file[row])
            file = self.folder.file(self.members[number])
            fault = side_fault(rows.values[row, -4:].tolist(), self.encoding)
            yield Problem(
                file, *self._place(file, row - int(rows_of(rows, number)[0]), fault), remedy
            )

    def _place(self, file: str, record: int, fault: str) -> tuple[str, str]:
        if self.form is None:
            for line, element in (("2", "max"), ("1", "min")):
                fault = fault.replace(f"x{line}", f"x{element}").replace(f"y{line}", f"y{element}")
            return f"object {record + 1}", fault
        problems = Problems(1)
        lines = read_lines(content(file, problems, self.limits) or b"", file, self.form, problems)
        return f"line {lines.place[record]}" if record < len(lines.place) else "", fault


def negative_sides(kind: str, stand: Stand, rows: Rows, at: NDArray[np.intp]) -> tuple[Note, ...]:
    """Warn of the rows `at`, whose boxes end before they begin; refuse them where they are many."""
    if not len(at):
        return ()
    if stand.as_is or not too_many(len(at), len(rows)):
        first = next(stand.faults(rows, at[:1]))
        where = ": ".join(part for part in (first.file, first.place, first.message) if part)
        return (backward_note(kind, len(at), where),)
    boxes = rows.values[:, -4:]
    if in_fractions(boxes):
        example = " ".join(f"{value:.6g}" for value in boxes[0].tolist())
        what = "the detections" if kind == "detections" else "the ground truth"
        raise InputError(fractions_problem(stand.folder.given, what, example))
    listed = list(stand.faults(rows, at[: stand.limits.problems]))
    looks = ": they look like x, y, width and height" if listed[0].remedy == SWAPPED else ""
    raise too_many_backward(stand.folder.given, len(at), len(rows), listed, looks)
