"""Earlier reports as baselines: whether they may be compared with, and raising them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from math import isnan, nan
from sys import float_info
from typing import Any

from detap.decimals import nearly_equal
from detap.errors import InputError, Problem, UsageError
from detap.evaluation.recorded import reading_differences, recorded_selection
from detap.gates.metric_names import Metrics, row_key
from detap.metrics import Metric, metric_named
from detap.metrics.at_threshold import AT_THRESHOLD
from detap.protocols.detection import Protocol

UNITS = {"classes": "class", "queries": "query"}
"""What one row is called, by the key of the rows."""

_KINDS = {"detection": "classes", "classification": "classes", "retrieval": "queries"}
_SCHEMA_VERSION = 2
_NO_POINT: Mapping[str, Any] = {"overall": {}, "classes": []}
_CLAIMS = ("detections", "run", "scores")  # roles of inputs that are not the ground truth
_NAMES = ("name", "id")  # of a row, besides its numbers
_NOT_RAISED = frozenset(
    {*_NAMES, "ground_truths", "ignored", "detections", "within_max_dets", "true_positives"}
    | {"false_positives", "duplicates", "false_negatives", "score"}
)
"""Names, and counts and the like, of which more is not better."""


def read_baseline(path: str) -> dict[str, Any]:
    """Read an earlier JSON report.

    Raises
    ------
    InputError
        Where the file is none.
    """
    from detap.io.json_text import check_text
    from detap.io.stream import read_bytes

    try:
        record = json.loads(read_bytes(path).decode("utf-8-sig"), parse_constant=_refuse_constant)
        check_text(record)
    except (ValueError, RecursionError) as error:
        _refuse(path, f"not a JSON report: {error}")
    if not isinstance(record, dict) or "schema_version" not in record:
        _refuse(path, "not a detap report")
    if record["schema_version"] != _SCHEMA_VERSION:
        _refuse(
            path,
            f"report with schema version {record['schema_version']!r}, expected {_SCHEMA_VERSION}",
            "regenerate it with this version: detap eval -o FILE.json",
        )
    if not _is_shaped(record):
        _refuse(path, "report with missing or invalid values")
    return dict(record)


def _is_shaped(record: Mapping[str, Any]) -> bool:
    """Tell whether all that is asked of earlier reports is there, and is what it should be."""
    key = _KINDS.get(str(record.get("kind")))
    return bool(
        key is not None
        and all(isinstance(record.get(name, ""), str) for name in ("detap_version", "signature"))
        and record.get("summary")
        and _has_metrics(record, key)
        and isinstance(record.get("protocol"), dict)
        and _is_list(record.get("inputs"), _is_input)
        and _is_gates(record.get("gates"))
        and _is_selection(record.get("selection"))
        and _is_list(record.get("retained_metrics", []), _is_text)
        and _are_slices(record.get("slices", {}), key)
        and _is_point(record.get("operating_point", _NO_POINT))
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def _is_list(values: object, fits: Callable[[object], bool]) -> bool:
    return isinstance(values, list) and all(map(fits, values))


def _is_input(entry: object) -> bool:
    return (
        isinstance(entry, dict)
        and all(isinstance(entry.get(name), str | None) for name in ("role", "path", "sha256"))
        and all(_is_count(entry.get(name, 0)) for name in ("records", "files"))
    )


def _is_gates(gates: object) -> bool:
    return gates is None or (
        isinstance(gates, dict)
        and isinstance(gates.get("passed"), bool)
        and _is_count(gates.get("warned"))
    )


def _is_selection(selection: object) -> bool:
    return selection is None or (
        isinstance(selection, dict)
        and (selection.get("classes") is None or _is_list(selection["classes"], _is_text))
        and (selection.get("images") is None or _is_count(selection["images"]))
        and isinstance(selection.get("images_sha256"), str | None)
    )


def _has_metrics(part: object, key: str) -> bool:
    """Tell whether a report, or a slice of one, has a summary and rows."""
    return isinstance(part, dict) and _are_metrics(part.get("summary")) and _are_rows(part.get(key))


def _are_slices(slices: object, key: str) -> bool:
    return isinstance(slices, dict) and all(
        _has_metrics(part, key)
        and _is_count(part.get("images"))
        and isinstance(part.get("images_sha256"), str | None)
        for part in slices.values()
    )


def _is_point(point: object) -> bool:
    return (
        isinstance(point, dict)
        and _are_metrics(point.get("overall"))
        and _are_rows(point.get("classes"))
        and _is_number(point.get("score_threshold"))
    )


def _are_rows(rows: object) -> bool:
    return isinstance(rows, list) and all(
        isinstance(row, dict)
        and isinstance(row.get("name"), str)
        and all(
            _is_number(value) or (name in _NAMES and isinstance(value, str))
            for name, value in row.items()
        )
        for row in rows
    )


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not valid JSON")


def _refuse(path: str, message: str, hint: str = "make it with detap eval -o FILE.json") -> None:
    raise InputError(Problem(path, "", message, hint))


def _are_metrics(record: object) -> bool:
    return isinstance(record, dict) and all(map(_is_number, record.values()))


def _is_number(value: object) -> bool:
    """Tell whether a value is a number that is finite as a float, or null."""
    if value is None:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -float_info.max <= value <= float_info.max


def metrics_of_record(record: Mapping[str, Any], *, at_threshold: bool = False) -> Metrics:
    """Return the numbers of a JSON report.

    Parameters
    ----------
    record : mapping
    at_threshold : bool
        Whether a class's recall is that at the score threshold where another one goes by that name.
    """
    key = _KINDS[record["kind"]]
    point = record.get("operating_point", _NO_POINT)
    by_row = {row_key(row): row for row in point["classes"]}

    def more(name: str) -> Any:
        return point["overall"][AT_THRESHOLD[name].key]

    def more_rows(name: str) -> list[Any]:
        more(name)
        return [by_row.get(row_key(row), {}).get(AT_THRESHOLD[name].key) for row in record[key]]

    return Metrics(
        primary_metric=next(iter(record["summary"])),
        summary=record["summary"],
        rows=drop_threshold_columns(record[key], at_threshold),
        unit=UNITS[key],
        compute_overall=more,
        compute_rows=more_rows,
        slices={
            tag: Metrics(
                primary_metric=next(iter(record["summary"])),
                summary=part["summary"],
                rows=drop_threshold_columns(part[key], at_threshold),
                unit=UNITS[key],
            )
            for tag, part in record.get("slices", {}).items()
        },
    )


def drop_threshold_columns(
    rows: Sequence[Mapping[str, Any]], at_threshold: bool
) -> Sequence[Mapping[str, Any]]:
    """Return rows without what numbers at a score threshold are called too, where these count."""
    if not at_threshold or not any(name in rows[0] for name in AT_THRESHOLD if rows):
        return rows
    return [{key: row[key] for key in row if key not in AT_THRESHOLD} for row in rows]


def threshold_differences(now: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    """Return whether the numbers at a score threshold are at another one in two JSON reports.

    Without such numbers they are at the best.
    """
    here, there = (
        record.get("operating_point", {}).get("score_threshold") for record in (now, then)
    )
    if here == there or "operating_point" not in then:
        return []
    told = ["best" if score is None else repr(score) for score in (there, here)]
    return [f"score threshold: {told[0]} there, {told[1]} here"]


def differences(now: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    """Return in what two JSON reports differ that makes their numbers incomparable.

    Parameters
    ----------
    now, then : mapping
        As they are in JSON.
    """
    found = []
    if now["kind"] != then["kind"]:
        found.append(f"it is of the kind {then['kind']}, not {now['kind']}")
    # An axis that an earlier report does not know yet is as by default.
    known = now["kind"] == then["kind"] == "detection"
    usual = Protocol(name="coco").as_dict() if known else {}
    fields = [usual | record["protocol"] for record in (now, then)]
    for name in {**fields[0], **fields[1]}:
        value, other = (_format_value(record.get(name)) for record in fields)
        if fields[0].get(name) != fields[1].get(name):
            found.append(f"protocol: {name.replace('_', ' ')} {other} there, {value} here")
    here, there = _ground_truth_digests(now), _ground_truth_digests(then)
    if None in (*here, *there) or not here or not there:
        whose = "the baseline has" if None in there or not there else "this report has"
        found.append(f"ground truth: {whose} no sha256 of it")
    elif here != there:
        found.append(
            f"ground truth: sha256 {_format_digests(there)} there, {_format_digests(here)} here"
        )
    found += [f"reading: {told}" for told in reading_differences(now, then)]
    selected = [recorded_selection(record) for record in (now, then)]
    if selected[0] != selected[1]:
        found.append(f"selection: {selected[1]} there, {selected[0]} here")
    return found


def slice_differences(
    now: Mapping[str, Any], then: Mapping[str, Any], tags: Iterable[str]
) -> list[str]:
    """Return which of some slices do not hold the same images in two JSON reports."""
    here, there = now.get("slices", {}), then.get("slices", {})
    found = []
    for tag in tags:
        if tag not in there or tag not in here:
            found.append(f"slice {tag!r}: is {'there' if tag in there else 'here'} only")
            continue
        sums = [part[tag].get("images_sha256") for part in (here, there)]
        if None in sums:
            found.append(f"slice {tag!r}: the baseline does not say which images it holds")
        elif sums[0] != sums[1]:
            counts = f"{there[tag]['images']} there, {here[tag]['images']} here"
            found.append(f"slice {tag!r}: holds other images ({counts})")
    return found


def summary_differences(
    record: Mapping[str, Any], summary: Mapping[str, float | None], whose: str
) -> list[str]:
    """Return where a JSON report's summary is not that of what is said to be behind it."""
    return [
        f"{name}: {_format_value(value)} there, {summary[name]!r} of {whose}"
        for name, value in record["summary"].items()
        if name in summary and not _same(_or_nan(value), _or_nan(summary[name]))
    ][:1]


