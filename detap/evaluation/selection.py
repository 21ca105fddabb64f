"""Selections of classes and images, and the subsets of tables and runs that they select."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

from detap.core.arrays import Scores
from detap.core.match_table import AreaIouPair, new_indices
from detap.errors import Note, UsageError
from detap.evaluation.run import EvaluationRun
from detap.io.digest import sha256_of_names
from detap.io.problems import check_list
from detap.protocols import Protocol
from detap.tables.arguments import check_table
from detap.tables.columns import ordered
from detap.tables.detection import Detections, Flags, GroundTruth, Integers, Name, Table
from detap.text_input import suggest


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The classes and images of a result.

    Attributes
    ----------
    classes : tuple of str or None
        The names of the selected classes, in the order of the tables; None if all are reported.
    unselected : tuple of int or str
        The ids of the ground truth's other classes, sorted.
    images : tuple of int or str or None
        The selected images, in the order of the ground truth; None if these are all.
    total_images : int
        The number of images of the ground truth.
    """

    classes: tuple[str, ...] | None = None
    unselected: tuple[Name, ...] = ()
    images: tuple[Name, ...] | None = None
    total_images: int = 0

    @classmethod
    def of(
        cls,
        ground_truth: GroundTruth,
        detections: Detections,
        classes: Iterable[Name] | None,
        images: Iterable[Name] | None,
    ) -> "Selection":
        """Return the selection of some classes and images of aligned tables."""
        for role, values in (("classes", classes), ("images", images)):
            if values is not None:
                check_list(role, values)
        selected_classes = selected_images = None
        unselected: list[Name] = []
        if classes is not None:
            mask = _class_mask(detections, classes)
            selected_classes = _names(detections.classes, mask)
            selected_ids = _names(detections.class_ids, mask)
            unselected = ordered({*ground_truth.class_ids}.difference(selected_ids))
        if images is not None:
            mask = name_mask("image", ground_truth.images, images)
            selected_images = None if mask.all() else _names(ground_truth.images, mask)
        total_images = len(ground_truth.images)
        return cls(selected_classes, tuple(unselected), selected_images, total_images)

    @property
    def total_classes(self) -> int:
        """The number of classes, selected or not."""
        return len(self.classes or ()) + len(self.unselected)

    @property
    def signature_parts(self) -> tuple[str, ...]:
        """The signature's parts, such as ``classes:2-of-80-`` and a short digest."""
        return tuple(
            f"{role}:{len(names)}-of-{total}-{sha256_of_names(sorted(map(str, names)))[:8]}"
            for role, total in (("classes", self.total_classes), ("images", self.total_images))
            if (names := getattr(self, role)) is not None
        )


def select(
    ground_truth: GroundTruth,
    detections: Detections,
    *,
    classes: Iterable[Name] | None = None,
    images: Iterable[Name] | None = None,
) -> tuple[GroundTruth, Detections]:
    """Return both tables with only some classes and images, reindexed.

    Some protocols use other classes too (max dets per image, KITTI's neighbor classes), so that
    metrics may change; ``evaluate(classes=...)`` selects after the evaluation instead.

    Parameters
    ----------
    ground_truth, detections : GroundTruth, Detections
        `detections` is reindexed like `ground_truth` first.
    classes : iterable of int or str, optional
        Names, or ids if they are integers; the order is that of the tables.
    images : iterable of int or str, optional
        Names of the images.

    Raises
    ------
    UsageError
        If a name is unknown, with near ones, or none is given.
    """
    check_table(ground_truth, GroundTruth)
    check_table(detections, Detections)
    extra_images = "error" if images is None else "drop"
    detections = detections.reindex_like(ground_truth, extra_images=extra_images)
    keep_class = _class_mask(detections, classes)
    keep_image = name_mask("image", ground_truth.images, images)
    return shrink(ground_truth, keep_image, keep_class), shrink(detections, keep_image, keep_class)


def shrink(table: Table, keep_image: Flags, keep_class: Flags | None = None) -> Table:
    """Return a table with only some images and classes, reindexed."""
    if keep_class is None:
        keep_class = np.ones(len(table.classes), np.bool_)
    rows: Flags = keep_image[table.image] & keep_class[table.label]
    selected = table if rows.all() else table.select(np.flatnonzero(rows))
    new_image = np.cumsum(keep_image, dtype=np.int32) - np.int32(1)
    new_class = np.cumsum(keep_class, dtype=np.int32) - np.int32(1)
    changes: dict[str, Any] = {
        "image": new_image[selected.image],
        "label": new_class[selected.label],
        "images": _names(table.images, keep_image),
        "classes": _names(table.classes, keep_class),
        "class_ids": _names(table.class_ids, keep_class),
    }
    if isinstance(table, GroundTruth):
        changes["listed"] = {}
        for name, pairs in table.listed.items():
            image, label = pairs[keep_image[pairs[:, 0]] & keep_class[pairs[:, 1]]].T
            changes["listed"][name] = np.stack([new_image[image], new_class[label]], axis=1)
        if table.image_sizes is not None:
            changes["image_sizes"] = table.image_sizes[keep_image]
    return replace(selected, **changes)


