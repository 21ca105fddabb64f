"""Class maps: other names for the classes of both tables, or of one of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np

from detap.errors import InputError, Problem
from detap.tables.columns import indices_in
from detap.tables.detection import GROUPS, Detections, GroundTruth, Integers, Name
from detap.text_input import quote, suggest

DROPPED = "-"
"""Target of classes that are dropped."""

FLAGS = ("crowd", "ignore", "difficult")
"""Flags of ground truths that a rule may set."""

RESTS = ("keep", DROPPED, "error")
"""Treatments of detections of classes that a map does not name; the default first."""

GT, DT = "gt", "dt"
"""Tables of rules for one side."""


class Rule(NamedTuple):
    """The target and the flag of a class."""

    to: str  # its name, or DROPPED
    flag: str = ""  # set for its ground truths


Rules = Mapping[str, Rule]


class ClassMap(NamedTuple):
    """The rules of a class map. Rules that are the same for both sides are in `both` alone."""

    both: Rules
    gt: Rules
    dt: Rules
    rest: str = RESTS[0]
    path: str = "class_map"  # for messages

    @classmethod
    def of(cls, record: Any, path: str = "class_map") -> "ClassMap":
        """Parse a map as in its file: rules by class, and tables ``gt`` and ``dt`` of them."""
        if not isinstance(record, Mapping):
            refuse(path, "", "is not a table of classes", 'expected car = "vehicle"')
        of_side = {k: v for k, v in record.items() if k in (GT, DT) and isinstance(v, Mapping)}
        rest, dt_rules = RESTS[0], {**of_side.get(DT, {})}
        if isinstance(dt_rules.get("rest"), str) and (rest := dt_rules.pop("rest")) not in RESTS:
            hint = f'use {", ".join(RESTS)}; a class of that name is rest = {{ to = "{rest}" }}'
            refuse(path, "[dt] rest", f"is {rest!r}", hint)
        common = {k: _rule(path, "", k, v) for k, v in record.items() if k not in of_side}
        gt, dt = (
            common | {name: _rule(path, side, name, value) for name, value in rules.items()}
            for side, rules in ((GT, of_side.get(GT, {})), (DT, dt_rules))
        )
        both = {name: rule for name, rule in gt.items() if dt.get(name) == rule}
        gt, dt = ({k: r for k, r in side.items() if k not in both} for side in (gt, dt))
        if not (both or gt or dt) and rest == RESTS[0]:
            refuse(path, "", "has no rule", 'write a line such as car = "vehicle"')
        return cls(both, gt, dt, rest, path)

    @property
    def text(self) -> str:
        """The meaning of the map as JSON, for reports; a file of this content is the same map."""
        gt, dt = _as_dict(self.gt), _as_dict(self.dt)
        if self.rest != RESTS[0]:
            dt["rest"] = self.rest
        record = _as_dict(self.both) | ({GT: gt} if gt else {}) | ({DT: dt} if dt else {})
        return json.dumps(record, ensure_ascii=False, separators=(",", ":"), sort_keys=True)

    def rules(self, side: str) -> Rules:
        """Return the rules of the ground truth or the detections, by class."""
        return {**self.both, **(self.gt if side == GT else self.dt)}

    def is_named(self, name: str) -> bool:
        """Return True for a class of detections that a rule maps, or maps to."""
        rules = self.rules(DT)
        return name in rules or any(rule.to == name for rule in rules.values())

    def of_others(self, side: str, name: str) -> Rule:
        """Return the rule of a class that has none in the map."""
        drops = side == DT and self.rest == DROPPED and not self.is_named(name)
        return Rule(DROPPED if drops else name)

    def check_names(self, gt: Iterable[str] | None, dt: Iterable[str] | None) -> None:
        """Raise InputError for each class of a rule that its side, or neither side, has.

        `gt` and `dt` are the classes of the sides, None for a side that is not read.
        """
        known = dict.fromkeys(gt or ()), dict.fromkeys(dt or ())
        either = known[0] | known[1]
        sides = [("", self.both, either)]
        sides += [(GT, self.gt, known[0])] if gt is not None else []
        sides += [(DT, self.dt, known[1])] if dt is not None else []
        problems = [
            Problem(self.path, side and f"[{side}]", *_unknown(side, name, names, either))
            for side, rules, names in sides
            for name in rules
            if name not in names
        ]
        if problems:
            raise InputError(problems)


def map_ground_truth(class_map: ClassMap, table: GroundTruth) -> GroundTruth:
    """Return the table with mapped classes, without rows and lists of dropped ones.

    Classes that have ids get new ones, from 1 in order of first appearance.
    """
    rules = class_map.rules(GT)
    of_class = [rules.get(name, Rule(name)) for name in table.classes]
    names, ids = _new_classes(table, of_class)
    new_label = indices_in([rule.to for rule in of_class], names)  # -1 for dropped classes
    label, flagged = new_label[table.label], dict[str, Any]()
    for flag in FLAGS:
        of_flag = np.array([rule.flag == flag for rule in of_class], np.bool_)
        if of_flag.any():
            flagged[flag] = table.marked(flag) | of_flag[table.label]
    kept = np.flatnonzero(label >= 0)
    mapped = replace(table, **flagged, label=label)
    if len(kept) < len(table):
        mapped = mapped.select(kept).compact()
    return replace(
        mapped,
        classes=names,
        class_ids=ids,
        listed={name: _pairs(name, pairs, new_label) for name, pairs in table.listed.items()},
        groups=_groups(table, new_label, ids),
        class_map=class_map.text,
    )


def map_detections(class_map: ClassMap, table: Detections, truth: GroundTruth | None) -> Detections:
    """Return the table with the mapped classes of `truth`, then others, without dropped rows.

    Without `truth`, the classes are those of the table, numbered as those of ground truth.
    """
    rules = class_map.rules(DT)
    of_class = [rules.get(name) or class_map.of_others(DT, name) for name in table.classes]
    if truth is None:
        names, ids = _new_classes(table, of_class)
    else:
        used = {of_class[k].to for k in np.unique(table.label).tolist()}
        unknown = sorted(used.difference(truth.classes, [DROPPED]))
        names, ids = (*truth.classes, *unknown), (*truth.class_ids, *unknown)
    label = indices_in([rule.to for rule in of_class], names)[table.label]
    kept = np.flatnonzero(label >= 0)
    mapped = replace(table, label=label, classes=names, class_ids=ids)
    return mapped if len(kept) == len(table) else mapped.select(kept).compact()


def _new_classes(
    table: GroundTruth | Detections, of_class: Sequence[Rule]
) -> tuple[tuple[str, ...], tuple[Name, ...]]:
    """Return the names and ids of mapped classes; names that are sorted stay so."""
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


def _groups(table: GroundTruth, new_label: Integers, ids: Sequence[Name]) -> dict[Name, str]:
    """Return the frequency group of each class; merged classes have the most frequent of theirs."""
    groups: dict[Name, str] = {}
    for identifier, k in zip(table.class_ids, new_label.tolist(), strict=True):
        if k >= 0 and (group := table.groups.get(identifier)) is not None:
            groups[ids[k]] = max(groups.get(ids[k], group), group, key=GROUPS.index)
    return groups


def _rule(path: str, side: str, name: object, value: object) -> Rule:
    """Parse a rule: ``"vehicle"``, or ``{to = "vehicle", as = "crowd"}``."""
    where = f"[{side}] {name}" if side else str(name)
    if not isinstance(name, str):
        refuse(path, where, "is not text", "classes are named, not numbered")
    record = value if isinstance(value, Mapping) else {"to": value}
    if not record or not record.keys() <= {"to", "as"}:
        refuse(path, where, f"has {', '.join(map(str, record))}", "expected to, and as")
    to, flag = record.get("to", name), record.get("as", "")
    if not isinstance(to, str) or not to:
        hint = f'expected the name of a class, or "{DROPPED}" to drop it'
        refuse(path, where, f"is mapped to {to!r}", hint)
    if "as" not in record:
        return Rule(to)
    if flag not in FLAGS:
        refuse(path, where, f"as is {flag!r}", f"use {', '.join(FLAGS)}")
    if side != GT:
        refuse(path, where, f"as = {flag} is a flag of ground truths", "move the rule to [gt]")
    if to == DROPPED:
        refuse(path, where, f"is dropped, and also {flag}", "leave out one of the two")
    return Rule(to, flag)


def _unknown(
    side: str, name: str, known: Mapping[str, None], either: Mapping[str, None]
) -> tuple[str, str]:
    """Return the message and hint for a class that a side, or neither side, has."""
    where = {GT: "the ground truth", DT: "the detections"}.get(side, "the inputs")
    message = f"class {quote(name)} is not in {where}"
    if name in either:
        owner, other = ("detections have", DT) if side == GT else ("the ground truth has", GT)
        return message, f"{owner} it: move the rule to [{other}]"
    listed = ", ".join(map(quote, list(known)[:5]))
    return message, suggest(name, known, quote) or f"it has {listed}" + ", ..." * (len(known) > 5)


def _as_dict(rules: Rules) -> dict[str, Any]:
    return {
        name: {"to": rule.to} | ({"as": rule.flag} if rule.flag else {})
        if rule.flag or name == "rest"
        else rule.to
        for name, rule in rules.items()
    }


def refuse(path: str, location: str, message: str, hint: str) -> NoReturn:
    """Raise InputError for a class map, or for what it makes of a table."""
    raise InputError(Problem(path, location, message, hint))
