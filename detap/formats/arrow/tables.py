"""Reader of Parquet and Arrow files with the keys of COCO records as columns.

The same data as a COCO file gives bit-identical tables.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite, isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.errors import InputError, Note
from detap.formats.arrow import files
from detap.formats.arrow.columns import (
    EXACT,
    NONE,
    Codes,
    Rows,
    combined,
    encode,
    fours,
    null_rows,
    sides_of,
    to_numpy,
)
from detap.formats.arrow.schema import BOX, FLAGS, shape_of
from detap.formats.by_name.notes import images_without_objects, nonzero_notes
from detap.formats.coco.assembly import Source, detection_table, refuse_same_file, truth_table
from detap.formats.coco.columns import DetectionColumns, TruthColumns
from detap.formats.coco.records import no_common_id, other_name
from detap.io.json_text import short_json
from detap.io.limits import DEFAULT_LIMITS, MORE_RECORDS, Limits
from detap.io.paths import Path, SourceFile, shown
from detap.io.problems import FaultError, Problems
from detap.tables.columns import check_scores, indices_in
from detap.tables.detection import (
    Detections,
    Flags,
    Floats,
    GroundTruth,
    Integers,
    Name,
    distinct_name,
    encode_boxes,
)
from detap.tables.notes import (
    INSIST,
    SAME_IMAGES,
    class_map_hint,
    extra_images_problem,
)

_NAMES = ("category_id", "category", "id")
_NAME_TYPE = ", expected an integer or a string"
_LAYOUT = (
    "name the columns after the box format (x1, y1, x2, y2 or x, y, width, height), or set the "
    "metadata `boxes` of bbox"
)
_FLAGS = {"crowd": "iscrowd", "difficult": "difficult", "ignore": "ignore", "group_of": "group_of"}


def read_ground_truth(
    path: Path, *, boxes: str | None = None, as_is: bool = False, limits: Limits = DEFAULT_LIMITS
) -> GroundTruth:
    """Read ground truth; images and classes are in ascending order of id or name.

    A row with only an image, or with empty lists (Hugging Face datasets), is an image without
    objects. `boxes` is the format of a column `bbox` without metadata.
    """
    table = Table(path, False, boxes, limits)
    columns = _truth_columns(table)
    truth = truth_table(columns, table.source(columns.records, as_is, columns.origin))
    empty = images_without_objects(len(truth.images), truth.image)
    return replace(truth, notes=(*truth.notes, *table.notes(), *nonzero_notes(empty)))


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    boxes: str | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read detections with the ids of a ground truth; those of other classes are noted."""
    refuse_same_file(path, ground_truth, "expected detections")
    table = Table(path, True, boxes, limits)
    columns = _detection_columns(table, ground_truth, as_is)
    source = table.source(len(columns.image), as_is)
    source = replace(source, location=columns.located(source.location))
    detections = detection_table(columns, ground_truth, source)
    without_scores = "score" not in table.shape.fields
    notes = (*detections.notes, *table.notes())
    return replace(detections, notes=notes, without_scores=without_scores)


