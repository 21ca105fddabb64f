"""Which categories of a results file lie on which objects, in some images."""

from typing import NamedTuple

import numpy as np

from detap.checks._box_stats import found_classes
from detap.checks.boxes import image_keys
from detap.formats.coco.columns import DetectionColumns
from detap.tables.detection import SAMPLED_IMAGES, GroundTruth

_TRUTHS = 32
"""Objects of an image that are looked at."""
_OVERLAP = 0.5


class Sampled(NamedTuple):
    """What lies on the objects of some images.

    Attributes
    ----------
    images : tuple of (int, list of (int, int))
        The key of each image, ascending; and the class of each object with a detection in its
        place, and that of the detection.
    pairs : list of (int, int)
        Those classes, of all images together.
    objects : int
        How many objects were looked at.
    """

    images: tuple[tuple[int, list[tuple[int, int]]], ...]
    pairs: list[tuple[int, int]]
    objects: int


def sampled_classes(columns: DetectionColumns, truth: GroundTruth) -> Sampled:
    """Return the classes of some ground truths and of the detections in their place.

    Images are sampled by name among those that have both, so that the samples of parts add up.
    """
    filled = truth.filled & (np.bincount(columns.image, minlength=len(truth.images)) > 0)
    images = np.flatnonzero(filled)
    keys = image_keys([truth.images[image] for image in images.tolist()])
    first = np.argsort(keys, kind="stable")[:SAMPLED_IMAGES]
    found, objects = [], 0
    wanted = np.zeros(len(truth.images), np.bool_)
    wanted[images[first]] = True
    truths = np.flatnonzero(wanted[truth.image] & ~truth.crowd)
    rows = np.flatnonzero(wanted[columns.image])
    here = np.ones(len(truth.images), np.uint8)
    for key, image in zip(keys[first].tolist(), images[first].tolist(), strict=True):
        own = truths[truth.image[truths] == image]
        own = own[:: -(-len(own) // _TRUTHS) or 1]
        theirs = rows[columns.image[rows] == image]
        objects += len(own)
        pairs = found_classes(
            truth.corners[own],
            truth.image[own],
            truth.label[own],
            columns.corners[theirs],
            columns.image[theirs],
            columns.label[theirs],
            here,
            _OVERLAP,
        )
        found.append((key, pairs))
    return Sampled(tuple(found), [pair for _, pairs in found for pair in pairs], objects)
