"""What detap raises, and what it notes without raising.

One tree: every error that detap raises on purpose is a :class:`DetapError` and knows the exit
status that the command line gives it. Anything else that escapes is a defect of detap itself.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from detap.records import Value

Severity: TypeAlias = Literal["warning", "info"]


class Problem(NamedTuple):
    """One thing that is wrong with an input.

    Attributes
    ----------
    file : str
        The path as it was given.
    place : str
        Where in the file: ``"record 3"``, ``"line 12"``, ``"object 2"``; empty for the whole file.
    message : str
        What is wrong, with the value.
    remedy : str
        What to do about it; may be empty where the message says it.
    """

    file: str
    place: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.file, self.place) if part)
        text = f"{where}: {self.message}" if where else self.message
        return f"{text}; {self.remedy}" if self.remedy else text


class Note(Value):
    """Something true of valid input that its owner may want to know.

    Attributes
    ----------
    code : str
        A stable name, such as ``"missing-area"``, listed in the docs.
    message : str
        A sentence for people, without the count.
    count : int
        How many records it is true of.
    severity : {"warning", "info"}
        ``warning`` if it deserves attention.
    """

    code: str
    message: str
    count: int = 1
    severity: Severity = "warning"

    def __str__(self) -> str:
        count = f" ({self.count})" if self.count > 1 else ""
        return f"{self.message}{count} [{self.code}]"


class DetapWarning(UserWarning):
    """A note that deserves attention, as :func:`detap.evaluate` says it to Python's `warnings`.

    Attributes
    ----------
    note : Note
        What is said.
    """

    def __init__(self, note: Note) -> None:
        self.note = note
        super().__init__(note)


class DetapError(Exception):
    """The root of the tree.

    Attributes
    ----------
    exit_status : int
        What the command line exits with.
    """

    exit_status = 3


class UsageError(DetapError):
    """The call is wrong: an option, an argument, or a combination of them."""

    exit_status = 2


class UnknownNameError(UsageError, KeyError):
    """Nothing is called so; the message has near names."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError's own would quote it


class MaskError(UsageError, ValueError):
    """What is given as a mask to the functions of ``detap.compat.pycocotools.mask`` is none."""


class InputError(DetapError):
    """A file or an array cannot be read as what it should be.

    Parameters
    ----------
    problems : Problem or iterable of Problem
        At least one.
    omitted : int
        How many further problems were found but not listed.
    """

    exit_status = 2

    def __init__(self, problems: Problem | Iterable[Problem], omitted: int = 0) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        self.omitted = omitted
        lines = [str(problem) for problem in self.problems]
        if omitted:
            lines.append(f"... and {omitted} more")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.problems, self.omitted), vars(self)


class OutputError(DetapError):
    """A report cannot be written where it should go."""

    exit_status = 2


class DifferenceError(DetapError):
    """A cross-check found numbers that differ from the reference's."""

    exit_status = 1
