"""Open Parquet and Arrow files: schema, limits, record batches.

The files are untrusted, so their decompressed size is checked before reading.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, BinaryIO, NoReturn

from detap.core.threads import memory_is_tight
from detap.errors import InputError, UsageError
from detap.formats.arrow import ipc
from detap.io.digest import sha256_of_stream
from detap.io.json_text import looks_like
from detap.io.limits import MORE_RECORDS, Limits
from detap.io.paths import STDIN, Path, is_url
from detap.io.stream import MIN_EXPANSION_LIMIT, Stream, refuse

PARQUET = b"PAR1"
_FEATHER_1 = b"FEA1"
_ENCRYPTED = b"PARE"
_BATCH_ROWS = 1 << 16
_BUFFER_BYTES = 1 << 18
_BATCH_LISTS = 1 << 14
_WIDTH = 8
WRITE_AGAIN = "write or download it again"


class Container:
    """A file with columns.

    Attributes
    ----------
    path : str
    schema : pyarrow.Schema
    rows : list of int
        Rows of each row group or record batch.
    unit : str
        "row group" or "record batch".
    size : int
        Bytes of the file.
    sha256 : str
        Of standard input, and of a file if the limits require it; else empty.
    """

    unit: str

    def __init__(self, path: str, file: BinaryIO, schema: Any, rows: list[int]) -> None:
        self.path = path
        self.size = file.seek(0, os.SEEK_END)
        self.schema = schema
        self.rows = rows
        self.sha256 = ""
        self._ends = list(accumulate(rows))

    def location(self, row: int) -> str:
        """Return the location of a row."""
        part = next((k for k, end in enumerate(self._ends) if row < end), 0)
        return f"row {row} ({self.unit} {part})" if len(self.rows) > 1 else f"row {row}"

    def size_of(self, columns: Sequence[str]) -> int:
        """Return the decompressed size of columns."""
        raise NotImplementedError  # pragma: no cover - overridden

    def check_size(self, columns: Sequence[str], limits: Limits) -> None:
        """Raise InputError if the decompressed columns exceed the limits.

        Raises
        ------
        InputError
        """
        times = max(MIN_EXPANSION_LIMIT, limits.expansion * self.size)
        allowed = min(limits.file_bytes, times)
        size = self.size_of(columns)
        if size > allowed:
            option = "--max-expansion" if allowed == times else "--max-file-size"
            refuse(
                self.path,
                f"expands from {self.size} to {size} bytes, the limit is {allowed}",
                f"if the file is trusted, raise the limit ({option})",
            )

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the record batches of columns, in row order; call within `damage`."""
        raise NotImplementedError  # pragma: no cover - overridden


class _Parquet(Container):
    unit = "row group"

    def __init__(self, path: str, file: BinaryIO) -> None:
        from pyarrow import parquet

        self._source = file
        self._file = parquet.ParquetFile(file)
        groups = self._file.metadata
        rows = [groups.row_group(k).num_rows for k in range(groups.num_row_groups)]
        super().__init__(path, file, self._file.schema_arrow, rows)

    def size_of(self, columns: Sequence[str]) -> int:
        # All columns, because pyarrow aborts the process on damaged metadata of a column.
        groups = self._file.metadata
        size = sum(groups.row_group(k).total_byte_size for k in range(groups.num_row_groups))
        return int(max(size, _WIDTH * len(columns) * sum(self.rows)))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import parquet

        # Dictionary encoding reads a repeated text only once.
        text = [name for name in columns if pa.types.is_string(self.schema.field(name).type)]
        # Remote files are read at once; local ones in small buffers, whose memory is reused.
        remote = is_url(self.path)
        file = parquet.ParquetFile(
            self._source,
            metadata=self._file.metadata,
            read_dictionary=text,
            pre_buffer=remote,
            buffer_size=0 if remote else _BUFFER_BYTES,
        )
        lists = any(pa.types.is_nested(self.schema.field(name).type) for name in columns)
        yield from file.iter_batches(
            _BATCH_LISTS if lists else _BATCH_ROWS,
            columns=list(columns),
            use_threads=not memory_is_tight(),
        )


