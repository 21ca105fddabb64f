"""Concatenate the tables of several inputs as if they were one file.

Rows keep the order of the inputs. An image must be in one input only, unless the caller allows
merging: an image in two inputs is usually counted twice by mistake.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.errors import InputError, Note, Problem
from detap.tables.columns import indices_in, ordered, reindexed
from detap.tables.detection import (
    SAMPLED_IMAGES,
    Detections,
    Floats,
    GroundTruth,
    Integers,
    Name,
    ResponseCounts,
    Table,
    distinct_name,
)
from detap.tables.masks import Masks
from detap.tables.notes import INTERLEAVED, NO_DETECTIONS, PER_INPUT

_MERGE = "pass merge_images=True (--merge-images) if their boxes differ"
_MERGE_HINTS = {
    GroundTruth: f"put each image in one input, or {_MERGE}",
    Detections: f"put each image in one input, {_MERGE}, or compare the files of several "
    "detectors: detap compare FILES --gt GT",
}
"""Hints for an image in two inputs, by table."""


def join_ground_truths(tables: Sequence[GroundTruth], *, merge_images: bool = False) -> GroundTruth:
    """Concatenate the ground truths of several inputs."""
    if len(tables) == 1:
        return tables[0]
    if not merge_images:
        _refuse_shared(tables, [table.images for table in tables])
    images, ids = (_union(tables, names) for names in ("images", "class_ids"))
    for table in tables[1:]:
        if table.sigmas != tables[0].sigmas:
            message = f"OKS sigmas (kpt_oks_sigmas) differ from those of {tables[0].path}"
            raise InputError(Problem(table.path, "", message, "use one skeleton in all inputs"))
    return stacked(
        tables,
        images,
        (ids, _class_names(tables, ids)),
        format=tables[0].format,
        image_sizes=_sizes(tables, images),
        listed=_lists(tables, images, ids),
        groups=_by_class(tables, [table.groups for table in tables]),
    )


def join_detections(
    tables: Sequence[Detections],
    ground_truth: GroundTruth | None = None,
    *,
    merge_images: bool = False,
) -> Detections:
    """Concatenate the detections of several inputs."""
    if len(tables) == 1:
        return tables[0]
    first = {table.has_scores: table.path for table in reversed(tables) if len(table)}
    if len(first) == 2:
        message = f"records have no score, but those of {first[True]} have one"
        raise InputError(Problem(first[False], "", message, "give all inputs scores, or none"))
    if not merge_images:
        # A table may list every image of the ground truth; only images with rows matter.
        _refuse_shared(tables, [images_seen(table) for table in tables])
    images = _union(tables, "images") if ground_truth is None else ground_truth.images
    known = () if ground_truth is None else ground_truth.class_ids
    ids = (*known, *ordered(set(_union(tables, "class_ids")).difference(known)))
    named = {k: n for table in tables for k, n in zip(table.class_ids, table.classes, strict=True)}
    names = tuple(map(named.__getitem__, ids))
    sample = sorted(dict(item for table in tables for item in table.categories).items())
    responses = [table.responses for table in tables if table.responses is not None]
    joined = stacked(
        tables,
        images,
        (ids, names),
        categories=tuple(sample[:SAMPLED_IMAGES]),
        without_scores=not any(table.has_scores for table in tables),
        responses=reduce(ResponseCounts.joined, responses) if responses else None,
    )
    ends = np.cumsum([len(table) for table in tables])[:-1]
    chunks = [chunk for chunk in np.split(joined.image, ends) if len(chunk)]
    if all(before.max() <= after.min() for before, after in pairwise(chunks)):
        return joined
    by_image = joined.select(np.argsort(joined.image, kind="stable"))
    return replace(by_image, notes=(*joined.notes, INTERLEAVED))


def align_classes(first: Detections, second: Detections) -> tuple[Detections, Detections]:
    """Give both tables the same class indices: the first's classes, then others."""
    ids = tuple(dict.fromkeys((*first.class_ids, *second.class_ids)))
    named = dict(zip(second.class_ids, second.classes, strict=True))
    named |= zip(first.class_ids, first.classes, strict=True)
    common: dict[str, Any] = {"class_ids": ids, "classes": tuple(map(named.__getitem__, ids))}
    label = reindexed(second.label, second.class_ids, ids)
    return replace(first, **common), replace(second, label=label, **common)


def join_notes(tables: Sequence[GroundTruth | Detections]) -> tuple[Note, ...]:
    """Merge the notes of several inputs by code, adding their counts."""
    by_code: dict[str, list[tuple[str, Note]]] = {}
    for table in tables:
        for note in table.notes:
            by_code.setdefault(note.code, []).append((table.path, note))
    joined = []
    for code, notes in by_code.items():
        path, first = notes[0]
        of_one_input = code == "images-without-file"
        if of_one_input or (code == NO_DETECTIONS.code and len(notes) < len(tables)):
            continue
        if code not in PER_INPUT:
            message = first.message
            if any(note.message != message for _, note in notes):
                message = f"{path}: {message} (and {len(notes) - 1} more inputs)"
            first = replace(first, count=sum(note.count for _, note in notes), message=message)
        joined.append(first)
    return tuple(joined)


def images_seen(table: Detections) -> list[Name]:
    """Return the images with detections."""
    return [table.images[number] for number in np.flatnonzero(table.images_with_rows).tolist()]


def _refuse_shared(tables: Sequence[Table], images: Sequence[Iterable[Name]]) -> None:
    """Raise InputError if two tables have the same image; `images` are those of each."""
    owner: dict[Name, str] = {}
    for table, names in zip(tables, images, strict=True):
        for image in names:
            if image in owner:
                message = f"image {image!r} is also in {owner[image]}"
                raise InputError(Problem(table.path, "", message, _MERGE_HINTS[type(table)]))
        owner |= dict.fromkeys(names, table.path)


