"""The JSON Lines format."""

from typing import Any

from detap.formats.base import Format
from detap.formats.jsonl import metadata, tables
from detap.tables.detection import GroundTruth, Name


class JsonLines(Format):
    """An image per line, with its objects."""

    by_ids = True
    has_attributes = True

    read_truth_file = staticmethod(tables.read_ground_truth)
    read_detections_file = staticmethod(tables.read_detections)
    placeholder = staticmethod(metadata.placeholder_ground_truth)

    def attribute_values(self, ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
        """Return the value of a key of the images' lines."""
        return metadata.image_attribute(ground_truth, name)

    def file_names(self, ground_truth: GroundTruth) -> dict[Name, str]:
        """Return the ``file_name`` of each image that has one."""
        return metadata.file_names(ground_truth)
