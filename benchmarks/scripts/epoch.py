"""Time an evaluator over an epoch of many detections, and take its memory.

    epoch.py DETECTIONS

Each image has 100 detections of 80 classes, most of them near one of its 7 ground truths; an update
has 16 images. Prints the seconds of the updates and of ``compute``, and bytes per detection: of the
evaluator, and of the peak of ``compute`` on top of it. Memory is taken from ``/proc`` of Linux.
"""

import json
import re
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

from detap import Evaluator, GroundTruth

BATCH, IMAGE, TRUTHS, CLASSES = 16, 100, 7, 80
STATUS = Path("/proc/self/status")


def memory(name):
    """Return a field of the status of this process, in bytes."""
    return int(re.search(rf"{name}:\s+(\d+) kB", STATUS.read_text())[1]) * 1024


def ground_truth(random, images):
    sides = random.uniform(5, 200, (images * TRUTHS, 4))
    return GroundTruth.from_arrays(
        image=np.repeat(np.arange(images), TRUTHS),
        label=random.integers(0, CLASSES, images * TRUTHS),
        boxes=sides,
        box_format="xywh",
        classes=range(CLASSES),
    ), sides.reshape(images, TRUTHS, 4)


def batch(random, names, truth, sides):
    """Return the detections of a batch: lists of boxes, scores and labels."""
    near = random.integers(0, TRUTHS, (len(names), IMAGE))
    boxes = np.take_along_axis(sides[names], near[:, :, None], axis=1)
    boxes += random.uniform(0, 20, boxes.shape)
    labels = truth.label.reshape(-1, TRUTHS)[names[:, None], near]
    other = random.random(labels.shape) < 0.4
    labels = np.where(other, random.integers(0, CLASSES, labels.shape), labels)
    return list(boxes), list(random.random(labels.shape)), list(labels)


def main(words):
    count = int(words[0])
    random = np.random.default_rng(0)
    truth, sides = ground_truth(random, count // IMAGE)
    evaluator = Evaluator(truth)
    before, updates = memory("VmRSS"), 0.0
    for first in range(0, len(truth.images), BATCH):
        names = np.arange(first, min(first + BATCH, len(truth.images)))
        rows = batch(random, names, truth, sides)
        start = perf_counter()
        evaluator.update(names, *rows)
        updates += perf_counter() - start
    held = memory("VmRSS")
    start = perf_counter()
    score = evaluator.compute().summary["AP"]
    report = {
        "detections": count,
        "updates": updates,
        "rest": perf_counter() - start,
        "held": (held - before) / count,
        "peak": (memory("VmHWM") - held) / count,
        "AP": score,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1:])
