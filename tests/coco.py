"""COCO files, also from rows of image, class and box."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from detap.formats import read_detections, read_ground_truth
from detap.tables.detection import Detections, GroundTruth

Files = tuple[Path, Path]

Row = tuple[int, int, Sequence[float]]
"""Image, class, and box as x, y, width, height."""
Scored = tuple[int, int, Sequence[float], float]
"""A row with its score."""


def truth_of(
    rows: Iterable[Row],
    names: Mapping[int, str],
    images: Iterable[int] | Mapping[int, str | None],
    *,
    size: tuple[int, int] | None = (640, 480),
    crowd: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """Return ground truth in COCO format; names are by class, `images` may have file names.

    Each annotation has `more`.
    """
    sides = {} if size is None else {"width": size[0], "height": size[1]}
    files = images if isinstance(images, Mapping) else dict.fromkeys(images)
    return {
        "images": [
            {"id": image, **sides} | ({} if file is None else {"file_name": file})
            for image, file in files.items()
        ],
        "categories": [{"id": label, "name": name} for label, name in names.items()],
        "annotations": [
            {
                "id": number,
                "image_id": image,
                "category_id": label,
                "bbox": box,
                "area": box[2] * box[3],
                "iscrowd": int(crowd),
                **more,
            }
            for number, (image, label, box) in enumerate(rows, 1)
        ],
    }


def results_of(rows: Iterable[Row | Scored], score: float = 0.9) -> list[dict[str, Any]]:
    """Return detections in COCO results format, with this score or their own."""
    return [
        {"image_id": image, "category_id": label, "bbox": box, "score": (*own, score)[0]}
        for image, label, box, *own in rows
    ]


def saved(folder: Path, truth: Any, results: Any) -> Files:
    """Write ground truth and detections; return their paths."""
    files = folder / "gt.json", folder / "dt.json"
    for path, content in zip(files, (truth, results), strict=True):
        path.write_text(json.dumps(content), "utf-8")
    return files


def read(files: Files, **reading: Any) -> tuple[GroundTruth, Detections]:
    """Return the tables of ground truth and detections."""
    truth = read_ground_truth(files[0], **reading)
    return truth, read_detections(files[1], truth, **reading)
