"""YOLO metadata: names in predictions."""

import os
from typing import Any

from detap.formats.by_name.problems import Problems
from detap.formats.reading.placeholder import empty_ground_truth
from detap.formats.text.class_names import ClassNames
from detap.formats.yolo.tables import predictions_folder
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.io.stream import read_bytes
from detap.tables.detection import GroundTruth


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and classes named in files, unchecked."""
    folder = predictions_folder(os.fspath(path))
    names_file = options.get("dt_class_names") or options.get("class_names")
    classes = set(ClassNames.read(names_file, Problems(1), limits).names)
    if not classes:
        for member in folder.members.values():
            lines = read_bytes(folder.file(member), limits).split(b"\n")
            words = {line.split()[0] for line in lines if line.strip()}
            classes |= {word.decode().lstrip("0") or "0" for word in words if word.isdigit()}
    return empty_ground_truth(folder.members, classes)
