"""Responses of Roboflow's hosted models: valid and invalid input."""

from pathlib import Path
from typing import Any

import pytest

import detap
from detap.errors import InputError
from detap.formats.catalogue import FORMATS
from detap.formats.detection import detect_format
from tests.cli.conftest import Run
from tests.formats.voc_files import item, xml
from tests.formats.voc_files import write as written

fits = FORMATS["roboflow"].fits


def prediction(**more: Any) -> dict[str, Any]:
    record = {"x": 6, "y": 12.0, "width": 10, "height": 20, "confidence": 0.75, "class": "dog"}
    changed = {**record, "class_id": 0, **more}
    return {key: value for key, value in changed.items() if value is not ...}


def response(*predictions: Any, **more: Any) -> dict[str, Any]:
    return {"predictions": [*predictions], "image": {"width": 50, "height": 40}, **more}


def valid(folder: Path) -> Path:
    text = xml(item("dog", (1, 2, 11, 22)), size=(50, 40))
    return written(folder, {"a.xml": text, "b.xml": text})


@pytest.fixture
def gt(tmp_path: Path) -> Path:
    return valid(tmp_path / "gt")


def test_centers_become_corners(gt: Path, tmp_path: Path) -> None:
    files = {"a.json": response(prediction()), "b.jpg.json": response(), "README.txt": ""}
    dt = written(tmp_path / "dt", files)
    assert detect_format(None, dt).name == "roboflow"
    truth = detap.read_ground_truth(gt)
    table = detap.read_detections(dt, truth)
    assert table.image.tolist() == [0]
    assert table.corners.tolist() == [[1, 2, 11, 22]]
    assert table.score.tolist() == [0.75]
    notes = {note.code: note for note in table.notes}
    assert notes["files-skipped"].message == "files skipped ('README.txt'): not responses"
    one = detap.read_detections(dt / "a.json", truth)
    assert one.corners.tolist() == table.corners.tolist()
    assert {note.code: note.message for note in one.notes} == {
        "images-without-file": "ground-truth images without a detections file"
    }


def test_an_image_without_detections_is_recognized(tmp_path: Path) -> None:
    folder = written(tmp_path / "dt", {"a.json": response()})
    assert fits(str(folder))
    assert not fits(str(tmp_path / "absent"))


FORMAT = 'expected {"predictions": [{"x": ..., "y": ..., "class": ..., "confidence": ...}]}'
AT = "predictions[0]: "

BAD: dict[str, Any] = {
    "a list": ([1], f"is [1]; {FORMAT}"),
    "text": ('"x"', f'is "x"; {FORMAT}'),
    "no predictions": ({"image": {}}, f"predictions is missing; {FORMAT}"),
    "binary": ("\ud7ff\x00{", "looks like binary data; use the JSON file"),
    "predictions is null": ({"predictions": None}, "predictions is null; expected {"),
    "a polygon": (
        response(prediction(points=[{"x": 1, "y": 2}])),
        f"{AT}is a polygon; use a model that detects boxes",
    ),
    "size is a list": (response(prediction(), image=[50, 40]), "is [50, 40]; expected an object"),
}
BAD = {name: (*case, True) for name, case in BAD.items()}


def test_two_files_of_an_image(gt: Path, tmp_path: Path, command: Run) -> None:
    twice = {"a.json": response(prediction()), "a.jpg.json": response(prediction())}
    dt = written(tmp_path / "dt", twice)
    said = command("eval", "--gt", str(gt), "--dt", str(dt)).refused()
    assert "duplicate image 'a.jpg' (also at " in said


def test_responses_are_not_ground_truth(tmp_path: Path) -> None:
    path = written(tmp_path / "gt", {"a.json": response(prediction())})
    with pytest.raises(InputError, match="holds responses of a model"):
        detap.read_ground_truth(path)
    empty = tmp_path / "empty"
    empty.mkdir()
    truth = detap.GroundTruth.from_arrays(
        image=["a"], label=["dog"], boxes=[[1, 2, 3, 4]], images=["a"]
    )
    with pytest.raises(InputError, match=r"no file ends with \.json"):
        detap.read_detections(empty, truth, format="roboflow")
