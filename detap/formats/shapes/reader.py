"""Base reader for formats that are read box by box in Python."""

import math
from array import array
from collections.abc import Iterable, Sequence

import numpy as np

from detap.errors import Note
from detap.formats.by_name.notes import images_without_objects, nonzero_notes
from detap.formats.by_name.objects import Objects, ground_truth, name_index
from detap.formats.by_name.problems import Problems, RowReader, refuse_empty
from detap.formats.reading.attributes import Attributes
from detap.formats.shapes.flags import FlagNames
from detap.formats.text.lines import NUMBER, box_fault, number_fault
from detap.io.limits import Limits
from detap.io.paths import shown
from detap.io.problems import SHAPES, FaultError, check_choice
from detap.tables.columns import indices_in
from detap.tables.detection import Floats, GroundTruth, SourceFile, encode_boxes
from detap.text_input import quote


def number_of(name: str, text: str) -> float:
    """Return the number that a text contains.

    Raises
    ------
    FaultError
        If the text is not a finite decimal number.
    """
    if NUMBER.fullmatch(text) and math.isfinite(value := float(text)):
        return value
    raise FaultError(f"{name} {quote(text)} {number_fault(text)}", "use a decimal number")


class ShapeReader(RowReader):
    """Reader of boxes that name their images and classes.

    Parameters
    ----------
    path : str
        The input.
    limits : Limits
        Limits on the input size.
    shapes : {"reject", "bbox"}
        Reject shapes other than boxes and rotated boxes, or read the bounding boxes of all.
    flags : str, optional
        Attributes that are flags, as in :class:`FlagNames`.
    scored : bool
        Require scores, for detections.
    as_is : bool
        Accept input that fails a plausibility check.
    attributes : tuple of str
        Attributes of the boxes to read.

    Attributes
    ----------
    object_attributes : Attributes
        Those of the boxes.
    given : str
        The path that the user gave.
    problems : Problems
        Problems of the files.
    images : dict of str to (float, float)
        Width and height of each image in input order, NaN if unknown.
    positions : array of int
        The position of each box in its file, e.g. a line number.
    file : array of int
        The index of its image in input order.
    box_format : {"xyxy", "xywh"}
        The format of the boxes given to :meth:`add`.
    classes : set of str
        Classes that the input lists, also those without boxes.
    """

    box_format = "xyxy"

    def __init__(
        self,
        path: str,
        limits: Limits,
        shapes: str = "reject",
        flags: str | None = None,
        *,
        scored: bool = False,
        as_is: bool = False,
        attributes: tuple[str, ...] = (),
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
        self.positions = array("i")
        self.classes: set[str] = set()
        self._labels: list[str] = []
        self._numbers = array("d")
        self._corners: dict[int, Sequence[Sequence[float]]] = {}
        self._flagged: dict[str, list[int]] = {}
        self.object_attributes = Attributes(attributes, texts=True)

    def __len__(self) -> int:
        return len(self.positions)

    def add(
        self,
        position: int,
        label: str,
        box: Sequence[float],
        score: float,
        flags: Iterable[str],
        *,
        corners: Sequence[Sequence[float]] | None = None,
    ) -> None:
        """Add a box of the last image.

        Parameters
        ----------
        position : int
            Its position in the file.
        label : str
        box : (4,) sequence of float
            In `box_format`; it encloses the corners.
        score : float
        flags : iterable of str
        corners : (4, 2) sequence of float, optional
            The corners of a rotated box, in order around; left out if bounding boxes are read.

        Raises
        ------
        FaultError
            If its area overflows, or the sides of its corners cross.
        """
        fault = box_fault(list(box), self.box_format)
        if fault:
            raise FaultError(fault, "correct the box")
        if corners is not None and self.shapes != "bbox":
            from detap.core.polygons import is_self_intersecting

            if is_self_intersecting(np.array(corners).reshape(1, 8)).any():
                raise FaultError("sides of its corners cross", "list the corners in order around")
            self._corners[len(self)] = corners
        for flag in flags:
            self._flagged.setdefault(flag, []).append(len(self))
        self.file.append(len(self.images) - 1)
        self.positions.append(position)
        self._labels.append(label)
        self._numbers.extend((score, *box))

    def too_many(self) -> bool:
        """Return True, and add a problem, if there are more boxes than the limit."""
        if len(self) <= self.limits.records:
            return False
        self.problems.add(self.path, "", *self.limits.exceeded)
        return True

    def objects(self) -> Objects:
        """Return all boxes, with images and classes sorted by name."""
        images = sorted(self.images)
        index = indices_in(self.images, images)
        classes, label = name_index(self._labels, sorted(self.classes.union(self._labels)))
        values: Floats = np.array(self._numbers, np.float64).reshape(-1, 5)
        file = np.array(self.file, np.int32)
        return Objects(
            images=tuple(images),
            classes=classes,
            image=index[file] if len(file) else file,
            label=label,
            boxes=values[:, 1:].copy(),
            box_format=self.box_format,
            polygons=self._polygons(values[:, 1:]),
            score=values[:, 0].copy() if self.scored else None,
            flags={flag: self._mask(rows) for flag, rows in self._flagged.items()},
            extra=self.object_attributes.columns(),
            sizes=np.array([self.images[name] for name in images], np.float64).reshape(-1, 2),
        )

    def _polygons(self, boxes: Floats) -> Floats | None:
        """Return the quadrilaterals (N, 8), boxes among them; None if all are boxes."""
        if not self._corners:
            return None
        from detap.core.polygons import box_polygons

        polygons = box_polygons(encode_boxes(boxes, self.box_format)[0])
        polygons[[*self._corners]] = np.reshape([*self._corners.values()], (-1, 8))
        return polygons

    def _mask(self, rows: list[int]) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        mask = np.zeros(len(self), np.bool_)
        mask[rows] = True
        return mask

    def ground_truth(
        self, missing: str, sources: tuple[SourceFile, ...], notes: Iterable[Note]
    ) -> GroundTruth:
        """Return all boxes as ground truth; raise InputError if there are none."""
        refuse_empty(self.path, len(self), self.limits, missing, "annotations")
        empty = images_without_objects(len(self.images), np.array(self.file))
        all_notes = (*self.flags.notes(), *nonzero_notes(*notes, empty))
        return ground_truth(self.objects(), self, sources, all_notes)
