"""Tables of several inputs as one: what a single file of all of them would have given.

Images and classes are numbered as there, rows follow each other in the order of the inputs. Each
image is of one input, unless the caller says that images may be split: one that two inputs have is
more often one that was counted twice.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from detap.errors import InputError, Note, Problem
from detap.tables.columns import ordered, places, renumbered
from detap.tables.detection import (
    SAMPLED_IMAGES,
    CategorySample,
    Detections,
    Floats,
    GroundTruth,
    Integers,
    Name,
    distinct_name,
)
from detap.tables.masks import Masks
from detap.tables.notes import INTERLEAVED, NO_DETECTIONS, PER_INPUT

Table = TypeVar("Table", GroundTruth, Detections)

APART = (
    "give each image in one input; or, if these are different boxes of it, merge_images=True "
    "(--merge_images)"
)
"""What to do where an image is in two inputs."""

OF_ONE = frozenset({"images-without-file"})
"""The notes that an input makes of itself alone: what one has no file of another may have."""


def join_ground_truths(tables: Sequence[GroundTruth], *, merge_images: bool = False) -> GroundTruth:
    """Return the ground truths of several inputs as one table.

    Parameters
    ----------
    tables : sequence of GroundTruth
        At least one.
    merge_images : bool
        Whether an image may be in several, which then each have some of its boxes.

    Returns
    -------
    GroundTruth
        Images and classes are sorted where each input's are, else in the order of the inputs.

    Raises
    ------
    InputError
        Where two inputs have the same image, or give a class different names.
    """
    if len(tables) == 1:
        return tables[0]
    if not merge_images:
        refuse_shared((table.path, table.images) for table in tables)
    images, ids = (_union(tables, names) for names in ("images", "class_ids"))
    return _stacked(
        tables,
        images,
        (ids, _class_names(tables, ids)),
        image_sizes=_sizes(tables, images),
        listed=_lists(tables, images, ids),
        groups=_groups(tables),
    )


def join_detections(
    tables: Sequence[Detections],
    ground_truth: GroundTruth | None = None,
    *,
    merge_images: bool = False,
) -> Detections:
    """Return the detections of several inputs as one table.

    Parameters
    ----------
    tables : sequence of Detections
        At least one.
    ground_truth : GroundTruth, optional
        What they are numbered as; classes that it lacks follow its own, sorted.
    merge_images : bool
        Whether an image may have detections in several.

    Returns
    -------
    Detections
        Rows follow each other input by input; image by image where images of inputs interleave.

    Raises
    ------
    InputError
        Where two inputs have detections on the same image.
    """
    if len(tables) == 1:
        return tables[0]
    if not merge_images:
        # All tables may list every image of the ground truth: those count that rows are of.
        refuse_shared((table.path, images_seen(table)) for table in tables)
    images = _union(tables, "images") if ground_truth is None else ground_truth.images
    known = () if ground_truth is None else ground_truth.class_ids
    ids = (*known, *ordered(set(_union(tables, "class_ids")).difference(known)))
    named = {k: n for table in tables for k, n in zip(table.class_ids, table.classes, strict=True)}
    names = tuple(map(named.__getitem__, ids))
    sample = merged_samples(table.categories for table in tables)
    joined = _stacked(tables, images, (ids, names), categories=sample)
    if not _interleave(joined.image, tables):
        return joined
    by_image = joined.select(np.argsort(joined.image, kind="stable"))
    return replace(by_image, notes=(*joined.notes, INTERLEAVED))


def _interleave(image: Integers, tables: Sequence[Detections]) -> bool:
    """Return True if an input has an image before the last one of an input before it."""
    ends = np.cumsum([len(table) for table in tables])[:-1]
    rows = [part for part in np.split(image, ends) if len(part)]
    return any(one.max() > other.min() for one, other in pairwise(rows))


def join_notes(tables: Sequence[GroundTruth | Detections]) -> tuple[Note, ...]:
    """Return the notes of several inputs, each said once, of the records of all.

    Where inputs say it in different words, those of the first are given with its name.
    """
    by_code: dict[str, list[tuple[str, Note]]] = {}
    for table in tables:
        for note in table.notes:
            by_code.setdefault(note.code, []).append((table.path, note))
    return tuple(
        _joined_note(found)
        for code, found in by_code.items()
        if code not in OF_ONE and (code != NO_DETECTIONS or len(found) == len(tables))
    )


def _joined_note(found: Sequence[tuple[str, Note]]) -> Note:
    path, first = found[0]
    if first.code in PER_INPUT:
        return first
    count = sum(note.count for _, note in found)
    if all(note.message == first.message for _, note in found):
        return replace(first, count=count)
    others = f"; likewise in {len(found) - 1} more"
    return replace(first, count=count, message=f"{path}: {first.message}{others}")


def images_seen(table: Detections) -> list[Name]:
    """Return the images that a table has detections on."""
    return [table.images[number] for number in np.flatnonzero(table.filled).tolist()]


def refuse_shared(named: Iterable[tuple[str, Iterable[Name]]]) -> None:
    """Refuse an image of two inputs.

    Parameters
    ----------
    named : iterable of (str, iterable of int or str)
        Each input's path, and its images.

    Raises
    ------
    InputError
        Which names the image and both inputs.
    """
    owner: dict[Name, str] = {}
    for path, images in named:
        for image in images:
            if image in owner:
                message = f"image {image!r} is in {owner[image]} already"
                raise InputError(Problem(path, "", message, APART))
        owner |= dict.fromkeys(images, path)


def _union(tables: Sequence[Table], which: str) -> tuple[Name, ...]:
    """Return the images, or the classes, that any table has."""
    lists: list[tuple[Name, ...]] = [getattr(table, which) for table in tables]
    if all(names == lists[0] for names in lists):
        return lists[0]
    union = tuple(dict.fromkeys(name for names in lists for name in names))
    kinds = {isinstance(name, str) for name in union}
    if len(kinds) > 1:
        texts = next(t for t in tables if any(isinstance(n, str) for n in getattr(t, which)))
        numbers = next(t for t in tables if any(isinstance(n, int) for n in getattr(t, which)))
        what = "images" if which == "images" else "classes"
        message = f"{what} are called by text here and by numbers in {numbers.path}"
        raise InputError(Problem(texts.path, "", message, "call them alike in every input"))
    sorts = all(list(names) == ordered(names) for names in lists)
    return tuple(ordered(union)) if sorts else union


def _class_names(tables: Sequence[GroundTruth], ids: Sequence[Name]) -> tuple[str, ...]:
    """Return what the classes are called, which all inputs must agree on."""
    called: dict[Name, tuple[str, str]] = {}
    for table in tables:
        for identifier, name in zip(table.class_ids, table.classes, strict=True):
            plain = name.removesuffix(distinct_name("", identifier))
            path, other = called.setdefault(identifier, (table.path, plain))
            if other != plain:
                raise _other(table, identifier, repr(plain), repr(other), path)
    names = [called[identifier][1] for identifier in ids]
    often = Counter(names)
    return tuple(
        distinct_name(name, identifier) if often[name] > 1 else name
        for identifier, name in zip(ids, names, strict=True)
    )


def _other(table: GroundTruth, name: Name, here: str, there: str, path: str) -> InputError:
    message = f"category {name!r} is {here} here and {there} in {path}"
    hint = "give ground truths of one list of categories"
    return InputError(Problem(table.path, "", message, hint))


def _sizes(tables: Sequence[GroundTruth], images: Sequence[Name]) -> Floats | None:
    """Return the sizes of the images, each from the first input that has it."""
    if all(table.image_sizes is None for table in tables):
        return None
    sizes = np.full((len(images), 2), np.nan)
    for table in reversed(tables):
        if table.image_sizes is not None:
            rows = places(table.images, images)
            known = ~np.isnan(table.image_sizes).any(axis=1)
            sizes[rows[known]] = table.image_sizes[known]
    return sizes


def _lists(
    tables: Sequence[GroundTruth], images: tuple[Name, ...], ids: tuple[Name, ...]
) -> dict[str, Integers]:
    """Return what is listed of images and classes, where every input lists it."""
    found = {}
    for name in tables[0].listed:
        if all(name in table.listed for table in tables):
            pairs = [
                np.stack(
                    [
                        renumbered(table.listed[name][:, 0], table.images, images),
                        renumbered(table.listed[name][:, 1], table.class_ids, ids),
                    ],
                    axis=1,
                )
                for table in tables
            ]
            found[name] = np.unique(np.concatenate(pairs), axis=0)
    return found


def _groups(tables: Sequence[GroundTruth]) -> dict[Name, str]:
    """Return the groups of the classes, on which all inputs that say one must agree."""
    found: dict[Name, tuple[str, str]] = {}
    for table in tables:
        for identifier, group in table.groups.items():
            path, other = found.setdefault(identifier, (table.path, group))
            if other != group:
                raise _other(table, identifier, group, other, path)
    return {identifier: group for identifier, (_, group) in found.items()}


def _stacked(
    tables: Sequence[Table],
    images: tuple[Name, ...],
    classes: tuple[tuple[Name, ...], tuple[str, ...]],
    **more: Any,
) -> Table:
    """Return the rows of all tables under one numbering."""
    columns: dict[str, Any] = {
        name: _joined(tables, name)
        for name in tables[0].columns()
        if name not in ("image", "label") and all(name in table.columns() for table in tables)
    }
    if "mask" in columns:
        first = np.cumsum([0, *(len(table.masks or ()) for table in tables)], dtype=np.int32)
        numbers = [table.mask + n for table, n in zip(tables, first, strict=False)]
        columns["mask"] = np.concatenate(numbers)
        more["masks"] = Masks.joined([table.masks for table in tables if table.masks is not None])
    return tables[0].with_columns(
        columns,
        image=np.concatenate([renumbered(t.image, t.images, images) for t in tables]),
        label=np.concatenate([renumbered(t.label, t.class_ids, classes[0]) for t in tables]),
        images=images,
        classes=classes[1],
        class_ids=classes[0],
        files=tuple(dict.fromkeys(source for table in tables for source in table.files)),
        notes=join_notes(tables),
        **more,
    )


def _joined(tables: Sequence[Table], name: str) -> NDArray[Any]:
    """Return a column of all tables; without rows none knows how many keypoints one has."""
    filled = [table for table in tables if len(table)] or tables[:1]
    first = filled[0].columns()[name]
    for table in filled[1:]:
        column = table.columns()[name]
        if column.shape[1:] != first.shape[1:]:
            here, there = column.shape[1], first.shape[1]
            message = f"objects have {here} {name} here and {there} in {filled[0].path}"
            raise InputError(Problem(table.path, "", message, "give inputs of one skeleton"))
    return np.concatenate([table.columns()[name] for table in filled])


def merged_samples(parts: Iterable[CategorySample]) -> CategorySample:
    """Return the sample of several parts of the images."""
    return tuple(sorted(dict(entry for part in parts for entry in part).items())[:SAMPLED_IMAGES])
