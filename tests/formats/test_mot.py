"""MOTChallenge's text files: valid and invalid input."""

from pathlib import Path
from typing import Any

import pytest

import detap
from detap.errors import InputError
from detap.formats.detection import detect_format
from tests.formats.voc_files import write

GT = """1,1,10,10,20,40,1,1,1
1,2,50,10,20,40,0,8,.5
2,1,12,10,20,40,1,1,.25
"""
DET = """1,-1,10,10,20,40,33.5,-1,-1,-1
1,-1,50,10,20,40,20,-1,-1,-1
4,-1,12,10,20,40,-2,-1,-1,-1
"""
INFO = "[Sequence]\nname=S-1\nframeRate=30\nseqLength=4\nimWidth=100\nimHeight=80\nimExt=.jpg\n"
FILES = {"S-1/gt/gt.txt": GT, "S-1/det/det.txt": DET, "S-1/seqinfo.ini": INFO}


def made(folder: Path) -> Path:
    write(folder, FILES)
    return folder


@pytest.mark.parametrize("path", ["", "S-1", "S-1/gt/gt.txt"])
def test_objects_of_a_sequence(path: str, tmp_path: Path) -> None:
    truth = detap.read_ground_truth(made(tmp_path / "train") / path)
    assert truth.format == "mot"
    assert truth.images == ("S-1/000001", "S-1/000002", "S-1/000003", "S-1/000004")
    assert truth.image.tolist() == [0, 0, 1]
    assert [truth.classes[k] for k in truth.label] == ["pedestrian", "distractor", "pedestrian"]
    assert truth.corners[0].tolist() == [10, 10, 30, 50]
    assert truth.ignore.tolist() == [False, True, False]
    assert truth.image_sizes is not None
    assert truth.image_sizes.tolist() == [[100, 80]] * 4


@pytest.mark.parametrize("path", ["", "S-1", "S-1/det/det.txt"])
def test_detections_have_scores_on_any_scale(path: str, tmp_path: Path) -> None:
    truth = detap.read_ground_truth(made(tmp_path))
    detections = detap.read_detections(tmp_path / path, truth)
    assert detections.image.tolist() == [0, 0, 3]
    assert detections.score.tolist() == [33.5, 20, -2]
    assert {detections.classes[k] for k in detections.label} == {"pedestrian"}


def test_results_are_a_file_for_each_sequence(tmp_path: Path) -> None:
    truth = detap.read_ground_truth(made(tmp_path / "train"))
    write(tmp_path / "results", {"S-1.txt": DET})
    assert detect_format(None, tmp_path / "results").name == "mot"
    detections = detap.read_detections(tmp_path / "results", truth)
    # Of two pedestrians the best box finds one: the precision is 1 at 51 of 101 recall levels.
    assert detap.evaluate(truth, detections).summary["AP"] == pytest.approx(51 / 101)


def test_the_first_challenge_has_no_classes(tmp_path: Path) -> None:
    write(tmp_path, {"S/gt/gt.txt": "1,1,10,10,20,40,1,-1,-1,-1\n"})
    truth = detap.read_ground_truth(tmp_path)
    assert truth.classes == ("pedestrian",)
    assert truth.images == ("S/000001",)


def test_visibility_selects_objects(tmp_path: Path) -> None:
    truth = detap.read_ground_truth(made(tmp_path), attributes=("visibility",))
    assert truth.extra["visibility"].tolist() == [1, 0.5, 0.25]


def test_converted_and_read_again(tmp_path: Path) -> None:
    truth = detap.read_ground_truth(made(tmp_path / "in"))
    detap.convert(tmp_path / "out", truth, detap.read_detections(tmp_path / "in", truth), to="mot")
    again = detap.read_ground_truth(tmp_path / "out")
    for table in (truth, again):
        assert (again.images, again.ignore.tolist()) == (table.images, table.ignore.tolist())
        assert again.corners.tobytes() == table.corners.tobytes()
        assert [table.classes[k] for k in table.label] == ["pedestrian", "distractor", "pedestrian"]
    assert detap.read_detections(tmp_path / "out", again).score.tolist() == [33.5, 20, -2]


def test_names_that_cannot_be_written(tmp_path: Path) -> None:
    boxes: dict[str, Any] = {"label": ["pedestrian"], "boxes": [[0, 0, 1, 1]]}
    truth = detap.GroundTruth.from_arrays(image=["a"], **boxes)
    with pytest.raises(InputError, match="image 'a' is not SEQUENCE/NUMBER; rename the images"):
        detap.convert(tmp_path / "out", truth, to="mot")
    truth = detap.GroundTruth.from_arrays(image=["a/1"], **{**boxes, "label": ["cat"]})
    with pytest.raises(InputError, match="class 'cat' is not one of MOTChallenge's"):
        detap.convert(tmp_path / "out", truth, to="mot")


BAD = {
    "columns": ("1,1,10,10", "line 4: has 4 columns, expected 6 to 10"),
    "text": ("1,1,x,10,20,40,1,1,1", "line 4: x 'x' is not a number"),
    "NaN": ("1,1,nan,10,20,40,1,1,1", "line 4: x 'nan' is not a finite number"),
    "frame 0": ("0,1,10,10,20,40,1,1,1", "line 4: frame is 0; expected 1 to 999999"),
    "frame 1.5": ("1.5,1,10,10,20,40,1,1,1", "line 4: frame is 1.5"),
    "class": ("1,1,10,10,20,40,1,99,1", "line 4: class is 99; expected 1 to 13, or -1"),
    "negative": ("1,1,10,10,-20,40,1,1,1", "line 4: "),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_lines(name: str, tmp_path: Path) -> None:
    line, message = BAD[name]
    write(tmp_path, {**FILES, "S-1/gt/gt.txt": f"{GT}{line}\n"})
    with pytest.raises(InputError) as caught:
        detap.read_ground_truth(tmp_path, format="mot")
    assert f"gt.txt: {message}" in str(caught.value)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"S/gt/gt.txt": ""}, "no boxes in its 0 images"),
        ({"S/gt/gt.txt": "{}"}, "looks like JSON"),
        ({"README.md": "x"}, "no sequences: neither \\*/gt/gt.txt nor other .txt files"),
        ({"S/gt/gt.txt": GT, "S/seqinfo.ini": "x"}, "seqinfo.ini: is not a seqinfo.ini"),
        (
            {"S/gt/gt.txt": GT, "S/seqinfo.ini": "[Sequence]\nseqLength=-1\n"},
            "seqlength or imwidth or imheight is not a number from 1",
        ),
    ],
)
def test_invalid_files(files: dict[str, str], message: str, tmp_path: Path) -> None:
    write(tmp_path, files)
    with pytest.raises(InputError, match=message):
        detap.read_ground_truth(tmp_path, format="mot")
