"""Read class maps, and rename, merge, drop or flag the classes of tables by them."""

import csv
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from detap.errors import InputError, Note, Problem, UsageError
from detap.formats.by_name.notes import class_notes, classes_without_file, nonzero_notes
from detap.io.json_text import check_text, decode, distinct, short_json
from detap.io.paths import shown
from detap.io.stream import read_bytes, refuse
from detap.tables.columns import indices_in
from detap.tables.detection import GROUPS, Detections, GroundTruth, Integers, Name, Table
from detap.tables.notes import AS_IS
from detap.text_input import join_names, quote, suggest

Truth = TypeVar("Truth", bound=GroundTruth | None)
Detected = TypeVar("Detected", bound=Detections | None)

GT, DT = "gt", "dt"  # tables of rules for one side
DROPPED = "-"  # target of classes that are dropped
FLAGS = ("crowd", "ignore", "difficult")  # of ground truths, set by a rule
RESTS = ("keep", DROPPED, "error")  # of detections of unnamed classes; the default first

# Codes of notes of readers on classes, which are made again from the mapped ones.
_OF_CLASSES = (
    "unknown-classes",
    "unknown-categories",
    "categories-unmatched",
    "classes-without-file",
    "names-differ-in-case",
)

_IGNORED = "ignore-without-effect"
_LISTED = 5


class Rule(NamedTuple):
    """The target and the flag of a class."""

    to: str  # its name, or DROPPED
    flag: str = ""  # set for its ground truths

    def as_written(self, name: str) -> Any:
        """Return the rule of a class as in a file; ``rest`` in short form is no rule."""
        if self.flag:
            return {"to": self.to, "as": self.flag}
        return {"to": self.to} if name == "rest" else self.to


Rules = Mapping[str, Rule]


class ClassMap(NamedTuple):
    """The rules of a class map, by class."""

    both: Rules  # the same for both sides
    gt: Rules  # the others of the ground truth
    dt: Rules  # the others of the detections
    rest: str  # of `RESTS`
    path: str  # for messages

    @classmethod
    def of(cls, record: Any, path: str = "class_map") -> "ClassMap":
        """Parse a map as in its file: rules by class, and tables ``gt`` and ``dt`` of them."""
        if not isinstance(record, Mapping):
            refuse(path, "is not a table of classes", 'expected car = "vehicle"')
        of_side = {k: {**v} for k, v in record.items() if k in (GT, DT) and isinstance(v, Mapping)}
        own = of_side.get(DT, {})
        rest = own.pop("rest") if isinstance(own.get("rest"), str) else RESTS[0]
        if rest not in RESTS:
            hint = f'use {", ".join(RESTS)}; a class of that name is rest = {{ to = "{rest}" }}'
            refuse(path, f"is {rest!r}", hint, "[dt] rest")
        common = {k: _rule(path, "", k, v) for k, v in record.items() if k not in of_side}
        gt, dt = (
            common | {k: _rule(path, side, k, v) for k, v in of_side.get(side, {}).items()}
            for side in (GT, DT)
        )
        if not (gt or dt) and rest == RESTS[0]:
            refuse(path, "has no rule", 'write a line such as car = "vehicle"')
        # Of a class called "gt" or "dt", `text` has the rule in the tables of both sides.
        both = {k: rule for k, rule in gt.items() if dt.get(k) == rule and k not in (GT, DT)}
        gt, dt = ({k: r for k, r in rules.items() if k not in both} for rules in (gt, dt))
        return cls(both, gt, dt, rest, path)

    @property
    def text(self) -> str:
        """The meaning of the map as JSON, for reports; a file of this content is the same map."""
        both, gt, dt = (
            {name: rule.as_written(name) for name, rule in rules.items()} for rules in self[:3]
        )
        if self.rest != RESTS[0]:
            dt["rest"] = self.rest
        record = both | ({GT: gt} if gt else {}) | ({DT: dt} if dt else {})
        return json.dumps(record, ensure_ascii=False, separators=(",", ":"), sort_keys=True)

    def of_classes(self, table: GroundTruth | Detections) -> list[Rule]:
        """Return the rule of each class of a table; raise InputError if it needs one."""
        own = {**self.both, **(self.gt if isinstance(table, GroundTruth) else self.dt)}
        rules = [own.get(name, Rule(name)) for name in table.classes]
        if isinstance(table, GroundTruth) or self.rest == RESTS[0]:
            return rules
        unnamed = {*table.classes}.difference(own, (rule.to for rule in own.values()))
        if self.rest == DROPPED:
            return [Rule(DROPPED) if rule.to in unnamed else rule for rule in rules]
        counts = np.bincount(table.label, minlength=len(table.classes)).tolist()
        used = {n: k for n, k in zip(table.classes, counts, strict=True) if k and n in unnamed}
        if used:
            listed = join_names(sorted(used))
            message = f"the map does not name {listed} ({sum(used.values())} detections)"
            hint = 'map each, also to itself, or use rest = "-" or "keep"'
            refuse(self.path, message, hint, "[dt] rest")
        return rules

    def check_names(self, gt: Iterable[str], dt: Iterable[str]) -> None:
        """Raise InputError for rules of unknown classes; a side without classes was not read."""
        problems = []
        for location, where, rules, known in (
            ("", "the inputs", self.both, dict.fromkeys([*gt, *dt])),
            ("[gt]", "the ground truth", self.gt, dict.fromkeys(gt)),
            ("[dt]", "the detections", self.dt, dict.fromkeys(dt)),
        ):
            for name in rules:
                if known and name not in known:
                    message = f"class {quote(name)} is not in {where}"
                    hint = suggest(name, known, quote) or f"it has {join_names(known)}"
                    problems.append(Problem(self.path, location, message, hint))
        if problems:
            raise InputError(problems)


