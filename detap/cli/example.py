"""A small synthetic data set: images of animals, and results of two detectors.

It is drawn from a fixed pseudo-random sequence and is the same on every machine.
"""

import json
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any

WIDTH, HEIGHT, IMAGES = 320, 240, 12
CLASSES = ("cat", "dog", "bird")
_COLORS = ((201, 111, 48), (120, 84, 60), (70, 110, 190))
_MEADOW = (150, 180, 120)
_SIZES = ((70, 50), (90, 70), (36, 28))

Box = tuple[float, float, float, float]  # x, y, width, height in pixels


class Sequence:
    """Pseudo-random numbers from 0 to 1 (Lehmer's generator)."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def __next__(self) -> float:
        self.state = self.state * 48271 % 0x7FFFFFFF
        return self.state / 0x7FFFFFFF

    def between(self, low: float, high: float) -> float:
        """Return the next number, scaled to a range."""
        return low + (high - low) * next(self)


def objects_by_image() -> list[list[tuple[int, Box]]]:
    """Return the class and box of each object, by image; none overlap."""
    draw = Sequence(7)
    images = []
    for _ in range(IMAGES):
        objects: list[tuple[int, Box]] = []
        for slot in range(int(draw.between(2, 5))):
            label = int(draw.between(0, len(CLASSES)))
            width, height = _SIZES[label]
            x = (slot % 2) * WIDTH / 2 + draw.between(5, WIDTH / 2 - width - 5)
            y = (slot // 2) * HEIGHT / 2 + draw.between(5, HEIGHT / 2 - height - 5)
            objects.append((label, (float(round(x)), float(round(y)), width, height)))
        images.append(objects)
    return images


def detections(seed: int, missed: float, loose: float) -> Iterator[dict[str, Any]]:
    """Yield detections: a fraction is `missed`, and boxes are off by up to a fraction `loose`."""
    draw = Sequence(seed)
    for image, objects in enumerate(objects_by_image(), 1):
        for label, (x, y, width, height) in objects:
            if next(draw) < missed:
                continue
            taken = label if next(draw) > 0.05 else (label + 1) % len(CLASSES)
            box = [
                round(x + width * draw.between(-loose, loose), 1),
                round(y + height * draw.between(-loose, loose), 1),
                round(width * draw.between(1 - loose, 1 + loose), 1),
                round(height * draw.between(1 - loose, 1 + loose), 1),
            ]
            yield _detection(image, taken, box, draw.between(0.5, 1))
            if next(draw) < 0.08:  # duplicate
                yield _detection(image, taken, box, draw.between(0.2, 0.5))
        if next(draw) < 0.4:  # background
            box = [round(draw.between(0, 200), 1), round(draw.between(0, 150), 1), 40.0, 30.0]
            yield _detection(image, int(draw.between(0, 3)), box, draw.between(0.1, 0.7))


def _detection(image: int, label: int, box: list[float], score: float) -> dict[str, Any]:
    return {"image_id": image, "category_id": label + 1, "bbox": box, "score": round(score, 3)}


def instances() -> dict[str, Any]:
    """Return the ground truth as the content of a COCO file."""
    size = {"width": WIDTH, "height": HEIGHT}
    annotations: list[dict[str, Any]] = []
    for image, objects in enumerate(objects_by_image(), 1):
        for label, box in objects:
            ids = {"id": len(annotations) + 1, "image_id": image, "category_id": label + 1}
            annotations.append({**ids, "bbox": [*box], "area": box[2] * box[3], "iscrowd": 0})
    return {
        "images": [{"id": n, "file_name": f"{n:02}.png", **size} for n in range(1, IMAGES + 1)],
        "annotations": annotations,
        "categories": [{"id": number, "name": name} for number, name in enumerate(CLASSES, 1)],
    }


def picture(objects: list[tuple[int, Box]]) -> bytes:
    """Return an image as PNG, with an ellipse per object in the color of its class."""
    rows = bytearray()
    for y in range(HEIGHT):
        rows.append(0)  # no filter
        line = bytearray(bytes(_MEADOW) * WIDTH)
        for label, (left, top, width, height) in objects:
            level = (y + 0.5 - top) / height * 2 - 1
            if abs(level) < 1:
                half = (1 - level * level) ** 0.5 * width / 2
                begin, end = round(left + width / 2 - half), round(left + width / 2 + half)
                line[3 * begin : 3 * end] = bytes(_COLORS[label]) * (end - begin)
        rows += line
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(bytes(rows), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def write(folder: str) -> None:
    """Write ground truth, two detectors and images into an existing folder."""
    contents = {
        "instances.json": instances(),
        "yesterday.json": list(detections(seed=11, missed=0.08, loose=0.06)),
        "today.json": list(detections(seed=13, missed=0.2, loose=0.16)),
    }
    for name, value in contents.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(value, file)
    pictures = os.path.join(folder, "pictures")
    os.mkdir(pictures)
    for image, objects in enumerate(objects_by_image(), 1):
        with open(os.path.join(pictures, f"{image:02}.png"), "wb") as file:
            file.write(picture(objects))
