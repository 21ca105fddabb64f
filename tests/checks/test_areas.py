"""Warnings on areas that cannot be those of the objects, and silence on areas that can."""

from typing import Any

import numpy as np
import pytest

import detap
from detap.checks.statistics import examine
from detap.checks.tables import area_notes
from detap.evaluation.scoring import score_tables

SIDES = np.random.default_rng(0).uniform(5, 200, (40, 2))
BOX = SIDES.prod(axis=1)
IMAGE = (640, 480)


def truth(area: Any, *, rows: int = 40, **more: Any) -> detap.GroundTruth:
    corners = np.hstack([np.zeros((rows, 2)), SIDES[:rows]])
    return detap.GroundTruth.from_arrays(
        image=["a"] * rows,
        label=["cat"] * rows,
        boxes=corners,
        area=np.broadcast_to(area, rows),
        images=["a"],
        image_sizes=[IMAGE],
        **more,
    )


def scattered(low: float, high: float) -> Any:
    """Return areas of masks: random shares of their boxes."""
    return BOX * np.random.default_rng(1).uniform(low, high, 40)


WRONG = {
    "zero": (0.0, "areas of 100% of ground truths are 0 (a placeholder?)"),
    "one": (1.0, "are 1 (a placeholder?)"),
    "fractions": (BOX / (640 * 480), "are at most 1"),
    "images": (640.0 * 480.0, "exceed their boxes (those of the images?)"),
    "four times": (4 * BOX, "exceed their boxes: "),
    "quarter": (BOX / 4, "are 0.25 of their boxes (of another image size?)"),
    "two thirds zero": (np.where(np.arange(40) < 27, 0.0, BOX), "areas of 68% of ground truths"),
    "one value": (27.0, "are all 27"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_areas_that_cannot_be_the_objects(kind: str) -> None:
    area, cause = WRONG[kind]
    (note,) = area_notes(truth(area))
    assert note.code == "areas-look-wrong"
    assert cause in note.message
    assert note.message.endswith("--area-source box (area_source='box')")
    assert note in examine(truth(area), None).notes


RIGHT = {
    "boxes": BOX,
    "masks": scattered(0.3, 0.9),
    "thin masks": scattered(0.02, 0.5),
    "ellipses": BOX * np.pi / 4,
    "triangles": BOX / 2,
    "people": 0.53 * BOX,
    "inclusive pixels": (SIDES + 1).prod(axis=1),
    "a third zero": np.where(np.arange(40) < 13, 0.0, BOX),
}


@pytest.mark.parametrize("kind", RIGHT)
def test_areas_that_can_be_the_objects(kind: str) -> None:
    assert not [*area_notes(truth(RIGHT[kind]))]


def test_crowds_and_few_objects_are_left_out() -> None:
    assert not [*area_notes(truth(np.zeros(40), crowd=[True] * 40))]
    assert not [*area_notes(truth(BOX[:4] / 4, rows=4))]
    assert not [*area_notes(truth(np.zeros(0), rows=0))]


def test_a_protocol_without_areas_is_not_warned() -> None:
    detections = detap.Detections.from_arrays(
        image=["a"], label=["cat"], boxes=[[0, 0, 9, 9]], score=[1.0]
    )
    for protocol, count in (("coco", 1), ("voc2012", 0)):
        notes = score_tables(truth(0.0), detections, protocol).notes
        assert sum(note.code == "areas-look-wrong" for note in notes) == count
    by_box = detap.protocol("coco").with_changes(area_source="box")
    assert not [n for n in score_tables(truth(0.0), detections, by_box).notes if "area" in n.code]
