"""Ground truth of a table that was read."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.formats.arrow.table import Table, said
from detap.formats.coco.columns import TruthColumns
from detap.io.json_text import spelt
from detap.tables.columns import places
from detap.tables.detection import Flags, Floats, Integers, Name

_FLAGS = {"crowd": "iscrowd", "difficult": "difficult", "ignore": "ignore", "group_of": "group_of"}


def truth_columns(table: Table) -> TruthColumns:
    """Return ground truth; raise where something is wrong with it."""
    table.check_images()
    bare = _bare_rows(table)
    label, class_ids, class_names = _classes(table, bare)
    corners, box_area = table.boxes(bare)
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
    columns["image"] = table.image(places(table.rows.image.number, names))
    kept = np.ones(len(label), np.bool_)
    kept[bare] = False
    records = int(np.count_nonzero(kept))
    if not records and not table.limits.empty:
        table.problems.add("", "has no annotations", "there is nothing to score against")
    repeated = _repeated(table, ids, columns, kept)
    table.problems.raise_any()
    without = {
        "missing-annotation-ids": table.rows.without("id"),
        "missing-area": without_area,
        "missing-iscrowd": table.rows.without("iscrowd"),
    }
    counts = {code: int(np.count_nonzero(kept[rows])) for code, rows in without.items()}
    is_zero = (ids == table.rows.codes["id"].number.get(0, -2))[kept]
    counts["annotation-id-zero"] = int(np.count_nonzero(is_zero))
    origin = None
    if not kept.all():
        origin = np.flatnonzero(kept)
        columns = {name: column[kept] for name, column in columns.items()}
    given: dict[str, Any] = columns
    return TruthColumns(
        **given,
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


def _bare_rows(table: Table) -> Any:
    """Return the rows that have an image and nothing else."""
    bare = np.arange(0 if table.shape.nested else len(table.rows))
    for name in (*table.shape.box, *table.shape.class_columns):
        bare = np.intersect1d(bare, table.rows.without(name)) if len(bare) else bare
    return bare


def _classes(table: Table, bare: Any) -> tuple[Integers, tuple[Name, ...], tuple[str | None, ...]]:
    """Return the class of each row, and the ids and names of the classes."""
    table.check_classes(bare)
    column, *others = table.shape.class_columns
    found = table.rows.codes[column]
    if table.problems.count:
        return found.rows(), (), ()
    listed = table.shape.class_names
    if column == "category" and table.shape.id_column and listed is not None:
        ids: tuple[Name, ...] = tuple(range(len(listed)))
        label = found.rows(places(found.number, ids))
        label[bare] = 0
        table.report(
            np.flatnonzero(label < 0),
            lambda row: f"category is {list(found.number)[found.rows()[row]]}",
            f"the metadata huggingface name the classes 0 to {len(listed) - 1}",
        )
        return label, ids, listed
    ids = tuple(sorted(found.number))
    names: tuple[str | None, ...] = tuple(map(str, ids))
    if table.shape.id_column:
        names = (None,) * len(ids)
    if others:
        called = table.called(bare)
        names = tuple(called.get(identifier) for identifier in ids)
    return found.rows(places(found.number, ids)), ids, names


def _areas(table: Table, box_area: Floats) -> tuple[Floats, Any]:
    """Return the annotated areas, the box's where there is none; and the rows without."""
    area = table.rows.numbers("area")
    without = table.rows.without("area")
    table.check_given("area", area, without)
    table.check_finite("area", area)
    negative = np.flatnonzero(area < 0)
    table.report(
        negative, lambda row: f"area is {area[row]:g}", "give the area of the object, >= 0"
    )
    area[without] = box_area[without]
    return area, without


def _flag(table: Table, name: str) -> Flags:
    """Return a flag, false where there is none."""
    values = table.rows.numbers(name)
    wrong = np.flatnonzero((values != 0) & (values != 1))
    table.report(wrong, lambda row: f"{name} is {said(values[row].item())}", "give 0 or 1")
    return np.asarray(values == 1)


def _ids(table: Table) -> Integers:
    """Return the number of each annotation's id, -1 where there is none."""
    ids = np.full(len(table.rows), -1, np.int32)
    if "id" in table.shape.fields:
        without = table.rows.without("id")
        table.check_names("id", table.rows.codes["id"], without)
        ids[:] = table.rows.codes["id"].rows()
        ids[without] = -1
    return ids


def _repeated(table: Table, ids: Integers, columns: Mapping[str, Any], kept: Flags) -> list[Name]:
    """Leave out the rows that repeat an earlier one, id and all; return their ids."""
    rows = np.flatnonzero(ids >= 0)
    names = list(table.rows.codes["id"].number)
    if len(names) == len(rows):
        return []
    first = np.full(len(names), -1)
    first[ids[rows[::-1]]] = rows[::-1]
    again = rows[first[ids[rows]] != rows]
    before = first[ids[again]]
    same = np.ones(len(again), np.bool_)
    for column in columns.values():
        equal = column[again] == column[before]
        same &= equal.all(axis=1) if equal.ndim > 1 else equal
    table.report(
        again[~same],
        lambda row: (
            f"id {spelt(names[ids[row]])} is that of {table.location(first[ids[row]])} too, "
            "another record"
        ),
        "give every record an id of its own",
    )
    kept[again[same]] = False
    return [names[number] for number in ids[again[same]].tolist()]


def _sizes(table: Table, names: tuple[Name, ...]) -> Floats:
    """Return the width and height of each image, NaN where unknown."""
    sizes = np.full((len(names), 2), np.nan)
    if table.rows.sizes is not None and len(names):
        place = places(table.rows.image.number, names)
        sizes[place[table.rows.image.rows()]] = table.rows.sizes
    return sizes