def _same(first: float, second: float) -> bool:
    return nearly_equal(first, second) or (isnan(first) and isnan(second))


def _ground_truth_digests(record: Mapping[str, Any]) -> list[Any]:
    return [entry.get("sha256") for entry in record["inputs"] if entry.get("role") not in _CLAIMS]


def _format_digests(digests: list[Any]) -> str:
    return ", ".join(f"{str(digest)[:12]}..." for digest in digests)


def _format_value(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def require_comparable(path: str, found: list[str], insisting: str) -> None:
    """Refuse to compare, saying what insists on it.

    Raises
    ------
    UsageError
        Where anything differs.
    """
    if found:
        raise UsageError(
            f"{path} cannot be compared with: " + "; ".join(found) + ". "
            f"Make the baseline anew, or insist with {insisting}"
        )


def raise_baseline(
    old: Mapping[str, Any], new: Mapping[str, Any], *, allow_drop: bool = False
) -> tuple[dict[str, Any], list[tuple[str, float, float]]]:
    """Return the new report, in which no number is below the old one's.

    Parameters
    ----------
    old, new : mapping
        JSON reports that may be compared.
    allow_drop : bool
        Whether numbers may fall after all.

    Returns
    -------
    record : dict
        The new report; under ``retained_metrics``, the numbers that are the old ones.
    changes : list of (str, float, float)
        Each number that is not what it was: its name, then and now in the record. NaN is
        undefined.
    """
    key = _KINDS[new["kind"]]
    ratchet = _Ratchet(key, _metrics_of(new), allow_drop=allow_drop)
    record = {
        name: value for name, value in new.items() if name not in ("retained_metrics", "gates")
    }
    record = ratchet.report("", old, record)
    if "operating_point" in record.keys() & old.keys() and not threshold_differences(new, old):
        here, there = record["operating_point"], old["operating_point"]
        whole = {"summary": here["overall"], key: here["classes"]}
        point = ratchet.report("", {"summary": there["overall"], key: there["classes"]}, whole)
        record["operating_point"] = {**here, "overall": point["summary"], "classes": point[key]}
    if "slices" in record:
        before = old.get("slices", {})
        record["slices"] = {
            tag: ratchet.report(f"slice:{tag}.", before[tag], part) if tag in before else part
            for tag, part in record["slices"].items()
        }
    if ratchet.retained:
        record["retained_metrics"] = ratchet.retained
    return record, ratchet.changes


class _Ratchet:
    """Numbers that do not fall from one report to the next.

    Attributes
    ----------
    retained : list of str
        The names of the numbers that stay as they were.
    changes : list of (str, float, float)
        As :func:`raised` returns them.
    """

    def __init__(
        self, key: str, metric_of: Callable[[str], Metric | None], *, allow_drop: bool
    ) -> None:
        self.key = key
        self.metric_of = metric_of
        self.allow_drop = allow_drop
        self.retained: list[str] = []
        self.changes: list[tuple[str, float, float]] = []

    def metrics(
        self, prefix: str, then: Mapping[str, Any], now: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return numbers by name, those that would fall as they were."""
        result = dict(now)
        for name, value in now.items():
            if name in _NOT_RAISED or name not in then:
                continue
            metric = self.metric_of(name)
            if metric is not None and not metric.ratcheted:
                continue
            before = then[name]
            stays = not self.allow_drop and _is_worse(metric, value, before)
            if stays:
                result[name] = before
            if _same(_or_nan(before), _or_nan(value)):
                continue  # not even said: rounding is no change
            if stays:
                self.retained.append(f"{prefix}{name}")
            else:
                self.changes.append((f"{prefix}{name}", _or_nan(before), _or_nan(value)))
        return result

    def report(
        self, prefix: str, then: Mapping[str, Any], now: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return a summary and the rows under it, likewise; rows go by name and id."""
        summary = self.metrics(prefix, then["summary"], now["summary"])
        rows = {row_key(row): row for row in then[self.key]}
        ratcheted = [
            self.metrics(
                f"{prefix}{UNITS[self.key]}:{row['name']}.",
                rows.get(row_key(row), {}),
                row,
            )
            for row in now[self.key]
        ]
        return {**now, "summary": summary, self.key: ratcheted}


def _metrics_of(record: Mapping[str, Any]) -> Callable[[str], Metric | None]:
    """Return what gives the metric of a number of a JSON report from its name."""
    if record["kind"] != "detection":
        return lambda name: None
    return cache(partial(metric_named, Protocol.from_report(record["protocol"])))


def _is_worse(metric: Metric | None, value: float | None, before: float | None) -> bool:
    if value is None or before is None:
        return before is not None
    return value < before if metric is None or metric.higher_is_better else value > before


def _or_nan(value: float | None) -> float:
    return nan if value is None else float(value)
