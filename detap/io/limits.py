"""What a reader accepts at most."""

from detap.errors import UsageError
from detap.records import Value

MORE_RECORDS = "raise the limit on records (--max-records) if that is meant"
"""The remedy of an input of more than the limits allow."""

MOST_RECORDS = 2**31 - 1
"""Rows are numbered in int32: as `detap.tables.columns.MOST_ROWS`, without importing numpy."""


class Limits(Value):
    """What a reader accepts at most, each checked before memory is spent; and what it notes.

    Attributes
    ----------
    file_bytes : int
        Bytes of one file, also after expansion.
    expansion : int
        How many times larger than the compressed file its content may be (the first 16 MiB of
        content are always allowed).
    records : int
        Images, annotations or detections in one input; at most :data:`MOST_RECORDS`.
    nesting : int
        Levels of JSON arrays and objects, or of XML elements, inside each other.
    problems : int
        How many problems an error lists; the rest is only counted.
    mask_runs : int
        Runs of pixels in the masks of one image that are drawn from polygons.
    digests : bool
        Whether the sha256 of each input is taken while it is read, for a report.
    empty : bool
        Whether ground truth is one of several inputs, which may be without annotations and are
        judged together.
    part : bool
        Whether detections are one of several inputs, which are judged together.

    Raises
    ------
    UsageError
        Where more records are wanted than can be numbered.
    """

    file_bytes: int = 16 << 30
    expansion: int = 200
    records: int = 200_000_000
    nesting: int = 100
    problems: int = 20
    mask_runs: int = 1 << 23
    digests: bool = False
    empty: bool = False
    part: bool = False

    def is_part(self, kind: str) -> bool:
        """Return whether ``detections`` or ``ground-truth`` are judged with other inputs."""
        return self.part if kind == "detections" else self.empty

    @property
    def exceeded(self) -> tuple[str, str]:
        """What is said of an input of more records, and what to do."""
        return f"holds more than {self.records} records", MORE_RECORDS

    def __post_init__(self) -> None:
        if self.records > MOST_RECORDS:
            raise UsageError(f"a limit of {self.records} records is above {MOST_RECORDS}")


DEFAULT_LIMITS = Limits()