def _rule(path: str, side: str, name: object, value: object) -> Rule:
    """Parse a rule: ``"vehicle"``, or in ``gt`` ``{to = "vehicle", as = "crowd"}``."""
    record: Mapping[Any, Any] = value if isinstance(value, Mapping) else {"to": value}
    to, flag = record.get("to", name), record.get("as", "")
    valid = isinstance(name, str) and isinstance(to, str) and to and {*record} <= {"to", "as"}
    if "as" in record:
        valid = valid and side == GT and flag in FLAGS and to != DROPPED
    if not valid or not record:
        hint = (
            f'expected the name of a class, "{DROPPED}" to drop it, or in [gt] '
            f'{{ to = "NAME", as = "{FLAGS[0]}" }} ({", ".join(FLAGS)})'
        )
        where = f"[{side}] {name}" if side else str(name)
        refuse(path, f"is mapped to {short_json(value)}", hint, where)
    return Rule(to, flag)


# --- files


def class_map_of(value: Any) -> ClassMap:
    """Return a class map from a path, a mapping as in a JSON file, or a map."""
    if isinstance(value, ClassMap):
        return value
    if isinstance(value, Mapping):
        return ClassMap.of(value)
    if not isinstance(value, str | os.PathLike):
        raise UsageError(f"class_map is {type(value).__name__}, expected a path or a mapping")
    file, suffix = shown(value), os.path.splitext(value)[1].lower()
    if suffix not in (".toml", ".json", ".csv"):
        raise UsageError(f"class map {file} is not .toml, .json or .csv")
    try:
        record = _parsed(decode(read_bytes(value), file), suffix)
    except (ValueError, RecursionError, csv.Error) as error:
        hint = 'expected lines such as car = "vehicle" (JSON: {"car": "vehicle"}; CSV: car,vehicle)'
        refuse(file, f"is not valid {suffix[1:].upper()}: {error}", hint)
    return ClassMap.of(record, file)


def _parsed(text: str, suffix: str) -> Any:
    if suffix == ".toml":
        import tomllib  # few runs have a class map

        return tomllib.loads(text)
    by_name = partial(distinct, message="several rules for {}")
    if suffix == ".json":
        record = json.loads(text, object_pairs_hook=by_name)
        check_text(record)
        return record
    head, *rows = [row for row in csv.reader(text.splitlines()) if row] or [[]]
    if [name.strip() for name in head] != ["from", "to"]:
        raise ValueError("the first line is not from,to")
    for row in rows:
        if len(row) != 2:
            raise ValueError(f"{','.join(row)} has {len(row)} columns; quote names with a comma")
    return by_name(rows)


