"""The DOTA format."""

from detap.formats.base import Format
from detap.formats.dota import metadata, sniff, tables


class Dota(Format):
    """A text file per image or class, with four corners per line."""

    protocol = "dota"
    boxes = ()
    coordinates = "x1 y1 x2 y2 x3 y3 x4 y4"
    image_folders = ("../images", ".")

    read_truth_file = staticmethod(tables.read_ground_truth)
    read_detections_file = staticmethod(tables.read_detections)
    placeholder = staticmethod(metadata.placeholder_ground_truth)

    def fits(self, path: str) -> bool:
        """Return True if the first line has eight coordinates in pixels."""
        return sniff.fits(path)
