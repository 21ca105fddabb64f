"""From the columns of a COCO file to tables, with what is to be said of them."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.checks._box_stats import survey_values
from detap.checks.boxes import warned
from detap.checks.inputs import shift_suspicion
from detap.checks.tables import (
    box_notes,
    scores_outside_note,
    too_many_backward,
    zero_area_detections,
    zero_area_truths,
)
from detap.errors import InputError, Note, Problem
from detap.formats.coco.category_offset import Sampled, sampled_classes
from detap.formats.coco.columns import LISTS, DetectionColumns, Poses, TruthColumns
from detap.io.limits import Limits
from detap.io.paths import STDIN, Path, shown
from detap.records import Record
from detap.tables.detection import (
    CategorySample,
    Detections,
    GroundTruth,
    Name,
    SourceFile,
    distinct_name,
)
from detap.tables.notes import AS_IS, BOX_OPTIONS, INSIST, backward, backward_note, too_many
from detap.text_input import join_names

_FEW = 4
"""Where fewer than one object in so many has a detection, images are looked at once more."""

_TRUTH_NOTES = {
    "missing-annotation-ids": "annotations have no id; ids are only names, so they are not missed",
    "missing-area": "annotations have no area; their box's area is used",
    "missing-iscrowd": "annotations have no iscrowd; they count as no crowd",
    "missing-num-keypoints": "annotations have no num_keypoints; those of v above 0 are counted",
    **{
        f"images-without-{name}": f"images have no {key}, where others do; theirs is taken as empty"
        for name, key in LISTS.items()
    },
    **{
        f"{name}-of-unknown-categories": f"entries of {key} are no category; they are left out"
        for name, key in LISTS.items()
    },
}


class Source(Record):
    """Where columns were read.

    Attributes
    ----------
    file : SourceFile
    limits : Limits
        `problems` is obeyed.
    as_is : bool
        Whether a refusal that rests on a suspicion becomes a warning.
    location : callable
        Takes a row, returns where its record stands in the file.
    encoding : {"xywh", "xyxy"}
        What the four numbers of a box are in the file.
    hint : str
        What to do about boxes in another order; what the encoding suggests, where left out.
    """

    file: SourceFile
    limits: Limits
    as_is: bool
    location: Callable[[int], str]
    encoding: str = "xywh"
    hint: str = ""


def refuse_same_file(path: Path, truth: GroundTruth, hint: str) -> None:
    """Refuse detections that are the file of their ground truth."""
    for source in truth.files:
        try:
            text = os.fspath(path)
            same = STDIN not in (text, source.path) and (
                text == source.path or os.path.samefile(text, source.path)
            )
        except (OSError, ValueError):
            continue  # reading it will say what is wrong with it
        if same:
            message = f"is the ground truth itself ({source.path})"
            raise InputError(Problem(shown(path), "", message, hint))


def truth_table(columns: TruthColumns, source: Source) -> GroundTruth:
    """Return the table of what was read, with all that is to be said of it.

    Raises
    ------
    InputError
        Where too many boxes end before they begin.
    """
    negative = _negative_sides("ground-truth", source, columns)
    names, name_notes = _distinct_names(columns.class_ids, columns.class_names)
    poses = columns.poses
    return GroundTruth(
        image=columns.image,
        label=columns.label,
        corners=columns.corners,
        box_area=columns.box_area,
        images=columns.image_ids,
        classes=names,
        class_ids=columns.class_ids,
        files=(source.file,),
        notes=(*((AS_IS,) if source.as_is else ()), *_truth_notes(columns), *negative, *name_notes),
        area=columns.area,
        crowd=columns.crowd,
        difficult=np.zeros(len(columns.image), np.bool_)
        if columns.difficult is None
        else columns.difficult,
        ignore=columns.ignore,
        group_of=columns.group_of,
        image_sizes=columns.image_sizes,
        zero_id=np.arange(len(columns.image)) == columns.zero_row,
        keypoints=None if poses is None else poses.keypoints,
        no_keypoints=None if poses is None else poses.without,
        sides=None if poses is None else poses.sides,
        listed=columns.listed,
        groups=columns.groups,
    )


def _pose_notes(poses: Poses) -> Iterator[Note]:
    v = poses.keypoints[:, :, 2]
    odd = int(np.count_nonzero(((v != 0) & (v != 1) & (v != 2)).any(axis=1)))
    if odd:
        message = "annotations have a v other than 0, 1 and 2; keypoints of v above 0 are labelled"
        yield Note("odd-visibility", message, odd)
    disagreeing = int(np.count_nonzero((v > 0).any(axis=1) == poses.without))
    if disagreeing:
        message = (
            "annotations have labelled keypoints and a num_keypoints of 0, or none and another; "
            "num_keypoints decides which are to be found"
        )
        yield Note("num-keypoints-disagrees", message, disagreeing)


def _truth_notes(columns: TruthColumns) -> Iterator[Note]:
    counts = columns.counts
    for code, message in _TRUTH_NOTES.items():
        if counts.get(code):
            yield Note(code, message, counts[code])
    if columns.poses is not None:
        yield from _pose_notes(columns.poses)
    for part, ids in columns.repeated.items():
        if ids:
            message = f"{part} repeat an earlier one and are counted once: id {join_names(ids)}"
            yield Note(f"repeated-{part}", message, len(ids))
    if counts.get("annotation-id-zero"):
        message = (
            "annotations have the id 0: pycocotools takes a match with one for none, so its "
            "numbers may be lower; --protocol coco-strict gives them"
        )
        yield Note("annotation-id-zero", message, counts["annotation-id-zero"], severity="info")
    ignored = int(np.count_nonzero(columns.ignore))
    if ignored:
        message = "annotations set ignore, which has no effect, as in pycocotools"
        yield Note("ignore-without-effect", message, ignored)
    empty = survey_values(columns.box_area)[2]
    if empty and columns.poses is None:
        yield zero_area_truths(empty)
    yield from box_notes(
        "ground-truth", (columns.corners, columns.image), columns.image_sizes, _BEYOND
    )


def _distinct_names(
    ids: tuple[Name, ...], names: tuple[str | None, ...]
) -> tuple[tuple[str, ...], list[Note]]:
    """Return a name for every class, no two alike, and what is to be said of them."""
    notes = []
    nameless = sum(name is None for name in names)
    if nameless:
        message = "categories have no name; their id is used"
        notes.append(Note("missing-category-names", message, nameless))
    given = [
        str(identifier) if name is None else name
        for identifier, name in zip(ids, names, strict=True)
    ]
    equal = {name for name, count in Counter(given).items() if count > 1}
    distinct = given
    while shared := {name for name, count in Counter(distinct).items() if count > 1}:
        distinct = [
            distinct_name(name, identifier) if name in shared else name
            for identifier, name in zip(ids, distinct, strict=True)
        ]
    if equal:
        bearers = sum(name in equal for name in given)
        message = "categories share a name with another; their id is added to it"
        notes.append(Note("equal-category-names", message, bearers))
    folded = Counter(name.casefold() for name in set(given))
    alike = sum(count for count in folded.values() if count > 1)
    if alike:
        message = "category names differ from another's in case only; they are distinct classes"
        notes.append(Note("names-differ-in-case", message, alike))
    return tuple(distinct), notes


def detection_table(
    columns: DetectionColumns, truth: GroundTruth, source: Source, **more: Any
) -> Detections:
    """Return the table of what was read, rid of unknown classes, with all that is to be said of it.

    What else the table has of each row is given by name.

    Raises
    ------
    InputError
        Where too many boxes end before they begin, or categories look as if others were meant.
    """
    negative = _negative_sides("detections", source, columns, columns.label < len(truth.class_ids))
    sample, shifted = _check_labels(columns, truth, source)
    notes = [
        *((AS_IS,) if source.as_is else ()),
        *negative,
        *shifted,
        *_detection_notes(columns, truth),
    ]
    table = Detections(
        image=columns.image,
        label=columns.label,
        corners=columns.corners,
        box_area=columns.box_area,
        images=truth.images,
        classes=truth.classes,
        class_ids=truth.class_ids,
        files=(source.file,),
        score=columns.score,
        keypoints=columns.keypoints,
        categories=sample,
        **more,
    )
    if columns.unknown:
        table = table.select(columns.label < len(truth.class_ids))
    return replace(table, notes=tuple(notes))


def _check_labels(
    columns: DetectionColumns, truth: GroundTruth, source: Source
) -> tuple[CategorySample, tuple[Note, ...]]:
    """Refuse detections of which no category is known, or all are one off.

    The latter is a suspicion: a warning where ids are to be taken `as_is`. Of one of several inputs
    neither is judged here; what is judged of all comes with the notes.
    """
    hint = "use the ground truth's category ids"
    unknown, part = sum(columns.unknown.values()), source.limits.part
    if unknown and unknown == len(columns.label) and not (source.as_is or part):
        from detap.formats.coco.values import nothing_in_common  # only for this

        ours = list(columns.unknown)
        message = nothing_in_common("category", "category_id is", ours, truth.class_ids)
        hint += f"; or, if all are of other classes indeed, give {INSIST}"
        raise InputError(Problem(shown(source.file.path), "", message, hint))
    if not len(columns.label) or not len(truth):
        return (), ()
    found, path = sampled_classes(columns, truth), source.file.path
    few = len(found.pairs) * _FEW < found.objects
    if few and isinstance(truth.images[0], int) and not source.as_is:
        from detap.formats.coco.id_mapping import ids_are_stems  # only for this

        ids_are_stems(columns, truth, path, len(found.pairs), part=part)
    sample = _by_id(found, columns, truth)
    if part:
        return sample, ()
    shifts = [*shift_suspicion(sample, shown(path), unknown=bool(columns.unknown))]
    return sample, warned(shifts, (AS_IS,) if source.as_is else ())


def _by_id(found: Sampled, columns: DetectionColumns, truth: GroundTruth) -> CategorySample:
    """Return a sample by category ids, which must be numbers."""
    ids: tuple[Name, ...] = (*truth.class_ids, *columns.unknown)
    if any(isinstance(name, str) for name in ids):
        return ()
    return tuple(
        (
            key,
            tuple(
                (due, int(ids[due]), int(ids[got]), count)
                for (due, got), count in sorted(Counter(pairs).items())
            ),
        )
        for key, pairs in found.images
    )


_OTHER_ORDER = {
    "xywh": "give [x, y, width, height]",
    "xyxy": "give [x1, y1, x2, y2]; or, of x, y, width, height, {} xywh",
}


def _negative_sides(
    kind: str,
    source: Source,
    columns: TruthColumns | DetectionColumns,
    kept: NDArray[np.bool_] | None = None,
) -> tuple[Note, ...]:
    """Warn of boxes of negative width or height; refuse them where they are many of those kept."""
    at = backward(columns.corners, columns.box_area)
    if not len(at):
        return ()
    part = source.limits.is_part(kind)
    counts = len(at), len(columns.image)
    if kept is not None:
        counts = int(kept[at].sum()), int(kept.sum())
    if source.as_is or part or not (counts[0] and too_many(*counts)):
        row = int(at[0])
        box, _ = _negative(columns.corners[row].tolist(), source.encoding)
        return (backward_note(kind, len(at), f"{source.location(row)}, {box}"),)
    file = shown(source.file.path)
    listed = []
    for row in at[: source.limits.problems].tolist():
        box, fault = _negative(columns.corners[row].tolist(), source.encoding)
        hint = source.hint or _OTHER_ORDER[source.encoding].format(BOX_OPTIONS[kind])
        listed.append(Problem(file, source.location(row), f"{fault}: {box}", hint))
    raise too_many_backward(file, len(at), len(columns.image), listed)


def _negative(corners: list[float], encoding: str) -> tuple[str, str]:
    """Return a box as its file has it, and which of its sides is negative."""
    x, y, right, bottom = corners
    axis = "width" if right < x else "height"
    fault = f"bbox has a negative {axis}"
    if encoding == "xywh":
        right, bottom = right - x, bottom - y
    return f"[{', '.join(f'{value:g}' for value in (x, y, right, bottom))}]", fault


def _detection_notes(columns: DetectionColumns, truth: GroundTruth) -> Iterator[Note]:
    if not len(columns.image):
        yield Note("no-detections", "there is no detection: every AP is 0")
        return
    if columns.unknown:
        from detap.io.json_text import spelt  # only for this

        names = ", ".join(map(spelt, sorted(columns.unknown, key=str)[:5]))
        more = f" and {len(columns.unknown) - 5} more" if len(columns.unknown) > 5 else ""
        message = (
            f"detections are of categories that the ground truth does not list ({names}{more}); "
            "they are left out"
        )
        yield Note("unknown-categories", message, sum(columns.unknown.values()))
    low, high, _, outside = survey_values(columns.score)
    if outside:
        yield scores_outside_note(low, high, outside)
    empty = survey_values(columns.box_area)[2]
    if empty and columns.keypoints is None:
        yield zero_area_detections(empty)
    yield from box_notes("detections", (columns.corners, columns.image), truth.image_sizes, _BEYOND)


_BEYOND = 1.0
"""Pixels by which a box must leave its image to be counted: annotations are rounded."""
