"""Merge partials; the result does not depend on shards or order."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from detap.checks.boxes import merge_sampled_counts
from detap.checks.inputs import NO_BOXES, BoxCounts
from detap.errors import InputError, Problem, UsageError
from detap.evaluation.partial.provenance import GroundTruthDigest, merge_inputs, merge_notes
from detap.protocols.fields import protocol_fields
from detap.tables.columns import MOST_ROWS, Name
from detap.tables.concat import merged_samples
from detap.tables.detection import GroundTruth, Integers

if TYPE_CHECKING:
    from detap.evaluation.partial.partial import Partial

Repeats = Literal["error", "identical"]


def merge_partials(
    parts: Sequence["Partial"],
    ground_truth: GroundTruth | None,
    repeats: Repeats,
    images: Iterable[Name] | None,
) -> "Partial":
    """Merge partials; see :func:`detap.merge`."""
    if repeats not in ("error", "identical"):
        raise UsageError(f"repeats {repeats!r} is unknown; choose from error, identical")
    if not parts:
        raise UsageError("no partial to merge")
    for part in parts[1:]:
        _check_compatible(parts[0], part)
    if ground_truth is not None:
        _check_truth(parts[0], ground_truth)
    union = _union(parts, identical=repeats == "identical")
    if isinstance(images, str):
        if images != "seen":
            raise UsageError(f"images {images!r} is neither 'seen' nor a list of names")
        return replace(union, requires_all_images=False)
    if images is not None:
        required = [*images]
        if not required:
            raise UsageError("images is empty")
        return _select_required(union, required)
    if ground_truth is not None and union.requires_all_images:
        _select_required(union, ground_truth.images)
    return union


def _select_required(union: "Partial", required: Sequence[Name]) -> "Partial":
    """Return the partial of the required images."""
    number = {name: index for index, name in enumerate(union.images)}
    missing = [name for name in required if name not in number]
    if missing:
        more = f" (nor {len(missing) - 1} others)" if len(missing) > 1 else ""
        _refuse(
            union,
            f"image {missing[0]!r} is required but in no partial{more}",
            "evaluate it too (eval --images FILE), also without detections; "
            'images="seen" excludes it and its ground truths',
        )
    return union.select_images(sorted({number[name] for name in required}))


def _refuse(part: "Partial", message: str, hint: str) -> NoReturn:
    raise InputError(Problem(part.name, "", message, hint))


def align_classes(first: "Partial", second: "Partial") -> "tuple[Partial, Partial]":
    """Give partials of two detectors the same classes, the first's before others.

    Raises
    ------
    InputError
        If they differ in protocol, classes or ground truth.
    """
    _check_compatible(first, second)
    _classes((first, second))
    name_by_id = dict(zip(first.class_ids, first.class_names, strict=True))
    name_by_id |= dict(zip(second.class_ids, second.class_names, strict=True))
    number = {name: label for label, name in enumerate(name_by_id)}

    def renumbered(part: "Partial") -> "Partial":
        block_slices = part.block_slices
        if not part.protocol.class_agnostic:
            new = np.array([number[name] for name in part.class_ids], np.int32)
            block_slices = tuple(
                block_slice._replace(labels=new[block_slice.labels]) for block_slice in block_slices
            )
        names = tuple(name_by_id.values())
        return replace(
            part, class_ids=tuple(name_by_id), class_names=names, block_slices=block_slices
        )

    return renumbered(first), renumbered(second)


# --- compatible


def _check_compatible(first: "Partial", other: "Partial") -> None:
    for field in ("name", *(each.name for each in protocol_fields(type(first.protocol)))):
        expected, value = getattr(first.protocol, field), getattr(other.protocol, field)
        if value != expected:
            _refuse(
                other,
                f"protocol: {field} is {value!r}, but {expected!r} in {first.name}",
                "evaluate both with the same protocol",
            )
    if _selected(first) != _selected(other):
        _refuse(
            other,
            f"classes: {_selected(other) or 'all'}, but "
            f"{_selected(first) or 'all'} in {first.name}",
            "select the same classes for both, or give --classes to detap merge instead",
        )
    if first.ground_truth != other.ground_truth:
        _refuse(
            other,
            f"ground truth: {_describe(other.ground_truth)}, but {_describe(first.ground_truth)} "
            f"in {first.name}",
            "evaluate both with the same ground truth",
        )


def _selected(part: "Partial") -> list[str]:
    """Return the names of the selected classes; empty for all classes."""
    return [] if part.unselected is None else sorted(part.class_names)


def _describe(truth: GroundTruthDigest | None) -> str:
    return "its own" if truth is None else f"{truth.digest[:12]} of {truth.images} images"


def _check_truth(part: "Partial", truth: GroundTruth) -> None:
    if part.ground_truth is None:
        _refuse(
            part,
            "ground truth: each partial has its own",
            "merge without ground_truth, or create partials with "
            "Partial.of(result, ground_truth=...)",
        )
    given = GroundTruthDigest.of(truth)
    if part.ground_truth != given:
        _refuse(
            part,
            f"ground truth: {_describe(part.ground_truth)}, but {_describe(given)} is given",
            "pass the ground truth that the partials were created with",
        )


# --- union


def _union(parts: Sequence["Partial"], *, identical: bool) -> "Partial":
    first = parts[0]
    ids, names, truth_class_count = _classes(parts)
    label = {name: number for number, name in enumerate(ids)}
    labels = [np.array([label[name] for name in part.class_ids], np.int32) for part in parts]
    if first.protocol.class_agnostic:
        labels = [np.zeros(1, np.int32)] * len(parts)
    kept = [*_kept_images(parts, labels, identical=identical)]
    images, numbers = _images(parts, kept)
    sources, source = _sources(parts, numbers, len(images))
    position = np.zeros(len(images) if first.ground_truth else 0, np.int64)
    block_slices = []
    for part, number, new in zip(parts, numbers, labels, strict=True):
        mask = number >= 0
        if first.ground_truth:
            position[number[mask]] = part.position[mask]
        for block_slice in part.block_slices:
            moved = block_slice.select_images(number)
            block_slices.append(moved._replace(labels=new[block_slice.labels]))
    return replace(
        first,
        images=images,
        class_ids=ids,
        class_names=names,
        ground_truth_classes=truth_class_count,
        groups=_groups(parts),
        unselected=_unselected(parts),
        position=position,
        requires_all_images=any(part.requires_all_images for part in parts),
        sources=sources,
        source=source,
        inputs=merge_inputs(source for part in parts for source in part.inputs),
        shared_notes=merge_notes((part.shared_notes for part in parts), add=False),
        own_notes=merge_notes((part.own_notes for part in parts), add=True),
        block_slices=tuple(block_slices),
        boxes=merge_sampled_counts([part.boxes for part in parts]),
        counts=_counts(parts, kept),
        categories=merged_samples(part.categories for part in parts),
        lowest_score=min(
            (part.lowest_score for part in parts if part.lowest_score is not None), default=None
        ),
        name=first.name if len(parts) == 1 else "merged partials",
    )


def _counts(parts: Sequence["Partial"], kept: Sequence[NDArray[np.bool_]]) -> BoxCounts:
    """Return the total box counts of the parts, each kept image once."""
    total = NO_BOXES
    for part, mask in zip(parts, kept, strict=True):
        total += part.counts
        if mask.all():
            continue
        dropped = np.append(~mask, False)  # index -1 was dropped before
        for block_slice in part.block_slices:
            ground_truths, detections = (
                int(np.count_nonzero(dropped[block_slice.images][columns.image]))
                for columns in (block_slice.block.ground_truths, block_slice.block.detections)
            )
            total = total._replace(
                ground_truths=total.ground_truths - (0 if part.ground_truth else ground_truths),
                detections=total.detections - detections,
            )
    return total


def _classes(parts: Sequence["Partial"]) -> tuple[tuple[Name, ...], tuple[str, ...], int]:
    """Return the classes: the ground truth's, then those only in detections."""
    first = parts[0]
    text_by_id: dict[Name, str] = {}
    for part in parts:
        for name, text in zip(part.class_ids, part.class_names, strict=True):
            if text_by_id.setdefault(name, text) != text:
                _refuse(
                    part,
                    f"class {name!r} is {text!r}, but {text_by_id[name]!r} in another partial",
                    "evaluate both with the same classes",
                )
    _check_kinds(parts, "class", text_by_id)
    truth_ids = [part.class_ids[: part.ground_truth_classes] for part in parts]
    for part, ids in zip(parts, truth_ids, strict=True):
        # For a class-agnostic protocol, the order of classes orders tied scores.
        if ids != truth_ids[0] and (first.ground_truth or first.protocol.class_agnostic):
            _refuse(
                part,
                f"classes: the ground truth has {ids!r}, but {truth_ids[0]!r} in {first.name}",
                "evaluate both with the same classes",
            )
    alike = all(ids == truth_ids[0] for ids in truth_ids)
    truth_order = [*truth_ids[0]] if alike else _sorted({name for ids in truth_ids for name in ids})
    if all(part.class_ids == first.class_ids for part in parts):
        ids = first.class_ids  # keeps the order of a single table
    else:
        ids = (*truth_order, *_sorted(text_by_id.keys() - set(truth_order)))
    return ids, tuple(text_by_id[name] for name in ids), len(truth_order)


