"""Results of a detector as columns; dictionaries are created on access."""

import io
import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from detap.compat.pycocotools import _runs
from detap.compat.pycocotools._walks import complete_boxes, extent, parse_validated, take_rows
from detap.compat.pycocotools.shapes import Masks
from detap.core.masks import areas_and_boxes
from detap.core.threads import memory_is_tight
from detap.errors import MaskError
from detap.formats.coco._scan import ResultsScan, TruthScan, find_record
from detap.formats.coco.prefetch import run_split
from detap.formats.reading._id_tables import IdTable
from detap.io.limits import DEFAULT_LIMITS
from detap.records import Record as Frozen

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Record = dict[str, Any]

_Scan = TypeVar("_Scan", ResultsScan, TruthScan)

_LIST = re.compile(rb"[ \t\r\n]*\[[ \t\r\n]*")
_FIRST = _SEARCHED = 1 << 16
"""Bytes searched for the first record, and for one in the middle."""

_SPLIT_FROM = 1 << 20
"""Minimum size of half a file to scan both halves in parallel."""


class Source(Protocol):
    """Original form of results."""

    def scores(self) -> Sequence[Any]:
        """Return the scores as the original objects."""

    def records(self) -> list[Record]:
        """Create the records as pycocotools' loadRes has them."""


class Boxed(Frozen):
    """Columns common to N annotations or results.

    Attributes
    ----------
    images, categories : sequences
        Ids; `image` and `label` are indices into them.
    image, label : (N,) int32
    corners : (N, 4) float64
        x, y, x + w, y + h.
    box_area, area : (N,) float64
        w * h; and the area for the ranges.
    """

    images: Sequence[Any]
    categories: Sequence[Any]
    image: Integers
    label: Integers
    corners: Floats
    box_area: Floats
    area: Floats

    def __len__(self) -> int:
        return len(self.image)


class Results(Boxed):
    """The N results of a detector, as columns; `area` is pycocotools'.

    Attributes
    ----------
    score : (N,) float64
    source : Source
        Original form.
    masks : Masks or None
        If all have RLE strings.
    """

    score: Floats
    source: Source
    masks: Masks | None = None

    def records(self) -> list[Record]:
        """Create the records as pycocotools has them."""
        return self.source.records()


class FileResults(NamedTuple):
    """Results as the content of a file, which may have been deleted."""

    content: bytes

    def scores(self) -> list[Any]:
        """Return the scores as parsed from JSON, int or float."""
        return [record["score"] for record in parse_scanned(self.content)]

    def records(self) -> list[Record]:
        """Create the records as pycocotools' loadRes has them."""
        records = parse_scanned(self.content)
        complete(records)
        return list(records)

    @classmethod
    def scan(
        cls, content: bytes, images: Sequence[Any], categories: Sequence[Record]
    ) -> Results | None:
        """Return the columns of a regular file of boxes or masks; None if irregular.

        As in pycocotools, the first record determines whether all have a box.
        """
        start = _LIST.match(content)
        begin = start.end() if start else len(content)
        first = _first_record(content[begin : begin + _FIRST])
        if "caption" in first or not ("bbox" in first or "segmentation" in first):
            return None
        category_ids = ids_of(categories)
        scan = scan_of(ResultsScan, content, masks="segmentation" in first)
        try:
            regular = scan.run() if "segmentation" in first else _run(scan, content)
            columns = scan.columns(images, category_ids) if regular else None
        except (TypeError, OverflowError, UnicodeError):  # mixed or very large ids
            return None
        if columns is None:
            return None
        image, label, corners, box_area, score = map(np.asarray, columns[:5])
        masks, area = _masks_of(scan, len(image)), box_area
        if "bbox" not in first:
            if masks is None:
                return None
            corners, box_area, area = _with_boxes(masks, corners, box_area)
        elif np.isnan(box_area).any():
            return None
        numbers = corners, box_area, area, score
        ids = tuple(images), (*category_ids, *columns[5])
        return Results(*ids, image, label, *numbers, cls(content), masks)


def parse(content: bytes) -> Any:
    """Parse JSON in the default encoding of `open`."""
    return json.load(io.TextIOWrapper(io.BytesIO(content)))


def parse_scanned(content: bytes, start: int = 0, stop: int | None = None) -> Any:
    """Parse JSON, or a part, that a scan has found regular, as :func:`parse` does."""
    try:
        return parse_validated(content, start, stop)
    except ValueError:  # an infinite number, or a string that is not ASCII
        return parse(content[start:stop])


def ids_of(categories: Sequence[Record]) -> list[Any]:
    """Return the unique category ids."""
    return list(dict.fromkeys(category["id"] for category in categories))


def scan_of(kind: type[_Scan], content: bytes, start: int = 0, *, masks: bool = False) -> _Scan:
    """Return a scan of a file's content from an offset."""
    limits, view = DEFAULT_LIMITS, memoryview(content)[start:]

    def read(count: int) -> bytes:
        nonlocal view
        block, view = view[:count], view[count:]
        return bytes(block)

    return kind(-1, read, limits.file_bytes, limits.records, limits.nesting, masks)


def _run(scan: ResultsScan, content: bytes) -> bool:
    """Run a scan, in two threads if faster; return True if the content is regular."""
    middle = len(content) // 2
    chunk = content[middle : middle + _SEARCHED] if middle >= _SPLIT_FROM else b""
    offset = find_record(chunk)
    if offset < 0 or (os.cpu_count() or 1) < 2 or memory_is_tight():
        return scan.run()
    start = middle + offset
    return run_split(scan, scan_of(ResultsScan, content, start), start)


