"""The examples of training loops, run on the library itself if it is installed.

Detectron2 is not on PyPI: its example runs on a substitute with the names, attributes and types of
its ``Instances``, ``Boxes``, ``MetadataCatalog`` and ``comm``. The inputs of mmdetection's metric
are mmengine's own classes; mmdetection's add typed properties to them.
"""

import json
import os
import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import detap
from detap.evaluation.loop.evaluator import Evaluator
from tests.conftest import ROOT
from tests.parity.compare import assert_same_bits
from tests.processes import finished
from tests.torch.references import torch as found_torch
from tests.torch.references import torchvision

torch = found_torch()
LOOPS = ROOT / "examples" / "loops"
NEAR = 1e-9

CAT, DOG = [10.0, 10.0, 60.0, 50.0], [100.0, 20.0, 180.0, 90.0]
"""xyxy; the cat is on image 3, the dog on image 8, and nothing on image 5."""


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(LOOPS / f"{name}.py"))


def instances(path: Path, rows: list[tuple[int, int, list[float]]], images: list[int]) -> Path:
    """Write a ground truth: image, category and corners of each object."""
    boxes = [(i, c, [x1, y1, x2 - x1, y2 - y1]) for i, c, (x1, y1, x2, y2) in rows]
    annotations = [
        {"id": n, "image_id": i, "category_id": c, "bbox": b, "area": b[2] * b[3], "iscrowd": 0}
        for n, (i, c, b) in enumerate(boxes, 1)
    ]
    categories = [{"id": 17, "name": "cat"}, {"id": 18, "name": "dog"}]
    known = [{"id": image, "width": 640, "height": 480} for image in images]
    contents = {"images": known, "categories": categories, "annotations": annotations}
    path.write_text(json.dumps(contents))
    return path


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    return instances(tmp_path / "pets.json", [(3, 17, CAT), (8, 18, DOG)], [3, 5, 8])


FOUND: dict[int, tuple[list[list[float]], list[float], list[int]]] = {
    3: ([CAT, DOG], [0.9, 0.3], [0, 1]),
    5: ([CAT], [0.5], [0]),
    8: ([], [], []),
}
"""Boxes, scores and classes from 0: the cat, a false dog, a false cat; the dog is missed."""


def check_pets(summary: dict[str, float]) -> None:
    """By hand: the cat's AP is 1, since its FP has a lower score; the dog's is 0."""
    assert summary["AP"] == pytest.approx(0.5, abs=NEAR)
    assert summary["AP50"] == pytest.approx(0.5, abs=NEAR)
    assert summary["AR100"] == pytest.approx(0.5, abs=NEAR)


# --- torchvision


def test_torchvision(tmp_path: Path) -> None:
    """An untrained network; every third of its boxes is a ground truth."""
    torchvision()
    from torchvision.models.detection import RetinaNet
    from torchvision.models.detection.anchor_utils import AnchorGenerator

    torch.manual_seed(0)
    backbone = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, stride=16))
    backbone.out_channels = 8
    anchors = AnchorGenerator(((32, 64),), ((1.0,),))
    network = RetinaNet(
        backbone, 19, anchor_generator=anchors, min_size=96, max_size=128, score_thresh=0.0
    ).eval()

    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, images: Any) -> Any:
            pets = torch.tensor([17, 18])
            return [
                {key: values[torch.isin(item["labels"], pets)] for key, values in item.items()}
                for item in network(images)
            ]

    model, names = Model(), [3, 5, 8]
    loader = [
        ([torch.rand(3, 96, 128), torch.rand(3, 96, 96)], [{"image_id": 3}, {"image_id": 5}]),
        ([torch.rand(3, 120, 96)], [{"image_id": torch.tensor([8])}]),
    ]
    with torch.inference_mode():
        outputs = [item for images, _ in loader for item in model(images)]
    rows = [
        (name, int(item["labels"][at]), item["boxes"][at].tolist())
        for name, item in zip(names, outputs, strict=True)
        for at in range(0, len(item["labels"]), 3)
    ]
    truth = detap.read_ground_truth(instances(tmp_path / "own.json", rows, names))
    evaluator = Evaluator(truth, boxes="xyxy")
    result = example("torchvision_detector")["validate"](model, loader, evaluator)
    table = detap.Detections.from_arrays(
        image=np.repeat(names, [len(item["labels"]) for item in outputs]),
        label=torch.cat([item["labels"] for item in outputs]),
        boxes=torch.cat([item["boxes"] for item in outputs]),
        score=torch.cat([item["scores"] for item in outputs]),
    )
    assert len(table) > 20
    expected = detap.evaluate(truth, table).summary
    assert_same_bits([*result.summary.values()], [*expected.values()], "summary")
    assert result.metric("AR100") == 1


# --- transformers


