"""Random data sets, small and difficult: ties, crowds, ids, empty images.

Either boxes, or the same with masks or keypoints.
"""

from typing import Any

import numpy as np
from pycocotools import mask

from detap.tables._runs import decoded

Made = tuple[dict[str, Any], list[dict[str, Any]]]


def made(seed: int, *, images: int = 6, classes: int = 3, zero_id: bool = False) -> Made:
    """Return an instances file and a results file.

    Positions, sizes and scores have few values, so that IoUs and scores are often equal, and
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
        w, h = annotation["bbox"][2:]
        annotation["area"] = float(random.choice([1024.0, 9216.0, w * h]))
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


def made_of(kind: str, seed: int, *, zero_id: bool = False) -> Made:
    """Return a data set for a type of evaluation."""
    data = made(seed, zero_id=zero_id)
    change = {"bbox": None, "segm": _with_masks, "keypoints": _with_keypoints}[kind]
    if change is not None:
        change(data, np.random.default_rng([seed, 1]))
    return data


SIDE = 144
"""Height of the images: all boxes end before."""

_PARTS = [
    lambda x, y, right, bottom: [[x, y, x, bottom, right, bottom, right, y]],
    lambda x, y, right, bottom: [[x, y, right, y, x, bottom]],
    lambda x, y, right, bottom: [
        [x, y, x, y + 8, right, y + 8, right, y],
        [x + 2.5, y, x + 2.5, bottom, x + 9.5, bottom, x + 9.5, y],
    ],
]


def _with_masks(data: Made, random: np.random.Generator) -> None:
    """Add polygons, run lengths as lists and strings; results with or without boxes."""
    truth, results = data
    for image in truth["images"]:
        image.update(height=SIDE, width=SIDE + 16)
    for annotation in truth["annotations"]:
        annotation["segmentation"] = _mask(random, annotation["bbox"], int(random.integers(3)))
    with_boxes, all_strings = random.random() < 0.4, random.random() < 0.6
    for record in results:
        form = 2 if not with_boxes or all_strings else int(random.integers(4))
        if form < 3:
            record["segmentation"] = _mask(random, record["bbox"], form)
        if not with_boxes:
            del record["bbox"]


def _mask(random: np.random.Generator, box: list[float], form: int) -> Any:
    """Return a mask within a box: polygons (0), run lengths as a list (1) or as a string (2)."""
    x, y, width, height = box
    parts = _PARTS[int(random.integers(3))](x, y, x + width, y + height)
    if form == 0:
        return parts
    runs = mask.merge(mask.frPyObjects(parts, SIDE, SIDE + 16))
    if form == 2:
        return {**runs, "counts": runs["counts"].decode()}
    return {"size": runs["size"], "counts": np.asarray(decoded(runs["counts"], 2**32 - 1)).tolist()}


def _with_keypoints(data: Made, random: np.random.Generator) -> None:
    """Add 17 keypoints, few or none labeled; results with or without boxes."""
    truth, results = data
    for annotation in truth["annotations"]:
        labeled = random.choice([0, 1, 2], 17, p=[0.6, 0.2, 0.2])
        labeled *= int(random.random() < 0.8)
        annotation["keypoints"] = _keypoints(random, annotation["bbox"], labeled.tolist())
        counted = int(np.count_nonzero(labeled)) if random.random() < 0.9 else 0
        annotation["num_keypoints"] = counted
    with_boxes = random.random() < 0.4
    for record in results:
        record["keypoints"] = _keypoints(random, record["bbox"], [1] * 17)
        if not with_boxes:
            del record["bbox"]


def _keypoints(random: np.random.Generator, box: list[float], labels: list[int]) -> list[Any]:
    """Return x, y and label of each: near the same places of boxes of one size."""
    steps = np.linspace(0, 1, len(labels))
    x = box[0] + box[2] * steps + random.choice([0, 0, 1, 2.5], len(labels))
    y = box[1] + box[3] * steps[::-1]
    if random.random() < 0.5:
        x, y = np.rint(x), np.rint(y)
    rows = zip(x.tolist(), y.tolist(), labels, strict=True)
    values = [value for row in rows for value in row]
    return [int(v) for v in values] if random.random() < 0.3 else values
