"""A synthetic case with every kind of error, as files, and the command on it."""

import base64
import json
import random
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from detap.cli import main
from tests import coco
from tests.cli.conftest import written
from tests.coco import Row

NAMES = ("cat", "dog", "horse", "person", "traffic light", "bottle")
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "=cmd|' /C calc'!A0",
    "a&amp;\"quoted'",
    "\u202egnp.exe",
    "x" * 300,
)
SIZE = (640, 480)


def truth_of(names: tuple[str, ...] = NAMES, images: int = 24) -> dict[str, Any]:
    """Return ground truth: three objects of two classes in each image except the last."""
    rng = random.Random(7)
    rows = []
    for image in range(1, images):
        for n in range(3):
            box = [20 + 200 * n, rng.randrange(20, 200), rng.randrange(60, 150), 160]
            category = (image + n // 2) % len(names) + 1
            rows.append((image, category, box))
    return _with_files(rows, names, images)


def crowded_truth(classes: int) -> dict[str, Any]:
    """Return ground truth: 48 objects in each of at least 12 images, 3 or more of each class."""
    images = max(12, -(-3 * classes // 48))
    boxes = [[10 + 80 * (n % 8), 10 + 80 * (n // 8), 60, 60] for n in range(48)]
    rows = [(n // 48 + 1, n % classes + 1, boxes[n % 48]) for n in range(48 * images)]
    return _with_files(rows, [f"class {n:04}" for n in range(1, classes + 1)], images)


def _with_files(rows: Sequence[Row], names: Sequence[str], images: int) -> dict[str, Any]:
    """Return ground truth whose images have names of files."""
    files = {n: f"{n}.png" for n in range(1, images + 1)}
    return coco.truth_of(rows, dict(enumerate(names, 1)), files, size=SIZE)


def detections_for(
    truth: dict[str, Any], seed: int = 1, *, worse: float = 0.0
) -> list[dict[str, Any]]:
    """Return detections: correct, duplicate, misplaced, wrong class, background or missing."""
    rng = random.Random(seed)
    classes = len(truth["categories"])
    detections = []

    def add(image: int, category: int, box: list[float], score: float) -> None:
        detections.append(
            {"image_id": image, "category_id": category, "bbox": box, "score": round(score, 3)}
        )

    for row in truth["annotations"]:
        image, category, (x, y, w, h) = row["image_id"], row["category_id"], row["bbox"]
        fate = rng.random() * (1 - worse)
        if fate > 0.45:
            add(image, category, [x + 2, y + 1, w, h], rng.uniform(0.5, 0.99))
        if fate > 0.9:
            add(image, category, [x + 4, y + 2, w, h], rng.uniform(0.2, 0.6))
        if 0.25 < fate < 0.45:
            add(image, category, [x + w / 2, y, w, h], rng.uniform(0.2, 0.8))
        if fate < 0.2:
            add(image, category % classes + 1, [x, y, w, h], rng.uniform(0.3, 0.9))
    for image in truth["images"]:
        add(image["id"], rng.randrange(classes) + 1, [400, 400, 60, 40], rng.uniform(0.01, 0.7))
    return detections


def write_case(folder: Path, names: tuple[str, ...] = NAMES, images: int = 24) -> list[str]:
    """Write the case into a folder; return its command-line arguments."""
    return write_truth(folder, truth_of(names, images))


def write_truth(folder: Path, truth: dict[str, Any]) -> list[str]:
    """Write ground truth with detections and earlier ones; return command-line arguments."""
    (folder / "before.json").write_text(json.dumps(detections_for(truth, 2, worse=0.2)), "utf-8")
    return written(folder, truth, detections_for(truth))


def write_pictures(folder: Path, images: int = 24) -> None:
    """Write a picture for each image of the case into the folder ``images``."""
    from PIL import Image

    (folder / "images").mkdir()
    for n in range(1, images + 1):
        Image.new("RGB", SIZE, (10 * n, 120, 90)).save(folder / "images" / f"{n}.png")


def write_page(folder: Path, *more: str, names: tuple[str, ...] = NAMES, images: int = 24) -> Path:
    """Write the page of the case; return its path."""
    page = folder / "page.html"
    assert main(["report", *write_case(folder, names, images), *more, "-o", str(page), "-q"]) == 0
    return page


def model_of(page: Path) -> dict[str, Any]:
    """Return the data embedded in a page."""
    return json.loads(_element(page, "data"))  # type: ignore[no-any-return]


def at_step(text: str, step: int) -> int:
    """Return the sum up to a step of the changes that a text joins by commas."""
    return sum(int(value or 0) for value in text.split(",")[: step + 1])


def pictures_of(page: Path) -> dict[str, list[Any]]:
    """Return address, width and height of the pictures of a page by image number."""
    return json.loads(_element(page, "pictures"))  # type: ignore[no-any-return]


def images_of(page: Path) -> dict[str, Any]:
    """Return the columns of the images of a page."""
    return unpacked(_element(page, "images"))


def unpacked(text: str) -> dict[str, Any]:
    """Read the text that detap.report.packing writes."""
    data = zlib.decompress(base64.b64decode(text))
    end = 4 + int.from_bytes(data[:4], "little")

    def array(value: dict[str, Any]) -> Any:
        if value.keys() != {"type", "start", "length"}:
            return value
        return np.frombuffer(data, f"<{value['type']}", value["length"], end + value["start"])

    return json.loads(data[4:end], object_hook=array)  # type: ignore[no-any-return]


def _element(page: Path, name: str) -> str:
    text = page.read_text("utf-8")
    start = text.index(">", text.index(f'id="{name}"')) + 1
    return text[start : text.index("</script>", start)]
