"""The Open Images format."""

from detap.formats.base import Format
from detap.formats.openimages import metadata, tables


class OpenImages(Format):
    """CSV files of boxes in fractions of the image."""

    coordinates = "XMin, XMax, YMin, YMax"

    read_truth_file = staticmethod(tables.read_ground_truth)
    read_detections_file = staticmethod(tables.read_detections)
    placeholder = staticmethod(metadata.placeholder_ground_truth)
