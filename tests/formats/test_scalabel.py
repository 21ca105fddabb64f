"""Scalabel's frames: valid and invalid input, and the figures of its own tests."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from detap.formats.catalogue import FORMATS
from detap.formats.detection import detect_format
from tests.cli.conftest import Run
from tests.formats.exports import CAT, DOG, Bad, changed, write


def label(category: str, *corners: float, **more: Any) -> dict[str, Any]:
    box = dict(zip(("x1", "y1", "x2", "y2"), corners, strict=True))
    return {"id": "1", "category": category, "box2d": box, **more}


# The corners are pixels inside: DOG is 1 to 11.5, CAT 20 to 30.
DOG_LABEL = label("dog", 1, 2, 10.5, 21)
CAT_LABEL = label("cat", 20, 5, 29, 14)
TRUTH: list[dict[str, Any]] = [
    {"name": "a.jpg", "labels": [DOG_LABEL, CAT_LABEL]},
    {"name": "b.png", "labels": None},
]
SCORED: list[dict[str, Any]] = [
    {"name": "a.jpg", "labels": [{**DOG_LABEL, "score": 0.9}]},
    {"name": "b.png"},
]


def valid(folder: Path) -> Path:
    return write(folder / "gt.json", TRUTH)


@pytest.mark.parametrize("flag", ["crowd", "ignored"])
def test_ignored_labels_are_crowds(flag: str, tmp_path: Path) -> None:
    """As in Scalabel's to_coco: ``iscrowd=int(check_crowd(label) or check_ignored(label))``."""
    content = changed(TRUTH, 0, "labels", 1, "attributes", to={flag: True, "occluded": True})
    truth = detap.read_ground_truth(write(tmp_path / "gt.json", content))
    assert truth.crowd.tolist() == [False, True]


def test_config_lists_classes_and_the_size_of_images(tmp_path: Path) -> None:
    """Classes with subcategories are none; labels of unlisted categories take no part."""
    categories = [{"name": "animal", "subcategories": [{"name": "cat"}, {"name": "dog"}]}]
    frames = changed(TRUTH, 1, "labels", to=[label("fox", 0, 0, 1, 1), {"category": "lane"}])
    config = {"imageSize": {"width": 50, "height": 40}, "categories": categories}
    truth = detap.read_ground_truth(
        write(tmp_path / "gt.json", {"config": config, "frames": frames})
    )
    assert truth.classes == ("cat", "dog")
    assert truth.label.tolist() == [1, 0]
    assert np.asarray(truth.image_sizes).tolist() == [[50, 40], [50, 40]]
    counts = {note.code: note.count for note in truth.notes}
    assert counts == {"tags-skipped": 1, "unlisted-categories": 1, "images-without-objects": 1}


def test_frames_of_videos(tmp_path: Path) -> None:
    """Equal names in two videos are two images; predictions may lack unique videos."""
    frames = [
        {"name": "1.jpg", "videoName": video, "frameIndex": 0, "labels": [DOG_LABEL]}
        for video in ("v", "w")
    ]
    truth = detap.read_ground_truth(write(tmp_path / "gt.json", frames))
    assert truth.images == ("v/1", "w/1")
    one = detap.read_ground_truth(write(tmp_path / "one.json", frames[1:]))
    scored = [{"name": "1.jpg", "labels": SCORED[0]["labels"]}]
    detections = detap.read_detections(write(tmp_path / "dt.json", scored), one)
    assert detections.image.tolist() == [0]


def test_a_file_for_each_image(tmp_path: Path) -> None:
    """BDD100K's former form."""
    for name, labels in (("a", [DOG_LABEL, CAT_LABEL]), ("b", [])):
        frames = [{"timestamp": 10000, "objects": labels}]
        content = {"name": name, "attributes": {"weather": f"{name} cloud"}, "frames": frames}
        write(tmp_path / f"labels/{name}.json", content)
    assert detect_format(tmp_path / "labels").name == "scalabel"
    truth = detap.read_ground_truth(tmp_path / "labels")
    assert truth.images == ("a", "b")
    assert truth.corners.tolist() == [[*DOG], [*CAT]]
    weather = FORMATS["scalabel"].image_attribute(truth, "weather")
    assert weather == {"a": "a cloud", "b": "b cloud"}


def test_converted_and_read_again(tmp_path: Path) -> None:
    content = changed(TRUTH, 0, "labels", 1, "attributes", to={"crowd": True})
    truth = detap.read_ground_truth(write(tmp_path / "gt.json", content))
    detections = detap.read_detections(write(tmp_path / "dt.json", SCORED), truth)
    detap.convert(tmp_path / "out", truth, detections, to="scalabel")
    again = detap.read_ground_truth(tmp_path / "out/labels.json")
    assert (again.images, again.classes) == (truth.images, truth.classes)
    assert again.corners.tobytes() == truth.corners.tobytes()
    scored = detap.read_detections(tmp_path / "out/predictions.json", again)
    assert (again.crowd.tolist(), scored.score.tolist()) == ([False, True], [0.9])
    written = json.loads((tmp_path / "out/labels.json").read_text())
    assert written["frames"][0]["labels"][1] == {
        "id": "2",
        "category": "cat",
        "attributes": {"crowd": True},
        "box2d": {"x1": 20, "y1": 5, "x2": 29, "y2": 14},
    }


FIRST = "[0].labels[0]"
AT = (0, "labels", 0)
BAD = {
    "an object": Bad({"name": "a.jpg"}, "frames is missing; expected ["),
    "no name": Bad(changed(TRUTH, 0, without="name"), "[0]: image name is missing"),
    "labels are text": Bad(changed(TRUTH, 0, "labels", to="x"), '[0]: labels is "x"'),
    "no category": Bad(changed(TRUTH, *AT, without="category"), f"{FIRST}: category is missing"),
    "a list": Bad(changed(TRUTH, *AT, "box2d", to=[1, 2, 3, 4]), f"{FIRST}: is [1, 2, 3, 4]"),
    "scores": Bad(SCORED, f"{FIRST}: has a score (detections?)"),
    "two frames": Bad(
        {"name": "a", "frames": [{"objects": []}, {"objects": []}]},
        "has 2 frames under one name; expected one",
    ),
    "categories": Bad({"frames": TRUTH, "config": {"categories": 3}}, "categories is 3"),
}


def test_the_figures_of_its_own_tests(formats3: Path, command: Run) -> None:
    """Scalabel's own test suite has twelve figures of these files, and AP by class, in percent."""
    folder = formats3 / "scalabel"
    call = ["eval", str(folder / "gt.json"), str(folder / "dt.json"), "--output-format", "json"]
    report = command(*call).report()
    expected = json.loads((folder / "expected.json").read_text())
    # The file has 64.28530467766 for APl; Scalabel's test and pycocotools have 64.28530466767.
    assert {name: 100 * report["summary"][name] for name in expected["summary"]} == pytest.approx(
        expected["summary"], rel=1e-9
    )
    by_class = {row["name"]: row["AP"] for row in report["classes"]}
    for name, value in expected["AP"].items():
        assert by_class.get(name) == (None if value is None else pytest.approx(value / 100))
