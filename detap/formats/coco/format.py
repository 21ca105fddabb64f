"""The COCO format."""

from collections.abc import Iterator, Mapping
from typing import Any

from detap.errors import Note
from detap.formats.base import Format
from detap.formats.coco import metadata, prefetch, tables
from detap.formats.content import Content
from detap.formats.options import GEOMETRIES, TRUTH
from detap.tables.detection import GroundTruth, Name


class Coco(Format):
    """COCO JSON: ``instances.json`` and a list of results."""

    by_ids = True
    geometries = GEOMETRIES
    has_attributes = True

    read_truth_file = staticmethod(tables.read_ground_truth)
    read_detections_file = staticmethod(tables.read_detections)
    placeholder = staticmethod(metadata.placeholder_ground_truth)

    def begin(self, role: str, path: str, reading: Mapping[str, Any]) -> Any:
        """Start to scan the file in a thread."""
        begin = prefetch.ground_truth if role == TRUTH else prefetch.detections
        return begin(path, **self.reader_options(role, reading))

    def attribute_values(self, ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
        """Return the value of a key of the image records."""
        return metadata.image_attribute(ground_truth, name)

    def file_names(self, ground_truth: GroundTruth) -> dict[Name, str]:
        """Return the ``file_name`` of each image."""
        return metadata.file_names(ground_truth)

    def write(self, content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
        """Yield ``instances.json`` and ``results.json``."""
        from detap.formats.coco import writer  # only to convert

        return writer.files(content, notes)
