"""How much boxes overlap: intersection over union, or over the detection's own area."""

import numpy as np
from numpy.typing import NDArray

from detap.core import _overlap

Floats = NDArray[np.float64]


def pixel_areas(corners: Floats) -> Floats:
    """Return the areas (N,) of boxes whose corners are their first and last pixel.

    Parameters
    ----------
    corners : (N, 4) float64
        x1, y1, x2, y2; the width is x2 - x1 + 1, in that order of operations.
    """
    return (corners[:, 2] - corners[:, 0] + 1.0) * (corners[:, 3] - corners[:, 1] + 1.0)


def overlaps(
    detections: Floats,
    truths: Floats,
    *,
    detection_areas: Floats,
    truth_areas: Floats,
    crowd: NDArray[np.bool_] | None = None,
    inclusive_pixels: bool = False,
) -> Floats:
    """Return the overlap of each detection with each ground truth.

    Parameters
    ----------
    detections : (N, 4) float64
        Corners x1, y1, x2, y2.
    truths : (G, 4) float64
        Likewise.
    detection_areas, truth_areas : (N,) and (G,) float64
        Areas in the boxes' own encoding: recomputed from corners they differ in the last bits.
    crowd : (G,) bool, optional
        For these, intersection over the detection's own area, as for COCO's crowds.
    inclusive_pixels : bool
        Whether corners are first and last pixels, so that 1 is added to each side.

    Returns
    -------
    (N, G) float64
        In [0, 1] for areas that are the boxes' own.

    References
    ----------
    ``bbIou`` of COCO's maskApi.c, whose order of operations this is.
    """
    if crowd is None:
        crowd = np.zeros(len(truths), np.bool_)
    out = np.empty((len(detections), len(truths)))
    _overlap.fill_overlaps(
        np.ascontiguousarray(detections, np.float64),
        np.ascontiguousarray(detection_areas, np.float64),
        np.ascontiguousarray(truths, np.float64),
        np.ascontiguousarray(truth_areas, np.float64),
        np.ascontiguousarray(crowd, np.bool_).view(np.uint8),
        1.0 if inclusive_pixels else 0.0,
        out,
    )
    return out


def paired_overlaps(
    detections: Floats,
    truths: Floats,
    *,
    detection_areas: Floats,
    truth_areas: Floats,
    crowd: NDArray[np.bool_] | None = None,
    inclusive_pixels: bool = False,
) -> Floats:
    """Return the overlap of each detection with the one ground truth beside it, (P,) float64.

    Parameters
    ----------
    detections, truths : (P, 4) float64
        Corners, pair by pair.
    detection_areas, truth_areas, absorbing, inclusive_pixels
        As for :func:`overlaps`, whose bits these are; each (P,).
    """
    edge = 1.0 if inclusive_pixels else 0.0
    low = np.maximum(detections[:, :2], truths[:, :2])
    sides = np.minimum(detections[:, 2:], truths[:, 2:]) - low + edge
    common = np.where((sides > 0).all(axis=1), sides[:, 0] * sides[:, 1], 0.0)
    total = detection_areas + truth_areas - common
    if crowd is not None:
        total = np.where(crowd, detection_areas, total)
    out = np.zeros(len(common))
    return np.divide(common, total, out=out, where=(common > 0) & (total > 0))
