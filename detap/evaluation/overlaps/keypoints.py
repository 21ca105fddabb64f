"""Keypoints, compared by OKS."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from detap.core.arrays import Boxes, Pairs
from detap.core.keypoints import GroundTruthKeypoints, extents, keypoint_pairs
from detap.errors import UsageError
from detap.evaluation.overlaps.boxes import BOX_FRACTION, Shapes, missing_shapes
from detap.protocols import Protocol
from detap.protocols.fields import default_sigmas
from detap.tables.detection import Detections, Flags, Floats, GroundTruth
from detap.tables.notes import KEYPOINT_AREAS


class KeypointShapes(Shapes):
    """Keypoints; ground truths without labeled keypoints use their boxes."""

    name, own_area = "keypoints", "extent"

    @cached_property
    def _sigmas(self) -> tuple[float, ...]:
        return sigmas_of(self.protocol, self.ground_truth)

    @cached_property
    def own_areas(self) -> Floats:
        """The areas (N,) of the boxes around the keypoints of each detection."""
        left, top, right, bottom = extents(self._keypoints(self.detections)).T
        area: Floats = (right - left) * (bottom - top)
        return area

    def truth_areas(self) -> Floats:
        """Return the areas of :meth:`Shapes.truth_areas`; those of labels are 0.53 of the box."""
        no_areas = any(note.code == KEYPOINT_AREAS for note in self.ground_truth.notes)
        if no_areas and self.protocol.area_source == "annotation":
            return BOX_FRACTION * self.ground_truth.box_area
        return super().truth_areas()

    def pairs(self, boxes: tuple[Boxes, Boxes], crowd: Flags, lowest: float) -> Pairs:
        """Return the OKS of pairs, see :meth:`Shapes.pairs`; crowds are treated like others."""
        del crowd
        truth, keypoints = self.ground_truth, self._keypoints(self.ground_truth)
        width_height = (
            truth.corners[:, 2:] - truth.corners[:, :2]
            if truth.width_height is None
            else truth.width_height
        )
        detections, ground_truths = boxes
        return keypoint_pairs(
            detections,
            ground_truths._replace(area=self.truth_areas()),
            dt_keypoints=self._keypoints(self.detections)[:, :, :2],
            gt_keypoints=GroundTruthKeypoints(
                keypoints, np.hstack([truth.corners[:, :2], width_height])
            ),
            sigmas=self._sigmas,
            min_similarity=lowest,
            threads=self.threads,
        )

    def _keypoints(self, table: GroundTruth | Detections) -> Floats:
        """Return the keypoints of a table, one per sigma in each row."""
        if not len(table):
            return np.zeros((0, len(self._sigmas), 3))
        if table.keypoints is None:
            raise missing_shapes(table, "keypoints")
        check_skeleton(table, self._sigmas)
        return table.keypoints


def sigmas_of(protocol: Protocol, ground_truth: GroundTruth) -> tuple[float, ...]:
    """Return the sigmas of a protocol, or those of the ground truth if it has none."""
    if protocol.sigmas or ground_truth.sigmas:
        return protocol.sigmas or ground_truth.sigmas
    keypoints = ground_truth.keypoints
    return () if keypoints is None else default_sigmas(keypoints.shape[1])


def check_skeleton(table: GroundTruth | Detections, sigmas: Sequence[float]) -> None:
    """Raise UsageError if keypoints and sigmas differ in number."""
    if table.keypoints is None or not len(table) or not sigmas:
        return
    expected, count = len(sigmas), table.keypoints.shape[1]
    if count != expected:
        crowdpose = ", or use --protocol crowdpose if they are CrowdPose's" if count == 14 else ""
        raise UsageError(
            f"the protocol has {expected} sigmas, but rows of the {table.title} have {count} "
            f"keypoints; pass {count} values with --sigmas{crowdpose}"
        )
