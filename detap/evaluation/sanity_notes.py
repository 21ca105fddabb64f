"""Notes on the tables of a result, most of them if AP is near zero."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from detap.checks.mismatch import exchanged_classes, mismatch_notes, misread
from detap.checks.sample import Sample
from detap.checks.tables import (
    repeated,
    repeated_detections,
    score_cut,
    score_cut_note,
    scores_outside_note,
    zero_area_detections,
    zero_area_ground_truths,
)
from detap.errors import Note
from detap.evaluation.results import Result
from detap.tables.detection import Detections, GroundTruth

_LOW = 0.05
_MANY = 10  # box formats are checked if one box in ten extends beyond its image
_FEWEST = 2  # classes are checked if so many have an AP near zero
_IMAGES = 16  # images sampled for duplicates
_MOST = 1 << 16  # detections on them above which one image is sampled


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
    # Below a mean AP of 0.05 at the lowest IoU threshold, all checks run. Below 0.1, or if one box
    # in ten extends beyond its image, the box format is checked. If two classes or more are below
    # 0.05, exchanged classes are looked for. Otherwise nothing is sampled.
    needed = _mismatch_checks(result)
    if needed is None:
        return ()
    notes = _sampled_notes(result.ground_truth, result.detections, *needed)
    codes = {note.code for note in result.notes}
    return tuple(note for note in notes if not _is_known(note.code, codes))


def needs_mismatch_checks(result: Result) -> bool:
    """Return True if :func:`mismatch_notes_of` samples boxes."""
    return _mismatch_checks(result) is not None


def _mismatch_checks(result: Result) -> tuple[NDArray[np.intp], float, bool] | None:
    """Return the classes and the mean near zero, and whether box formats are checked."""
    reached = result.recall[0, :, 0, -1]
    if result.average_precision.size and result.protocol.matching == "by-score":
        reached = result.average_precision[0, :, 0]
    defined = reached[~np.isnan(reached)]
    if not result.detections_count.any() or not len(result.ground_truth) or not len(defined):
        return None
    low_classes, mean = np.flatnonzero(reached < _LOW), float(defined.mean())
    check_format = mean < 2 * _LOW or _beyond_images(result)
    if not check_format and len(low_classes) < _FEWEST:
        return None
    return low_classes, mean, check_format


def _sampled_notes(
    truth: GroundTruth,
    detections: Detections,
    low_classes: NDArray[np.intp],
    mean: float,
    check_format: bool,
) -> list[Note]:
    """Return the mismatch notes; none if memory is short."""
    try:
        if mean < _LOW:
            return mismatch_notes(truth, detections)
        notes = misread(truth, detections) if check_format else []
        if not notes and len(low_classes) >= _FEWEST:
            selected = truth.select(np.isin(truth.label, low_classes))
            notes = list(exchanged_classes(Sample(selected, detections)))
    except MemoryError:  # the metrics do not depend on the notes
        return []
    return notes


def _beyond_images(result: Result) -> bool:
    """Return True if one box in ten extends beyond its image, by the notes of readers."""
    counts = {
        "ground-truth": len(result.ground_truth),
        "detections": int(result.detections_count.sum()),
    }
    return any(
        note.code == f"{role}-beyond-image" and _MANY * note.count >= count
        for role, count in counts.items()
        for note in result.notes
    )


def duplicate_detection_notes(result: Result) -> Iterator[Note]:
    """Yield the note of duplicate detections if a quarter of a sample are duplicates."""
    table = result.detections
    if any(note.code.startswith("repeated-") for note in table.notes):
        return
    sampled = np.zeros(len(table.images), np.bool_)
    sampled[table.image[:: len(table) // _IMAGES + 1]] = True
    rows = np.flatnonzero(sampled[table.image])
    if len(rows) > _MOST:
        rows = np.flatnonzero(table.image == table.image[0])[:_MOST]
    duplicates = repeated(table.image[rows], table.label[rows], table.corners[rows])
    if len(rows) and 4 * duplicates >= len(rows):
        yield from repeated_detections(repeated(table.image, table.label, table.corners), table)


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


def _score_cut(result: Result) -> float | None:
    return score_cut(result._source.lowest_score, int(result.detections_count.sum()))


def score_cut_notes(result: Result) -> Iterator[Note]:
    """Yield the note of a score threshold, which cuts off the precision-recall curve."""
    cut, reached = _score_cut(result), result.recall[0, :, 0, -1]
    if cut is not None and not np.isnan(reached).all():
        yield score_cut_note(cut, f" at a mean recall of {np.nanmean(reached):.3f}")


def comparison_notes(current: Result, baseline: Result) -> tuple[Note, ...]:
    """Return a warning if two detectors have different score thresholds."""
    cuts = [_score_cut(result) for result in (baseline, current)]
    if cuts[0] == cuts[1]:
        return ()
    first, second = ("no score threshold" if cut is None else f"{cut:g}" for cut in cuts)
    message = (
        f"score thresholds differ (first detector: {first}, second: {second}), which alone can "
        "change AP; predict both with the same threshold"
    )
    return (Note("scores-cut-differently", message),)
