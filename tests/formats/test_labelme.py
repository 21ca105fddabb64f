"""LabelMe's JSON files: valid and invalid input."""

import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.errors import InputError, UsageError
from detap.evaluation.detection import evaluate
from detap.formats.catalogue import FORMATS
from detap.formats.detection import detect_format
from detap.protocols import Protocol
from tests.formats.voc_files import write as written

LABELME = FORMATS["labelme"]
fits = LABELME.fits
read_ground_truth, read_detections = LABELME.read_truth_file, LABELME.read_detections_file

DUE = "expected a LabelMe file with a list of shapes"
BOUNDS = "pass shapes='bbox' (--shapes bbox) to read its bounding box"


def shape(*points: tuple[Any, Any], kind: str | None = "rectangle", **more: Any) -> dict[str, Any]:
    record: dict[str, Any] = {"label": "dog", "points": points or [[1, 2], [11.5, 22]], **more}
    return record if kind is None else {**record, "shape_type": kind}


def document(*shapes: Any, **more: Any) -> dict[str, Any]:
    sides = {"imageWidth": 50, "imageHeight": 40}
    return {"version": "5.0.1", "imagePath": "a.jpg", "shapes": shapes, **sides, **more}


def refused(folder: Path, content: Any, **options: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_ground_truth(written(folder, {"a.json": content}), **options)
    return [str(p).replace(f"{folder}/a.json: ", "") for p in caught.value.problems]


@pytest.mark.parametrize(
    ("side", "shown"), [(-1, "-1"), ("640", '"640"'), ([], "[]"), (True, "true"), (1e12, "1e+12")]
)
@pytest.mark.parametrize("key", ["imageWidth", "imageHeight"])
def test_an_invalid_image_size_is_an_error(tmp_path: Path, key: str, side: Any, shown: str) -> None:
    (said,) = refused(tmp_path, document(shape(), **{key: side}))
    assert said.startswith(f"{key} is ")
    assert said.endswith("; write pixels, or null if unknown")
    # The hint, followed: the size of the image is unknown.
    written(tmp_path, {"a.json": document(shape(), **{key: None})})
    truth = read_ground_truth(tmp_path)
    assert truth.image_sizes is None or bool(np.isnan(truth.image_sizes).any())


# --- what is read


def test_boxes_images_and_sizes(tmp_path: Path) -> None:
    cat = shape((30, 5), (20, 15))
    cat["label"] = "cat"
    truth = read_ground_truth(
        written(
            tmp_path,
            {
                "b.json": document(shape(), cat, imagePath="C:\\pictures\\b.jpg"),
                "a.json": document(imageWidth=None),
                "c.v2.json": document(shape((4, 4), (2, 8), (4, 8), (2, 4))),
                "b.jpg": b"\xff\xd8\xff",
            },
        )
    )
    assert truth.images == ("a", "b", "c.v2")
    assert truth.classes == ("cat", "dog")
    assert truth.image.tolist() == [1, 1, 2]
    assert truth.label.tolist() == [1, 0, 1]
    # Two corners in any order, or all four.
    assert truth.corners.tolist() == [[1, 2, 11.5, 22], [20, 5, 30, 15], [2, 4, 4, 8]]
    expected = np.array([[np.nan, 40], [50, 40], [50, 40]])
    assert np.array_equal(np.asarray(truth.image_sizes), expected, equal_nan=True)
    # An image next to them; a without shapes; c.v2, whose content names a.jpg.
    assert {note.code: note.count for note in truth.notes} == {
        "files-skipped": 1,
        "images-without-objects": 1,
        "image-path-of-other-name": 1,
    }
    [note] = [note for note in truth.notes if note.code == "image-path-of-other-name"]
    assert note.message == "imagePath differs from the file name; the file name is used"
    assert FORMATS["labelme"].file_names(truth) == {"a": "a.jpg", "b": "b.jpg", "c.v2": "c.v2.jpg"}


def test_one_file_and_gzip(tmp_path: Path) -> None:
    written(tmp_path, {"a.json": gzip.compress(json.dumps(document(shape())).encode())})
    truth = read_ground_truth(tmp_path / "a.json")
    assert truth.images == ("a",)
    assert len(truth) == 1


def test_the_embedded_image_is_not_read(tmp_path: Path) -> None:
    """It need not be valid."""
    truth = read_ground_truth(
        written(tmp_path, {"a.json": document(shape(), imageData="no base64: \x00 é")})
    )
    assert len(truth) == 1


def test_other_shapes_are_read_as_their_bounds(tmp_path: Path) -> None:
    shapes = (
        shape((3.5, 4), (1, 9), (8, 2), kind="polygon"),
        shape((3.5, 4), (1, 9), (8, 2), kind=None),
        shape((1, 2), (3, 1), kind="linestrip"),
        shape((1, 2), kind="point"),
        shape((10, 20), (13, 24), kind="circle"),
        shape((0, 2), (2, 0), (4, 2), (2, 4)),
    )
    folder = written(tmp_path, {"a.json": document(*shapes)})
    assert read_ground_truth(folder, shapes="bbox").corners.tolist() == [
        [1, 2, 8, 9],
        [1, 2, 8, 9],
        [1, 1, 3, 2],
        [1, 2, 1, 2],
        [5, 15, 15, 25],
        [0, 0, 4, 4],
    ]


@pytest.mark.parametrize("kind", ["oriented_rectangle", "rectangle", "rotation", "quadrilateral"])
def test_a_rotated_box_is_a_quadrilateral(tmp_path: Path, kind: str) -> None:
    """A square, and the same rotated by 45 degrees about its center: IoU is 1 / sqrt 2."""
    s = 10 * math.sqrt(2)
    rotated = shape((20 - s, 20), (20, 20 - s), (20 + s, 20), (20, 20 + s), kind=kind)
    folder, results = tmp_path / "labels", tmp_path / "results"
    folder.mkdir()
    results.mkdir()
    truth = read_ground_truth(written(folder, {"a.json": document(rotated)}))
    square = shape((10, 10), (30, 30), score=0.9)
    detections = read_detections(written(results, {"a.json": document(square)}), truth)
    assert truth.polygons is not None
    assert truth.area.tolist() == pytest.approx([400])
    for threshold, recall in ((math.sqrt(0.5) - 1e-9, 1), (math.sqrt(0.5) + 1e-9, 0)):
        protocol = Protocol.of("coco-polygon").with_changes(iou_thresholds=(threshold,))
        assert evaluate(truth, detections, protocol).summary["AP"] == pytest.approx(recall)
    with pytest.raises(UsageError, match="coco compares boxes, but there are oriented boxes in"):
        evaluate(truth, detections, "coco")
    assert read_ground_truth(folder, shapes="bbox").polygons is None


def test_flags(tmp_path: Path) -> None:
    shapes = (
        shape(flags={"difficult": True, "iscrowd": False}),
        shape((1, 1), (2, 2), flags={"iscrowd": True}),
        shape((2, 2), (3, 3), flags={"difficult": None}, difficult=True),
        shape((3, 3), (4, 4), flags={"blurred": True}, difficult=None),
    )
    folder = written(tmp_path, {"a.json": document(*shapes)})
    truth = read_ground_truth(folder)
    assert truth.difficult.tolist() == [True, False, True, False]
    assert not truth.crowd.any()
    assert {note.code: note.count for note in truth.notes} == {"flags-not-mapped": 1}
    detections = read_detections(folder, truth)
    assert "flags-not-mapped" not in {note.code for note in detections.notes}
    truth = read_ground_truth(folder, attribute_flags="iscrowd,blurred=ignore")
    assert truth.difficult.tolist() == [True, False, True, False]
    assert truth.crowd.tolist() == [False, True, False, False]
    assert truth.ignore.tolist() == [False, False, False, True]


def test_detections_have_scores(tmp_path: Path) -> None:
    truth = read_ground_truth(written(tmp_path, {"a.json": document(shape())}))
    (tmp_path / "dt").mkdir()
    scored = document(shape(score=0.75), shape((2, 2), (9, 9), score=1))
    detections = read_detections(written(tmp_path / "dt", {"a.json": scored}), truth)
    assert detections.score.tolist() == [0.75, 1.0]
    assert detections.label.tolist() == [0, 0]
    # X-AnyLabeling writes null for what somebody has drawn.
    written(tmp_path / "dt", {"a.json": document(shape(score=1), shape(score=None))})
    with pytest.raises(InputError, match=r"shapes\[1\]: score is missing; 1 of 2 records has none"):
        read_detections(tmp_path / "dt", truth)


def test_attributes_of_images(tmp_path: Path) -> None:
    """Flags of the image, and keys of its file."""
    files = {
        "a.json": document(shape(), flags={"night": True}),
        "b.json": document(flags={"night": False}, camera=3),
    }
    truth = read_ground_truth(written(tmp_path, files))
    labelme = FORMATS["labelme"]
    assert labelme.image_attribute(truth, "night") == {"a": True, "b": False}
    assert labelme.image_attribute(truth, "camera") == {"b": 3}
    with pytest.raises(InputError, match="no image has an attribute 'day'"):
        labelme.image_attribute(truth, "day")


def test_paths_of_images(tmp_path: Path) -> None:
    """Their paths stay within a folder."""
    files = {
        "a.json": document(shape(), imagePath="..\\images\\a.jpg"),
        "b.json": document(imagePath="/b.jpg"),
        "c.json": document(imagePath=None),
    }
    truth = read_ground_truth(written(tmp_path, files))
    paths = FORMATS["labelme"].image_files(truth)[1]
    assert paths == {"a": "images/a.jpg", "b": "b.jpg"}


def test_the_format_is_detected_by_its_keys(tmp_path: Path) -> None:
    picture = "A" * 20_000
    late = json.dumps({"imageData": picture, "shapes": [], "imagePath": "a.jpg"})
    files = {"a.json": document(shape()), "b.json": late, "c.jpg": document(shape())}
    written(tmp_path, files)
    assert detect_format(tmp_path).name == "labelme"
    assert detect_format(tmp_path / "a.json").name == "labelme"
    assert detect_format(tmp_path / "b.json").name == "labelme"
    coco: dict[str, Any] = {"images": [], "annotations": [], "categories": []}
    written(tmp_path, {"instances.json": coco})
    assert detect_format(tmp_path / "instances.json").name == "coco"
    assert not fits(str(tmp_path / "absent.json"))
    assert not fits(str(tmp_path / "c.jpg"))


# --- bad input


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([], f"is []; {DUE}"),
        ({"shapes": {}}, f"shapes is {{}}; {DUE}"),
        ({"images": [], "annotations": []}, f"shapes is missing; {DUE}"),
        (
            json.dumps(document(shape()))[:60],
            "line 1, column 56: file is truncated: it ends inside a value, after 60 characters; "
            "download or write it again",
        ),
    ],
)
def test_bad_files(tmp_path: Path, content: Any, expected: str) -> None:
    assert refused(tmp_path, content) == [expected]


