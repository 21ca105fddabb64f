"""What partials say of where they come from: the ground truth, the files, the notes."""

import json
import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from detap.errors import Note, Severity, UsageError
from detap.io.paths import is_url, shown
from detap.tables.columns import Name
from detap.tables.concat import OF_ONE
from detap.tables.detection import GroundTruth, SourceFile
from detap.tables.notes import NO_DETECTIONS, PER_INPUT

_KNOWN: "WeakKeyDictionary[GroundTruth, GroundTruthDigest]" = WeakKeyDictionary()
_PLACES: "WeakKeyDictionary[GroundTruth, dict[Name, int]]" = WeakKeyDictionary()


class GroundTruthDigest(NamedTuple):
    """A ground truth, as partials of its images know it again.

    Attributes
    ----------
    digest : str
        blake2b of its names and columns, in hexadecimal.
    images : int
        How many it has.
    """

    digest: str
    images: int

    @classmethod
    def of(cls, ground_truth: GroundTruth) -> "GroundTruthDigest":
        """Return that of a table; taken once, since tables do not change."""
        if ground_truth not in _KNOWN:
            taken = blake2b(digest_size=32)
            names = [ground_truth.images, ground_truth.class_ids, ground_truth.classes]
            taken.update(json.dumps(names).encode())
            masks = {} if ground_truth.masks is None else vars(ground_truth.masks)
            for name, column in (ground_truth.columns() | masks).items():
                kind = column.dtype.newbyteorder("<")
                taken.update(name.encode())
                taken.update(np.ascontiguousarray(column, kind).data)
            for name, pairs in ground_truth.listed.items():
                taken.update(name.encode())
                taken.update(np.unique(pairs, axis=0).astype("<i4").tobytes())
            if ground_truth.groups:
                taken.update(json.dumps(sorted(ground_truth.groups.items(), key=str)).encode())
            _KNOWN[ground_truth] = cls(taken.hexdigest(), len(ground_truth.images))
        return _KNOWN[ground_truth]


def positions(
    part: GroundTruth, whole: GroundTruth, *, some_classes: bool = False
) -> NDArray[np.int64]:
    """Return where the images of a part stand in the whole.

    Parameters
    ----------
    part, whole : GroundTruth
    some_classes : bool
        Whether the part may have some of the classes.

    Raises
    ------
    UsageError
        Where it has other images or classes.
    """
    theirs = dict(zip(whole.class_ids, whole.classes, strict=True))
    ours = dict(zip(part.class_ids, part.classes, strict=True))
    if some_classes:
        theirs = {name: theirs.get(name, "") for name in ours}
    if [*ours.items()] != [*theirs.items()]:
        raise UsageError("the result has other classes than the whole ground truth")
    if part.images == whole.images:
        return np.arange(len(whole.images))
    if whole not in _PLACES:
        _PLACES[whole] = {name: place for place, name in enumerate(whole.images)}
    places = _PLACES[whole]
    for name in part.images:
        if name not in places:
            raise UsageError(f"image {name!r} of the result is not in the whole ground truth")
    return np.array([places[name] for name in part.images], np.int64)


class Input(NamedTuple):
    """A file that was read, or a folder; what a report says of it.

    Attributes
    ----------
    role : str
        ``"detections"`` or ``"ground_truth"``.
    path, sha256 : str
        The digest is empty where none was taken.
    files, records : int
    reading : tuple of (str, str)
        The options with which it was read, and their values.
    """

    role: str
    path: str
    sha256: str
    files: int
    records: int
    reading: tuple[tuple[str, str], ...] = ()


def public(path: str) -> str:
    """Return what a path is called where others may read it."""
    return shown(path) if is_url(path) else path


def inputs_of(truths: Sequence[SourceFile], found: Sequence[SourceFile]) -> tuple[Input, ...]:
    """Return the files of both tables; a URL without what a signed one must not show."""
    roles = [("ground_truth", file) for file in truths] + [("detections", file) for file in found]
    return united_inputs(
        Input(
            role,
            public(file.path),
            str(file.sha256),
            len(file.members) or 1,
            file.records,
            file.reading,
        )
        for role, file in roles
    )


def united_inputs(inputs: Iterable[Input]) -> tuple[Input, ...]:
    """Return each input once, in order."""
    return tuple(sorted(set(inputs), key=lambda each: (each.role != "ground_truth", *each)))


def natural(text: str) -> list[Any]:
    """Return a key that sorts whole numbers in text by value."""
    parts: list[Any] = re.split(r"([0-9]+)", text)
    parts[1::2] = [(len(digits), digits) for digits in parts[1::2]]
    return parts


def noted(notes: Iterable[Note], of_truth: Iterable[Note]) -> tuple[tuple[Note, ...], ...]:
    """Return the notes of the whole ground truth, and those of the images of a part.

    That a part has no detections is nothing to speak of: it is said again where none has any.
    """
    shared = set(of_truth)
    left_out = {NO_DETECTIONS, *OF_ONE}
    own = [note for note in notes if note not in shared and note.code not in left_out]
    return united_notes([shared], add=False), united_notes([own], add=True)


def united_notes(several: Iterable[Iterable[Note]], *, add: bool) -> tuple[Note, ...]:
    """Return each note once, in order: its counts added, or the largest of them.

    Of notes of one code that say different things, of another first record say, the first by
    :func:`natural` speaks for all.
    """
    found: dict[tuple[str, Severity], tuple[str, int]] = {}
    for notes in several:
        for note in notes:
            key = note.code, note.severity
            message, count = found.get(key, (note.message, 0))
            adds = add and note.code not in PER_INPUT
            total = count + note.count if adds else max(count, note.count)
            found[key] = min(message, note.message, key=natural), total
    return tuple(
        Note(code, message, count, severity)
        for (code, severity), (message, count) in sorted(found.items())
    )
