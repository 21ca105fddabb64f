"""Detect the kind of a file from its first bytes."""

import re

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

MERGE_MARKER = re.compile(rb"(?m)^(?:<{7} |>{7} |={7}\r?$)")

_HEAD = 4096
_STARTS = (
    (b"version https://git-lfs", "git-lfs"),
    *((bytes((0x80, protocol)), "pickle") for protocol in range(2, 6)),
    (b"\x1f\x8b", "gzip"),
    (b"PK\x03\x04", "zip"),
    (b"\x93NUMPY", "numpy"),
    (b"\x89PNG", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"%PDF", "pdf"),
)
_HTML = re.compile(rb"(?i)<(?:!doctype html|html)")


def kind_of(data: bytes) -> str:
    """Return the kind of a file, or an empty string if unknown."""
    head = data[:_HEAD].removeprefix(BYTE_ORDER_MARK).lstrip()
    for start, kind in _STARTS:
        if head.startswith(start):
            return kind
    if _HTML.match(head):
        return "html"
    return "merge" if MERGE_MARKER.search(data) else ""
