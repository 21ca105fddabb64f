"""Baselines: earlier JSON reports, read, compared and raised."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from math import isnan, nan
from sys import float_info
from types import NoneType
from typing import Any

from detap._version import SCHEMA_VERSION
from detap.analysis.recorded import format_difference, reading_differences, recorded_selection
from detap.decimals import nearly_equal
from detap.errors import UsageError
from detap.gates.metric_names import MEAN, Metrics, row_key
from detap.io.json_text import check_text
from detap.io.stream import read_bytes, refuse
from detap.metrics import Metric, metric_named
from detap.metrics.at_threshold import AT_THRESHOLD
from detap.protocols.detection import Protocol
from detap.protocols.fields import NO_FIELDS, protocol_fields

UNITS = {"classes": "class", "queries": "query", "data_sets": "set"}
"""The unit of a row, by the key of the rows in a report."""

_KINDS = {
    "detection": "classes",
    "classification": "classes",
    "retrieval": "queries",
    "data_sets": "data_sets",
}
_NO_POINT: Mapping[str, Any] = {"overall": {}, "classes": []}
_DETECTION_ROLES = ("detections", "run", "scores")
_NAMES = ("name", "id", "group")
_CREATE = "create it with detap eval -o FILE.json"
_NOT_RAISED = frozenset(
    {*_NAMES, "ground_truths", "ignored", "detections", "within_max_dets", "true_positives"}
    | {"false_positives", "duplicates", "false_negatives", "score"}
)
"""Columns that are not raised: names, counts, and the score."""


def read_baseline(path: str) -> dict[str, Any]:
    """Read a JSON report."""
    try:
        record = json.loads(read_bytes(path).decode("utf-8-sig"), parse_constant=_refuse_constant)
        check_text(record)
    except (ValueError, RecursionError) as error:
        refuse(path, f"not a JSON report: {error}", _CREATE)
    if not isinstance(record, dict) or "schema_version" not in record:
        refuse(path, "not a detap report", _CREATE)
    if record["schema_version"] != SCHEMA_VERSION:
        version = record["schema_version"]
        message = f"report with schema version {version!r}, expected {SCHEMA_VERSION}"
        refuse(path, message, "regenerate it with this version: detap eval -o FILE.json")
    key = _KINDS.get(str(record.get("kind")), "")
    metrics = {"summary": _METRICS, key: _ROWS}
    one_slice = {**metrics, "images": _is_count, "images_sha256?": _TEXT}
    shape = {**_SHAPE, **metrics, "slices?": {"*": one_slice}}
    if not (key and record.get("summary") and _fits(record, shape)):
        refuse(path, "report with missing or invalid values", _CREATE)
    return dict(record)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def _is_number(value: object) -> bool:
    """Return True if a value is null or a number that is finite as a float."""
    if value is None:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -float_info.max <= value <= float_info.max


_TEXT = (str, NoneType)
_METRICS = {"*": _is_number}
_ROWS = [{"name": str, "id?": (str, _is_number), "group?": (str, _is_number), "*": _is_number}]
_SHAPE = {
    "summary": _METRICS,
    "protocol": {},
    "inputs": [
        {"role?": _TEXT, "path?": _TEXT, "sha256?": _TEXT, "records?": _is_count}
        | {"files?": _is_count}
    ],
    "detap_version?": str,
    "signature?": str,
    "gates?": ({"passed": bool, "warned": _is_count}, NoneType),
    "selection?": (
        {
            "classes?": ([str], NoneType),
            "images?": (_is_count, NoneType),
            "images_sha256?": _TEXT,
        },
        NoneType,
    ),
    "retained_metrics?": [str],
    "operating_point?": {"overall": _METRICS, "classes": _ROWS, "score_threshold?": _is_number},
}
"""The values that comparisons need, but for rows; see `_fits`."""


def _fits(value: Any, shape: Any) -> bool:
    """Return True if a JSON value has a shape: a type, a check, or one of a tuple of shapes.

    A list has the shape of all items; a dict those of members, of which ``name?`` may be absent,
    and ``*`` of the others, by default any.
    """
    if isinstance(shape, tuple):
        return any(_fits(value, one) for one in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(item, shape[0]) for item in value)
    if not isinstance(shape, dict):
        return isinstance(value, shape) if isinstance(shape, type) else bool(shape(value))
    others = shape.get("*", object)
    return (
        isinstance(value, dict)
        and all(name in value for name in shape if name[-1] not in "*?")
        and all(
            _fits(item, shape.get(name, shape.get(f"{name}?", others)))
            for name, item in value.items()
        )
    )


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not valid JSON")


def metrics_of_record(record: Mapping[str, Any], *, at_threshold: bool = False) -> Metrics:
    """Return the metrics of a JSON report."""
    key = _KINDS[record["kind"]]
    point = record.get("operating_point", _NO_POINT)
    by_row = {row_key(row): row for row in point["classes"]}

    def compute_overall(name: str) -> Any:
        if key == "data_sets":
            return record["statistics"][name.removeprefix(MEAN)]["mean"]
        return point["overall"][AT_THRESHOLD[name].key]

    def compute_rows(name: str) -> list[Any]:
        compute_overall(name)  # the error if the report lacks the metric
        return [by_row.get(row_key(row), {}).get(AT_THRESHOLD[name].key) for row in record[key]]

    def metrics(part: Mapping[str, Any]) -> Metrics:
        rows = drop_threshold_columns(part[key], at_threshold)
        return Metrics(next(iter(record["summary"])), part["summary"], rows, UNITS[key])

    return replace(
        metrics(record),
        compute_overall=compute_overall,
        compute_rows=compute_rows,
        slices={tag: metrics(part) for tag, part in record.get("slices", {}).items()},
    )


def drop_threshold_columns(
    rows: Sequence[Mapping[str, Any]], at_threshold: bool
) -> Sequence[Mapping[str, Any]]:
    """Drop the columns that share a name with a metric at a given score threshold."""
    if not at_threshold:
        return rows
    return [{key: row[key] for key in row if key not in AT_THRESHOLD} for row in rows]


def threshold_differences(current: Mapping[str, Any], earlier: Mapping[str, Any]) -> list[str]:
    """Describe the difference of the score thresholds of two JSON reports, if there is one."""
    new, old = (
        record.get("operating_point", {}).get("score_threshold") for record in (current, earlier)
    )
    if new == old or "operating_point" not in earlier:
        return []
    texts = ["best F1" if score is None else repr(score) for score in (old, new)]
    return [format_difference("score threshold", *texts)]


def differences(current: Mapping[str, Any], earlier: Mapping[str, Any]) -> list[str]:
    """Describe the differences that make the metrics of two JSON reports incomparable."""
    lines = []
    if current["kind"] != earlier["kind"]:
        lines.append(format_difference("kind", earlier["kind"], current["kind"]))
    lines += protocol_differences(current, earlier)
    digests, earlier_digests = _ground_truth_digests(current), _ground_truth_digests(earlier)
    if not earlier_digests or None in earlier_digests:
        lines.append("ground truth: no sha256 in the baseline")
    elif not digests or None in digests:
        lines.append("ground truth: no sha256 in the current report")
    elif digests != earlier_digests:
        values = [
            ", ".join(f"{digest[:12]}..." for digest in side) for side in (earlier_digests, digests)
        ]
        lines.append(format_difference("ground truth: sha256", *values))
    lines += [f"reading: {line}" for line in reading_differences(current, earlier)]
    selected, earlier_selected = recorded_selection(current), recorded_selection(earlier)
    if selected != earlier_selected:
        lines.append(format_difference("selection", earlier_selected, selected))
    return lines


def protocol_differences(current: Mapping[str, Any], earlier: Mapping[str, Any]) -> list[str]:
    """Describe the difference of two protocols by their signatures, or else by their fields."""
    # A field that an earlier report lacks has its default.
    detection = current["kind"] == earlier["kind"] == "detection"
    defaults = Protocol(name="coco").as_dict() if detection else {}
    new, old = (defaults | record["protocol"] for record in (current, earlier))
    listed = {field.name for field in protocol_fields(Protocol) if not field.compared}
    names = [name for name in {**new, **old} if name not in listed]
    fields = [name for name in names if new.get(name) != old.get(name)]
    texts = [protocol_text(record) for record in (earlier, current)]
    # Signatures of two versions of detap can be equal although a preset has changed.
    if fields and texts[0] != texts[1]:
        return [format_difference("protocol", *texts)]
    pairs = [(_format_value(old.get(name)), _format_value(new.get(name))) for name in fields]
    subjects = [f"protocol: {name.replace('_', ' ')}" for name in fields]
    return [format_difference(one, *pair) for one, pair in zip(subjects, pairs, strict=True)]


def protocol_text(record: Mapping[str, Any]) -> str:
    """Return the preset and the changed fields of a report, from its signature."""
    parts = record.get("signature", "").removeprefix("protocol:").split("|")
    return "|".join(part for part in parts if part.partition(":")[0] not in NO_FIELDS)


def slice_differences(
    current: Mapping[str, Any], earlier: Mapping[str, Any], tags: Iterable[str]
) -> list[str]:
    """Describe the slices that have different images in two JSON reports."""
    new, old = current.get("slices", {}), earlier.get("slices", {})
    lines = []
    for tag in tags:
        if tag not in old or tag not in new:
            report = "baseline" if tag in old else "current report"
            lines.append(f"slice {tag!r}: only in the {report}")
            continue
        digests = [slices[tag].get("images_sha256") for slices in (new, old)]
        if None in digests:
            lines.append(f"slice {tag!r}: no sha256 of its images")
        elif digests[0] != digests[1]:
            counts = old[tag]["images"], new[tag]["images"]
            lines.append(format_difference(f"slice {tag!r}: different images", *counts))
    return lines


def summary_differences(
    record: Mapping[str, Any], summary: Mapping[str, float | None], source: str
) -> list[str]:
    """Describe the first difference between a baseline's summary and that of its detections."""
    return [
        f"{name} (baseline: {_format_value(value)}; {source}: {summary[name]!r})"
        for name, value in record["summary"].items()
        if name in summary and not _same(value, summary[name])
    ][:1]


