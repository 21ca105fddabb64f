"""Notes on metrics that a reference's rule changes, with the values under both rules."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap import metrics
from detap.decimals import format_distinct
from detap.errors import Note
from detap.evaluation.results import Result, result_of
from detap.evaluation.run import EvaluationRun
from detap.evaluation.selection import SelectedClasses
from detap.protocols import Protocol, protocol
from detap.tables.detection import Detections, Floats, GroundTruth

_ZERO_ID = "annotation-id-zero"
_OTHER = {"coco": "coco-strict", "coco-strict": "coco"}


# --- annotation id 0, whose matches pycocotools does not count


def has_zero_id_note(result: Result) -> bool:
    """Return True if :func:`add_zero_id_note` evaluates a class again."""
    return result.protocol.name in _OTHER and bool(result.ground_truth.zero_id.any())


def add_zero_id_note(result: Result) -> Result:
    """Add both values of the primary metric to the note on annotation id 0.

    Only the annotation's class is evaluated again.
    """
    if not has_zero_id_note(result):
        return result
    current, truth = result.protocol, result.ground_truth
    (name, value), other = next(iter(result.summary.items())), _OTHER[current.name]
    label = 0 if current.class_agnostic else int(truth.label[truth.zero_id][0])
    one_class = EvaluationRun(
        truth.select(_rows(result, truth, label)),
        result.detections.select(_rows(result, result.detections, label)),
        replace(current, annotation_id_zero=protocol(other).annotation_id_zero),
        result._source.threads,
        prepared=True,
    )
    scores = one_class.evaluate()
    precision = result._precision.copy()
    precision[..., label] = scores.precision[-1, ..., label]
    alternative = replace(
        result,
        average_precision=_replaced(result.average_precision, label, scores.average),
        _precision=precision,
        recall=_replaced(result.recall, label, scores.recall),
    )
    ours, theirs = format_distinct(value, alternative.summary[name])
    message = (
        "pycocotools counts a match with annotation id 0 as unmatched: "
        f"{name} is {ours} here and {theirs} with --protocol {other}"
    )
    notes = (replace(n, message=message) if n.code == _ZERO_ID else n for n in result.notes)
    return replace(result, notes=tuple(notes))


def _rows(result: Result, table: GroundTruth | Detections, label: int) -> NDArray[np.intp]:
    return np.flatnonzero(result.protocol.class_agnostic | (table.label == label))


def _replaced(values: Floats, label: int, new_values: Floats) -> Floats:
    """Return a copy of an array with the values of one class replaced."""
    copied = values.copy()
    copied[:, label] = new_values[:, label]
    return copied


# --- rules of published scripts, which lower miss rates


def script_notes(result: Result) -> Iterator[Note]:
    """Note the listed miss rates that the script's rules change."""
    current = result.protocol
    changes: dict[str, Any] = {}
    if current.empty_images != Protocol.empty_images and current.matching == "by-score":
        changes["empty_images"] = Protocol.empty_images
    if current.mr_rule == "at-most-or-last":
        changes["mr_rule"] = Protocol.mr_rule
    plain = replace(current, **changes)
    specs = [spec for spec in metrics.summary(current) if "mr_rule" in spec.metric.fields]
    if not changes or not specs:
        return
    other = replace(result, protocol=plain)
    if "empty_images" in changes:
        other = _rescored(result, plain)
    values = {spec.name: (result.metric(spec.name), other.metric(spec.name)) for spec in specs}
    differing = [
        f"{name} is {by_script:.4f} by the rules of the script, {value:.4f} without them"
        for name, (by_script, value) in values.items()
        if repr(by_script) != repr(value)
    ]
    if differing:
        options = " ".join(f"--{n.replace('_', '-')} {value}" for n, value in changes.items())
        yield Note("script-rules", f"{'; '.join(differing)} ({options})")


def _rescored(result: Result, other: Protocol) -> Result:
    """Return the result of another protocol, of the same classes."""
    tables = result.ground_truth, result.detections
    run = EvaluationRun(*tables, other, result._source.threads, prepared=True)
    if result.full is not None:
        run = SelectedClasses(run, [run.classes.index(name) for name in result.classes])
    return result_of(run, other, run.classes, run.evaluate(), ())
