"""Image sizes from file headers, without decoding.

References: ITU-T T.81 (JPEG), annex B; Exif 2.32, 4.6.4 (orientation); PNG, third edition, 11.2.1;
BITMAPCOREHEADER and BITMAPINFOHEADER of Windows; GIF89a, 18; RFC 9649 (WebP), 2.
"""

import os
import struct
from typing import BinaryIO

from detap.errors import InputError, Problem
from detap.io.paths import shown
from detap.io.stream import open_regular, refuse_os_error

IMAGE_SUFFIXES = (
    *(".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif"),
    *(".jpe", ".avif", ".dng", ".heic", ".mpo", ".pfm"),
)
"""Suffixes of image files, the commonest first; not all of these headers are supported here."""

_HEAD = 32
_ORIENTATION = 0x0112
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE = frozenset(range(0xD0, 0xD9)) | {0x01}
"""JPEG markers without a segment: RST, SOI and TEM."""


def image_size(path: str) -> tuple[int, int]:
    """Return the width and height of an image, swapped for an Exif orientation of 5 to 8."""
    with os.fdopen(open_regular(path), "rb", buffering=4096) as file:
        try:
            size = _size(file, path)
        except OSError as error:
            refuse_os_error(path, error)
        except (struct.error, IndexError):
            size = (0, 0)
    if min(size) <= 0:
        raise InputError(Problem(shown(path), "", "image is damaged", _HINT))
    return size


_HINT = "pass the image sizes (--image-sizes FILE)"


def _size(file: BinaryIO, path: str) -> tuple[int, int]:
    head = file.read(_HEAD)
    if head.startswith(b"\xff\xd8\xff"):
        file.seek(2)
        return _jpeg(file)
    if head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR":
        width, height = struct.unpack_from(">II", head, 16)
        return width, height
    if head.startswith((b"GIF87a", b"GIF89a")):
        width, height = struct.unpack_from("<HH", head, 6)
        return width, height
    if head.startswith(b"BM"):
        core = head[14] == 12
        width, height = struct.unpack_from("<HH" if core else "<ii", head, 18)
        return width, abs(height)  # negative: rows from top to bottom
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return _webp(head)
    message = "not a JPEG, PNG, BMP, GIF or WebP image; cannot read the size"
    raise InputError(Problem(shown(path), "", message, _HINT))


def _webp(head: bytes) -> tuple[int, int]:
    kind = head[12:16]
    if kind == b"VP8X" and len(head) >= 30:
        width, height = (int.from_bytes(head[at : at + 3], "little") + 1 for at in (24, 27))
        return width, height
    if kind == b"VP8L" and head[20] == 0x2F and len(head) >= 25:
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and head[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", head, 26)
        return width & 0x3FFF, height & 0x3FFF
    return 0, 0


def _jpeg(file: BinaryIO) -> tuple[int, int]:
    """Read the segments up to the first scan; `file` is after the first marker."""
    size, turned = (0, 0), False
    while (marker := _marker(file)) not in {0xDA, 0xD9}:  # a scan, or the end
        if marker in _ALONE:
            continue
        (length,) = struct.unpack(">H", file.read(2))
        if length < 2:  # includes its own two bytes
            return 0, 0
        if marker in _FRAMES:
            _, height, width = struct.unpack_from(">BHH", file.read(length - 2))
            size = width, height
        elif marker == 0xE1:
            turned |= _orientation(file.read(length - 2)) >= 5
        else:
            file.seek(length - 2, os.SEEK_CUR)
    return size[::-1] if turned else size


def _marker(file: BinaryIO) -> int:
    """Return the next marker, skipping fill bytes 0xFF."""
    if file.read(1) != b"\xff":
        return 0xD9  # not a marker: damaged or truncated
    while (byte := file.read(1)) == b"\xff":
        pass
    return byte[0]


def _orientation(segment: bytes) -> int:
    """Return the orientation of an Exif segment; 1 (upright) if there is none."""
    if not segment.startswith(b"Exif\0\0"):
        return 1
    tiff = segment[6:]
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(tiff[:4])
    try:
        if order is None:
            return 1
        (at,) = struct.unpack_from(order + "I", tiff, 4)
        (entries,) = struct.unpack_from(order + "H", tiff, at)
        for entry in range(at + 2, at + 2 + 12 * entries, 12):
            tag, kind, count, value = struct.unpack_from(order + "HHIH", tiff, entry)
            if tag == _ORIENTATION and kind == 3 and count == 1:
                return int(value) if value <= 8 else 1
    except struct.error:
        pass
    return 1