def _same(first: float | None, second: float | None) -> bool:
    values = _or_nan(first), _or_nan(second)
    return nearly_equal(*values) or all(map(isnan, values))


def _ground_truth_digests(record: Mapping[str, Any]) -> list[Any]:
    inputs = record["inputs"]
    return [source.get("sha256") for source in inputs if source.get("role") not in _DETECTION_ROLES]


def _format_value(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def require_comparable(path: str, lines: list[str], option: str) -> None:
    """Raise UsageError if there are differences, with the option that accepts them."""
    if lines:
        raise UsageError(
            f"{path} is not comparable: {'; '.join(lines)}", f"Regenerate it or pass {option}."
        )


def raise_baseline(
    old: Mapping[str, Any], new: Mapping[str, Any], *, allow_drop: bool = False
) -> tuple[dict[str, Any], list[tuple[str, float, float]]]:
    """Return the new report with the old value of each metric that dropped, and the changes."""
    record: dict[str, Any] = deepcopy(dict(new))
    for name in ("retained_metrics", "gates", "intervals"):
        record.pop(name, None)
    protocol = Protocol.from_report(new["protocol"]) if new["kind"] == "detection" else None
    metric_of = cache(lambda name: None if protocol is None else metric_named(protocol, name))
    retained, changes = [], []
    for prefix, earlier, current in _parts(old, record):
        for name in [name for name in current if name in earlier and name not in _NOT_RAISED]:
            metric, before, value = metric_of(name), earlier[name], current[name]
            if metric is not None and not metric.ratcheted:
                continue
            if is_retained := not allow_drop and _is_worse(metric, value, before):
                current[name] = before
            if _same(before, value):
                continue  # changes by rounding are not reported
            if is_retained:
                retained.append(f"{prefix}{name}")
            else:
                changes.append((f"{prefix}{name}", _or_nan(before), _or_nan(value)))
    if retained:
        record["retained_metrics"] = retained
    return record, changes


def _parts(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any], dict[str, Any]]]:
    """Yield the summaries and rows of two reports, with the prefix of their metrics' names."""
    key = _KINDS[new["kind"]]
    parts = [("", old, new)]
    if "operating_point" in new.keys() & old.keys() and not threshold_differences(new, old):
        points = [record["operating_point"] for record in (old, new)]
        ends = [{"summary": point["overall"], key: point["classes"]} for point in points]
        parts.append(("", ends[0], ends[1]))
    slices = old.get("slices", {})
    for tag, part in new.get("slices", {}).items():
        if tag in slices:
            parts.append((f"slice:{tag}.", slices[tag], part))
    for prefix, earlier, current in parts:
        yield prefix, earlier["summary"], current["summary"]
        rows = {row_key(row): row for row in earlier[key]}
        for row in current[key]:
            yield f"{prefix}{UNITS[key]}:{row['name']}.", rows.get(row_key(row), {}), row


def _is_worse(metric: Metric | None, value: float | None, before: float | None) -> bool:
    if value is None or before is None:
        return before is not None
    return value < before if metric is None or metric.higher_is_better else value > before


def _or_nan(value: float | None) -> float:
    return nan if value is None else float(value)
