"""Collecting what is wrong with an input, so that one run names all of it."""

from collections.abc import Sequence

from detap.errors import InputError, Problem, UsageError


class FaultError(Exception):
    """Why a part of an input cannot be read: the message, and what to do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


def check_choice(what: str, given: object, choices: Sequence[str]) -> None:
    """Raise UsageError where an option is none of its choices."""
    if given not in choices:
        raise UsageError(f"{what} {given!r} is unknown; use one of {', '.join(choices)}")


class Listed:
    """Problems: listed up to a limit, counted beyond it.

    Parameters
    ----------
    limit : int
        How many are listed.

    Attributes
    ----------
    listed : list of Problem
    count : int
        How many there are, listed or not.
    """

    def __init__(self, limit: int) -> None:
        self.limit = max(1, limit)
        self.listed: list[Problem] = []
        self.count = 0

    def note(self, *problems: Problem) -> None:
        """Note problems."""
        self.count += len(problems)
        self.listed += problems[: max(0, self.limit - len(self.listed))]

    def raise_any(self) -> None:
        """Raise the :class:`InputError` of all problems, if there are any."""
        if self.count:
            raise InputError(self.listed, self.count - len(self.listed))


class Problems(Listed):
    """The problems of one file.

    Parameters
    ----------
    file : str
        What messages call the file.
    limit : int
        How many are listed.
    """

    def __init__(self, file: str, limit: int) -> None:
        super().__init__(limit)
        self.file = file

    def add(self, place: str, message: str, remedy: str = "") -> None:
        """Note one problem."""
        self.note(Problem(self.file, place, message, remedy))

    def lead(self, place: str, message: str, remedy: str = "") -> None:
        """Note a problem that is to be read before all others."""
        self.count += 1
        self.listed.insert(0, Problem(self.file, place, message, remedy))
        del self.listed[self.limit :]

    def instead(self, message: str, remedy: str = "") -> None:
        """Replace all problems by the one cause that they share."""
        self.listed = [Problem(self.file, "", message, remedy)]
        self.count = 1
