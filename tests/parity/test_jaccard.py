"""The Jaccard index against CrowdDet's JIToolkits, on the 51 images that its script accepts."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from detap import GroundTruth
from detap.core.jaccard import SCORE_THRESHOLDS
from detap.errors import UsageError
from detap.metrics import named
from detap.protocols import protocol
from tests.coco import read, saved
from tests.raised import raised

CROWD = replace(
    protocol("coco"),
    iou_thresholds=(0.5,),
    max_dets=(None,),
    strict_iou=True,
    crowd_flags=("ignore",),
    ignore_flags=("ignore",),
)


@pytest.fixture(scope="module")
def pedestrian(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> detap.Result:
    """Evaluate the detections, which the script clips to their images."""
    record = json.loads((real_data / "measures" / "pedestrian.json").read_text("utf-8"))
    truth, rows = record["ground_truth"], record["detections"]
    sizes = {image["id"]: (image["width"], image["height"]) for image in truth["images"]}
    for row in rows:
        x, y, width, height = row["bbox"]
        corners = np.clip([x, y, x + width, y + height], 0, sizes[row["image_id"]] * 2)
        row["bbox"] = np.append(corners[:2], corners[2:] - corners[:2]).tolist()
    folder = tmp_path_factory.mktemp("pedestrian")
    files = saved(folder, truth, rows)
    return detap.evaluate(*read(files), CROWD, images=expected(real_data)["images"])


def expected(real_data: Path) -> Any:
    path = real_data / "measures" / "pedestrian_expected.json"
    return json.loads(path.read_text("utf-8"))["crowd"]


@pytest.mark.filterwarnings("ignore::detap.DetapWarning")
def test_the_index_at_each_score(pedestrian: detap.Result, real_data: Path) -> None:
    record = expected(real_data)
    assert pedestrian.metric("JI") == pytest.approx(record["JI"], abs=1e-12)
    counts = pedestrian.jaccard_counts(named(CROWD, "JI"))
    index = counts.matched / (counts.objects + 1e-6)
    means = index.sum(axis=0) / (counts.objects > 0).sum(axis=0)
    for score, mean in zip(SCORE_THRESHOLDS, means.tolist(), strict=True):
        assert mean == pytest.approx(record["JI by score threshold"][str(score)], abs=1e-12)


def test_protocols_without_the_index() -> None:
    for name, problem in (
        ("coco-segm", "JI: the Jaccard index matches boxes; use --iou-type bbox"),
        ("kitti", "JI: protocol kitti does not rank detections; use another --protocol"),
        ("lvis", "JI: unmatched detections have no meaning where each image is verified"),
    ):
        assert str(raised(UsageError, named, protocol(name), "JI")).startswith(problem)


def test_scipy_is_named_where_it_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("detap.evaluation.jaccard.find_spec", lambda _: None)
    box = [[0.0, 0.0, 9.0, 9.0]]
    truth = GroundTruth.from_arrays(image=[1], label=["person"], boxes=box)
    detections = detap.Detections.from_arrays(image=[1], label=["person"], boxes=box, score=[0.5])
    with pytest.raises(UsageError, match=r"JI needs SciPy, which is not installed; pip install"):
        detap.evaluate(truth, detections, CROWD).metric("JI")
