"""Regions in which nothing is scored: ground truths and detections there are dropped.

Reference: dropObjectsInIgr.m of the VisDrone2018-DET toolkit, in whole pixels counted from 1.
"""

import numpy as np

from detap.evaluation.overlaps.boxes import sizes_of
from detap.protocols import Protocol
from detap.tables.detection import Detections, Flags, Floats, GroundTruth

_DECIMALS = 6
"""Decimals of widths and heights, which corners give with rounding errors."""


def in_regions(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol
) -> tuple[Flags, Flags]:
    """Return masks of the ground truths and detections that lie in regions, and of the regions."""
    drops = np.zeros(len(ground_truth), np.bool_), np.zeros(len(detections), np.bool_)
    shares = dict(protocol.drop_in_regions)
    for label, name in enumerate(ground_truth.classes):
        if name not in shares:
            continue
        is_region = ground_truth.label == label
        images = np.unique(ground_truth.image[is_region])
        hint = "use --image-sizes, or --drop-in-regions none"
        sizes = sizes_of(ground_truth, images, name, hint)
        for image, size in zip(images.tolist(), sizes, strict=True):
            of_image = is_region & (ground_truth.image == image)
            regions = _whole_boxes(ground_truth.corners[of_image])
            for table, drop in zip((ground_truth, detections), drops, strict=True):
                rows = np.flatnonzero(table.image == image)
                share = share_inside(_whole_boxes(table.corners[rows]), regions, size)
                drop[rows] |= share >= shares[name]
        drops[0][is_region] = True
    return drops


def share_inside(boxes: Floats, regions: Floats, size: Floats) -> Floats:
    """Return the share of each box (n, 4) inside regions (r, 4) of an image of a width, height.

    Boxes and regions are x, y, width, height in whole pixels, at least 1.
    """
    start = np.minimum(regions[:, :2] - 1, size)
    end = np.minimum(regions[:, :2] + regions[:, 2:], size)
    # Between neighboring edges of regions, all pixels are inside or none is.
    x, y = (np.unique(np.concatenate([start[:, axis], end[:, axis]])) for axis in (0, 1))
    filled = np.zeros((len(y) - 1, len(x) - 1))
    for (left, top), (right, bottom) in zip(start, end, strict=True):
        rows, columns = np.searchsorted(y, (top, bottom)), np.searchsorted(x, (left, right))
        filled[slice(*rows), slice(*columns)] = 1

    def pixels_up_to(right: Floats, bottom: Floats) -> Floats:
        """Return the pixels inside regions of the columns and rows up to these."""
        columns = np.clip(right[:, None] - x[:-1], 0, np.diff(x))
        rows = np.clip(bottom[:, None] - y[:-1], 0, np.diff(y))
        count: Floats = ((rows @ filled) * columns).sum(axis=1)
        return count

    near = np.minimum(boxes[:, :2], size)
    (left, top), (right, bottom) = near.T, np.minimum(near + boxes[:, 2:], size).T
    inside = pixels_up_to(right, bottom) + pixels_up_to(left, top)
    inside -= pixels_up_to(left, bottom) + pixels_up_to(right, top)
    share: Floats = inside / (boxes[:, 2] * boxes[:, 3])
    return share


def _whole_boxes(corners: Floats) -> Floats:
    """Return x, y, width, height rounded half away from zero, at least 1."""
    sides = np.round(corners[:, 2:] - corners[:, :2], _DECIMALS)
    # Negative halves may round upwards: the result is below 1 in both cases.
    whole: Floats = np.maximum(np.floor(np.hstack([corners[:, :2], sides]) + 0.5), 1)
    return whole
