"""Random COCO contents: boxes, masks in every form, keypoints."""

from typing import Any

import numpy as np
from pycocotools import mask as mask_api

Random = np.random.Generator
Record = dict[str, Any]

HEIGHT, WIDTH = 60, 80
CLASSES = (1, 2, 5, 9)
KEYPOINTS = 17


def case(random: Random, kind: str) -> tuple[Record, list[Record]]:
    """Return the contents of a ground truth and of a results file of bbox, segm or keypoints."""
    images = random.choice(40, random.integers(1, 4), replace=False).tolist()
    scale = float(random.choice([1.0, 6.0, 31 / 3]))
    truths = [
        _truth(random, number, images, scale, kind) for number in range(1, random.integers(2, 14))
    ]
    with_box = kind == "bbox" or random.random() < 0.3
    results = [
        _result(random, truths, (images, scale), kind, with_box)
        for _ in range(random.integers(1, 30))
    ]
    categories: list[Record] = [{"id": label, "name": f"c{label}"} for label in CLASSES]
    for category in categories if kind == "keypoints" else []:
        category["keypoints"] = [f"k{n}" for n in range(KEYPOINTS)]
    sizes = [{"id": image, "width": WIDTH, "height": HEIGHT} for image in images]
    return {"images": sizes, "categories": categories, "annotations": truths}, results


def _truth(random: Random, number: int, images: list[int], scale: float, kind: str) -> Record:
    box = _box(random, scale)
    area = [0.0, abs(box[2] * box[3]), 1024.0, 1024.5, 9216.0, 1e4]
    record: Record = {
        "id": number,
        "image_id": int(random.choice(images)),
        "category_id": int(random.choice(CLASSES)),
        "bbox": box,
        "area": float(random.choice(area, p=[0.1, 0.5, 0.1, 0.1, 0.1, 0.1])),
        "iscrowd": int(random.random() < 0.15),
    }
    if random.random() < 0.1:
        record["ignore"] = 1
    if kind == "segm":
        record["segmentation"] = _segmentation(random, compressed=False)
    if kind == "keypoints":
        record["keypoints"] = _pose(random, box)
        record["num_keypoints"] = sum(v > 0 for v in record["keypoints"][2::3])
    return record


def _result(
    random: Random,
    truths: list[Record],
    where: tuple[list[int], float],
    kind: str,
    boxed: bool,
) -> Record:
    images, scale = where
    box = _box(random, scale, negative=kind == "bbox")
    record: Record = {
        "image_id": int(random.choice(images)),
        "category_id": int(random.choice(CLASSES)),
        "score": float(random.choice([0.1, 0.3, 0.3, 0.5, 0.7, 0.9, -1.0, 12.0])),
    }
    near = truths[random.integers(len(truths))] if random.random() < 0.7 else None
    if near is not None:
        record |= {name: near[name] for name in ("image_id", "category_id")}
        x, y, w, h = near["bbox"]
        box = [x, y, w * float(random.choice([1, 1, 0.8, 0.6])), h]
    if boxed:
        record["bbox"] = box
    if kind == "segm":
        record["segmentation"] = _segmentation(random, compressed=True)
        if near is not None and random.random() < 0.7:
            record["segmentation"] = _shifted(random, near["segmentation"])
    if kind == "keypoints":
        record["keypoints"] = _pose(random, box, spread=0.0 if near is None else 0.05)
    return record


def _box(random: Random, scale: float, *, negative: bool = False) -> list[float]:
    """Return x, y, width, height; some have no area, and some negative sizes."""
    x, y = (random.integers(0, 6, 2) * scale).tolist()
    w, h = (random.choice([1.0, 2.0, 3.0, 4 / 3, 0.1], 2) * scale).tolist()
    if random.random() < 0.1:
        w, h = (0.0, h) if random.random() < 0.5 else (w, 0.0)
    if negative and random.random() < 0.05:
        w, h = -w, h * float(random.choice([1, -1]))
    return [x, y, w, h]


def _bitmap(random: Random) -> Any:
    """Return a mask of up to three rectangles and some noise."""
    bitmap = np.zeros((HEIGHT, WIDTH), np.uint8, order="F")
    for _ in range(random.choice([0, 1, 1, 1, 2, 3])):
        top, left = int(random.integers(HEIGHT)), int(random.integers(WIDTH))
        height, width = random.integers(1, 50, 2)
        bitmap[top : top + height, left : left + width] = 1
    if random.random() < 0.3:
        bitmap ^= np.asfortranarray(random.random((HEIGHT, WIDTH)) < 0.02)
    return bitmap


def _segmentation(random: Random, *, compressed: bool) -> Any:
    """Return compressed run lengths, or polygons or run lengths as a list."""
    form = "compressed" if compressed else str(random.choice(["polygon", "compressed", "list"]))
    if form == "polygon":
        return [_polygon(random) for _ in range(random.integers(1, 4))]
    return encoded(_bitmap(random), as_list=form == "list")


def _polygon(random: Random) -> list[float]:
    """Return a polygon of three to eight corners, some beyond the image, some on whole pixels."""
    corners = random.uniform([-5, -5], [WIDTH + 5, HEIGHT + 5], (random.integers(3, 9), 2))
    if random.random() < 0.5:
        corners = np.round(corners)
    values: list[float] = corners.ravel().tolist()
    return values


def encoded(bitmap: Any, *, as_list: bool = False) -> Record:
    """Return a bitmap as COCO's run lengths, compressed or as a list."""
    height, width = bitmap.shape
    if not as_list:
        return {"size": [height, width], "counts": mask_api.encode(bitmap)["counts"].decode()}
    pixels = bitmap.ravel(order="F").astype(np.int8)
    changes = np.flatnonzero(np.diff(pixels, prepend=np.int8(0)))
    counts = np.diff([0, *changes.tolist(), len(pixels)]).tolist()
    return {"size": [height, width], "counts": counts}


def _shifted(random: Random, segmentation: Any) -> Record:
    """Return a mask as run lengths, shifted by a few pixels."""
    runs = segmentation
    if isinstance(runs, list):
        runs = mask_api.merge(mask_api.frPyObjects(runs, HEIGHT, WIDTH))
    elif isinstance(runs["counts"], list):
        runs = mask_api.frPyObjects(runs, HEIGHT, WIDTH)
    moved = np.roll(mask_api.decode(runs), random.integers(-2, 3, 2), (0, 1))
    return encoded(np.asfortranarray(moved))


def _pose(random: Random, box: list[float], *, spread: float | None = None) -> list[float]:
    """Return keypoints in and around a box; one set in six has no labeled keypoint."""
    x, y, w, h = box
    if spread is None:
        spread = 0.0
        visible = random.choice([0, 1, 2], KEYPOINTS) * (random.random() < 5 / 6)
    else:
        visible = np.full(KEYPOINTS, 2)
    steps = np.linspace(0, 1, KEYPOINTS)
    noise = random.normal(0, spread, (2, KEYPOINTS)) if spread else np.zeros((2, KEYPOINTS))
    across = x + w * (steps + noise[0])
    down = y + h * (steps[::-1] + noise[1])
    columns = np.stack([across, down, visible.astype(float)], axis=1)
    columns[columns[:, 2] == 0, :2] = 0
    values: list[float] = columns.ravel().tolist()
    return values
