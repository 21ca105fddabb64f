"""The VOC format."""

from collections.abc import Iterator, Mapping
from typing import Any

from detap.errors import Note
from detap.formats.base import Format
from detap.formats.content import Content
from detap.formats.image_folders import ImageFolder
from detap.formats.voc import metadata, tables
from detap.tables.detection import GroundTruth, Name


class Voc(Format):
    """PASCAL VOC: folders of XML, or of text files with one box per line."""

    protocol = "voc2012"
    has_attributes = True

    read_truth_file = staticmethod(tables.read_ground_truth)
    read_detections_file = staticmethod(tables.read_detections)
    placeholder = staticmethod(metadata.placeholder_ground_truth)

    def attribute_values(self, ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
        """Return the text of an element of the images' XML."""
        return metadata.image_attribute(ground_truth, name)

    def file_names(self, ground_truth: GroundTruth) -> dict[Name, str]:
        """Return the stem of each XML with the suffix of its ``filename``."""
        return metadata.file_names(ground_truth)

    def image_files(self, ground_truth: GroundTruth) -> tuple[list[ImageFolder], Mapping[str, str]]:
        """Return the folders that may have the images, and the names of images in sub-folders."""
        return metadata.image_files(ground_truth)

    def write(self, content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
        """Yield annotations, an image set, and text files of detections."""
        from detap.formats.voc import writer  # only to convert

        return writer.files(content, notes)
