"""The result of every detection and ground truth of one image."""

from collections.abc import Iterable, Iterator
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
from detap.tables.detection import Floats, Integers, Name
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
    detection: int


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
    number = _number_of(image, results.run.ground_truth.images)
    return next(results_of_images(results, [number], types or errors(results)))


def results_of_images(
    results: MatchResults, indices: Iterable[int], types: Errors
) -> Iterator[ImageResults]:
    """Yield the results of every detection and ground truth of some images."""
    columns = row_results(results, types)
    detections, ground_truths = results.boxes
    images = results.run.ground_truth.images
    requested = list(indices)
    rows, ends = _rows_of(detections.image, -detections.score, requested, results.images)
    of_truth, truth_ends = _rows_of(
        ground_truths.image, np.zeros(len(ground_truths.image)), requested, len(images)
    )
    matched = columns.truth_status == GROUND_TRUTH_STATUSES.index("matched")
    matched_by = np.append(np.where(matched, columns.detection, -1), -1)  # index -1 gives -1
    for index, image_index in enumerate(requested):
        own = rows[slice(*ends[index : index + 2])]
        truth_rows = of_truth[slice(*truth_ends[index : index + 2])]
        by_another = matched_by[columns.ground_truth[own]]
        entries = _lists(
            own,
            detections.label[own],
            detections.score[own],
            columns.status[own],
            columns.ground_truth[own],
            columns.similarity[own],
            np.where(by_another == own, -1, by_another),
        )
        truth_entries = _lists(
            truth_rows,
            ground_truths.label[truth_rows],
            columns.truth_status[truth_rows],
            columns.detection[truth_rows],
        )
        yield ImageResults(
            image=images[image_index],
            iou=results.iou,
            detections=tuple(
                DetectionResult(row, label, score, DETECTION_STATUSES[status], *other)
                for row, label, score, status, *other in entries
            ),
            ground_truths=tuple(
                GroundTruthResult(row, label, GROUND_TRUTH_STATUSES[status], detection)
                for row, label, status, detection in truth_entries
            ),
        )


def _lists(*columns: NDArray[Any]) -> "zip[Any]":
    """Return the rows of columns."""
    return zip(*(column.tolist() for column in columns), strict=True)


def _rows_of(
    image: Integers, key: Floats, requested: list[int], images: int
) -> tuple[Integers, NDArray[np.int64]]:
    """Return the rows of some images, sorted by image and key, and the start of each image."""
    index = np.full(images, -1)
    index[requested] = np.arange(len(requested))
    rows = np.flatnonzero(index[image] >= 0)
    ordered: Integers = rows[np.lexsort((key[rows], index[image[rows]]))].astype(np.int32)
    return ordered, _ends(image[ordered], requested, images)


def _ends(image: Integers, requested: list[int], images: int) -> NDArray[np.int64]:
    """Return the start of each image's rows, and the end of the last."""
    count = np.bincount(image, minlength=images)[requested]
    return np.concatenate([[0], np.cumsum(count)])


def _number_of(image: Name, images: tuple[Name, ...]) -> int:
    names = [str(name) for name in images]
    if image in images:
        return images.index(image)
    if str(image) in names:
        return names.index(str(image))
    message = f"image {str(image)!r} is not in the ground truth"
    raise UsageError("; ".join(filter(None, (message, suggest(str(image), names)))))
