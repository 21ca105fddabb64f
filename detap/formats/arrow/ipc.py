"""How large an Arrow file is once it is expanded, told before it is.

Arrow expands a compressed buffer to whatever length stands before it, so that a small file could
ask for all memory. This walks from message to message without reading what they hold.

Source: the Arrow columnar format, "Serialization and Interprocess Communication", and the schemas
``Message.fbs`` and ``Schema.fbs`` for the numbers of fields.
"""

import struct
from typing import BinaryIO

MAGIC = b"ARROW1"
CONTINUATION = b"\xff\xff\xff\xff"

_AFTER_MAGIC = 8
_DICTIONARY, _RECORDS = 2, 3
_MOST_METADATA = 64 << 20


def batches_of(file: BinaryIO) -> tuple[list[int], int]:
    """Return the rows of each record batch, and the bytes that all buffers take when expanded.

    Parameters
    ----------
    file : binary file
        At its start; it is left somewhere else.

    Raises
    ------
    ValueError
        Where it is damaged.
    """
    rows: list[int] = []
    size = 0
    at = start_of(file)
    try:
        while (message := _message(file, at)) is not None:
            header_type, batch, body, at = message
            if header_type == _RECORDS:
                rows.append(batch.long(0))
            if header_type in (_DICTIONARY, _RECORDS):
                size += _expanded(file, batch, body, at)
    except (struct.error, IndexError) as error:
        raise ValueError(f"message at byte {at}: {error}") from None
    return rows, size


def start_of(file: BinaryIO) -> int:
    """Go to where the messages begin, in a file or a stream, and return the place."""
    file.seek(0)
    start = _AFTER_MAGIC if file.read(len(MAGIC)) == MAGIC else 0
    return file.seek(start)


class _Table:
    """A table of a flatbuffer: fields that are found through a list of offsets."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.at = at
        self._fields = at - self._number("<i", at)

    def _number(self, kind: str, at: int) -> int:
        if at < 0:
            raise IndexError(at)
        found: int = struct.unpack_from(kind, self.data, at)[0]
        return found

    def _field(self, number: int) -> int:
        """Return where a field stands; 0 where it is left out."""
        place = 4 + 2 * number
        if place >= self._number("<H", self._fields):
            return 0
        offset = self._number("<H", self._fields + place)
        return offset and self.at + offset

    def long(self, number: int) -> int:
        """Return a whole number of 64 bits, 0 by default."""
        at = self._field(number)
        return self._number("<q", at) if at else 0

    def byte(self, number: int) -> int:
        at = self._field(number)
        return self._number("<B", at) if at else 0

    def table(self, number: int) -> "_Table | None":
        at = self._field(number)
        return _Table(self.data, at + self._number("<I", at)) if at else None

    def ranges(self, number: int) -> list[tuple[int, int]]:
        """Return a list of pairs: where a buffer begins, and how long it is."""
        at = self._field(number)
        if not at:
            return []
        start = at + self._number("<I", at)
        count = self._number("<I", start)
        if start + 4 + 16 * count > len(self.data):
            raise IndexError(count)
        return [struct.unpack_from("<qq", self.data, start + 4 + 16 * k) for k in range(count)]


def _message(file: BinaryIO, at: int) -> tuple[int, _Table, int, int] | None:
    """Return a message's type, its header, where its body begins, and where the next message does.

    None stands for the mark of the end, without which a file is a part of one.
    """
    file.seek(at)
    head = file.read(8)
    if head[:4] != CONTINUATION:  # as it was before Arrow 0.15
        head, at = head[:4], at - 4
    else:
        head = head[4:]
    if len(head) < 4:
        raise ValueError("it ends before its end, as if it were cut off")
    length = struct.unpack("<i", head)[0]
    if length == 0:
        return None
    if not 0 < length <= _MOST_METADATA:
        raise IndexError(length)
    file.seek(at + 8)
    data = file.read(length)
    message = _Table(data, struct.unpack_from("<I", data)[0])
    header, size = message.table(2), message.long(3)
    if header is None or size < 0:
        raise IndexError(size)
    body = at + 8 + length
    return message.byte(1), header, body, body + size


def _expanded(file: BinaryIO, batch: _Table, body: int, end: int) -> int:
    """Return the bytes of a batch's buffers when expanded."""
    records = batch
    if records.table(3) is None:  # no compression
        return end - body
    size = 0
    for offset, length in records.ranges(2):
        if length < 8:
            continue
        if not 0 <= offset <= end - body - length:
            raise IndexError(offset)
        file.seek(body + offset)
        expanded = struct.unpack("<q", file.read(8))[0]
        size += length if expanded == -1 else max(expanded, 0)
    return size