SHAPES: dict[str, tuple[Any, str]] = {
    "no points": (shape() | {"points": None}, "points is null; write [[x, y], [x, y]]"),
    "a point of one number": (
        shape((1, 2)) | {"points": [[1, 2], [3]]},
        "points[1] is [3]; write [x, y]",
    ),
    "area overflows": (
        shape((0, 0), (1e200, 1e200)),
        "box area overflows; correct the box",
    ),
    "three corners": (
        shape((1, 2), (3, 4), (5, 6)),
        "has 3 points as a rectangle; expected two corners or four",
    ),
    "three corners of an oriented rectangle": (
        shape((0, 2), (2, 0), (4, 2), kind="oriented_rectangle"),
        "has 3 points as oriented_rectangle; expected four corners",
    ),
    "corners out of order": (
        shape((0, 2), (4, 2), (2, 0), (2, 4), kind="oriented_rectangle"),
        "sides of its corners cross; list the corners in order around",
    ),
    "area of an oriented rectangle overflows": (
        shape((0, 2e200), (2e200, 0), (4e200, 2e200), (2e200, 4e200), kind="oriented_rectangle"),
        "box area overflows; correct the box",
    ),
    "polygon": (
        shape((1, 2), (3, 4), (5, 0), kind="polygon"),
        f"is a polygon, not a box; {BOUNDS}",
    ),
    "no type": (shape((1, 2), (3, 4), (5, 0), kind=None), f"is a polygon, not a box; {BOUNDS}"),
    "a type that is none": (
        shape() | {"shape_type": ["rectangle"]},
        'shape_type is ["rectangle"]; use rectangle or polygon',
    ),
    "flags": (
        shape(flags=["difficult"]),
        'flags is ["difficult"]; write an object of names with true or false',
    ),
    "a flag": (
        shape(flags={"difficult": "rather"}),
        "flag 'difficult' is 'rather'; expected true or false, yes or no, 1 or 0",
    ),
}


@pytest.mark.parametrize("case", SHAPES)
def test_bad_shapes(tmp_path: Path, case: str) -> None:
    record, expected = SHAPES[case]
    assert refused(tmp_path, document(shape(), record)) == [f"shapes[1]: {expected}"]


def test_bad_shapes_with_shapes_bbox(tmp_path: Path) -> None:
    shapes = (shape((1, 2), (3, 4), kind="polygon"), shape((1, 2), kind="circle"))
    assert refused(tmp_path, document(*shapes), shapes="bbox") == [
        "shapes[0]: has 2 points as a polygon; expected 3",
        "shapes[1]: has 1 point as a circle; expected 2",
    ]


def test_empty_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no LabelMe files: no file ends with .json; use the"):
        read_ground_truth(tmp_path)
    with pytest.raises(InputError, match="no shapes in its 1 JSON files; use the annotations"):
        read_ground_truth(written(tmp_path, {"a.json": document()}))
    with pytest.raises(InputError, match="no such file or directory"):
        read_ground_truth(tmp_path / "absent")
    (tmp_path / "b.json").symlink_to("/dev/zero")
    with pytest.raises(InputError, match=r"b.json: is a device, expected a file"):
        read_ground_truth(tmp_path)
