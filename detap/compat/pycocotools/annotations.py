"""Ground truth on its way to a data set: columns first, dictionaries when asked for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from detap.compat.pycocotools.results import parse, reader_of
from detap.formats.coco._scan import TruthScan
from detap.formats.reading.stream import DEFAULT_LIMITS

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]
Record = dict[str, Any]


@dataclass(eq=False)
class Annotations:
    """The G annotations of a file, as columns.

    Attributes
    ----------
    images, categories : sequences
        Ids, which `image` and `label` are indices into.
    image, label : (G,) int32
    corners : (G, 4) float64
        x, y, x + w, y + h.
    box_area, area : (G,) float64
        w * h; and what the file says.
    crowd : (G,) bool
    ids : (G,) int64
    text : bytes
        The list as it stands in the file, which itself may be gone when the records are asked for.
    chosen : (G,) bool
        Whether an evaluation has chosen it: pycocotools then says in the record whether it is
        ignored, as :meth:`choose` notes for when the records are made.
    ignored : (G,) int8
        And whether it is in the last area range of the last evaluation that scored it; -1: none.
    """

    images: Sequence[Any]
    categories: Sequence[Any]
    image: Integers
    label: Integers
    corners: Floats
    box_area: Floats
    area: Floats
    crowd: Flags
    ids: NDArray[np.int64]
    text: bytes
    chosen: Flags = field(init=False)
    ignored: NDArray[np.int8] = field(init=False)

    def __post_init__(self) -> None:
        self.chosen = np.zeros(len(self.ids), np.bool_)
        self.ignored = np.full(len(self.ids), -1, np.int8)

    @classmethod
    def scan(cls, content: bytes) -> tuple[Record, Self] | None:
        """Return a file's content without its annotations, and those; None where it is unusual.

        Unusual is what is no plain file of boxes, and what pycocotools would raise for.
        """
        limits = DEFAULT_LIMITS
        reader = reader_of(content)
        scan = TruthScan(-1, reader, limits.file_bytes, limits.records, limits.nesting)
        scan.keeps_ids = True
        if not scan.run() or scan.without_id or scan.other_ids:
            return None
        if scan.without_area or scan.without_crowd:
            return None
        listed = slice(scan.begin_offset, scan.end_offset)
        dataset = parse(content[: listed.start] + b"[]" + content[listed.stop :])
        try:
            known = list(dict.fromkeys(category["id"] for category in dataset["categories"]))
            ids = np.asarray(scan.ids())
            columns = scan.columns(known)
        except (LookupError, OverflowError, TypeError, UnicodeError):
            return None
        if columns is None:
            return None
        images, *rest = columns
        image, label, corners, box_area, area, crowd = map(np.asarray, rest[1:7])
        numbers = image, label, corners, box_area, area, crowd
        return dataset, cls(images, known, *numbers, ids, content[listed])

    def choose(self, chosen: Flags, scored: NDArray[np.intp], band: tuple[float, float]) -> None:
        """Note what an evaluation has chosen, which rows it has scored, and its last area range."""
        low, high = band
        area = self.area[scored]
        self.chosen[chosen] = True
        self.ignored[scored] = self.crowd[scored] | (area < low) | (area > high)

    def records(self) -> list[Record]:
        """Return them as pycocotools has them, made anew."""
        records: list[Record] = parse(self.text)
        for row in np.flatnonzero(self.chosen).tolist():
            records[row]["ignore"] = records[row]["iscrowd"]
        for row in np.flatnonzero(self.ignored >= 0).tolist():
            records[row]["_ignore"] = int(self.ignored[row])
        return records
