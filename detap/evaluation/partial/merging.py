"""Partials put together: the same whatever the shards, the order and the tree of merging."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from detap.checks.boxes import merged_evidence
from detap.checks.inputs import NO_BOXES, BoxCounts
from detap.errors import InputError, Problem, UsageError
from detap.evaluation.partial.provenance import GroundTruthDigest, united_inputs, united_notes
from detap.protocols.fields import protocol_fields
from detap.tables.columns import MOST_ROWS, Name
from detap.tables.concat import merged_samples
from detap.tables.detection import GroundTruth, Integers

if TYPE_CHECKING:
    from detap.evaluation.partial.partial import Partial

Repeats = Literal["error", "identical"]


def merged(
    parts: Sequence["Partial"],
    ground_truth: GroundTruth | None,
    repeats: Repeats,
    images: Iterable[Name] | None,
) -> "Partial":
    """Return several partials as one; see :func:`detap.merge`."""
    if repeats not in ("error", "identical"):
        raise UsageError(f"repeats {repeats!r} is unknown; choose from error, identical")
    if not parts:
        raise UsageError("there is no partial to merge")
    for part in parts[1:]:
        _check_alike(parts[0], part)
    if ground_truth is not None:
        _check_truth(parts[0], ground_truth)
    union = _united(parts, identical=repeats == "identical")
    if isinstance(images, str):
        if images != "seen":
            raise UsageError(f"images {images!r} is neither 'seen' nor a list of names")
        return replace(union, due=False)
    if images is not None:
        due = [*images]
        if not due:
            raise UsageError("no image is due")
        return _chosen(union, due)
    if ground_truth is not None and union.due:
        _chosen(union, ground_truth.images)
    return union


def _chosen(union: "Partial", due: Sequence[Name]) -> "Partial":
    """Return the due images alone."""
    number = {name: place for place, name in enumerate(union.images)}
    missing = [name for name in due if name not in number]
    if missing:
        more = f", nor are {len(missing) - 1} others" if len(missing) > 1 else ""
        _refuse(
            union,
            f"image {missing[0]!r} is due and in no partial{more}",
            "merge a part that states it, without detections too (eval --images FILE); "
            'images="seen" leaves it out, and with it what was missed there',
        )
    return union.select_images(sorted({number[name] for name in due}))


def _refuse(part: "Partial", message: str, hint: str) -> NoReturn:
    raise InputError(Problem(part.name, "", message, hint))


def numbered_alike(first: "Partial", second: "Partial") -> "tuple[Partial, Partial]":
    """Return partials of two detectors with the classes of both: those of the first, then others.

    Raises
    ------
    InputError
        Where they are of different protocols, classes or ground truths.
    """
    _check_alike(first, second)
    _classes((first, second))
    named = dict(zip(first.class_ids, first.class_names, strict=True))
    named |= dict(zip(second.class_ids, second.class_names, strict=True))
    number = {name: label for label, name in enumerate(named)}

    def renumbered(part: "Partial") -> "Partial":
        pieces = part.pieces
        if not part.protocol.class_agnostic:
            new = np.array([number[name] for name in part.class_ids], np.int32)
            pieces = tuple(piece._replace(labels=new[piece.labels]) for piece in pieces)
        names = tuple(named.values())
        return replace(part, class_ids=tuple(named), class_names=names, pieces=pieces)

    return renumbered(first), renumbered(second)


# --- alike


def _check_alike(first: "Partial", other: "Partial") -> None:
    for field in ("name", *(entry.name for entry in protocol_fields(type(first.protocol)))):
        one, two = getattr(first.protocol, field), getattr(other.protocol, field)
        if one != two:
            _refuse(
                other,
                f"protocol: {field} is {two!r}, where {first.name} has {one!r}",
                "only partials of one protocol add up: evaluate both by the same",
            )
    if _selected(first) != _selected(other):
        _refuse(
            other,
            f"classes: {_selected(other) or 'all'}, where {first.name} has "
            f"{_selected(first) or 'all'}",
            "select the same classes for both, or give --classes to detap merge instead",
        )
    if first.ground_truth != other.ground_truth:
        _refuse(
            other,
            f"ground truth: {_told(other.ground_truth)}, where {first.name} has "
            f"{_told(first.ground_truth)}",
            "only partials of one ground truth add up: evaluate both with the same",
        )


def _selected(part: "Partial") -> list[str]:
    """Return the names of the classes that were selected; none if all are there."""
    return [] if part.unselected is None else sorted(part.class_names)


def _told(truth: GroundTruthDigest | None) -> str:
    return "its own" if truth is None else f"{truth.digest[:12]} of {truth.images} images"


def _check_truth(part: "Partial", truth: GroundTruth) -> None:
    if part.ground_truth is None:
        _refuse(
            part,
            "ground truth: each partial brings its own",
            "merge them without naming one, or make them with it: "
            "Partial.of(result, ground_truth=...)",
        )
    given = GroundTruthDigest.of(truth)
    if part.ground_truth != given:
        _refuse(
            part,
            f"ground truth: {_told(part.ground_truth)}, where {_told(given)} is given",
            "give the one that the partials were made with",
        )


# --- united


def _united(parts: Sequence["Partial"], *, identical: bool) -> "Partial":
    first = parts[0]
    ids, names, known = _classes(parts)
    label = {name: number for number, name in enumerate(ids)}
    labels = [np.array([label[name] for name in part.class_ids], np.int32) for part in parts]
    if first.protocol.class_agnostic:
        labels = [np.zeros(1, np.int32)] * len(parts)
    kept = [*_without_repeats(parts, labels, identical=identical)]
    images, numbers = _images(parts, kept)
    sources, source = _sources(parts, numbers, len(images))
    position = np.zeros(len(images) if first.ground_truth else 0, np.int64)
    pieces = []
    for part, number, new in zip(parts, numbers, labels, strict=True):
        here = number >= 0
        if first.ground_truth:
            position[number[here]] = part.position[here]
        for piece in part.pieces:
            moved = piece.select_images(number)
            pieces.append(moved._replace(labels=new[piece.labels]))
    return replace(
        first,
        images=images,
        class_ids=ids,
        class_names=names,
        known=known,
        groups=_groups(parts),
        unselected=_unselected(parts),
        position=position,
        due=any(part.due for part in parts),
        sources=sources,
        source=source,
        inputs=united_inputs(entry for part in parts for entry in part.inputs),
        shared_notes=united_notes((part.shared_notes for part in parts), add=False),
        own_notes=united_notes((part.own_notes for part in parts), add=True),
        pieces=tuple(pieces),
        boxes=merged_evidence([part.boxes for part in parts]),
        counts=_counts(parts, kept),
        categories=merged_samples(part.categories for part in parts),
        lowest_score=min(
            (part.lowest_score for part in parts if part.lowest_score is not None), default=None
        ),
        name=first.name if len(parts) == 1 else "merged partials",
    )


def _counts(parts: Sequence["Partial"], kept: Sequence[NDArray[np.bool_]]) -> BoxCounts:
    """Return how many boxes the parts have together, but for images that are kept of another."""
    total = NO_BOXES
    for part, here in zip(parts, kept, strict=True):
        total += part.counts
        if here.all():
            continue
        dropped = np.append(~here, False)  # what -1 means was dropped before
        for piece in part.pieces:
            truths, found = (
                int(np.count_nonzero(dropped[piece.images][side.image]))
                for side in (piece.block.truths, piece.block.detections)
            )
            total = total._replace(
                truths=total.truths - (0 if part.ground_truth else truths),
                detections=total.detections - found,
            )
    return total


def _classes(parts: Sequence["Partial"]) -> tuple[tuple[Name, ...], tuple[str, ...], int]:
    """Return the classes of the ground truth, and then those that only detections have."""
    first = parts[0]
    called: dict[Name, str] = {}
    for part in parts:
        for name, text in zip(part.class_ids, part.class_names, strict=True):
            if called.setdefault(name, text) != text:
                _refuse(
                    part,
                    f"classes: {name!r} is {text!r}, where another partial has {called[name]!r}",
                    "evaluate both with the same classes",
                )
    _check_kinds(parts, "class", called)
    known = [part.class_ids[: part.known] for part in parts]
    for part, ids in zip(parts, known, strict=True):
        # Where classes are scored as one, their order decides which of equal scores comes first.
        if ids != known[0] and (first.ground_truth or first.protocol.class_agnostic):
            _refuse(
                part,
                f"classes: the ground truth has {ids!r}, where {first.name} has {known[0]!r}",
                "evaluate both with the same classes",
            )
    alike = all(ids == known[0] for ids in known)
    of_truth = [*known[0]] if alike else _sorted({name for ids in known for name in ids})
    if all(part.class_ids == first.class_ids for part in parts):
        ids = first.class_ids  # in whatever order a single table has them
    else:
        ids = (*of_truth, *_sorted(called.keys() - set(of_truth)))
    return ids, tuple(called[name] for name in ids), len(of_truth)


def _groups(parts: Sequence["Partial"]) -> dict[Name, str]:
    """Return the groups of the classes, on which all parts that say one must agree."""
    found: dict[Name, str] = {}
    for part in parts:
        for name, group in part.groups.items():
            if found.setdefault(name, group) != group:
                _refuse(
                    part,
                    f"classes: {name!r} is {group}, where another partial has it {found[name]}",
                    "evaluate both with the same classes",
                )
    return found


def _unselected(parts: Sequence["Partial"]) -> tuple[Name, ...] | None:
    """Return the classes that any part has scored and not kept."""
    if parts[0].unselected is None:
        return None
    return tuple(_sorted({name for part in parts for name in part.unselected or ()}))


def _images(
    parts: Sequence["Partial"], kept: Sequence[NDArray[np.bool_]]
) -> tuple[tuple[Name, ...], list[Integers]]:
    """Return the images of the union, and the number of each part's own, -1 where not kept."""
    names = [
        name
        for part, here in zip(parts, kept, strict=True)
        for name, wanted in zip(part.images, here.tolist(), strict=True)
        if wanted
    ]
    if len(names) > MOST_ROWS:
        raise UsageError(f"{len(names)} images; at most {MOST_ROWS} can be numbered")
    _check_kinds(parts, "image", names)
    if parts[0].ground_truth:
        place = np.concatenate(
            [part.position[here] for part, here in zip(parts, kept, strict=True)]
        )
        order = np.argsort(place, kind="stable")
        if (np.diff(place[order]) <= 0).any():
            _refuse(parts[-1], "two images have one place in the ground truth", "make it anew")
    elif sum(here.any() for here in kept) > 1:
        order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    else:
        order = np.arange(len(names))
    number = np.empty(len(names), np.int32)
    number[order] = np.arange(len(names), dtype=np.int32)
    numbers, begin = [], 0
    for here in kept:
        count = int(here.sum())
        of_part = np.full(len(here), -1, np.int32)
        of_part[here] = number[begin : begin + count]
        numbers.append(of_part)
        begin += count
    return tuple(names[place] for place in order.tolist()), numbers


