"""Selection: metrics of some classes, evaluated among all."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from detap.core.accumulate import Scores
from detap.errors import Note, UsageError
from detap.evaluation.run import EvaluationRun
from detap.evaluation.subset import name_mask, shrink
from detap.io.digest import sha256_of_names
from detap.tables.detection import Detections, GroundTruth, Integers, Name

if TYPE_CHECKING:
    from detap.core.match_table import AreaIouPair, MatchTable


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
        classes: Iterable[str] | None,
        images: Iterable[Name] | None,
    ) -> "Selection":
        """Return the selection of some classes and images of aligned tables."""
        for role, values in (("classes", classes), ("images", images)):
            if isinstance(values, str):
                raise UsageError(f"{role} is {values!r}: give a list of names")
        names, unselected = detections.classes, tuple[Name, ...]()
        selected_classes = selected_images = None
        if classes is not None:
            indices = np.flatnonzero(name_mask("class", names, classes)).tolist()
            selected_classes = tuple(names[label] for label in indices)
            selected_ids = (detections.class_ids[label] for label in indices)
            unselected = sort_names({*ground_truth.class_ids}.difference(selected_ids))
        if images is not None:
            indices = np.flatnonzero(name_mask("image", ground_truth.images, images)).tolist()
            if len(indices) < len(ground_truth.images):
                selected_images = tuple(ground_truth.images[index] for index in indices)
        return cls(selected_classes, unselected, selected_images, len(ground_truth.images))

    @property
    def total_classes(self) -> int:
        """The number of classes, selected or not."""
        return len(self.classes or ()) + len(self.unselected)

    @property
    def signature_parts(self) -> tuple[str, ...]:
        """The signature's parts, such as ``classes:2-of-80-`` and a short digest."""
        parts = (
            ("classes", self.classes, self.total_classes),
            ("images", self.images, self.total_images),
        )
        return tuple(
            f"{role}:{len(names)}-of-{total}-{digest_names(names)[:8]}"
            for role, names, total in parts
            if names is not None
        )


def sort_names(names: Iterable[Name]) -> tuple[Name, ...]:
    """Return names in a canonical order."""
    return tuple(sorted(names, key=lambda name: (isinstance(name, str), name)))


def digest_names(names: Iterable[Name]) -> str:
    """Return the sha256 of names, sorted and joined by newlines."""
    return sha256_of_names(sorted(map(str, names)))


class SelectedClasses(EvaluationRun):
    """Some classes of a run, evaluated among all of its classes.

    Attributes
    ----------
    full : EvaluationRun
        The run of all classes.
    labels : list of K int
        The selected classes, as indices of the full run.
    rows, ground_truths : (N,) and (G,) int64
        The detections and ground truths of these classes, as rows of the full tables.
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

    def evaluate_by_score(
        self, *, match_table: "Iterable[AreaIouPair] | None", curves: bool
    ) -> Scores:
        """Return the scores of these classes."""
        return self.full.evaluate_by_score(match_table=match_table, curves=curves).select_classes(
            self.labels
        )

    def evaluate_kitti(self) -> Scores:
        """Return the scores of these classes by KITTI's rules."""
        return self.full.evaluate_kitti().select_classes(self.labels)

    def match(self, area_iou_pairs: "tuple[AreaIouPair, ...]") -> "MatchTable":
        """Return the match table of these classes."""
        return self.full.match(area_iou_pairs).select_classes(self.labels)

    @cached_property
    def new_rows(self) -> tuple[Integers, Integers]:
        """The new index of each row of the full tables; -1 for other classes."""
        tables = (
            (self.rows, len(self.full.detections)),
            (self.ground_truths, len(self.full.ground_truth)),
        )
        new_indices = []
        for indices, count in tables:
            new_index = np.full(count + 1, -1, np.int32)  # the last entry maps -1 to -1
            new_index[indices] = np.arange(len(indices), dtype=np.int32)
            new_indices.append(new_index)
        return new_indices[0], new_indices[1]

    @cached_property
    def new_labels(self) -> Integers:
        """The new index of each class of the full run; -1 for other classes."""
        new_labels = np.full(len(self.full.classes), -1, np.int32)
        new_labels[self.labels] = np.arange(len(self.labels), dtype=np.int32)
        return new_labels

    def flag_notes(self) -> list[Note]:
        """Return the flag notes of the full run."""
        return self.full.flag_notes()
