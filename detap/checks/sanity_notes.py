"""What is worth saying of a result's tables, where they score next to nothing."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from detap.checks.tables import (
    repeated,
    repeated_detections,
    score_cut,
    score_cut_note,
    scores_outside_note,
    zero_area_detections,
    zero_area_truths,
)
from detap.errors import Note

if TYPE_CHECKING:
    from detap.evaluation.results import Result
    from detap.tables.detection import Detections, GroundTruth

_LOW = 0.05
_MANY = 10
"""One box in so many that leaves its image has boxes looked at."""
_FEWEST = 2
"""Classes of which next to nothing is found before they are looked at."""
_IMAGES = 16
"""Images on which detections are looked for that are there twice."""
_MOST = 1 << 16
"""Detections on them; where they have more, those of one image are looked at."""


def notes_of_arrays(result: "Result") -> Iterator[Note]:
    """Say of tables that came from arrays what readers say of files.

    Parameters
    ----------
    result : Result
        Of :func:`detap.evaluate`.
    """
    truth, detections = result.ground_truth, result.detections
    # Where pixels are counted inclusively, corners that coincide are a box of one pixel.
    hollow = not result.protocol.inclusive_pixels
    if not truth.files and hollow and (empty := int(np.count_nonzero(truth.box_area <= 0))):
        yield zero_area_truths(empty)
    if detections.files:
        return
    score = detections.score
    if outside := int(np.count_nonzero((score < 0) | (score > 1))):
        yield scores_outside_note(score.min(), score.max(), outside)
    if hollow and (empty := int(np.count_nonzero(detections.box_area <= 0))):
        yield zero_area_detections(empty)


def suspicions_of(result: "Result") -> tuple[Note, ...]:
    """Return what looks wrong about tables of which nothing is found, or nothing of some classes.

    The sample of overlaps is taken only where the average precision at the lowest threshold is
    below 0.05, overall or of two classes or more, and then of the images of these alone; or, for
    the boxes' convention alone, where it is below 0.1 or one box in ten leaves its image. So it
    costs nothing where all is well.

    Parameters
    ----------
    result : Result
        Of :func:`detap.evaluate`.
    """
    truth, detections = result.ground_truth, result.detections
    reached = result.recall[0, :, 0, -1]
    if result.average_precision.size and result.protocol.matching == "by-score":
        reached = result.average_precision[0, :, 0]
    defined = reached[~np.isnan(reached)]
    if not len(detections) or not len(truth) or not len(defined):
        return ()
    lost, mean = np.flatnonzero(reached < _LOW), float(defined.mean())
    doubtful = mean < 2 * _LOW or _leave_their_images(result)
    if not doubtful and len(lost) < _FEWEST:
        return ()
    notes = _sampled_notes(truth, detections, lost, mean, doubtful=doubtful)
    known = {note.code for note in result.notes}
    return tuple(note for note in notes if not _said(note.code, known))


def _sampled_notes(
    truth: "GroundTruth",
    detections: "Detections",
    lost: NDArray[np.intp],
    mean: float,
    *,
    doubtful: bool,
) -> list[Note]:
    """Return what a sample of overlaps shows; nothing where there is no memory for it."""
    try:
        from detap.checks.mismatch import exchanged_classes, misread, suspicions  # seldom needed
        from detap.checks.sample import Sample

        if mean < _LOW:
            return suspicions(truth, detections)
        notes = misread(truth, detections) if doubtful else []
        if not notes and len(lost) >= _FEWEST:
            of_these = truth.select(np.isin(truth.label, lost))
            notes = list(exchanged_classes(Sample(of_these, detections)))
    except MemoryError:  # the numbers stand without
        return []
    return notes


def _leave_their_images(result: "Result") -> bool:
    """Return whether a reader has said so of one box in ten."""
    tables = {"ground-truth": result.ground_truth, "detections": result.detections}
    return any(
        note.code == f"{what}-beyond-image" and _MANY * note.count >= len(table)
        for what, table in tables.items()
        for note in result.notes
    )


def written_twice(result: "Result") -> Iterator[Note]:
    """Say of detections that many of them are there twice, as where a tool appends to its files.

    That is looked for on a few images, and counted only where it is so on them.
    """
    found = result.detections
    if any(note.code.startswith("repeated-") for note in found.notes):
        return
    chosen = np.zeros(len(found.images), np.bool_)
    chosen[found.image[:: len(found) // _IMAGES + 1]] = True
    some = np.flatnonzero(chosen[found.image])
    if len(some) > _MOST:
        some = np.flatnonzero(found.image == found.image[0])[:_MOST]
    twice = repeated(found.image[some], found.label[some], found.corners[some])
    if len(some) and 4 * twice >= len(some):
        yield from repeated_detections(found)


def _said(code: str, known: set[str]) -> bool:
    """Return whether a reader has said the same already, under its own name."""
    # Readers go by the images' borders, of which both sides' boxes may have crossed one.
    for ending, other in (
        ("look-xyxy", "look-xyxy"),
        ("look-normalized", "normalized-boxes"),
    ):
        if code.endswith(ending):
            return any(name.endswith(other) for name in known)
    return code in known


def _score_cut(result: "Result") -> float | None:
    return score_cut(result._source.lowest_score, int(result.detections_count.sum()))


def score_cut_notes(result: "Result") -> Iterator[Note]:
    """Say that detections seem to be cut at a score, which shortens the curve that AP is under."""
    cut, reached = _score_cut(result), result.recall[0, :, 0, -1]
    if cut is not None and not np.isnan(reached).all():
        yield score_cut_note(cut, f", which ends at a mean recall of {np.nanmean(reached):.3f}")


def comparison_notes(now: "Result", before: "Result") -> tuple[Note, ...]:
    """Warn of two detectors whose detections are cut at different scores."""
    cuts = [_score_cut(result) for result in (before, now)]
    if cuts[0] == cuts[1]:
        return ()
    where = ["are not cut" if cut is None else f"seem cut at a score of {cut:g}" for cut in cuts]
    message = (
        f"detections of the first detector {where[0]}, those of the second {where[1]}: AP may "
        "differ by that alone; predict both with the same threshold"
    )
    return (Note("scores-cut-differently", message),)
