"""Shared parts of readers whose files name images and classes: tables, notes, errors."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from detap.errors import InputError, Note, Problem
from detap.formats.by_name.notes import detection_notes, ground_truth_notes
from detap.formats.by_name.objects import Objects, detections, nothing_in_common
from detap.formats.by_name.problems import RowReader, negative_size_notes
from detap.formats.shapes.values import FlagNames
from detap.formats.stem_matching import by_stem, empty_ground_truth
from detap.io.limits import DEFAULT_LIMITS
from detap.tables.detection import GroundTruth

SIZES = np.array([[100.0, 100.0]])  # of the image a


class Rows(RowReader):
    path = "dt"
    limits = DEFAULT_LIMITS
    as_is = False

    def location(self, row: int) -> tuple[str, str]:
        return "dt", f"row {row}"


def ground_truth() -> GroundTruth:
    box = [[0, 0, 10, 10]]
    truth = GroundTruth.from_arrays(image=["a"], label=["cat"], boxes=box)
    return replace(truth, image_sizes=SIZES)


def objects(*, image: str = "a", label: str = "cat", boxes: Any = ((0, 0, 5, 5),)) -> Objects:
    """Return detections of one image and class."""
    none = np.zeros(len(boxes), np.int32)
    corners = np.array(boxes, np.float64).reshape(-1, 4)
    return Objects((image,), (label,), none, none, corners, score=np.full(len(boxes), 0.5))


def refused(objects: Objects) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as raised:
        detections(objects, ground_truth(), Rows(), ())
    return raised.value.problems


def test_notes_of_ground_truth() -> None:
    image = np.zeros(3, np.int32)
    corners = np.array([[0, 0, 10, 10], [0, 0, 10, 10], [0, 0, 101, 10]], np.float64)
    assert ground_truth_notes(image, image, corners, SIZES, "xyxy") == (
        Note("repeated-objects", "duplicate objects in their file; all count", 1),
        Note(
            "ground-truth-beyond-image",
            "ground truth boxes extend beyond the image (not clipped)",
            1,
        ),
    )


@pytest.mark.parametrize(
    ("box_format", "codes"),
    [
        ("xyxy", ["detections-beyond-image"]),
        ("xywh", ["detections-look-xyxy", "detections-beyond-image"]),
    ],
)
def test_only_boxes_with_a_size_may_be_corners(box_format: str, codes: list[str]) -> None:
    """A box 50, 50, 90, 90 is within an image of 100 x 100 if these are two corners."""
    corners = np.array([[50.0, 50.0, 140.0, 140.0]])
    image = np.zeros(1, np.int32)
    notes = detection_notes(ground_truth(), image, corners, np.ones(1), box_format)
    assert [note.code for note in notes] == codes


def test_detections_beyond_their_image() -> None:
    table = detections(objects(boxes=[[0, 0, 101, 10]]), ground_truth(), Rows(), ())
    assert [(note.code, note.count) for note in table.notes] == [("detections-beyond-image", 1)]


def test_no_detections() -> None:
    table = detections(objects(boxes=()), ground_truth(), Rows(), ())
    assert len(table) == 0
    assert table.notes == (Note("no-detections", "no detections: every AP is 0", 1),)


def test_detections_of_unknown_images() -> None:
    lead, problem = refused(objects(image="b"))
    assert lead == nothing_in_common("dt", ["b"], ground_truth())
    assert problem[:2] == ("dt", "row 0")
    assert problem.hint == lead.hint == "use results for the same images"


@pytest.mark.parametrize(
    ("label", "hint"),
    [
        ("7", "pass --dt-class-names FILE; for YOLO text files use --dt-format yolo"),
        ("cow", "rename the classes by --class-map FILE, or use results for the same classes"),
    ],
)
def test_detections_of_unknown_classes(label: str, hint: str) -> None:
    (problem,) = refused(objects(label=label))
    assert problem.hint == f"{hint}; if the classes are right, pass as_is=True (--as-is)"


def test_normalized_boxes_of_negative_size() -> None:
    boxes = np.tile([0.5, 0.25, 0.125, 0.75], (30, 1))
    with pytest.raises(InputError, match=r"look normalized .*\b0\.5 0\.25 0\.125 0\.75\b"):
        negative_size_notes("detections", Rows(), boxes, "xyxy", np.arange(30))


def test_a_placeholder_has_names_without_boxes() -> None:
    truth = empty_ground_truth([2, 1], [7, 3], {7: "cat"})
    assert (truth.images, truth.class_ids, truth.classes) == ((1, 2), (3, 7), ("3", "cat"))
    assert len(truth) == 0


def test_an_attribute_that_sets_no_flag() -> None:
    names = FlagNames("dark=ignore")
    assert [names.of({"dark": value}) for value in ("yes", "0", None)] == [{"ignore"}, set(), set()]
    assert [names.of({name: "1"}) for name in ("difficult", "night")] == [set(), set()]


def test_repeated_file_names_of_arrays() -> None:
    truth = GroundTruth.from_arrays(image=[1, 2], label=["cat"] * 2, boxes=[[0, 0, 1, 1]] * 2)
    with pytest.raises(InputError, match=r"several images have the file 'a\.jpg'"):
        by_stem(truth, {1: "a.jpg", 2: "a.jpg"})
