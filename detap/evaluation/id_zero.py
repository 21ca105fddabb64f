"""What an annotation of id 0 comes to, a match with which pycocotools takes for none."""

from dataclasses import replace

from detap.decimals import apart
from detap.evaluation.detection import score_tables, select
from detap.evaluation.results import Result
from detap.protocols import protocol
from detap.tables.detection import Floats

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
    rules, truth = result.protocol, result.ground_truth
    if rules.name not in _OTHER or not truth.zero_id.any():
        return result
    here, other = next(iter(result.summary.items())), _OTHER[rules.name]
    label = 0 if rules.class_agnostic else int(truth.label[truth.zero_id][0])
    named = None if rules.class_agnostic else [result.classes[label]]
    part = score_tables(
        *select(truth, result.detections, classes=named),
        replace(rules, id_zero=protocol(other).id_zero),
        threads=result._scene.threads,
    )
    there = replace(
        result,
        average_precision=_replaced(result.average_precision, label, part.average_precision),
        precision=_replaced(result.precision, label, part.precision, axis=2),
        recall=_replaced(result.recall, label, part.recall),
    )
    ours, theirs = apart(here[1], there.summary[here[0]])
    message = (
        "an annotation has the id 0, a match with which pycocotools takes for none: "
        f"{here[0]} is {ours} here and {theirs} with --protocol {other}"
    )
    notes = (replace(n, message=message) if n.code == _CODE else n for n in result.notes)
    return replace(result, notes=tuple(notes))


def _replaced(values: Floats, label: int, by: Floats, axis: int = 1) -> Floats:
    """Return an array with the numbers of one class replaced by those of that class alone."""
    changed = values.copy()
    changed[(slice(None),) * axis + (label,)] = by.take(0, axis)
    return changed
