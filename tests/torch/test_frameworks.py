"""The examples of Lightning, Accelerate, the Trainer and of COCO backends, on the libraries."""

import json
import os
import runpy
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from tests.conftest import ROOT
from tests.processes import finished
from tests.torch.references import torch as found_torch
from tests.torch.references import torchmetrics_map, torchvision

torch = found_torch()
LOOPS = ROOT / "examples" / "loops"
QUICKSTART = ROOT / "fixtures" / "quickstart" / "coco"


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(LOOPS / f"{name}.py"))


def run(command: list[str], folder: Path = ROOT, **environment: str) -> str:
    done = finished(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", **environment},
    )
    return done.stdout


# --- Lightning


def items(seed: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return detections and targets of 7 images: boxes near the true ones, some missing."""
    generator = torch.Generator().manual_seed(seed)
    made = []
    for image in range(7):
        corner = torch.rand(4, 2, generator=generator) * 100
        boxes = torch.cat([corner, corner + 40], 1)
        labels = torch.randint(0, 3, (4,), generator=generator)
        noise = torch.randn(4, 4, generator=generator) * 3
        scores = torch.rand(4, generator=generator)
        detections = {"boxes": boxes + noise, "labels": labels, "scores": scores}
        kept = {key: values[: image % 4 + 1] for key, values in detections.items()}
        made.append((kept, {"boxes": boxes, "labels": labels, "image_id": torch.tensor(image)}))
    return made


class Network(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Returns the detections that it was made with; images are their numbers."""

    def __init__(self, made: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        super().__init__()
        self.made = made

    def forward(self, images: list[int]) -> list[dict[str, Any]]:
        return [self.made[image][0] for image in images]


@pytest.mark.filterwarnings("ignore")
def test_lightning(tmp_path: Path) -> None:
    """Logged values are those of torchmetrics' metric."""
    lightning = pytest.importorskip("lightning", reason="Lightning is absent")
    made = items(0)
    loader = torch.utils.data.DataLoader(
        range(7), batch_size=3, collate_fn=lambda images: (images, [made[n][1] for n in images])
    )
    trainer = lightning.Trainer(
        accelerator="cpu", logger=False, enable_progress_bar=False, default_root_dir=tmp_path
    )
    module = example("lightning_module")["Detector"](Network(made))
    theirs = torchmetrics_map()()
    theirs.update([p for p, _ in made], [t for _, t in made])
    for _ in range(2):
        (logged,) = trainer.validate(module, loader, verbose=False)
        expected = theirs.compute()
        assert logged["val/map"] > 0.1
        assert set(logged) == {f"val/{key}" for key in expected if key.startswith("ma")}
        for key, value in logged.items():
            assert value == expected[key.removeprefix("val/")].item(), key


# --- transformers' Trainer


def with_torchmetrics(evaluation: Any, processor: Any) -> dict[str, Any]:
    """Compute metrics as Hugging Face's example of object detection does."""
    from transformers.image_transforms import center_to_corners_format
    from transformers.models.detr.modeling_detr import DetrObjectDetectionOutput

    metric = torchmetrics_map()(class_metrics=False)
    for outputs, targets in zip(evaluation.predictions, evaluation.label_ids, strict=True):
        sizes = torch.tensor(np.array([target["orig_size"] for target in targets]))
        output = DetrObjectDetectionOutput(
            logits=torch.tensor(outputs[1]), pred_boxes=torch.tensor(outputs[2])
        )
        preds = processor.post_process_object_detection(output, 0.0, sizes)
        truth = []
        for target in targets:
            height, width = target["orig_size"]
            boxes = center_to_corners_format(torch.tensor(target["boxes"]))
            boxes = boxes * torch.tensor([[width, height, width, height]])
            truth.append({"boxes": boxes, "labels": torch.tensor(target["class_labels"])})
        metric.update(preds, truth)
    return {key: value.item() for key, value in metric.compute().items() if value.ndim == 0}


@pytest.mark.filterwarnings("ignore")
def test_the_trainer_of_transformers(tmp_path: Path) -> None:
    """An untrained network; its first boxes are the ground truth of some images."""
    pytest.importorskip("transformers", reason="transformers is absent")
    pytest.importorskip("accelerate", reason="Accelerate is absent")
    torchvision()
    from transformers import (
        Trainer,
        TrainingArguments,
        YolosConfig,
        YolosForObjectDetection,
        YolosImageProcessor,
    )

    torch.manual_seed(1)
    sizes: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = YolosConfig(
        **sizes, intermediate_size=16, image_size=[32, 32], patch_size=16, num_detection_tokens=5
    )
    model: Any = YolosForObjectDetection(config)
    processor = YolosImageProcessor()
    pixels = torch.rand(6, 3, 32, 32)
    model.eval()
    with torch.inference_mode():
        boxes = model(pixel_values=pixels).pred_boxes
    data = [
        {
            "pixel_values": pixels[n],
            "labels": {
                "boxes": boxes[n][: n % 3] * 1.05,
                "class_labels": torch.tensor([0, 1])[: n % 3],
                "orig_size": torch.tensor([48, 64 + n]),
            },
        }
        for n in range(6)
    ]

    def collated(batch: list[dict[str, Any]]) -> dict[str, Any]:
        images = torch.stack([item["pixel_values"] for item in batch])
        return {"pixel_values": images, "labels": [item["labels"] for item in batch]}

    ours = partial(
        example("hf_trainer")["compute_metrics"],
        processor=processor,
        id2label={0: "cat", 1: "dog"},
        protocol="torchmetrics",
    )

    def both(evaluation: Any) -> dict[str, float]:
        values: dict[str, float] = ours(evaluation)
        theirs = with_torchmetrics(evaluation, processor)
        return values | {f"theirs_{key}": value for key, value in theirs.items()}

    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            str(tmp_path),
            per_device_eval_batch_size=2,
            eval_do_concat_batches=False,
            report_to=[],
            use_cpu=True,
        ),
        eval_dataset=data,
        data_collator=collated,
        compute_metrics=both,
    )
    values = trainer.evaluate()
    assert values["eval_AR100"] > 0.1
    for name, key in (("AP", "map"), ("AP50", "map_50"), ("AR1", "mar_1"), ("AR100", "mar_100")):
        assert values[f"eval_{name}"] == pytest.approx(values[f"eval_theirs_{key}"], abs=1e-6)
    with pytest.raises(ValueError, match="the last batch is smaller; choose a batch size"):
        trainer.evaluate(data[:5])


