"""The examples of data sets in memory, run on the libraries themselves if they are installed."""

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from tests.conftest import ROOT

QUICKSTART = ROOT / "fixtures" / "quickstart" / "coco"
NAMES = ("bird", "cat", "dog")


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / "tables" / f"{name}.py"))


def quickstart() -> tuple[dict[int, list[dict[str, Any]]], dict[int, list[dict[str, Any]]]]:
    """Return the annotations that are no crowds and the results, by image."""
    truth = json.loads((QUICKSTART / "instances.json").read_text())
    results = json.loads((QUICKSTART / "results.json").read_text())
    images = [image["id"] for image in truth["images"]]
    kept = [row for row in truth["annotations"] if not row.get("iscrowd")]
    by_image = [
        {image: [row for row in rows if row["image_id"] == image] for image in images}
        for rows in (kept, results)
    ]
    return by_image[0], by_image[1]


def expected() -> dict[str, float]:
    """Return the metrics of the same objects as tables."""
    truth, results = quickstart()
    annotations = [row for rows in truth.values() for row in rows]
    records = [row for rows in results.values() for row in rows]
    ground_truth = detap.GroundTruth.from_arrays(
        image=[row["image_id"] for row in annotations],
        label=[row["category_id"] for row in annotations],
        boxes=[row["bbox"] for row in annotations],
        box_format="xywh",
        images=[*truth],
    )
    detections = detap.Detections.from_arrays(
        image=[row["image_id"] for row in records],
        label=[row["category_id"] for row in records],
        boxes=[row["bbox"] for row in records],
        score=[row["score"] for row in records],
        box_format="xywh",
    )
    return detap.evaluate(ground_truth, detections).metrics()


def test_a_dataset_with_objects() -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is absent")
    truth, results = quickstart()
    rows = {
        "image_id": [*truth],
        "objects": [
            {
                "bbox": [row["bbox"] for row in annotations],
                "category": [row["category_id"] - 1 for row in annotations],
            }
            for annotations in truth.values()
        ],
    }
    objects = {
        "bbox": datasets.Sequence(datasets.Value("float64"), length=4),
        "category": datasets.ClassLabel(names=list(NAMES)),
    }
    features = datasets.Features(
        {"image_id": datasets.Value("int64"), "objects": datasets.Sequence(objects)}
    )
    dataset = datasets.Dataset.from_dict(rows, features=features)
    ground_truth = example("hugging_face")["ground_truth"](dataset)
    records = [row for rows in results.values() for row in rows]
    evaluator = detap.Evaluator(ground_truth)
    evaluator.update_records(
        [*truth], [row | {"category_id": row["category_id"] - 1} for row in records]
    )
    result = evaluator.compute()
    assert result.classes == NAMES
    assert result.metrics() == expected()


def corners(rows: list[dict[str, Any]]) -> Any:
    boxes = np.array([row["bbox"] for row in rows], np.float64).reshape(-1, 4)
    return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], 1)


def test_supervision_detections() -> None:
    """supervision's own metric has the same values."""
    sv = pytest.importorskip("supervision", reason="supervision is absent")
    truth, results = quickstart()
    sides: list[list[Any]] = [[], []]
    for image in truth:
        for side, rows in zip(sides, (results[image], truth[image]), strict=True):
            labels = np.array([row["category_id"] - 1 for row in rows], np.int64)
            scores = np.array([row.get("score", 1.0) for row in rows])
            given = {"confidence": scores} if side is sides[0] else {}
            side.append(sv.Detections(corners(rows), class_id=labels, **given))
    result = example("supervision_detections")["evaluate"](*sides, NAMES)
    values = result.metrics()
    assert values == pytest.approx(expected(), abs=1e-12, nan_ok=True)
    theirs = sv.metrics.MeanAveragePrecision().update(*sides).compute()
    assert theirs.map50_95 == pytest.approx(values["AP"], abs=1e-9)
    assert theirs.map50 == pytest.approx(values["AP50"], abs=1e-9)
    assert theirs.map75 == pytest.approx(values["AP75"], abs=1e-9)


def test_supervision_images_without_detections() -> None:
    sv = pytest.importorskip("supervision", reason="supervision is absent")
    box = sv.Detections(np.array([[0.0, 0, 9, 9]]), class_id=np.array([0]))
    evaluate = example("supervision_detections")["evaluate"]
    assert evaluate([sv.Detections.empty()], [box], ["cat"]).metrics()["AP"] == 0


def test_fiftyone_samples(tmp_path: Path) -> None:
    """Samples in memory; FiftyOne's own evaluation needs its database."""
    fo = pytest.importorskip("fiftyone", reason="FiftyOne is absent")
    truth, results = quickstart()
    sides = 320, 240, 320, 240
    samples = []
    for image in truth:
        sample = fo.Sample(filepath=str(tmp_path / f"{image:06}.jpg"))
        sample.metadata = fo.ImageMetadata(width=sides[0], height=sides[1])
        for field, rows in (("ground_truth", truth[image]), ("predictions", results[image])):
            detections = [
                fo.Detection(
                    label=NAMES[row["category_id"] - 1],
                    bounding_box=[
                        value / side for value, side in zip(row["bbox"], sides, strict=True)
                    ],
                    confidence=row.get("score"),
                )
                for row in rows
            ]
            sample[field] = fo.Detections(detections=detections)
        samples.append(sample)
    result = example("fiftyone_samples")["evaluate"](samples, "predictions", "ground_truth")
    assert result.metrics() == pytest.approx(expected(), abs=1e-9, nan_ok=True)
