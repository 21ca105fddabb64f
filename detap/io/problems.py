"""Collect the problems of an input, so that one error lists all."""

from collections.abc import Callable, Sequence

from detap.errors import InputError, Problem, UsageError


class FaultError(Exception):
    """A part of an input cannot be read."""

    def __init__(self, message: str, hint: str = "", alike: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.alike = alike  # the unit of `Problems.add_alike`, if many may have this fault


SHAPES = ("reject", "bbox")
"""Values of a reader's option `shapes`."""


def check_choice(option: str, value: object, choices: Sequence[str]) -> None:
    """Raise UsageError if an option's value is not one of its choices."""
    if value not in choices:
        raise UsageError(f"{option} {value!r} is unknown; use one of {', '.join(choices)}")


class Problems:
    """Problems of an input, listed up to a limit and counted beyond."""

    def __init__(self, limit: int, file: str = "") -> None:
        self.limit = max(1, limit)
        self.file = file  # of the problems that have no other
        self.listed: list[Problem] = []
        self._alike: dict[str, tuple[int, str, int]] = {}  # index in `listed`, message and count
        self.count = 0
        self.lead: Problem | None = None  # the common cause, listed before all others
        self.cause: Callable[[], Problem | None] = lambda: None  # one that takes time to find

    def add(self, file: str, location: str, message: str, hint: str = "") -> None:
        """Add one problem."""
        self.extend(Problem(file, location, message, hint))

    def add_alike(
        self, unit: str, file: str, location: str, message: str, hint: str, *, count: int = 1
    ) -> None:
        """Add a problem of many records once, as that of the first, with their count."""
        if unit not in self._alike:
            self._alike[unit] = len(self.listed), message, 0
            self.add(file, location, message, hint)
        index, first, total = self._alike[unit]
        self._alike[unit] = index, first, total + count
        if total + count > 1 and index < len(self.listed):
            text = f"{first} ({total + count} {unit})"
            self.listed[index] = self.listed[index]._replace(message=text)

    def add_here(self, location: str, message: str, hint: str = "") -> None:
        """Add one problem of `file`."""
        self.extend(Problem(self.file, location, message, hint))

    def extend(self, *problems: Problem) -> None:
        """Add problems."""
        self.count += len(problems)
        self.listed += problems[: max(0, self.limit - len(self.listed))]

    def instead(self, message: str, hint: str = "") -> None:
        """Replace all problems by their common cause."""
        self.listed = [Problem(self.file, "", message, hint)]
        self.count = 1

    def raise_any(self) -> None:
        """Raise InputError if there are problems."""
        if not self.count:
            return
        lead = self.cause() or self.lead
        raise InputError(
            [*([] if lead is None else [lead]), *self.listed], self.count - len(self.listed)
        )
