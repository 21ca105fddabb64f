"""Reader of Parquet and Arrow files with the keys of COCO records as columns.

The same data as a COCO file gives bit-identical tables.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.errors import Note, Problem
from detap.formats.arrow import files
from detap.formats.arrow.columns import (
    NULL,
    WRONG,
    Codes,
    boxes_of,
    combined,
    encode,
    floats,
    is_absent,
    is_null,
    to_numpy,
)
from detap.formats.arrow.schema import BOX, FLAGS, Shape
from detap.formats.by_name.notes import images_without_objects, nonzero_notes
from detap.formats.coco.assembly import Source, detection_table, refuse_same_file, truth_table
from detap.formats.coco.columns import TruthColumns, detections_of, image_sizes
from detap.formats.coco.id_mapping import check_images
from detap.formats.coco.records import (
    Record,
    box_of,
    check_area,
    flag_of,
    identifier_of,
    no_common_id,
    number_of,
    other_name,
    other_type,
)
from detap.io.json_text import short_json
from detap.io.limits import DEFAULT_LIMITS, MORE_RECORDS, Limits
from detap.io.paths import Path, SourceFile, shown
from detap.io.problems import FaultError, Problems
from detap.tables.columns import EXACT, check_scores, indices_in
from detap.tables.detection import (
    Detections,
    Floats,
    GroundTruth,
    Integers,
    Name,
    distinct_name,
    encode_boxes,
)
from detap.tables.notes import INSIST, class_map_hint

_NAMES = ("category_id", "category", "id")
_NUMBERS = ("score", "area", *FLAGS)
_LAYOUT = (
    "name the columns after the box format (x1, y1, x2, y2 or x, y, width, height), or set the "
    "metadata `boxes` of bbox"
)


def read_ground_truth(
    path: Path, *, boxes: str | None = None, as_is: bool = False, limits: Limits = DEFAULT_LIMITS
) -> GroundTruth:
    """Read ground truth; images and classes are in ascending order of id or name.

    A row with only an image, or with empty lists (Hugging Face datasets), is an image without
    objects. `boxes` is the format of a column `bbox` without metadata.
    """
    table = Table(path, False, boxes, limits)
    label, class_ids, class_names = _classes(table)
    names = tuple(sorted(table.images.number))
    index = indices_in(table.images.number, names)
    area = table.numbers["area"]
    columns: dict[str, Any] = {
        "image": index[table.image],
        "label": label,
        "corners": table.corners,
        "box_area": table.box_area,
        "area": np.where(np.isnan(area), table.box_area, area),
        **{flag: table.numbers[name] == 1 for name, flag in FLAGS.items()},
    }
    if not len(table) and not table.limits.empty:
        table.problems.add_here("", "no annotations")
    kept, repeated, reused = _without_repeated(table, columns)
    table.problems.raise_any()
    ids = table.codes["id"]
    is_zero = (ids.rows[kept] == ids.number.get(0, WRONG)) & (reused == 0)
    counts = {
        "missing-annotation-ids": int(np.count_nonzero(ids.rows[kept] == NULL)),
        "missing-area": int(np.count_nonzero(np.isnan(area[kept]))),
        "missing-iscrowd": int(np.count_nonzero(np.isnan(table.numbers["iscrowd"][kept]))),
        "annotation-ids-by-image": reused,
        "annotation-id-zero": int(np.count_nonzero(is_zero)),
    }
    sizes = np.full((len(names), 2), np.nan)
    if table.sizes is not None and names:
        sizes[index[table.images.rows]] = table.sizes
    truth = GroundTruth(
        **{name: column[kept] for name, column in columns.items()},
        images=names,
        image_sizes=sizes,
        classes=tuple(map(str, class_ids)),
        class_ids=class_ids,
        files=(),
        zero_id=is_zero & (np.cumsum(is_zero) == 1),
    )
    counted = TruthColumns(
        truth, class_names, counts, len(table), repeated={"annotations": repeated}
    )
    source = table.source(len(table), as_is, lambda row: table.location(int(kept[row])))
    truth = truth_table(counted, source)
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
    later = limits.part or limits.any_classes
    label, unknown = _labels(table, ground_truth, as_is or later)
    table.problems.raise_any()
    score = table.numbers["score"]
    check_scores(score, table.located)
    image = indices_in(table.images.number, ground_truth.images)[table.image]
    names, problems = (table.image, list(table.images.number)), table.problems
    extra = check_images(
        image, names, ground_truth, problems, limits=limits, location=table.location
    )
    problems.raise_any()
    columns, rows = detections_of(
        ground_truth,
        ground_truth.class_ids,
        unknown,
        extra,
        image=image,
        label=label,
        corners=table.corners,
        box_area=table.box_area,
        score=score,
    )
    source = table.source(len(columns), as_is, lambda row: table.location(int(rows[row])))
    detections = detection_table(columns, ground_truth, source)
    without_scores = "score" not in table.shape.fields
    notes = (*detections.notes, *table.notes())
    return replace(detections, notes=notes, without_scores=without_scores)


class Table:
    """The N boxes of a file as columns.

    `images` are the codes of all images; `image` (N,) are those of the boxes. `numbers` are NaN
    where missing. `rows` (N,) are those of the file; if nested, one may have several boxes, and
    rows have `sizes` (rows, 2), NaN if unknown. All values are valid.
    """

    def __init__(self, path: Path, scored: bool, boxes: str | None, limits: Limits) -> None:
        self.path = os.fspath(path)
        self.limits = limits
        self.problems = Problems(limits.problems, shown(self.path))
        with files.opened(path, limits) as container, files.damage(self.path):
            self._container = container
            self.shape = Shape(container.schema, scored, boxes, self.problems)
            container.check_size(self.shape.columns, limits)
            try:
                self._convert(container.read(self.shape.columns))
            except FaultError as error:
                self.problems.add_here("", error.message, error.hint)
        self.problems.raise_any()

    def _convert(self, table: Any) -> None:
        """Convert the columns of a pyarrow.Table; a row is a box, or an image if nested."""
        columns, lengths = self.shape.rows(table)
        columns = {
            name: column if name in _NAMES else combined(column)
            for name, column in columns.items()
            if name != "image_id"
        }
        self.sizes: Floats | None = None
        if self.shape.sized:
            sides = (floats(table[name].combine_chunks()) for name in ("width", "height"))
            self.sizes = image_sizes(*sides)
        self.images = encode(table["image_id"])  # of each row of the table
        self._check_images(table["image_id"])
        codes = {name: encode(columns[name]) for name in _NAMES if name in columns}
        numbers = {name: floats(columns[name]) for name in _NUMBERS if name in columns}
        parts = [columns[name] for name in self.shape.box]
        box = np.column_stack([*map(floats, parts)]) if len(parts) > 1 else boxes_of(parts[0])
        if len(box) > self.limits.records:
            raise FaultError(f"more than {self.limits.records} boxes", MORE_RECORDS)
        self.rows = np.arange(len(table))
        if self.shape.nested:
            self.rows = np.repeat(self.rows, to_numpy(lengths))
        has_box = np.full(len(box), self.shape.nested)
        for absent in (
            *map(is_absent, parts),
            *(codes[name].rows == NULL for name in self.shape.class_columns),
        ):
            has_box |= ~absent
        self.corners, self.box_area = encode_boxes(box, self.shape.box_format, copy=False)
        odd = ~np.isfinite(self.box_area) | ~np.isfinite(self.corners).all(axis=1)
        for name, of_column in codes.items():
            odd |= of_column.rows <= (WRONG if name == "id" else NULL)
        for name, values in numbers.items():
            fine = np.isin(values, (0, 1)) if name in FLAGS else np.isfinite(values)
            odd |= ~(fine & (values >= 0) if name == "area" else fine) & ~is_null(columns[name])
        kept = np.flatnonzero(has_box)  # without the rows of images without objects
        self.rows = self.rows[kept]
        self._refuse(np.flatnonzero(odd[kept]), kept, columns)
        self.image = self.images.rows[self.rows]
        self.corners, self.box_area = self.corners[kept], self.box_area[kept]
        self.codes = {name: Codes(number, of[kept]) for name, (number, of) in codes.items()}
        self.numbers = {name: values[kept] for name, values in numbers.items()}
        for name in _NUMBERS:
            self.numbers.setdefault(name, np.full(len(self), np.nan))
        self.codes.setdefault("id", Codes({}, np.full(len(self), NULL, np.int32)))

    def _check_images(self, column: Any) -> None:
        """Add the problems of rows without an image, and of repeated images of nested tables."""
        code, location = self.images.rows, self._container.location
        for row in np.flatnonzero(code < 0).tolist():
            with self.problems.collected(location(row)):
                identifier_of({"image_id": column[row].as_py()}, "image_id")
        if not self.shape.nested or self.problems.count:
            return
        _, first, index = np.unique(code, return_index=True, return_inverse=True)
        self.problems.add_rows(
            np.flatnonzero(first[index] != np.arange(len(code))).tolist(),
            lambda row: (self.problems.file, location(row)),
            lambda row: f"duplicate image_id (also at {location(first[index[row]])})",
            "write one row per image",
        )

    def _refuse(
        self, boxes: NDArray[np.intp], kept: NDArray[np.intp], columns: Mapping[str, Any]
    ) -> None:
        """Add the problems of boxes of which a value is not valid, those kept of the columns."""
        problems = []
        for box in boxes[: self.limits.problems].tolist():
            record = {name: column[kept[box]].as_py() for name, column in columns.items()}
            try:
                _check(record, self.shape)
            except FaultError as error:
                problems.append(Problem(*self.located(box), error.message, error.hint))
        self.problems.add_first_of(problems, len(boxes))

    def __len__(self) -> int:
        return len(self.rows)

    def source(self, records: int, as_is: bool, location: Callable[[int], str]) -> Source:
        """Return the origin of the columns, for messages."""
        file = SourceFile(self.path, records, sha256=self._container.sha256)
        return Source(file, self.limits, as_is, location, self.shape.box_format, hint=_LAYOUT)

    def location(self, box: int) -> str:
        """Return the location of a box."""
        row = int(self.rows[box])
        first = np.searchsorted(self.rows, row)
        return self._container.location(row) + f", objects[{box - first}]" * self.shape.nested

    def located(self, box: int) -> tuple[str, str]:
        """Return the file of a box, and its location."""
        return self.problems.file, self.location(box)

    def notes(self) -> Iterator[Note]:
        """Yield the notes of the table."""
        fields = self.shape.fields
        kinds = [fields[name].type for name in (*self.shape.box, "score") if name in fields]
        if {"float", "halffloat"} & {str(getattr(kind, "value_type", kind)) for kind in kinds}:
            message = (
                "boxes or scores are float32; AP may differ from that of JSON results in the "
                "eighth decimal"
            )
            yield Note("float32-columns", message, severity="info")

    def category_names(self) -> dict[Name, str]:
        """Return the name of each category id; add the problems of ids with several names."""
        ids, names = (self.codes[k] for k in ("category_id", "category"))
        by_id, by_name = list(ids.number), list(names.number)
        count = len(by_name) + 1
        pairs, first = np.unique(ids.rows.astype(np.int64) * count + names.rows, return_index=True)
        name_by_id: dict[Name, str] = {}
        for pair, row in zip(pairs.tolist(), first.tolist(), strict=True):
            id_code, name_code = divmod(pair, count)
            identifier, name = by_id[id_code], str(by_name[name_code])
            if name_by_id.setdefault(identifier, name) != name:
                message = (
                    f"category {short_json(identifier)} has the names {short_json(name)} and "
                    f"{short_json(name_by_id[identifier])}"
                )
                self.problems.add_here(self.location(row), message, "use one name per category")
        return name_by_id


def _check(record: Record, shape: Shape) -> None:
    """Raise FaultError for a value of a box that is not valid; only some may be null."""
    for name in shape.class_columns:
        identifier_of(record, name)
    given = {name: value for name, value in record.items() if value is not None}
    if "id" in given:
        identifier_of(given, "id")
    box = record[BOX] if shape.box == (BOX,) else [record[name] for name in shape.box]
    names = [f"{BOX}[{k}]" for k in range(4)] if shape.box == (BOX,) else shape.box
    numbers = [*zip(names, box or (), strict=False)]
    numbers += [(name, given[name]) for name in ("score", "area") if name in given]
    for name, value in numbers:
        number_of(name, value)
        if isinstance(value, int) and abs(value) > EXACT:
            hint = "use numbers that float64 represents exactly, such as integers below 2^53"
            raise FaultError(f"{name} is {short_json(value)}, beyond 2^53", hint)
    box_of({BOX: box}, shape.box_format)
    check_area(given)
    for name in FLAGS:
        if name in given:
            flag_of(given, name)


# --- ground truth


def _classes(table: Table) -> tuple[Integers, tuple[Name, ...], tuple[str | None, ...]]:
    """Return the label of each row, and the ids and names of the classes."""
    column, *others = table.shape.class_columns
    codes, listed = table.codes[column], table.shape.class_names
    if column == "category" and table.shape.id_column and listed is not None:
        ids: tuple[Name, ...] = tuple(range(len(listed)))
        label = _indexed(codes, ids)
        numbers = list(codes.number)
        table.problems.add_rows(
            np.flatnonzero(label < 0).tolist(),
            table.located,
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
        name_by_id = table.category_names()
        names = tuple(name_by_id.get(identifier) for identifier in ids)
    return _indexed(codes, ids), ids, names


def _indexed(codes: Codes, order: Sequence[Name]) -> Integers:
    """Return the position in an order of the name of each row, -1 if absent."""
    return indices_in(codes.number, order)[codes.rows] if codes.number else codes.rows


def _without_repeated(
    table: Table, columns: Mapping[str, Any]
) -> tuple[NDArray[np.intp], list[Name], int]:
    """Return the boxes to keep, the ids of identical ones, and how many ids other images reuse."""
    ids, names = table.codes["id"].rows, list(table.codes["id"].number)
    rows = np.flatnonzero(ids >= 0)
    every = np.arange(len(table))
    if len(names) == len(rows):
        return every, [], 0
    keys = columns["image"][rows].astype(np.int64) * len(names) + ids[rows]
    _, first, key = np.unique(keys, return_index=True, return_inverse=True)
    original = rows[first][key]
    repeated, original = rows[original != rows], original[original != rows]
    same = np.ones(len(repeated), np.bool_)
    for column in columns.values():
        equal = column[repeated] == column[original]
        same &= equal.all(axis=1) if equal.ndim > 1 else equal
    first_row = dict(zip(repeated.tolist(), original.tolist(), strict=True))
    table.problems.add_rows(
        repeated[~same].tolist(),
        table.located,
        lambda row: (
            f"duplicate id {short_json(names[ids[row]])} (also at {table.location(first_row[row])})"
        ),
    )
    dropped = repeated[same]
    return np.delete(every, dropped), [names[k] for k in ids[dropped]], len(first) - len(names)


# --- detections


def _labels(table: Table, truth: GroundTruth, as_is: bool) -> tuple[Integers, list[Name]]:
    """Return the label of each row, and the unknown classes."""
    column = table.shape.class_columns[0]
    has_both = len(table.shape.class_columns) > 1  # ids and names
    known: Sequence[Name] = truth.class_ids
    names_decide = truth.class_ids == truth.classes or table.limits.any_classes
    if not table.shape.id_column or (has_both and names_decide):
        column, known = "category", truth.classes
    codes = table.codes[column]
    if codes.number and (ending := other_type(next(iter(codes.number)), known)):
        name = short_json(next(iter(codes.number)))
        table.problems.add_here("", f"{column} {name} is not in the ground truth{ending}")
    if has_both and column == "category_id":
        expected = dict(zip(truth.class_ids, truth.classes, strict=True))
        for identifier, name in table.category_names().items():
            true_name = expected.get(identifier, name)
            if true_name not in (name, distinct_name(name, identifier)):
                message = other_name(identifier, name, true_name)
                table.problems.add_here("", message, "use the ground truth's category ids or names")
    unknown = sorted(codes.number.keys() - set(known), key=codes.number.__getitem__)
    if column == "category" and unknown and len(unknown) == len(codes.number) and not as_is:
        table.problems.instead(
            no_common_id("category", unknown, known),
            class_map_hint(unknown, truth.classes)
            or f"use the ground truth's names, or pass {INSIST}",
        )
    return _indexed(codes, (*known, *unknown)), unknown
