"""Partials of inputs that are evaluated one after the other."""

import numpy as np

from detap.evaluation.detection import score_tables, shrink
from detap.evaluation.partial import Partial
from detap.protocols import Protocol
from detap.tables.detection import Detections, Flags, GroundTruth


def partial_of_images(
    ground_truth: GroundTruth,
    detections: Detections,
    protocol: Protocol,
    images: Flags | None = None,
    *,
    shared_ground_truth: bool = True,
    input: str = "",
    tie_range: bool = False,
    threads: int | None = None,
) -> Partial:
    """Evaluate detections on some images and return their partial.

    Parameters
    ----------
    ground_truth : GroundTruth
        The ground truth of I images.
    detections : Detections
        Indexed like `ground_truth`.
    protocol : Protocol
    images : (I,) bool, optional
        The images to evaluate; all by default.
    shared_ground_truth : bool
        If True, `ground_truth` is shared by all partials; otherwise it is the part's own.
    input : str
        The name of the detection input.
    tie_range : bool
        As for :meth:`Partial.of`.
    threads : int, optional
    """
    subset = ground_truth
    if images is not None and not images.all():
        subset, detections = shrink(ground_truth, images), shrink(detections, images)
    result = score_tables(
        subset,
        detections,
        protocol,
        threads=threads,
        match_table=True,
        curves=False,
        check_formats=False,
    )
    return Partial.of(
        result,
        ground_truth=ground_truth if shared_ground_truth else None,
        input=input,
        tie_range=tie_range,
    )


def no_detections(ground_truth: GroundTruth) -> Detections:
    """Return an empty detection table, indexed like `ground_truth`."""
    return Detections(
        image=np.zeros(0, np.int32),
        label=np.zeros(0, np.int32),
        corners=np.zeros((0, 4)),
        box_area=np.zeros(0),
        images=ground_truth.images,
        classes=ground_truth.classes,
        class_ids=ground_truth.class_ids,
    )
