"""Counts for the Jaccard index as columns.

Axes: C IoU thresholds, P image-class pairs, S score thresholds.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core.jaccard import SCORE_THRESHOLDS, JaccardCounts
from detap.tables.detection import Flags, Integers

Columns = dict[str, NDArray[Any]]

COLUMNS = ("jaccard_label", "jaccard_image", "jaccard_matched", "jaccard_objects")


def select_images(counts: JaccardCounts, mask: Flags) -> JaccardCounts:
    """Return the counts of some images, with unchanged indices."""
    return _of_rows(counts, np.flatnonzero(mask[counts.image]))


def select_classes(counts: JaccardCounts, mask: Flags) -> JaccardCounts:
    """Return the counts of some classes, with new indices."""
    selected = _of_rows(counts, np.flatnonzero(mask[counts.label]))
    return selected._replace(label=(np.cumsum(mask) - 1)[selected.label].astype(np.int32))


def join(parts: Iterable[tuple[JaccardCounts, Integers, Integers]]) -> JaccardCounts:
    """Return the counts of a union, by class and image.

    Parameters
    ----------
    parts : iterable of (JaccardCounts, (K,) int32, (I,) int32)
        Counts of disjoint images, with the index in the union of each class and image.
    """
    renumbered = [
        counts._replace(label=labels[counts.label], image=images[counts.image])
        for counts, labels, images in parts
    ]
    joined = JaccardCounts._make(np.concatenate(column) for column in zip(*renumbered, strict=True))
    return _of_rows(joined, np.lexsort((joined.image, joined.label)))


def columns(counts: Sequence[JaccardCounts]) -> Columns:
    """Return the columns that :func:`read` takes, of the counts at C thresholds."""
    if not counts:
        return {}
    first = counts[0]
    matched = np.concatenate([each.matched.ravel() for each in counts])
    objects = np.concatenate([each.objects.ravel() for each in counts])
    return dict(zip(COLUMNS, (first.label, first.image, matched, objects), strict=True))


def read(
    columns: Columns, thresholds: int, classes_and_images: tuple[int, int]
) -> tuple[JaccardCounts, ...]:
    """Read the counts at C thresholds from their columns.

    Raises
    ------
    ValueError
        If the columns are invalid.
    """
    if not thresholds:
        return ()
    label, image, *counts = (columns[name].astype(np.int64) for name in COLUMNS)
    keys = label * max(classes_and_images[1], 1) + image
    _require(len(label) == len(image) and bool((np.diff(keys) > 0).all()))
    for indices, count in zip((label, image), classes_and_images, strict=True):
        _require(not len(indices) or int(indices.max()) < count)
    shape = thresholds, len(label), len(SCORE_THRESHOLDS)
    _require(all(column.size == np.prod(shape) for column in counts))
    matched, objects = (column.reshape(shape) for column in counts)
    _require(bool((matched <= objects).all()))
    rows = label.astype(np.int32), image.astype(np.int32)
    return tuple(JaccardCounts(*rows, *each) for each in zip(matched, objects, strict=True))


def _of_rows(counts: JaccardCounts, rows: NDArray[np.integer[Any]]) -> JaccardCounts:
    return JaccardCounts._make(column[rows] for column in counts)


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError("Jaccard counts")
