"""Read class maps, and apply them to both tables of a run."""

import csv
import json
import os
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from detap.errors import Note, UsageError
from detap.formats.by_name.notes import class_notes, classes_without_file, nonzero_notes
from detap.io.json_text import check_text, decode
from detap.io.paths import Path, shown
from detap.io.stream import read_bytes
from detap.tables.class_map import (
    DROPPED,
    DT,
    GT,
    ClassMap,
    Rule,
    map_detections,
    map_ground_truth,
    refuse,
)
from detap.tables.detection import Detections, GroundTruth
from detap.tables.notes import AS_IS
from detap.text_input import join_names

Table = TypeVar("Table", GroundTruth, Detections)

_OF_CLASSES = frozenset(
    {
        "unknown-classes",
        "unknown-categories",
        "categories-unmatched",
        "classes-without-file",
        "names-differ-in-case",
    }
)
"""Codes of notes of readers on classes, which are made again from the mapped ones."""

_IGNORED = "ignore-without-effect"
_LISTED = 3


def class_map_of(value: Any) -> ClassMap:
    """Return a class map from a path, a mapping as in a JSON file, or a map."""
    if isinstance(value, ClassMap):
        return value
    if isinstance(value, Mapping):
        return ClassMap.of(value)
    if not isinstance(value, str | os.PathLike):
        raise UsageError(f"class_map is {type(value).__name__}, expected a path or a mapping")
    return read(value)


def recorded_map(text: str) -> ClassMap:
    """Return a class map as it is recorded in reports."""
    return ClassMap.of(json.loads(text))


def read(path: Path) -> ClassMap:
    """Read a class map: TOML, JSON, or CSV with columns ``from`` and ``to``."""
    file, suffix = shown(path), os.path.splitext(path)[1].lower()
    if suffix not in _PARSERS:
        raise UsageError(f"class map {file} is not .toml, .json or .csv")
    parse, hint = _PARSERS[suffix]
    try:
        record = parse(decode(read_bytes(path), file), file)
    except (ValueError, RecursionError, csv.Error) as error:
        refuse(file, "", f"is not {suffix[1:].upper()}: {error}", hint)
    return ClassMap.of(record, file)


def _json(text: str, file: str) -> Any:
    record = json.loads(text, object_pairs_hook=lambda pairs: _distinct(pairs, file))
    check_text(record)
    return record


def _csv(text: str, file: str) -> Any:
    head, *rows = [row for row in csv.reader(text.splitlines()) if row] or [[]]
    if [name.strip() for name in head] != ["from", "to"]:
        refuse(file, "", "has no line from,to", "begin the file with that line")
    for row in rows:
        if len(row) != 2:
            message = f"{','.join(row)} has {len(row)} columns, expected 2"
            refuse(file, "", message, "quote names that have a comma")
    return _distinct([(row[0], row[1]) for row in rows], file)


def _distinct(pairs: Sequence[tuple[str, Any]], file: str) -> dict[str, Any]:
    repeated = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if repeated:
        refuse(file, "", f"has several rules for {join_names(repeated)}", "keep one of each")
    return dict(pairs)


_PARSERS: dict[str, tuple[Callable[[str, str], Any], str]] = {
    ".toml": (lambda text, _: tomllib.loads(text), 'expected lines such as car = "vehicle"'),
    ".json": (_json, 'expected {"car": "vehicle"}'),
    ".csv": (_csv, "expected lines such as car,vehicle"),
}


def map_tables(
    class_map: Any, truths: Sequence[GroundTruth | None], detections: Sequence[Detections | None]
) -> tuple[list[Any], list[Any]]:
    """Return ground truths and detections with mapped classes, and a note of the effect."""
    # Detections are indexed as the first ground truth. None stays None.
    rules = class_map_of(class_map)
    before = [table for table in truths if table is not None]
    tables = [table for table in detections if table is not None]
    if before:
        known = before[0].classes  # detections from arrays have its ids, not always its names
        tables = [replace(t, classes=known + t.classes[len(known) :]) for t in tables]
    names = [{name for table in side for name in table.classes} for side in (before, tables)]
    rules.check_names(*(sorted(side) or None for side in names))
    after: list[Any] = [map_truth(rules, table, effect=not tables) for table in before]
    pair = (before[0], after[0]) if before else None
    mapped: list[Any] = [map_detector(rules, table, pair) for table in tables]
    return after or [*truths], mapped or [*detections]


def map_truth(rules: ClassMap, table: GroundTruth, *, effect: bool = False) -> GroundTruth:
    """Return mapped ground truth, with the note of the effect if no detections have it."""
    mapped = map_ground_truth(rules, table)
    _check_rows(rules, table, mapped, "ground truths")
    notes = [note for note in table.notes if note.code not in _OF_CLASSES]
    if any(rule.flag == "ignore" for rule in rules.gt.values()):
        notes = [note for note in notes if note.code != _IGNORED]
        message = "ignore is set by the class map, but has no effect under the protocol"
        notes += nonzero_notes(Note(_IGNORED, message, int(np.count_nonzero(mapped.ignore))))
    notes += class_notes(mapped.classes)
    return _noted(rules, mapped, [*notes, *([_effect(rules, [(GT, table)])] if effect else [])])


