"""Run pycocotools: dictionaries in, arrays with detap's axes and rows out."""

import contextlib
import copy
import io
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from detap.protocols import Protocol
from detap.tables.detection import Detections, GroundTruth
from tests.cases import Table
from tests.coco import results_of, truth_of

NAMES = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl")


@dataclass(frozen=True)
class Reference:
    """pycocotools' results of a case; its -1 for undefined is NaN here."""

    precision: NDArray[np.float64]  # (T, R, K, A, M)
    recall: NDArray[np.float64]  # (T, K, A, M)
    summary: dict[str, float]
    matched: NDArray[Any]  # (A, T, N): row of the ground truth, or -1
    ignored: NDArray[Any]  # (A, T, N)
    counted: NDArray[Any]  # (N,)


def run(
    instances: dict[str, Any],
    results: list[dict[str, Any]],
    protocol: Protocol | None = None,
    *,
    renumber: bool = True,
) -> Reference:
    """Run COCOeval on the contents of an instances and of a results file.

    Annotation ids are first renumbered 1, 2, ... in file order, unless `renumber` is false:
    pycocotools takes 0 for "no match", and matches are compared by rows.
    """
    with contextlib.redirect_stdout(io.StringIO()):
        evaluator = COCOeval(*_pair(instances, results, renumber), "bbox")
        if protocol is not None:
            _configure(evaluator.params, protocol)
        evaluator.evaluate()
        evaluator.accumulate()
        standard = list(evaluator.params.maxDets) == [1, 10, 100]
        if standard and len(evaluator.params.areaRng) == 4:
            evaluator.summarize()
    summary = dict(zip(NAMES, _nan(np.array(evaluator.stats)).tolist(), strict=False))
    return Reference(
        _nan(evaluator.eval["precision"]),
        _nan(evaluator.eval["recall"]),
        summary,
        *_matches(evaluator, len(results)),
    )


def as_coco(
    truth: GroundTruth, detections: Detections
) -> tuple[dict[str, Any], list[dict[str, Any]], GroundTruth, Detections]:
    """Return xyxy tables as COCO dictionaries in xywh, and as tables of those.

    Width is x2 - x1; pycocotools' x + (x2 - x) is not x2, so the last bits of the tables change.
    """
    truth_boxes, found_boxes = _xywh(truth), _xywh(detections)
    truth, detections = _of_xywh(truth, truth_boxes), _of_xywh(detections, found_boxes)
    truth = replace(truth, area=truth.box_area.copy())
    columns = truth.image.tolist(), truth.label.tolist(), truth_boxes.tolist()
    names, images = dict(enumerate(detections.classes)), range(len(truth.images))
    instances = truth_of(zip(*columns, strict=True), names, images, size=None)
    for annotation, crowd in zip(instances["annotations"], truth.crowd.tolist(), strict=True):
        annotation["iscrowd"] = int(crowd)
    columns = detections.image.tolist(), detections.label.tolist(), found_boxes.tolist()
    results = results_of(zip(*columns, detections.score.tolist(), strict=True))
    return instances, results, truth, detections


def _xywh(table: GroundTruth | Detections) -> NDArray[np.float64]:
    boxes = table.corners.copy()
    boxes[:, 2:] -= boxes[:, :2]
    return boxes


def _of_xywh(table: Table, boxes: NDArray[np.float64]) -> Table:
    corners = np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])
    return replace(table, corners=corners, box_area=boxes[:, 2] * boxes[:, 3])


def _pair(
    instances: dict[str, Any], results: list[dict[str, Any]], renumber: bool
) -> tuple[COCO, COCO]:
    truth = COCO()
    truth.dataset = copy.deepcopy(instances)
    for number, annotation in enumerate(truth.dataset["annotations"], start=1):
        annotation["id"] = number if renumber else annotation["id"]
    truth.createIndex()
    # loadRes cannot take an empty list, and would raise on detections of unknown images.
    coco = COCO()
    coco.dataset = {
        "images": truth.dataset["images"],
        "categories": truth.dataset["categories"],
        "annotations": [
            {
                **{key: row[key] for key in ("image_id", "category_id", "bbox", "score")},
                "area": row["bbox"][2] * row["bbox"][3],
                "id": number,
                "iscrowd": 0,
            }
            for number, row in enumerate(results, start=1)
        ],
    }
    coco.createIndex()
    return truth, coco


def _configure(params: Any, protocol: Protocol) -> None:
    params.iouThrs = np.array(protocol.iou_thresholds)
    params.recThrs = np.array(protocol.recall_levels)
    params.maxDets = list(protocol.max_dets)
    params.areaRng = [[band.low, band.high] for band in protocol.area_ranges]
    params.areaRngLbl = [band.name for band in protocol.area_ranges]
    params.useCats = 0 if protocol.class_agnostic else 1


def _matches(evaluator: COCOeval, count: int) -> tuple[Any, Any, Any]:
    areas = [list(area) for area in evaluator.params.areaRng]
    shape = (len(areas), len(evaluator.params.iouThrs), count)
    matched = np.full(shape, -1)
    ignored = np.zeros(shape, bool)
    counted = np.zeros(count, bool)
    for part in evaluator.evalImgs:
        if part is not None:
            area = areas.index(list(part["aRng"]))
            rows = np.array(part["dtIds"], int) - 1
            matched[area][:, rows] = part["dtMatches"].astype(int) - 1
            ignored[area][:, rows] = part["dtIgnore"]
            counted[rows] = True
    return matched, ignored, counted


def _nan(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(values == -1, np.nan, values)
