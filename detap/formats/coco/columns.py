"""Validated columns of COCO files, from which `assembly.py` makes tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.errors import Note
from detap.formats.coco.records import identifier_of
from detap.io.problems import FaultError
from detap.protocols.summary import FREQUENCIES
from detap.tables.detection import Flags, Floats, GroundTruth, Integers, Name
from detap.tables.masks import Masks
from detap.tables.notes import extra_images_note

SHAPE_OF_TRUTH = "expected an object with images, annotations, categories"
SHAPE_OF_RESULTS = "expected a results list with image_id, category_id, bbox, score"


@dataclass(frozen=True, slots=True, eq=False)
class Segmentations:
    """The segmentations of N rows; M rows have one."""

    has: Flags
    masks: Masks  # sizes are 0 for polygons
    listed: int  # polygons and uncompressed RLE

    def select(self, kept: NDArray[np.bool_]) -> "Segmentations":
        """Select rows, if all have a segmentation."""
        return self if kept.all() else Segmentations(self.has[kept], self.masks[kept], self.listed)


class TruthColumns(NamedTuple):
    """An instances file: annotations in file order, images and categories by id."""

    table: GroundTruth  # box_area is NaN if the row has a mask and no box
    class_names: tuple[str | None, ...]
    counts: Mapping[str, int]  # of the notes, by code
    records: int  # annotations in the file, including repeated ones
    origin: NDArray[np.int64] | None = None  # record index of each row, if not the row itself
    repeated: Mapping[str, Sequence[Name]] = MappingProxyType({})
    segmentations: Segmentations | None = None  # every row has one


@dataclass(frozen=True, slots=True, eq=False)
class DetectionColumns:
    """A results file: N detections in file order, indexed as the ground truth with K classes."""

    image: Integers
    label: Integers  # from K on, index into `unknown`
    corners: Floats  # x, y, x + w, y + h
    box_area: Floats  # w * h; NaN if the row has a mask and no box
    score: Floats
    unknown: dict[Name, int]  # detections of each other category, in order of occurrence
    file_names: Mapping[Name, str]  # by image id, from the results' own list
    categories: Mapping[Name, str] = field(default_factory=dict)  # the same of the names
    segmentations: Segmentations | None = None  # if masks are read, or a row has no box
    keypoints: Floats | None = None  # (N, P, 2)
    polygons: Floats | None = None  # (N, 8), if a row has one instead of a box
    by_file: bool = False  # True if images were matched by file name, not by id
    origin: NDArray[np.intp] | None = None  # record of each row, if some were left out
    notes: tuple[Note, ...] = ()  # of other ids and scores, and of rows left out

    @property
    def names_unknown_labels(self) -> bool:
        """True if detections have no scores, and their unknown categories have names."""
        has_names = self.unknown.keys() <= self.categories.keys()
        return bool(self.unknown) and has_names and bool(np.isnan(self.score[0]))

    def name_of(self, category: Name) -> str:
        """Return the name of an unknown category: of the results' own list, or its id."""
        return self.categories.get(category, str(category))

    def without_extra_images(self, known: int, images: int) -> "DetectionColumns":
        """Leave out the rows whose image is -1, of so many images; K is `known`."""
        kept = self.image >= 0
        note = extra_images_note(int(np.count_nonzero(~kept)), images)
        return self.select(kept, known, note)

    def select(self, kept: Flags, known: int, note: Note) -> "DetectionColumns":
        """Leave out the other rows, if any, with a note; K is `known`."""
        if kept.all():
            return self
        counts = np.bincount(self.label[kept], minlength=known + len(self.unknown))[known:]
        label, new = self.label.copy(), np.cumsum(counts > 0, dtype=np.int32) + np.int32(known - 1)
        label[label >= known] = new[label[label >= known] - known]
        changes: dict[str, Any] = {"label": label[kept]}
        for name in ("image", "corners", "box_area", "score", "keypoints", "polygons"):
            if getattr(self, name) is not None:
                changes[name] = getattr(self, name)[kept]
        if (shapes := self.segmentations) is not None:
            masks = shapes.masks[kept[shapes.has]]
            changes["segmentations"] = Segmentations(shapes.has[kept], masks, shapes.listed)
        unknown = dict(zip(self.unknown, counts.tolist(), strict=True))
        return replace(
            self,
            **changes,
            unknown={name: count for name, count in unknown.items() if count},
            origin=np.flatnonzero(kept) if self.origin is None else self.origin[kept],
            notes=(*self.notes, note),
        )

    def located(self, location: Callable[[int], str]) -> Callable[[int], str]:
        """Return the location of a row from that of a record."""
        origin = self.origin
        return location if origin is None else lambda row: location(int(origin[row]))


def keypoints_of(truth: GroundTruth) -> int | None:
    """Return the number of keypoints per ground truth; None if unknown."""
    if truth.keypoints is None or not len(truth):
        return None
    return int(truth.keypoints.shape[1])


def pairs_of_lists(
    class_ids: Sequence[Name], name: str, lists: Sequence[list[Name] | None]
) -> tuple[Integers, dict[str, int]]:
    """Return the pairs of image and known category of a list of each image, and note counts."""
    label_by_id = {identifier: label for label, identifier in enumerate(class_ids)}
    pairs = [
        (image, label_by_id.get(identifier, -1))
        for image, categories in enumerate(lists)
        for identifier in categories or ()
    ]
    array = np.array(pairs, np.int32).reshape(-1, 2)
    known = array[array[:, 1] >= 0]
    width = max(len(class_ids), 1)
    keys = np.unique(known[:, 0] * np.int64(width) + known[:, 1])
    distinct = np.stack(np.divmod(keys, width), axis=1).astype(np.int32)
    counts = {
        f"{name}-of-unknown-categories": len(array) - len(known),
        f"images-without-{name}": sum(categories is None for categories in lists),
    }
    return distinct, counts


def groups_of(categories: Iterable[Any]) -> dict[Name, str]:
    """Return the LVIS frequency group of each category."""
    letters = listed_names(categories, "frequency").items()
    return {name: FREQUENCIES[letter] for name, letter in letters if letter in FREQUENCIES}


def listed_names(records: Iterable[Any], key: str) -> dict[Name, str]:
    """Return the text under a key by id, from a list of images or categories."""
    names: dict[Name, str] = {}
    for record in records:
        if isinstance(record, dict) and isinstance(record.get(key), str):
            with suppress(FaultError):
                names[identifier_of(record, "id")] = record[key]
    return names