def _groups(parts: Sequence["Partial"]) -> dict[Name, str]:
    """Return the groups of the classes, which must agree between parts."""
    group_by_id: dict[Name, str] = {}
    for part in parts:
        for name, group in part.groups.items():
            if group_by_id.setdefault(name, group) != group:
                _refuse(
                    part,
                    f"class {name!r} is {group}, but {group_by_id[name]} in another partial",
                    "evaluate both with the same classes",
                )
    return group_by_id


def _unselected(parts: Sequence["Partial"]) -> tuple[Name, ...] | None:
    """Return the classes that any part evaluated but did not keep."""
    if parts[0].unselected is None:
        return None
    return tuple(_sorted({name for part in parts for name in part.unselected or ()}))


def _images(
    parts: Sequence["Partial"], kept: Sequence[NDArray[np.bool_]]
) -> tuple[tuple[Name, ...], list[Integers]]:
    """Return the images of the union, and each part's indices, -1 if dropped."""
    names = [
        name
        for part, mask in zip(parts, kept, strict=True)
        for name, is_kept in zip(part.images, mask.tolist(), strict=True)
        if is_kept
    ]
    if len(names) > MOST_ROWS:
        raise UsageError(f"{len(names)} images, more than {MOST_ROWS}")
    _check_kinds(parts, "image", names)
    if parts[0].ground_truth:
        index = np.concatenate(
            [part.position[mask] for part, mask in zip(parts, kept, strict=True)]
        )
        order = np.argsort(index, kind="stable")
        if (np.diff(index[order]) <= 0).any():
            _refuse(parts[-1], "two images have one ground truth index", "recreate it")
    elif sum(mask.any() for mask in kept) > 1:
        order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    else:
        order = np.arange(len(names))
    number = np.empty(len(names), np.int32)
    number[order] = np.arange(len(names), dtype=np.int32)
    numbers, begin = [], 0
    for mask in kept:
        count = int(mask.sum())
        of_part = np.full(len(mask), -1, np.int32)
        of_part[mask] = number[begin : begin + count]
        numbers.append(of_part)
        begin += count
    return tuple(names[index] for index in order.tolist()), numbers


