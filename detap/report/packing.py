"""Values and arrays as one deflated text, for the script of the page.

The bytes are the length of a JSON text (four bytes), the text, and the arrays. An array in the text
is an object of its ``type``, its ``start`` among the bytes and its ``length``.
"""

import json
from base64 import b64encode
from typing import Any
from zlib import compress

import numpy as np

MOST_BYTES = 20_000_000  # of a page in one file
LIMIT = f"a page has at most {MOST_BYTES / 1e6:g} MB; use --page-data DIR"
_INTEGERS = (np.uint8, np.int8, np.uint16, np.int16, np.int32)
_ALIGNMENT = 8
_LEVEL = 1  # of zlib: higher ones save little of measured numbers, and take much longer


def packed(values: Any) -> str:
    """Return values, arrays among them, as base64 of deflated bytes."""
    arrays: list[bytes] = []
    end = 0

    def described(value: Any) -> Any:
        nonlocal end
        if isinstance(value, dict):
            return {key: described(item) for key, item in value.items()}
        if not isinstance(value, np.ndarray):
            return value
        if value.dtype.kind in "iu":  # the smallest type that holds them all
            low, high = value.min(initial=0), value.max(initial=0)
            fitting = (t for t in _INTEGERS if np.iinfo(t).min <= low and high <= np.iinfo(t).max)
            value = value.astype(next(fitting))
        data = value.astype(value.dtype.newbyteorder("<")).tobytes()
        start, end = end, end + len(data) + -len(data) % _ALIGNMENT
        arrays.append(data.ljust(end - start, b"\0"))
        name = f"{value.dtype.kind}{value.dtype.itemsize}"
        return {"type": name, "start": start, "length": value.size}

    text = json.dumps(described(values), separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 4) % _ALIGNMENT)
    head = len(text).to_bytes(4, "little") + text
    return b64encode(compress(b"".join([head, *arrays]), _LEVEL)).decode()
