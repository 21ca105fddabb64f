"""Scoring detections against ground truths: the door to the house.

No formula is here: :func:`evaluate` brings tables and protocol together (run.py), has core score
them, and puts names on what comes back (results.py).
"""

import warnings
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from detap.checks.boxes import check_boxes
from detap.checks.sanity_notes import notes_of_arrays, score_cut_notes, suspicions_of, written_twice
from detap.checks.tables import check_units, of_unknown_size, unsized_problem
from detap.core.accumulate import Scores, accumulate
from detap.errors import DetapWarning, InputError, UsageError
from detap.evaluation.results import Curve, Matches, Result, all_area_iou_pairs, result_of
from detap.evaluation.run import EvaluationRun, match_params
from detap.evaluation.subset import select, shrink, wanted
from detap.protocols import Protocol
from detap.tables.detection import Detections, GroundTruth, Name
from detap.tables.notes import AS_IS

__all__ = [
    "Curve",
    "Matches",
    "Result",
    "evaluate",
    "on_images",
    "select",
    "shrink",
    "wanted",
    "with_advice",
]


def evaluate(
    ground_truth: GroundTruth,
    detections: Detections,
    protocol: Protocol | str = "coco",
    *,
    classes: Iterable[str] | None = None,
    images: Iterable[Name] | None = None,
    threads: int | None = None,
    matches: bool = False,
    match_table: bool = False,
    as_is: bool = False,
) -> Result:
    """Score detections against ground truths.

    Parameters
    ----------
    ground_truth : GroundTruth
        G rows.
    detections : Detections
        N rows, on images of `ground_truth`; numbered as it, or renumbered here.
    protocol : Protocol or str
        How; a preset's name will do.
    classes : iterable of str, optional
        Names of the classes to report. All classes are scored, so the numbers of a class do not
        depend on the selection; means are over the selected classes. With a class-agnostic
        protocol, only the selected classes are pooled.
    images : iterable of int or str, optional
        Names of the images to evaluate; the others are left out before scoring.
    threads : int, optional
        As many as the machine has, by default. The result does not depend on it.
    matches : bool
        Whether to keep what became of each detection as arrays, ``Result.matches``.
    match_table : bool
        Whether to keep it as bits from the start, because ``Result.match_table`` will be asked for;
        otherwise asking matches once more.
    as_is : bool
        Whether boxes that look like another convention, or like fractions of the image's size, are
        scored for all that, with a warning.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        Where a detection lies on an image that the ground truth does not have, or boxes look like
        fractions of the image's size, two corners in place of x, y, width and height, or pixels of
        a network's input.
    UsageError
        Where the protocol is unknown or contradicts itself, or a class or an image is unknown.

    Warns
    -----
    DetapWarning
        For each note of the result that is a warning.
    """
    if as_is and isinstance(ground_truth, GroundTruth) and AS_IS not in ground_truth.notes:
        ground_truth = replace(ground_truth, notes=(*ground_truth.notes, AS_IS))
    result = with_advice(
        score_tables(
            ground_truth,
            detections,
            protocol,
            classes=classes,
            images=images,
            threads=threads,
            matches=matches,
            match_table=match_table,
        )
    )
    for note in result.notes:
        if note.severity == "warning":
            warnings.warn(DetapWarning(note), stacklevel=2)
    return result


def with_advice(result: Result) -> Result:
    """Return the result with notes of what looks wrong about its tables, where anything does."""
    if result.ground_truth.zero_id.any():
        from detap.evaluation.annotation_id_zero import weighed  # seldom needed

        result = weighed(result)
    from_files = result.ground_truth.files and result.detections.files
    found = [] if from_files else list(notes_of_arrays(result))
    found += [*written_twice(result), *score_cut_notes(result)]
    result = replace(result, notes=(*result.notes, *found)) if found else result
    unlikely = suspicions_of(result)
    return replace(result, notes=(*result.notes, *unlikely)) if unlikely else result


