"""A VOC evaluator of the usual kind: plain Python and NumPy, one class after another.

Written for this benchmark. It does what the scripts in common use do, at their level of care for
speed: every annotation file through xml.etree, a dictionary per object, the detections of a class
sorted by score and looped over, NumPy for the overlaps of one detection with the boxes of its
image. As they do: the pixel edge of + 1, strictly above the threshold, all-point interpolation.
Nothing is kept in a pickle between runs.

    run_voc_baseline.py VOC_TREE DETECTION_FOLDER

prints the mean AP, then the AP of each class sorted by name, as a JSON list.
"""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np


def parse_annotation(path):
    objects = []
    for element in ElementTree.parse(path).findall("object"):
        box = element.find("bndbox")
        objects.append(
            {
                "name": element.find("name").text,
                "difficult": int(element.find("difficult").text),
                "bbox": [float(box.find(tag).text) for tag in ("xmin", "ymin", "xmax", "ymax")],
            }
        )
    return objects


def ground_truths_of_class(annotations, name):
    by_image, positives = {}, 0
    for image, objects in annotations.items():
        mine = [entry for entry in objects if entry["name"] == name]
        difficult = np.array([entry["difficult"] for entry in mine]).astype(bool)
        by_image[image] = {
            "bbox": np.array([entry["bbox"] for entry in mine]),
            "difficult": difficult,
            "claimed": [False] * len(mine),
        }
        positives += int(np.sum(~difficult))
    return by_image, positives


def read_detections(path):
    rows = [line.split() for line in path.read_text().splitlines()]
    images = [row[0] for row in rows]
    scores = np.array([float(row[1]) for row in rows])
    boxes = np.array([[float(value) for value in row[2:]] for row in rows])
    order = np.argsort(-scores, kind="stable")
    return [images[row] for row in order], boxes[order]


def evaluate_class(annotations, name, path, threshold=0.5):
    truths, positives = ground_truths_of_class(annotations, name)
    images, boxes = read_detections(path)
    true = np.zeros(len(images))
    false = np.zeros(len(images))
    for row, image in enumerate(images):
        truth, box = truths[image], boxes[row]
        best, which = -np.inf, -1
        if truth["bbox"].size > 0:
            others = truth["bbox"]
            left, top = np.maximum(others[:, 0], box[0]), np.maximum(others[:, 1], box[1])
            right, bottom = np.minimum(others[:, 2], box[2]), np.minimum(others[:, 3], box[3])
            width = np.maximum(right - left + 1.0, 0.0)
            height = np.maximum(bottom - top + 1.0, 0.0)
            inter = width * height
            union = (
                (box[2] - box[0] + 1.0) * (box[3] - box[1] + 1.0)
                + (others[:, 2] - others[:, 0] + 1.0) * (others[:, 3] - others[:, 1] + 1.0)
                - inter
            )
            overlaps = inter / union
            best, which = np.max(overlaps), np.argmax(overlaps)
        if best > threshold:
            if not truth["difficult"][which]:
                if not truth["claimed"][which]:
                    true[row] = 1.0
                    truth["claimed"][which] = True
                else:
                    false[row] = 1.0
        else:
            false[row] = 1.0
    true, false = np.cumsum(true), np.cumsum(false)
    return all_point(true / positives, true / np.maximum(true + false, np.finfo(np.float64).eps))


def all_point(recall, precision):
    recall = np.concatenate(([0.0], recall, [1.0]))
    precision = np.concatenate(([0.0], precision, [0.0]))
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    steps = np.where(recall[1:] != recall[:-1])[0]
    return np.sum((recall[steps + 1] - recall[steps]) * envelope[steps + 1])


def main(tree, detections):
    names = (tree / "ImageSets/Main/test.txt").read_text().split()
    annotations = {name: parse_annotation(tree / "Annotations" / f"{name}.xml") for name in names}
    classes = {path.stem.rpartition("_test_")[2]: path for path in detections.glob("*.txt")}
    values = [float(evaluate_class(annotations, name, classes[name])) for name in sorted(classes)]
    print(json.dumps([float(np.mean(values)), *values]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