def _sources(
    parts: Sequence["Partial"], numbers: Sequence[Integers], images: int
) -> tuple[tuple[str, ...], Integers]:
    """Return the names of the inputs, sorted, and that of each image of the union."""
    owner: dict[str, Partial] = {}
    for part, number in zip(parts, numbers, strict=True):
        for place in np.unique(part.source[number >= 0]).tolist():
            name = part.sources[place]
            if owner.setdefault(name, part) is not part and name and _by_file(part):
                _refuse(
                    part,
                    f"input: images of {name!r} are in two partials, and equal scores rank by "
                    "place in the file",
                    "evaluate each input as a whole, or name them apart: "
                    "Partial.of(result, input=...)",
                )
    sources = sorted(owner)
    source = np.zeros(images, np.int32)
    for part, number in zip(parts, numbers, strict=True):
        here = number >= 0
        new = np.searchsorted(sources, part.sources) if sources else np.zeros(0, np.int64)
        source[number[here]] = new[part.source[here]]
    return tuple(sources), source


def _by_file(part: "Partial") -> bool:
    return part.protocol.tie_break == "file"


def _check_kinds(parts: Sequence["Partial"], what: str, names: Iterable[Name]) -> None:
    if len({isinstance(name, str) for name in names}) > 1:
        _refuse(parts[-1], f"{what} names are text in one partial and numbers in another", "")


