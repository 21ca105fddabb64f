"""Collecting what is wrong with an input of many files, and quoting it."""

from collections.abc import Callable

from detap.errors import InputError, Problem
from detap.io.limits import Limits
from detap.io.problems import Listed
from detap.io.stream import refuse


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

    def add(self, file: str, place: str, message: str, remedy: str = "") -> None:
        """Note one problem."""
        self.note(Problem(file, place, message, remedy))

    def raise_any(self) -> None:
        """Raise likewise, led by the cause that many problems share."""
        if self.listed and (lead := self.cause() or self.lead) is not None:
            raise InputError([lead, *self.listed], self.count - len(self.listed))
        super().raise_any()
