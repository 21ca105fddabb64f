"""Decompressed size of an Arrow file, from its message headers.

Arrow decompresses a buffer to the length in its header, so a small file could use all memory.

Source: the Arrow columnar format, "Serialization and Interprocess Communication", and the schemas
``Message.fbs`` and ``Schema.fbs`` for the numbers of fields.
"""

import struct
from typing import BinaryIO, NamedTuple

MAGIC = b"ARROW1"
CONTINUATION = b"\xff\xff\xff\xff"

_AFTER_MAGIC = 8
_DICTIONARY, _RECORDS = 2, 3
_MAX_METADATA = 64 << 20


def batches_of(file: BinaryIO) -> tuple[list[int], int]:
    """Return the rows of each batch, and the decompressed size; ValueError for a damaged file."""
    rows: list[int] = []
    size = 0
    position = start_of(file)
    try:
        while (message := _message(file, position)) is not None:
            header_type, batch, body, position = message
            if header_type == _RECORDS:
                rows.append(batch.number(0, "<q"))
            if header_type in (_DICTIONARY, _RECORDS):
                size += _expanded(file, batch, body, position)
    except (struct.error, IndexError) as error:
        raise ValueError(f"message at byte {position}: {error}") from None
    return rows, size


def start_of(file: BinaryIO) -> int:
    """Seek to the first message of a file or stream, and return its position."""
    file.seek(0)
    return file.seek(_AFTER_MAGIC if file.read(len(MAGIC)) == MAGIC else 0)


class FlatTable(NamedTuple):
    """A FlatBuffers table: fields located through a list of offsets."""

    data: bytes
    position: int

    def read(self, kind: str, position: int) -> int:
        """Return an integer of a struct format."""
        if position < 0:
            raise IndexError(position)
        number: int = struct.unpack_from(kind, self.data, position)[0]
        return number

    def field(self, number: int) -> int:
        """Return the position of a field; 0 if absent."""
        fields, entry = self.position - self.read("<i", self.position), 4 + 2 * number
        offset = self.read("<H", fields + entry) if entry < self.read("<H", fields) else 0
        return offset and self.position + offset

    def number(self, number: int, kind: str) -> int:
        """Return an integer field, 0 by default."""
        position = self.field(number)
        return position and self.read(kind, position)

    def target(self, number: int) -> int:
        """Return the position that a field refers to; 0 if absent."""
        position = self.field(number)
        return position and position + self.read("<I", position)


def _message(file: BinaryIO, position: int) -> tuple[int, FlatTable, int, int] | None:
    """Return a message's type, header, body position and the next position; None at the end."""
    file.seek(position)
    head = file.read(8)
    if head[:4] != CONTINUATION:  # format before Arrow 0.15
        head, position = head[:4], position - 4
    else:
        head = head[4:]
    if len(head) < 4:
        raise ValueError("file is truncated")
    length = struct.unpack("<i", head)[0]
    if length == 0:
        return None
    if not 0 < length <= _MAX_METADATA:
        raise IndexError(length)
    file.seek(position + 8)
    data = file.read(length)
    message = FlatTable(data, struct.unpack_from("<I", data)[0])
    header, size = message.target(2), message.number(3, "<q")
    if not header or size < 0:
        raise IndexError(size)
    body = position + 8 + length
    return message.number(1, "<B"), FlatTable(data, header), body, body + size


def _expanded(file: BinaryIO, batch: FlatTable, body: int, end: int) -> int:
    """Return the decompressed size of a batch's buffers."""
    if not batch.field(3):  # no compression
        return end - body
    size, start = 0, batch.target(2)
    for index in range(batch.read("<I", start) if start else 0):
        offset, length = struct.unpack_from("<qq", batch.data, start + 4 + 16 * index)
        if length < 8:
            continue
        if not 0 <= offset <= end - body - length:
            raise IndexError(offset)
        file.seek(body + offset)
        expanded = struct.unpack("<q", file.read(8))[0]
        size += length if expanded == -1 else max(expanded, 0)
    return size
