"""Ground truth on its way to a data set: columns first, dictionaries when asked for."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from detap.compat.pycocotools.results import Boxed, ids_of, parse, scan_of
from detap.formats.coco._scan import TruthScan

Flags = NDArray[np.bool_]
Record = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Annotations(Boxed):
    """The G annotations of a file, as columns; `area` is what the file says.

    Attributes
    ----------
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

    crowd: Flags
    ids: NDArray[np.int64]
    text: bytes
    chosen: Flags
    ignored: NDArray[np.int8]

    @classmethod
    def scan(cls, content: bytes) -> tuple[Record, Self] | None:
        """Return a file's content without its annotations, and those; None where it is unusual.

        Unusual is what is no plain file of boxes, and what pycocotools would raise for.
        """
        scan = scan_of(TruthScan, content)
        scan.keeps_ids = True
        if not scan.run() or scan.without_id or scan.other_ids:
            return None
        if scan.without_area or scan.without_crowd:
            return None
        listed = slice(scan.begin_offset, scan.end_offset)
        dataset = parse(content[: listed.start] + b"[]" + content[listed.stop :])
        try:
            known = ids_of(dataset["categories"])
            ids = np.asarray(scan.ids())
            columns = scan.columns(known)
        except (LookupError, OverflowError, TypeError, UnicodeError):
            return None
        if columns is None:
            return None
        images, *rest = columns
        image, label, corners, box_area, area, crowd = map(np.asarray, rest[1:7])
        numbers = image, label, corners, box_area, area, crowd
        noted = np.zeros(len(ids), np.bool_), np.full(len(ids), -1, np.int8)
        return dataset, cls(images, known, *numbers, ids, content[listed], *noted)

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
