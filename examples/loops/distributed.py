"""Evaluate a validation epoch of several processes with torch.distributed.

    python examples/loops/distributed.py 3

Each process evaluates its images, as assigned by DistributedSampler. At the end all send their
bytes to the first process, which merges them: one collective call of some 18 bytes per detection.
Images that the sampler repeats to give all processes the same number count once.
"""

import sys
import tempfile

import torch
from torch import distributed
from torch.utils.data import DataLoader, DistributedSampler

import detap

IMAGES = [f"{number:03d}.jpg" for number in range(37)]
CLASSES = ["cat", "dog", "bird"]


def boxes_of(image: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return random boxes (xyxy) and classes of an image."""
    random = torch.Generator().manual_seed(int(image[:3]))
    count = int(torch.randint(0, 6, (), generator=random))
    corner = torch.rand(count, 2, generator=random) * 200
    size = 20 + torch.rand(count, 2, generator=random) * 100
    return torch.cat([corner, corner + size], 1), torch.randint(0, 3, (count,), generator=random)


def detect(image: str) -> dict[str, torch.Tensor]:
    """Simulate a network: boxes near the true ones, some of the wrong class."""
    random = torch.Generator().manual_seed(1000 + int(image[:3]))
    boxes, labels = boxes_of(image)
    shift = torch.randn(boxes.shape, generator=random) * 5
    wrong = torch.rand(len(labels), generator=random) < 0.2
    scores = torch.rand(len(labels), generator=random).mul(20).round().div(20)  # they tie often
    return {"boxes": boxes + shift, "labels": (labels + wrong) % 3, "scores": scores}


def ground_truth() -> detap.GroundTruth:
    """Return the whole ground truth, which is the same in every process."""
    rows = [(image, *boxes_of(image)) for image in IMAGES]
    return detap.GroundTruth.from_arrays(
        image=[image for image, boxes, _ in rows for _ in range(len(boxes))],
        label=[CLASSES[label] for *_, labels in rows for label in labels.tolist()],
        boxes=torch.cat([boxes for _, boxes, _ in rows]),
        images=IMAGES,
        classes=CLASSES,
    )


def validate(rank: int, processes: int, meeting_point: str) -> None:
    """Run the epoch in one of the processes."""
    distributed.init_process_group(
        "gloo", init_method=f"file://{meeting_point}", rank=rank, world_size=processes
    )
    truth = ground_truth()
    evaluator = detap.Evaluator(truth, boxes="xyxy", repeats="identical")
    sampler = DistributedSampler(IMAGES, processes, rank, shuffle=True)
    for names in DataLoader(IMAGES, batch_size=4, sampler=sampler):
        detections = [detect(name) for name in names]
        evaluator.update(
            names,
            [item["boxes"] for item in detections],
            [item["scores"] for item in detections],
            [[CLASSES[label] for label in item["labels"].tolist()] for item in detections],
        )
    blobs = [None] * processes if rank == 0 else None
    distributed.gather_object(evaluator.to_bytes(), blobs)
    if rank == 0:
        result = evaluator.merge(blobs).compute()
        print(f"{len(result.images)} images, {result.detections_count.sum()} detections")
        for name, value in result.summary.items():
            print(name, value.hex())
    distributed.destroy_process_group()


def main() -> None:
    """Start the processes."""
    processes = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    with tempfile.TemporaryDirectory() as folder:
        arguments = (processes, f"{folder}/meet")
        torch.multiprocessing.spawn(validate, arguments, nprocs=processes)


if __name__ == "__main__":
    main()
