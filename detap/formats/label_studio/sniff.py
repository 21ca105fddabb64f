"""Detect Label Studio's exports."""

from detap.formats.reading.sniffing import head, json_paths

_LISTS = ("[].annotations[]", "[].completions[]", "[].predictions[]")
_CSV = (b"annotation_id", b"annotator", b"lead_time")


def fits(path: str) -> bool:
    """Return True if a file is a list of tasks, JSON-MIN, or Label Studio's CSV."""
    data = head(path)
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        return all(name in data.split(b"\n")[0] for name in _CSV)
    paths = json_paths(path)
    # The data of a task may come after more results than the head of a file holds.
    tasks = any(
        ("[].data" in paths and name in paths) or f"{name}.result[]" in paths for name in _LISTS
    )
    return tasks or {"[].annotation_id", "[].lead_time"} <= paths
