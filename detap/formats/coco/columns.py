"""Validated columns of COCO files, from which `assembly.py` makes tables."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import compress
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.errors import Note
from detap.formats.coco.records import identifier_of
from detap.io.problems import FaultError
from detap.tables.columns import EXACT
from detap.tables.detection import Detections, Flags, Floats, GroundTruth, Integers, Name

SHAPE_OF_TRUTH = "expected an object with images, annotations, categories"
SHAPE_OF_RESULTS = "expected a results list with image_id, category_id, bbox, score"


class TruthColumns(NamedTuple):
    """An instances file: annotations in file order, images and categories by id."""

    table: GroundTruth  # box_area is NaN if the row has a mask and no box
    class_names: tuple[str | None, ...]
    counts: Mapping[str, int]  # of the notes, by code
    records: int  # annotations in the file, including repeated ones
    repeated: Mapping[str, Sequence[Name]] = MappingProxyType({})


def detections_of(
    truth: GroundTruth,
    known: tuple[Name, ...],
    unknown: Iterable[Name],
    *left_out: tuple[Flags, Note],
    **columns: Any,
) -> tuple[Detections, Sequence[int] | NDArray[np.intp]]:
    """Return the table of columns, and the rows that it keeps, without those flagged.

    Its classes are those `known` in the ground truth, if any, and `unknown` ones that have rows.
    """
    names = (*(truth.classes if known else ()), *map(str, unknown))
    class_ids = (*known, *unknown)
    table = Detections(images=truth.images, classes=names, class_ids=class_ids, **columns)
    kept, notes = np.ones(len(table), np.bool_), table.notes
    for flags, note in left_out:
        if count := int(np.count_nonzero(kept & flags)):
            notes += (replace(note, count=count),)
            kept &= ~flags
    if kept.all():
        return table, range(len(table))
    rows = np.flatnonzero(kept)
    table = table.select(rows).compact()
    used = np.bincount(table.label, minlength=len(table.class_ids)) > 0
    used[: len(known)] = True
    new_label = np.cumsum(used, dtype=np.int32) - np.int32(1)
    changed = replace(
        table,
        label=new_label[table.label],
        classes=tuple(compress(table.classes, used)),
        class_ids=tuple(compress(table.class_ids, used)),
        notes=notes,
    )
    return changed, rows


def image_sizes(width: Floats, height: Floats) -> Floats:
    """Return the width and height of images, NaN if unusable."""
    sizes = np.stack([width, height], axis=1)
    sizes[~((sizes > 0) & (sizes < EXACT))] = np.nan
    return sizes


def pairs_of_lists(
    class_ids: Sequence[Name], name: str, lists: Sequence[list[Name] | None]
) -> tuple[Integers, dict[str, int]]:
    """Return the pairs of image and known category of a list of each image, and note counts."""
    label_by_id = {identifier: label for label, identifier in enumerate(class_ids)}
    pairs = [
        (image, label_by_id.get(identifier, -1))
        for image, categories in enumerate(lists)
        for identifier in categories or ()
    ]
    array = np.array(pairs, np.int32).reshape(-1, 2)
    known = array[array[:, 1] >= 0]
    width = max(len(class_ids), 1)
    keys = np.unique(known[:, 0] * np.int64(width) + known[:, 1])
    distinct = np.stack(np.divmod(keys, width), axis=1).astype(np.int32)
    counts = {
        f"{name}-of-unknown-categories": len(array) - len(known),
        f"images-without-{name}": sum(categories is None for categories in lists),
    }
    return distinct, counts


def listed_values(records: Iterable[Any], key: str) -> dict[Name, Any]:
    """Return the values under a key by id, unless null, from a list of images or categories."""
    values: dict[Name, Any] = {}
    for record in records:
        if isinstance(record, dict) and record.get(key) is not None:
            with suppress(FaultError):
                values[identifier_of(record, "id")] = record[key]
    return values


def only_texts(values: Mapping[Name, Any]) -> dict[Name, str]:
    """Return the values that are text."""
    return {name: value for name, value in values.items() if isinstance(value, str)}


def listed_names(records: Iterable[Any], key: str) -> dict[Name, str]:
    """Return the text under a key by id, from a list of images or categories."""
    return only_texts(listed_values(records, key))
