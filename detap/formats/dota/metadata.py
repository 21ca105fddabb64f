"""DOTA metadata: names in detections."""

import os
from typing import Any

from detap.formats.reading.placeholder import empty_ground_truth
from detap.formats.text.folder import detections_folder
from detap.formats.text.layout import class_of_stem
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.tables.detection import GroundTruth


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and classes named in results, unchecked."""
    folder = detections_folder(os.fspath(path))
    images = {columns[0] for lines in folder.columns(limits) for columns in lines}
    classes = {class_of_stem(stem, ()).name for stem in folder.members}
    return empty_ground_truth(images, classes)
