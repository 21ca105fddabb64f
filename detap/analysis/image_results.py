"""The result of every detection and ground truth of one image."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from detap.analysis.errors import TYPES, Errors, errors
from detap.analysis.match_results import MatchResults
from detap.errors import UsageError
from detap.evaluation.results import Result
from detap.tables.detection import Floats, Integers, Name
from detap.text_input import suggest

DetectionStatus = Literal[
    "true-positive",
    "classification",
    "localization",
    "both",
    "duplicate",
    "background",
    "ignored",
    "not-exhaustive",
    "outside-area-range",
    "unverified",
    "zero-area",
    "beyond-max-dets",
]
GroundTruthStatus = Literal["matched", "near-miss", "missed", "ignored", "outside-area-range"]


@dataclass(frozen=True, slots=True)
class DetectionResult:
    """A detection and its result.

    Attributes
    ----------
    row, label : int
        In the table of detections; of its class.
    score : float
    result : str
        ``true-positive``; the error type of a false positive; ``ignored`` if matched to an ignored
        ground truth; without a match, ``not-exhaustive`` if the class is not exhaustively annotated
        in the image, ``outside-area-range`` if its area is outside the area range; ``unverified``
        if the class is not verified in the image; ``zero-area`` if the protocol drops it because
        its area is 0; ``beyond-max-dets`` if better-scored detections reach the maximum.
    ground_truth : int
        The row of the matched, attributed or nearest ground truth, or -1.
    similarity : float
        With it.
    matched_by : int
        The row of the other detection that matches this ground truth, or -1.
    """

    row: int
    label: int
    score: float
    result: DetectionStatus
    ground_truth: int
    similarity: float
    matched_by: int


@dataclass(frozen=True, slots=True)
class GroundTruthResult:
    """A ground truth and its result.

    Attributes
    ----------
    row, label : int
        In the table of ground truths; of its class.
    result : str
        ``matched``; ``near-miss`` if unmatched, but a localization or classification error is
        attributed to it; ``missed``; ``ignored``; ``outside-area-range``.
    detection : int
        The row of the matching detection, or of the best-scored error attributed to it; else -1.
    """

    row: int
    label: int
    result: GroundTruthStatus
    detection: int


@dataclass(frozen=True, slots=True)
class ImageResults:
    """All of one image, detections by falling score, ground truths in file order.

    Attributes
    ----------
    image : int or str
        Name of the image.
    iou : float
    detections : tuple of DetectionResult
    ground_truths : tuple of GroundTruthResult
    """

    image: Name
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
    """Return the result of every detection and ground truth of one image.

    Parameters
    ----------
    result : Result or MatchResults
    image : int or str
        Id or name of the image; an integer id may be given as text.
    iou : float, optional
        One of the protocol's thresholds; by default 0.5.
    types : Errors, optional
        Errors of these results, with the convention of the protocol, to reuse for many images.

    Raises
    ------
    UsageError
        If the image is unknown, the protocol does not match by score, or does not have the
        threshold.
    """
    results = MatchResults.of(result, iou)
    number = _number_of(image, results.run.ground_truth.images)
    return next(results_of_images(results, [number], types or errors(results)))


def results_of_images(
    results: MatchResults,
    indices: Iterable[int],
    types: Errors,
    *,
    max_detections: int | None = None,
    include: Iterable[int] = (),
) -> Iterator[ImageResults]:
    """Yield the results of every detection and ground truth of some images.

    Parameters
    ----------
    results : MatchResults
    indices : iterable of int
        Indices of images in the ground truth.
    types : Errors
        Errors of these results, with the convention of the protocol.
    max_detections : int, optional
        Maximal number of detections per image, the highest scores first.
    include : iterable of int
        Rows of detections to include whatever their scores.
    """
    row_results = _RowResults(results, types)
    detections, ground_truths = results.boxes
    images = results.run.ground_truth.images
    requested = list(indices)
    rows, ends = _rows_of(detections.image, -detections.score, requested, results.images)
    if max_detections is not None:
        rank = np.arange(len(rows)) - np.repeat(ends[:-1], np.diff(ends))
        kept = np.zeros(len(detections.image), np.bool_)
        # numpy.isin would import numpy.ma; -1 is not a row.
        kept[np.fromiter((row for row in include if row >= 0), np.intp)] = True
        rows = rows[(rank < max_detections) | kept[rows]]
        ends = _ends(detections.image[rows], requested, results.images)
    detection_results = row_results.detections(rows)
    of_truth, truth_ends = _rows_of(
        ground_truths.image, np.zeros(len(ground_truths.image)), requested, len(images)
    )
    for index, image_index in enumerate(requested):
        truth_rows = of_truth[slice(*truth_ends[index : index + 2])]
        yield ImageResults(
            image=images[image_index],
            iou=results.iou,
            detections=detection_results[slice(*ends[index : index + 2])],
            ground_truths=tuple(row_results.truth(row) for row in truth_rows.tolist()),
        )


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


class _RowResults:
    """Results of single rows."""

    def __init__(self, results: MatchResults, types: Errors) -> None:
        self.results, self.types = results, types
        self.matched_by = np.full(len(results.positive), -1, np.int32)
        right = np.flatnonzero(results.true_positive)
        self.matched_by[results.matched_gt[right]] = right
        self.attributed = np.full(len(results.positive), -1, np.int32)
        attributed = np.flatnonzero(types.fixes_target)
        self.attributed[types.target[attributed]] = attributed

    def detections(self, rows: Integers) -> tuple[DetectionResult, ...]:
        results, types = self.results, self.types
        nearest = results.ground_truth_index.nearest(results.boxes[0], rows)
        same_class = nearest.same_class_similarity >= nearest.other_class_similarity
        truth = np.where(same_class, nearest.same_class, nearest.other_class)
        similarity = np.where(
            same_class, nearest.same_class_similarity, nearest.other_class_similarity
        )
        has_target, matched = types.target[rows] >= 0, results.matched_gt[rows] >= 0
        truth[has_target], similarity[has_target] = (
            types.target[rows[has_target]],
            types.similarity[rows[has_target]],
        )
        truth[matched] = results.matched_gt[rows[matched]]
        similarity[matched] = results.matched_similarity(rows[matched])
        return tuple(
            self._detection(*entry)
            for entry in zip(rows.tolist(), truth.tolist(), similarity.tolist(), strict=True)
        )

    def _detection(self, row: int, truth: int, similarity: float) -> DetectionResult:
        detections = self.results.boxes[0]
        matched_by = int(self.matched_by[truth]) if truth >= 0 else -1
        return DetectionResult(
            row=row,
            label=int(detections.label[row]),
            score=float(detections.score[row]),
            result=self._result(row),
            ground_truth=truth,
            similarity=similarity,
            matched_by=-1 if matched_by == row else matched_by,
        )

    def _result(self, row: int) -> DetectionStatus:
        results = self.results
        if not results.within_max_dets[row]:
            if results.run.without_area[row]:
                return "zero-area"
            return "unverified" if results.run.unverified[row] else "beyond-max-dets"
        if results.ignored[row] and results.matched_gt[row] < 0:
            return "not-exhaustive" if results.run.not_exhaustive[row] else "outside-area-range"
        if results.ignored[row]:
            return "ignored"
        if results.matched_gt[row] >= 0:
            return "true-positive"
        return cast("DetectionStatus", TYPES[self.types.kind[row]])

    def truth(self, row: int) -> GroundTruthResult:
        """Return the result of a ground truth."""
        results = self.results
        detection = int(self.matched_by[row])
        status: GroundTruthStatus = "matched"
        if not results.positive[row]:
            status = "ignored" if results.run.ignored[row] else "outside-area-range"
        elif detection < 0:
            status = "missed" if self.types.missed[row] else "near-miss"
            detection = int(self.attributed[row])
        return GroundTruthResult(row, int(results.boxes[1].label[row]), status, detection)


def _number_of(image: Name, images: tuple[Name, ...]) -> int:
    names = [str(name) for name in images]
    if image in images:
        return images.index(image)
    if str(image) in names:
        return names.index(str(image))
    message = f"image {str(image)!r} is not in the ground truth"
    raise UsageError("; ".join(filter(None, (message, suggest(str(image), names)))))
