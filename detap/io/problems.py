"""Collect the problems of an input, so that one error lists all."""

from collections.abc import Sequence

from detap.errors import InputError, Problem, UsageError


class FaultError(Exception):
    """A part of an input cannot be read."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


SHAPES = ("reject", "bbox")
"""Values of a reader's option `shapes`."""


def check_choice(option: str, value: object, choices: Sequence[str]) -> None:
    """Raise UsageError if an option's value is not one of its choices."""
    if value not in choices:
        raise UsageError(f"{option} {value!r} is unknown; use one of {', '.join(choices)}")


class Listed:
    """Problems listed up to a limit and counted beyond."""

    def __init__(self, limit: int) -> None:
        self.limit = max(1, limit)
        self.listed: list[Problem] = []
        self.count = 0

    def extend(self, *problems: Problem) -> None:
        """Add problems."""
        self.count += len(problems)
        self.listed += problems[: max(0, self.limit - len(self.listed))]

    def raise_any(self) -> None:
        """Raise InputError if there are problems."""
        if self.count:
            raise InputError(self.listed, self.count - len(self.listed))


class Problems(Listed):
    """The problems of one file."""

    def __init__(self, file: str, limit: int) -> None:
        super().__init__(limit)
        self.file = file

    def add(self, location: str, message: str, hint: str = "") -> None:
        """Add one problem."""
        self.extend(Problem(self.file, location, message, hint))

    def lead(self, location: str, message: str, hint: str = "") -> None:
        """Add a problem before all others."""
        self.count += 1
        self.listed.insert(0, Problem(self.file, location, message, hint))
        del self.listed[self.limit :]

    def instead(self, message: str, hint: str = "") -> None:
        """Replace all problems by their common cause."""
        self.listed = [Problem(self.file, "", message, hint)]
        self.count = 1
