"""Entry points for detection evaluation.

:func:`evaluate` takes loaded tables, prepares them, matches and accumulates (run.py), and
summarizes (results.py).
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from detap import metrics
from detap.checks.boxes import check_boxes
from detap.checks.tables import check_units, of_unknown_size, unsized_problem
from detap.core.arrays import Scores
from detap.core.matching import accumulate
from detap.errors import DetapWarning, InputError, UsageError
from detap.evaluation.match import match_params
from detap.evaluation.results import Matches, Result, all_area_iou_pairs, result_of
from detap.evaluation.run import EvaluationRun, unscored
from detap.evaluation.sanity_notes import add_sanity_notes
from detap.evaluation.selection import SelectedClasses, Selection, name_mask, select
from detap.formats import read_tables
from detap.formats.catalogue import default_protocol, options
from detap.formats.class_map import map_tables
from detap.formats.read import with_missing_scores
from detap.io.limits import DEFAULT_LIMITS
from detap.io.paths import Path
from detap.protocols import Protocol
from detap.tables.detection import Detections, GroundTruth, Name
from detap.tables.notes import AS_IS

__all__ = ["Matches", "Result", "add_sanity_notes", "evaluate", "on_images", "select"]


def evaluate(
    ground_truth: GroundTruth | Path | Sequence[Path],
    detections: Detections | Path | Sequence[Path],
    protocol: Protocol | str | None = None,
    *,
    classes: Iterable[Name] | None = None,
    images: Iterable[Name] | None = None,
    threads: int | None = None,
    matches: bool = False,
    match_table: bool = False,
    as_is: bool = False,
    missing_scores: str = "none",
    class_map: Any = None,
    **reading: Any,
) -> Result:
    """Evaluate detections against ground truth.

    Parameters
    ----------
    ground_truth : GroundTruth or path
        G rows, or a path, pattern or list of paths, as for :func:`detap.read_ground_truth`.
    detections : Detections or path
        N rows, on images of `ground_truth`; reindexed like it if necessary.
    protocol : Protocol or str, optional
        A protocol or the name of a preset. By default that of the ground truth's format, as for
        ``detap eval``: ``"voc2012"`` for VOC; ``"coco"`` for arrays.
    classes : iterable of int or str, optional
        Names, or ids if integers, of the classes to report. All classes are evaluated, so the
        metrics of a class do not depend on the selection; means are over the selected classes. A
        class-agnostic protocol pools only the selected classes.
    images : iterable of int or str, optional
        Names of the images to evaluate; all by default. Detections on images that `ground_truth`
        lacks are then left out, with a note.
    threads : int, optional
        All of the machine by default. The result does not depend on it.
    matches : bool
        If True, keep the match results as arrays, ``Result.matches``.
    match_table : bool
        If True, keep ``Result.match_table``; otherwise its first access matches again.
    as_is : bool
        If True, only warn about boxes that look like another format or normalized.
    missing_scores : {"none", "1", "area", "error"}
        If no detection has a score: report F1 without a ranking, also AP over rankings, rank by
        box area, or raise InputError.
    class_map : path or mapping, optional
        Other class names, as for ``--class-map``: a TOML, JSON or CSV file, or a mapping such as
        ``{"car": "vehicle", "chair": "-"}``.
    **reading
        `format`, `merge_images` and reader options, as for :func:`detap.read_ground_truth`; only
        with a path.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        If a file or the class map is invalid, an image of the detections is not in the ground
        truth, or boxes look normalized, like xyxy, or like pixels of a network's input; if scores
        are missing, and that is an error.
    UsageError
        If an argument is neither a table nor a path; if the protocol is unknown or contradicts
        itself, or a class or an image is unknown.

    Warns
    -----
    DetapWarning
        For each note of the result that is a warning.
    """
    if not (isinstance(ground_truth, GroundTruth) and isinstance(detections, Detections)):
        reading |= {"as_is": True} if as_is else {}
        if images is not None:
            limits = reading.get("limits", DEFAULT_LIMITS)
            reading["limits"] = replace(limits, drop_extra_images=True)
        reading |= {"any_classes": True} if class_map is not None else {}
        ground_truth, detections, protocol = read_tables(
            ground_truth, detections, protocol, **reading
        )
    elif reading:
        name = next(iter(reading))
        if name in ("format", "merge_images") or any(name == option.name for option in options()):
            raise UsageError(f"{name}= is for reading files, but both tables are given")
        raise TypeError(f"evaluate() got an unexpected keyword argument {name!r}")
    if class_map is not None:
        extra_images = "error" if images is None else "drop"
        detections = detections.reindex_like(ground_truth, extra_images=extra_images)
        [ground_truth], [detections] = map_tables(class_map, [ground_truth], [detections])
    detections = with_missing_scores(detections, missing_scores)
    if as_is and AS_IS not in ground_truth.notes:
        ground_truth = replace(ground_truth, notes=(*ground_truth.notes, AS_IS))
    result = add_sanity_notes(
        score_tables(
            ground_truth,
            detections,
            default_protocol(ground_truth) if protocol is None else protocol,
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
    """Evaluate like :func:`evaluate`, without warnings and sanity notes; `options` of `prepare`.

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
    reaccumulated = result_of(run, protocol, result.classes, scores, result.notes)
    return replace(reaccumulated, selection=result.selection)


def name_scores(run: EvaluationRun, scores: Scores, classes: Iterable[str] | None = None) -> Result:
    """Return the named result of scores, optionally of some classes."""
    notes = (*run.table_notes(), *run.score_notes(scores))
    full = result_of(run, run.protocol, run.classes, scores, notes)
    if classes is None:
        return full
    labels = np.flatnonzero(name_mask("class", run.classes, classes)).tolist()
    selected_classes = name_scores(SelectedClasses(run, labels), scores.select_classes(labels))
    return replace(selected_classes, full=full)
