"""What an annotation of id 0 comes to, a match with which pycocotools takes for none."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from detap.evaluation.results import Result
from detap.evaluation.run import EvaluationRun
from detap.protocols import protocol
from detap.tables.detection import Detections, Floats, GroundTruth

_CODE = "annotation-id-zero"
_OTHER = {"coco": "coco-strict", "coco-strict": "coco"}


def weighed(result: Result) -> Result:
    """Return the result with what an annotation of id 0 comes to: the headline either way.

    Only its class is scored again.

    Parameters
    ----------
    result : Result
        Of :func:`detap.evaluate`. Where no annotation has the id 0, or the protocol is neither
        ``coco`` nor ``coco-strict``, it is returned as it is.
    """
    current, truth = result.protocol, result.ground_truth
    if current.name not in _OTHER or not truth.zero_id.any():
        return result
    from detap.decimals import format_distinct

    here, other = next(iter(result.summary.items())), _OTHER[current.name]
    label = 0 if current.class_agnostic else int(truth.label[truth.zero_id][0])
    one_class = EvaluationRun(
        truth.select(_rows(result, truth, label)),
        result.detections.select(_rows(result, result.detections, label)),
        replace(current, annotation_id_zero=protocol(other).annotation_id_zero),
        result._run.threads,
        as_seen=True,
    )
    scores = one_class.score()
    interpolated = result._interpolated.copy()
    interpolated.set_classes(slice(label, label + 1), scores.interpolated.select_classes([label]))
    there = replace(
        result,
        average_precision=_replaced(result.average_precision, label, scores.average),
        _interpolated=interpolated,
        recall=_replaced(result.recall, label, scores.recall),
    )
    ours, theirs = format_distinct(here[1], there.summary[here[0]])
    message = (
        "an annotation has the id 0, a match with which pycocotools takes for none: "
        f"{here[0]} is {ours} here and {theirs} with --protocol {other}"
    )
    notes = (replace(n, message=message) if n.code == _CODE else n for n in result.notes)
    return replace(result, notes=tuple(notes))


def _rows(result: Result, table: GroundTruth | Detections, label: int) -> NDArray[np.intp]:
    return np.flatnonzero(result.protocol.class_agnostic | (table.label == label))


def _replaced(values: Floats, label: int, by: Floats) -> Floats:
    """Return an array with the numbers of one class replaced."""
    changed = values.copy()
    changed[:, label] = by[:, label]
    return changed
