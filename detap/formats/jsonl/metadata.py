"""JSON Lines metadata: names in detections, image attributes and file names."""

import json
from typing import Any

from detap.formats.jsonl.lines import read_lines
from detap.formats.reading.placeholder import empty_ground_truth
from detap.io.json_text import integer
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.stream import read_bytes
from detap.tables.detection import GroundTruth, Name

_SUFFIXES = (".jsonl", ".jsonl.gz")


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and classes named in detections."""
    lines = read_lines(path, limits, scored=True)
    for name in options.keys() - {"as_is", "boxes", "limits"}:
        del options[name]
    return empty_ground_truth(lines.sizes, set(lines.classes))


def image_attribute(ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
    """Return the value of a key of the images' lines; files are read again."""
    values: dict[Name, Any] = {}
    for source in ground_truth.files:
        if not source.path.lower().endswith(_SUFFIXES):
            continue  # a list of names
        lines = read_lines(source.path, DEFAULT_LIMITS, scored=False)
        text = read_bytes(source.path).decode("utf-8-sig")
        records = (json.loads(line, parse_int=integer) for line in text.split("\n") if line.strip())
        for image, record in zip(lines.sizes, records, strict=True):
            if record.get(name) is not None:
                values[image] = record[name]
    return values


def file_names(ground_truth: GroundTruth) -> dict[Name, str]:
    """Return the file_name of each image that has one; files are read again."""
    return image_attribute(ground_truth, "file_name")
