"""Scoring detections against ground truths: the door to the house.

No formula is here: :func:`evaluate` brings tables and protocol together (scene.py), has core score
them, and puts names on what comes back (results.py).
"""

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from detap.core.finishing import Scores, finish
from detap.errors import DetapWarning, InputError, UsageError
from detap.evaluation.advice import with_advice
from detap.evaluation.results import Curve, Matches, Result, every_cell, result_of
from detap.evaluation.scene import Scene, notes_of_truth, rules_of
from detap.protocols import Protocol
from detap.spelling import near
from detap.tables.detection import Detections, Flags, GroundTruth, Integers, Name
from detap.tables.doubts import AS_IS, check_fractions, of_unknown_size, unsized_problem

__all__ = ["Curve", "Matches", "Result", "evaluate", "on_images", "select", "with_advice"]

Table = TypeVar("Table", GroundTruth, Detections)


def evaluate(
    ground_truth: GroundTruth,
    detections: Detections,
    protocol: Protocol | str = "coco",
    *,
    threads: int | None = None,
    matches: bool = False,
    evidence: bool = False,
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
    threads : int, optional
        As many as the machine has, by default. The result does not depend on it.
    matches : bool
        Whether to keep what became of each detection as arrays, ``Result.matches``.
    evidence : bool
        Whether to keep it as bits from the start, because ``Result.evidence`` will be asked for;
        otherwise asking matches once more.
    as_is : bool
        Whether boxes that look like fractions of the image's size are scored for all that, with a
        warning.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        Where a detection lies on an image that the ground truth does not have, or boxes look like
        fractions of the image's size, where pixels are due.
    UsageError
        Where the protocol is unknown or contradicts itself.

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
            threads=threads,
            matches=matches,
            evidence=evidence,
        )
    )
    for note in result.notes:
        if note.warning:
            warnings.warn(DetapWarning(note), stacklevel=2)
    return result


def score_tables(
    ground_truth: GroundTruth,
    detections: Detections,
    protocol: Protocol | str = "coco",
    *,
    threads: int | None = None,
    matches: bool = False,
    evidence: bool = False,
    curves: bool = True,
) -> Result:
    """Score as :func:`evaluate` does, but warn of nothing and look for nothing suspicious.

    For what scores the same tables again: their parts, or another order of them. Without `curves`,
    only evidence and counts are there to be asked, and the rest is not worked out.
    """
    for table, kind in ((ground_truth, GroundTruth), (detections, Detections)):
        if not isinstance(table, kind):
            raise UsageError(
                f"a {type(table).__name__} stands where {kind.__name__} are due; "
                f"{kind.__name__}.from_arrays makes them, and evaluate takes the ground truth first"
            )
    rules = Protocol.of(protocol)
    doubts = set(check_fractions(ground_truth, detections)).difference(detections.notes)
    _check_units(ground_truth, rules)
    if doubts:
        detections = replace(detections, notes=(*detections.notes, *sorted(doubts, key=str)))
    scene = Scene(ground_truth, detections.numbered_as(ground_truth), rules, threads)
    cells = every_cell(rules) if matches else [(0, 0)] if evidence else None
    return _result(scene, scene.paired(evidence=cells, curves=curves))


def _check_units(ground_truth: GroundTruth, rules: Protocol) -> None:
    """Refuse to count pixels where boxes are in fractions of images of unknown size."""
    if not of_unknown_size(ground_truth):
        return
    for asked, what, otherwise in (
        (rules.pixel_edge, "counts whole pixels", "--no-pixel-edge"),
        (len(rules.area_ranges) > 1, "tells areas apart, in pixels", "--area-ranges none"),
        (rules.height_min, "asks for heights in pixels", ""),
    ):
        if asked:
            why = f"the protocol {rules.name} {what}"
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
    source = result._source
    numbers = np.flatnonzero(wanted("image", source.images, kept)).tolist()
    if not isinstance(source, Scene):
        return source.on_images(numbers, threads=threads)
    truth, detections = select(source.ground_truth, source.detections, images=kept)
    scene = Scene(truth, detections, result.protocol, threads, as_seen=True)
    if result.protocol.pairing != "ranked":
        return _result(scene, scene.paired())
    return _result(scene, finish(result.evidence.of_images(numbers), threads=threads))


