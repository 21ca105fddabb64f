"""Metrics over the reports of many runs, in series of comparable ones."""

import os
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import nan
from typing import Any, NamedTuple

from detap.decimals import nearly_equal
from detap.errors import UsageError
from detap.gates.baseline import (
    differences,
    metrics_of_record,
    read_baseline,
    slice_differences,
    threshold_differences,
)
from detap.gates.metric_names import MetricName, Metrics, resolve
from detap.io.stream import refuse, refuse_os_error
from detap.metrics.at_threshold import AT_THRESHOLD


class Run(NamedTuple):
    """A report of a run."""

    name: str  # its path
    record: dict[str, Any]  # the JSON report
    metrics: dict[str, float]  # the requested metrics by name; changes are those of the first

    @property
    def version(self) -> str:
        """Version of detap."""
        return str(self.record.get("detap_version", ""))

    @property
    def signature(self) -> str:
        """The signature of its protocol."""
        return str(self.record.get("signature", ""))


class Series(NamedTuple):
    """Comparable runs: the same ground truth, selection and protocol."""

    runs: list[Run]  # the oldest first
    differences: list[str]  # differences from the series of the latest run; empty for that series
    counts: frozenset[str]  # the names of metrics that are counts

    @property
    def changes(self) -> list[float]:
        """The change of each run from the previous one; NaN for the first."""
        pairs = pairwise(next(iter(run.metrics.values())) for run in self.runs)
        return [nan, *(0.0 if nearly_equal(old, new) else new - old for old, new in pairs)]


def report_paths(paths: Iterable[str]) -> list[str]:
    """Return the paths of reports, with folders replaced by their ``.json`` files, in order."""
    files = []
    for path in paths:
        if not os.path.isdir(path):
            files.append(path)
            continue
        try:
            names = [name for name in os.listdir(path) if name.endswith(".json")]
        except OSError as error:
            refuse_os_error(path, error)
        if not names:
            refuse(path, "no .json files", "write reports with detap eval -o FILE.json")
        files += [os.path.join(path, name) for name in sorted(names, key=_natural_key)]
    return files


def _natural_key(name: str) -> list[tuple[int, str]]:
    """Return a sort key that compares digits as integers: ``run-9`` is before ``run-10``."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(part), "") if index % 2 else (0, part) for index, part in enumerate(parts)]


def history(
    records: Sequence[tuple[str, dict[str, Any]]], requested: Sequence[str] = ()
) -> list[Series]:
    """Group runs into series of comparable ones."""
    latest = records[-1][1]
    groups: list[list[tuple[str, dict[str, Any]]]] = []
    for path, record in reversed(records):
        for group in groups:
            if not _find_differences(group[0][1], record, requested):
                group.append((path, record))
                break
        else:
            groups.append([(path, record)])
    series = []
    for group in groups:
        runs, counts = [], set()
        for path, record in reversed(group):
            metrics = metrics_of_record(record)
            names = [_resolve_one(path, name, metrics) for name in requested or record["summary"]]
            runs.append(Run(path, record, {name.text: name.of(metrics) for name in names}))
            counts |= {name.text for name in names if name.is_count(metrics)}
        lines = _find_differences(latest, group[0][1], requested)
        series.append(Series(runs, lines, frozenset(counts)))
    return series


def read_runs(paths: Iterable[str]) -> list[tuple[str, dict[str, Any]]]:
    """Read reports, and those of folders, in order."""
    return [(path, read_baseline(path)) for path in report_paths(paths)]


def _find_differences(
    current: dict[str, Any], earlier: dict[str, Any], requested: Sequence[str]
) -> list[str]:
    """Return the differences that make the requested metrics of two reports incomparable."""
    lines = [] if current is earlier else differences(current, earlier)
    if any(name.rpartition(".")[2] in AT_THRESHOLD for name in requested):
        lines += threshold_differences(current, earlier)
    if any(name.startswith("slice:") for name in requested):
        tags = current.get("slices", {}).keys() | earlier.get("slices", {})
        lines += slice_differences(current, earlier, sorted(tags))
    return lines


def _resolve_one(path: str, name: str, metrics: Metrics) -> MetricName:
    try:
        match, *more = resolve(name, metrics)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    if more:
        raise UsageError(f"{name!r} matches {1 + len(more)} metrics; name one of them")
    return match
