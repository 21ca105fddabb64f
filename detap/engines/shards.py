"""Pure functions that an engine runs: shard to partial, partials to class scores.

::

    blobs = [shard_to_partial(shard) for shard in shards]        # anywhere, in any order
    parts = [select_classes(blob, names) for blob in blobs]      # where the blobs are
    scores = accumulate_classes(*parts)                          # anywhere

They take and return values that can be pickled, and may be retried: results are deterministic.
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
    """Input files and their reading options.

    Attributes
    ----------
    format : str
    paths : tuple of str
        As given; relative paths refer to `folder`.
    options : tuple of (str, value)
        Further reading options.
    folder : str
    merge_images : bool
        If True, an image may be in several files.
    """

    format: str
    paths: tuple[str, ...]
    options: tuple[tuple[str, Any], ...] = ()
    folder: str = ""
    merge_images: bool = False

    def resolve(self, path: str) -> str:
        """Return the location of a path."""
        return path if is_url(path) else os.path.join(self.folder, path)

    def with_given_paths(self, table: Any) -> Any:
        """Return a table with file paths as given, and with digests if enabled."""
        path_by_location = {self.resolve(path): path for path in self.paths}
        digests = dict(self.options).get("limits", DEFAULT_LIMITS).digests
        sources = [
            file._replace(
                path=path_by_location.get(file.path, file.path),
                sha256=(sha256_of_source(file) or "") if digests else "",
            )
            for file in table.files
        ]
        return replace(table, files=tuple(sources))


class Shard(NamedTuple):
    """One input of detections with its ground truth.

    Attributes
    ----------
    ground_truth : InputFiles
    detections : InputFiles or None
        None is for the images that no input has detections on.
    protocol : Protocol
    shared_ground_truth : bool
        If True, all shards share the ground truth, and this one has the images with detections;
        otherwise the ground truth is the shard's own.
    images : tuple of int or str, optional
        Only these.
    images_with_detections : tuple of int or str
        Without detections: the images that inputs have detections on.
    tie_range : bool
        If True, keep the tie groups.
    """

    ground_truth: InputFiles
    detections: InputFiles | None
    protocol: Protocol
    shared_ground_truth: bool = True
    images: tuple[Name, ...] | None = None
    images_with_detections: tuple[Name, ...] = ()
    tie_range: bool = False

    @property
    def name(self) -> str:
        """The name used in error messages."""
        return self.ground_truth.paths[0] if self.detections is None else self.detections.paths[0]


def shard_to_partial(shard: Shard) -> bytes:
    """Return the bytes of a shard's partial.

    Raises
    ------
    InputError
        If an input is invalid.
    """
    resolved_truth, truth = _read_ground_truth(shard.ground_truth, _stamp(shard.ground_truth))
    detections = None
    if shard.detections is not None:
        # A reader may look into the files of the ground truth again, wherever this process runs.
        detections = read_detections(shard.detections, resolved_truth)
    return evaluate_shard(shard, truth, detections, threads=1).to_bytes()


def read_detections(files: InputFiles, ground_truth: GroundTruth) -> Detections:
    """Read the detections of a shard, indexed like `ground_truth`."""
    format, path = FORMATS[files.format], files.resolve(files.paths[0])
    detections: Detections = files.with_given_paths(
        format.read_detections(path, ground_truth, dict(files.options))
    )
    return detections


def evaluate_shard(
    shard: Shard,
    ground_truth: GroundTruth,
    detections: Detections | None,
    *,
    threads: int | None = None,
) -> Partial:
    """Return a shard's partial from its tables."""
    mask = image_mask(ground_truth, shard.images)
    if detections is None:
        excluded = set(shard.images_with_detections)
        mask &= np.array([name not in excluded for name in ground_truth.images], np.bool_)
        return partial_of_images(
            ground_truth,
            no_detections(ground_truth),
            shard.protocol,
            mask,
            tie_range=shard.tie_range,
            threads=threads,
        )
    images = detections.images_with_rows & mask if shard.shared_ground_truth else mask
    return partial_of_images(
        ground_truth,
        detections,
        shard.protocol,
        images,
        shared_ground_truth=shard.shared_ground_truth,
        input=shard.name,
        tie_range=shard.tie_range,
        threads=threads,
    )


def image_mask(ground_truth: GroundTruth, images: Sequence[Name] | None) -> Flags:
    """Return a mask of the selected images, (I,) bool."""
    if images is None:
        return np.ones(len(ground_truth.images), np.bool_)
    names = set(images)
    return np.array([name in names for name in ground_truth.images], np.bool_)


