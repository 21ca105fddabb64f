"""Several processes give the values of one: sampler padding, uneven sizes, one without images."""

import sys
from pathlib import Path
from typing import Any

import pytest

import detap
from tests.conftest import ROOT
from tests.processes import finished
from tests.torch.references import torch as found_torch

torch = found_torch()
EXAMPLES = ROOT / "examples" / "loops"


def run(*words: str) -> list[str]:
    done = finished([sys.executable, *words], cwd=ROOT)
    return done.stdout.splitlines()


def in_one_process() -> list[str]:
    """Return the example's output for tables of all images."""
    code = compile((EXAMPLES / "distributed.py").read_text("utf-8"), "example", "exec")
    example: dict[str, Any] = {"__name__": "example"}
    exec(code, example)
    rows = [(image, example["detect"](image)) for image in example["IMAGES"]]
    detections = detap.Detections.from_arrays(
        image=[image for image, item in rows for _ in item["labels"]],
        label=[example["CLASSES"][label] for _, item in rows for label in item["labels"].tolist()],
        boxes=torch.cat([item["boxes"] for _, item in rows]),
        score=torch.cat([item["scores"] for _, item in rows]),
    )
    result = detap.evaluate(example["ground_truth"](), detections)
    assert 0.1 < result.summary["AP"] < 0.9
    return [
        f"{len(rows)} images, {len(detections)} detections",
        *(f"{name} {value.hex()}" for name, value in result.summary.items()),
    ]


@pytest.mark.parametrize("processes", [2, 3, 8])
def test_processes_give_the_values_of_one(processes: int) -> None:
    """37 images: with two, three and eight processes the sampler repeats one, two and three."""
    assert run(str(EXAMPLES / "distributed.py"), str(processes)) == in_one_process()


METRIC = """
import sys
import torch
from torch import distributed
from detap.torch import MeanAveragePrecision

def share(rank, processes):  # the last process sees nothing
    return range(rank, 7, processes - 1) if rank < processes - 1 else ()

def item(number):
    random = torch.Generator().manual_seed(number)
    boxes = torch.rand(number, 2, generator=random) * 100
    boxes = torch.cat([boxes, boxes + 30], 1)
    labels = torch.arange(number) % 2 + (number > 5)
    prediction = {"boxes": boxes + 2, "labels": labels, "scores": torch.full((number,), 0.5)}
    return prediction, {"boxes": boxes, "labels": labels}

def work(rank, processes, meeting_point, average):
    distributed.init_process_group(
        "gloo", init_method="file://" + meeting_point, rank=rank, world_size=processes
    )
    metric = MeanAveragePrecision(class_metrics=True, average=average)
    for number in share(rank, processes):
        prediction, target = item(number)
        metric.update([prediction], [target])
    values = metric.compute()
    alone = MeanAveragePrecision(class_metrics=True, average=average, sync_on_compute=False)
    for number in range(7):
        prediction, target = item(number)
        alone.update([prediction], [target])
    for key, value in alone.compute().items():
        assert torch.equal(values[key], value), (key, values[key], value)
    metric.reset()
    assert metric.compute()["map"] == -1
    distributed.barrier()
    distributed.destroy_process_group()

if __name__ == "__main__":
    torch.multiprocessing.spawn(work, (3, sys.argv[1], sys.argv[2]), nprocs=3)
"""


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_the_metric_gathers_the_images_of_all_processes(tmp_path: Path, average: str) -> None:
    """Each process gets the values of all, with classes that only one has seen."""
    script = tmp_path / "metric.py"
    script.write_text(METRIC)
    assert run(str(script), str(tmp_path / "meet"), average) == []
