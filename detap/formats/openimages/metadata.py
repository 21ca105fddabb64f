"""Open Images metadata: names in detections."""

import os
from typing import Any

from detap.formats.by_name.problems import Problems
from detap.formats.openimages.descriptions import Descriptions
from detap.formats.openimages.rows import read_rows
from detap.formats.reading.image_sizes import stem_of
from detap.formats.reading.placeholder import empty_ground_truth
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.tables.detection import GroundTruth


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and classes named in a file, unchecked."""
    problems = Problems(1)
    rows = read_rows(os.fspath(path), problems, limits, scored=True, as_is=True)
    names = Descriptions(options.get("class_descriptions"), problems, limits)
    classes = {names.name(label) or label for label in rows.labels}
    return empty_ground_truth(set(map(stem_of, rows.images)), classes)
