"""Provenance of partials: ground truth digest, input files, notes."""

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

_DIGESTS: "WeakKeyDictionary[GroundTruth, GroundTruthDigest]" = WeakKeyDictionary()
_POSITIONS: "WeakKeyDictionary[GroundTruth, dict[Name, int]]" = WeakKeyDictionary()


class GroundTruthDigest(NamedTuple):
    """Digest of a ground truth.

    Attributes
    ----------
    digest : str
        blake2b of its names and columns, in hexadecimal.
    images : int
        The number of images.
    """

    digest: str
    images: int

    @classmethod
    def of(cls, ground_truth: GroundTruth) -> "GroundTruthDigest":
        """Return the digest of a table, cached."""
        if ground_truth not in _DIGESTS:
            hasher = blake2b(digest_size=32)
            names = [ground_truth.images, ground_truth.class_ids, ground_truth.classes]
            hasher.update(json.dumps(names).encode())
            masks = {} if ground_truth.masks is None else vars(ground_truth.masks)
            for name, column in (ground_truth.columns() | masks).items():
                dtype = column.dtype.newbyteorder("<")
                hasher.update(name.encode())
                hasher.update(np.ascontiguousarray(column, dtype).data)
            for name, pairs in ground_truth.listed.items():
                hasher.update(name.encode())
                hasher.update(np.unique(pairs, axis=0).astype("<i4").tobytes())
            if ground_truth.groups:
                hasher.update(json.dumps(sorted(ground_truth.groups.items(), key=str)).encode())
            _DIGESTS[ground_truth] = cls(hasher.hexdigest(), len(ground_truth.images))
        return _DIGESTS[ground_truth]


def positions(
    part: GroundTruth, full: GroundTruth, *, some_classes: bool = False
) -> NDArray[np.int64]:
    """Return the indices of a part's images in the full ground truth.

    Parameters
    ----------
    part, full : GroundTruth
    some_classes : bool
        If True, the part may have only some of the classes.

    Raises
    ------
    UsageError
        If the part has other images or classes.
    """
    full_classes = dict(zip(full.class_ids, full.classes, strict=True))
    part_classes = dict(zip(part.class_ids, part.classes, strict=True))
    if some_classes:
        full_classes = {name: full_classes.get(name, "") for name in part_classes}
    if [*part_classes.items()] != [*full_classes.items()]:
        raise UsageError("the classes of the result differ from those of ground_truth")
    if part.images == full.images:
        return np.arange(len(full.images))
    if full not in _POSITIONS:
        _POSITIONS[full] = {name: index for index, name in enumerate(full.images)}
    index_by_name = _POSITIONS[full]
    for name in part.images:
        if name not in index_by_name:
            raise UsageError(f"image {name!r} of the result is not in ground_truth")
    return np.array([index_by_name[name] for name in part.images], np.int64)


class Input(NamedTuple):
    """An input file or folder, as recorded in reports.

    Attributes
    ----------
    role : str
        ``"detections"`` or ``"ground_truth"``.
    path, sha256 : str
        The digest is empty if not computed.
    files, records : int
    reading : tuple of (str, str)
        The reading options and their values.
    """

    role: str
    path: str
    sha256: str
    files: int
    records: int
    reading: tuple[tuple[str, str], ...] = ()


def displayed_path(path: str) -> str:
    """Return a path, without the secrets of a signed URL."""
    return shown(path) if is_url(path) else path


def inputs_of(
    ground_truths: Sequence[SourceFile], detections: Sequence[SourceFile]
) -> tuple[Input, ...]:
    """Return the files of both tables, with displayed paths."""
    roles = [("ground_truth", file) for file in ground_truths] + [
        ("detections", file) for file in detections
    ]
    return merge_inputs(
        Input(
            role,
            displayed_path(file.path),
            str(file.sha256),
            len(file.members) or 1,
            file.records,
            file.reading,
        )
        for role, file in roles
    )


def merge_inputs(inputs: Iterable[Input]) -> tuple[Input, ...]:
    """Return each input once, sorted."""
    return tuple(sorted(set(inputs), key=lambda each: (each.role != "ground_truth", *each)))


def natural_key(text: str) -> list[Any]:
    """Return a sort key that compares integers in text by value."""
    parts: list[Any] = re.split(r"([0-9]+)", text)
    parts[1::2] = [(len(digits), digits) for digits in parts[1::2]]
    return parts


def split_notes(notes: Iterable[Note], truth_notes: Iterable[Note]) -> tuple[tuple[Note, ...], ...]:
    """Split notes into those of the shared ground truth and those of the part.

    Notes on missing detections are dropped; the merged result adds its own.
    """
    shared = set(truth_notes)
    left_out = {NO_DETECTIONS, *OF_ONE}
    part_notes = [note for note in notes if note not in shared and note.code not in left_out]
    return merge_notes([shared], add=False), merge_notes([part_notes], add=True)


def merge_notes(several: Iterable[Iterable[Note]], *, add: bool) -> tuple[Note, ...]:
    """Return each note once, sorted, with its counts added or the largest kept.

    Of different messages with one code, the first by :func:`natural_key` is kept.
    """
    merged: dict[tuple[str, Severity], tuple[str, int]] = {}
    for notes in several:
        for note in notes:
            key = note.code, note.severity
            message, count = merged.get(key, (note.message, 0))
            adds = add and note.code not in PER_INPUT
            total = count + note.count if adds else max(count, note.count)
            merged[key] = min(message, note.message, key=natural_key), total
    return tuple(
        Note(code, message, count, severity)
        for (code, severity), (message, count) in sorted(merged.items())
    )
