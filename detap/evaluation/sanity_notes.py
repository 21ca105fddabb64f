"""Notes on a result: implausible tables, and metrics that a reference's rule changes."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap import metrics
from detap.checks.mismatch import exchanged_classes, mismatch_notes, misread
from detap.checks.sample import Sample
from detap.checks.tables import (
    one_score,
    one_score_note,
    repeated,
    repeated_detections,
    score_cut,
    score_cut_note,
    scores_outside_note,
    zero_area_detections,
    zero_area_ground_truths,
)
from detap.decimals import ROUNDING, format_distinct
from detap.errors import Note, UsageError
from detap.evaluation.results import Result, result_of
from detap.evaluation.run import EvaluationRun
from detap.evaluation.selection import SelectedClasses
from detap.protocols import Protocol, protocol
from detap.tables.detection import Detections, Floats, GroundTruth

_LOW = 0.05
_MANY = 10  # box formats are checked if one box in ten extends beyond its image
_FEWEST = 2  # classes are checked if so many have an AP near zero
_IMAGES = 16  # images sampled for duplicates
_MOST = 1 << 16  # detections on them above which one image is sampled
_ZERO_ID = "annotation-id-zero"
_OTHER = {"coco": "coco-strict", "coco-strict": "coco"}


def add_sanity_notes(result: Result) -> Result:
    """Return the result with notes on implausible tables and scores."""
    result = add_zero_id_note(result)
    for notes_of in (
        script_notes,
        notes_of_arrays,
        duplicate_notes,
        score_cut_notes,
        mismatch_notes_of,
    ):
        if notes := [*notes_of(result)]:  # a replaced result computes its metrics again
            result = replace(result, notes=(*result.notes, *notes))
    return result


def notes_of_arrays(result: Result) -> Iterator[Note]:
    """Yield for arrays the notes that readers yield for files."""
    truth, detections = result.ground_truth, result.detections
    # With inclusive pixels, coinciding corners are a box of one pixel.
    may_be_empty = not result.protocol.inclusive_pixels
    if not truth.files and may_be_empty and (empty := int(np.count_nonzero(truth.box_area <= 0))):
        yield zero_area_ground_truths(empty)
    if detections.files:
        return
    score = detections.score
    if outside := int(np.count_nonzero((score < 0) | (score > 1))):
        yield scores_outside_note(score.min(), score.max(), outside)
    if may_be_empty and (empty := int(np.count_nonzero(detections.box_area <= 0))):
        yield zero_area_detections(empty)


def mismatch_notes_of(result: Result) -> tuple[Note, ...]:
    """Return mismatch notes if AP is near zero, overall or for some classes."""
    needed = needed_mismatch_checks(result)
    if needed is None:
        return ()
    truth, detections = result.ground_truth, result.detections
    low_classes, mean, check_format = needed
    try:
        if mean < _LOW:
            notes = mismatch_notes(truth, detections)
        else:
            notes = misread(truth, detections) if check_format else []
            if not notes and len(low_classes) >= _FEWEST:
                selected = truth.select(np.isin(truth.label, low_classes))
                notes = list(exchanged_classes(Sample(selected, detections)))
    except MemoryError:  # the metrics do not depend on the notes
        return ()
    codes = {note.code for note in result.notes}
    return tuple(note for note in notes if not _is_known(note.code, codes))


def needed_mismatch_checks(result: Result) -> tuple[NDArray[np.intp], float, bool] | None:
    """Return the classes and the mean near zero, and whether box formats are checked."""
    # Below a mean AP of 0.05 at the lowest IoU threshold, all checks run. Below 0.1, or if one box
    # in ten extends beyond its image, the box format is checked. If two classes or more are below
    # 0.05, exchanged classes are looked for. Otherwise nothing is sampled.
    reached = result.recall[0, :, 0, -1]
    if result.average_precision.size and result.protocol.ranks_detections:
        reached = result.average_precision[0, :, 0]
    defined = reached[~np.isnan(reached)]
    if not result.detections_count.any() or not len(result.ground_truth) or not len(defined):
        return None
    low_classes, mean = np.flatnonzero(reached < _LOW), float(defined.mean())
    counts = {
        "ground-truth-beyond-image": len(result.ground_truth),
        "detections-beyond-image": int(result.detections_count.sum()),
    }
    check_format = mean < 2 * _LOW or any(
        _MANY * note.count >= counts.get(note.code, np.inf) for note in result.notes
    )
    if not check_format and len(low_classes) < _FEWEST:
        return None
    return low_classes, mean, check_format


def duplicate_notes(result: Result) -> Iterator[Note]:
    """Yield the notes of duplicate boxes, if a quarter of a sample are duplicates."""
    truth, detections = result.ground_truth, result.detections
    if count := _duplicates(truth):
        message = "duplicate ground truths (same image, class, box) all count; file written twice?"
        yield Note("repeated-objects", message, count)
    yield from repeated_detections(_duplicates(detections), detections)


def _duplicates(table: GroundTruth | Detections) -> int:
    """Count the duplicates of a table; 0 if its reader has, or few of a sample are duplicates."""
    if not len(table) or any(note.code.startswith("repeated-") for note in table.notes):
        return 0
    sampled = np.zeros(len(table.images), np.bool_)
    sampled[table.image[:: len(table) // _IMAGES + 1]] = True
    rows = np.flatnonzero(sampled[table.image])
    if len(rows) > _MOST:
        rows = np.flatnonzero(table.image == table.image[0])[:_MOST]
    duplicates = _repeated_boxes(table, rows)
    if not duplicates or 4 * duplicates < len(rows):
        return 0
    return _repeated_boxes(table, np.arange(len(table)))


def _repeated_boxes(table: GroundTruth | Detections, rows: NDArray[np.intp]) -> int:
    """Count the duplicates among some rows; boxes without area can stand for missing ones."""
    rows = rows[table.box_area[rows] > 0]
    numbers = table.corners[rows]
    if isinstance(table, GroundTruth):  # two masks in one box usually differ in area
        numbers = np.column_stack((numbers, table.area[rows]))
    return repeated(table.image[rows], table.label[rows], numbers)


def _is_known(code: str, known: set[str]) -> bool:
    """Return True if a reader has given this note, or the same fault under its own code."""
    # Readers compare boxes with image borders, and may have noted the other table.
    for ending, other in (
        ("look-xyxy", "look-xyxy"),
        ("look-normalized", "normalized-boxes"),
    ):
        if code.endswith(ending):
            return any(name.endswith(other) for name in known)
    return code in known


def score_cut_of(result: Result) -> float | None:
    """Return the score threshold that seems to have been applied."""
    if one_score(result.detections.score):
        return None
    return score_cut(result._run.lowest_score, int(result.detections_count.sum()))


def score_cut_notes(result: Result) -> Iterator[Note]:
    """Yield the note of equal scores, or of a threshold that cuts off the curve."""
    if not one_score(result.detections.score):
        cut, reached = score_cut_of(result), result.recall[0, :, 0, -1]
        if cut is not None and not np.isnan(reached).all():
            yield score_cut_note(cut, f" at a mean recall of {np.nanmean(reached):.3f}")
        return
    name, bounds = next(iter(result.summary)), dict[str, tuple[float, float, float]]()
    end = "; see --tie-range"
    if len(result.detections) <= _MOST and result.has_boxes:
        module: Any = import_module("detap.evaluation.tie_range")  # start-up time
        end = ""
        with suppress(UsageError):  # the protocol has no such bounds
            bounds = module.tie_range(result)
    if name in bounds:
        low, value, high = bounds[name]
        if not high - low > ROUNDING:  # their order changes nothing
            return
        end = f": {name} is {value:.4f} here, from {low:.4f} to {high:.4f} in other orders"
    yield one_score_note(len(result.detections), end)


def comparison_notes(current: Result, baseline: Result) -> tuple[Note, ...]:
    """Return a warning if two detectors have different score thresholds."""
    cuts = {"first detector": score_cut_of(baseline), "second": score_cut_of(current)}
    return cut_notes(cuts, "both")


def cut_notes(cuts: Mapping[str, float | None], together: str = "all") -> tuple[Note, ...]:
    """Return a warning if detectors have different score thresholds, given by name."""
    if len({*cuts.values()}) <= 1:
        return ()
    texts = (f"{n}: {'no score threshold' if c is None else f'{c:g}'}" for n, c in cuts.items())
    message = (
        f"score thresholds differ ({', '.join(texts)}), which alone can change AP; predict "
        f"{together} with the same threshold"
    )
    return (Note("scores-cut-differently", message),)


# --- annotation id 0, whose matches pycocotools does not count


def needs_boxes(result: Result) -> bool:
    """Return True if a note needs the boxes of a result."""
    return has_zero_id_note(result) or needed_mismatch_checks(result) is not None


def has_zero_id_note(result: Result) -> bool:
    """Return True if :func:`add_zero_id_note` evaluates a class again."""
    if not result.protocol.has_scores:
        return False
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
        full = (result.full or result)._run
        run = EvaluationRun(full.ground_truth, full.detections, plain, full.threads, prepared=True)
        if result.full is not None:
            run = SelectedClasses(run, [run.classes.index(name) for name in result.classes])
        other = result_of(run, plain, run.evaluate(), ())
    values = {spec.name: (result.metric(spec.name), other.metric(spec.name)) for spec in specs}
    differing = [
        f"{name} is {by_script:.4f} by the rules of the script, {value:.4f} without them"
        for name, (by_script, value) in values.items()
        if repr(by_script) != repr(value)
    ]
    if differing:
        options = " ".join(f"--{n.replace('_', '-')} {value}" for n, value in changes.items())
        yield Note("script-rules", f"{'; '.join(differing)} ({options})")
