"""Ground-truth annotations as columns; dictionaries are created on access."""

from collections import defaultdict
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from detap.compat.pycocotools.results import Boxed, ids_of, parse_scanned, scan_of
from detap.formats.coco._scan import TruthScan

Flags = NDArray[np.bool_]
Record = dict[str, Any]


class Annotations(Boxed):
    """The G annotations of a file, as columns; `area` is the file's.

    Attributes
    ----------
    crowd : (G,) bool
    ids : (G,) int64
    content : bytes
        Content of the file, which may have been deleted.
    span : (start, stop)
        The list of annotations in it.
    chosen : (G,) bool
        Whether an evaluation selected it; pycocotools then adds `ignore` to the record.
    ignored : (G,) int8
        `_ignore` of the last area range of the last evaluation; -1 if not evaluated.
    """

    crowd: Flags
    ids: NDArray[np.int64]
    content: bytes
    span: tuple[int, int]
    chosen: Flags
    ignored: NDArray[np.int8]

    @classmethod
    def scan(cls, content: bytes) -> tuple[Record, Self] | None:
        """Return the content without annotations, and the annotations.

        None if the file is not a plain file of boxes, or pycocotools would raise an error.
        """
        scan = scan_of(TruthScan, content)
        scan.keeps_ids = True
        if not scan.run() or scan.without_id or scan.other_ids:
            return None
        if scan.without_area or scan.without_crowd:
            return None
        start, stop = scan.begin_offset, scan.end_offset
        dataset = parse_scanned(content[:start] + b"[]" + content[stop:])
        try:
            categories = ids_of(dataset["categories"])
            if any(type(name) is float for name in categories):
                return None
            ids = np.asarray(scan.ids())
            columns = scan.columns(categories)
        except (LookupError, OverflowError, TypeError, UnicodeError):
            return None
        if columns is None:
            return None
        images, *fields = columns
        image, label, corners, box_area, area, crowd = map(np.asarray, fields[1:7])
        numbers = image, label, corners, box_area, area, crowd
        marks = np.zeros(len(ids), np.bool_), np.full(len(ids), -1, np.int8)
        return dataset, cls(images, categories, *numbers, ids, content, (start, stop), *marks)

    def choose(
        self, chosen: Flags, scored: NDArray[np.intp], area_range: tuple[float, float]
    ) -> None:
        """Record the selected and evaluated rows, and the last area range."""
        low, high = area_range
        area = self.area[scored]
        self.chosen[chosen] = True
        self.ignored[scored] = self.crowd[scored] | (area < low) | (area > high)

    def images_of_categories(self) -> defaultdict[Any, list[Any]]:
        """Return the image ids by category id, one per annotation, in the order of the file."""
        images: defaultdict[Any, list[Any]] = defaultdict(list)
        for label, image in zip(self.label.tolist(), self.image.tolist(), strict=True):
            images[self.categories[label]].append(self.images[image])
        return images

    def records(self) -> list[Record]:
        """Create the records as pycocotools has them."""
        records: list[Record] = parse_scanned(self.content, *self.span)
        for row in np.flatnonzero(self.chosen).tolist():
            records[row]["ignore"] = records[row]["iscrowd"]
        for row in np.flatnonzero(self.ignored >= 0).tolist():
            records[row]["_ignore"] = int(self.ignored[row])
        return records