def test_transformers(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is absent")
    from transformers import YolosConfig, YolosForObjectDetection, YolosImageProcessor

    torch.manual_seed(1)
    sizes: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = YolosConfig(
        **sizes,
        intermediate_size=16,
        image_size=[32, 32],
        patch_size=16,
        num_detection_tokens=5,
        num_labels=2,
    )
    model: Any = YolosForObjectDetection(config)
    processor = YolosImageProcessor()
    pixels = torch.rand(3, 3, 32, 32)
    names, heights = [3, 5, 8], torch.tensor([[480, 640]] * 3)
    model.eval()
    with torch.inference_mode():
        outputs = model(pixel_values=pixels)
        processed = processor.post_process_object_detection(outputs, 0.0, target_sizes=heights)
    ids = np.array([17, 18])
    # The first box of each image is there; the others are false.
    rows = [
        (name, int(ids[item["labels"][0]]), item["boxes"][0].tolist())
        for name, item in zip(names, processed, strict=True)
    ]
    truth = detap.read_ground_truth(instances(tmp_path / "own.json", rows, names))
    batches = [
        {"image_ids": names[:2], "pixel_values": pixels[:2], "sizes": heights[:2]},
        {"image_ids": names[2:], "pixel_values": pixels[2:], "sizes": heights[2:]},
    ]
    result = example("transformers_detector")["validate"](
        model, processor, batches, Evaluator(truth, boxes="xyxy"), ids
    )
    assert result.detections_count.sum() == 15
    assert result.metric("AR100") == pytest.approx(1, abs=NEAR)


# --- mmdetection


def test_mmdetection(pets: Path) -> None:
    """mmengine's own evaluator runs the metric, as its loops do."""
    pytest.importorskip("mmengine", reason="mmengine is absent")
    from mmengine.evaluator import Evaluator as Runner
    from mmengine.structures import BaseDataElement, InstanceData

    metric = example("mmdet_metric")["DetapMetric"](ann_file=str(pets))
    runner = Runner([metric])
    runner.dataset_meta = {"classes": ("cat", "dog")}
    for _ in range(2):  # epochs
        for batch in ([3, 5], [8, 3]):  # the last one is padded
            samples = []
            for name in batch:
                boxes, scores, labels = FOUND[name]
                instances = InstanceData(
                    bboxes=torch.tensor(boxes).reshape(-1, 4),
                    scores=torch.tensor(scores),
                    labels=torch.tensor(labels, dtype=torch.int64),
                )
                sample = BaseDataElement(metainfo={"img_id": name, "ori_shape": (480, 640)})
                sample.pred_instances = instances
                samples.append(sample)
            runner.process(data_samples=samples, data_batch=None)
        values = runner.evaluate(3)
        check_pets({name.removeprefix("coco/"): value for name, value in values.items()})


# --- Detectron2


class Instances:
    """detectron2.structures.Instances: fields as attributes, a length, a device."""

    def __init__(self, image_size: tuple[int, int], **fields: Any) -> None:
        self.image_size = image_size
        self.__dict__ |= fields

    def __len__(self) -> int:
        return len(self.scores)  # type: ignore[attr-defined]


def test_detectron2(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = SimpleNamespace(
        json_file=str(pets), thing_dataset_id_to_contiguous_id={17: 0, 18: 1}
    )
    names = ("detectron2", "detectron2.data", "detectron2.evaluation", "detectron2.utils")
    modules = {name: ModuleType(name) for name in names}
    modules["detectron2.data"].MetadataCatalog = SimpleNamespace(  # type: ignore[attr-defined]
        get={"pets_val": metadata}.__getitem__
    )
    modules["detectron2.evaluation"].DatasetEvaluator = object  # type: ignore[attr-defined]
    modules["detectron2.utils"].comm = SimpleNamespace(  # type: ignore[attr-defined]
        gather=lambda data: [data], is_main_process=lambda: True
    )
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    evaluator = example("detectron2_evaluator")["DetapEvaluator"]("pets_val")
    for _ in range(2):  # epochs
        evaluator.reset()
        for batch in ([8, 3], [5]):
            inputs = [{"image_id": n, "file_name": "", "height": 480, "width": 640} for n in batch]
            outputs = []
            for image in batch:
                boxes, scores, labels = FOUND[image]
                fields = {
                    "pred_boxes": SimpleNamespace(tensor=torch.tensor(boxes).reshape(-1, 4)),
                    "scores": torch.tensor(scores),
                    "pred_classes": torch.tensor(labels, dtype=torch.int64),
                }
                outputs.append({"instances": Instances((480, 640), **fields)})
            evaluator.process(inputs, outputs)
        values = evaluator.evaluate()["bbox"]
        check_pets({name: value / 100 for name, value in values.items()})


# --- Ultralytics

ULTRALYTICS = """
import json, sys
from pathlib import Path
from PIL import Image
from tests.torch.references import torchvision

torchvision()
from ultralytics import YOLO
from ultralytics.models.yolo.detect import DetectionValidator

from detap.torch import UltralyticsEvaluator

folder = Path(sys.argv[1])
# Corners in pixels of the image on disk, whose sides are not those of the network's input.
images = {"a": ((200, 100), [(0, [20, 10, 80, 60])]), "b": ((90, 180), [(1, [9, 18, 45, 90])])}
for kind in ("images", "labels"):
    (folder / kind).mkdir()
for name, ((width, height), rows) in images.items():
    Image.new("RGB", (width, height)).save(folder / "images" / f"{name}.png")
    (c, (x1, y1, x2, y2)), = rows
    center = f"{(x1 + x2) / 2 / width} {(y1 + y2) / 2 / height}"
    size = f"{(x2 - x1) / width} {(y2 - y1) / height}"
    (folder / "labels" / f"{name}.txt").write_text(f"{c} {center} {size}")
data = folder / "data.yaml"
data.write_text(f"path: {folder}\\ntrain: images\\nval: images\\nnames: {{0: cat, 1: dog}}\\n")


class Knowing(DetectionValidator):
    # It finds what is there, the cat alone: boxes in the network's input, as non_max_suppression.
    def preprocess(self, batch):
        self.now = super().preprocess(batch)
        return self.now

    def postprocess(self, preds):
        outputs = []
        for at in range(len(self.now["im_file"])):
            image = self._prepare_batch(at, self.now)
            cat = image["cls"] == 0
            one = {"bboxes": image["bboxes"][cat], "cls": image["cls"][cat]}
            outputs.append(one | {"conf": one["cls"] + 0.5, "extra": one["bboxes"][:, :0]})
        return outputs


model = YOLO("yolo11n.yaml")
model.model.names = {0: "cat", 1: "dog"}
options = {
    "validator": Knowing, "imgsz": 64, "batch": 1, "plots": False, "device": "cpu", "workers": 0,
    "project": str(folder / "runs"), "verbose": False,
}
"""

CALLBACK = """
evaluator = UltralyticsEvaluator(model)
assert evaluator.result is None
for _ in range(2):
    model.val(data=str(data), **options)
    result = evaluator.result
    print(json.dumps({
        "images": [Path(name).name for name in result.images],
        "classes": result.classes,
        "corners": result.ground_truth.corners.tolist(),
        "found": result.detections.corners.tolist(),
        "AP": result.summary["AP"],
    }))
"""

SAVED = """
import runpy
example = runpy.run_path(sys.argv[2])
result = example["score"](model, str(data), **options)
theirs = model.metrics
print(json.dumps({
    "images": result.images,
    "classes": result.classes,
    "corners": result.detections.corners.tolist(),
    "AP": result.summary["AP"],
    "theirs": theirs.box.map,
}))
"""


def run_ultralytics(folder: Path, script: str, *words: str) -> list[dict[str, Any]]:
    """Run a script after the common part; return its lines of JSON."""
    torchvision()
    pytest.importorskip("cv2", reason="OpenCV, which Ultralytics needs, is absent")
    import importlib.util

    if importlib.util.find_spec("ultralytics") is None:
        pytest.skip("Ultralytics is absent")
    (folder / "val.py").write_text(ULTRALYTICS + script)
    (folder / "settings").mkdir()
    done = finished(
        [sys.executable, str(folder / "val.py"), str(folder), *words],
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "YOLO_CONFIG_DIR": str(folder / "settings")}
        | {"YOLO_OFFLINE": "true", "YOLO_AUTOINSTALL": "false"},
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_saved_json_of_ultralytics(tmp_path: Path) -> None:
    """Category ids are one above the classes of the data; the cat's AP is 1, the dog's 0."""
    (values,) = run_ultralytics(tmp_path, SAVED, str(LOOPS / "ultralytics_json.py"))
    assert values["images"] == ["a", "b"]
    assert values["classes"] == ["cat", "dog"]
    assert np.allclose(values["corners"], [[20, 10, 80, 60]], atol=1e-3)
    assert values["AP"] == pytest.approx(0.5, abs=NEAR)
    assert values["theirs"] == pytest.approx(0.4975, abs=1e-4)  # 0.995 for a perfect class


def test_ultralytics(tmp_path: Path) -> None:
    """The real validator on two images; boxes are converted back to the pixels of the files."""
    printed = run_ultralytics(tmp_path, CALLBACK)
    assert len(printed) == 2
    for values in printed:
        assert values["images"] == ["a.png", "b.png"]
        assert values["classes"] == ["cat", "dog"]
        assert np.allclose(values["corners"], [[20, 10, 80, 60], [9, 18, 45, 90]], atol=1e-3)
        assert np.allclose(values["found"], [[20, 10, 80, 60]], atol=1e-3)
        # The cat's AP is 1, the dog's 0.
        assert values["AP"] == pytest.approx(0.5, abs=NEAR)
