"""Categories of overlapping results and ground truths in a sample of images."""

from typing import NamedTuple

import numpy as np

from detap.checks._box_stats import found_classes
from detap.checks.boxes import image_keys
from detap.formats.coco.columns import DetectionColumns
from detap.tables.detection import SAMPLED_IMAGES, GroundTruth

_MAX_TRUTHS = 32
"""Ground truths sampled per image."""
_MIN_IOU = 0.5


class CategoryPairs(NamedTuple):
    """Classes of overlapping ground truths and detections in a sample of images.

    Attributes
    ----------
    images : tuple of (int, list of (int, int))
        Key of each image, ascending, with the pairs of ground-truth and detection class.
    pairs : list of (int, int)
        The pairs of all images.
    ground_truths : int
        Number of sampled ground truths.
    """

    images: tuple[tuple[int, list[tuple[int, int]]], ...]
    pairs: list[tuple[int, int]]
    ground_truths: int


def sample_categories(columns: DetectionColumns, truth: GroundTruth) -> CategoryPairs:
    """Sample the classes of overlapping ground truths and detections.

    Images with both are sampled by name, so that the samples of several inputs can be added.
    """
    filled = truth.images_with_rows & (np.bincount(columns.image, minlength=len(truth.images)) > 0)
    images = np.flatnonzero(filled)
    keys = image_keys([truth.images[image] for image in images.tolist()])
    first = np.lexsort((keys,))[:SAMPLED_IMAGES]
    by_image, count = [], 0
    sampled = np.zeros(len(truth.images), np.bool_)
    sampled[images[first]] = True
    truth_rows = np.flatnonzero(sampled[truth.image] & ~truth.crowd)
    detection_rows = np.flatnonzero(sampled[columns.image])
    all_images = np.ones(len(truth.images), np.uint8)
    for key, image in zip(keys[first].tolist(), images[first].tolist(), strict=True):
        gt = truth_rows[truth.image[truth_rows] == image]
        gt = gt[:: -(-len(gt) // _MAX_TRUTHS) or 1]
        dt = detection_rows[columns.image[detection_rows] == image]
        count += len(gt)
        pairs = found_classes(
            truth.corners[gt],
            truth.image[gt],
            truth.label[gt],
            columns.corners[dt],
            columns.image[dt],
            columns.label[dt],
            all_images,
            _MIN_IOU,
        )
        by_image.append((key, pairs))
    return CategoryPairs(tuple(by_image), [p for _, pairs in by_image for p in pairs], count)
