"""Opening Parquet and Arrow files: what columns they have, and batches of their rows.

Both come from strangers, so that what they would expand to is known before it is read.
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
from detap.io.stream import EXPANSION_FLOOR, Stream, refuse

PARQUET = b"PAR1"
_FEATHER_1 = b"FEA1"
_ENCRYPTED = b"PARE"
_ROWS_AT_ONCE = 1 << 16
_PIECE = 1 << 18
_LISTS_AT_ONCE = 1 << 14
_WIDTH = 8
AGAIN = "write it again, or fetch it again"


class Container:
    """A file with columns.

    Attributes
    ----------
    path : str
        As it was given.
    schema : pyarrow.Schema
    rows : list of int
        How many each row group, or record batch, holds.
    unit : str
        What such a part is called.
    size : int
        Bytes of the file.
    sha256 : str
        Of standard input, and of a file where the limits ask for it; else empty.
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
        """Return where a row stands."""
        part = next((k for k, end in enumerate(self._ends) if row < end), 0)
        return f"row {row} ({self.unit} {part})" if len(self.rows) > 1 else f"row {row}"

    def size_of(self, columns: Sequence[str]) -> int:
        """Return how many bytes some columns take when they are expanded."""
        raise NotImplementedError  # pragma: no cover - both subclasses answer

    def check_size(self, columns: Sequence[str], limits: Limits) -> None:
        """Refuse columns that expand too far.

        Raises
        ------
        InputError
        """
        times = max(EXPANSION_FLOOR, limits.expansion * self.size)
        allowed = min(limits.file_bytes, times)
        size = self.size_of(columns)
        if size > allowed:
            option = "--max-expansion" if allowed == times else "--max-file-size"
            refuse(
                self.path,
                f"expands to {size} bytes, of {self.size}; at most {allowed} are read",
                f"raise the limit ({option}) if the file is to be trusted",
            )

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Give the record batches of some columns, in the order of the rows; within `damage`."""
        raise NotImplementedError  # pragma: no cover - both subclasses answer


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
        # Not of these columns alone: where what the footer says of a column is damaged, pyarrow
        # ends the process when it is asked for that.
        groups = self._file.metadata
        size = sum(groups.row_group(k).total_byte_size for k in range(groups.num_row_groups))
        return int(max(size, _WIDTH * len(columns) * sum(self.rows)))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import parquet

        # Of text only the numbers of the words are made, however often a word of any length recurs.
        text = [name for name in columns if pa.types.is_string(self.schema.field(name).type)]
        # From afar all that is needed comes at once; what is near comes in pieces, whose memory is
        # used again and again.
        far = is_url(self.path)
        file = parquet.ParquetFile(
            self._source,
            metadata=self._file.metadata,
            read_dictionary=text,
            pre_buffer=far,
            buffer_size=0 if far else _PIECE,
        )
        lists = any(pa.types.is_nested(self.schema.field(name).type) for name in columns)
        yield from file.iter_batches(
            _LISTS_AT_ONCE if lists else _ROWS_AT_ONCE,
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
        del columns  # others are not expanded, but nor are they told apart
        return self._size

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow.ipc

        ipc.start_of(self._source)
        fields = sorted(self.schema.get_field_index(name) for name in columns)
        options = pyarrow.ipc.IpcReadOptions(
            included_fields=fields, use_threads=not memory_is_tight()
        )
        for batch in pyarrow.ipc.open_stream(self._source, options=options):
            batch.validate(full=True)  # offsets and lengths are taken at their word else
            for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
                yield batch.slice(start, _ROWS_AT_ONCE)


def check_installed() -> None:
    """Make sure that the files can be read.

    Raises
    ------
    UsageError
        Where pyarrow is not installed.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise UsageError(
            "Parquet and Arrow files need pyarrow: pip install 'detap[arrow]'"
        ) from None


@contextmanager
def opened(path: Path, limits: Limits) -> Iterator[Container]:
    """Open a Parquet or Arrow file, told by its first bytes.

    Raises
    ------
    UsageError
        Where pyarrow is not installed.
    InputError
        Where the file cannot be opened, is something else, damaged, or beyond a limit.
    """
    check_installed()
    text = os.fspath(path)
    with Stream(text, limits) as stream:
        file = stream.seekable()
        container = _container(text, file)
        count = sum(container.rows)
        if count > limits.records:
            refuse(text, f"has more than {limits.records} rows", MORE_RECORDS)
        yield container
        if text == STDIN or limits.digests:
            container.sha256 = _digest(stream, file)
        stream.check_unchanged()


def _container(path: str, file: BinaryIO) -> Container:
    head = file.read(1 << 12)
    if not head:
        refuse(path, "is empty", "fetch or write it again")
    kinds = {PARQUET: _Parquet, ipc.MAGIC: _Ipc, ipc.CONTINUATION: _Ipc}
    found = next((kind for magic, kind in kinds.items() if head.startswith(magic)), None)
    if found is None:
        _refuse_other(path, head)
    with damage(path):
        return found(path, file)


def _refuse_other(path: str, head: bytes) -> NoReturn:
    """Say what a file looks like that is neither Parquet nor Arrow."""
    if head.startswith(_FEATHER_1):
        refuse(path, "is Feather of version 1", "write it with pyarrow.feather, version 2")
    if head.startswith(_ENCRYPTED):
        refuse(path, "is encrypted", "write it without a key")
    name = "JSON" if head.lstrip()[:1] in (b"{", b"[") else looks_like(head)[0]
    message = f"looks like {name}" if name else "is neither Parquet nor Arrow"
    refuse(path, message, "name a Parquet or an Arrow file")


@contextmanager
def damage(path: str) -> Iterator[None]:
    """Make what pyarrow raises for a damaged file an error of ours."""
    from pyarrow import ArrowException

    try:
        yield
    except (InputError, MemoryError):
        raise
    except (ArrowException, OSError, ValueError, ArithmeticError) as error:
        what = " ".join(str(error).split())[:160]
        refuse(path, f"is damaged: {what}", AGAIN)


def _digest(stream: Stream, file: BinaryIO) -> str:
    if stream.path != STDIN:
        return sha256_of_stream(stream)
    import hashlib

    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
