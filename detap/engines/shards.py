"""Two pure functions that any engine can run: a shard to a partial, and classes finished.

::

    blobs = [shard_to_partial(shard) for shard in shards]        # anywhere, in any order
    pieces = [of_classes(blob, names) for blob in blobs]         # where the blobs are
    scores = finish_classes(*pieces)                             # anywhere

Both take and return what can be pickled, and may be called again: the same shard gives the same
bytes.
"""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from detap._version import __version__
from detap.core.accumulate import Scores
from detap.errors import InputError
from detap.evaluation.partial import Partial, merge
from detap.evaluation.partial.shards import no_detections, partial_of_images
from detap.formats.multi_file import ground_truth_of
from detap.formats.registry import FORMATS
from detap.io.digest import sha256, sha256_of_source
from detap.io.limits import DEFAULT_LIMITS
from detap.io.paths import is_url
from detap.io.writing import write
from detap.protocols import Protocol
from detap.tables.detection import Detections, Flags, GroundTruth, Name


class InputFiles(NamedTuple):
    """Files, and how they are read.

    Attributes
    ----------
    format : str
    paths : tuple of str
        As they were given; relative ones to `folder`.
    options : tuple of (str, value)
        What else the readers take.
    folder : str
    merge_images : bool
        Whether an image may be in several of the files.
    """

    format: str
    paths: tuple[str, ...]
    options: tuple[tuple[str, Any], ...] = ()
    folder: str = ""
    merge_images: bool = False

    def place(self, path: str) -> str:
        """Return where a file lies."""
        return path if is_url(path) else os.path.join(self.folder, path)

    def named(self, table: Any) -> Any:
        """Return a table whose files are called as they were given, with digests if wanted."""
        given = {self.place(path): path for path in self.paths}
        wanted = dict(self.options).get("limits", DEFAULT_LIMITS).digests
        files = [
            file._replace(
                path=given.get(file.path, file.path),
                sha256=(sha256_of_source(file) or "") if wanted else "",
            )
            for file in table.files
        ]
        return replace(table, files=tuple(files))


class Shard(NamedTuple):
    """What becomes a partial: one input of detections, with its ground truth.

    Attributes
    ----------
    ground_truth : InputFiles
    detections : InputFiles or None
        None is for the images that no input has detections on.
    protocol : Protocol
    whole : bool
        Whether the ground truth is that of all shards, of which this has the images that its
        detections are on; otherwise it is this shard's own, with all of its images.
    images : tuple of int or str, optional
        Only these.
    elsewhere : tuple of int or str
        Without detections: the images that inputs have detections on.
    ties : bool
        Whether what other orders of equal scores would give is kept.
    """

    ground_truth: InputFiles
    detections: InputFiles | None
    protocol: Protocol
    whole: bool = True
    images: tuple[Name, ...] | None = None
    elsewhere: tuple[Name, ...] = ()
    ties: bool = False

    @property
    def name(self) -> str:
        """What errors call it."""
        return self.ground_truth.paths[0] if self.detections is None else self.detections.paths[0]


def shard_to_partial(shard: Shard) -> bytes:
    """Return the bytes of a shard's partial.

    Raises
    ------
    InputError
        Where an input is not right.
    """
    placed, truth = _truth(shard.ground_truth, _stamp(shard.ground_truth))
    detections = None
    if shard.detections is not None:
        # A reader may look into the files of the ground truth again, wherever this process runs.
        detections = read_detections(shard.detections, placed)
    return evaluated(shard, truth, detections, threads=1).to_bytes()


def read_detections(reading: InputFiles, ground_truth: GroundTruth) -> Detections:
    """Return the detections of a shard, numbered as `ground_truth`."""
    entry, path = FORMATS[reading.format], reading.place(reading.paths[0])
    found: Detections = reading.named(
        entry.read_detections(path, ground_truth, dict(reading.options))
    )
    return found


def evaluated(
    shard: Shard,
    ground_truth: GroundTruth,
    detections: Detections | None,
    *,
    threads: int | None = None,
) -> Partial:
    """Return a shard's partial from its tables."""
    due = chosen(ground_truth, shard.images)
    if detections is None:
        elsewhere = set(shard.elsewhere)
        due &= np.array([name not in elsewhere for name in ground_truth.images], np.bool_)
        return partial_of_images(
            ground_truth,
            no_detections(ground_truth),
            shard.protocol,
            due,
            tie_range=shard.ties,
            threads=threads,
        )
    images = detections.filled & due if shard.whole else due
    return partial_of_images(
        ground_truth,
        detections,
        shard.protocol,
        images,
        whole=shard.whole,
        input=shard.name,
        tie_range=shard.ties,
        threads=threads,
    )


