"""KITTI metadata: names in detections."""

import os
from typing import Any

from detap.formats.kitti.lines import one_spelling
from detap.formats.kitti.tables import results_folder
from detap.formats.reading.placeholder import empty_ground_truth
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.tables.detection import GroundTruth


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and types named in results, unchecked."""
    folder = results_folder(os.fspath(path))
    types = {columns[0] for lines in folder.columns(limits) for columns in lines}
    return empty_ground_truth(folder.members, one_spelling(types))
