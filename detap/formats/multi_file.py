"""Read several files as one input, one after the other."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from glob import glob
from typing import Any, NamedTuple, TypeVar

from detap.checks.inputs import counts_of_detections, warned_of_detections, warned_of_truth
from detap.errors import InputError, UsageError
from detap.formats.base import Format
from detap.formats.catalogue import FORMATS
from detap.formats.read import detections_from, ground_truth_from
from detap.formats.subsets import resolve_subset
from detap.io.digest import sha256_of_source
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import STDIN, is_url
from detap.io.remote import matching_urls
from detap.io.stream import refuse, refuse_os_error
from detap.tables.concat import join_detections, join_ground_truths
from detap.tables.detection import Detections, GroundTruth

Table = TypeVar("Table")


def expand_patterns(arguments: Iterable[str]) -> tuple[str, ...]:
    """Expand glob patterns such as ``**/*.json`` into sorted paths; existing paths are none."""
    paths: list[str] = []
    for text in arguments:
        wildcards = "*" if is_url(text) else "*?["  # in a URL, ? begins the query
        if text == STDIN or not any(c in text for c in wildcards) or os.path.lexists(text):
            matches = [text]
        elif is_url(text):
            matches = matching_urls(text)
        else:
            matches = glob(text, recursive=True)
        if not matches:
            refuse(text, "matches no file", "check the pattern and the working directory")
        paths += matches
    return tuple(sorted(paths))


def expand_folders(
    paths: Iterable[str], format_of: Callable[[str], Format], split: str | None = None
) -> tuple[str, ...]:
    """Replace folders by the subset `split`, or by their files if data sets of the format are."""
    files: list[str] = []
    for given in paths:
        file_format = format_of(given)
        is_folder = given != STDIN and os.path.isdir(given)
        path = given
        if file_format.subsets and (is_folder or split is not None):
            path = resolve_subset(given, file_format.subsets, split, file_format.title)
            is_folder = os.path.isdir(path)
        is_data_set = not is_folder or file_format.folders
        files += [path] if is_data_set else _files_of(path, file_format)
    files.sort()
    repeated = [path for path, count in Counter(files).items() if count > 1]
    if repeated:
        raise UsageError(f"{repeated[0]} is given twice; its boxes would count twice")
    if STDIN in files and len(files) > 1:
        raise UsageError("standard input cannot be combined with other inputs")
    return tuple(files)


def _files_of(path: str, file_format: Format) -> list[str]:
    """Return the files of a format in a folder."""
    try:
        names = os.listdir(path)
    except OSError as error:
        refuse_os_error(path, error)
    names = [n for n in names if n.lower().endswith(file_format.suffixes) and n[0] != "."]
    if not names:
        message = f"folder has no {file_format.title} files"
        hint = f"expected files or a folder of *{file_format.suffixes[0]} files"
        refuse(path, message, hint)
    return [os.path.join(path, name) for name in names]


class Sources:
    """The inputs of one role, read one after the other, of each what `source` returns."""

    def __init__(self, paths: Sequence[str], source: Callable[[str], Any] = str) -> None:
        self.paths = tuple(paths)
        self._source = source
        self._done = 0
        self.first = self._current = source(self.paths[0])
        self.has_progress = len(self.paths) > 1 or hasattr(self._current, "fraction")

    def __iter__(self) -> Iterator[Any]:
        for index, path in enumerate(self.paths):
            if index:
                self._done, self._current = index, self._source(path)
            yield self._current

    def fraction(self) -> float:
        """Return the fraction of the inputs read so far, where known."""
        current = self._current.fraction() if hasattr(self._current, "fraction") else 0.0
        return float((self._done + current) / len(self.paths))


def ground_truth_of(
    file_format: Format, sources: Iterable[Any], reading: Mapping[str, Any], *, merge_images: bool
) -> GroundTruth:
    """Read the ground truth of one or several inputs as one table; raise the problems of all."""
    limits = reading.get("limits", DEFAULT_LIMITS)
    tables = read_each(sources, lambda one: ground_truth_from(file_format, one, reading), limits)
    if len(tables) == 1:
        return tables[0]
    joined = join_ground_truths(tables, merge_images=merge_images)
    joined = replace(joined, notes=(*joined.notes, *warned_of_truth(joined)))
    if not len(joined):
        message = f"no annotations in any of the {len(tables)} ground-truth inputs"
        refuse(joined.files[0].path, message)
    return joined


def detections_of(
    format_of: Callable[[Any], Format],
    sources: Iterable[Any],
    ground_truth: GroundTruth | None,
    reading: Mapping[str, Any],
    *,
    merge_images: bool,
) -> Detections:
    """Read the detections of one or several inputs as one table; check it as one."""
    limits = reading.get("limits", DEFAULT_LIMITS)
    tables = read_each(
        sources, lambda one: detections_from(format_of(one), one, ground_truth, reading), limits
    )
    if len(tables) == 1 and not limits.part:
        return tables[0]
    joined = join_detections(tables, ground_truth, merge_images=merge_images)
    counts = counts_of_detections(joined, ground_truth)
    if limits.any_classes:  # checked after the class map
        counts = counts._replace(known=1)
    warnings = warned_of_detections(joined, counts)
    return replace(joined, notes=(*joined.notes, *warnings))


class LocatedInput(NamedTuple):
    """An input of detections that another process reads, relative to a folder."""

    format: str
    path: str
    folder: str
    reading: Mapping[str, Any]

    def read(self, ground_truth: GroundTruth) -> Detections:
        """Read the detections, with the path as given, and the digest if enabled."""
        location, options = _locate(self.path, self.folder), dict(self.reading)
        table = detections_from(FORMATS[self.format], location, ground_truth, options)
        files = []
        for file in table.files:
            path = self.path if file.path == location else file.path
            digest = sha256_of_source(file) if options["limits"].digests else None
            files.append(file._replace(path=path, sha256=digest or ""))
        detections: Detections = replace(table, files=tuple(files))
        return detections


def locate_files(ground_truth: GroundTruth, folder: str) -> GroundTruth:
    """Return ground truth whose paths are those for another process."""
    files = [
        file._replace(path=_locate(file.path, folder), sha256="") for file in ground_truth.files
    ]
    return replace(ground_truth, files=tuple(files))


def _locate(path: str, folder: str) -> str:
    return path if is_url(path) else os.path.join(folder, path)


def read_each(
    sources: Iterable[Any], read: Callable[[Any], Table], limits: Limits = DEFAULT_LIMITS
) -> list[Table]:
    """Read every source; raise the problems of all of them in one error."""
    tables, errors = [], []
    for source in sources:
        try:
            tables.append(read(source))
        except InputError as error:
            errors.append(error)
    if errors:
        problems = [problem for error in errors for problem in error.problems]
        reported = problems[: max(1, limits.problems)]
        omitted = sum(error.omitted for error in errors)
        raise InputError(reported, len(problems) - len(reported) + omitted)
    return tables
