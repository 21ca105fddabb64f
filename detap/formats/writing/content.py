"""What is to be written, and the names that it gets in files."""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.errors import InputError, Note, Problem
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.stem_matching import by_stem
from detap.tables.detection import Detections, Flags, GroundTruth, Name

_SUFFIX = ".jpg"
"""Of images whose files nothing names: readers of all formats go by the stem."""

_UNUSABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


class Content(NamedTuple):
    """Tables to be written, one of which may be missing.

    Attributes
    ----------
    ground_truth : GroundTruth or None
    detections : Detections or None
        Numbered as `ground_truth`, where that is there.
    file_names : mapping of int or str to str
        What the file of each image is called, where that is known.
    """

    ground_truth: GroundTruth | None
    detections: Detections | None
    file_names: Mapping[Name, str]

    @property
    def table(self) -> GroundTruth | Detections:
        """What says how images and classes are called."""
        found = self.detections if self.ground_truth is None else self.ground_truth
        assert found is not None
        return found

    @property
    def path(self) -> str:
        """What messages call the input."""
        files = self.table.files
        return files[0].path if files else "the input"

    @property
    def images(self) -> tuple[Name, ...]:
        """All images."""
        return self.table.images

    @property
    def classes(self) -> tuple[str, ...]:
        """All classes; those of detections alone are behind the ground truth's."""
        return (self.table if self.detections is None else self.detections).classes

    @property
    def class_ids(self) -> tuple[Name, ...]:
        """Their identifiers."""
        return (self.table if self.detections is None else self.detections).class_ids

    def file_name(self, image: Name) -> str:
        """Return the name of an image's file."""
        return self.file_names.get(image) or f"{image}{_SUFFIX}"

    def stems(self) -> tuple[str, ...]:
        """Return what each image is called in formats that go by the names of files.

        Raises
        ------
        InputError
            Where two images have a file of the same name.
        """
        if self.ground_truth is None or not self.file_names:
            return tuple(map(str, self.images))
        return tuple(map(str, by_stem(self.ground_truth, self.file_names).images))

    def refuse(self, message: str, hint: str) -> InputError:
        """Return the error of what the target cannot hold at all."""
        return InputError(Problem(self.path, "", message, hint))


def spelt(value: float) -> str:
    """Return a number that reads as the same float64: without a point where it is whole."""
    whole = (
        value.is_integer() and abs(value) < 2.0**53 and not (value == 0 and str(value)[0] == "-")
    )
    return str(int(value)) if whole else repr(value)


def sizes(content: Content) -> list[tuple[float, float] | None]:
    """Return width and height of each image; None where they are unknown."""
    known = None if content.ground_truth is None else content.ground_truth.image_sizes
    if known is None:
        return [None] * len(content.images)
    return [None if isnan(w) or isnan(h) else (w, h) for w, h in known.tolist()]


def lost(what: str, flags: Flags) -> tuple[Note, ...]:
    """Return the note of rows that the target has no place for a property of."""
    return nonzero_notes(Note("data-lost", what, int(np.count_nonzero(flags))))


def lost_flags(ground_truth: GroundTruth, names: Sequence[str], target: str) -> tuple[Note, ...]:
    """Return a note for each flag that objects have and the target cannot hold."""
    return tuple(
        note
        for name in names
        for note in lost(
            f"objects are {name}, which {target} cannot say", getattr(ground_truth, name)
        )
    )


def lost_columns(ground_truth: GroundTruth | None, target: str) -> tuple[Note, ...]:
    """Return a note of the further columns, which no target has a place for."""
    if ground_truth is None or not ground_truth.extra:
        return ()
    what = f"objects have columns that {target} cannot hold: {', '.join(ground_truth.extra)}"
    return lost(what, np.ones(len(ground_truth), np.bool_))


def lost_lists(ground_truth: GroundTruth, target: str) -> tuple[Note, ...]:
    """Return a note of what images list of classes, and one of the groups of classes."""
    lists = sum(len(pairs) for pairs in ground_truth.listed.values())
    what = f"images list classes as in LVIS or Open Images, which {target} cannot hold"
    groups = f"classes are in groups by frequency, which {target} cannot hold"
    return (
        *lost(what, np.ones(lists, np.bool_)),
        *lost(groups, np.ones(len(ground_truth.groups), np.bool_)),
    )


def lost_polygons(
    tables: Iterable[GroundTruth | Detections | None], target: str
) -> tuple[Note, ...]:
    """Return the note of quadrilaterals, of which the boxes around them are written."""
    count = sum(len(t) for t in tables if t is not None and t.polygons is not None)
    what = f"quadrilaterals are written as the boxes around them: {target} is written as boxes"
    return lost(what, np.ones(count, np.bool_))


def lost_areas(ground_truth: GroundTruth, target: str) -> tuple[Note, ...]:
    """Return the note of objects with an area of their own."""
    what = f"objects have an area other than their box's, which {target} cannot hold"
    return lost(what, ground_truth.area != ground_truth.box_area)


def last_bits(table: GroundTruth | Detections, what: str) -> tuple[Note, ...]:
    """Return the note of boxes whose area corners alone do not give, in its last bits."""
    corners = table.corners
    again = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
    count = int(np.count_nonzero(table.box_area != again))
    message = f"{what} get another area, in the last bits: corners are held, but not the sides"
    return nonzero_notes(Note("values-rounded", message, count, severity="info"))


def check_words(content: Content, names: Sequence[str], what: str) -> None:
    """Refuse names that no line can hold: blanks at an end, control characters, no Unicode.

    Raises
    ------
    InputError
    """
    for name in names:
        if not name or name != name.strip() or _UNUSABLE.search(name):
            raise content.refuse(f"the {what} {name!r} cannot stand in a text file", "rename it")


def check_file_names(content: Content, names: Sequence[str], what: str) -> None:
    """Refuse names that no file of a folder can have.

    Raises
    ------
    InputError
    """
    check_words(content, names, what)
    for name in names:
        if "/" in name or "\\" in name or name[0] == "." or len(name.encode()) > 200:
            raise content.refuse(
                f"the {what} {name!r} cannot be the name of a file", "rename it, or write coco"
            )


def rows_of_images(table: GroundTruth | Detections) -> list[NDArray[np.intp]]:
    """Return the rows of each image, in their order."""
    return rows_of(table.image, len(table.images))


def rows_of(numbers: NDArray[np.int32], count: int) -> list[NDArray[np.intp]]:
    """Return the rows of each of `count` numbers, in their order."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.searchsorted(numbers[order], np.arange(1, count))) if count else []
