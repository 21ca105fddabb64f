"""Collect the problems of an input, so that one error lists all: alike ones once, with a count."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from detap.errors import InputError, Problem, UsageError


class FaultError(Exception):
    """A part of an input cannot be read; its location may be known."""

    def __init__(self, message: str, hint: str = "", location: str = "") -> None:
        super().__init__(message)
        self.message, self.hint, self.location = message, hint, location


def check_choice(option: str, value: object, choices: Collection[str]) -> None:
    """Raise UsageError if an option's value is not one of its choices."""
    if value not in choices:
        raise UsageError(f"{option} {value!r} is unknown; use one of {', '.join(choices)}")


def check_list(option: str, value: object, other: str = "") -> None:
    """Raise UsageError if the value of an option is one text or number, not several."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise UsageError(f"{option} is {value!r}; give a list of names{other}")


_VALUES = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|(?<!\w)[-+]?\.?[0-9][\w.+-]*")
"""Texts and numbers in a message, in which alike problems differ."""
_APART = 3
"""As many alike problems have a line each; more are one line."""

Position = tuple[int, int, int]
"""The order of a problem among those of an input."""


class _Alike(NamedTuple):
    """Problems whose messages differ in values only: the first few, in order, and how many."""

    first: list[tuple[Position, Problem]]
    total: int
    in_files: bool  # True if they are of several files

    def lines(self) -> list[tuple[Position, Problem, int]]:
        """Return each problem, or one for all: ``9 records ([0], [1], [2], ...): message``.

        The last value is the number of problems that a line stands for.
        """
        if self.total <= _APART:
            return [(position, problem, 1) for position, problem in self.first]
        position, problem = self.first[0]
        if self.in_files or not problem.location:
            where = ", in several files" if self.in_files else ""
            message = f"{problem.message} ({self.total} times{where})"
            return [(position, problem._replace(message=message), self.total)]
        locations = [problem.location for _, problem in self.first]
        in_lines = all(location.removeprefix("line ").isdecimal() for location in locations)
        shown = ", ".join(location.removeprefix("line ") for location in locations)
        location = f"{self.total} {'lines' if in_lines else 'records'} ({shown}, ...)"
        return [(position, problem._replace(location=location), self.total)]


class Problems:
    """Problems of an input, alike ones as one, listed up to a limit and counted beyond."""

    def __init__(self, limit: int, file: str = "") -> None:
        self.limit = max(1, limit)
        self.file = file  # of the problems that have no other
        self.count = 0
        self.lead: Problem | None = None  # the common cause, listed before all others
        self._alike: dict[str, _Alike] = {}

    @property
    def _lines(self) -> list[tuple[Position, Problem, int]]:
        lines = sorted(line for alike in self._alike.values() for line in alike.lines())
        return lines[: self.limit]

    @property
    def listed(self) -> list[Problem]:
        """The problems in order, alike ones as one, as many as the limit."""
        return [problem for _, problem, _ in self._lines]

    def add(self, file: str, location: str, message: str, hint: str = "") -> None:
        """Add one problem."""
        self.extend(Problem(file, location, message, hint))

    def add_here(self, location: str, message: str, hint: str = "") -> None:
        """Add one problem of `file`."""
        self.extend(Problem(self.file, location, message, hint))

    @contextmanager
    def collected(self, location: str = "", file: str | None = None) -> Iterator[None]:
        """Add the faults that are raised in the block, by default of `file`."""
        try:
            yield
        except FaultError as fault:
            where = fault.location or location
            self.add(self.file if file is None else file, where, fault.message, fault.hint)
        except InputError as error:
            self.extend(*error.problems)

    def extend(self, *problems: Problem) -> None:
        """Add problems."""
        for problem in problems:
            self._insert((0, 0, self.count), problem)

    def add_rows(
        self,
        rows: Sequence[int],
        location: Callable[[int], tuple[str, str]],
        message: str | Callable[[int], str],
        hint: str = "",
    ) -> None:
        """Add a problem of each row, given its file and location; beyond the limit, count them."""
        problems = [
            Problem(*location(row), message if isinstance(message, str) else message(row), hint)
            for row in rows[: self.limit]
        ]
        self.add_first_of(problems, len(rows))

    def add_first_of(self, problems: Sequence[Problem], count: int) -> None:
        """Add the first of `count` problems; those left out are like the last."""
        self.extend(*problems[:-1])
        for problem in problems[-1:]:
            self._insert((0, 0, self.count), problem, count - len(problems) + 1)

    def take(self, other: "Problems") -> None:
        """Add the problems of another list, and the number of those that it does not list."""
        before = self.count
        for alike in other._alike.values():
            self.add_first_of([problem for _, problem in alike.first], alike.total)
        self.count = before + other.count

    def _insert(self, position: Position, problem: Problem, count: int = 1) -> None:
        """Add a problem at its position; `count` includes others that are alike."""
        self.count += count
        kind = _VALUES.sub("#", problem.message)
        first, total, in_files = self._alike.get(kind, ([], 0, False))
        in_files |= any(other.file != problem.file for _, other in first)
        first = sorted([*first, (position, problem)])[:_APART]
        self._alike[kind] = _Alike(first, total + count, in_files)
        if len(self._alike) > self.limit:
            del self._alike[max(self._alike, key=lambda name: self._alike[name].first)]

    def instead(self, message: str, hint: str = "") -> None:
        """Replace all problems by their common cause."""
        self._alike.clear()
        self.count = 0
        self._insert((-1, 0, 0), Problem(self.file, "", message, hint))

    def raise_any(self) -> None:
        """Raise InputError if there are problems."""
        if not self.count:
            return
        lines = self._lines
        omitted = self.count - sum(count for _, _, count in lines)
        listed = [problem for _, problem, _ in lines]
        raise InputError([*([] if self.lead is None else [self.lead]), *listed], omitted)
