"""The KITTI format."""

from detap.formats.base import Format
from detap.formats.kitti import metadata, sniff, tables


class Kitti(Format):
    """A text file per image, with fifteen columns."""

    protocol = "kitti"
    image_folders = ("../image_2", "../images", ".")

    read_truth_file = staticmethod(tables.read_ground_truth)
    read_detections_file = staticmethod(tables.read_detections)
    placeholder = staticmethod(metadata.placeholder_ground_truth)

    def fits(self, path: str) -> bool:
        """Return True if the first line is a word and 14 or 15 numbers."""
        return sniff.fits(path)