def split_classes(ground_truth: GroundTruth, protocol: Protocol, count: int) -> Integers:
    """Return the chunk of each class, and of classes without ground truth, (K + 1,).

    There is one chunk if the matches of a class depend on other classes.
    """
    classes = len(ground_truth.classes)
    chunk_of_class = np.zeros(classes + 1, np.int32)
    if (
        protocol.class_agnostic
        or protocol.matching != "by-score"
        or protocol.max_dets_scope == "image"
        or protocol.images_without_ground_truth == "ignore"
        or protocol.drop_in_regions
    ):
        return chunk_of_class
    sizes = np.bincount(ground_truth.label, minlength=classes + 1)
    filled = np.zeros(min(count, classes), np.int64)
    for label in np.argsort(-sizes, kind="stable").tolist():
        chunk_of_class[label] = number = int(filled.argmin())
        filled[number] += sizes[label] + 1
    return chunk_of_class


def _names(values: tuple[Any, ...], keep: Flags) -> tuple[Any, ...]:
    return tuple(compress(values, keep.tolist()))


def _class_mask(table: Detections, chosen: Iterable[Name] | None) -> Flags:
    """Return a mask of the selected classes, (K,) bool; an integer is an id before it is a name."""
    if chosen is not None:
        by_id = dict(zip(table.class_ids, table.classes, strict=True))
        chosen = [name if isinstance(name, str) else by_id.get(name, str(name)) for name in chosen]
    return name_mask("class", table.classes, chosen)


def name_mask(
    subject: str, names: tuple[Name, ...] | tuple[str, ...], chosen: Iterable[Name] | None
) -> Flags:
    """Return a mask of the selected names, (n,) bool."""
    if chosen is None:
        return np.ones(len(names), np.bool_)
    requested = set(chosen)
    if not requested:
        raise UsageError(f"no {subject} is selected")
    unknown = sorted(map(str, requested - set(names)))
    if unknown:
        hint = suggest(unknown[0], map(str, names))
        message = f"{subject} {unknown[0]!r} is not in the ground truth"
        raise UsageError("; ".join(filter(None, (message, hint))))
    return np.array([name in requested for name in names], np.bool_)


class SelectedClasses(EvaluationRun):
    """Some classes of a run, evaluated among all of its classes.

    `labels` are their indices in the full run; `rows` and `ground_truths` the rows of its tables.
    """

    def __init__(self, full: EvaluationRun, labels: Sequence[int]) -> None:
        mask = np.zeros(len(full.classes), np.bool_)
        mask[list(labels)] = True
        all_images = np.ones(len(full.images), np.bool_)
        super().__init__(
            shrink(full.ground_truth, all_images, mask),
            shrink(full.detections, all_images, mask),
            full.protocol,
            full.threads,
            prepared=True,
        )
        self.full, self.labels = full, list(labels)
        self.has_boxes, self.remote_notes = full.has_boxes, full.remote_notes
        self.rows = np.flatnonzero(mask[full.detections.label])
        self.ground_truths = np.flatnonzero(mask[full.ground_truth.label])

    @property
    def full_run(self) -> EvaluationRun:
        """The run of all classes."""
        return self.full

    def evaluate(
        self, *, match_table: Iterable[AreaIouPair] | None = None, curves: bool = True
    ) -> Scores:
        """Return the scores of these classes."""
        scores = self.full.evaluate(match_table=match_table, curves=curves)
        return scores.select_classes(self.labels)

    @cached_property
    def new_rows(self) -> tuple[Integers, Integers]:
        """The new index of each row of the full tables; -1 for other classes."""
        # The last entry maps -1 to -1.
        detections = new_indices(len(self.full.detections) + 1, self.rows)
        return detections, new_indices(len(self.full.ground_truth) + 1, self.ground_truths)

    @cached_property
    def new_labels(self) -> Integers:
        """The new index of each class of the full run; -1 for other classes."""
        return new_indices(len(self.full.classes), self.labels)

    def flag_notes(self) -> list[Note]:
        """Return the flag notes of the full run."""
        return self.full.flag_notes()
