"""Build tables and notes from the columns of a COCO file."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from detap.checks.boxes import warned
from detap.checks.inputs import failed_category_check
from detap.checks.tables import box_notes, zero_area_ground_truths
from detap.errors import InputError, Note, Problem
from detap.formats.by_name.notes import class_notes, detection_notes, nonzero_notes
from detap.formats.by_name.problems import RowReader, negative_size_notes
from detap.formats.coco.columns import TruthColumns
from detap.formats.coco.id_mapping import CategoryPairs, check_image_ids, sample_categories
from detap.formats.coco.records import LISTS, no_common_id
from detap.io.json_text import short_json
from detap.io.limits import Limits
from detap.io.paths import STDIN, Path, SourceFile, shown
from detap.tables.detection import (
    CategorySample,
    Detections,
    Flags,
    GroundTruth,
    Name,
    distinct_name,
)
from detap.tables.notes import (
    AS_IS,
    BOX_LAYOUTS,
    BOX_OPTIONS,
    INSIST,
    backward,
    class_map_hint,
)
from detap.text_input import join_names

_MIN_OVERLAPPED = 4
"""Image ids are checked if fewer than 1 in 4 ground truths are overlapped."""

_TRUTH_NOTES = {
    "missing-annotation-ids": "annotation id missing; not required",
    "annotation-ids-by-image": (
        "annotation ids repeat across images; each is an object (pycocotools keeps one of each id)"
    ),
    "missing-area": "area missing; using box area",
    "missing-iscrowd": "iscrowd missing; assuming 0",
    "missing-num-keypoints": "num_keypoints missing; counting keypoints with v > 0",
    **{
        f"images-without-{name}": f"{key} missing, but set for other images; assuming []"
        for name, key in LISTS.items()
    },
    **{
        f"{name}-of-unknown-categories": f"unknown categories in {key}; ignored"
        for name, key in LISTS.items()
    },
}


class Source(RowReader):
    """The origin of columns; `record` returns the location of a row's record."""

    def __init__(
        self,
        file: SourceFile,
        limits: Limits,
        as_is: bool,
        record: Callable[[int], str],
        box_format: str = "xywh",
        *,
        hint: str = "",
    ) -> None:
        self.file, self.path = file, shown(file.path)
        self.limits, self.as_is = limits, as_is
        self.record, self.box_format = record, box_format
        self.correct = hint or f"expected {BOX_LAYOUTS[box_format]}"
        self._has_option = box_format == "xyxy" and not hint

    def location(self, row: int) -> tuple[str, str]:
        """Return the file of a row, and the location of its record."""
        return self.path, self.record(row)

    def box_problem(self, box: list[float], box_format: str) -> str:
        """Return the message for corners of negative size, in the format of the file."""
        x, y, right, bottom = box
        side = "width" if right < x else "height"
        if self.box_format != "xyxy":
            right, bottom = right - x, bottom - y
        if self.box_format == "cxcywh":
            x, y = x + right / 2, y + bottom / 2
        values = ", ".join(f"{value:g}" for value in (x, y, right, bottom))
        return f"bbox has a negative {side}: [{values}]"

    def negative_size_notes(
        self, kind: str, table: GroundTruth | Detections, selected: Flags | None = None
    ) -> tuple[Note, ...]:
        """Note boxes of negative size; raise InputError if many `selected` rows have one."""
        xywh = f"{BOX_LAYOUTS['xywh']} use {BOX_OPTIONS[kind]} xywh"
        self.swapped = f"{self.correct}; for {xywh}" if self._has_option else ""
        rows = backward(table.corners, table.box_area)
        box_format = "xyxy" if self.box_format == "xyxy" else "xywh"
        return negative_size_notes(kind, self, table.corners, box_format, rows, selected=selected)


def refuse_same_file(path: Path, truth: GroundTruth, hint: str) -> None:
    """Raise InputError if the detections are the ground-truth file."""
    text = os.fspath(path)
    for source in truth.files:
        with suppress(OSError, ValueError):  # the reader reports it
            same = text == source.path or os.path.samefile(text, source.path)
            if same and STDIN not in (text, source.path):
                raise InputError(Problem(shown(path), "", "this is the ground-truth file", hint))


def truth_table(columns: TruthColumns, source: Source) -> GroundTruth:
    """Return the ground-truth table with its notes and distinct class names."""
    table = columns.table
    negative = source.negative_size_notes("ground-truth", table)
    names, name_notes = _distinct_names(table.class_ids, columns.class_names)
    as_is = (AS_IS,) if source.as_is else ()
    notes = (*as_is, *_truth_notes(columns, source.box_format), *negative, *name_notes)
    return replace(table, classes=names, files=(source.file,), notes=notes)


def _truth_notes(columns: TruthColumns, box_format: str) -> Iterator[Note]:
    table, counts = columns.table, columns.counts
    for code, message in _TRUTH_NOTES.items():
        if counts.get(code):
            yield Note(code, message, counts[code])
    if table.keypoints is not None:
        v = table.keypoints[:, :, 2]
        invalid = ((v != 0) & (v != 1) & (v != 2)).any(axis=1)
        disagreeing = (v > 0).any(axis=1) == table.no_keypoints
        odd, other = (int(np.count_nonzero(rows)) for rows in (invalid, disagreeing))
        message = "num_keypoints disagrees with v; using num_keypoints"
        yield from nonzero_notes(
            Note("odd-visibility", "v is not 0, 1 or 2; keypoints with v > 0 are labeled", odd),
            Note("num-keypoints-disagrees", message, other),
        )
    for section, ids in columns.repeated.items():
        if ids:
            message = f"duplicate {section}, counted once: id {join_names(ids)}"
            yield Note(f"repeated-{section}", message, len(ids))
    if counts.get("annotation-id-zero"):
        message = (
            "annotation id 0: pycocotools does not count its matches; use --protocol coco-strict "
            "for the same numbers"
        )
        yield Note("annotation-id-zero", message, counts["annotation-id-zero"], severity="info")
    ignored = int(np.count_nonzero(table.ignore))
    if ignored:
        message = "ignore is set, but has no effect, as in pycocotools"
        yield Note("ignore-without-effect", message, ignored)
    empty = int(np.count_nonzero(table.box_area == 0))
    if empty and table.keypoints is None:
        yield zero_area_ground_truths(empty)
    boxes = table.corners, table.image
    xywh = box_format == "xywh"
    yield from box_notes("ground-truth", boxes, table.image_sizes, _MARGIN, corners=xywh)


