"""Tables from arrays: numbering, checks, and what must not change."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from detap.errors import InputError
from detap.tables import Detections, GroundTruth, encode_boxes

BOX = [0.0, 0.0, 10.0, 10.0]


def truth(**changes: object) -> GroundTruth:
    arguments: dict[str, object] = {
        "image": ["b", "a"],
        "label": ["cat", "dog"],
        "boxes": [BOX] * 2,
    }
    return GroundTruth.from_arrays(**(arguments | changes))  # type: ignore[arg-type]


def found(**changes: object) -> Detections:
    arguments: dict[str, object] = {
        "image": ["a"],
        "label": ["dog"],
        "boxes": [BOX],
        "score": [0.5],
    }
    return Detections.from_arrays(**(arguments | changes))  # type: ignore[arg-type]


def test_names_become_dense_numbers_in_sorted_order() -> None:
    table = truth()
    assert table.images == ("a", "b")
    assert table.classes == ("cat", "dog")
    assert_array_equal(table.image, [1, 0])
    assert_array_equal(table.label, [0, 1])


def test_images_and_classes_may_be_listed() -> None:
    table = truth(images=["z", "b", "a"], classes={"dog": "Hund", "cat": "Katze", "cow": "Kuh"})
    assert table.images == ("z", "b", "a")
    assert table.classes == ("Hund", "Katze", "Kuh")
    assert table.class_ids == ("dog", "cat", "cow")
    assert_array_equal(table.label, [1, 0])


def test_columns_are_read_only() -> None:
    table = truth()
    with pytest.raises(ValueError, match="read-only"):
        table.corners[0, 0] = 1


def test_the_caller_s_arrays_are_left_alone() -> None:
    boxes = np.array([BOX, BOX])
    truth(boxes=boxes, encoding="xywh")
    assert boxes.flags.writeable
    assert_array_equal(boxes, [BOX, BOX])


def test_areas_come_from_the_file_s_own_encoding() -> None:
    """x + w - x is not w: 0.1 + 0.2 - 0.1 is above 0.2."""
    box = np.array([[0.1, 0.1, 0.2, 0.2]])
    corners, area = encode_boxes(box, "xywh")
    assert area[0] == 0.2 * 0.2
    side = corners[0, 2] - corners[0, 0]
    assert side * side != area[0]


def test_detections_are_renumbered_and_strange_classes_put_last() -> None:
    table = found(image=["a", "b"], label=["ape", "dog"], boxes=[BOX] * 2, score=[1, 2])
    numbered = table.numbered_as(truth())
    assert numbered.classes == ("cat", "dog", "ape")
    assert_array_equal(numbered.label, [2, 1])
    assert_array_equal(numbered.image, [0, 1])
    assert numbered.numbered_as(truth()) is numbered


def test_detections_on_a_strange_image_are_refused() -> None:
    with pytest.raises(InputError, match="image 'q' is not in the ground truth, nor are 1 others"):
        found(image=["q", "r"], label=["dog"] * 2, boxes=[BOX] * 2, score=[1, 2]).numbered_as(
            truth()
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"boxes": [[0, 0, float("nan"), 1]]}, r"row 0: boxes is \[0.0, 0.0, nan, 1.0\]"),
        ({"boxes": [[5, 0, 1, 1]]}, "row 0: boxes .* no negative side"),
        ({"boxes": [[0, 0, 1e200, 1e200]]}, "with a finite area"),
        ({"boxes": [[0, 0, 1]]}, r"boxes have the shape \(1, 3\)"),
        ({"score": [float("inf")]}, "row 0: score is inf"),
        ({"score": [1, 2]}, r"score has the shape \(2,\)"),
        ({"score": ["high"]}, "score: could not convert"),
        ({"encoding": "polar"}, "encoding 'polar' is unknown; use corners or xywh"),
        ({"label": ["dog", "cat"]}, r"label has the shape \(2,\)"),
    ],
)
def test_what_is_no_box_or_score_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        found(**changes)


def test_a_listed_name_must_exist_and_be_unique() -> None:
    with pytest.raises(InputError, match="image 'b' is not among those listed"):
        truth(images=["a"])
    with pytest.raises(InputError, match="a name of image is listed twice"):
        truth(images=["a", "b", "b"])


def test_negative_annotated_area_is_refused() -> None:
    with pytest.raises(InputError, match=r"row 1: area is -1\.0"):
        truth(area=[1, -1])


def test_no_detections_at_all() -> None:
    empty = found(image=[], label=[], boxes=[], score=[])
    assert len(empty.numbered_as(truth())) == 0
