"""Inputs evaluated one after the other, each of which becomes a partial and is let go."""

from collections.abc import Iterable

import numpy as np

from detap.evaluation.detection import score_tables, shrink
from detap.evaluation.partial import Partial
from detap.protocols import Protocol
from detap.tables.detection import Detections, Flags, GroundTruth, Name


def partial_of_images(
    truth: GroundTruth,
    detections: Detections,
    rules: Protocol,
    images: Flags | None = None,
    *,
    whole: bool = True,
    input: str = "",
    threads: int | None = None,
) -> Partial:
    """Evaluate detections on some images, and return what remains.

    Parameters
    ----------
    truth : GroundTruth
        Of I images.
    detections : Detections
        Numbered as `truth`.
    rules : Protocol
    images : (I,) bool, optional
        Which images these are; all by default.
    whole : bool
        Whether `truth` is all that partials will be added up of, or brings its own images alone.
    input : str
        What the detections' input is called.
    threads : int, optional
    """
    table = truth
    if images is not None and not images.all():
        table, detections = shrink(truth, images), shrink(detections, images)
    result = score_tables(table, detections, rules, threads=threads, evidence=True, curves=False)
    return Partial.of(result, truth=truth if whole else None, input=input)


def seen(detections: Detections) -> Flags:
    """Return which images have detections, (I,) bool."""
    return np.bincount(detections.image, minlength=len(detections.images)) > 0


def partial_of_rest(
    truth: GroundTruth,
    rules: Protocol,
    elsewhere: Iterable[Name],
    images: Flags | None = None,
    *,
    threads: int | None = None,
) -> Partial:
    """Return what remains of the images that no input names: they have no detections.

    Parameters
    ----------
    truth : GroundTruth
        Of I images.
    rules : Protocol
    elsewhere : iterable of int or str
        The images that some input names.
    images : (I,) bool, optional
        Which images are due; all by default.
    threads : int, optional
    """
    named = set(elsewhere)
    rest = np.array([name not in named for name in truth.images], np.bool_)
    if images is not None:
        rest &= images
    return partial_of_images(truth, no_detections(truth), rules, rest, threads=threads)


def no_detections(truth: GroundTruth) -> Detections:
    """Return detections of which there are none, numbered as `truth`."""
    return Detections(
        image=np.zeros(0, np.int32),
        label=np.zeros(0, np.int32),
        corners=np.zeros((0, 4)),
        box_area=np.zeros(0),
        images=truth.images,
        classes=truth.classes,
        class_ids=truth.class_ids,
    )