def _stamp(files: InputFiles) -> tuple[Any, ...]:
    """Return the stamps of the files, which change with their content."""
    return tuple(_file_stamp(files.resolve(path)) for path in files.paths)


def _file_stamp(path: str) -> Any:
    if is_url(path):
        from detap.io.remote import RemoteFile

        with RemoteFile(path) as remote:
            return remote.stamp()
    try:
        status = os.stat(path)
    except OSError:
        return None  # its reader says what is wrong
    return status.st_ino, status.st_size, status.st_mtime_ns


@lru_cache(maxsize=1)
def _read_ground_truth(files: InputFiles, _: tuple[Any, ...]) -> tuple[GroundTruth, GroundTruth]:
    """Read a ground truth, once per process for all shards.

    Return the table with resolved paths, and with paths as given.
    """
    format, options = FORMATS[files.format], dict(files.options)
    table = ground_truth_of(
        map(files.resolve, files.paths),
        lambda path: format.read_ground_truth(path, options),
        options.get("limits", DEFAULT_LIMITS),
        merge_images=files.merge_images,
    )
    return table, files.with_given_paths(table)


def select_classes(blob: bytes, classes: Sequence[Name]) -> bytes:
    """Return the bytes of a partial restricted to some class ids."""
    partial = Partial.from_bytes(blob)
    names = set(classes)
    labels = [n for n, name in enumerate(partial.class_ids) if name in names]
    return partial.select_classes(labels).to_bytes()


class ClassScores(NamedTuple):
    """The scores of some classes.

    Attributes
    ----------
    ids : tuple of K int or str
        The class ids.
    scores : Scores
        Of K classes; of one, where classes are scored as one.
    """

    ids: tuple[Name, ...]
    scores: Scores


def accumulate_classes(*blobs: bytes, threads: int = 1) -> ClassScores:
    """Return the scores of the classes that partials have.

    Parameters
    ----------
    *blobs : bytes
        One of each shard, with all of its rows of these classes.
    threads : int
        The scores do not depend on it.
    """
    union = merge(blobs)
    scores = union.within_dataset_limit().accumulate(threads=threads)
    return ClassScores(union.class_ids, scores)


class PartialHeader(NamedTuple):
    """A partial without its rows.

    Attributes
    ----------
    blob : bytes
    sizes : tuple of (int or str, int)
        The number of rows per class.
    """

    blob: bytes
    sizes: tuple[tuple[Name, int], ...]


def header_of(blob: bytes) -> PartialHeader:
    """Return a partial's header: all but its rows."""
    partial = Partial.from_bytes(blob)
    sizes = partial.sizes.sum(axis=0).tolist()
    return PartialHeader(
        partial.without_rows().to_bytes(), tuple(zip(partial.class_ids, sizes, strict=False))
    )


# --- partials kept in a folder, for a run that is resumed


def load_or_create(
    shard: Shard, folder: str, create: Callable[[Shard], bytes] = shard_to_partial
) -> bytes:
    """Load a shard's partial from a folder, or create it there.

    Parameters
    ----------
    shard : Shard
    folder : str
    create : callable
        Makes the partial.

    Raises
    ------
    InputError, OutputError
        If an input cannot be read, or the folder not be written to.
    """
    path = os.path.join(folder, f"{_key(shard)}.part")
    try:
        with open(path, "rb") as file:
            blob = file.read()
        Partial.from_bytes(blob, name=path)
    except (OSError, InputError):  # absent, or of a run that was killed by the machine's end
        blob = create(shard)
        write(path, blob)
    return blob


def _key(shard: Shard) -> str:
    """Return the digest of all that a shard's partial depends on."""
    inputs = [files for files in (shard.ground_truth, shard.detections) if files is not None]
    digests = [[_digest(files.resolve(p), _stamp(files)) for p in files.paths] for files in inputs]
    record = {
        "version": __version__,
        "protocol": shard.protocol.as_dict(),
        "inputs": [
            [files.format, files.paths, repr(files.options), file_digests]
            for files, file_digests in zip(inputs, digests, strict=True)
        ],
        "chosen": [
            *(
                shard.shared_ground_truth,
                shard.images,
                shard.images_with_detections,
                shard.tie_range,
            ),
            inputs[0].merge_images,
        ],
    }
    return blake2b(json.dumps(record).encode(), digest_size=20).hexdigest()


@lru_cache(maxsize=4096)
def _digest(path: str, _: tuple[Any, ...]) -> str:
    """Return the sha256 of a file or folder, cached for all shards."""
    inside = [
        os.path.relpath(os.path.join(folder, name), path)
        for folder, _, names in os.walk(path)
        for name in names
    ]
    return sha256(path, inside)