def _distinct_names(
    ids: tuple[Name, ...], names: tuple[str | None, ...]
) -> tuple[tuple[str, ...], list[Note]]:
    """Return a unique name of every class, and notes on the names."""
    notes = []
    missing = sum(name is None for name in names)
    if missing:
        notes.append(Note("missing-category-names", "category name missing; using id", missing))
    given = [
        str(identifier) if name is None else name
        for identifier, name in zip(ids, names, strict=True)
    ]
    counts = Counter(given)
    distinct = given
    while shared := {name for name, count in Counter(distinct).items() if count > 1}:
        distinct = [
            distinct_name(name, identifier) if name in shared else name
            for identifier, name in zip(ids, distinct, strict=True)
        ]
    if len(counts) < len(given):
        repeated = sum(count for count in counts.values() if count > 1)
        message = "duplicate category names; appending the id"
        notes.append(Note("equal-category-names", message, repeated))
    return tuple(distinct), [*notes, *class_notes(counts)]


def detection_table(
    table: Detections,
    ground_truth: GroundTruth,
    source: Source,
    category_names: Mapping[Name, str] = MappingProxyType({}),
) -> Detections:
    """Return detections without those of unknown classes, with notes.

    Without scores, those of unknown classes that results name are false positives.
    """
    count = len(ground_truth.class_ids)
    known, names = table.label < count, table.class_ids[count:]
    rows = np.bincount(table.label[~known] - count, minlength=len(names))
    unknown = dict(zip(names, rows.tolist(), strict=True))
    negative = source.negative_size_notes("detections", table, known)
    sample, category_notes = _check_categories(table, unknown, ground_truth, source)
    has_names = bool(unknown) and unknown.keys() <= category_names.keys()
    only_known = not has_names or not bool(np.isnan(table.score[0]))
    notes = [*((AS_IS,) if source.as_is else ()), *negative, *category_notes, *table.notes]
    if unknown and only_known:
        listed = ", ".join(map(short_json, sorted(unknown, key=str)[:5]))
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        message = f"categories not in the ground truth ({listed}{more}); detections ignored"
        notes.append(Note("unknown-categories", message, sum(unknown.values())))
    empty = int(np.count_nonzero(table.box_area == 0)) if table.keypoints is None else 0
    notes += detection_notes(table, ground_truth, _MARGIN, source.box_format, empty=empty)
    if only_known and not source.limits.any_classes:
        table, unknown = table if known.all() else table.select(known), {}
    return replace(
        table,
        classes=(*ground_truth.classes, *(category_names.get(id, str(id)) for id in unknown)),
        class_ids=(*ground_truth.class_ids, *unknown),
        files=(source.file,),
        categories=sample,
        only_known=only_known,
        notes=tuple(notes),
    )


def _check_categories(
    columns: Detections, counts: Mapping[Name, int], truth: GroundTruth, source: Source
) -> tuple[CategorySample, tuple[Note, ...]]:
    """Raise InputError if no category id is known or all look offset; parts are checked later."""
    unknown, part = sum(counts.values()), source.limits.part
    later = part or source.limits.any_classes
    if unknown and unknown == len(columns.label) and not (source.as_is or later):
        message = no_common_id("category_id", list(counts), truth.class_ids)
        hint = f"use the ground truth's category ids, or pass {INSIST}"
        hint = class_map_hint(counts, truth.classes) or hint
        raise InputError(Problem(shown(source.file.path), "", message, hint))
    pairs, path = sample_categories(columns, truth), source.file.path
    few = len(pairs.pairs) * _MIN_OVERLAPPED < pairs.ground_truths
    if few and isinstance(truth.images[0], int) and not source.as_is:
        check_image_ids(columns, truth, path, len(pairs.pairs), part=part)
    mapped = source.limits.any_classes
    sample = _sample_of_ids(pairs, columns, truth, mapped=mapped)
    if part:
        return sample, ()
    unmapped = bool(counts) and not mapped
    offsets = [*failed_category_check(sample, shown(path), unknown=unmapped)]
    return sample, warned(offsets, (AS_IS,) if source.as_is else ())


def _sample_of_ids(
    pairs: CategoryPairs, columns: Detections, truth: GroundTruth, *, mapped: bool
) -> CategorySample:
    """Return the sample with category ids, if all are numbers; `mapped`, unknown ones are right."""
    known, ids = len(truth.class_ids), columns.class_ids
    if any(isinstance(name, str) for name in ids):
        return ()
    return tuple(
        (
            key,
            tuple(
                (gt, int(ids[gt]), int(ids[dt]), count)
                for (gt, dt), count in sorted(Counter(of_image).items())
                if dt < known or not mapped
            ),
        )
        for key, of_image in pairs.images
    )


_MARGIN = 1.0
"""Pixels by which boxes may exceed the image: annotations are rounded."""
