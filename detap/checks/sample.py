"""Overlaps of evenly sampled images, at a bounded cost."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core.overlap import overlaps
from detap.tables.detection import Detections, Flags, Floats, GroundTruth, Name

Rows = NDArray[np.intp]

Change = Callable[[Floats, Floats], Floats]
"""Function from corners (n, 4) and image sizes (n, 2) to corners in another box format."""

Changes = tuple[Change | None, Change | None]
"""Changes of the detections and of the ground truths."""

AS_READ: Changes = (None, None)

MIN_IOU = 0.5
"""IoU from which a detection overlaps a ground truth."""

MOST_OVERLAPPED = 0.5
"""Fraction of overlapped ground truths above which boxes are taken to be right."""

_TIGHT = 0.75
"""IoU that boxes of different objects rarely reach."""

_FAR = 1e150
"""Limit of corners, so that no area overflows."""

_PAIRS = 1_000_000
"""Maximal number of pairs of boxes, in the sample and per image."""

_IMAGES = 1_000


class _Image(NamedTuple):
    """Rows of ground truths and detections of one image."""

    ground_truths: Rows
    detections: Rows


class Sample:
    """Evenly sampled images that have both ground truths and detections."""

    def __init__(self, ground_truth: GroundTruth, detections: Detections) -> None:
        self.ground_truth = ground_truth
        self.detections = detections
        self._images = list(_sampled(ground_truth, detections))
        self.rows = _joined([image.ground_truths for image in self._images])

    @property
    def images(self) -> int:
        """Number of images."""
        return len(self._images)

    @property
    def best(self) -> tuple[Floats, Rows, Floats]:
        """Largest IoU of each ground truth (G,), the detection's row, and the largest by class."""
        return self._columns[:3]

    @property
    def correct(self) -> tuple[Rows, Flags]:
        """Detections (N,) of these images, and flags of those that overlap their class."""
        return self._columns[3:]

    @cached_property
    def _columns(self) -> tuple[Floats, Rows, Floats, Rows, Flags]:
        best, rows, best_of_class, correct = [], [], [], []
        for image, iou in self._ious():
            winner = iou.argmax(axis=0)
            best.append(iou[winner, np.arange(iou.shape[1])])
            rows.append(image.detections[winner])
            of_class = self._of_class(image, iou)
            best_of_class.append(of_class.max(axis=0))
            correct.append(of_class.max(axis=1) >= MIN_IOU)
        return (
            _joined(best, np.float64),
            _joined(rows),
            _joined(best_of_class, np.float64),
            _joined([image.detections for image in self._images]),
            _joined(correct, np.bool_),
        )

    def _of_class(self, image: _Image, iou: Floats) -> Floats:
        """Return the IoU of pairs of one class, 0 for others."""
        labels = self.detections.label[image.detections]
        return np.where(labels[:, None] == self.ground_truth.label[image.ground_truths], iou, 0.0)

    @property
    def overlapped(self) -> Flags:
        """Flags of ground truths (G,) that a detection of any class overlaps."""
        return self.best[0] >= MIN_IOU

    @property
    def overlapped_by_class(self) -> Flags:
        """Flags of ground truths (G,) that a detection of their class overlaps."""
        return self.best[2] >= MIN_IOU

    def overlapped_if(
        self, changes: Changes = AS_READ, images: Sequence[_Image] | None = None
    ) -> Flags:
        """Return the overlapped ground truths if boxes were read differently."""
        ious = self._ious(changes, images)
        overlapped: Flags = _joined([iou.max(axis=0) >= MIN_IOU for _, iou in ious], np.bool_)
        return overlapped

    def tight(self) -> NDArray[np.intp]:
        """Count close fits between ground truths and detections of all images, by class, (I, I)."""
        count = self.images
        fits = np.zeros((count, count), np.intp)
        for j, other in enumerate(self._images):
            mixed = [_Image(image.ground_truths, other.detections) for image in self._images]
            for i, (image, iou) in enumerate(self._ious(images=mixed)):
                fits[i, j] = np.count_nonzero(self._of_class(image, iou).max(axis=0) >= _TIGHT)
        return fits

    def name(self, index: int) -> Name:
        """Return the name of a sampled image."""
        return self.ground_truth.images[
            int(self.ground_truth.image[self._images[index].ground_truths[0]])
        ]

    def chance(self, changes: Changes = AS_READ) -> float:
        """Return the fraction of ground truths overlapped by detections of other images."""
        max_pairs = _PAIRS // max(1, self.images)
        mixed = [
            _Image(
                _thinned(image.ground_truths, len(other.detections), max_pairs), other.detections
            )
            for step in range(1, min(4, self.images))
            for image, other in zip(
                self._images, self._images[step:] + self._images[:step], strict=True
            )
        ]
        return fraction_of(self.overlapped_if(changes, mixed))

    def _ious(
        self, changes: Changes = AS_READ, images: Sequence[_Image] | None = None
    ) -> Iterator[tuple[_Image, Floats]]:
        images = self._images if images is None else images
        dts = self._boxes(self.detections, [image.detections for image in images], changes[0])
        gts = self._boxes(self.ground_truth, [image.ground_truths for image in images], changes[1])
        for image, (dt, dt_areas), (gt, gt_areas) in zip(images, dts, gts, strict=True):
            yield image, overlaps(dt, gt, detection_areas=dt_areas, truth_areas=gt_areas)

    def _boxes(
        self, table: GroundTruth | Detections, rows: list[Rows], change: Change | None
    ) -> Iterator[tuple[Floats, Floats]]:
        """Yield boxes and areas of lists of rows, after a change of the box format."""
        joined = _joined(rows)
        corners = table.corners[joined]
        if change is not None:
            sizes = self.ground_truth.image_sizes
            known = np.full((len(joined), 2), np.nan)
            corners = change(corners, known if sizes is None else sizes[table.image[joined]])
        boxes = np.clip(np.nan_to_num(corners), -_FAR, _FAR)
        boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2])  # negative sizes as 0
        areas = np.maximum((boxes[:, 2:] - boxes[:, :2]).prod(axis=1), 1e-300)  # IoU divides by it
        end = 0
        for part in rows:
            start, end = end, end + len(part)
            yield boxes[start:end], areas[start:end]


