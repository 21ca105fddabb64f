"""Box IoU, or intersection over the detection's area for crowds."""

import numpy as np
from numpy.typing import NDArray

from detap.core import _overlap

Floats = NDArray[np.float64]


def pixel_areas(corners: Floats) -> Floats:
    """Return the areas (N,) of boxes with inclusive pixel coordinates.

    Parameters
    ----------
    corners : (N, 4) float64
        x1, y1, x2, y2; the width is x2 - x1 + 1, in that order of operations.
    """
    return (corners[:, 2] - corners[:, 0] + 1.0) * (corners[:, 3] - corners[:, 1] + 1.0)


def overlaps(
    detections: Floats,
    ground_truths: Floats,
    *,
    detection_areas: Floats,
    truth_areas: Floats,
    crowd: NDArray[np.bool_] | None = None,
    inclusive_pixels: bool = False,
) -> Floats:
    """Return the IoU of each detection and ground truth.

    Parameters
    ----------
    detections : (N, 4) float64
        x1, y1, x2, y2.
    ground_truths : (G, 4) float64
        x1, y1, x2, y2.
    detection_areas, truth_areas : (N,) and (G,) float64
        Areas in the file's own box format: areas computed from corners differ in the last bits.
    crowd : (G,) bool, optional
        Divide by the detection's area for these, as for COCO's crowds.
    inclusive_pixels : bool
        Add 1 to widths and heights: corners are the first and last pixel.

    Returns
    -------
    (N, G) float64
        In [0, 1] if the areas are those of the boxes.

    References
    ----------
    ``bbIou`` of COCO's maskApi.c, for the order of operations.
    """
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
    """Return the IoU of P pairs, (P,) float64.

    Parameters
    ----------
    detections, ground_truths : (P, 4) float64
        x1, y1, x2, y2 of each pair.
    detection_areas, truth_areas, crowd, inclusive_pixels
        As for :func:`overlaps`, with the same bits; each (P,).
    """
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
