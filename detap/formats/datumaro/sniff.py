"""Detect Datumaro's files."""

from detap.formats.reading.sniffing import json_paths


def fits(path: str) -> bool:
    """Return True if a file has Datumaro's keys. COCO's categories are a list."""
    paths = json_paths(path)
    is_object = ".categories" in paths and ".categories[]" not in paths
    return is_object and (".categories.label" in paths or ".items[]" in paths)