def _sources(
    parts: Sequence["Partial"], numbers: Sequence[Integers], images: int
) -> tuple[tuple[str, ...], Integers]:
    """Return the sorted input names, and the input of each image."""
    owner: dict[str, Partial] = {}
    for part, number in zip(parts, numbers, strict=True):
        for index in np.unique(part.source[number >= 0]).tolist():
            name = part.sources[index]
            if owner.setdefault(name, part) is not part and name and _by_file(part):
                _refuse(
                    part,
                    f"input: images of {name!r} are in two partials, and ties break by file order",
                    "evaluate each input in one run, or give each its own name: "
                    "Partial.of(result, input=...)",
                )
    sources = sorted(owner)
    source = np.zeros(images, np.int32)
    for part, number in zip(parts, numbers, strict=True):
        mask = number >= 0
        new = np.searchsorted(sources, part.sources) if sources else np.zeros(0, np.int64)
        source[number[mask]] = new[part.source[mask]]
    return tuple(sources), source


def _by_file(part: "Partial") -> bool:
    return part.protocol.tie_break == "file"


def _check_kinds(parts: Sequence["Partial"], problem: str, names: Iterable[Name]) -> None:
    if len({isinstance(name, str) for name in names}) > 1:
        _refuse(parts[-1], f"{problem} names are text in one partial and numbers in another", "")


def _sorted(names: Iterable[Any]) -> list[Name]:
    return sorted(names)


# --- repeats