def _sorted(names: Iterable[Any]) -> list[Name]:
    return sorted(names)


# --- repeats


def _without_repeats(
    parts: Sequence["Partial"], labels: Sequence[Integers], *, identical: bool
) -> Iterator[NDArray[np.bool_]]:
    """Yield which images of each part are kept."""
    owner: dict[Name, tuple[int, int]] = {}
    repeats: dict[Name, list[tuple[int, int]]] = {}
    for n, (part, suspect) in enumerate(zip(parts, _suspects(parts), strict=True)):
        for place in suspect.tolist():
            name = part.images[place]
            if owner.setdefault(name, (n, place)) != (n, place):
                repeats.setdefault(name, [owner[name]]).append((n, place))
    kept = [np.ones(len(part.images), np.bool_) for part in parts]
    if repeats and not identical:
        name, places = next(iter(repeats.items()))
        more = f", and so are {len(repeats) - 1} others" if len(repeats) > 1 else ""
        _refuse_repeat(parts, name, places, f"in two partials{more}")
    rows = (
        [
            _rows_of_images(
                part, number, [place for each in repeats.values() for m, place in each if m == n]
            )
            for n, (part, number) in enumerate(zip(parts, labels, strict=True))
        ]
        if repeats
        else []
    )
    for name, places in repeats.items():
        if len({rows[n][place] for n, place in places}) > 1:
            _refuse_repeat(parts, name, places, "in two partials, and its rows differ")
        first = min(places, key=lambda at: _source_of(parts, at))
        for n, place in places:
            kept[n][place] = (n, place) == first
    yield from kept


