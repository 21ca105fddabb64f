"""Other implementations, run on tables: each returns its metrics, or skips the test.

Images come in the order of the tables, and an image's boxes in file order.
"""

import importlib
import os
import tempfile
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from detap.tables.detection import Detections, GroundTruth
from tests.torch.references import torchmetrics_map, torchvision

Numbers = dict[str, float]


def _found(name: str, package: str) -> ModuleType:
    pytest.importorskip(name, reason=f"{package} is absent")
    return importlib.import_module(name)


def _image_by_image(
    truth: GroundTruth, detections: Detections
) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.intp]]]:
    for image in range(len(truth.images)):
        yield image, np.flatnonzero(truth.image == image), np.flatnonzero(detections.image == image)


def _xywh(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.hstack([corners[:, :2], corners[:, 2:] - corners[:, :2]])


def torchmetrics(truth: GroundTruth, detections: Detections) -> Numbers:
    metric = torchmetrics_map()(box_format="xyxy")
    tensor = importlib.import_module("torch").tensor
    for _, there, here in _image_by_image(truth, detections):
        preds = {
            "boxes": tensor(detections.corners[here]),
            "scores": tensor(detections.score[here]),
            "labels": tensor(detections.label[here].astype(np.int64)),
        }
        target = {
            "boxes": tensor(truth.corners[there]),
            "labels": tensor(truth.label[there].astype(np.int64)),
            "iscrowd": tensor(truth.crowd[there].astype(np.int64)),
            "area": tensor(truth.area[there]),
        }
        metric.update([preds], [target])
    values = metric.compute()
    names = {"AP": "map", "AP50": "map_50", "AP75": "map_75", "APs": "map_small", "AR10": "mar_10"}
    return {name: values[key].item() for name, key in names.items()}


def ultralytics(truth: GroundTruth, detections: Detections) -> Numbers:
    """Run the matching and AP of its validator on detections after non-maximum suppression."""
    torchvision()
    # Importing it writes settings, and asks the network whether it is there.
    os.environ["YOLO_CONFIG_DIR"] = tempfile.gettempdir()
    os.environ["YOLO_OFFLINE"] = "true"
    validator = _found("ultralytics.engine.validator", "ultralytics").BaseValidator
    metrics, torch = (importlib.import_module(m) for m in ("ultralytics.utils.metrics", "torch"))
    one = type("Validator", (), {"iouv": torch.linspace(0.5, 0.95, 10)})()
    right, rows = [], []
    for _, there, kept in _image_by_image(truth, detections):
        here = kept[detections.score[kept] >= 0.001]
        here = here[np.argsort(-detections.score[here], kind="stable")][:300]
        rows.append(here)
        correct = np.zeros((len(here), 10), bool)
        if len(there) and len(here):
            overlap = metrics.box_iou(
                *(
                    torch.tensor(table.corners[at], dtype=torch.float32)
                    for table, at in ((truth, there), (detections, here))
                )
            )
            labels = (torch.tensor(t.label[at]) for t, at in ((detections, here), (truth, there)))
            correct = validator.match_predictions(one, *labels, overlap).numpy()
        right.append(correct)
    every = np.concatenate(rows)
    average = metrics.ap_per_class(
        np.concatenate(right), detections.score[every], detections.label[every], truth.label
    )[5]
    columns = {"mAP50": average[:, 0], "mAP75": average[:, 5]}
    return {"mAP": float(average.mean())} | {n: float(v.mean()) for n, v in columns.items()}


def tidecv(truth: GroundTruth, detections: Detections) -> Numbers:
    module = _found("tidecv", "tidecv")
    there, here = module.Data("truth"), module.Data("found")
    for number in range(len(truth.images)):
        there.add_image(number, str(number))
    for image, label, box, crowd in zip(
        truth.image.tolist(),
        truth.label.tolist(),
        _xywh(truth.corners).tolist(),
        truth.crowd.tolist(),
        strict=True,
    ):
        (there.add_ignore_region if crowd else there.add_ground_truth)(image, label, box=box)
    for image, label, score, box in zip(
        detections.image.tolist(),
        detections.label.tolist(),
        detections.score.tolist(),
        _xywh(detections.corners).tolist(),
        strict=True,
    ):
        here.add_detection(image, label, score, box=box)
    tide = module.TIDE()
    tide.evaluate_range(there, here, mode=module.TIDE.BOX)
    averages = [run.ap / 100 for run in tide.run_thresholds["found"]]
    return {"AP": float(np.mean(averages)), "AP50": averages[0], "AP75": averages[5]}


def globox(truth: GroundTruth, detections: Detections) -> Numbers:
    module = _found("globox", "globox")

    def boxes(table: GroundTruth | Detections, rows: NDArray[np.intp]) -> list[Any]:
        score = table.score if isinstance(table, Detections) else None
        return [
            module.BoundingBox(
                label=str(table.label[row]),
                **dict(zip(("xmin", "ymin", "xmax", "ymax"), table.corners[row], strict=True)),
                confidence=None if score is None else float(score[row]),
            )
            for row in rows
        ]

    truths, dts = [], []
    for image, there, here in _image_by_image(truth, detections):
        name = f"{image:06}"
        truths.append(module.Annotation(name, boxes=boxes(truth, there)))
        dts.append(module.Annotation(name, boxes=boxes(detections, here)))
    evaluator = module.COCOEvaluator(
        ground_truths=module.AnnotationSet(truths), predictions=module.AnnotationSet(dts)
    )
    methods = {"AP": "ap", "AP50": "ap_50", "AP75": "ap_75"}
    return {name: getattr(evaluator, method)() for name, method in methods.items()}


def podm(truth: GroundTruth, detections: Detections) -> Numbers:
    metrics = _found("podm.metrics", "object-detection-metrics")

    def boxes(table: GroundTruth | Detections) -> list[Any]:
        score = table.score if isinstance(table, Detections) else np.zeros(len(table))
        columns = (table.image.tolist(), table.label.tolist(), *table.corners.T.tolist())
        rows = zip(*columns, score.tolist(), strict=True)
        return [metrics.BoundingBox.of_bbox(*row) for row in rows]

    classes = metrics.get_pascal_voc_metrics(boxes(truth), boxes(detections), 0.5)
    return {"mAP": float(metrics.MetricPerClass.mAP(classes))}


def supervision(truth: GroundTruth, detections: Detections) -> Numbers:
    module = _found("supervision", "supervision")
    metric = importlib.import_module("supervision.metrics").MeanAveragePrecision()
    for _, there, here in _image_by_image(truth, detections):
        target = module.Detections(
            xyxy=truth.corners[there],
            class_id=truth.label[there].astype(int),
            data={"iscrowd": truth.crowd[there].astype(int), "area": truth.area[there]},
        )
        preds = module.Detections(
            xyxy=detections.corners[here],
            class_id=detections.label[here].astype(int),
            confidence=detections.score[here],
        )
        metric.update([preds], [target])
    values = metric.compute()
    return {"AP": values.map50_95, "AP50": values.map50, "AP75": values.map75}


def mean_average_precision(truth: GroundTruth, detections: Detections) -> Numbers:
    module = _found("mean_average_precision", "mean-average-precision")
    metric = module.MetricBuilder.build_evaluation_metric(
        "map_2d", async_mode=False, num_classes=len(detections.classes)
    )
    for _, there, here in _image_by_image(truth, detections):
        nothing = np.zeros((len(there), 2))
        metric.add(
            np.column_stack(
                [detections.corners[here], detections.label[here], detections.score[here]]
            ),
            np.column_stack([truth.corners[there], truth.label[there], nothing]),
        )
    return {"mAP": float(metric.value(iou_thresholds=0.5)["mAP"])}