def finished_by(result: Result, protocol: Protocol) -> Result:
    """Return the result by another protocol that matches alike; no box is matched again.

    Parameters
    ----------
    result : Result
        With boxes.
    protocol : Protocol
        Other than the result's only in axes of :attr:`Protocol.after_matching`.
    """
    scene = result._source
    scores = finish(result.evidence, rules=rules_of(protocol), threads=scene.threads)
    return result_of(scene, protocol, result.classes, scores, result.notes)


def _result(scene: Scene, scores: Scores) -> Result:
    truth, detections = scene.ground_truth, scene.detections
    notes = (*notes_of_truth(truth, scene.protocol), *detections.notes, *scene.notes(scores))
    return result_of(scene, scene.protocol, scene.classes, scores, notes)


def select(
    ground_truth: GroundTruth,
    detections: Detections,
    *,
    classes: Iterable[str] | None = None,
    images: Iterable[Name] | None = None,
) -> tuple[GroundTruth, Detections]:
    """Return both tables with only some classes and images, numbered anew.

    Parameters
    ----------
    ground_truth, detections : GroundTruth, Detections
        `detections` is renumbered as `ground_truth` first.
    classes : iterable of str, optional
        Names; the order is that of the tables.
    images : iterable of int or str, optional
        What the images are called.

    Raises
    ------
    UsageError
        Where a name is unknown, with near ones, or none is given.
    """
    detections = detections.numbered_as(ground_truth)
    keep_class = wanted("class", detections.classes, classes)
    keep_image = wanted("image", ground_truth.images, images)
    return shrink(ground_truth, keep_image, keep_class), shrink(detections, keep_image, keep_class)


def shrink(table: Table, keep_image: Flags, keep_class: Flags | None = None) -> Table:
    """Return a table with only some of its images and classes, numbered anew.

    Parameters
    ----------
    table : GroundTruth or Detections
    keep_image : (I,) bool
    keep_class : (K,) bool, optional
        Of so many classes as the table has, or more; all by default.
    """
    rows: Flags = keep_image[table.image]
    new_image = np.cumsum(keep_image, dtype=np.int32) - np.int32(1)
    changes: dict[str, Any] = {"images": _names(table.images, keep_image)}
    if keep_class is not None:
        rows &= keep_class[table.label]
        new_class = np.cumsum(keep_class, dtype=np.int32) - np.int32(1)
        changes["classes"] = _names(table.classes, keep_class)
        changes["class_ids"] = _names(table.class_ids, keep_class)
    chosen = table if rows.all() else table.select(np.flatnonzero(rows))
    if keep_class is not None:
        changes["label"] = new_class[chosen.label]
    if isinstance(table, GroundTruth):
        new_numbers = new_image, new_class if keep_class is not None else None
        changes["listed"] = {
            name: _shrunk(pairs, (keep_image, keep_class), new_numbers)
            for name, pairs in table.listed.items()
        }
        if table.image_sizes is not None:
            changes["image_sizes"] = table.image_sizes[keep_image]
    return replace(chosen, image=new_image[chosen.image], **changes)


def _shrunk(
    pairs: Integers,
    keep: tuple[Flags, Flags | None],
    numbers: tuple[Integers, Integers | None],
) -> Integers:
    """Return the pairs of image and class that are kept, by their new numbers."""
    image, label = pairs.T
    kept = keep[0][image]
    if keep[1] is not None and numbers[1] is not None:
        kept = kept & keep[1][label]
        label = numbers[1][label]
    both = np.stack([numbers[0][image], label], axis=1).astype(np.int32)
    found: Integers = both[kept]
    return found


def _names(values: tuple[Any, ...], keep: Flags) -> tuple[Any, ...]:
    return tuple(values[number] for number in np.flatnonzero(keep[: len(values)]).tolist())


def wanted(
    what: str, names: tuple[Name, ...] | tuple[str, ...], chosen: Iterable[Name] | None
) -> Flags:
    """Return which names are chosen, (n,) bool; errors are those of :func:`select`."""
    if chosen is None:
        return np.ones(len(names), np.bool_)
    due = set(chosen)
    if not due:
        raise UsageError(f"no {what} is selected")
    unknown = sorted(map(str, due - set(names)))
    if unknown:
        hint = near(unknown[0], map(str, names))
        told = f"{what} {unknown[0]!r} is not in the ground truth"
        raise UsageError("; ".join(filter(None, (told, hint))))
    return np.array([name in due for name in names], np.bool_)
