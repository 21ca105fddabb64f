"""Score loaded tables: prepare them, match and accumulate (run.py), and summarize (results.py)."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from detap import metrics
from detap.checks.boxes import check_boxes
from detap.checks.tables import check_units, of_unknown_size, unsized_problem
from detap.core.arrays import Scores
from detap.core.matching import accumulate
from detap.errors import InputError
from detap.evaluation.match import match_params
from detap.evaluation.results import Result, all_area_iou_pairs, result_of
from detap.evaluation.run import EvaluationRun, unscored
from detap.evaluation.selection import SelectedClasses, Selection, name_mask, select
from detap.protocols import Protocol
from detap.tables.detection import Detections, GroundTruth, Name


def score_tables(
    ground_truth: GroundTruth,
    detections: Detections,
    protocol: Protocol | str = "coco",
    *,
    matches: bool = False,
    match_table: bool = False,
    curves: bool = True,
    **options: Any,
) -> Result:
    """Evaluate without reading, warnings and sanity notes; `options` are of :func:`prepare`.

    For callers that score the same tables repeatedly, such as subsets or other orders.
    """
    run, selection, classes = prepare(ground_truth, detections, protocol, **options)
    resolved = run.protocol
    pairs = all_area_iou_pairs(resolved) if matches else run.area_iou_pairs if match_table else None
    result = name_scores(run, run.evaluate(match_table=pairs, curves=curves), classes)
    return replace(result, selection=selection)


def prepare(
    ground_truth: GroundTruth,
    detections: Detections,
    protocol: Protocol | str = "coco",
    *,
    classes: Iterable[Name] | None = None,
    images: Iterable[Name] | None = None,
    threads: int | None = None,
    check_formats: bool = True,
) -> tuple[EvaluationRun, Selection | None, tuple[str, ...] | None]:
    """Check tables; return their run, the selection, and the classes to report if not all."""
    resolved = Protocol.of(protocol)
    extra_images = "error" if images is None else "drop"
    detections = detections.reindex_like(ground_truth, extra_images=extra_images)
    if not detections.has_scores:
        detections, resolved = unscored().settle_scores(ground_truth, detections, resolved)
    if resolved.metrics:
        metrics.summary(resolved)  # raises if a name is unknown
    check_units(ground_truth, detections)
    _check_units(ground_truth, resolved)
    if check_formats:
        boxes = resolved.iou_type == "bbox"
        notes = check_boxes(ground_truth, detections, boxes=boxes)
        if notes:
            detections = replace(detections, notes=(*detections.notes, *notes))
    selection = selected_classes = None
    if classes is not None or images is not None:
        selection = Selection.of(ground_truth, detections, classes, images)
        pooled, selected_classes = None, selection.classes
        if resolved.class_agnostic:
            pooled, selected_classes = selected_classes, None
        ground_truth, detections = select(
            ground_truth, detections, classes=pooled, images=selection.images
        )
    return EvaluationRun(ground_truth, detections, resolved, threads), selection, selected_classes


def _check_units(ground_truth: GroundTruth, protocol: Protocol) -> None:
    """Raise InputError if pixels are required but image sizes are unknown."""
    if not of_unknown_size(ground_truth):
        return
    for set_value, reason, hint in (
        (protocol.inclusive_pixels, "counts whole pixels", "--no-inclusive-pixels"),
        (
            len(protocol.area_ranges) > 1 and not protocol.relative_areas,
            "has area ranges in pixels",
            "--area-ranges none",
        ),
        (protocol.min_height, "requires heights in pixels", ""),
    ):
        if set_value:
            cause = f"the protocol {protocol.name} {reason}"
            raise InputError(unsized_problem(ground_truth, cause, hint))


def on_images(result: Result, images: Iterable[Name], *, threads: int | None = None) -> Result:
    """Return the result on some images, reusing the match table if possible."""
    names = frozenset(images)
    full = result if result.full is None else result.full
    source = full._run
    numbers = np.flatnonzero(name_mask("image", source.images, names)).tolist()
    truth, detections = select(source.ground_truth, source.detections, images=names)
    run = EvaluationRun(truth, detections, result.protocol, threads, prepared=True)
    if result.protocol.ranks_detections and not result.protocol.matches_by_limit:
        scores = accumulate(full.match_table.select_images(numbers), threads=threads)
    else:
        scores = run.evaluate()
    subset = name_scores(run, scores, None if full is result else result.classes)
    return replace(subset, selection=result.selection)


def reaccumulate(result: Result, protocol: Protocol, scores: Scores | None = None) -> Result:
    """Return the result of another protocol with the same matching."""
    run = result._run
    if scores is None:
        params = match_params(protocol)
        scores = accumulate(result.match_table, params=params, threads=run.threads)
    if protocol.matches_by_limit:
        scores = scores._replace(recall=result.recall)
    reaccumulated = result_of(run, protocol, scores, result.notes)
    return replace(reaccumulated, selection=result.selection)


def name_scores(run: EvaluationRun, scores: Scores, classes: Iterable[str] | None = None) -> Result:
    """Return the named result of scores, optionally of some classes."""
    notes = (*run.table_notes(), *run.score_notes(scores))
    full = result_of(run, run.protocol, scores, notes)
    if classes is None:
        return full
    labels = np.flatnonzero(name_mask("class", run.classes, classes)).tolist()
    selected_classes = name_scores(SelectedClasses(run, labels), scores.select_classes(labels))
    return replace(selected_classes, full=full)
