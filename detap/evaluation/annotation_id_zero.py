"""Note on annotations with id 0, whose matches pycocotools does not count."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from detap.evaluation.results import Result
from detap.evaluation.run import EvaluationRun
from detap.protocols import protocol
from detap.tables.detection import Detections, Floats, GroundTruth

_CODE = "annotation-id-zero"
_OTHER = {"coco": "coco-strict", "coco-strict": "coco"}


def has_zero_id_note(result: Result) -> bool:
    """Return True if :func:`add_zero_id_note` evaluates a class again."""
    return result.protocol.name in _OTHER and bool(result.ground_truth.zero_id.any())


def add_zero_id_note(result: Result) -> Result:
    """Add both values of the primary metric to the note on annotation id 0.

    Only the annotation's class is evaluated again.
    """
    current, truth = result.protocol, result.ground_truth
    if not has_zero_id_note(result):
        return result
    from detap.decimals import format_distinct

    primary_metric, other_protocol = next(iter(result.summary.items())), _OTHER[current.name]
    label = 0 if current.class_agnostic else int(truth.label[truth.zero_id][0])
    one_class = EvaluationRun(
        truth.select(_rows(result, truth, label)),
        result.detections.select(_rows(result, result.detections, label)),
        replace(current, annotation_id_zero=protocol(other_protocol).annotation_id_zero),
        result._run.threads,
        prepared=True,
    )
    scores = one_class.evaluate()
    interpolated = result._interpolated.copy()
    interpolated.set_classes(slice(label, label + 1), scores.interpolated.select_classes([label]))
    alternative = replace(
        result,
        average_precision=_replaced(result.average_precision, label, scores.average),
        _interpolated=interpolated,
        recall=_replaced(result.recall, label, scores.recall),
    )
    ours, theirs = format_distinct(primary_metric[1], alternative.summary[primary_metric[0]])
    message = (
        "pycocotools counts a match with annotation id 0 as unmatched: "
        f"{primary_metric[0]} is {ours} here and {theirs} with --protocol {other_protocol}"
    )
    notes = (replace(n, message=message) if n.code == _CODE else n for n in result.notes)
    return replace(result, notes=tuple(notes))


def _rows(result: Result, table: GroundTruth | Detections, label: int) -> NDArray[np.intp]:
    return np.flatnonzero(result.protocol.class_agnostic | (table.label == label))


def _replaced(values: Floats, label: int, new_values: Floats) -> Floats:
    """Return a copy of an array with the values of one class replaced."""
    copied = values.copy()
    copied[:, label] = new_values[:, label]
    return copied
