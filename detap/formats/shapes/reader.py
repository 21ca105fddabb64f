"""Boxes as they are met, one by one, in formats that are read by Python."""

from array import array
from collections.abc import Iterable, Sequence

import numpy as np

from detap.errors import Note
from detap.formats.by_name.notes import images_without_objects, told
from detap.formats.by_name.objects import Objects, ground_truth, numbered
from detap.formats.by_name.problems import Problems, RowReader, refuse_empty
from detap.formats.shapes.flags import SHAPES, FlagNames
from detap.formats.text.lines import box_fault, number_fault
from detap.io.limits import Limits
from detap.io.paths import shown
from detap.io.problems import FaultError, check_choice
from detap.tables.columns import places
from detap.tables.detection import Floats, GroundTruth, SourceFile
from detap.text_input import quote


def number_of(name: str, text: str) -> float:
    """Return a finite decimal number.

    Raises
    ------
    FaultError
        Where `text` is none.
    """
    fault = number_fault(text)
    if fault:
        raise FaultError(f"{name} {quote(text)} {fault}", "give a decimal number")
    return float(text)


class ShapeReader(RowReader):
    """Reads boxes one after the other, by the names of their images and classes.

    Parameters
    ----------
    path : str
        The input.
    limits : Limits
        What is accepted at most.
    shapes : {"reject", "bbox"}
        Whether shapes that are no boxes are read.
    flags : str, optional
        Which attributes are flags, as :class:`FlagNames` has it.
    scored : bool
        Whether shapes must have scores: of detections.
    as_is : bool
        Whether what only looks wrong is taken as it is.

    Attributes
    ----------
    given : str
        The path as it was given.
    problems : Problems
        What is wrong with the files.
    images : dict of str to (float, float)
        Width and height of each image, NaN where unknown, in the order met.
    at : array of int
        Where each box stands in its file: the number of a line, say.
    file : array of int
        The number of its image in the order met.
    """

    def __init__(
        self,
        path: str,
        limits: Limits,
        shapes: str = "boxes",
        flags: str | None = None,
        *,
        scored: bool = False,
        as_is: bool = False,
    ) -> None:
        check_choice("shapes", shapes, SHAPES)
        self.given, self.path = path, shown(path)
        self.as_is = as_is
        self.limits = limits
        self.shapes = shapes
        self.flags = FlagNames(flags)
        self.scored = scored
        self.problems = Problems(limits.problems)
        self.images: dict[str, tuple[float, float]] = {}
        self.file = array("i")
        self.at = array("i")
        self._labels: list[str] = []
        self._numbers = array("d")
        self._flagged: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self.at)

    def add(
        self, at: int, label: str, box: Sequence[float], score: float, flags: Iterable[str]
    ) -> None:
        """Add a box of the last image.

        Raises
        ------
        FaultError
            Where its area overflows.
        """
        fault = box_fault(list(box), "xyxy")
        if fault:
            raise FaultError(fault, "correct the box")
        for flag in flags:
            self._flagged.setdefault(flag, []).append(len(self))
        self.file.append(len(self.images) - 1)
        self.at.append(at)
        self._labels.append(label)
        self._numbers.extend((score, *box))

    def too_many(self) -> bool:
        """Return whether there are more boxes than the limit, having said so."""
        if len(self) <= self.limits.records:
            return False
        self.problems.add(self.path, "", *self.limits.exceeded)
        return True

    def objects(self) -> Objects:
        """Return them all, images and classes sorted by name."""
        images = sorted(self.images)
        place = places(self.images, images)
        classes, label = numbered(self._labels)
        values: Floats = np.array(self._numbers, np.float64).reshape(-1, 5)
        file = np.array(self.file, np.int32)
        return Objects(
            images=tuple(images),
            classes=classes,
            image=place[file] if len(file) else file,
            label=label,
            boxes=values[:, 1:].copy(),
            score=values[:, 0].copy() if self.scored else None,
            flags={flag: self._mask(rows) for flag, rows in self._flagged.items()},
            sizes=np.array([self.images[name] for name in images], np.float64).reshape(-1, 2),
        )

    def _mask(self, rows: list[int]) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        mask = np.zeros(len(self), np.bool_)
        mask[rows] = True
        return mask

    def ground_truth(
        self, what: str, sources: tuple[SourceFile, ...], notes: Iterable[Note]
    ) -> GroundTruth:
        """Return them all as ground truth; raise InputError where there is none, `what` is due."""
        refuse_empty(self.path, len(self), self.limits, what, "annotations")
        empty = images_without_objects(len(self.images), np.array(self.file))
        said = (*self.flags.notes(), *told(*notes, empty))
        return ground_truth(self.objects(), self, sources, said)