def fraction_of(flags: Flags) -> float:
    """Return the fraction of set flags; 0 if there are no flags."""
    return float(flags.mean()) if len(flags) else 0.0


def beyond_chance(count: float, fraction: float, total: int) -> bool:
    """Return True if a count is more than three standard deviations above the expected one."""
    expected = fraction * total
    return bool(count > expected + 3 * (expected + 1) ** 0.5)


def _joined(arrays: list[Any], dtype: Any = np.intp) -> Any:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype)


def _sampled(truth: GroundTruth, detections: Detections) -> Iterator[_Image]:
    images = len(truth.images)
    gt_count = np.bincount(truth.image[~truth.crowd], minlength=images)
    dt_count = np.bincount(detections.image, minlength=images)
    shared = np.flatnonzero((gt_count > 0) & (dt_count > 0))  # images
    pairs = int(np.minimum(gt_count[shared].astype(np.int64) * dt_count[shared], _PAIRS).sum())
    step = max(1, -(-len(shared) // _IMAGES), -(-pairs // _PAIRS))
    sampled = shared[::step]
    gts = _rows_by_image(truth.image, np.flatnonzero(~truth.crowd), sampled)
    dts = _rows_by_image(detections.image, np.arange(len(detections)), sampled)
    for gt_rows, dt_rows in zip(gts, dts, strict=True):
        yield _Image(_thinned(gt_rows, len(dt_rows), _PAIRS), dt_rows)


def _thinned(ground_truths: Rows, detections: int, max_pairs: int) -> Rows:
    """Sample ground truths evenly so that they form at most `max_pairs` pairs."""
    return ground_truths[:: max(1, -(-len(ground_truths) * detections // max(1, max_pairs)))]


def _rows_by_image(image: NDArray[np.int32], rows: Rows, sampled: Rows) -> Iterator[Rows]:
    """Yield the rows of each sampled image."""
    rows = rows[np.isin(image[rows], sampled)]
    rows = rows[np.argsort(image[rows], kind="stable")]
    ends = np.searchsorted(image[rows], sampled, "right").tolist()
    for start, end in zip([0, *ends], ends, strict=False):
        yield rows[start:end]
