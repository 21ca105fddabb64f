"""Ground truth of Parquet and Arrow files."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.formats.arrow.table import Table, format_value
from detap.formats.coco.columns import TruthColumns
from detap.io.json_text import short_json
from detap.tables.columns import indices_in
from detap.tables.detection import Flags, Floats, Integers, Name

_FLAGS = {"crowd": "iscrowd", "difficult": "difficult", "ignore": "ignore", "group_of": "group_of"}


def truth_columns(table: Table) -> TruthColumns:
    """Return the columns; raise InputError for invalid rows."""
    table.check_images()
    empty = _empty_rows(table)
    label, class_ids, class_names = _classes(table, empty)
    corners, box_area = table.boxes(empty)
    area, without_area = _areas(table, box_area)
    columns: dict[str, NDArray[Any]] = {
        "label": label,
        "corners": corners,
        "box_area": box_area,
        "area": area,
    }
    for flag, name in _FLAGS.items():
        columns[flag] = _flag(table, name)
    ids = _ids(table)
    table.problems.raise_any()
    names = tuple(sorted(table.rows.image.number))
    columns["image"] = table.image(indices_in(table.rows.image.number, names))
    mask = np.ones(len(label), np.bool_)
    mask[empty] = False
    records = int(np.count_nonzero(mask))
    if not records and not table.limits.empty:
        table.problems.add("", "no annotations")
    repeated = _drop_repeated(table, ids, columns, mask)
    table.problems.raise_any()
    missing = {
        "missing-annotation-ids": table.rows.without("id"),
        "missing-area": without_area,
        "missing-iscrowd": table.rows.without("iscrowd"),
    }
    counts = {code: int(np.count_nonzero(mask[rows])) for code, rows in missing.items()}
    is_zero = (ids == table.rows.codes["id"].number.get(0, -2))[mask]
    counts["annotation-id-zero"] = int(np.count_nonzero(is_zero))
    origin = None
    if not mask.all():
        origin = np.flatnonzero(mask)
        columns = {name: column[mask] for name, column in columns.items()}
    selected: dict[str, Any] = columns
    return TruthColumns(
        **selected,
        image_ids=names,
        image_sizes=_sizes(table, names),
        class_ids=class_ids,
        class_names=class_names,
        records=records,
        zero_row=int(is_zero.argmax()) if is_zero.any() else -1,
        origin=origin,
        counts=counts,
        repeated={"annotations": repeated},
    )


def _empty_rows(table: Table) -> Any:
    """Return the rows of images without objects."""
    rows = np.arange(0 if table.shape.nested else len(table.rows))
    for name in (*table.shape.box, *table.shape.class_columns):
        rows = np.intersect1d(rows, table.rows.without(name)) if len(rows) else rows
    return rows


def _classes(table: Table, empty: Any) -> tuple[Integers, tuple[Name, ...], tuple[str | None, ...]]:
    """Return the label of each row, and the ids and names of the classes."""
    table.check_classes(empty)
    column, *others = table.shape.class_columns
    codes = table.rows.codes[column]
    if table.problems.count:
        return codes.rows(), (), ()
    listed_names = table.shape.class_names
    if column == "category" and table.shape.id_column and listed_names is not None:
        ids: tuple[Name, ...] = tuple(range(len(listed_names)))
        label = codes.rows(indices_in(codes.number, ids))
        label[empty] = 0
        table.report(
            np.flatnonzero(label < 0),
            lambda row: (
                f"category is {list(codes.number)[codes.rows()[row]]}, expected 0 to "
                f"{len(listed_names) - 1} as in the metadata huggingface"
            ),
        )
        return label, ids, listed_names
    ids = tuple(sorted(codes.number))
    names: tuple[str | None, ...] = tuple(map(str, ids))
    if table.shape.id_column:
        names = (None,) * len(ids)
    if others:
        name_by_id = table.category_names(empty)
        names = tuple(name_by_id.get(identifier) for identifier in ids)
    return codes.rows(indices_in(codes.number, ids)), ids, names


def _areas(table: Table, box_area: Floats) -> tuple[Floats, Any]:
    """Return the annotated areas, or those of the boxes, and the rows without."""
    area = table.rows.numbers("area")
    missing = table.rows.without("area")
    table.check_given("area", area, missing)
    table.check_finite("area", area)
    negative = np.flatnonzero(area < 0)
    table.report(negative, lambda row: f"area is {area[row]:g}, expected a number >= 0")
    area[missing] = box_area[missing]
    return area, missing


def _flag(table: Table, name: str) -> Flags:
    """Return a flag, False if missing."""
    values = table.rows.numbers(name)
    invalid = np.flatnonzero((values != 0) & (values != 1))
    table.report(
        invalid, lambda row: f"{name} is {format_value(values[row].item())}, expected 0 or 1"
    )
    return np.asarray(values == 1)


def _ids(table: Table) -> Integers:
    """Return the code of each annotation's id, -1 if missing."""
    ids = np.full(len(table.rows), -1, np.int32)
    if "id" in table.shape.fields:
        missing = table.rows.without("id")
        table.check_names("id", table.rows.codes["id"], missing)
        ids[:] = table.rows.codes["id"].rows()
        ids[missing] = -1
    return ids


def _drop_repeated(
    table: Table, ids: Integers, columns: Mapping[str, Any], mask: Flags
) -> list[Name]:
    """Unset the mask of identical records with the same id; return their ids."""
    rows = np.flatnonzero(ids >= 0)
    names = list(table.rows.codes["id"].number)
    if len(names) == len(rows):
        return []
    first = np.full(len(names), -1)
    first[ids[rows[::-1]]] = rows[::-1]
    repeated = rows[first[ids[rows]] != rows]
    original = first[ids[repeated]]
    same = np.ones(len(repeated), np.bool_)
    for column in columns.values():
        equal = column[repeated] == column[original]
        same &= equal.all(axis=1) if equal.ndim > 1 else equal
    table.report(
        repeated[~same],
        lambda row: (
            f"duplicate id {short_json(names[ids[row]])} "
            f"(also at {table.location(first[ids[row]])})"
        ),
    )
    mask[repeated[same]] = False
    return [names[code] for code in ids[repeated[same]].tolist()]


def _sizes(table: Table, names: tuple[Name, ...]) -> Floats:
    """Return the width and height of each image, NaN if unknown."""
    sizes = np.full((len(names), 2), np.nan)
    if table.rows.sizes is not None and len(names):
        index = indices_in(table.rows.image.number, names)
        sizes[index[table.rows.image.rows()]] = table.rows.sizes
    return sizes
