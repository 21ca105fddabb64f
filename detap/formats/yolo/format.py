"""The YOLO format."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from detap.errors import Note
from detap.formats.base import Format
from detap.formats.content import Content
from detap.formats.image_folders import ImageFolder
from detap.formats.options import GEOMETRIES
from detap.formats.yolo import geometry, metadata, sniff, tables
from detap.tables.detection import GroundTruth


class Yolo(Format):
    """Text files of boxes in fractions of the image, with a `data.yaml`."""

    geometries = GEOMETRIES
    geometry_protocols = MappingProxyType(
        {"keypoints": "ultralytics-pose", "polygons": "coco-polygon"}
    )

    read_truth_file = staticmethod(tables.read_ground_truth)
    read_detections_file = staticmethod(tables.read_detections)
    placeholder = staticmethod(metadata.placeholder_ground_truth)

    def fits(self, path: str) -> bool:
        """Return True for a `data.yaml`, ``obj.data``, its folder, or a class and fractions."""
        return sniff.fits(path)

    def geometry(self, path: str, reading: Mapping[str, Any]) -> str:
        """Return "keypoints", "polygons" for oriented boxes, or ""."""
        return geometry.geometry(path, reading)

    def image_files(self, ground_truth: GroundTruth) -> tuple[list[ImageFolder], Mapping[str, str]]:
        """Return the image folders of the label folders, and file names if they have several."""
        return metadata.image_files(ground_truth)

    def write(self, content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
        """Yield `data.yaml`, a list of images, labels and predictions."""
        from detap.formats.yolo import writer  # only to convert

        return writer.files(content, notes)
