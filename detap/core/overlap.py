"""Box IoU, or intersection over the detection's area for crowds.

Source: ``bbIou`` of COCO's maskApi.c, for the order of operations.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core import _overlap
from detap.core.arrays import Boxes

Floats = NDArray[np.float64]
Rows = NDArray[np.integer[Any]]


def pixel_areas(corners: Floats) -> Floats:
    """Return the areas (N,) of boxes with inclusive pixel coordinates."""
    return (corners[:, 2] - corners[:, 0] + 1.0) * (corners[:, 3] - corners[:, 1] + 1.0)


def overlaps(
    detections: Floats,  # (N, 4) x1, y1, x2, y2
    ground_truths: Floats,  # (G, 4)
    *,
    detection_areas: Floats,  # (N,) of the file's own box format: corners give other last bits
    truth_areas: Floats,  # (G,)
    crowd: NDArray[np.bool_] | None = None,  # (G,) divide by the detection's area for these
    inclusive_pixels: bool = False,  # add 1 to widths and heights
) -> Floats:
    """Return the IoU of each detection and ground truth, (N, G) float64."""
    if crowd is None:
        crowd = np.zeros(len(ground_truths), np.bool_)
    out = np.empty((len(detections), len(ground_truths)))
    _overlap.fill_overlaps(
        np.ascontiguousarray(detections, np.float64),
        np.ascontiguousarray(detection_areas, np.float64),
        np.ascontiguousarray(ground_truths, np.float64),
        np.ascontiguousarray(truth_areas, np.float64),
        np.ascontiguousarray(crowd, np.bool_).view(np.uint8),
        1.0 if inclusive_pixels else 0.0,
        out,
    )
    return out


def paired_overlaps(
    detections: Floats,
    ground_truths: Floats,
    *,
    detection_areas: Floats,
    truth_areas: Floats,
    crowd: NDArray[np.bool_] | None = None,
    inclusive_pixels: bool = False,
) -> Floats:
    """Return the IoU of P pairs, (P,) float64; arguments as for :func:`overlaps`, one per pair."""
    pixel_offset = 1.0 if inclusive_pixels else 0.0
    low = np.maximum(detections[:, :2], ground_truths[:, :2])
    width_height = np.minimum(detections[:, 2:], ground_truths[:, 2:]) - low + pixel_offset
    intersection = np.where(
        (width_height > 0).all(axis=1), width_height[:, 0] * width_height[:, 1], 0.0
    )
    denominator = detection_areas + truth_areas - intersection
    if crowd is not None:
        denominator = np.where(crowd, detection_areas, denominator)
    out = np.zeros(len(intersection))
    return np.divide(
        intersection, denominator, out=out, where=(intersection > 0) & (denominator > 0)
    )


def overlaps_of(
    boxes: tuple[Boxes, Boxes],
    rows: Rows,
    truths: Rows,
    inclusive_pixels: bool,
    *,
    crowd: NDArray[np.bool_] | bool = False,
    paired: bool = False,
) -> Floats:
    """Return the IoU of some detections and ground truths, (N, G); of those `paired`, (P,)."""
    detections, ground_truths = boxes
    of_truths = None if crowd is False else np.broadcast_to(crowd, len(ground_truths.corners))
    return (paired_overlaps if paired else overlaps)(
        detections.corners[rows],
        ground_truths.corners[truths],
        detection_areas=detections.overlap_area[rows],
        truth_areas=ground_truths.overlap_area[truths],
        crowd=None if of_truths is None else of_truths[truths],
        inclusive_pixels=inclusive_pixels,
    )
