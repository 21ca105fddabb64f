"""CVAT metadata: names in detections, image attributes and file names."""

from typing import Any

from detap.formats.cvat.tables import exported
from detap.formats.cvat.xml import Annotations
from detap.formats.reading.placeholder import empty_ground_truth
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.tables.detection import GroundTruth, Name


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and classes named in a file, unchecked."""
    shapes = options.get("shapes", "reject")
    objects = Annotations(exported(str(path)), limits, shapes, scored=True).read().objects()
    return empty_ground_truth(objects.images, objects.classes)


def image_attribute(ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
    """Return an attribute of the images' elements; files are read again."""
    known = set(ground_truth.images)
    return {
        image: attributes[name]
        for source in ground_truth.files
        for image, attributes in _attributes(source.path).items()
        if name in attributes and image in known
    }


def file_names(ground_truth: GroundTruth) -> dict[Name, str]:
    """Return the file of each image with its folders; files are read again."""
    return image_attribute(ground_truth, "name")


def _attributes(path: str) -> dict[str, dict[str, str]]:
    return Annotations(path, DEFAULT_LIMITS, "bbox").read().attributes
