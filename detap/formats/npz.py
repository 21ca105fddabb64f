"""Reader of detections saved as ``.npz`` by :meth:`detap.Detections.save`."""

from dataclasses import replace
from typing import NoReturn

from detap.errors import InputError, Problem
from detap.formats.base import Format
from detap.formats.options import GEOMETRIES
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import SourceFile, shown
from detap.io.stream import refuse
from detap.tables.detection import Detections, GroundTruth
from detap.tables.notes import LEAVE_OUT


class Npz(Format):
    """Detections as columns."""

    same_names = True
    geometries = GEOMETRIES
    coordinates = "x1, y1, x2, y2"

    def read_truth_file(self, path: str, **_: object) -> NoReturn:
        """Refuse ground truth, of which such files have none."""
        refuse(path, "holds detections only", "give the ground truth as it was annotated")

    def read_detections_file(
        self,
        path: str,
        truth: GroundTruth,
        *,
        limits: Limits = DEFAULT_LIMITS,
        masks: bool = False,
        keypoints: bool = False,
        as_is: bool = False,
    ) -> Detections:
        """Return a saved table with the indices of the ground truth."""
        del as_is  # formats and coordinates were checked before the table was saved
        table = Detections.load(path, limits=limits)
        for name, is_read in (("masks", masks), ("keypoints", keypoints)):
            if is_read and len(table) and getattr(table, name) is None:
                refuse(path, f"has no {name}", f"save a table that was read with {name}=True")
        try:
            extra_images = "drop" if limits.drop_extra_images else "error"
            table = table.reindex_like(truth, extra_images=extra_images)
        except InputError as error:
            hint = f"use the ground truth that the detections were read for, or {LEAVE_OUT}"
            problems = [Problem(shown(path), "", one.message, hint) for one in error.problems]
            raise InputError(problems) from None
        return replace(table, files=(SourceFile(path, len(table)),))

    def placeholder(self, path: str, options: object, limits: Limits) -> GroundTruth:
        """Return a ground truth without boxes, of the images and classes of a saved table."""
        del options
        table = Detections.load(path, limits=limits)
        empty = GroundTruth.from_arrays(image=[], label=[], boxes=[])
        return replace(
            empty,
            images=table.images,
            classes=table.classes,
            class_ids=table.class_ids,
            format="npz",
        )
