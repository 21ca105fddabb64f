"""Subsets of exported data sets: train, val and test under one folder."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice

from detap.errors import InputError, Problem, UsageError
from detap.formats.reading.sniffing import head
from detap.text_input import join_names

_NAMES = ("train", "val", "valid", "validation", "test")
"""Folders of subsets; others may hold parts of one data set."""
_SAME = ("val", "valid", "validation")
_MOST = 1000
_FIELD = "{split}"
_OLD_LABELME = b"<imagesize>"


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
    above, field, tail = pattern.partition(_FIELD)
    if field and not tail.startswith("/"):  # the name of a file contains that of the subset
        parent, prefix = os.path.split(os.path.join(folder, above))
        for name in sorted(islice(_files(parent, prefix, tail), _MOST)):
            yield name[len(prefix) : -len(tail)], os.path.join(parent, name)
        return
    for name in _NAMES if field else ("",):
        below, file = os.path.split(os.path.join(folder, pattern.replace(_FIELD, name)))
        if file.startswith("*"):
            if any(_files(below, "", file[1:])):
                yield name, below
        elif os.path.isfile(os.path.join(below, file)):
            yield name, os.path.join(below, file)


def _files(folder: str, prefix: str, suffix: str) -> Iterator[str]:
    """Yield the names of the files in a folder that begin and end so, with more between."""
    with suppress(OSError, ValueError), os.scandir(folder) as entries:
        for entry in entries:
            name, length = entry.name, len(prefix) + len(suffix)
            fits = name.startswith(prefix) and name.lower().endswith(suffix)
            if fits and len(name) > length and name[0] != "." and entry.is_file():
                yield name


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
    if split is None and all(map(_is_old_labelme, subsets.values())):
        return path  # the reader refuses its files, whatever the subset
    if subsets:
        return chosen_subset(path, subsets, split)
    if split is not None:
        layouts = " or ".join(pattern for pattern in patterns if _FIELD in pattern)
        raise UsageError(f"--split requires a {title} folder with {layouts}, got {path}")
    return path


def _is_old_labelme(folder: str) -> bool:
    """Return True for a folder of XML by LabelMe's older tool."""
    names = islice(_files(folder, "", ".xml"), 1)
    return any(_OLD_LABELME in head(os.path.join(folder, name)) for name in names)