class _Ipc(Container):
    unit = "record batch"

    def __init__(self, path: str, file: BinaryIO) -> None:
        import pyarrow.ipc

        rows, self._size = ipc.batches_of(file)
        self._source = file
        ipc.start_of(file)
        super().__init__(path, file, pyarrow.ipc.open_stream(file).schema, rows)

    def size_of(self, columns: Sequence[str]) -> int:
        del columns  # messages do not name their columns
        return self._size

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow.ipc

        ipc.start_of(self._source)
        fields = sorted(self.schema.get_field_index(name) for name in columns)
        options = pyarrow.ipc.IpcReadOptions(
            included_fields=fields, use_threads=not memory_is_tight()
        )
        for batch in pyarrow.ipc.open_stream(self._source, options=options):
            batch.validate(full=True)  # pyarrow trusts offsets and lengths otherwise
            for start in range(0, batch.num_rows, _BATCH_ROWS):
                yield batch.slice(start, _BATCH_ROWS)


def check_installed() -> None:
    """Raise UsageError if pyarrow is not installed.

    Raises
    ------
    UsageError
        If pyarrow is not installed.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise UsageError(
            "Parquet and Arrow files require pyarrow: pip install 'detap[arrow]'"
        ) from None


@contextmanager
def opened(path: Path, limits: Limits) -> Iterator[Container]:
    """Open a Parquet or Arrow file, detected by its first bytes.

    Raises
    ------
    UsageError
        If pyarrow is not installed.
    InputError
        If the file cannot be opened, has another format, is damaged, or exceeds a limit.
    """
    check_installed()
    text = os.fspath(path)
    with Stream(text, limits) as stream:
        file = stream.seekable()
        container = _container(text, file)
        count = sum(container.rows)
        if count > limits.records:
            refuse(text, f"more than {limits.records} rows", MORE_RECORDS)
        yield container
        if text == STDIN or limits.digests:
            container.sha256 = _digest(stream, file)
        stream.check_unchanged()


def _container(path: str, file: BinaryIO) -> Container:
    head = file.read(1 << 12)
    if not head:
        refuse(path, "is empty", WRITE_AGAIN)
    kinds = {PARQUET: _Parquet, ipc.MAGIC: _Ipc, ipc.CONTINUATION: _Ipc}
    container = next((kind for magic, kind in kinds.items() if head.startswith(magic)), None)
    if container is None:
        _refuse_other(path, head)
    with damage(path):
        return container(path, file)


def _refuse_other(path: str, head: bytes) -> NoReturn:
    """Raise InputError for a file that is neither Parquet nor Arrow."""
    if head.startswith(_FEATHER_1):
        refuse(path, "is a Feather version 1 file", "write it as version 2")
    if head.startswith(_ENCRYPTED):
        refuse(path, "is encrypted", "write it without encryption")
    name = "JSON" if head.lstrip()[:1] in (b"{", b"[") else looks_like(head)[0]
    message = f"looks like {name}" if name else "is neither Parquet nor Arrow"
    refuse(path, message, "expected a Parquet or Arrow file")


@contextmanager
def damage(path: str) -> Iterator[None]:
    """Convert pyarrow errors for damaged files to InputError."""
    from pyarrow import ArrowException

    try:
        yield
    except (InputError, MemoryError):
        raise
    except (ArrowException, OSError, ValueError, ArithmeticError) as error:
        reason = " ".join(str(error).split())[:160]
        refuse(path, f"is damaged: {reason}", WRITE_AGAIN)


def _digest(stream: Stream, file: BinaryIO) -> str:
    if stream.path != STDIN:
        return sha256_of_stream(stream)
    import hashlib

    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
