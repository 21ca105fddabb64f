"""Predictions in YOLO's format by themselves, without the ground truth that they are for."""

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
    """Return the images and classes that the files name.

    It is a lenient look: the reader then reads the files against these names, so that everything
    else about them is checked as always.
    """
    folder = predictions_folder(os.fspath(path))
    listed = options.get("dt_class_names") or options.get("class_names")
    classes = set(ClassNames.read(listed, Problems(1), limits).names)
    if not classes:
        for member in folder.members.values():
            lines = read_bytes(folder.file(member), limits).split(b"\n")
            words = {line.split(None, 1)[0] for line in lines if line.strip()}
            classes |= {word.decode().lstrip("0") or "0" for word in words if word.isdigit()}
    return empty_ground_truth(folder.members, classes)
