"""Results of a detector on their way to a data set: columns first, dictionaries when asked for."""

import io
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from detap.compat.pycocotools import mask as maskUtils
from detap.compat.pycocotools._walks import complete_boxes, take_rows
from detap.core.threads import memory_is_tight
from detap.formats.coco._scan import ResultsScan, find_record
from detap.formats.coco.prefetch import run_split
from detap.formats.reading._id_tables import IdTable
from detap.formats.reading.stream import DEFAULT_LIMITS

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Record = dict[str, Any]

_LIST = re.compile(rb"[ \t\r\n]*\[[ \t\r\n]*")
_FIRST = _SEARCHED = 1 << 16
"""Bytes in which the first record, and one in the middle, is looked for."""

_SPLIT_FROM = 4 << 20
"""Bytes of half a file from which on both are read at once: nothing else keeps cores at work."""


class Source(Protocol):
    """What results were given as."""

    def scores(self) -> Sequence[Any]:
        """Return the scores, the very numbers that were given."""

    def records(self) -> list[Record]:
        """Return them as pycocotools' loadRes has them, made anew."""


@dataclass(frozen=True, eq=False)
class Results:
    """The N results of a detector, as columns.

    Attributes
    ----------
    images, categories : tuple
        Ids, which `image` and `label` are indices into.
    image, label : (N,) int32
    corners : (N, 4) float64
        x, y, x + w, y + h.
    box_area : (N,) float64
        w * h as float64; and `area`, the same as pycocotools takes it.
    score : (N,) float64
    source : Source
        What they were given as.
    """

    images: tuple[Any, ...]
    categories: tuple[Any, ...]
    image: Integers
    label: Integers
    corners: Floats
    box_area: Floats
    area: Floats
    score: Floats
    source: Source

    def __len__(self) -> int:
        return len(self.image)

    def records(self) -> list[Record]:
        """Return them as pycocotools' loadRes has them, made anew."""
        return self.source.records()

    @classmethod
    def of(
        cls,
        images: Sequence[Any],
        categories: Sequence[Any],
        columns: tuple[Integers, Integers, Floats, Floats, Floats, Floats],
        source: Source,
    ) -> Self:
        """Return columns with what they are numbered by."""
        image, label, corners, box_area, area, score = columns
        return cls(
            tuple(images), tuple(categories), image, label, corners, box_area, area, score, source
        )


@dataclass(frozen=True)
class FileResults:
    """Results as the bytes of a file: the file itself may be gone when they are asked for."""

    content: bytes

    def scores(self) -> list[Any]:
        """Return the scores: whole numbers, if the file has them so, else floats."""
        return [record["score"] for record in self.parse(self.content)]

    def records(self) -> list[Record]:
        """Return them as pycocotools' loadRes has them, made anew."""
        records = self.parse(self.content)
        complete(records)
        return list(records)

    @staticmethod
    def parse(content: bytes) -> Any:
        """Return what the file says, read as `open` reads text."""
        return json.load(io.TextIOWrapper(io.BytesIO(content)))

    @classmethod
    def scan(
        cls, content: bytes, images: Sequence[Any], categories: Sequence[Record]
    ) -> Results | None:
        """Return the columns of a regular file of boxes; None where it has to be parsed."""
        start = _LIST.match(content)
        if start is None or not _begins_with_box(content[start.end() : start.end() + _FIRST]):
            return None
        known = list(dict.fromkeys(category["id"] for category in categories))
        scan = _scan_from(content, 0)
        try:
            columns = scan.columns(images, known) if _run(scan, content) else None
        except (TypeError, OverflowError, UnicodeError):  # ids of several kinds, or very large
            return None
        if columns is None:
            return None
        image, label, corners, area, score = map(np.asarray, columns[:5])
        of_file = image, label, corners, area, area, score
        return Results.of(images, (*known, *columns[5]), of_file, cls(content))


def _scan_from(content: bytes, start: int) -> ResultsScan:
    """Return a scan of a file's content, read from a place on."""
    limits, view = DEFAULT_LIMITS, memoryview(content)[start:]

    def read(count: int) -> bytes:
        nonlocal view
        block, view = view[:count], view[count:]
        return bytes(block)

    return ResultsScan(-1, read, limits.file_bytes, limits.records, limits.nesting)


