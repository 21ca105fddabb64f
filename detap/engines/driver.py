"""Evaluate shards through an engine: one partial per shard, classes in parallel."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core.accumulate import Scores
from detap.core.interpolated import Interpolated
from detap.engines import Engine
from detap.engines.shards import (
    ClassScores,
    PartialHeader,
    Shard,
    accumulate_classes,
    header_of,
    load_or_create,
    select_classes,
)
from detap.engines.shards import shard_to_partial as to_partial
from detap.evaluation.partial import Partial, merge
from detap.tables.concat import refuse_shared
from detap.tables.detection import Name

_MAX_MERGED_ROWS = 1 << 25
"""Rows that are merged here, where they take half a GB; workers accumulate more, class by class."""

_GROUPS_PER_WORKER = 4
"""Groups of classes per worker, to balance classes of different size."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RemoteScores(Partial):
    """A union of partials with scores computed by workers, without rows."""

    scores: Scores

    def accumulate(self, *, threads: int | None = None) -> Scores:
        """Return the scores."""
        return self.scores

    def select_classes(self, classes: Sequence[int]) -> "RemoteScores":
        """Return the scores of some classes."""
        part = super().select_classes(classes)
        columns = {f.name: getattr(part, f.name) for f in fields(Partial)}
        return RemoteScores(**columns, scores=self.scores.select_classes(classes))


def evaluate(
    engine: Engine,
    shards: Sequence[Shard],
    *,
    remaining: Shard | None = None,
    rows: bool = False,
    folder: str | None = None,
    threads: int | None = None,
) -> Partial:
    """Return the union of the shards' partials, computed by an engine.

    Parameters
    ----------
    engine : Engine
    shards : sequence of Shard
        At least one.
    remaining : Shard, optional
        The shard of the images without detections in any other shard.
    rows : bool
        If True, always return the rows too, as curves, subsets and writing require.
    folder : str, optional
        Folder of partials, to resume a run.
    threads : int, optional
        Maximum per process; the engine's by default.
    """
    blobs = [_submit(engine, shard, folder) for shard in shards]
    headers = _headers(engine, shards, blobs)
    images_by_shard = [Partial.from_bytes(header.blob).images for header in headers]
    refuse_shared(zip([shard.name for shard in shards], images_by_shard, strict=True))
    if remaining is not None:
        remaining = remaining._replace(
            images_with_detections=tuple(image for images in images_by_shard for image in images)
        )
        blobs.append(_submit(engine, remaining, folder))
        headers += _headers(engine, [remaining], blobs[-1:])
    count = sum(size for header in headers for _, size in header.sizes)
    if rows or count <= _MAX_MERGED_ROWS:
        return merge(engine.gather(blobs))
    union = merge([header.blob for header in headers])
    groups = [union.class_ids]
    if not union.protocol.class_agnostic:
        groups = _class_groups(headers, engine.workers * _GROUPS_PER_WORKER)
    names = [shard.name for shard in (*shards, *([remaining] if remaining else []))]
    # Several groups run in parallel; a single one uses all threads of its worker.
    max_threads = min(engine.threads, threads or engine.threads) if len(groups) == 1 else 1
    finished = []
    for group in groups:
        selected = blobs
        if not union.protocol.class_agnostic:
            selected = [
                engine.submit(name, select_classes, blob, group)
                for name, blob in zip(names, blobs, strict=True)
            ]
        name = f"{len(group)} classes"
        finished.append(engine.submit(name, accumulate_classes, *selected, threads=max_threads))
    return _join_scores(union, engine.gather(finished))


def _submit(engine: Engine, shard: Shard, folder: str | None) -> object:
    if folder is None:
        return engine.submit(shard.name, to_partial, shard)
    return engine.submit(shard.name, load_or_create, shard, folder)


def _headers(
    engine: Engine, shards: Sequence[Shard], blobs: Sequence[object]
) -> list[PartialHeader]:
    pairs = zip(shards, blobs, strict=True)
    return engine.gather([engine.submit(shard.name, header_of, blob) for shard, blob in pairs])


def _class_groups(headers: Sequence[PartialHeader], max_groups: int) -> list[tuple[Name, ...]]:
    """Split the classes into groups of about equal size."""
    sizes: dict[Name, int] = {}
    for header in headers:
        for name, size in header.sizes:
            sizes[name] = sizes.get(name, 0) + size
    groups: list[list[Name]] = [[] for _ in range(min(max_groups, max(len(sizes), 1)))]
    sizes_of_groups = [0] * len(groups)
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        smallest = sizes_of_groups.index(min(sizes_of_groups))
        groups[smallest].append(name)
        sizes_of_groups[smallest] += sizes[name] + 1
    return [tuple(group) for group in groups]


def _join_scores(union: Partial, finished: Sequence[ClassScores]) -> RemoteScores:
    """Return the union with the scores of all classes, in its class order."""
    scores = [one.scores for one in finished]
    order = [0]
    if not union.protocol.class_agnostic:
        class_ids = [name for one in finished for name in one.ids]
        index_of = {name: n for n, name in enumerate(class_ids)}
        order = [index_of[name] for name in union.class_ids]

    def whole(columns: Sequence[NDArray[Any]], axis: int) -> NDArray[Any]:
        return np.take(np.concatenate(columns, axis=axis), order, axis=axis)

    joined = Scores(
        interpolated=Interpolated.concatenate([one.interpolated for one in scores]).select_classes(
            order
        ),
        average=whole([one.average for one in scores], 1),
        recall=whole([one.recall for one in scores], 1),
        positives=whole([one.positives for one in scores], 1),
        counts=whole([one.counts for one in scores], 1),
    )
    return RemoteScores(**{f.name: getattr(union, f.name) for f in fields(union)}, scores=joined)
