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
        What it is called.
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
    """Return what became of every detection and ground truth of one image.

    Parameters
    ----------
    result : Result or MatchResults
    image : int or str
        What the image is called; the text of a number will do.
    iou : float, optional
        One of the protocol's thresholds; where left out .5.
    types : Errors, optional
        Of this outcome, in the convention of the protocol: for who asks about many images.

    Raises
    ------
    UsageError
        Where there is no such image, the protocol ranks no detections, or has no such threshold.
    """
    results = MatchResults.of(result, iou)
    number = _number_of(image, results.run.ground_truth.images)
    return next(results_of_images(results, [number], types or errors(results)))


def results_of_images(
    results: MatchResults,
    numbers: Iterable[int],
    types: Errors,
    *,
    most: int | None = None,
    always: Iterable[int] = (),
) -> Iterator[ImageResults]:
    """Yield what became of every detection and ground truth of some images.

    Parameters
    ----------
    results : MatchResults
    numbers : iterable of int
        The images, as indices into those of the ground truth.
    types : Errors
        Of this outcome, in the convention of the protocol.
    most : int, optional
        Only so many detections of each image, those of the highest scores.
    always : iterable of int
        Rows of detections that are among them whatever their scores.
    """
    judge = _Judge(results, types)
    detections, truths = results.boxes
    images = results.run.ground_truth.images
    asked = list(numbers)
    found, ends = _rows_of(detections.image, -detections.score, asked, results.images)
    if most is not None:
        rank = np.arange(len(found)) - np.repeat(ends[:-1], np.diff(ends))
        kept = np.zeros(len(detections.image), np.bool_)
        # Not numpy.isin, which imports all of numpy.ma; -1 is no row.
        kept[np.fromiter((row for row in always if row >= 0), np.intp)] = True
        found = found[(rank < most) | kept[found]]
        ends = _ends(detections.image[found], asked, results.images)
    judged = judge.detections(found)
    of_truth, truth_ends = _rows_of(truths.image, np.zeros(len(truths.image)), asked, len(images))
    for place, number in enumerate(asked):
        rows = of_truth[slice(*truth_ends[place : place + 2])]
        yield ImageResults(
            image=images[number],
            iou=results.iou,
            detections=judged[slice(*ends[place : place + 2])],
            ground_truths=tuple(judge.truth(row) for row in rows.tolist()),
        )


def _rows_of(
    image: Integers, key: Floats, asked: list[int], images: int
) -> tuple[Integers, NDArray[np.int64]]:
    """Return the rows of some images, one after the other and by a key, and where each begins."""
    place = np.full(images, -1)
    place[asked] = np.arange(len(asked))
    rows = np.flatnonzero(place[image] >= 0)
    ordered: Integers = rows[np.lexsort((key[rows], place[image[rows]]))].astype(np.int32)
    return ordered, _ends(image[ordered], asked, images)


def _ends(image: Integers, asked: list[int], images: int) -> NDArray[np.int64]:
    """Return where the rows of each image begin, and where the last one's end."""
    count = np.bincount(image, minlength=images)[asked]
    return np.concatenate([[0], np.cumsum(count)])


class _Judge:
    """Verdicts on single rows."""

    def __init__(self, results: MatchResults, types: Errors) -> None:
        self.results, self.types = results, types
        self.finder = np.full(len(results.positive), -1, np.int32)
        right = np.flatnonzero(results.true)
        self.finder[results.matched_gt[right]] = right
        self.meaning = np.full(len(results.positive), -1, np.int32)
        owners = np.flatnonzero(types.fixes_target)
        self.meaning[types.target[owners]] = owners

    def detections(self, rows: Integers) -> tuple[DetectionResult, ...]:
        results, types = self.results, self.types
        near = results.ground_truth_index.nearest(results.boxes[0], rows)
        own = near.same_class_similarity >= near.other_class_similarity
        truth = np.where(own, near.same_class, near.other_class)
        overlap = np.where(own, near.same_class_similarity, near.other_class_similarity)
        aimed, matched = types.target[rows] >= 0, results.matched_gt[rows] >= 0
        truth[aimed], overlap[aimed] = types.target[rows[aimed]], types.similarity[rows[aimed]]
        truth[matched] = results.matched_gt[rows[matched]]
        overlap[matched] = results.matched_similarity(rows[matched])
        return tuple(
            self._detection(*entry)
            for entry in zip(rows.tolist(), truth.tolist(), overlap.tolist(), strict=True)
        )

    def _detection(self, row: int, truth: int, overlap: float) -> DetectionResult:
        detections = self.results.boxes[0]
        finder = int(self.finder[truth]) if truth >= 0 else -1
        return DetectionResult(
            row=row,
            label=int(detections.label[row]),
            score=float(detections.score[row]),
            result=self._result(row),
            ground_truth=truth,
            similarity=overlap,
            matched_by=-1 if finder == row else finder,
        )

    def _result(self, row: int) -> DetectionStatus:
        results = self.results
        if not results.counted[row]:
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
        """Return what became of a ground truth."""
        results = self.results
        detection = int(self.finder[row])
        status: GroundTruthStatus = "matched"
        if not results.positive[row]:
            status = "ignored" if results.run.ignored[row] else "outside-area-range"
        elif detection < 0:
            status = "missed" if self.types.missed[row] else "near-miss"
            detection = int(self.meaning[row])
        return GroundTruthResult(row, int(results.boxes[1].label[row]), status, detection)


def _number_of(image: Name, images: tuple[Name, ...]) -> int:
    names = [str(name) for name in images]
    if image in images:
        return images.index(image)
    if str(image) in names:
        return names.index(str(image))
    told = f"image {str(image)!r} is not in the ground truth"
    raise UsageError("; ".join(filter(None, (told, suggest(str(image), names)))))