def score_tables(
    ground_truth: GroundTruth,
    detections: Detections,
    protocol: Protocol | str = "coco",
    *,
    classes: Iterable[str] | None = None,
    images: Iterable[Name] | None = None,
    threads: int | None = None,
    matches: bool = False,
    match_table: bool = False,
    curves: bool = True,
    judge: bool = True,
) -> Result:
    """Score as :func:`evaluate` does, but warn of nothing and look for nothing suspicious.

    For what scores the same tables again: their parts, or another order of them. Without `curves`,
    only evidence and counts are there to be asked, and the rest is not worked out. Without `judge`,
    boxes that look like another convention are not refused: of a part, which is judged with others.
    """
    for table, kind in ((ground_truth, GroundTruth), (detections, Detections)):
        if not isinstance(table, kind):
            raise UsageError(
                f"a {type(table).__name__} stands where {kind.__name__} are due; "
                f"{kind.__name__}.from_arrays makes them, and evaluate takes the ground truth first"
            )
    resolved = Protocol.of(protocol)
    check_units(ground_truth, detections)
    _check_units(ground_truth, resolved)
    detections = detections.numbered_as(ground_truth)
    if judge:
        boxes = resolved.iou_type == "bbox"
        notes = check_boxes(ground_truth, detections, boxes=boxes)
        if notes:
            detections = replace(detections, notes=(*detections.notes, *notes))
    selection = chosen = None
    if classes is not None or images is not None:
        from detap.evaluation.selection import Selection

        selection = Selection.of(ground_truth, detections, classes, images)
        pooled, chosen = None, selection.classes
        if resolved.class_agnostic:
            pooled, chosen = chosen, None
        ground_truth, detections = select(
            ground_truth, detections, classes=pooled, images=selection.images
        )
    run = EvaluationRun(ground_truth, detections, resolved, threads)
    cells = all_area_iou_pairs(resolved) if matches else [(0, 0)] if match_table else None
    result = _result(run, run.evaluate(match_table=cells, curves=curves), chosen)
    return replace(result, selection=selection)


def _check_units(ground_truth: GroundTruth, protocol: Protocol) -> None:
    """Refuse to count pixels where boxes are in fractions of images of unknown size."""
    if not of_unknown_size(ground_truth):
        return
    for asked, what, otherwise in (
        (protocol.inclusive_pixels, "counts whole pixels", "--no-inclusive-pixels"),
        (len(protocol.area_ranges) > 1, "has area ranges in pixels", "--area-ranges none"),
        (protocol.min_height, "requires heights in pixels", ""),
    ):
        if asked:
            why = f"the protocol {protocol.name} {what}"
            raise InputError(unsized_problem(ground_truth, why, otherwise))


def on_images(result: Result, images: Iterable[Name], *, threads: int | None = None) -> Result:
    """Return the result on some of its images alone; no box that was ranked is matched again.

    Parameters
    ----------
    result : Result
    images : iterable of int or str
        What they are called.
    threads : int, optional
        As for :func:`evaluate`.

    Raises
    ------
    UsageError
        Where a name is unknown, with near ones, or none is given.
    """
    kept = frozenset(images)
    whole = result if result.whole is None else result.whole
    source = whole._source
    numbers = np.flatnonzero(wanted("image", source.images, kept)).tolist()
    if not isinstance(source, EvaluationRun):
        return source.on_images(numbers, threads=threads)
    truth, detections = select(source.ground_truth, source.detections, images=kept)
    run = EvaluationRun(truth, detections, result.protocol, threads, as_seen=True)
    if result.protocol.matching == "by-score":
        scores = accumulate(whole.match_table.select_images(numbers), threads=threads)
    else:
        scores = run.evaluate()
    part = _result(run, scores, None if whole is result else result.classes)
    return replace(part, selection=result.selection)


def accumulated_by(result: Result, protocol: Protocol) -> Result:
    """Return the result by another protocol that matches alike; no box is matched again.

    Parameters
    ----------
    result : Result
        With boxes.
    protocol : Protocol
        Other than the result's only in fields of :func:`detap.metrics.after_matching`.
    """
    run = result._source
    scores = accumulate(result.match_table, params=match_params(protocol), threads=run.threads)
    found = result_of(run, protocol, result.classes, scores, result.notes)
    return replace(found, selection=result.selection)


def _result(run: EvaluationRun, scores: Scores, classes: Iterable[str] | None = None) -> Result:
    """Put names on scores; of some classes alone, if they are named."""
    notes = (*run.notes_of_tables(), *run.notes(scores))
    whole = result_of(run, run.protocol, run.classes, scores, notes)
    if classes is None:
        return whole
    from detap.evaluation.selection import ChosenClasses

    labels = np.flatnonzero(wanted("class", run.classes, classes)).tolist()
    chosen = _result(ChosenClasses(run, labels), scores.select_classes(labels))
    return replace(chosen, whole=whole)