def _run(scan: ResultsScan, content: bytes) -> bool:
    """Run a scan, in two threads where that pays; return whether the content was regular."""
    middle = len(content) // 2
    near = content[middle : middle + _SEARCHED] if middle >= _SPLIT_FROM else b""
    found = find_record(near)
    if found < 0 or (os.cpu_count() or 1) < 2 or memory_is_tight():
        return scan.run()
    start = middle + found
    return run_split(scan, _scan_from(content, start), start)


def _begins_with_box(content: bytes) -> bool:
    """Tell whether the first record is one of a box: it decides what pycocotools takes all for."""
    try:
        first, _ = json.JSONDecoder().raw_decode(content.decode("utf-8", "replace"))
    except ValueError:
        return False
    return isinstance(first, dict) and "bbox" in first and "caption" not in first


@dataclass(frozen=True, eq=False)
class ArrayResults:
    """Results as the rows of an array (N, 7)."""

    rows: NDArray[Any]

    def scores(self) -> list[Any]:
        """Return the scores, as numbers of the array's own kind."""
        return list(self.rows[:, 5])

    def records(self) -> list[Record]:
        """Return them as pycocotools' loadRes has them, made anew."""
        records = self.parse(self.rows)
        complete(records)
        return records

    @staticmethod
    def parse(rows: NDArray[Any]) -> list[Record]:
        """Return the rows as records, whose numbers are of the array's own kind."""
        return [
            {
                "image_id": int(row[0]),
                "bbox": [row[1], row[2], row[3], row[4]],
                "score": row[5],
                "category_id": int(row[6]),
            }
            for row in rows
        ]

    @classmethod
    def of(
        cls, rows: NDArray[Any], images: Sequence[Any], categories: Sequence[Record]
    ) -> Results | None:
        """Return the columns of an array; None where they have to be looked at one by one."""
        known = list(dict.fromkeys(category["id"] for category in categories))
        usual = rows.dtype in (np.float32, np.float64) and len(rows) and images and known
        if not usual or not all(type(name) is int for name in (*images, *known)):
            return None
        count, rows = len(rows), rows.copy()
        image, label = np.empty(count, np.int32), np.empty(count, np.int32)
        corners, score, box_area = np.empty((count, 4)), np.empty(count), np.empty(count)
        area = box_area if rows.dtype == np.float64 else np.empty(count)
        try:
            tables = IdTable(images), IdTable(known)
        except OverflowError:
            return None
        if not take_rows(rows, *tables, len(known), image, label, corners, box_area, area, score):
            return None
        columns = image, label, corners, box_area, area, score
        return Results.of(images, (*known, None), columns, cls(rows))


def complete(records: list[Record]) -> bool:
    """Add to each record what follows from it, as pycocotools does: its area, an id from 1 on.

    What the first record holds decides what all are taken for.

    Returns
    -------
    bool
        Whether they are boxes, each of a category.
    """
    first = records[0]
    if "caption" in first:
        add = _complete_caption
    elif "bbox" in first and first["bbox"] != []:
        return complete_boxes(records)
    elif "segmentation" in first:
        add = _complete_mask
    elif "keypoints" in first:
        add = _complete_keypoints
    else:
        return False
    for number, record in enumerate(records, 1):
        add(record, number)
    return False


def _complete_caption(record: Record, number: int) -> None:
    record["id"] = number


def _complete_mask(record: Record, number: int) -> None:
    record["area"] = maskUtils.area(record["segmentation"])
    if "bbox" not in record:
        record["bbox"] = maskUtils.toBbox(record["segmentation"])
    record["id"] = number
    record["iscrowd"] = 0


def _complete_keypoints(record: Record, number: int) -> None:
    x, y = record["keypoints"][0::3], record["keypoints"][1::3]
    left, right, top, bottom = np.min(x), np.max(x), np.min(y), np.max(y)
    record["area"] = (right - left) * (bottom - top)
    record["id"] = number
    record["bbox"] = [left, top, right - left, bottom - top]