def _suspects(parts: Sequence["Partial"]) -> Iterator[NDArray[np.int64]]:
    """Yield which images of each part may be in another too: those whose hash is not theirs alone.

    They are few, where a dictionary of all images takes 130 bytes for each.
    """
    hashes = [np.fromiter(map(hash, part.images), np.int64, len(part.images)) for part in parts]
    ordered = np.sort(np.concatenate(hashes))
    shared = ordered[1:][ordered[1:] == ordered[:-1]]
    for own in hashes:
        yield np.flatnonzero(np.isin(own, shared))


def _source_of(parts: Sequence["Partial"], at: tuple[int, int]) -> str:
    part = parts[at[0]]
    return part.sources[int(part.source[at[1]])]


def _refuse_repeat(
    parts: Sequence["Partial"], name: Name, places: Sequence[tuple[int, int]], what: str
) -> NoReturn:
    told = []
    for n, place in places[:2]:
        source = _source_of(parts, (n, place))
        told.append(parts[n].name + (f" ({source})" if source not in ("", parts[n].name) else ""))
    hint = (
        "an image that several inputs share must be evaluated with all its detections at once"
        if "differ" in what
        else "state in each part its own images alone (eval --images seen, or FILE), or let "
        'repeats="identical" (--repeats identical) drop equal ones'
    )
    _refuse(parts[places[0][0]], f"image {name!r} is {what}: {told[0]} and {told[1]}", hint)


def _rows_of_images(part: "Partial", labels: Integers, images: Sequence[int]) -> dict[int, bytes]:
    """Return all that a part keeps of some of its images, so that it can be compared."""
    numbers = sorted(set(images))
    if not numbers:
        return {}
    few = part.select_images(numbers)
    found, truths = few.gathered(range(len(few.classes)))
    match_flags, kinds = few.tallied.match_flags, few.tallied.kinds
    sides = [
        (
            found,
            [found.score.view(np.uint64)],
            [
                match_flags.max_dets_index,
                *match_flags.true_positive,
                *match_flags.ignored,
                match_flags.duplicate,
            ],
        ),
        (truths, [], [*kinds.positive, *kinds.covered]),
    ]
    told = dict.fromkeys(numbers, b"")
    for rows, own, tables in sides:
        label = labels[rows.label]
        order = np.lexsort((label, rows.image))
        columns = [label, *own, *(table[rows.code] for table in tables)]
        table = np.array(columns, np.uint64)[:, order]
        ends = np.searchsorted(rows.image[order], np.arange(len(numbers) + 1))
        for place, number in enumerate(numbers):
            part_of = table[:, ends[place] : ends[place + 1]]
            told[number] += part_of.tobytes() + bytes(f";{part_of.shape[1]};", "ascii")
    for place, number in enumerate(numbers):
        told[number] += bytes(f"{few.proposals[place]}", "ascii")
    return told
