"""Evaluate inputs on workers: a task per input reads, a task per chunk of classes evaluates."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import getitem
from typing import Any, NamedTuple

import numpy as np

from detap.checks.boxes import sampled_detections
from detap.checks.inputs import BoxCounts, counts_of_detections, warned_of_detections
from detap.checks.tables import repeated
from detap.core.arrays import Scores
from detap.engines.dask import Engine
from detap.errors import Note
from detap.evaluation.results import Result
from detap.evaluation.run import EvaluationRun
from detap.evaluation.sanity_notes import add_sanity_notes, needs_boxes, score_cut_notes
from detap.evaluation.scoring import name_scores, prepare
from detap.evaluation.selection import name_mask, shrink, split_classes
from detap.formats.multi_file import LocatedInput, locate_files, read_each
from detap.protocols import Protocol
from detap.tables.concat import join_detections
from detap.tables.detection import Detections, Flags, Floats, GroundTruth, Integers, Name
from detap.tables.notes import INTERLEAVED

_CHUNKS_PER_WORKER = 4
_MAX_ROWS_HERE = 1 << 25
"""Detections that the client reads at most, for notes that need all boxes."""


class Head(NamedTuple):
    """The first detection of each image of an input, and all of the images that checks sample."""

    detections: Detections
    counts: BoxCounts
    is_repeated: bool  # one in eight of the sampled detections is a duplicate


class Chunk(NamedTuple):
    """The scores of K classes, the counted notes, and the lowest scores (K,)."""

    class_ids: tuple[Name, ...]
    scores: Scores
    notes: tuple[Note, ...]
    lowest: Floats


def evaluate(
    engine: Engine,
    inputs: Sequence[LocatedInput],
    ground_truth: GroundTruth,
    protocol: Protocol,
    *,
    select: Callable[[Detections], Mapping[str, Any]],
    read: Callable[[], Detections],
    threads: int | None = None,
) -> tuple[Result, Detections]:
    """Evaluate inputs; return the result, and a table with the notes and files of all.

    `select` returns the classes and images to evaluate, given detections on each image. `read`
    reads all detections. `threads` are those of a single chunk of classes; of several each has one.
    """
    chunk_of_class = split_classes(ground_truth, protocol, engine.workers * _CHUNKS_PER_WORKER)
    # The ground truth is a task, so that Dask repeats it if its worker is lost.
    truth = engine.submit("ground truth", replace, locate_files(ground_truth, inputs[0].folder))
    columns = {
        one.path: engine.submit(one.path, read_columns, one, truth, chunk_of_class)
        for one in inputs
    }
    heads, *chunks = (
        {path: engine.submit(path, getitem, future, index) for path, future in columns.items()}
        for index in range(2 + chunk_of_class.max())
    )
    del columns
    detections, counts, is_repeated = _join_heads(engine, heads, ground_truth)
    chosen = select(detections)
    run, selection, classes = prepare(ground_truth, detections, protocol, threads=threads, **chosen)
    keep_image = name_mask("image", ground_truth.images, getattr(selection, "images", None))
    settings = protocol, threads if len(chunks) == 1 else 1, INTERLEAVED in detections.notes
    tasks = []
    for number, parts in enumerate(chunks):
        keep = keep_image, chunk_of_class[:-1] == number
        name = f"{np.count_nonzero(keep[1])} classes"
        tasks.append(engine.submit(name, evaluate_chunk, truth, keep, settings, *parts.values()))
    del chunks, parts  # workers release a chunk once it is evaluated
    scores, result = _name_chunks(run, engine.gather(tasks), classes)
    if (is_repeated or needs_boxes(result)) and counts.detections <= _MAX_ROWS_HERE:
        run, _, _ = prepare(ground_truth, read(), protocol, threads=threads, **chosen)
        result = add_sanity_notes(name_scores(run, scores, classes))
    else:
        result = replace(result, notes=(*result.notes, *score_cut_notes(result)))
    return replace(result, selection=selection), detections


def read_columns(
    source: LocatedInput, ground_truth: GroundTruth, chunk_of_class: Integers
) -> list[Head | Detections]:
    """Read an input; return its head and its detections by chunk of classes."""
    table = source.read(ground_truth).reindex_like(ground_truth)
    sampled, of_images = sampled_detections(ground_truth, table)
    duplicates = repeated(sampled.image, sampled.label, sampled.corners)
    is_repeated = 0 < duplicates >= len(sampled) / 8
    head = Head(of_images.compact(), counts_of_detections(table, ground_truth), is_repeated)
    chunk = chunk_of_class[np.minimum(np.arange(len(table.classes)), len(chunk_of_class) - 1)]
    images = np.ones(len(table.images), np.bool_)
    chunks = [shrink(table, images, chunk == n).compact() for n in range(chunk_of_class.max() + 1)]
    return [head, *(replace(part, images=()) for part in chunks)]  # the ground truth has them


def evaluate_chunk(
    ground_truth: GroundTruth,
    keep: tuple[Flags, Flags],
    settings: tuple[Protocol, int | None, bool],
    *inputs: Detections,
) -> Chunk:
    """Evaluate a chunk of classes.

    `keep` flags images and classes of the ground truth; `settings` are the protocol, the threads,
    and True to order the rows by image.
    """
    protocol, threads, by_image = settings
    classes = shrink(ground_truth, np.ones_like(keep[0]), keep[1])
    tables = [replace(table, images=classes.images) for table in inputs]
    detections = join_detections(tables, classes, merge_images=True)
    if by_image:
        detections = detections.select(np.argsort(detections.image, kind="stable"))
    run = EvaluationRun(shrink(classes, keep[0]), shrink(detections, keep[0]), protocol, threads)
    lowest = np.full(len(run.classes), np.inf)
    np.minimum.at(lowest, run.boxes()[0].label, run.detections.score)
    return Chunk(run.class_ids, run.evaluate(), tuple(run.counted_notes()), lowest)


def _join_heads(
    engine: Engine, heads: Mapping[str, Any], ground_truth: GroundTruth
) -> tuple[Detections, BoxCounts, bool]:
    """Return the table and the counts of all heads, and whether one is repeated."""
    read: list[Head] = []

    def read_head(path: str) -> Detections:
        read.extend(engine.gather([heads[path]]))
        return read[-1].detections

    table = join_detections(read_each(heads, read_head), ground_truth)
    counts = BoxCounts(*map(sum, zip(*(head.counts for head in read), strict=True)))
    if len(read) > 1:
        table = replace(table, notes=(*table.notes, *warned_of_detections(table, counts)))
    return table, counts, any(head.is_repeated for head in read)


def _name_chunks(
    run: EvaluationRun, chunks: list[Chunk], classes: Iterable[str] | None
) -> tuple[Scores, Result]:
    """Return the scores of all chunks, in the order of the run's classes, and their result."""
    scores, lowest = chunks[0].scores, chunks[0].lowest
    if len(chunks) > 1:
        ids = [class_id for chunk in chunks for class_id in chunk.class_ids]
        order = [ids.index(class_id) for class_id in run.class_ids]
        scores = Scores.concatenate([chunk.scores for chunk in chunks], order)
        lowest = np.concatenate([chunk.lowest for chunk in chunks])[order]
    counted = zip(*(chunk.notes for chunk in chunks), strict=True)
    sums = [replace(notes[0], count=sum(note.count for note in notes)) for notes in counted]
    run.has_boxes, run.remote_notes = False, tuple(sums)
    result = name_scores(run, scores, classes)
    score = lowest[name_mask("class", run.classes, classes)].min(initial=np.inf)
    result._run.lowest_score = None if np.isinf(score) else float(score) + 0.0
    return scores, result
