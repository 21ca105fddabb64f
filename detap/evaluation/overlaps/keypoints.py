"""Keypoints, compared by how near they lie."""

from collections.abc import Iterator, Sequence

import numpy as np

from detap.core.keypoints import Poses, extents, keypoint_pairs
from detap.core.matching import Boxes, Pairs
from detap.errors import Note, UsageError
from detap.evaluation.overlaps.boxes import Shapes
from detap.tables.detection import Detections, Flags, Floats, GroundTruth


class KeypointShapes(Shapes):
    """Keypoints; boxes decide no overlap, but where a ground truth has no labelled keypoint."""

    def _extents(self) -> Floats:
        """Return the areas (N,) of the boxes around the keypoints of each detection."""
        left, top, right, bottom = extents(self._keypoints(self.detections)).T
        area: Floats = (right - left) * (bottom - top)
        return area

    def deciding(self, own: Floats) -> Floats:
        """As :meth:`Shapes.deciding`: of a detection's own row, or its extent."""
        if self.protocol.detection_area == "extent":
            return self._extents()
        return super().deciding(own)

    def pairs(self, boxes: tuple[Boxes, Boxes], crowd: Flags, lowest: float) -> Pairs:
        """As :meth:`Shapes.pairs`; what absorbs overlaps no other way."""
        del crowd
        truth, poses = self.ground_truth, self._keypoints(self.ground_truth)
        sides = truth.corners[:, 2:] - truth.corners[:, :2] if truth.sides is None else truth.sides
        return keypoint_pairs(
            *boxes,
            claims=self._keypoints(self.detections)[:, :, :2],
            poses=Poses(poses, np.hstack([truth.corners[:, :2], sides])),
            sigmas=self.protocol.sigmas,
            lowest=lowest,
            threads=self.threads,
        )

    def _keypoints(self, table: GroundTruth | Detections) -> Floats:
        """Return the keypoints of a table, as many in each row as there are sigmas."""
        if not len(table):
            return np.zeros((0, len(self.protocol.sigmas), 3))
        if table.keypoints is None:
            raise UsageError(
                f"no keypoints of the {table._title} were read: read COCO files with "
                "keypoints=True, give keypoints= to from_arrays, or score boxes"
            )
        check_skeleton(table, self.protocol.sigmas)
        return table.keypoints

    def notes(self) -> Iterator[Note]:
        """Say where the area of a box, and not of its keypoints, decides the range."""
        if self.protocol.detection_area == "box":
            yield from self.of_boxes(self._extents(), "keypoints'", "extent")


def check_skeleton(table: GroundTruth | Detections, sigmas: Sequence[float]) -> None:
    """Refuse keypoints of another number than there are sigmas.

    Raises
    ------
    UsageError
    """
    if table.keypoints is None or not len(table):
        return
    due, count = len(sigmas), table.keypoints.shape[1]
    if count != due:
        raise UsageError(
            f"there are {due} sigmas, and {count} keypoints in each row of the {table._title}: "
            f"give --sigmas, {count} numbers in their order (crowdpose names its 14)"
        )
