"""Detect CreateML files."""

from detap.formats.reading.sniffing import json_paths


def fits(path: str) -> bool:
    """Return True if a file is a list of images with annotations."""
    paths = json_paths(path)
    by_name = "[].image" in paths and "[].image[]" not in paths
    return "[].annotations[]" in paths and (by_name or "[].annotations[].coordinates" in paths)
