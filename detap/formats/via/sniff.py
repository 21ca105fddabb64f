"""Detect files of VIA."""

from detap.formats.reading.sniffing import head, json_paths

COLUMNS = (
    *("filename", "file_size", "file_attributes", "region_count", "region_id"),
    *("region_shape_attributes", "region_attributes"),
)
PROJECT = "_via_img_metadata"


def fits(path: str) -> bool:
    """Return True if a CSV has VIA's header, or a JSON file its keys."""
    if path.lower().endswith((".csv", ".csv.gz")):
        line = head(path).removeprefix(b"\xef\xbb\xbf").lstrip(b"# ").partition(b"\n")[0]
        return {b"filename", b"region_shape_attributes"} <= {*line.strip().split(b",")}
    paths = json_paths(path)
    return (
        "._via_settings" in paths
        or f".{PROJECT}" in paths
        or any(map(_of_image, paths, [paths] * len(paths)))
    )


def _of_image(path: str, paths: frozenset[str]) -> bool:
    """Return True if a path is that of the file name of an image."""
    above = path.removesuffix(".filename")
    regions = {f"{above}.regions", f"{above}.base64_img_data"}
    return above not in ("", path) and "[]" not in above and not paths.isdisjoint(regions)
