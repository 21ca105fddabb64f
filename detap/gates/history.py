"""Reports kept from many runs: which of them are of one case, and how their numbers went."""

import os
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import nan
from typing import Any, NamedTuple

from detap.decimals import nearly_equal
from detap.errors import InputError, Problem, UsageError
from detap.gates.baseline import (
    differences,
    metrics_of_record,
    read_baseline,
    slice_differences,
    threshold_differences,
)
from detap.gates.metric_names import MetricName, resolve
from detap.metrics.at_threshold import AT_THRESHOLD


class Run(NamedTuple):
    """A report of a run.

    Attributes
    ----------
    name : str
        What it is called: its path.
    record : dict
        As JSON has it.
    metrics : dict of str to float
        Those that are followed, by name, the first of them the one that changes are told of.
    """

    name: str
    record: dict[str, Any]
    metrics: dict[str, float]

    @property
    def version(self) -> str:
        """The version of detap that wrote it."""
        return str(self.record.get("detap_version", ""))

    @property
    def signature(self) -> str:
        """That of its protocol."""
        return str(self.record.get("signature", ""))

    @property
    def value(self) -> float:
        """The number that changes are told of."""
        return next(iter(self.metrics.values()))


class Series(NamedTuple):
    """Runs of one case: the same ground truth, selection and protocol.

    Attributes
    ----------
    runs : list of Run
        In their order.
    differences : list of str
        In what it differs from the series of the latest run; empty for that one itself.
    counts : frozenset of str
        Those of the numbers that are counts.
    """

    runs: list[Run]
    differences: list[str]
    counts: frozenset[str]

    @property
    def changes(self) -> list[float]:
        """Return of each run what its first number gained on the run before; NaN of the first."""
        values = [run.value for run in self.runs]
        found = [0.0 if nearly_equal(then, now) else now - then for then, now in pairwise(values)]
        return [nan, *found]


def report_paths(paths: Iterable[str]) -> list[str]:
    """Return the files that are meant: of a folder its ``.json`` files.

    Those are sorted by name, numbers in names as numbers: ``run-9`` before ``run-10``.

    Raises
    ------
    InputError
        Where a folder has none, or cannot be listed.
    """
    return [
        file
        for path in paths
        for file in (_reports_in_folder(path) if os.path.isdir(path) else [path])
    ]


def _reports_in_folder(folder: str) -> list[str]:
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".json")]
    except OSError as error:
        told = f"cannot be listed: {error.strerror}"
        raise InputError(Problem(folder, "", told, "check its permissions")) from None
    if not names:
        told = "holds no .json file"
        raise InputError(Problem(folder, "", told, "keep reports there: detap eval -o FILE.json"))
    return [os.path.join(folder, name) for name in sorted(names, key=_natural_key)]


def _natural_key(name: str) -> list[tuple[int, str]]:
    """Return what sorts names so that numbers in them count as such."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(part), "") if place % 2 else (0, part) for place, part in enumerate(parts)]


def history(
    records: Sequence[tuple[str, dict[str, Any]]], requested: Sequence[str] = ()
) -> list[Series]:
    """Return the runs in series of which each can be compared within itself.

    Parameters
    ----------
    records : sequence of (str, dict)
        What reports are called, and the reports, the oldest first.
    requested : sequence of str
        The numbers to follow, as gates call them; by default each of the summary.

    Returns
    -------
    list of Series
        That of the latest run first.

    Raises
    ------
    UsageError
        Where a report has no such number, or several.
    """
    latest = records[-1][1]
    groups: list[list[tuple[str, dict[str, Any]]]] = []
    for entry in reversed(records):
        home = next(
            (group for group in groups if not _find_differences(group[0][1], entry[1], requested)),
            None,
        )
        if home is None:
            groups.append([entry])
        else:
            home.append(entry)
    return [
        _series(group[::-1], _find_differences(latest, group[0][1], requested), requested)
        for group in groups
    ]


def read_runs(paths: Iterable[str]) -> list[tuple[str, dict[str, Any]]]:
    """Read reports, those of folders too, in their order.

    Raises
    ------
    InputError
        Where a file is no report.
    """
    return [(path, read_baseline(path)) for path in report_paths(paths)]


def _find_differences(
    now: dict[str, Any], then: dict[str, Any], requested: Sequence[str]
) -> list[str]:
    """Return in what two reports differ that makes the numbers asked for incomparable."""
    found = [] if now is then else differences(now, then)
    if any(name.rpartition(".")[2] in AT_THRESHOLD for name in requested):
        found += threshold_differences(now, then)
    if any(name.startswith("slice:") for name in requested):
        tags = now.get("slices", {}).keys() | then.get("slices", {})
        found += slice_differences(now, then, sorted(tags))
    return found


def _series(
    entries: Sequence[tuple[str, dict[str, Any]]], apart: list[str], requested: Sequence[str]
) -> Series:
    runs, counts = [], set()
    for path, record in entries:
        metrics = metrics_of_record(record)
        found = [_resolve_one(path, name, record) for name in requested or record["summary"]]
        runs.append(Run(path, record, {name.text: name.of(metrics) for name in found}))
        counts |= {name.text for name in found if name.is_count(metrics)}
    return Series(runs, apart, frozenset(counts))


def _resolve_one(path: str, name: str, record: dict[str, Any]) -> MetricName:
    try:
        number, *more = resolve(name, metrics_of_record(record))
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    if more:
        raise UsageError(f"{name!r} stands for {1 + len(more)} numbers; name each by itself")
    return number
