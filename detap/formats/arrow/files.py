"""Open Parquet and Arrow files: schema, limits, columns.

The files are untrusted, so their decompressed size is checked before reading.
"""

import hashlib
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import ipc as arrow_ipc
from pyarrow import parquet

from detap.core.threads import memory_is_tight
from detap.errors import InputError
from detap.formats.arrow import ipc
from detap.io.digest import sha256_of_stream
from detap.io.json_text import looks_like
from detap.io.limits import MORE_RECORDS, Limits
from detap.io.paths import STDIN, Path, is_url
from detap.io.stream import MIN_EXPANSION_LIMIT, Stream, refuse

PARQUET = b"PAR1"
_FEATHER_1 = b"FEA1"
_ENCRYPTED = b"PARE"
_BUFFER_BYTES = 1 << 18
WRITE_AGAIN = "write or download it again"


@dataclass
class Container:
    """A file with columns."""

    path: str
    file: BinaryIO
    unit: str
    width: int  # least bytes of a value
    schema: Any
    rows: list[int]  # of each row group or record batch
    size: int  # bytes of the decompressed file
    read: Callable[[Sequence[str]], Any]  # columns, as a pyarrow.Table; call within `damage`
    sha256: str = ""  # of standard input, and of a file if the limits require it

    def location(self, row: int) -> str:
        """Return the location of a row."""
        part = bisect_right([*accumulate(self.rows)], row)
        return f"row {row} ({self.unit} {part})" if len(self.rows) > 1 else f"row {row}"

    def check_size(self, columns: Sequence[str], limits: Limits) -> None:
        """Raise InputError if the decompressed columns exceed the limits."""
        given = self.file.seek(0, os.SEEK_END)
        times = max(MIN_EXPANSION_LIMIT, limits.expansion * given)
        allowed = min(limits.file_bytes, times)
        size = max(self.size, self.width * len(columns) * sum(self.rows))
        if size > allowed:
            option = "--max-expansion" if allowed == times else "--max-file-size"
            message = f"expands from {given} to {size} bytes, the limit is {allowed}"
            refuse(self.path, message, f"if the file is trusted, raise the limit ({option})")


def _parquet(path: str, file: BinaryIO) -> Container:
    content = parquet.ParquetFile(file)
    metadata, schema = content.metadata, content.schema_arrow
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    # Of all columns, because pyarrow aborts the process on damaged metadata of a column.
    size = sum(group.total_byte_size for group in groups)

    def read(columns: Sequence[str]) -> Any:
        # Dictionary encoding reads a repeated text only once.
        text = [name for name in columns if pa.types.is_string(schema.field(name).type)]
        # Remote files are read at once; local ones in small buffers, whose memory is reused.
        remote = is_url(path)
        content = parquet.ParquetFile(
            file,
            metadata=metadata,
            read_dictionary=text,
            pre_buffer=remote,
            buffer_size=0 if remote else _BUFFER_BYTES,
        )
        return content.read([*columns], use_threads=not memory_is_tight())

    rows = [group.num_rows for group in groups]
    return Container(path, file, "row group", 8, schema, rows, size, read)


def _ipc(path: str, file: BinaryIO) -> Container:
    rows, size = ipc.batches_of(file)
    ipc.start_of(file)
    schema = arrow_ipc.open_stream(file).schema

    def read(columns: Sequence[str]) -> Any:
        ipc.start_of(file)
        fields = sorted(schema.get_field_index(name) for name in columns)
        options = arrow_ipc.IpcReadOptions(
            included_fields=fields, use_threads=not memory_is_tight()
        )
        table = arrow_ipc.open_stream(file, options=options).read_all()
        table.validate(full=True)  # pyarrow trusts offsets and lengths otherwise
        return table

    return Container(path, file, "record batch", 0, schema, rows, size, read)


@contextmanager
def opened(path: Path, limits: Limits) -> Iterator[Container]:
    """Open a Parquet or Arrow file, detected by its first bytes, within the limits."""
    text = os.fspath(path)
    with Stream(text, limits) as stream:
        file = stream.seekable()
        container = _container(text, file)
        if sum(container.rows) > limits.records:
            refuse(text, f"more than {limits.records} rows", MORE_RECORDS)
        yield container
        if text == STDIN:
            file.seek(0)
            container.sha256 = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        elif limits.digests:
            container.sha256 = sha256_of_stream(stream)
        stream.check_unchanged()


def _container(path: str, file: BinaryIO) -> Container:
    """Return the content of a file; raise InputError if it is neither Parquet nor Arrow."""
    head = file.read(1 << 12)
    if not head:
        refuse(path, "is empty", WRITE_AGAIN)
    kinds = {PARQUET: _parquet, ipc.MAGIC: _ipc, ipc.CONTINUATION: _ipc}
    kind = next((kind for magic, kind in kinds.items() if head.startswith(magic)), None)
    if kind is not None:
        with damage(path):
            return kind(path, file)
    if head.startswith(_FEATHER_1):
        refuse(path, "is a Feather version 1 file", "write it as version 2")
    if head.startswith(_ENCRYPTED):
        refuse(path, "is encrypted", "write it without encryption")
    name = "JSON" if head.lstrip()[:1] in (b"{", b"[") else looks_like(head)[0]
    message = f"looks like {name}" if name else "is neither Parquet nor Arrow"
    return refuse(path, message, "expected a Parquet or Arrow file")


@contextmanager
def damage(path: str) -> Iterator[None]:
    """Convert pyarrow errors for damaged files to InputError."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except (pa.ArrowException, OSError, ValueError, ArithmeticError) as error:
        reason = " ".join(str(error).split())[:160]
        refuse(path, f"is damaged: {reason}", WRITE_AGAIN)