# --- tables


def map_tables(
    class_map: Any, truths: Sequence[Truth], detections: Sequence[Detected]
) -> tuple[list[Truth], list[Detected]]:
    """Return ground truths and detections with mapped classes, and a note of the effect."""
    # Detections are indexed as the first ground truth. None stays None, as all do without a map.
    if class_map is None:
        return [*truths], [*detections]
    rules = class_map_of(class_map)
    before = [table for table in truths if table is not None]
    tables = [table for table in detections if table is not None]
    if before:
        known = before[0].classes  # detections from arrays have its ids, not always its names
        tables = [replace(t, classes=known + t.classes[len(known) :]) for t in tables]
    names = ([name for table in side for name in table.classes] for side in (before, tables))
    rules.check_names(*names)
    after: list[Any] = [map_ground_truth(rules, table) for table in before]
    mapped: list[Any] = [map_detections(rules, t, *before[:1], *after[:1]) for t in tables]
    if not tables:
        after = [_with_effect(rules, *pair) for pair in zip(after, before, strict=True)]
    return after or [*truths], mapped or [*detections]


def map_ground_truth(rules: ClassMap, table: GroundTruth) -> GroundTruth:
    """Return the table with mapped classes, without rows and lists of dropped ones."""
    of_class = rules.of_classes(table)
    names, ids = _new_classes(table, of_class)
    changes: dict[str, Any] = {
        flag: table.marked(flag) | np.isin(table.label, labels)
        for flag in FLAGS
        if (labels := [k for k, rule in enumerate(of_class) if rule.flag == flag])
    }
    new_label = indices_in([rule.to for rule in of_class], names)
    listed = {name: _pairs(name, pairs, new_label) for name, pairs in table.listed.items()}
    groups: dict[Name, str] = {}  # merged classes have the most frequent of theirs
    for identifier, k in zip(table.class_ids, new_label.tolist(), strict=True):
        if k >= 0 and (group := table.groups.get(identifier)) is not None:
            groups[ids[k]] = max(groups.get(ids[k], group), group, key=GROUPS.index)
    changes |= {"listed": listed, "groups": groups}
    mapped = _mapped(rules, replace(table, class_map=rules.text, **changes), names, ids)
    notes = [*mapped.notes]
    if "ignore" in changes:
        notes = [note for note in notes if note.code != _IGNORED]
        message = "ignore is set by the class map, but has no effect under the protocol"
        notes += nonzero_notes(Note(_IGNORED, message, int(np.count_nonzero(mapped.ignore))))
    return replace(mapped, notes=(*notes, *class_notes(names)))


def map_detections(rules: ClassMap, table: Detections, *truths: GroundTruth) -> Detections:
    """Map detections to the classes of the ground truth, given before and after, then others."""
    of_class = rules.of_classes(table)
    names, ids = _new_classes(table, of_class)
    if truths:
        names, ids = truths[1].classes, truths[1].class_ids
    used = {of_class[label].to for label in np.unique(table.label).tolist()} - {DROPPED}
    unknown = sorted(used.difference(names))
    mapped = _mapped(rules, table, (*names, *unknown), (*ids, *unknown))
    known, notes = mapped.label < len(names), [*mapped.notes]
    count = len(mapped) - int(np.count_nonzero(known))
    if count and not known.any() and AS_IS not in notes:
        message = (
            "no class in common with the ground truth after the class map (detections: "
            f"{join_names(unknown)}; ground truth: {join_names(names)})"
        )
        refuse(mapped.path, message, f"map them to its classes in {rules.path}")
    if unknown and mapped.only_known:
        message = f"categories not in the ground truth ({join_names(unknown)}); detections ignored"
        notes.append(Note("unknown-categories", message, count))
        mapped = mapped.select(np.flatnonzero(known)).compact()
        mapped = replace(mapped, classes=names, class_ids=ids)
    elif unknown:
        message = f"detections of classes that the ground truth lacks: {join_names(unknown)}"
        notes += [Note("unknown-classes", message, count), *class_notes(mapped.classes)]
    if truths and any(note.code == "classes-without-file" for note in table.notes):
        notes += nonzero_notes(classes_without_file(truths[1], used))
    return _with_effect(rules, replace(mapped, notes=tuple(notes)), *truths[:1], table)