# --- Accelerate


@pytest.mark.parametrize("processes", [1, 2])
def test_accelerate(processes: int) -> None:
    """Six images in batches of two: with two processes, two images are repeated."""
    pytest.importorskip("accelerate", reason="Accelerate is absent")
    command = [sys.executable, "-m", "accelerate.commands.launch", "--cpu"]
    command += ["--num_processes", str(processes), "--main_process_port", "0"]
    printed = run([*command, str(LOOPS / "accelerate_loop.py")])
    values = json.loads(printed.splitlines()[-1])
    expected = detap.evaluate(str(QUICKSTART / "instances.json"), str(QUICKSTART / "results.json"))
    assert values == expected.metrics()


# --- COCO backends

SAHI = """
import json, sys
from sahi.scripts.coco_evaluation import evaluate
values = evaluate(*sys.argv[1:4], max_detections=100, return_dict=True)
import pycocotools.cocoeval
assert "detap" not in pycocotools.cocoeval.COCOeval.__module__
print(json.dumps(values["eval_results"]))
"""


def test_sahi(tmp_path: Path) -> None:
    """The values of its default backend, pycocotools."""
    pytest.importorskip("sahi", reason="SAHI is absent")
    files = [str(QUICKSTART / name) for name in ("instances.json", "results.json")]
    theirs = run([sys.executable, "-c", SAHI, *files, str(tmp_path)])
    ours = run([sys.executable, str(LOOPS / "coco_backends.py")])
    assert json.loads(ours.splitlines()[-1]) == json.loads(theirs.splitlines()[-1])