def _union(tables: Sequence[Table], field: str) -> tuple[Name, ...]:
    """Return the union of the images, or of the classes, of all tables."""
    lists: list[tuple[Name, ...]] = [getattr(table, field) for table in tables]
    union = tuple(dict.fromkeys(name for names in lists for name in names))
    kinds = {isinstance(name, str) for name in union}
    if len(kinds) > 1:
        texts = next(t for t in tables if any(isinstance(n, str) for n in getattr(t, field)))
        numbers = next(t for t in tables if any(isinstance(n, int) for n in getattr(t, field)))
        subject = "images" if field == "images" else "classes"
        message = f"{subject} are text, but numbers in {numbers.path}"
        raise InputError(Problem(texts.path, "", message, "use the same names in every input"))
    sorts = all(list(names) == ordered(names) for names in lists)
    return tuple(ordered(union)) if sorts else union


def _by_class(
    tables: Sequence[GroundTruth], values: Sequence[Mapping[Name, str]], to_text: Any = str
) -> dict[Name, str]:
    """Return the value of each class id, which must be the same in all inputs."""
    known: dict[Name, tuple[str, str]] = {}
    for table, value_by_id in zip(tables, values, strict=True):
        for identifier, value in value_by_id.items():
            path, other = known.setdefault(identifier, (table.path, value))
            if other != value:
                here, there = to_text(value), to_text(other)
                message = f"category {identifier!r} is {here}, but {there} in {path}"
                hint = "use one list of categories"
                raise InputError(Problem(table.path, "", message, hint))
    return {identifier: value for identifier, (_, value) in known.items()}


def _class_names(tables: Sequence[GroundTruth], ids: Sequence[Name]) -> tuple[str, ...]:
    """Return the class names, which must be the same in all inputs."""
    # Names as they were before those of several classes became distinct.
    plain = [
        {
            k: n.removesuffix(distinct_name("", k))
            for k, n in zip(t.class_ids, t.classes, strict=True)
        }
        for t in tables
    ]
    named = _by_class(tables, plain, repr)
    count = Counter(map(named.__getitem__, ids))
    return tuple(distinct_name(named[k], k) if count[named[k]] > 1 else named[k] for k in ids)


def _sizes(tables: Sequence[GroundTruth], images: Sequence[Name]) -> Floats | None:
    """Return the image sizes, each from the first input that has it."""
    if all(table.image_sizes is None for table in tables):
        return None
    sizes = np.full((len(images), 2), np.nan)
    for table in reversed(tables):
        if table.image_sizes is not None:
            rows = indices_in(table.images, images)
            known = ~np.isnan(table.image_sizes).any(axis=1)
            sizes[rows[known]] = table.image_sizes[known]
    return sizes


def _lists(
    tables: Sequence[GroundTruth], images: tuple[Name, ...], ids: tuple[Name, ...]
) -> dict[str, Integers]:
    """Merge the lists of pairs that every input has."""
    merged = {}
    for name in tables[0].listed:
        if all(name in table.listed for table in tables):
            image = _reindexed(
                [(table.listed[name][:, 0], table.images) for table in tables], images
            )
            label = _reindexed(
                [(table.listed[name][:, 1], table.class_ids) for table in tables], ids
            )
            merged[name] = np.unique(np.stack([image, label], axis=1), axis=0)
    return merged


def stacked(
    tables: Sequence[Table],
    images: tuple[Name, ...],
    classes: tuple[tuple[Name, ...], tuple[str, ...]],
    **more: Any,
) -> Table:
    """Concatenate the rows of all tables, with common indices."""
    # Optional columns are those of every table with rows: an empty file has no masks or areas.
    filled: Sequence[Table] = [table for table in tables if len(table)] or tables[:1]
    parts = [table.columns() for table in filled]
    columns: dict[str, Any] = {
        name: _joined(filled, name, [part[name] for part in parts])
        for name in parts[0]
        if name not in ("image", "label") and all(name in part for part in parts)
    }
    if "mask" in columns:
        first = np.cumsum([0, *(len(table.masks or ()) for table in filled)], dtype=np.int32)
        numbers = [table.mask + n for table, n in zip(filled, first, strict=False)]
        columns["mask"] = np.concatenate(numbers)
        more["masks"] = Masks.joined([table.masks for table in filled if table.masks is not None])
    return filled[0].with_columns(
        columns,
        image=_reindexed([(table.image, table.images) for table in filled], images),
        label=_reindexed([(table.label, table.class_ids) for table in filled], classes[0]),
        images=images,
        classes=classes[1],
        class_ids=classes[0],
        files=tuple(dict.fromkeys(source for table in tables for source in table.files)),
        notes=join_notes(tables),
        **more,
    )


def _reindexed(
    columns: Sequence[tuple[Integers, tuple[Name, ...]]], order: tuple[Name, ...]
) -> Integers:
    """Concatenate indices into the names of tables as indices into `order`; -1 is missing."""
    index = {name: index for index, name in enumerate(order)}  # once: there may be many tables
    parts = [
        numbers
        if names == order
        else np.array([index.get(n, -1) for n in names], np.int32)[numbers]
        for numbers, names in columns
    ]
    return np.concatenate(parts)


def _joined(tables: Sequence[Table], name: str, columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate a column, which must have the same width in all tables."""
    first, width = tables[0].path, columns[0].shape[1:]
    for table, column in zip(tables, columns, strict=True):
        if column.shape[1:] != width:
            message = f"objects have {column.shape[1]} {name}, but {width[0]} in {first}"
            raise InputError(Problem(table.path, "", message, "use one skeleton in all inputs"))
    return np.concatenate(columns)