def map_detector(
    rules: ClassMap, table: Detections, truths: tuple[GroundTruth, GroundTruth] | None
) -> Detections:
    """Return mapped detections; `truths` are the ground truth before and after."""
    before, truth = truths or (None, None)
    if rules.rest == "error":
        _check_rest(rules, table)
    mapped = map_detections(rules, table, truth)
    _check_rows(rules, table, mapped, "detections")
    notes = [note for note in table.notes if note.code not in _OF_CLASSES]
    if truth is not None:
        without_file = any(note.code == "classes-without-file" for note in table.notes)
        notes += _notes_on_classes(mapped, truth, without_file=without_file)
        known = mapped.label < len(truth.classes)
        if len(mapped) and not known.any() and AS_IS not in mapped.notes:
            unknown = join_names(mapped.classes[len(truth.classes) :])
            message = (
                "no class in common with the ground truth after the class map (detections: "
                f"{unknown}; ground truth: {join_names(truth.classes)})"
            )
            refuse(mapped.path, "", message, f"map them to its classes in {rules.path}")
        if mapped.only_known:
            mapped = mapped if known.all() else mapped.select(np.flatnonzero(known)).compact()
            mapped = replace(mapped, classes=truth.classes, class_ids=truth.class_ids)
    sides = [] if before is None else [(GT, before)]
    return _noted(rules, mapped, [*notes, _effect(rules, [*sides, (DT, table)])])


def _check_rows(rules: ClassMap, before: Table, after: Table, rows: str) -> None:
    """Raise InputError if a map drops every row."""
    if len(before) and not len(after):
        message = f"every class with {rows} is dropped ({len(before)} {rows})"
        refuse(rules.path, "", message, "keep at least one class")


def _notes_on_classes(
    mapped: Detections, truth: GroundTruth, *, without_file: bool
) -> Iterator[Note]:
    """Yield the notes that readers make on the classes of detections."""
    known = len(truth.classes)
    count, unknown = int(np.count_nonzero(mapped.label >= known)), mapped.classes[known:]
    if mapped.only_known:
        message = f"categories not in the ground truth ({join_names(unknown)}); detections ignored"
        yield from nonzero_notes(Note("unknown-categories", message, count))
    else:
        message = f"detections of classes that the ground truth lacks: {join_names(unknown)}"
        yield from nonzero_notes(Note("unknown-classes", message, count))
        yield from class_notes(mapped.classes) if unknown else ()
    if without_file:
        used = [mapped.classes[k] for k in np.unique(mapped.label).tolist()]
        yield from nonzero_notes(classes_without_file(truth, used))


def _check_rest(rules: ClassMap, table: Detections) -> None:
    """Raise InputError for detections of classes that the map does not name."""
    counts = Counter(table.classes[k] for k in table.label.tolist())
    unnamed = {name: count for name, count in counts.items() if not rules.is_named(name)}
    if unnamed:
        total = sum(unnamed.values())
        message = f"the map does not name {join_names(unnamed)} ({total} detections)"
        hint = 'map each, also to itself, or use rest = "-" or "keep"'
        refuse(rules.path, "[dt] rest", message, hint)


def _noted(rules: ClassMap, table: Table, notes: Sequence[Note]) -> Table:
    """Return a table with notes, whose files have the map among their reading options."""
    option = {"class_map": rules.text}
    files = (
        file._replace(reading=tuple(sorted((dict(file.reading) | option).items())))
        for file in table.files
    )
    return replace(table, notes=tuple(notes), files=tuple(files))


# --- what a map does, in one line


def _effect(rules: ClassMap, sides: Sequence[tuple[str, GroundTruth | Detections]]) -> Note:
    """Return the note of the effect on tables, given by side, as they were before."""
    targets, flags = dict[tuple[str, str], None](), dict[tuple[str, str], None]()
    counts = []
    for side, table in sides:
        of_side, rows = rules.rules(side), np.bincount(table.label, minlength=len(table.classes))
        changed = 0
        for name, count in zip(table.classes, rows.tolist(), strict=True):
            rule = of_side.get(name) or rules.of_others(side, name)
            if rule.to != name and (count or name in of_side):
                targets[name, rule.to] = None
            if rule.flag:
                flags[name, rule.flag] = None
            changed += count * (rule != Rule(name))
        rows_of = "ground truth" if side == GT else "detection"
        counts.append(f"{changed:,} {rows_of}{'s' * (changed != 1)}")
    by_target = Counter(to for _, to in targets)
    dropped = by_target.pop(DROPPED, 0)
    listed, others = by_target.most_common()[:_LISTED], by_target.most_common()[_LISTED:]
    parts = [(count, f"to {to}") for to, count in listed]
    parts += [(sum(count for _, count in others), f"to {len(others)} others")]
    parts += [(dropped, "dropped")]
    parts += [(count, f"as {flag}") for flag, count in Counter(f for _, f in flags).items()]
    parts = [part for part in parts if part[0]]
    if not parts:
        return Note("class-map", "class map: no class changed", severity="info")
    (first, what), *more = parts
    text = ", ".join([f"{first} class{'es' * (first > 1)} {what}", *(f"{n} {s}" for n, s in more)])
    return Note("class-map", f"class map: {text} ({', '.join(counts)})", severity="info")
