"""Inputs of several files: patterns and folders of them, read one after the other.

One file is read as it always was. Of several, the next is begun while one is being read, so that no
more than two are held besides the tables that they become.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from detap.errors import InputError, Problem, UsageError
from detap.formats.registry import Format
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import STDIN, is_url, shown
from detap.io.stream import refuse_os_error

if TYPE_CHECKING:
    from detap.tables.detection import Detections, GroundTruth

Table = TypeVar("Table")


def matching(given: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that are meant, sorted where they are several.

    Parameters
    ----------
    given : iterable of str
        Paths, and patterns such as ``shards/*.json`` or ``**/*.json``. What exists is no pattern.

    Raises
    ------
    InputError
        Where nothing matches a pattern.
    """
    paths: list[str] = []
    for text in given:
        marks = "*" if is_url(text) else "*?["  # behind a ? stands a query
        if text == STDIN or not any(mark in text for mark in marks) or os.path.lexists(text):
            found = [text]
        elif is_url(text):
            from detap.io.remote import matching_urls  # seldom needed

            found = matching_urls(text)
        else:
            from glob import glob  # seldom needed

            found = glob(text, recursive=True)
        if not found:
            remedy = "check the path, from the folder that detap is run in"
            raise InputError(Problem(shown(text), "", "matches no file", remedy))
        paths += found
    return tuple(sorted(paths))


def members(paths: Iterable[str], format_of: Callable[[str], Format]) -> tuple[str, ...]:
    """Return the paths with the files of a folder in its place, where no folder is a data set.

    Raises
    ------
    InputError
        Where a folder holds no file of the format.
    UsageError
        Where a path is given twice, or standard input with others.
    """
    found: list[str] = []
    for path in paths:
        is_folder = path != STDIN and os.path.isdir(path)
        whole = not is_folder or format_of(path).folders
        found += [path] if whole else _files_of(path, format_of(path))
    found.sort()
    twice = [path for path, count in Counter(found).items() if count > 1]
    if twice:
        raise UsageError(f"{twice[0]} is given twice: its boxes would count twice")
    if STDIN in found and len(found) > 1:
        raise UsageError("standard input cannot be one of several inputs: give it alone")
    return tuple(found)


def _files_of(path: str, file_format: Format) -> list[str]:
    """Return the files of a format in a folder."""
    try:
        entries = os.listdir(path)
    except OSError as error:
        refuse_os_error(path, error)
    found = [e for e in entries if e.lower().endswith(file_format.suffixes) and e[0] != "."]
    if not found:
        message = f"is a folder without {file_format.title} files"
        remedy = f"give files, or a folder of files that end with {file_format.suffixes[0]}"
        raise InputError(Problem(path, "", message, remedy))
    return [os.path.join(path, entry) for entry in found]


class Sources:
    """The inputs of one side, of which the first is begun at once, and then always the next.

    Parameters
    ----------
    paths : sequence of str
    begin : callable, optional
        Begins to read a path in a thread and returns what the format's reader then takes for it.

    Attributes
    ----------
    paths : tuple of str
    tells : bool
        Whether :meth:`fraction` moves.
    """

    def __init__(self, paths: Sequence[str], begin: Callable[[str], Any] | None = None) -> None:
        self.paths = tuple(paths)
        self._begin = begin or str
        self._done = 0
        self._next = self._begin(self.paths[0])
        self._now: Any = self._next
        self.tells = len(self.paths) > 1 or hasattr(self._now, "fraction")

    def __iter__(self) -> Iterator[Any]:
        for number in range(len(self.paths)):
            self._done, self._now = number, self._next
            if number + 1 < len(self.paths):
                self._next = self._begin(self.paths[number + 1])
            yield self._now

    def fraction(self) -> float:
        """Return which share of the inputs has been read, as far as that can be known."""
        now = self._now.fraction() if hasattr(self._now, "fraction") else 0.0
        return float((self._done + now) / len(self.paths))


def ground_truth_of(
    sources: Iterable[Any],
    read: "Callable[[Any], GroundTruth]",
    limits: Limits = DEFAULT_LIMITS,
    *,
    repartition: bool = False,
) -> "GroundTruth":
    """Read ground truth of one input or of several, as one table.

    Parameters
    ----------
    sources : iterable
        Paths, or what :class:`Sources` makes of them.
    read : callable
        Reads one of them.
    limits : Limits
    repartition : bool
        Whether an image may be in several.

    Raises
    ------
    InputError
        With the problems of every input; or where the same image is in two, or none has a box.
    """
    tables = _each(sources, read, limits)
    if len(tables) == 1:
        return tables[0]
    from detap.checks.inputs import warned_of_truth
    from detap.tables.concat import join_ground_truths  # seldom needed

    joined = join_ground_truths(tables, repartition=repartition)
    joined = replace(joined, notes=(*joined.notes, *warned_of_truth(joined)))
    if not len(joined):
        message = f"has no annotations, nor have the {len(tables) - 1} other ground truths"
        path = joined.files[0].path
        raise InputError(Problem(path, "", message, "there is nothing to score against"))
    return joined


def detections_of(
    sources: Iterable[Any],
    read: "Callable[[Any], Detections]",
    truth: "GroundTruth | None",
    limits: Limits = DEFAULT_LIMITS,
    *,
    repartition: bool = False,
    judge: bool = True,
) -> "Detections":
    """Read detections of one input or of several, as one table numbered as their ground truth.

    Parameters
    ----------
    sources, read, limits, repartition
        As :func:`ground_truth_of` has them.
    truth : GroundTruth or None
        Where it is not at hand, images and classes are those that the detections name.
    judge : bool
        Whether these are all inputs, so that what looks wrong about them is refused.

    Raises
    ------
    InputError
        With the problems of every input; or where two have detections on the same image.
    """
    tables = _each(sources, read, limits)
    if len(tables) == 1 and not (limits.part and judge):
        return tables[0]
    from detap.checks.inputs import warned_of_detections  # seldom needed
    from detap.tables.concat import join_detections

    joined = join_detections(tables, truth, repartition=repartition)
    if not judge:
        return joined
    return replace(joined, notes=(*joined.notes, *warned_of_detections(joined, truth)))


def _each(sources: Iterable[Any], read: Callable[[Any], Table], limits: Limits) -> list[Table]:
    """Return the table of each source; where any cannot be read, say so of all that cannot."""
    tables, errors = [], []
    for source in sources:
        try:
            tables.append(read(source))
        except InputError as error:
            errors.append(error)
    if errors:
        problems = [problem for error in errors for problem in error.problems]
        listed = problems[: max(1, limits.problems)]
        omitted = sum(error.omitted for error in errors)
        raise InputError(listed, len(problems) - len(listed) + omitted)
    return tables
