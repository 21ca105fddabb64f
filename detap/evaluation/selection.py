"""Selected classes: everything is scored by the protocol's rules, and then some is reported."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from detap.core.accumulate import Scores
from detap.errors import Note, UsageError
from detap.evaluation.run import EvaluationRun
from detap.evaluation.subset import shrink, wanted
from detap.io.digest import sha256_of_names
from detap.records import Record
from detap.tables.detection import Detections, GroundTruth, Integers, Name

if TYPE_CHECKING:
    from detap.core.match_table import AreaIouPair, MatchTable


class Selection(Record):
    """Which classes and images a result is about.

    Attributes
    ----------
    classes : tuple of str or None
        The names of the selected classes, in the order of the tables; None if all are reported.
    unselected : tuple of int or str
        The identifiers of the ground truth's other classes, sorted.
    images : tuple of int or str or None
        The selected images, in the order of the ground truth; None if these are all.
    total_images : int
        How many images the ground truth has.
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
        """Return the selection of some classes and images of tables that are numbered alike.

        Raises
        ------
        UsageError
            If a name is unknown, with similar ones, or none is given.
        """
        for what, given in (("classes", classes), ("images", images)):
            if isinstance(given, str):
                raise UsageError(f"{what} is {given!r}: give a list of names")
        names, left_out = detections.classes, tuple[Name, ...]()
        chosen_classes = chosen_images = None
        if classes is not None:
            kept = np.flatnonzero(wanted("class", names, classes)).tolist()
            chosen_classes = tuple(names[label] for label in kept)
            chosen_ids = (detections.class_ids[label] for label in kept)
            left_out = in_order({*ground_truth.class_ids}.difference(chosen_ids))
        if images is not None:
            kept = np.flatnonzero(wanted("image", ground_truth.images, images)).tolist()
            if len(kept) < len(ground_truth.images):
                chosen_images = tuple(ground_truth.images[place] for place in kept)
        return cls(chosen_classes, left_out, chosen_images, len(ground_truth.images))

    @property
    def total_classes(self) -> int:
        """How many classes there are: the ground truth's, and selected ones that it lacks."""
        return len(self.classes or ()) + len(self.unselected)

    @property
    def spelled(self) -> tuple[str, ...]:
        """What the signature says: ``classes:2-of-80-`` and the beginning of a digest."""
        parts = (
            ("classes", self.classes, self.total_classes),
            ("images", self.images, self.total_images),
        )
        return tuple(
            f"{what}:{len(names)}-of-{total}-{digest_of(names)[:8]}"
            for what, names, total in parts
            if names is not None
        )


def in_order(names: Iterable[Name]) -> tuple[Name, ...]:
    """Return names in one order, whatever order they come in."""
    return tuple(sorted(names, key=lambda name: (isinstance(name, str), name)))


def digest_of(names: Iterable[Name]) -> str:
    """Return the sha256 of names as UTF-8 text, sorted by code point and joined by newlines."""
    return sha256_of_names(sorted(map(str, names)))


class ChosenClasses(EvaluationRun):
    """Some classes of a scene, which are matched and scored among all of its classes.

    Attributes
    ----------
    whole : EvaluationRun
        Of all classes.
    labels : list of K int
        The selected classes, as the whole numbers them.
    rows, truths : (N,) and (G,) int64
        The detections and ground truths of these classes, as rows of the whole's tables.
    """

    def __init__(self, whole: EvaluationRun, labels: Sequence[int]) -> None:
        keep = np.zeros(len(whole.classes), np.bool_)
        keep[list(labels)] = True
        every = np.ones(len(whole.images), np.bool_)
        super().__init__(
            shrink(whole.ground_truth, every, keep),
            shrink(whole.detections, every, keep),
            whole.protocol,
            whole.threads,
            as_seen=True,
        )
        self.whole, self.labels = whole, list(labels)
        self.rows = np.flatnonzero(keep[whole.detections.label])
        self.truths = np.flatnonzero(keep[whole.ground_truth.label])

    @property
    def of_all_classes(self) -> EvaluationRun:
        """The scene of all classes."""
        return self.whole

    def score(
        self, *, match_table: "Iterable[AreaIouPair] | None" = None, curves: bool = True
    ) -> Scores:
        """Return the scores of these classes."""
        return self.whole.score(match_table=match_table, curves=curves).select_classes(self.labels)

    def chosen(self) -> Scores:
        """Return the scores of these classes where ground truths choose detections."""
        return self.whole.chosen().select_classes(self.labels)

    def match(self, cells: "tuple[AreaIouPair, ...]") -> "MatchTable":
        """Return what became of the detections of these classes."""
        return self.whole.match(cells).select_classes(self.labels)

    @cached_property
    def new_rows(self) -> tuple[Integers, Integers]:
        """The number here of each detection and ground truth of the whole; -1 of other classes."""
        sides = (
            (self.rows, len(self.whole.detections)),
            (self.truths, len(self.whole.ground_truth)),
        )
        numbers = []
        for kept, count in sides:
            number = np.full(count + 1, -1, np.int32)  # the last is that of -1
            number[kept] = np.arange(len(kept), dtype=np.int32)
            numbers.append(number)
        return numbers[0], numbers[1]

    def flag_notes(self) -> list[Note]:
        """Return what is worth saying about all that was scored."""
        return self.whole.flag_notes()
