"""What results call the images and classes of their ground truth, where not by its ids.

COCO's results have ids. But detectors that know only a folder of images write the stems of files,
as numbers where they are digits (Ultralytics' ``predictions.json``); and beside ground truth of
another format, which has names, a number means a class only by a list of names.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from detap.errors import InputError, Note, Problem, UsageError
from detap.formats.coco.category_offset import sampled_classes
from detap.formats.coco.columns import DetectionColumns
from detap.formats.registry import FORMATS
from detap.formats.stem_matching import by_stem, without_suffix
from detap.formats.text.class_names import ClassNames
from detap.io.json_text import spelt
from detap.io.paths import shown
from detap.tables.detection import GroundTruth, Name, distinct_name
from detap.tables.notes import INSIST
from detap.text_input import is_whole, join_names

_CLEAR = 4
"""How many times as many objects must bear out one reading as bear out the other."""
_ENOUGH = 5
"""Objects that must bear it out."""
_ENOUGH_OF_PART = 20
"""Those of one of several inputs."""
_LONGEST = 18
"""Digits of a stem that is a number: int64 holds no more of all."""


# --- images


def words_of(truth: GroundTruth) -> tuple[str, ...]:
    """Return the stem of each image's file; nothing where files are not named, or named alike.

    An id that is a number is no word: "7" is not 7.
    """
    source = FORMATS.get(truth.format)
    if source is None or not source.by_ids:
        return tuple(name for name in truth.images if isinstance(name, str))
    files = source.file_names(truth)
    if not all(name in files for name in truth.images):
        return ()
    try:
        return tuple(map(str, by_stem(truth, files).images))
    except InputError:
        return ()


def images_in_order(
    truth: GroundTruth, are_text: bool, listed: Mapping[Name, str]
) -> tuple[Name, ...] | None:
    """Return what results call each image, as far as that needs no look at the ids themselves.

    Parameters
    ----------
    truth : GroundTruth
    are_text : bool
        Whether the ids of the results are text.
    listed : mapping of id to str
        The file names that the results themselves list.

    Returns
    -------
    tuple of int or str, or None
        None where an image would have no id, or two.
    """
    if not truth.images or isinstance(truth.images[0], str) == are_text:
        return truth.images
    words = words_of(truth)
    called = _by_file(words, listed or {word: word for word in words})
    if not listed and not are_text:
        called = _by_number(words)
    ids = {number: identifier for identifier, number in called.items()}
    if len(ids) < len(truth.images) or any(isinstance(i, str) != are_text for i in ids.values()):
        return None
    return tuple(ids[number] for number in range(len(ids)))


def image_numbers(
    truth: GroundTruth, used: Collection[Name], listed: Mapping[Name, str]
) -> dict[Name, int]:
    """Return the number of the image that each id of results means; without those it cannot tell.

    Parameters
    ----------
    truth, listed
        As :func:`images_in_order` has them.
    used : collection of int or str
        The ids that detections have.
    """
    by_id = {identifier: number for number, identifier in enumerate(truth.images)}
    if by_id.keys() >= set(used):
        return by_id
    words = words_of(truth)
    if listed:
        called = _by_file(words, listed)
    else:
        called = _by_number(words)
        called |= _by_file(words, {name: name for name in used if isinstance(name, str)})
    of_words, of_ids = (sum(name in names for name in used) for names in (called, by_id))
    return called if of_words > of_ids else by_id


def _by_file(words: Sequence[str], files: Mapping[Any, str]) -> dict[Name, int]:
    """Return the number of the image of each id, by its file; of those that have one."""
    number = {word: at for at, word in enumerate(words)}
    stems = {name: without_suffix(file.replace("\\", "/")) for name, file in files.items()}
    found = {
        name: number.get(stem, number.get(stem.rpartition("/")[2], -1))
        for name, stem in stems.items()
    }
    return {name: at for name, at in found.items() if at >= 0}


def _by_number(words: Sequence[str]) -> dict[Name, int]:
    """Return the number of the image of each id, where that is the number in its stem."""
    digits = {
        at: int(word) for at, word in enumerate(words) if is_whole(word) and len(word) <= _LONGEST
    }
    often = Counter(digits.values())
    return {value: at for at, value in digits.items() if often[value] == 1}


def ids_are_stems(
    columns: DetectionColumns, truth: GroundTruth, path: str, by_id: int, *, part: bool
) -> None:
    """Refuse ids of images that are others' than the numbers of files that they look like.

    Asked where next to no object has a detection: it costs another look at the ground truth.

    Parameters
    ----------
    columns, truth
        Read by the ids.
    path : str
        What holds the results.
    by_id : int
        How many objects of a sample have a detection so.
    part : bool
        Whether these are one of several inputs: then more objects must bear it out.

    Raises
    ------
    InputError
        Where far more have one if ids are read as the numbers in files' names.
    """
    called = _by_number(words_of(truth))
    if not called:
        return
    meant = np.array([called.get(name, -1) for name in truth.images], np.int32)
    image = meant[columns.image]
    if (image < 0).any() or (image == columns.image).all():
        return
    by_stem = len(sampled_classes(replace(columns, image=image), truth).pairs)
    if by_stem < (_ENOUGH_OF_PART if part else _ENOUGH) or by_stem < _CLEAR * by_id:
        return
    raise InputError(
        Problem(
            shown(path),
            "",
            "image_id looks like the number in the name of the image's file, not like the ground "
            f"truth's id: so read, {by_stem} objects of a sample have a detection, and {by_id} "
            "by the ids",
            f"write the ground truth's image ids; or, if they are, give {INSIST}",
        )
    )


# --- classes


_FOLDED = str.maketrans("", "", "_- ")


def named_alike(
    columns: DetectionColumns, truth: GroundTruth, path: str
) -> tuple[DetectionColumns, tuple[Note, ...]]:
    """Return columns whose labels are matched by name where the results name ids otherwise.

    Parameters
    ----------
    columns : DetectionColumns
        Numbered by id, with the names that the results list.
    truth : GroundTruth
    path : str
        What holds the results.

    Raises
    ------
    InputError
        Where an id has a name that the ground truth lacks, and there one that the results lack.
    """
    ids = (*truth.class_ids, *columns.unknown)
    counts = np.bincount(columns.label, minlength=len(ids)).tolist()
    used = {name: count for name, count in zip(ids, counts, strict=True) if count}
    found = _classes_of(used, columns, truth)
    if not found:
        return columns, ()
    _refuse_other_names(found, columns, truth, path)
    missing = [name for name in used if found.get(name, -1) < 0]
    index_of = found | {name: len(truth.classes) + k for k, name in enumerate(missing)}
    label = np.array([index_of.get(name, 0) for name in ids], np.int32)
    changed = replace(
        columns, label=label[columns.label], unknown={name: used[name] for name in missing}
    )
    return changed, tuple(_naming_notes(found, missing, columns.categories, truth))


def _classes_of(
    used: Iterable[Name], columns: DetectionColumns, truth: GroundTruth
) -> dict[Name, int]:
    """Return the class of each id that has a name, -1 for none; nothing where all keep theirs."""
    listed = columns.categories
    own = {
        identifier: k
        for k, (identifier, name) in enumerate(zip(truth.class_ids, truth.classes, strict=True))
        if identifier in listed
        and name in (listed[identifier], distinct_name(listed[identifier], identifier))
    }
    by_name = _by_folded(truth.classes, listed.values())
    by_name |= {name: k for k, name in enumerate(truth.classes)}
    found = {name: own.get(name, by_name.get(listed[name], -1)) for name in used if name in listed}
    kept = dict.fromkeys(columns.unknown, -1) | own
    return {} if found.items() <= kept.items() else found


def _by_folded(classes: Sequence[str], others: Collection[str]) -> dict[str, int]:
    """Return the class of each other name that differs from it in case or separators alone.

    Where two names of a side are the same then, they match nothing.
    """
    sides = [Counter(map(_fold, set(names))) for names in (classes, others)]
    index_of = {_fold(name): k for k, name in enumerate(classes)}
    alone = {word for word in index_of if all(side[word] == 1 for side in sides)}
    return {name: index_of[_fold(name)] for name in others if _fold(name) in alone}


def _fold(name: str) -> str:
    return name.casefold().translate(_FOLDED)


def _refuse_other_names(
    classes: Mapping[Name, int], columns: DetectionColumns, truth: GroundTruth, path: str
) -> None:
    """Refuse ids that both sides have under names that the other side lacks."""
    due = dict(zip(truth.class_ids, truth.classes, strict=True))
    theirs = {_fold(name) for name in columns.categories.values()}
    found = [
        Problem(
            shown(path),
            "categories",
            f"category {spelt(name)} is {spelt(columns.categories[name])} here, "
            f"{spelt(due[name])} in the ground truth",
            "use the ground truth's category ids, or its names",
        )
        for name, k in classes.items()
        if k < 0 and name in due and _fold(due[name]) not in theirs
    ]
    if found:
        raise InputError(found)


def _naming_notes(
    found: Mapping[Name, int],
    missing: Sequence[Name],
    listed: Mapping[Name, str],
    truth: GroundTruth,
) -> Iterator[Note]:
    matched = {name: k for name, k in found.items() if k >= 0}
    other = sum(truth.class_ids[k] != name for name, k in matched.items())
    if other:
        message = "categories have another id in the results and are matched by name"
        yield Note("categories-matched-by-name", message, other, severity="info")
    loose = [
        f"{listed[name]} as {truth.classes[k]}"
        for name, k in matched.items()
        if truth.classes[k] not in (listed[name], distinct_name(listed[name], truth.class_ids[k]))
    ]
    if loose:
        message = (
            f"category names differ in case or separators and are matched: {join_names(loose)}"
        )
        yield Note("category-names-alike", message, len(loose))
    yield from _unmatched_note(matched, missing, listed, truth)


def _unmatched_note(
    matched: Mapping[Name, int],
    missing: Sequence[Name],
    listed: Mapping[Name, str],
    truth: GroundTruth,
) -> Iterator[Note]:
    """Yield the note of the categories that one side alone has, if there are any."""
    words = {*listed.values(), *(truth.classes[k] for k in matched.values())}
    absent = [name for name in truth.classes if name not in words]
    strangers = [listed.get(name, f"id {name}") for name in missing]
    if absent or strangers:
        sides = [
            f"{join_names(names)} in the {side} alone"
            for names, side in ((strangers, "results"), (absent, "ground truth"))
            if names
        ]
        message = f"categories have no namesake: {', '.join(sides)}"
        yield Note("categories-unmatched", message, len(absent) + len(strangers))


class CategoryMapping(NamedTuple):
    """How the numbers of classes become names.

    Attributes
    ----------
    path : str
        What messages call the results.
    listed : mapping of int or str to str
        The categories that the results themselves name.
    names : ClassNames
        A list of them.
    first : int or None
        The number of its first, where that is said.
    as_is : bool
        Whether it is believed even where boxes bear out the other.
    """

    path: str
    listed: Mapping[Name, str]
    names: ClassNames
    first: int | None
    as_is: bool

    def refuse(self, message: str, hint: str) -> InputError:
        """Return an error about the results."""
        return InputError(Problem(self.path, "", message, hint))


def first_of(given: int | str | None) -> int | None:
    """Return the number of the first of the names, as a number.

    Raises
    ------
    UsageError
        Where it is neither 0 nor 1.
    """
    if given not in (None, 0, 1, "0", "1"):
        raise UsageError(f"first_category_id is {given!r}; give 0 or 1")
    return None if given is None else int(given)


def by_name(
    columns: DetectionColumns, truth: GroundTruth, naming: CategoryMapping
) -> tuple[DetectionColumns, tuple[Note, ...]]:
    """Return columns whose labels count in the classes of ground truth that has names.

    Parameters
    ----------
    columns : DetectionColumns
        Read against no category at all, so that each is an unknown one.
    truth : GroundTruth
    naming : CategoryMapping

    Raises
    ------
    InputError
        Where nothing says which class a number is, or it may be either of two.
    """
    ids = list(columns.unknown)
    _check_listed(truth, naming, ids)
    counted = [name for name in ids if isinstance(name, int) and name not in naming.listed]
    words = {name: naming.listed.get(name, name) for name in ids if name not in counted}
    notes: tuple[Note, ...] = ()
    if counted:
        first = _first(columns, truth, naming, counted)
        words |= {name: naming.names.names[name - first] for name in counted}
        if naming.first is None:
            message = f"category_id counts the names of {naming.names.file} from {first}"
            notes = (Note("categories-counted", message, len(counted), severity="info"),)
    return _labelled(columns, truth, [str(words[name]) for name in ids]), notes


def _check_listed(truth: GroundTruth, naming: CategoryMapping, ids: Sequence[Name]) -> None:
    """Refuse an id of the ground truth's that the results themselves name otherwise."""
    called = dict(zip(truth.class_ids, truth.classes, strict=True))
    for identifier in ids:
        name, due = naming.listed.get(identifier), called.get(identifier)
        own = isinstance(identifier, str) and None not in (name, due)
        if own and due not in (name, distinct_name(str(name), identifier)):
            raise naming.refuse(
                f"category {spelt(identifier)} is {spelt(name)} here, {spelt(due)} in the ground "
                "truth",
                "use the ground truth's category ids",
            )


