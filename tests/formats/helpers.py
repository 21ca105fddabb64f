"""Parts that tests of several formats use."""

import struct
from typing import Any


def codes(table: Any) -> dict[str, int]:
    return {note.code: note.count for note in table.notes}


def png(width: int, height: int) -> bytes:
    """Return the first bytes of an image."""
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + bytes(5)