def chosen(ground_truth: GroundTruth, images: Sequence[Name] | None) -> Flags:
    """Return which images are among those chosen, (I,) bool."""
    if images is None:
        return np.ones(len(ground_truth.images), np.bool_)
    wanted = set(images)
    return np.array([name in wanted for name in ground_truth.images], np.bool_)


def _stamp(reading: InputFiles) -> tuple[Any, ...]:
    """Return what changes when a file does: a worker outlives a run."""
    return tuple(_look(reading.place(path)) for path in reading.paths)


def _look(path: str) -> Any:
    if is_url(path):
        from detap.io.remote import RemoteFile  # seldom needed

        with RemoteFile(path) as remote:
            return remote.stamp()
    try:
        found = os.stat(path)
    except OSError:
        return None  # its reader says what is wrong
    return found.st_ino, found.st_size, found.st_mtime_ns


@lru_cache(maxsize=1)
def _truth(reading: InputFiles, _: tuple[Any, ...]) -> tuple[GroundTruth, GroundTruth]:
    """Return a ground truth, which a process reads once for all of its shards.

    Its files are called by where they lie, and as they were given.
    """
    entry, options = FORMATS[reading.format], dict(reading.options)
    table = ground_truth_of(
        map(reading.place, reading.paths),
        lambda path: entry.read_ground_truth(path, options),
        options.get("limits", DEFAULT_LIMITS),
        merge_images=reading.merge_images,
    )
    return table, reading.named(table)


def of_classes(blob: bytes, classes: Sequence[Name]) -> bytes:
    """Return the bytes of a partial with some classes alone, by what the files call them."""
    partial = Partial.from_bytes(blob)
    wanted = set(classes)
    labels = [n for n, name in enumerate(partial.class_ids) if name in wanted]
    return partial.select_classes(labels).to_bytes()


class Classes(NamedTuple):
    """Some classes, finished.

    Attributes
    ----------
    ids : tuple of K int or str
        What the files call them.
    scores : Scores
        Of K classes; of one, where classes are scored as one.
    """

    ids: tuple[Name, ...]
    scores: Scores


def finish_classes(*blobs: bytes, threads: int = 1) -> Classes:
    """Return the scores of the classes that partials have.

    Parameters
    ----------
    *blobs : bytes
        One of each shard, with all of its rows of these classes.
    threads : int
        The scores do not depend on it.
    """
    union = merge(blobs)
    return Classes(union.class_ids, union.accumulated(threads=threads))


class PartialHeader(NamedTuple):
    """A partial without its rows.

    Attributes
    ----------
    blob : bytes
    sizes : tuple of (int or str, int)
        How many rows each class has.
    """

    blob: bytes
    sizes: tuple[tuple[Name, int], ...]


def head_of(blob: bytes) -> PartialHeader:
    """Return what a partial says of itself: all but its rows."""
    partial = Partial.from_bytes(blob)
    sizes = partial.sizes.sum(axis=0).tolist()
    return PartialHeader(
        partial.without_rows().to_bytes(), tuple(zip(partial.class_ids, sizes, strict=False))
    )


# --- partials kept in a folder, for a run that is resumed


def kept(shard: Shard, folder: str, act: Callable[[Shard], bytes] = shard_to_partial) -> bytes:
    """Return a shard's partial from a folder, where it is made from the same; else put it there.

    Parameters
    ----------
    shard : Shard
    folder : str
    act : callable
        Makes the partial.

    Raises
    ------
    InputError, OutputError
        Where an input cannot be read, or the folder not be written to.
    """
    path = os.path.join(folder, f"{_key(shard)}.part")
    try:
        with open(path, "rb") as file:
            blob = file.read()
        Partial.from_bytes(blob, name=path)
    except (OSError, InputError):  # absent, or of a run that was killed by the machine's end
        blob = act(shard)
        write(path, blob)
    return blob


def _key(shard: Shard) -> str:
    """Return the digest of all that a shard's partial depends on."""
    sides = [side for side in (shard.ground_truth, shard.detections) if side is not None]
    digests = [[_digest(side.place(p), _stamp(side)) for p in side.paths] for side in sides]
    record = {
        "version": __version__,
        "protocol": shard.protocol.as_dict(),
        "inputs": [
            [side.format, side.paths, repr(side.options), of_side]
            for side, of_side in zip(sides, digests, strict=True)
        ],
        "chosen": [
            *(shard.whole, shard.images, shard.elsewhere, shard.ties),
            sides[0].merge_images,
        ],
    }
    return blake2b(json.dumps(record).encode(), digest_size=20).hexdigest()


@lru_cache(maxsize=4096)
def _digest(path: str, _: tuple[Any, ...]) -> str:
    """Return the sha256 of a file or a folder; a ground truth's is taken once for all shards."""
    inside = [
        os.path.relpath(os.path.join(folder, name), path)
        for folder, _, names in os.walk(path)
        for name in names
    ]
    return sha256(path, inside)
