"""Limits on the size of inputs."""

from dataclasses import dataclass

from detap.errors import UsageError

MORE_RECORDS = "raise the limit with --max-records"
"""The hint for an input with too many records."""

MOST_RECORDS = 2**31 - 1
"""Rows are int32, as `detap.tables.columns.MOST_ROWS`; this module avoids numpy."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of readers, checked before memory is allocated, and reading modes.

    Attributes
    ----------
    file_bytes : int
        Maximum bytes of one file, also after expansion.
    expansion : int
        Maximum ratio of expanded to compressed size; the first 16 MiB are always allowed.
    records : int
        Maximum images, annotations or detections in one input; at most :data:`MOST_RECORDS`.
    nesting : int
        Maximum depth of JSON arrays and objects, or of XML elements.
    problems : int
        Maximum number of listed problems; the others are counted.
    mask_runs : int
        Maximum pixel runs of one image's masks, if drawn from polygons.
    digests : bool
        Compute the sha256 of each input while reading.
    empty : bool
        Ground truth is one of several inputs: it may have no annotations, and checks run on all.
    part : bool
        Detections are one of several inputs: checks run on all.
    any_classes : bool
        Keep detections of classes that the ground truth lacks, also of all: a class map follows.
    drop_extra_images : bool
        Leave out detections of images that the ground truth lacks; an error by default.

    Raises
    ------
    UsageError
        If `records` exceeds :data:`MOST_RECORDS`.
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
    any_classes: bool = False
    drop_extra_images: bool = False

    def refuses_images(self, unknown: int, total: int) -> bool:
        """Return True if so many of all detections may not be of unknown images."""
        drops = self.drop_extra_images and (unknown < total or self.part)
        return unknown > 0 and not drops

    def is_part(self, kind: str) -> bool:
        """Return True if ``detections`` or ``ground-truth`` are one of several inputs."""
        return self.part if kind == "detections" else self.empty

    @property
    def exceeded(self) -> tuple[str, str]:
        """The message and hint for an input with too many records."""
        return f"more than {self.records} records", MORE_RECORDS

    def __post_init__(self) -> None:
        if self.records > MOST_RECORDS:
            raise UsageError(f"limit of {self.records} records is above {MOST_RECORDS}")


DEFAULT_LIMITS = Limits()
