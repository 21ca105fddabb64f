"""Boxes as they are met, one by one, in formats that are read by Python."""

from array import array
from collections.abc import Iterable, Sequence

import numpy as np

from detap.formats.named.objects import Objects, numbered
from detap.formats.named.problems import Problems
from detap.formats.text.lines import box_fault, number_fault
from detap.io.limits import MORE_RECORDS, Limits
from detap.io.problems import FaultError
from detap.spelling import quoted
from detap.tables.columns import places
from detap.tables.detection import Floats


def number_of(name: str, text: str) -> float:
    """Return a finite decimal number.

    Raises
    ------
    FaultError
        Where `text` is none.
    """
    fault = number_fault(text)
    if fault:
        raise FaultError(f"{name} {quoted(text)} {fault}", "give a decimal number")
    return float(text)


class Gathered:
    """Boxes, one after the other, by the names of their images and classes.

    Parameters
    ----------
    limits : Limits
        `records` is obeyed.

    Attributes
    ----------
    images : dict of str to (float, float)
        Width and height of each image, NaN where unknown, in the order met.
    place : array of int
        Where each box stands: a line, say.
    file : array of int
        The number of its image in the order met.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.images: dict[str, tuple[float, float]] = {}
        self.file = array("i")
        self.place = array("i")
        self._labels: list[str] = []
        self._numbers = array("d")
        self._flags: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self.place)

    def add(
        self, place: int, label: str, box: Sequence[float], score: float, flags: Iterable[str]
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
            self._flags.setdefault(flag, []).append(len(self))
        self.file.append(len(self.images) - 1)
        self.place.append(place)
        self._labels.append(label)
        self._numbers.extend((score, *box))

    def too_many(self, path: str, problems: Problems) -> bool:
        """Return whether there are more boxes than the limit, having said so."""
        if len(self) <= self.limits.records:
            return False
        problems.add(
            path,
            "",
            f"holds more than {self.limits.records} records",
            MORE_RECORDS,
        )
        return True

    def objects(self, scored: bool) -> Objects:
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
            score=values[:, 0].copy() if scored else None,
            flags={flag: self._mask(rows) for flag, rows in self._flags.items()},
            sizes=np.array([self.images[name] for name in images], np.float64).reshape(-1, 2),
        )

    def _mask(self, rows: list[int]) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        mask = np.zeros(len(self), np.bool_)
        mask[rows] = True
        return mask
