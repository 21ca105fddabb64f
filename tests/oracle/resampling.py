"""The bootstrap over images: draws one by one, and data sets with repeated images.

Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 6.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from detap.protocols import Protocol
from detap.tables.detection import Detections, GroundTruth
from tests.oracle.score import Scores, score


def draw_weights(images: int, resamples: int, words: Iterable[int]) -> list[list[int]]:
    """Return the count of each image in each resample, drawn from random 64-bit integers.

    The upper half of an integer, as a fraction of 2**32, times the number of images is the image
    drawn.
    """
    stream = iter(words)
    weights = []
    for _ in range(resamples):
        counts = [0] * images
        for _ in range(images):
            counts[(next(stream) >> 32) * images // 2**32] += 1
        weights.append(counts)
    return weights


def resampled_scores(
    truth: GroundTruth, detections: Detections, protocol: Protocol, weights: Sequence[int]
) -> Scores:
    """Return the scores of a data set that contains image i `weights[i]` times."""
    return score(*repeated(truth, detections, weights), protocol)


def repeated(
    truth: GroundTruth, detections: Detections, weights: Sequence[int]
) -> tuple[GroundTruth, Detections]:
    """Return tables with image i `weights[i]` times, each copy as a separate image."""
    copies = [image for image, weight in enumerate(weights) for _ in range(weight)]
    names = tuple(f"{image}-{number}" for number, image in enumerate(copies))

    def rows(table: GroundTruth | Detections) -> tuple[np.ndarray, np.ndarray]:
        pairs = [
            (row, number)
            for number, image in enumerate(copies)
            for row, its in enumerate(table.image.tolist())
            if its == image
        ]
        chosen = np.array([row for row, _ in pairs], np.int64)
        return chosen, np.array([number for _, number in pairs], np.int32)

    truth_rows, truth_image = rows(truth)
    found_rows, found_image = rows(detections)
    return (
        replace(truth.select(truth_rows), image=truth_image, images=names),
        replace(detections.select(found_rows), image=found_image, images=names),
    )
