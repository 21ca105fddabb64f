"""Detect the kind of a file from its first bytes."""

import re

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_HEAD = 4096
_IMAGE = "an image", "use the JSON file"
_STARTS = (
    (b"version https://git-lfs", "a Git LFS pointer", "download the file with `git lfs pull`"),
    *((bytes((0x80, n)), "a Python pickle", "save it as JSON") for n in range(2, 6)),
    (b"\x1f\x8b", "gzip inside gzip", "decompress it once"),
    (b"PK\x03\x04", "a zip archive", "unpack it"),
    (b"\x93NUMPY", "a NumPy array", "save it as JSON"),
    (b"\x89PNG", *_IMAGE),
    (b"\xff\xd8\xff", *_IMAGE),
    (b"%PDF", "a PDF document", "use the JSON file"),
)
_HTML = re.compile(rb"(?i)<(?:!doctype html|html)")
HTML = "an HTML page", "the download failed: download the file itself"
_MERGE_MARKER = re.compile(rb"(?m)^(?:<{7} |>{7} |={7}\r?$)")


def kind_of(data: bytes) -> tuple[str, str]:
    """Return the name of the kind of a file and a hint for JSON; empty if unknown."""
    head = data[:_HEAD].removeprefix(BYTE_ORDER_MARK).lstrip()
    for start, name, hint in _STARTS:
        if head.startswith(start):
            return name, hint
    return HTML if _HTML.match(head) else merge_conflict(data)


def merge_conflict(data: bytes) -> tuple[str, str]:
    """Return the name of a file with merge conflicts and a hint; empty if it has none."""
    if _MERGE_MARKER.search(data):
        return "a file with unresolved merge conflicts", "resolve them and save it"
    return "", ""