def _mapped(rules: ClassMap, table: Table, names: tuple[str, ...], ids: tuple[Name, ...]) -> Table:
    """Return the table with other classes, without dropped rows and notes on its classes."""
    new_label = indices_in([rule.to for rule in rules.of_classes(table)], names)  # -1 is dropped
    label = new_label[table.label]
    kept = np.flatnonzero(label >= 0)
    if len(table) and not len(kept):
        rows = f"{table.title.removesuffix('s')}s"
        message = f"every class with {rows} is dropped ({len(table)} {rows})"
        refuse(rules.path, message, "keep at least one class")
    option = {"class_map": rules.text}
    files = [
        file._replace(reading=tuple(sorted((dict(file.reading) | option).items())))
        for file in table.files
    ]
    notes = tuple(note for note in table.notes if note.code not in _OF_CLASSES)
    mapped = replace(
        table, label=label, classes=names, class_ids=ids, files=tuple(files), notes=notes
    )
    return mapped if len(kept) == len(table) else mapped.select(kept).compact()


def _new_classes(
    table: GroundTruth | Detections, of_class: Sequence[Rule]
) -> tuple[tuple[str, ...], tuple[Name, ...]]:
    """Return the names of mapped classes, sorted if they were, and their ids: names, or from 1."""
    names = tuple(dict.fromkeys(rule.to for rule in of_class if rule.to != DROPPED))
    if table.class_ids != table.classes:
        return names, tuple(range(1, len(names) + 1))
    if table.classes == tuple(sorted(table.classes)):
        names = tuple(sorted(names))
    return names, names


def _pairs(name: str, pairs: Integers, new_label: Integers) -> Integers:
    """Return the pairs of image and class of a list; merged classes are absent if all are."""
    pairs = np.unique(pairs, axis=0)
    label = new_label[pairs[:, 1]]
    mapped = np.stack([pairs[:, 0], label], axis=1)[label >= 0]
    distinct, counts = np.unique(mapped, axis=0, return_counts=True)
    if name == "negative":
        merged = np.bincount(new_label[new_label >= 0], minlength=1)
        distinct = distinct[counts == merged[distinct[:, 1]]]
    return distinct.astype(np.int32).reshape(-1, 2)


def _with_effect(rules: ClassMap, mapped: Table, *tables: GroundTruth | Detections) -> Table:
    """Return a mapped table with a note of the effect on tables, given as they were before."""
    changes, counts = dict[tuple[str, str], None](), []
    for table in tables:
        of_class = rules.of_classes(table)
        for name, rule in zip(table.classes, of_class, strict=True):
            if rule.to != name:
                changes[name, "dropped" if rule.to == DROPPED else f"to {rule.to}"] = None
            if rule.flag:
                changes[name, f"as {rule.flag}"] = None
        labels = [k for k, rule in enumerate(of_class) if rule != Rule(table.classes[k])]
        changed = int(np.count_nonzero(np.isin(table.label, labels)))
        counts.append(f"{changed:,} {table.title.removesuffix('s')}{'s' * (changed != 1)}")
    classes = Counter(change for _, change in changes)
    message = "class map: no class changed"
    if classes:
        (change, count), *others = classes.most_common(_LISTED)
        parts = [f"{count} class{'es' * (count > 1)} {change}", *(f"{n} {c}" for c, n in others)]
        parts += [f"{len(classes) - _LISTED} more"] if len(classes) > _LISTED else []
        message = f"class map: {', '.join(parts)} ({', '.join(counts)})"
    return replace(mapped, notes=(*mapped.notes, Note("class-map", message, severity="info")))
