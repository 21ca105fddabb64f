"""Boxes, and the base class of other shapes."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core.arrays import Boxes, Pairs
from detap.core.overlap import pixel_areas
from detap.core.params import inside_ranges
from detap.errors import InputError, Note, Problem, UsageError
from detap.protocols import Protocol
from detap.protocols.fields import ALL_AREAS
from detap.tables.detection import Detections, Flags, Floats, GroundTruth, Integers
from detap.tables.notes import ORIENTED_BOXES

BOX_FRACTION = 0.53
"""Area of a person's mask relative to the box, as xtcocotools and Ultralytics assume."""


class Shapes:
    """Shapes of G ground truths and N detections; this class compares boxes."""

    name = ""  # of a shape whose area may differ from its box
    own_area = ""  # that area, as `detection_area` calls it

    def __init__(
        self,
        ground_truth: GroundTruth,
        detections: Detections,
        protocol: Protocol,
        threads: int | None,
    ) -> None:
        self.ground_truth, self.detections = ground_truth, detections
        self.protocol, self.threads = protocol, threads

    @cached_property
    def areas(self) -> tuple[Floats, Floats]:
        """The areas of the N detections and G ground truths, in square pixels."""
        tables = self.detections, self.ground_truth
        detections, ground_truths = (
            pixel_areas(table.corners) if self.protocol.inclusive_pixels else table.box_area
            for table in tables
        )
        return detections, ground_truths

    @property
    def range_areas(self) -> Floats:
        """The areas (N,) that decide the area ranges of unmatched detections."""
        if self.protocol.detection_area == self.own_area:
            return self.own_areas
        area = self.detections.area
        return self.areas[0] if area is None or self.protocol.inclusive_pixels else area

    @cached_property
    def own_areas(self) -> Floats:
        """The areas (N,) of the detections' shapes, whatever their boxes."""
        return self.areas[0]

    def truth_areas(self) -> Floats:
        """Return the areas (G,) of ground truths for area ranges and OKS, in square pixels."""
        if self.protocol.area_source == "annotation":
            return self.ground_truth.area
        areas = self.areas[1]
        return areas if self.protocol.area_source == "box" else BOX_FRACTION * areas

    def in_range_unit(self, areas: Floats, image: Integers) -> Floats:
        """Return areas in the unit of the area ranges: unchanged, or as fractions of the image."""
        if not self.protocol.relative_areas:
            return areas
        # Areas beyond pycocotools' range of all areas remain outside it.
        return np.where(areas > ALL_AREAS.high, np.inf, areas / self._image_areas[image])

    @cached_property
    def _image_areas(self) -> Floats:
        """Width times height of each image, (I,)."""
        images = np.arange(len(self.ground_truth.images))
        hint = "give the sizes, or use --area-ranges coco"
        sizes = sizes_of(self.ground_truth, images, "area ranges in percent", hint)
        areas: Floats = sizes[:, 0] * sizes[:, 1]
        return areas

    def pairs(self, boxes: tuple[Boxes, Boxes], crowd: Flags, lowest: float) -> Pairs | None:
        """Return the IoUs of pairs of one image and class; None for boxes, left to the core."""
        del boxes, crowd, lowest
        return None

    def notes(self) -> Iterator[Note]:
        """Yield notes on the shapes."""
        protocol, ranges = self.protocol, self.protocol.area_bounds
        if self.ground_truth.keypoints is not None and protocol.iou_type == "bbox":
            message = "keypoints are ignored, boxes are evaluated; use --iou-type keypoints for OKS"
            count = len(self.ground_truth)
            yield Note("keypoints-left-out", message, count, severity="info")
        of_box = protocol.detection_area == "box" and not protocol.keypoint_keys
        if self.own_area and of_box and len(ranges) > 1:
            of_boxes, of_shapes = (
                inside_ranges(self.in_range_unit(areas, self.detections.image), ranges)
                for areas in (self.range_areas, self.own_areas)
            )
            count = int(np.count_nonzero((of_boxes != of_shapes).any(axis=0)))
            message = (
                f"detections have a bbox in another area range than their {self.name}; the bbox "
                "decides the range of unmatched detections, as in pycocotools; use "
                f"--detection-area {self.own_area} for the area of the {self.name}"
            )
            yield Note("detection-area-of-box", message, count, severity="info")


def sizes_of(truth: GroundTruth, image: NDArray[Any], subject: str, hint: str) -> Floats:
    """Return the width and height of the image of each row, (n, 2); all must be known."""
    unknown = np.full((len(truth.images), 2), np.nan)
    sizes: Floats = (unknown if truth.image_sizes is None else truth.image_sizes)[image]
    without = np.unique(image[~((sizes > 0) & np.isfinite(sizes)).all(axis=1)])
    if len(without):
        lack = f"{len(without)} of {len(np.unique(image))} images lack"
        message = f"{subject} need the size of each image, which {lack}"
        raise InputError(Problem(truth.path, f"image {truth.images[without[0]]!r}", message, hint))
    return sizes


def refuse_polygons(
    protocol: Protocol, ground_truth: GroundTruth, detections: Detections | None = None
) -> None:
    """Raise UsageError if a table has quadrilaterals, and the protocol compares boxes.

    The bounding boxes of oriented boxes overlap more than they do.
    """
    given = [ground_truth] if detections is None else [ground_truth, detections]
    tables = [table for table in given if table.polygons is not None]
    if protocol.iou_type != "bbox" or not tables:
        return
    choices = []
    may_be_polygons = any(note.code == ORIENTED_BOXES for note in ground_truth.notes)
    both = detections is not None and detections.polygons is not None
    if ground_truth.format != "coco" and (both or not may_be_polygons):
        by_score = protocol.matching == "by-score"
        choices.append(f"{'--iou-type polygon' if by_score else '--protocol dota'} for their IoU")
    from_files = any(table.files for table in tables)
    bounding = "--shapes bbox" if from_files else "boxes= instead of polygons="
    choices.append(f"{bounding} for their bounding boxes")
    titles = " and ".join(table.title for table in tables)
    raise UsageError(
        f"protocol {protocol.name} compares boxes, but there are oriented boxes in the {titles}; "
        f"use {', or '.join(choices)}"
    )


def missing_shapes(table: GroundTruth | Detections, name: str) -> UsageError:
    """Return the error of a table without the masks or keypoints that a protocol compares."""
    is_truth = isinstance(table, GroundTruth)
    read = "read_ground_truth" if is_truth else "read_detections"
    build = f"{type(table).__name__}.from_arrays"
    return UsageError(
        f"no {name} in the {table.title}; pass {name}=True to {read} or {name}= to {build}"
    )
