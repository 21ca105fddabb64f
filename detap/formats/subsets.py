"""Subsets of exported data sets: train, val and test under one folder."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice

from detap.errors import InputError, Problem, UsageError
from detap.text_input import join_names

_NAMES = ("train", "val", "valid", "validation", "test")
"""Folders of subsets; others may hold parts of one data set."""
_SAME = ("val", "valid", "validation")
_MAX_ENTRIES = 1000
_FIELD = "{split}"


def subsets_of(folder: str, patterns: Iterable[str]) -> dict[str, str]:
    """Return the path of each subset, by the first pattern that has any.

    Patterns are paths such as ``annotations/instances_{split}.json``; one without ``{split}`` is a
    single subset named "". ``{split}/*.xml`` is a folder with such files.
    """
    for pattern in patterns:
        subsets = dict(_matches(folder, pattern))
        if subsets:
            return subsets
    return {}


def _matches(folder: str, pattern: str) -> Iterator[tuple[str, str]]:
    head, field, tail = pattern.partition(_FIELD)
    parent, prefix = os.path.split(head)
    if field and (prefix or not tail.startswith("/")):
        yield from _files(os.path.join(folder, parent), prefix, tail)
        return
    for name in _NAMES if field else ("",):
        path = os.path.join(folder, pattern.replace(_FIELD, name))
        below, file = os.path.split(path)
        if file.startswith("*"):
            if _has_file(below, file[1:]):
                yield name, below
        elif os.path.isfile(path):
            yield name, path


def _files(folder: str, prefix: str, suffix: str) -> list[tuple[str, str]]:
    """Return the names between prefix and suffix of the first files of a folder, and the files."""
    with suppress(OSError, ValueError), os.scandir(folder) as entries:
        return sorted(
            (entry.name[len(prefix) : -len(suffix)], entry.path)
            for entry in islice(entries, _MAX_ENTRIES)
            if entry.name.startswith(prefix) and entry.name.endswith(suffix)
            if len(entry.name) > len(prefix) + len(suffix) and entry.name[0] != "."
            if entry.is_file()
        )
    return []


def _has_file(folder: str, suffix: str) -> bool:
    with suppress(OSError, ValueError), os.scandir(folder) as entries:
        return any(
            entry.name.lower().endswith(suffix) and entry.name[0] != "." for entry in entries
        )
    return False


def chosen_subset(path: str, subsets: Mapping[str, str], split: str | None) -> str:
    """Return the path of the subset `split` of a data set, or that of the only one."""
    same = _SAME if split in _SAME else (split,)
    name = next((name for name in (split, *same) if name in subsets), None)
    if split is None and len(subsets) == 1:
        (name,) = subsets
    if name is not None:
        return subsets[name]
    available = join_names(filter(None, subsets)) or "none"
    if split is None:
        message, hint = f"several subsets: {available}", "choose one with --split (split=)"
    else:
        message, hint = f"no subset {split!r} (available: {available})", "use another --split"
    raise InputError(Problem(path, "", message, hint))


def resolve_subset(path: str, patterns: tuple[str, ...], split: str | None, title: str) -> str:
    """Return the path of the chosen subset of a folder, or the path itself if it has none."""
    subsets = subsets_of(path, patterns) if os.path.isdir(path) else {}
    if subsets:
        return chosen_subset(path, subsets, split)
    if split is not None:
        layouts = " or ".join(pattern for pattern in patterns if _FIELD in pattern)
        raise UsageError(f"--split requires a {title} folder with {layouts}, got {path}")
    return path
