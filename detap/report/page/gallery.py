"""The images of the page: columns over all images, detections and ground truths.

The result of a detection is the same at each score threshold, because matching goes by descending
score. A ground truth has up to two detections that decide its result: the one that matches it, and
the best-scored error attributed to it. The script compares their scores with the threshold.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.analysis.examples import worst_images
from detap.analysis.row_results import DETECTION_STATUSES, GROUND_TRUTH_STATUSES, row_results
from detap.core.nearest import CLASSIFICATION, LOCALIZATION
from detap.escaping import escape
from detap.report.sections.analysis import Analysis
from detap.tables.detection import Detections, Floats, GroundTruth, Integers

Table = GroundTruth | Detections
Columns = dict[str, NDArray[Any]]

_TENTHS = 10
_LARGEST = 2**31 - 1
_COUNTED = GROUND_TRUTH_STATUSES.index("matched")


class Gallery(NamedTuple):
    """The images of the page."""

    columns: dict[str, Any]
    names: list[str]
    by_errors: Integers  # those with the most errors first


def gallery(analysis: Analysis, file_names: Mapping[str, str]) -> Gallery:
    """Return the columns of the images."""
    results, before, steps = analysis.match_results, analysis.before, analysis.steps
    iou_type = results.protocol.iou_type
    names = [str(name) for name in results.run.ground_truth.images]
    of_truths = _Sorted(results.boxes[1].image, results.images)
    label = results.boxes[1].label[of_truths.rows]
    truths: Columns = {"count": of_truths.count, "label": label}
    truths |= _boxes(results.boxes[1].corners[of_truths.rows])
    # The annotated width and height of each image, (I, 2) float32; 0 if unknown.
    sizes = np.zeros((results.images, 2), np.float32)
    if (given := results.run.ground_truth.image_sizes) is not None:
        sizes = np.where(np.all(given > 0, axis=1, keepdims=True), given, 0).astype(np.float32)
    columns = {
        "names": [escape(name) for name in names],
        "files": [escape(file_names[name]) if name in file_names else None for name in names],
        "sizes": sizes,
        "results": DETECTION_STATUSES,
        "truth_results": GROUND_TRUTH_STATUSES,
        "truths": truths | {"shapes": _shapes(iou_type, results.run.ground_truth, of_truths.rows)},
        "detector": _detector(analysis, steps, of_truths),
        "baseline": None if before is None else _detector(before, steps, of_truths),
    }
    best = analysis.best if analysis.score is None else analysis.score
    score = None if np.isnan(best) else best
    worst = worst_images(results, score=score, max_count=results.images).image
    others = np.setdiff1d(np.arange(results.images), worst)
    return Gallery(columns, names, np.concatenate([worst, others]))


class _Sorted:
    """Rows of a table in the order of their images."""

    def __init__(self, image: Integers, images: int, score: Floats | None = None) -> None:
        self.rows = (
            np.argsort(image, kind="stable") if score is None else np.lexsort((-score, image))
        )
        self.count = np.bincount(image, minlength=images)
        start = np.cumsum(self.count) - self.count
        self.index_in_image = np.empty(len(image), np.int64)
        self.index_in_image[self.rows] = np.arange(len(image)) - np.repeat(start, self.count)

    def indices_in_image(self, rows: Integers) -> NDArray[np.int64]:
        """Return the indices of some rows; -1 for -1."""
        return np.append(self.index_in_image, -1)[rows]


def _detector(analysis: Analysis, steps: Floats, of_truths: _Sorted) -> dict[str, Any]:
    """Return the detections, by image and descending score, and the ground truths' results."""
    # `step`: the first step whose threshold the score reaches. `truth`: the index in the image of
    # the matched, attributed or nearest ground truth; `overlap`: the IoU with it, in thousandths.
    # `match`, `near`: of each ground truth, the matching detection and the best error near it.
    results, types = analysis.match_results, analysis.errors
    detections, columns = results.boxes[0], row_results(results, types)
    by_image = _Sorted(detections.image, results.images, detections.score)
    rows, score = by_image.rows, detections.score[by_image.rows]
    near = np.full(len(results.positive), -1, np.int32)
    attributed = (types.kind == LOCALIZATION) | (types.kind == CLASSIFICATION)
    wrong = np.flatnonzero(attributed & (types.target >= 0)).astype(np.int32)
    best = results.match_table.best_of_groups(wrong, types.target[wrong], len(near))
    near[types.target[best]] = best
    status = np.where(results.positive, _COUNTED, columns.truth_status)[of_truths.rows]
    return {
        "count": by_image.count,
        "label": detections.label[rows],
        "score": score.astype(np.float32),
        "step": np.searchsorted(-steps, -score),
        **_boxes(detections.corners[rows]),
        "result": columns.status[rows],
        "truth": of_truths.indices_in_image(columns.ground_truth[rows]),
        "overlap": np.rint(1000 * columns.similarity[rows]).astype(np.int64),
        "truth_result": status,
        "match": by_image.indices_in_image(results.matched_by[of_truths.rows]),
        "near": by_image.indices_in_image(near[of_truths.rows]),
        "shapes": _shapes(results.protocol.iou_type, results.run.detections, rows),
    }


def _boxes(corners: Floats) -> dict[str, NDArray[np.int64]]:
    """Return left, top, width and height in tenths of a pixel."""
    ends = _tenths(corners)
    width, height = np.maximum(ends[:, 2:] - ends[:, :2], 0).T
    return {"x": ends[:, 0], "y": ends[:, 1], "w": width, "h": height}


# --- masks, polygons and keypoints, which script/shapes.js draws


def _tenths(pixels: Floats) -> NDArray[np.int64]:
    return np.rint(np.clip(pixels * _TENTHS, -_LARGEST, _LARGEST)).astype(np.int64)


def _shapes(iou_type: str, table: Table, rows: NDArray[np.integer]) -> Columns:
    """Return the columns of the shapes of some rows; none if boxes are compared."""
    if iou_type in ("segm", "boundary"):
        return _masks(table, rows)
    if iou_type == "keypoints":
        assert table.keypoints is not None
        points, visibility = table.keypoints[rows, :, :2], table.keypoints[rows, :, 2:]
        labeled = visibility > 0 if visibility.size else np.ones((*points.shape[:2], 1), np.bool_)
        return {"points": _tenths(points).ravel(), "labeled": labeled.astype(np.int64).ravel()}
    if iou_type == "polygon" and table.polygons is not None:
        return {"corners": _tenths(table.polygons[rows]).ravel()}
    return {}


def _masks(table: Table, rows: NDArray[np.integer]) -> Columns:
    assert table.masks is not None
    assert table.mask is not None
    masks = table.masks[table.mask[rows]]
    # Those of polygons have runs only if they were rasterized.
    rings, runs = np.diff(masks.ring_start), np.diff(masks.run_start)
    from_runs = rings == 0
    lengths = masks.runs[np.repeat(from_runs, runs)].astype(np.int64)
    runs = np.where(from_runs, runs, 0)
    # Runs change little from one column of pixels to the next.
    first = np.arange(len(lengths)) - np.repeat(np.cumsum(runs) - runs, runs) < 2
    before = np.zeros(len(lengths), np.int64)
    before[2:] = lengths[:-2]
    return {
        "rings": rings,
        "ring_points": np.diff(masks.ring_end, prepend=0),
        "points": _tenths(masks.points).ravel(),
        "runs": runs,
        "lengths": lengths - np.where(first, 0, before),
        "height": masks.sizes[:, 0].astype(np.int64),
    }
