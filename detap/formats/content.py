"""Content to write, its names in files, and notes on lost data."""

import re
from collections.abc import Mapping, Sequence
from math import isnan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.errors import InputError, Note, Problem
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.stem_matching import by_stem
from detap.tables.detection import Detections, Flags, Floats, GroundTruth, Name, encode_boxes

_SUFFIX = ".jpg"
"""Suffix of images without a file name; readers use the stem."""

_UNUSABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


class Content(NamedTuple):
    """Tables with the same indices to write, one of which may be missing, and file names."""

    ground_truth: GroundTruth | None
    detections: Detections | None
    file_names: Mapping[Name, str]

    @property
    def table(self) -> GroundTruth | Detections:
        """The table that defines images and classes."""
        table = self.detections if self.ground_truth is None else self.ground_truth
        assert table is not None
        return table

    @property
    def images(self) -> tuple[Name, ...]:
        """All images."""
        return self.table.images

    @property
    def classes(self) -> tuple[str, ...]:
        """All classes; those of detections only come last."""
        return (self.table if self.detections is None else self.detections).classes

    @property
    def class_ids(self) -> tuple[Name, ...]:
        """Ids of the classes."""
        return (self.table if self.detections is None else self.detections).class_ids

    def file_name(self, image: Name) -> str:
        """Return the name of an image's file."""
        return self.file_names.get(image) or f"{image}{_SUFFIX}"

    def stems(self) -> tuple[str, ...]:
        """Return the file stem of each image; raise InputError if two have the same file name."""
        if self.ground_truth is None or not self.file_names:
            return tuple(map(str, self.images))
        return tuple(map(str, by_stem(self.ground_truth, self.file_names).images))

    def refuse(self, message: str, hint: str) -> InputError:
        """Return the error for content that the target cannot represent."""
        files = self.table.files
        return InputError(Problem(files[0].path if files else "the input", "", message, hint))


def exact_number(value: float) -> int | float:
    """Return an integer if its text reads as the same float64, else the number."""
    is_integer = (
        value.is_integer() and abs(value) < 2.0**53 and not (value == 0 and str(value)[0] == "-")
    )
    return int(value) if is_integer else value


def scores_of(table: GroundTruth | Detections) -> list[float] | None:
    """Return the scores to write; None for detections without scores, and for ground truth."""
    if isinstance(table, GroundTruth) or not table.has_scores:
        return None
    scores: list[float] = table.score.tolist()
    return scores


def number_text(value: float) -> str:
    """Return the text of a number that reads as the same float64."""
    return repr(exact_number(value))


def sizes(content: Content) -> list[tuple[float, float] | None]:
    """Return width and height of each image; None if unknown."""
    known = None if content.ground_truth is None else content.ground_truth.image_sizes
    if known is None:
        return [None] * len(content.images)
    return [None if isnan(w) or isnan(h) else (w, h) for w, h in known.tolist()]


def known_sizes(content: Content) -> Floats:
    """Return the image sizes (I, 2), known for images with boxes."""
    known = np.array([size or (np.nan, np.nan) for size in sizes(content)]).reshape(-1, 2)
    for table in (content.ground_truth, content.detections):
        with_boxes = table is not None and table.images_with_rows
        missing = np.flatnonzero(np.isnan(known).any(axis=1) & with_boxes)
        if len(missing):
            more = f" and {len(missing) - 1} others" if len(missing) > 1 else ""
            message = f"size of image {content.images[missing[0]]!r}{more} is unknown"
            message += ", required for normalized boxes"
            raise content.refuse(message, "use ground truth with image sizes")
    return known


def lost(message: str, rows: Flags | int) -> tuple[Note, ...]:
    """Return the note of rows, or a number of them, that the target cannot represent."""
    count = rows if isinstance(rows, int) else int(np.count_nonzero(rows))
    return nonzero_notes(Note("data-lost", message, count))


def lost_flags(ground_truth: GroundTruth, names: Sequence[str], target: str) -> tuple[Note, ...]:
    """Return a note for each flag that the target cannot represent."""
    return tuple(
        note
        for name in names
        for note in lost(f"flag {name} not supported by {target}", getattr(ground_truth, name))
    )


def lost_areas(ground_truth: GroundTruth, target: str) -> tuple[Note, ...]:
    """Return the note of objects whose area is not that of the box."""
    message = f"object areas that differ from the box area not supported by {target}"
    return lost(message, ground_truth.area != ground_truth.box_area)


def lost_unused(ground_truth: GroundTruth, target: str) -> tuple[Note, ...]:
    """Return the note of classes without objects, if the target names those of objects only."""
    used = np.isin(np.arange(len(ground_truth.classes)), ground_truth.label)
    return lost(f"classes without objects not supported by {target}", ~used)


def rounded_areas(table: GroundTruth | Detections, rows: str) -> tuple[Note, ...]:
    """Return the note of boxes whose area changes when computed from corners."""
    corners = table.corners
    computed = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
    count = int(np.count_nonzero(table.box_area != computed))
    message = f"{rows}: areas change in the last bits, computed from corners"
    return nonzero_notes(Note("values-rounded", message, count, severity="info"))


def rounded_corners(
    table: GroundTruth | Detections, read: Floats, written: str
) -> tuple[Note, ...]:
    """Return the note of boxes with other corners when `read` again as x, y, width, height."""
    count = int(np.count_nonzero((encode_boxes(read, "xywh")[0] != table.corners).any(axis=1)))
    rows = "detections" if isinstance(table, Detections) else "objects"
    message = f"{rows}: corners change in the last bits as {written}"
    return nonzero_notes(Note("values-rounded", message, count, severity="info"))


def check_words(content: Content, names: Sequence[str], kind: str) -> None:
    """Raise InputError for names with outer white space or invalid characters."""
    for name in names:
        if not name or name != name.strip() or _UNUSABLE.search(name):
            raise content.refuse(f"{kind} {name!r} cannot be written to a text file", "rename it")


def check_file_names(content: Content, names: Sequence[str], kind: str) -> None:
    """Raise InputError for names that are not valid file names."""
    check_words(content, names, kind)
    for name in names:
        if "/" in name or "\\" in name or name[0] == "." or len(name.encode()) > 200:
            raise content.refuse(
                f"{kind} {name!r} is not a valid file name", "rename it, or convert to coco"
            )


def rows_of_images(table: GroundTruth | Detections) -> list[NDArray[np.intp]]:
    """Return the rows of each image, in their order."""
    return rows_of(table.image, len(table.images))


def rows_of(numbers: NDArray[np.int32], count: int) -> list[NDArray[np.intp]]:
    """Return the rows of each of `count` indices, in their order."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.searchsorted(numbers[order], np.arange(1, count))) if count else []
