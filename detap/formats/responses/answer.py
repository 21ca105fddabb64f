"""Boxes and notes of one answer."""

from math import nan
from typing import NamedTuple

_LARGEST = 1e100
"""Areas of smaller boxes are finite."""


class Box(NamedTuple):
    """A box as the answer has it."""

    label: str  # white space is collapsed
    numbers: tuple[float, ...]  # in the order and unit of the dialect
    score: float = nan


class Answer:
    """Boxes, bad boxes and notes of one answer."""

    def __init__(self, line_label: str = "") -> None:
        self.line_label = line_label  # the class that was asked for; of boxes without a label
        self.boxes: list[Box] = []
        self.bad: list[str] = []  # the text of each bad box
        self.notes: set[str] = set()
        self.is_empty = False  # True if the answer says that there are no objects
        self.other_keys: set[str] = set()  # box keys of other dialects

    def add(self, label: object, numbers: object, text: str, score: object = None) -> None:
        """Add a box, a bad one unless it has four finite numbers and a label."""
        name = collapse(label) if isinstance(label, str) else ""
        name = name or self.line_label
        values = finite_numbers(numbers)
        if name and is_text(name) and len(values) == 4:
            self.boxes.append(Box(name, values, *finite_numbers([score])))
        else:
            self.bad.append(text)

    @property
    def failed(self) -> bool:
        """True if there is neither a box, nor a bad one, nor a valid empty answer."""
        return not (self.boxes or self.bad or self.is_empty)

    def all_notes(self) -> list[str]:
        """Return the codes of the notes, sorted."""
        conditions = {
            "bad-boxes": bool(self.bad),
            "failed": self.failed,
            "repeated-boxes": len({box[:2] for box in self.boxes}) < len(self.boxes),
        }
        return sorted({*self.notes, *(name for name, holds in conditions.items() if holds)})


def collapse(label: str) -> str:
    """Return a label without white space around it, and with single spaces."""
    return " ".join(label.split())


def is_text(label: str) -> bool:
    """Return False for half a surrogate pair, which no report can show."""
    return not any("\ud800" <= character <= "\udfff" for character in label)


def finite_numbers(values: object) -> tuple[float, ...]:
    """Return the numbers of a list; none if it has another value."""
    if not isinstance(values, list):
        return ()
    are_finite = all(isinstance(value, float) and abs(value) < _LARGEST for value in values)
    return tuple(values) if are_finite else ()
