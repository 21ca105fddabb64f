"""Time an evaluator in a training loop: arrays in memory and reused ground truth.

    loop.py TOOL arrays|updates GROUND_TRUTH DETECTIONS

``arrays`` passes all detections at once; ``updates`` passes 16 images at a time, shuffled. Prints
the seconds of the updates and of the rest, and the AP, as a JSON object; files are read and arrays
created before timing.
"""

import contextlib
import json
import os
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

BATCH = 16


class Epoch:
    """Data of a loop: the ground-truth file, and detection arrays per image."""

    def __init__(self, truth_path, results_path):
        self.truth_path = truth_path
        self.instances = json.loads(Path(truth_path).read_bytes())
        results = json.loads(Path(results_path).read_bytes())
        self.image = np.array([row["image_id"] for row in results])
        self.label = np.array([row["category_id"] for row in results])
        self.boxes = np.array([row["bbox"] for row in results], np.float64)
        self.score = np.array([row["score"] for row in results], np.float64)

    def rows(self):
        """Return the detections as (N, 7) rows for pycocotools' loadRes."""
        return np.column_stack([self.image, self.boxes, self.score, self.label])

    def of_images(self):
        """Return the name, boxes, scores and labels of each image, shuffled."""
        names = np.array([image["id"] for image in self.instances["images"]])
        names = np.random.default_rng(0).permutation(names)
        order = np.argsort(self.image, kind="stable")
        first, last = (np.searchsorted(self.image, names, s, order) for s in ("left", "right"))
        rows = [order[a:b] for a, b in zip(first, last, strict=True)]
        return [
            (int(name), self.boxes[at], self.score[at], self.label[at])
            for name, at in zip(names, rows, strict=True)
        ]

    def batches(self):
        """Return the same, 16 images at a time: names, and lists of boxes, scores and labels."""
        images = self.of_images()
        return [
            tuple(map(list, zip(*images[at : at + BATCH], strict=True)))
            for at in range(0, len(images), BATCH)
        ]


def timed(update, compute, batches):
    """Run a loop; return the seconds of its updates and of the rest, and the AP."""
    start = perf_counter()
    for batch in batches:
        update(*batch)
    middle = perf_counter()
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        score = compute()
    return {"updates": middle - start, "rest": perf_counter() - middle, "AP": float(score)}


def detap_arrays(epoch):
    from detap import Detections, evaluate, read_ground_truth

    truth = read_ground_truth(epoch.truth_path)

    def compute():
        detections = Detections.from_arrays(
            image=epoch.image,
            label=epoch.label,
            boxes=epoch.boxes,
            score=epoch.score,
            box_format="xywh",
        )
        return evaluate(truth, detections).summary["AP"]

    return timed(None, compute, ())


def detap_updates(epoch):
    import detap

    evaluator = detap.Evaluator(detap.read_ground_truth(epoch.truth_path))
    return timed(evaluator.update, lambda: evaluator.compute().summary["AP"], epoch.batches())


def detap_torch_updates(epoch):
    from detap.torch import MeanAveragePrecision

    return torchmetrics_loop(epoch, MeanAveragePrecision(box_format="xywh"))


def hotcoco_arrays(epoch):
    from hotcoco import COCO, COCOeval

    return like_pycocotools(COCO(epoch.truth_path), "load_res", COCOeval, epoch)


def ultrafast_arrays(epoch):
    from ultrafast_pycocotools import COCO, COCOeval

    return like_pycocotools(COCO(epoch.truth_path, verbose=False), "loadRes", COCOeval, epoch)


def like_pycocotools(truth, load, evaluator_class, epoch):
    rows = epoch.rows()

    def compute():
        evaluator = evaluator_class(truth, getattr(truth, load)(rows), "bbox")
        evaluator.run()
        return evaluator.stats[0]

    return timed(None, compute, ())


def hotcoco_updates(epoch):
    from hotcoco import StreamingEval

    images = {image["id"]: image for image in epoch.instances["images"]}
    truths = {name: [] for name in images}
    for row in epoch.instances["annotations"]:
        truths[row["image_id"]].append(row)
    batches = [
        (
            [images[name] for name in names],
            [row for name in names for row in truths[name]],
            np.concatenate(
                [
                    np.column_stack([np.full(len(score), name), box, score, label])
                    for name, box, score, label in zip(names, *columns, strict=True)
                ]
            ),
        )
        for names, *columns in epoch.batches()
    ]
    stream = StreamingEval(epoch.instances["categories"])

    def compute():
        evaluator = stream.finalize()
        evaluator.accumulate()
        evaluator.summarize()
        return evaluator.stats[0]

    return timed(stream.update, compute, batches)


def as_dicts(names, boxes, scores, labels):
    return [
        {"image_id": name, "boxes": box, "scores": score, "labels": label}
        for name, box, score, label in zip(names, boxes, scores, labels, strict=True)
    ]


def vernier_arrays(epoch):
    from vernier.instance import Bbox, CocoDataset, Evaluator

    truth = CocoDataset.from_json(Path(epoch.truth_path).read_bytes())
    batches = [as_dicts(*batch) for batch in epoch.batches()]
    rows = [row for batch in batches for row in batch]
    evaluator = Evaluator(iou=Bbox(), parity_mode="strict")
    threads = os.cpu_count()
    return timed(None, lambda: evaluator.evaluate(truth, rows, num_threads=threads).stats[0], ())


def torchmetrics_updates(epoch):
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.torch.references import torchmetrics_map

    return torchmetrics_loop(epoch, torchmetrics_map()(box_format="xywh"))


def torchmetrics_loop(epoch, metric):
    import torch

    metric.warn_on_many_detections = False
    truths = {image["id"]: [] for image in epoch.instances["images"]}
    for row in epoch.instances["annotations"]:
        truths[row["image_id"]].append(row)
    batches = []
    for names, boxes, scores, labels in epoch.batches():
        preds = [
            {
                "boxes": torch.tensor(box, dtype=torch.float32),
                "scores": torch.tensor(score, dtype=torch.float32),
                "labels": torch.tensor(label),
            }
            for box, score, label in zip(boxes, scores, labels, strict=True)
        ]
        target = [
            {
                "boxes": torch.tensor([row["bbox"] for row in truths[name]]).reshape(-1, 4),
                "labels": torch.tensor([row["category_id"] for row in truths[name]]).long(),
                "iscrowd": torch.tensor([row["iscrowd"] for row in truths[name]]).long(),
                "area": torch.tensor([row["area"] for row in truths[name]]).float(),
            }
            for name in names
        ]
        batches.append((preds, target))
    return timed(metric.update, lambda: metric.compute()["map"], batches)


TOOLS = {
    ("detap", "arrays"): detap_arrays,
    ("hotcoco", "arrays"): hotcoco_arrays,
    ("ultrafast-pycocotools", "arrays"): ultrafast_arrays,
    ("vernier", "arrays"): vernier_arrays,
    ("detap", "updates"): detap_updates,
    ("hotcoco", "updates"): hotcoco_updates,
    ("detap.torch", "updates"): detap_torch_updates,
    ("torchmetrics", "updates"): torchmetrics_updates,
}


def main(words):
    tool, what, truth_path, results_path = words
    print(json.dumps(TOOLS[tool, what](Epoch(truth_path, results_path))))


if __name__ == "__main__":
    main(sys.argv[1:])
