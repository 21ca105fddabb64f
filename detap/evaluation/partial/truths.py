"""What partials say of where they come from: the ground truth, the files, the notes."""

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from detap.errors import Note, UsageError
from detap.formats.reading.paths import is_url, shown
from detap.tables.columns import Name
from detap.tables.detection import GroundTruth, SourceFile
from detap.tables.joining import NO_DETECTIONS, OF_ONE

_KNOWN: "WeakKeyDictionary[GroundTruth, Whole]" = WeakKeyDictionary()
_PLACES: "WeakKeyDictionary[GroundTruth, dict[Name, int]]" = WeakKeyDictionary()


class Whole(NamedTuple):
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
    def of(cls, truth: GroundTruth) -> "Whole":
        """Return that of a table; taken once, since tables do not change."""
        if truth not in _KNOWN:
            taken = blake2b(digest_size=32)
            names = [truth.images, truth.class_ids, truth.classes]
            taken.update(json.dumps(names).encode())
            masks = {} if truth.masks is None else vars(truth.masks)
            for name, column in (truth.columns() | masks).items():
                kind = column.dtype.newbyteorder("<")
                taken.update(name.encode())
                taken.update(np.ascontiguousarray(column, kind).data)
            for name, pairs in truth.listed.items():
                taken.update(name.encode())
                taken.update(np.unique(pairs, axis=0).astype("<i4").tobytes())
            if truth.groups:
                taken.update(json.dumps(sorted(truth.groups.items(), key=str)).encode())
            _KNOWN[truth] = cls(taken.hexdigest(), len(truth.images))
        return _KNOWN[truth]


def positions(part: GroundTruth, whole: GroundTruth) -> NDArray[np.int64]:
    """Return where the images of a part stand in the whole.

    Raises
    ------
    UsageError
        Where it has other images or classes.
    """
    if part.class_ids != whole.class_ids or part.classes != whole.classes:
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
    """

    role: str
    path: str
    sha256: str
    files: int
    records: int


def public(path: str) -> str:
    """Return what a path is called where others may read it."""
    return shown(path) if is_url(path) else path


def inputs_of(truths: Sequence[SourceFile], found: Sequence[SourceFile]) -> tuple[Input, ...]:
    """Return the files of both tables; a URL without what a signed one must not show."""
    roles = [("ground_truth", file) for file in truths] + [("detections", file) for file in found]
    return united_inputs(
        Input(role, public(file.path), str(file.sha256), len(file.members) or 1, file.records)
        for role, file in roles
    )


def united_inputs(inputs: Iterable[Input]) -> tuple[Input, ...]:
    """Return each input once, in order."""
    return tuple(sorted(set(inputs), key=lambda each: (each.role != "ground_truth", *each)))


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

    Of notes of one code that say different things, of another first record say, the first by its
    text speaks for all.
    """
    found: dict[tuple[str, bool], tuple[str, int]] = {}
    for notes in several:
        for note in notes:
            key = note.code, note.warning
            message, count = found.get(key, (note.message, 0))
            total = count + note.count if add else max(count, note.count)
            found[key] = min(message, note.message), total
    return tuple(
        Note(code, message, count, warning)
        for (code, warning), (message, count) in sorted(found.items())
    )