class Table:
    """The N boxes of a file as columns, and their problems.

    If nested, each image has `counts` boxes, and `sizes` (rows, 2), NaN if unknown. `single` is
    True if boxes or scores have less than double precision.
    """

    def __init__(self, path: Path, scored: bool, boxes: str | None, limits: Limits) -> None:
        self.path = os.fspath(path)
        self.limits = limits
        self.problems = Problems(limits.problems, shown(self.path))
        with files.opened(path, limits) as container, files.damage(self.path):
            self.shape = shape_of(container.schema, scored, boxes, self.problems)
            container.check_size(self.shape.columns, limits)
            try:
                self._convert(container.read(self.shape.columns))
            except FaultError as error:
                self.problems.add_here("", error.message, error.hint)
        self.problems.raise_any()
        self._container = container
        self._starts = None if self.counts is None else np.cumsum(self.counts)

    def _convert(self, table: Any) -> None:
        """Convert the columns of a pyarrow.Table; a row is a box, or an image if nested."""
        self.single = False
        self._inexact: dict[str, Rows] = {}  # rows whose integer float64 may not represent
        columns, lengths = self.shape.rows(table)
        columns.pop("image_id", None)
        self.counts = None if lengths is None else to_numpy(lengths).astype(np.int64)
        self.sizes: Floats | None = None
        if self.shape.sized:
            sides = [sides_of(table[name].combine_chunks()) for name in ("width", "height")]
            self.sizes = np.stack(sides, axis=1)
        self.images = encode(table["image_id"])  # of each row of the table
        given = {name: encode(columns.pop(name)) for name in _NAMES if name in columns}
        self._without = {name: codes.missing for name, codes in given.items()}
        self._without["image_id"] = self.images.missing
        self.codes = defaultdict(lambda: Codes({}, np.zeros(0, np.int32), NONE, {}), given)
        box = [self._values(name, combined(columns.pop(name))) for name in self.shape.box]
        if self.shape.box == (BOX,):
            box = list(box[0].reshape(-1, 4).T)
        self.box: Floats = np.empty((len(box[0]), 4))
        for k, column in enumerate(box):
            self.box[:, k] = column
        del box
        self._numbers = {
            name: self._values(name, combined(column)) for name, column in columns.items()
        }
        if len(self) > self.limits.records:
            raise FaultError(f"more than {self.limits.records} boxes", MORE_RECORDS)

    def _values(self, name: str, column: Any) -> NDArray[Any]:
        """Return the numbers of a column; store the rows without one."""
        width, without = 1, null_rows(column)
        if name == BOX:
            column, uneven = fours(column)
            without, width = np.union1d(without, uneven), 4
        if column.null_count:
            without = np.union1d(without, null_rows(column) // width)
        values = to_numpy(column)
        if name not in FLAGS and values.dtype in (np.int64, np.uint64):
            inexact = (values > EXACT) | (values.astype(np.int64) < -EXACT)
            self._inexact[name] = np.flatnonzero(inexact) // width
        if values.dtype in (np.float32, np.float16) and name != "area":
            self.single = True
        self._without[name] = without
        return values

    def __len__(self) -> int:
        return len(self.box)

    def without(self, name: str) -> Rows:
        """Return the rows without a value in a column; all if there is no such column."""
        if name in self._without:
            return self._without[name]
        return np.arange(len(self))

    def numbers(self, name: str) -> Floats:
        """Return another column of numbers, (N,); zeros if there is none."""
        if name not in self._numbers:
            return np.zeros(len(self))
        return self._numbers[name].astype(np.float64)

    def source(self, records: int, as_is: bool, origin: Any = None) -> Source:
        """Return the origin of the columns, for messages."""

        def location(row: int) -> str:
            return self.location(row if origin is None else int(origin[row]))

        file = SourceFile(self.path, records, sha256=self._container.sha256)
        return Source(file, self.limits, as_is, location, self.shape.box_format, _LAYOUT)

    def location(self, row: int) -> str:
        """Return the location of a box."""
        if self._starts is None:
            return self._container.location(row)
        image = int(np.searchsorted(self._starts, row, side="right"))
        first = int(self._starts[image - 1]) if image else 0
        return f"{self._container.location(image)}, objects[{row - first}]"

    def notes(self) -> Iterator[Note]:
        """Yield the notes of the table."""
        if self.single:
            message = (
                "boxes or scores are float32; AP may differ from that of JSON results in the "
                "eighth decimal"
            )
            yield Note("float32-columns", message, severity="info")

    def report(
        self, rows: Any, message: str | Callable[[int], str], hint: str = "", location: Any = None
    ) -> None:
        """Report a problem of rows, listing as many as the limit allows."""
        located, file = location or self.location, self.problems.file
        self.problems.add_rows(rows.tolist(), lambda row: (file, located(row)), message, hint)

    def check_names(self, name: str, codes: Codes, empty: Any = NONE, location: Any = None) -> None:
        """Report rows without a valid name, but the empty ones."""
        missing = _exclude(self.without(name), empty)
        self.report(missing, f"{name} is null{_NAME_TYPE}", location=location)
        if wrong := codes.wrong:
            rows = np.flatnonzero(np.isin(codes.rows, list(wrong)))
            self.report(
                np.setdiff1d(rows, missing),
                lambda row: f"{name} is {_format_value(wrong[codes.rows[row]])}{_NAME_TYPE}",
                location=location,
            )

    def check_classes(self, empty: Any = NONE) -> None:
        """Report rows without a class."""
        for name in self.shape.class_columns:
            self.check_names(name, self.codes[name], empty)

    def image(self, index: Integers) -> Integers:
        """Return the image of each box, by the index of each code."""
        rows = index[self.images.rows] if len(index) else self.images.rows
        return rows if self.counts is None else np.repeat(rows, self.counts)

    def check_images(self) -> None:
        """Report rows without an image, and repeated images of nested tables."""
        location = self._container.location
        self.check_names("image_id", self.images, NONE, location)
        if self.counts is None:
            return
        code = self.images.rows
        first = _first_rows(code, len(self.images.number))
        self.report(
            np.flatnonzero(first[code] != np.arange(len(code))),
            lambda row: f"duplicate image_id (also at {location(first[code[row]])})",
            "write one row per image",
            location,
        )

    def boxes(self, empty: Any = NONE) -> tuple[Floats, Floats]:
        """Return the corners (N, 4) and areas (N,) of all boxes."""
        box = self.box
        names = self.shape.box
        for name, column in zip(names, [box] if len(names) == 1 else box.T, strict=True):
            self.check_numbers(name, column, empty)
        corners, areas = encode_boxes(box, self.shape.box_format, copy=False)
        finite = np.isfinite(areas) & np.isfinite(corners).all(axis=1)
        if not (self.problems.count or finite.all()):
            message = "box overflows, expected finite corners and area"
            self.report(np.flatnonzero(~finite), message)
        return corners, areas

    def check_numbers(self, name: str, column: Floats, empty: Any = NONE) -> None:
        """Report rows of a column, (N,) or (N, 4), without finite numbers or with inexact ones."""
        without = self.without(name)
        problem, expected = "null, expected a number", "a finite number"
        if column.ndim > 1:
            problem = "null or not of length 4, expected 4 numbers"
            expected = "finite numbers"
        self.report(_exclude(without, empty), f"{name} is {problem}")
        finite: Flags = np.all(np.isfinite(column), axis=tuple(range(1, column.ndim)))
        self.report(
            _exclude(np.flatnonzero(~finite), without),
            lambda row: f"{name} is {_format_value(column[row].tolist())}, expected {expected}",
        )
        self.report(
            self._inexact.get(name, NONE),
            lambda row: f"{name} is about {_format_value(column[row].tolist())}, beyond 2^53",
            "use numbers that float64 represents exactly, such as integers below 2^53",
        )

    def category_names(self, empty: Any = NONE) -> dict[Name, str]:
        """Return the name of each category id; report ids with several names."""
        ids, names = (self.codes[k] for k in ("category_id", "category"))
        by_id, by_name = list(ids.number), list(names.number)
        count = len(by_name) + 1
        rows = np.setdiff1d(np.arange(len(ids.rows)), empty)
        keys = ids.rows[rows].astype(np.int64) * count + names.rows[rows]
        pairs, first = np.unique(keys, return_index=True)
        name_by_id: dict[Name, str] = {}
        for pair, row in zip(pairs.tolist(), rows[first].tolist(), strict=True):
            id_code, name_code = divmod(pair, count)
            identifier, name = by_id[id_code], str(by_name[name_code])
            if name_by_id.setdefault(identifier, name) != name:
                message = (
                    f"category {short_json(identifier)} has the names {short_json(name)} and "
                    f"{short_json(name_by_id[identifier])}"
                )
                self.problems.add_here(self.location(row), message, "use one name per category")
        return name_by_id


def _first_rows(code: Integers, count: int) -> NDArray[np.intp]:
    """Return the first row of each code."""
    first = np.full(count, -1)
    first[code[::-1]] = np.arange(len(code))[::-1]
    return first


def _exclude(rows: Any, others: Any) -> Any:
    """Return the rows that are not in `others`."""
    return np.setdiff1d(rows, others, assume_unique=True) if len(rows) else rows


def _format_value(value: Any) -> str:
    """Return the text of a number, or of four, for messages."""
    if isinstance(value, list):
        return f"[{', '.join(map(_format_value, value))}]"
    if isinstance(value, float):
        return f"{value:g}" if isfinite(value) else "NaN" if isnan(value) else "infinite"
    return short_json(value)


# --- ground truth


def _truth_columns(table: Table) -> TruthColumns:
    """Return the columns; raise InputError for invalid rows."""
    table.check_images()
    empty = _empty_rows(table)
    label, class_ids, class_names = _classes(table, empty)
    corners, box_area = table.boxes(empty)
    area, without_area = _areas(table, box_area)
    columns: dict[str, Any] = {
        "label": label,
        "corners": corners,
        "box_area": box_area,
        "area": area,
        **{flag: _flag(table, name) for flag, name in _FLAGS.items()},
    }
    ids = _ids(table)
    table.problems.raise_any()
    names = tuple(sorted(table.images.number))
    index = indices_in(table.images.number, names)
    columns["image"] = table.image(index)
    mask = np.ones(len(label), np.bool_)
    mask[empty] = False
    records = int(np.count_nonzero(mask))
    if not records and not table.limits.empty:
        table.problems.add_here("", "no annotations")
    repeated, reused = _drop_repeated(table, ids, columns, mask)
    table.problems.raise_any()
    missing = {
        "missing-annotation-ids": table.without("id"),
        "missing-area": without_area,
        "missing-iscrowd": table.without("iscrowd"),
    }
    counts = {code: int(np.count_nonzero(mask[rows])) for code, rows in missing.items()}
    counts["annotation-ids-by-image"] = reused
    is_zero = (ids == table.codes["id"].number.get(0, -2))[mask] & (reused == 0)
    counts["annotation-id-zero"] = int(np.count_nonzero(is_zero))
    sizes = np.full((len(names), 2), np.nan)
    if table.sizes is not None and names:
        sizes[index[table.images.rows]] = table.sizes
    origin = None
    if not mask.all():
        origin = np.flatnonzero(mask)
        columns = {name: column[mask] for name, column in columns.items()}
    truth = GroundTruth(
        **columns,
        images=names,
        image_sizes=sizes,
        classes=tuple(map(str, class_ids)),
        class_ids=class_ids,
        files=(),
        zero_id=is_zero & (np.cumsum(is_zero) == 1),
    )
    repeats = {"annotations": repeated}
    return TruthColumns(truth, class_names, counts, records, origin, repeats)


def _empty_rows(table: Table) -> Any:
    """Return the rows of images without objects."""
    rows = np.arange(0 if table.shape.nested else len(table))
    for name in (*table.shape.box, *table.shape.class_columns):
        rows = np.intersect1d(rows, table.without(name)) if len(rows) else rows
    return rows


def _classes(table: Table, empty: Any) -> tuple[Integers, tuple[Name, ...], tuple[str | None, ...]]:
    """Return the label of each row, and the ids and names of the classes."""
    table.check_classes(empty)
    column, *others = table.shape.class_columns
    codes = table.codes[column]
    if table.problems.count:
        return codes.rows, (), ()
    listed = table.shape.class_names
    if column == "category" and table.shape.id_column and listed is not None:
        ids: tuple[Name, ...] = tuple(range(len(listed)))
        label = _indexed(codes, ids)
        label[empty] = 0
        numbers = list(codes.number)
        table.report(
            np.flatnonzero(label < 0),
            lambda row: (
                f"category is {numbers[codes.rows[row]]}, expected 0 to {len(listed) - 1} as in "
                "the metadata huggingface"
            ),
        )
        return label, ids, listed
    ids = tuple(sorted(codes.number))
    names: tuple[str | None, ...] = tuple(map(str, ids))
    if table.shape.id_column:
        names = (None,) * len(ids)
    if others:
        name_by_id = table.category_names(empty)
        names = tuple(name_by_id.get(identifier) for identifier in ids)
    return _indexed(codes, ids), ids, names


def _indexed(codes: Codes, order: Sequence[Name]) -> Integers:
    """Return the position in an order of the name of each row, -1 if absent."""
    return indices_in(codes.number, order)[codes.rows] if codes.number else codes.rows


def _areas(table: Table, box_area: Floats) -> tuple[Floats, Any]:
    """Return the annotated areas, or those of the boxes, and the rows without."""
    area = table.numbers("area")
    missing = table.without("area")
    table.check_numbers("area", area, missing)
    negative = np.flatnonzero(area < 0)
    table.report(negative, lambda row: f"area is {area[row]:g}, expected a number >= 0")
    area[missing] = box_area[missing]
    return area, missing


def _flag(table: Table, name: str) -> Flags:
    """Return a flag, False if missing."""
    values = table.numbers(name)
    table.report(
        np.flatnonzero((values != 0) & (values != 1)),
        lambda row: f"{name} is {_format_value(values[row].item())}, expected 0 or 1",
    )
    return np.asarray(values == 1)


def _ids(table: Table) -> Integers:
    """Return the code of each annotation's id, -1 if missing."""
    ids = np.full(len(table), -1, np.int32)
    if "id" in table.shape.fields:
        missing = table.without("id")
        table.check_names("id", table.codes["id"], missing)
        ids[:] = table.codes["id"].rows
        ids[missing] = -1
    return ids


def _drop_repeated(
    table: Table, ids: Integers, columns: Mapping[str, Any], mask: Flags
) -> tuple[list[Name], int]:
    """Unset the mask of identical records with the same id and image.

    Return their ids, and the number of ids that name other objects in other images.
    """
    rows = np.flatnonzero(ids >= 0)
    names = list(table.codes["id"].number)
    if len(names) == len(rows):
        return [], 0
    keys = columns["image"][rows].astype(np.int64) * len(names) + ids[rows]
    _, first, key = np.unique(keys, return_index=True, return_inverse=True)
    original = rows[first][key]
    repeated, original = rows[original != rows], original[original != rows]
    same = np.ones(len(repeated), np.bool_)
    for column in columns.values():
        equal = column[repeated] == column[original]
        same &= equal.all(axis=1) if equal.ndim > 1 else equal
    first_row = dict(zip(repeated.tolist(), original.tolist(), strict=True))
    table.report(
        repeated[~same],
        lambda row: (
            f"duplicate id {short_json(names[ids[row]])} (also at {table.location(first_row[row])})"
        ),
    )
    mask[repeated[same]] = False
    return [names[code] for code in ids[repeated[same]].tolist()], len(first) - len(names)


# --- detections


def _detection_columns(table: Table, truth: GroundTruth, as_is: bool) -> DetectionColumns:
    """Return the columns with the indices of `truth`."""
    table.check_images()
    later = table.limits.part or table.limits.any_classes
    label, unknown = _labels(table, truth, as_is or later)
    corners, box_area = table.boxes()
    score = table.numbers("score")
    without = table.without("score")
    table.check_numbers("score", score, without)
    table.problems.raise_any()
    score[without] = np.nan
    check_scores(score, lambda row: (table.problems.file, table.location(row)))
    index = indices_in(table.images.number, truth.images)
    image = table.image(index)
    extra = np.flatnonzero(image < 0)
    if (index < 0).any() and table.limits.refuses_images(len(extra) or 1, len(image)):
        _refuse_unknown_images(table, extra, truth.images)
    columns = DetectionColumns(image, label, corners, box_area, score, unknown, {})
    return columns.without_extra_images(len(truth.class_ids), len(np.unique(_codes(table)[extra])))


def _labels(table: Table, truth: GroundTruth, as_is: bool) -> tuple[Integers, dict[Name, int]]:
    """Return the label of each row, and the counts of unknown classes."""
    table.check_classes()
    column = table.shape.class_columns[0]
    has_both = len(table.shape.class_columns) > 1  # ids and names
    known: Sequence[Name] = truth.class_ids
    names_decide = truth.class_ids == truth.classes or table.limits.any_classes
    if not table.shape.id_column or (has_both and names_decide):
        column, known = "category", truth.classes
    codes = table.codes[column]
    if table.problems.count:
        return codes.rows, {}
    _check_type(table, column, codes, known)
    if has_both and column == "category_id":
        _check_names(table, table.category_names(), truth)
    unknown = sorted(codes.number.keys() - set(known), key=codes.number.__getitem__)
    if column == "category" and unknown and len(unknown) == len(codes.number) and not as_is:
        table.problems.instead(
            no_common_id("category", unknown, known),
            class_map_hint(unknown, truth.classes)
            or f"use the ground truth's names, or pass {INSIST}",
        )
    label = _indexed(codes, (*known, *unknown))
    counts = np.bincount(label)[len(known) :].tolist() if unknown else []
    return label, dict(zip(unknown, counts, strict=True))


def _check_names(table: Table, names: dict[Name, str], truth: GroundTruth) -> None:
    """Report categories with another name than in the ground truth."""
    expected = dict(zip(truth.class_ids, truth.classes, strict=True))
    for identifier, name in names.items():
        true_name = expected.get(identifier, name)
        if true_name not in (name, distinct_name(name, identifier)):
            message = other_name(identifier, name, true_name)
            table.problems.add_here("", message, "use the ground truth's category ids or names")


def _check_type(table: Table, column: str, codes: Codes, known: Sequence[Name]) -> None:
    """Report strings if the ground truth has numbers, or the reverse."""
    if not codes.number or not known:
        return
    name = next(iter(codes.number))
    if isinstance(name, str) != isinstance(known[0], str):
        table.problems.add_here(
            "",
            f"{column} has {_type_name(name)} (e.g. {short_json(name)}), expected "
            f"{_type_name(known[0])} as in the ground truth (e.g. {short_json(known[0])})",
        )


def _refuse_unknown_images(table: Table, rows: Any, known: tuple[Name, ...]) -> None:
    """Report detections of unknown images."""
    _check_type(table, "image_id", table.images, known)
    table.problems.raise_any()
    if not len(rows):
        return
    names = list(table.images.number)
    if len(rows) == len(table):
        message = no_common_id("image_id", names, known)
        table.problems.instead(message, SAME_IMAGES)
        table.problems.raise_any()
    codes = _codes(table)[rows]
    message = f"image_id {short_json(names[codes[0]])} is not in the ground truth"
    location = table.path, table.location(int(rows[0]))
    counts = len(rows), len(np.unique(codes))
    raise InputError(extra_images_problem(location, message, *counts))


def _codes(table: Table) -> Integers:
    """Return the index of the image of each row among those of the file."""
    return table.image(NONE.astype(np.int32))


def _type_name(name: Name) -> str:
    return "strings" if isinstance(name, str) else "numbers"
