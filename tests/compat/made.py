"""Data sets made at random, small and full of what is awkward: ties, crowds, ids, empty images."""

from typing import Any

import numpy as np

Made = tuple[dict[str, Any], list[dict[str, Any]]]


def made(seed: int, *, images: int = 6, classes: int = 3, zero_id: bool = False) -> Made:
    """Return an instances file and a results file.

    Few places, sizes and scores are drawn from, so that overlaps and scores are often equal, and
    areas lie on the ends of area ranges.
    """
    random = np.random.default_rng(seed)
    image_ids = random.permutation(np.arange(10, 10 + 3 * images, 3)).tolist()
    category_ids = random.permutation(np.arange(1, 1 + 2 * classes, 2)).tolist()
    annotations = [
        {"id": n, "image_id": _one(random, image_ids), **_object(random, category_ids)}
        for n in random.permutation(np.arange(0 if zero_id else 1, 4 * images)).tolist()
    ]
    for annotation in annotations:
        annotation["iscrowd"] = int(random.random() < 0.15)
        annotation["area"] = _area(random, annotation["bbox"])
    results = [_detection(random, annotations, image_ids, category_ids) for _ in range(9 * images)]
    return {
        "info": {"description": f"made from {seed}"},
        "images": [{"id": i, "file_name": f"{i:06}.jpg"} for i in image_ids],
        "categories": [
            {"id": c, "name": f"class {c}", "supercategory": "odd" if c % 4 else "even"}
            for c in category_ids
        ],
        "annotations": annotations,
    }, results


def _one(random: np.random.Generator, values: list[int]) -> int:
    return values[int(random.integers(len(values)))]


def _object(random: np.random.Generator, category_ids: list[int]) -> dict[str, Any]:
    x, y = (8.0 * random.integers(0, 4, 2)).tolist()
    width, height = random.choice([16.0, 32.0, 33.25, 96.0], 2).tolist()
    return {"category_id": _one(random, category_ids), "bbox": [x, y, width, height]}


def _area(random: np.random.Generator, box: list[float]) -> float:
    return float(random.choice([1024.0, 9216.0, box[2] * box[3]]))


def _detection(
    random: np.random.Generator,
    annotations: list[dict[str, Any]],
    image_ids: list[int],
    category_ids: list[int],
) -> dict[str, Any]:
    score = float(random.choice([0.25, 0.5, 0.5, 0.75, random.random()]))
    if random.random() < 0.3:
        return {"image_id": _one(random, image_ids), **_object(random, category_ids)} | {
            "score": score
        }
    like = annotations[int(random.integers(len(annotations)))]
    moved = np.array(like["bbox"]) + random.choice([0.0, 0.0, 2.0, -3.5], 4)
    return {
        "image_id": like["image_id"],
        "category_id": like["category_id"],
        "bbox": moved.tolist(),
        "score": score,
    }
