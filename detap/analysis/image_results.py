"""The result of every detection and ground truth of one image."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.analysis.errors import Errors, errors
from detap.analysis.match_results import MatchResults
from detap.analysis.row_results import (
    DETECTION_STATUSES,
    GROUND_TRUTH_STATUSES,
    DetectionStatus,
    GroundTruthStatus,
    row_results,
)
from detap.display import Brief
from detap.errors import UsageError
from detap.evaluation.results import Result
from detap.tables.detection import Name
from detap.text_input import suggest


@dataclass(frozen=True, slots=True)
class DetectionResult:
    """A detection and its result."""

    row: int
    label: int
    score: float
    result: DetectionStatus  # ``true-positive``
    ground_truth: int  # the row of the matched, attributed or nearest ground truth, or -1
    similarity: float  # with it
    matched_by: int  # the row of the other detection that matches this ground truth, or -1


@dataclass(frozen=True, slots=True)
class GroundTruthResult:
    """A ground truth and its result."""

    row: int
    label: int
    result: GroundTruthStatus  # ``matched``
    detection: int  # the row of the matching detection, or of its best-scored error; else -1


@dataclass(frozen=True, repr=False, slots=True)
class ImageResults(Brief):
    """All of one image, detections by falling score, ground truths in file order."""

    image: Name  # name of the image
    iou: float
    detections: tuple[DetectionResult, ...]
    ground_truths: tuple[GroundTruthResult, ...]


def image_results(
    result: Result | MatchResults,
    image: Name,
    *,
    iou: float | None = None,
    types: Errors | None = None,
) -> ImageResults:
    """Return the result of every detection and ground truth of one image."""
    results = MatchResults.of(result, iou)
    images = results.run.ground_truth.images
    names = [str(name) for name in images]
    if image not in images and str(image) not in names:
        message = f"image {str(image)!r} is not in the ground truth"
        raise UsageError("; ".join(filter(None, (message, suggest(str(image), names)))))
    index = images.index(image) if image in images else names.index(str(image))
    columns = row_results(results, types or errors(results))
    detections, ground_truths = results.boxes
    rows = np.flatnonzero(detections.image == index)
    rows = rows[np.argsort(-detections.score[rows], kind="stable")]
    truth_rows = np.flatnonzero(ground_truths.image == index)
    matched = columns.truth_status == GROUND_TRUTH_STATUSES.index("matched")
    matched_by = np.append(np.where(matched, columns.detection, -1), -1)  # index -1 gives -1
    by_another = matched_by[columns.ground_truth[rows]]
    return ImageResults(
        image=images[index],
        iou=results.iou,
        detections=tuple(
            DetectionResult(row, label, score, DETECTION_STATUSES[status], *other)
            for row, label, score, status, *other in _lists(
                rows,
                detections.label[rows],
                detections.score[rows],
                columns.status[rows],
                columns.ground_truth[rows],
                columns.similarity[rows],
                np.where(by_another == rows, -1, by_another),
            )
        ),
        ground_truths=tuple(
            GroundTruthResult(row, label, GROUND_TRUTH_STATUSES[status], detection)
            for row, label, status, detection in _lists(
                truth_rows,
                ground_truths.label[truth_rows],
                columns.truth_status[truth_rows],
                columns.detection[truth_rows],
            )
        ),
    )


def _lists(*columns: NDArray[Any]) -> "zip[Any]":
    """Return the rows of columns."""
    return zip(*(column.tolist() for column in columns), strict=True)