RF_DETR = """
import json, sys
if sys.argv[1] == "detap":
    from detap.compat.pycocotools import install
    install("ultrafast_pycocotools")
from tests.torch.test_frameworks import items
from rfdetr.training.coco_map import OnePassCocoMeanAveragePrecision
metric = OnePassCocoMeanAveragePrecision(
    class_metrics=True, backend="ufcoco" if sys.argv[1] == "detap" else sys.argv[1]
)
made = items(3)
metric.update([p for p, _ in made], [t for _, t in made])
print(json.dumps({key: value.tolist() for key, value in metric.compute().items()}))
"""


@pytest.mark.parametrize("backend", ["ufcoco", "faster_coco_eval"])
def test_rf_detr(backend: str) -> None:
    """The values of its own backends."""
    pytest.importorskip("rfdetr", reason="RF-DETR is absent")
    name = {"ufcoco": "ultrafast_pycocotools"}.get(backend, backend)
    pytest.importorskip(name, reason=f"{name} is absent")
    ours, theirs = (
        json.loads(run([sys.executable, "-c", RF_DETR, word]).splitlines()[-1])
        for word in ("detap", backend)
    )
    assert ours["map"] > 0.1
    assert ours == theirs


# --- Detectron2

DETECTRON2 = """
import contextlib, json, runpy, sys, types
sys.path.insert(0, sys.argv[1])
sys.modules["detectron2._C"] = types.ModuleType("detectron2._C")  # compiled operators, not used
import torch
from detectron2.data import MetadataCatalog
from detectron2.evaluation import COCOEvaluator, DatasetEvaluators, inference_on_dataset
from detectron2.structures import Boxes, Instances

files = [sys.argv[2] + name for name in ("instances.json", "results.json")]
truth, results = (json.loads(open(name).read()) for name in files)
ids = [category["id"] for category in truth["categories"]]
MetadataCatalog.get("made").set(
    json_file=files[0],
    thing_classes=[category["name"] for category in truth["categories"]],
    thing_dataset_id_to_contiguous_id={number: n for n, number in enumerate(ids)},
)

class Model(torch.nn.Module):
    def forward(self, inputs):
        outputs = []
        for image in inputs:
            rows = [row for row in results if row["image_id"] == image["image_id"]]
            instances = Instances((image["height"], image["width"]))
            boxes = torch.tensor([row["bbox"] for row in rows]).reshape(-1, 4)
            instances.pred_boxes = Boxes(torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], 1))
            instances.scores = torch.tensor([row["score"] for row in rows])
            labels = [ids.index(row["category_id"]) for row in rows]
            instances.pred_classes = torch.tensor(labels, dtype=torch.int64)
            outputs.append({"instances": instances})
        return outputs

images = [{"image_id": image.pop("id"), **image} for image in truth["images"]]
loader = [images[:2], images[2:5], images[5:]]
ours = runpy.run_path(sys.argv[3])["DetapEvaluator"]("made")
theirs = COCOEvaluator("made", ("bbox",), False, use_fast_impl=False)
values = []
with contextlib.redirect_stdout(sys.stderr):
    for evaluator in (ours, theirs):
        values.append(inference_on_dataset(Model(), loader, DatasetEvaluators([evaluator]))["bbox"])
print(json.dumps(values))
"""


def test_detectron2() -> None:
    """The values of its own evaluator; $DETAP_DETECTRON2 is a checkout, as there is no package."""
    checkout = os.environ.get("DETAP_DETECTRON2")
    if checkout is None:
        pytest.skip("no checkout of Detectron2 in $DETAP_DETECTRON2")
    words = [checkout, f"{QUICKSTART}/", str(LOOPS / "detectron2_evaluator.py")]
    ours, theirs = json.loads(run([sys.executable, "-c", DETECTRON2, *words]).splitlines()[-1])
    assert ours["AP50"] == pytest.approx(92.29922992299231)
    for name in ("AP", "AP50", "AP75", "APs", "APm", "APl"):
        assert ours[name] == pytest.approx(theirs[name], abs=1e-12)