def _labelled(
    columns: DetectionColumns, truth: GroundTruth, words: Sequence[str]
) -> DetectionColumns:
    known = {name: k for k, name in enumerate(truth.classes)}
    known |= {name: k for k, name in enumerate(truth.class_ids) if isinstance(name, str)}
    strangers = dict.fromkeys(word for word in words if word not in known)
    index_of = known | {word: len(truth.classes) + k for k, word in enumerate(strangers)}
    unknown: dict[Name, int] = dict.fromkeys(strangers, 0)
    for word, count in zip(words, columns.unknown.values(), strict=True):
        if word in strangers:
            unknown[word] += count
    label = np.array([index_of[word] for word in words], np.int32)
    return replace(
        columns,
        label=label[columns.label] if len(columns.label) else columns.label,
        unknown=unknown,
    )


def _first(
    columns: DetectionColumns, truth: GroundTruth, naming: CategoryMapping, counted: Sequence[int]
) -> int:
    """Return the number of the first name: as said, or as the ids or the boxes tell."""
    names, low, high = naming.names, min(counted), max(counted)
    if not names.names:
        raise naming.refuse(
            f"category_id {low} is a number, the ground truth calls classes by name, such as "
            f"{spelt(truth.classes[0]) if truth.classes else 'none'}, and nothing says which is "
            "which",
            "give the file that names the classes in the order of their numbers, one a line "
            "(class_names, --class-names)",
        )
    fitting = [
        first
        for first in ((0, 1) if naming.first is None else (naming.first,))
        if low >= first and high < len(names.names) + first
    ]
    if not fitting:
        start = "0 or 1" if naming.first is None else str(naming.first)
        raise naming.refuse(
            f"category_id goes from {low} to {high}, but {names.file} has {len(names.names)} "
            f"names, which are numbered from {start}",
            "give the list that the detector's classes are numbered by",
        )
    if len(fitting) == 1 and naming.first is None:
        return fitting[0]
    told = _told_by_boxes(columns, truth, naming)
    if naming.first is not None:
        if told not in (None, naming.first) and not naming.as_is:
            raise naming.refuse(
                f"category_id looks as if it counted the names from {told}, not from "
                f"{naming.first}: so the boxes lie on objects of their class",
                f"give first_category_id={told} (--first-category-id {told}); or, if the detector "
                f"is as wrong as that, {INSIST}",
            )
        return naming.first
    if told is None:
        raise naming.refuse(
            f"category_id goes from {low} to {high}, so it may count the {len(names.names)} names "
            f"of {names.file} from 0 or from 1, and too few boxes tell which",
            "say first_category_id=0 or 1 (--first-category-id)",
        )
    return told


def _told_by_boxes(
    columns: DetectionColumns, truth: GroundTruth, naming: CategoryMapping
) -> int | None:
    """Return which numbering lets boxes lie on objects of their class; None where neither does."""
    names = naming.names.names
    agreeing = []
    for first in (0, 1):
        words = [
            names[name - first]
            if isinstance(name, int) and 0 <= name - first < len(names)
            else str(naming.listed.get(name, name))
            for name in columns.unknown
        ]
        pairs = sampled_classes(_labelled(columns, truth, words), truth).pairs
        agreeing.append(sum(due == got for due, got in pairs))
    best = int(agreeing[1] > agreeing[0])
    clear = agreeing[best] >= _ENOUGH and agreeing[best] >= _CLEAR * agreeing[1 - best]
    return best if clear else None