def _first_record(content: bytes) -> Record:
    """Return the first record; empty if there is none."""
    try:
        first, _ = json.JSONDecoder().raw_decode(content.decode("utf-8", "replace"))
    except ValueError:
        return {}
    return first if isinstance(first, dict) else {}


def _masks_of(scan: ResultsScan, rows: int) -> Masks | None:
    """Return the masks of a file; None unless every record has an RLE string."""
    segmentations = scan.outlines_of(rows)
    if segmentations is None or scan.listed:
        return None
    has, sizes, run_start, runs = map(np.asarray, segmentations[:4])
    first = np.zeros(len(runs), np.bool_)
    first[run_start[:-1]] = True
    if not has.all() or ((runs == 0) & ~first).any():
        return None
    no_rings = np.zeros(rows + 1, np.int64)
    arrays = sizes, run_start, runs, no_rings, no_rings[:0], np.zeros((0, 2))
    return Masks(arrays, np.arange(rows, dtype=np.int32))


def _with_boxes(masks: Masks, corners: Floats, box_area: Floats) -> tuple[Floats, Floats, Floats]:
    """Return corners and areas of boxes, from masks if missing; and pixel counts."""
    pixels, boxes = areas_and_boxes(masks.arrays)
    missing = np.isnan(box_area)
    corners, box_area = corners.copy(), box_area.copy()
    corners[missing] = np.concatenate(
        [boxes[missing, :2], boxes[missing, :2] + boxes[missing, 2:]], axis=1
    )
    box_area[missing] = boxes[missing, 2] * boxes[missing, 3]
    return corners, box_area, pixels.astype(np.float64)


class ArrayResults(NamedTuple):
    """Results as the rows of an array (N, 7)."""

    rows: NDArray[Any]

    def scores(self) -> list[Any]:
        """Return the scores as scalars of the array."""
        return list(self.rows[:, 5])

    def records(self) -> list[Record]:
        """Create the records as pycocotools' loadRes has them."""
        records = self.parse(self.rows)
        complete(records)
        return records

    @staticmethod
    def parse(rows: NDArray[Any]) -> list[Record]:
        """Return the rows as records with scalars of the array."""
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
        """Return the columns of an array; None if irregular."""
        category_ids = ids_of(categories)
        regular = rows.dtype in (np.float32, np.float64) and len(rows) and images and category_ids
        if not regular or not all(type(name) is int for name in (*images, *category_ids)):
            return None
        count = len(rows)
        contiguous = np.array(rows, order="C")
        image, label = np.empty(count, np.int32), np.empty(count, np.int32)
        corners, score, box_area = np.empty((count, 4)), np.empty(count), np.empty(count)
        area = box_area if rows.dtype == np.float64 else np.empty(count)
        try:
            tables = IdTable(images), IdTable(category_ids)
        except OverflowError:
            return None
        if not take_rows(
            contiguous, *tables, len(category_ids), image, label, corners, box_area, area, score
        ):
            return None
        numbers = corners, box_area, area, score
        return Results(
            tuple(images), (*category_ids, None), image, label, *numbers, cls(contiguous)
        )


def complete(records: list[Record]) -> bool:
    """Add area, id (from 1) and other derived fields, as pycocotools does.

    The first record determines the kind of all.

    Returns
    -------
    bool
        True for boxes or masks with a category each.
    """
    first = records[0]
    if "caption" in first:
        add = _complete_caption
    elif "bbox" in first and first["bbox"] != []:
        return complete_boxes(records)
    elif "segmentation" in first:
        return _complete_masks(records)
    elif "keypoints" in first:
        add = _complete_keypoints
    else:
        return False
    for number, record in enumerate(records, 1):
        add(record, number)
    return False


def _complete_caption(record: Record, number: int) -> None:
    record["id"] = number


def _complete_masks(records: list[Record]) -> bool:
    number = 0
    try:
        for number, lists in enumerate(_masks_in_turn(records), 1):
            record, areas, boxes, index = lists
            record["area"] = areas[index]
            if "bbox" not in record:
                record["bbox"] = boxes[index]
            record["id"] = number
            record["iscrowd"] = 0
    except MaskError as error:
        raise MaskError(f"record {number + 1}: segmentation: {error}") from None
    return all("category_id" in record for record in records)


def _masks_in_turn(records: list[Record]) -> Iterator[tuple[Record, Any, Any, int]]:
    """Yield each record with arrays of areas and boxes, and its index in them.

    If a mask is invalid, masks are read one by one, so that earlier records are completed as in
    pycocotools.
    """
    try:
        lists = _runs.read([record["segmentation"] for record in records])
        areas, boxes = lists.areas(), lists.boxes()
    except (LookupError, TypeError, ValueError):
        for record in records:
            one = _runs.read([record["segmentation"]])
            yield record, one.areas(), one.boxes(), 0
        return
    for index, record in enumerate(records):
        yield record, areas, boxes, index


def _complete_keypoints(record: Record, number: int) -> None:
    extents = extent(record["keypoints"]) if type(record["keypoints"]) is list else None
    if extents is None:
        x, y = record["keypoints"][0::3], record["keypoints"][1::3]
        left, right, top, bottom = np.min(x), np.max(x), np.min(y), np.max(y)
        extents = [left, top, right - left, bottom - top], (right - left) * (bottom - top)
    record["area"] = extents[1]
    record["id"] = number
    record["bbox"] = extents[0]
