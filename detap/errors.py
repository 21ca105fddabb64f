"""Exceptions, and notes on valid input.

Every error that detap raises on purpose is a :class:`DetapError` with the exit status of the
command line. Any other exception is a bug in detap.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

Severity: TypeAlias = Literal["warning", "info"]


class Problem(NamedTuple):
    """An error in an input: file, location, message and hint."""

    file: str  # path, as given
    # As "record 3" or "line 12"; empty for the whole file.
    location: str
    message: str  # what is wrong, with the value
    hint: str = ""  # what to do about it; may be empty where the message says it

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.file, self.location) if part)
        text = f"{where}: {self.message}" if where else self.message
        return f"{text}; {self.hint}" if self.hint else text


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on valid input.

    Attributes
    ----------
    code : str
        Stable identifier, such as ``"missing-area"``; the docs list all.
    message : str
        Text for people, without the count.
    count : int
        Number of records it applies to.
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
    """A note of severity ``warning``, as issued through Python's `warnings`.

    Attributes
    ----------
    note : Note
        The note.
    """

    def __init__(self, note: Note) -> None:
        self.note = note
        super().__init__(note)


class DetapError(Exception):
    """Base class of all errors of detap.

    Parameters
    ----------
    *lines : str
        The message; mostly one line.

    Attributes
    ----------
    exit_status : int
        Exit status of the command line.
    """

    exit_status = 3

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


class UsageError(DetapError):
    """An invalid option or argument, or an invalid combination."""

    exit_status = 2


class UnknownNameError(UsageError, KeyError):
    """An unknown name; the message suggests similar ones."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError's own adds quotes


class InputError(DetapError):
    """An invalid input file or array.

    Parameters
    ----------
    problems : Problem or iterable of Problem
        At least one.
    omitted : int
        Number of further problems that are not listed.
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
    """A report that cannot be written."""

    exit_status = 2


class DifferenceError(DetapError):
    """A cross-check whose metrics differ from the reference's."""

    exit_status = 1