def _kept_images(
    parts: Sequence["Partial"], labels: Sequence[Integers], *, identical: bool
) -> Iterator[NDArray[np.bool_]]:
    """Yield a mask of the kept images of each part."""
    owner: dict[Name, tuple[int, int]] = {}
    repeats: dict[Name, list[tuple[int, int]]] = {}
    for n, (part, candidates) in enumerate(zip(parts, _possible_repeats(parts), strict=True)):
        for index in candidates.tolist():
            name = part.images[index]
            if owner.setdefault(name, (n, index)) != (n, index):
                repeats.setdefault(name, [owner[name]]).append((n, index))
    kept = [np.ones(len(part.images), np.bool_) for part in parts]
    if repeats and not identical:
        name, occurrences = next(iter(repeats.items()))
        more = f" (and {len(repeats) - 1} others)" if len(repeats) > 1 else ""
        _refuse_repeat(parts, name, occurrences, f"in two partials{more}")
    rows = (
        [
            _rows_of_images(
                part, number, [index for each in repeats.values() for m, index in each if m == n]
            )
            for n, (part, number) in enumerate(zip(parts, labels, strict=True))
        ]
        if repeats
        else []
    )
    for name, occurrences in repeats.items():
        if len({rows[n][index] for n, index in occurrences}) > 1:
            _refuse_repeat(parts, name, occurrences, "in two partials with different rows")
        first = min(occurrences, key=lambda at: _source_of(parts, at))
        for n, index in occurrences:
            kept[n][index] = (n, index) == first
    yield from kept


def _possible_repeats(parts: Sequence["Partial"]) -> Iterator[NDArray[np.int64]]:
    """Yield the images of each part whose hash occurs more than once.

    A dictionary of all images would take 130 bytes each.
    """
    hashes = [np.fromiter(map(hash, part.images), np.int64, len(part.images)) for part in parts]
    ordered = np.sort(np.concatenate(hashes))
    shared = ordered[1:][ordered[1:] == ordered[:-1]]
    for part_hashes in hashes:
        yield np.flatnonzero(np.isin(part_hashes, shared))


def _source_of(parts: Sequence["Partial"], at: tuple[int, int]) -> str:
    part = parts[at[0]]
    return part.sources[int(part.source[at[1]])]


def _refuse_repeat(
    parts: Sequence["Partial"], name: Name, occurrences: Sequence[tuple[int, int]], problem: str
) -> NoReturn:
    descriptions = []
    for n, index in occurrences[:2]:
        source = _source_of(parts, (n, index))
        descriptions.append(
            parts[n].name + (f" ({source})" if source not in ("", parts[n].name) else "")
        )
    hint = (
        "evaluate all detections of an image in one run"
        if "differ" in problem
        else "list only its own images in each part (eval --images seen, or FILE), or use "
        'repeats="identical" (--repeats identical) to drop duplicates'
    )
    _refuse(
        parts[occurrences[0][0]],
        f"image {name!r} is {problem}: {descriptions[0]} and {descriptions[1]}",
        hint,
    )


def _rows_of_images(part: "Partial", labels: Integers, images: Sequence[int]) -> dict[int, bytes]:
    """Return the bytes of all rows of some images, for comparison."""
    numbers = sorted(set(images))
    if not numbers:
        return {}
    selected = part.select_images(numbers)
    detections, ground_truths = selected.gather_rows(range(len(selected.classes)))
    match_flags, kinds = selected.merged_tables.match_flags, selected.merged_tables.kinds
    tables_of_rows = [
        (
            detections,
            [column.view(np.uint64) for column in (detections.score, *selected.iou_columns())],
            [
                match_flags.max_dets_index,
                *match_flags.true_positive,
                *match_flags.ignored,
                match_flags.duplicate,
            ],
        ),
        (ground_truths, [], [*kinds.positive, *kinds.covered]),
    ]
    digests = dict.fromkeys(numbers, b"")
    for rows, extra, tables in tables_of_rows:
        label = labels[rows.label]
        order = np.lexsort((label, rows.image))
        columns = [label, *extra, *(table[rows.code] for table in tables)]
        table = np.array(columns, np.uint64)[:, order]
        ends = np.searchsorted(rows.image[order], np.arange(len(numbers) + 1))
        for index, number in enumerate(numbers):
            part_of = table[:, ends[index] : ends[index + 1]]
            digests[number] += part_of.tobytes() + bytes(f";{part_of.shape[1]};", "ascii")
    for counts in selected.jaccard:
        for row in np.argsort(labels[counts.label], kind="stable").tolist():
            number = numbers[counts.image[row]]
            digests[number] += counts.matched[row].tobytes() + counts.objects[row].tobytes()
    for index, number in enumerate(numbers):
        digests[number] += bytes(f"{selected.proposals[index]}", "ascii")
    return digests
