"""VisDrone's and MOTChallenge's text files: valid and invalid input, image sizes, detection."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from detap.errors import InputError
from detap.formats.catalogue import FORMATS
from detap.formats.detection import detect_format, matching_formats
from detap.protocols import Protocol
from tests.formats.helpers import png
from tests.formats.voc_files import write

WITHOUT_REGIONS = Protocol.parse("visdrone|drop-in-regions:none")
CAR, IGNORED, REGION = "10,20,30,40,1,4,0,0", "50,60,7,8,0,9,1,2", "1,1,100,100,0,0,0,0"
FOUND = "10.5,20,30,40,0.75,4,-1,-1"


def folder_of(path: Path, **files: str) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (path / f"{name}.txt").write_text(text)
    return path


def test_lines_are_boxes(tmp_path: Path) -> None:
    truths = folder_of(tmp_path / "gt", a=f"{CAR}\n{IGNORED},\n\n{REGION}\n", b="")
    truth = detap.read_ground_truth(truths)
    assert truth.format == "visdrone"
    assert truth.images == ("a", "b")
    assert truth.classes == ("ignored regions", "car", "bus")  # by category
    assert truth.label.tolist() == [1, 2, 0]
    assert truth.corners.tolist() == [[10, 20, 40, 60], [50, 60, 57, 68], [1, 1, 101, 101]]
    assert truth.crowd.tolist() == [False, True, True]
    detected = folder_of(tmp_path / "dt", a=f"{FOUND}\n1,2,3,4,9e-1,11,-1,-1", b="")
    detections = detap.read_detections(detected, truth)
    assert detections.classes == ("ignored regions", "car", "bus", "others")
    assert detections.score.tolist() == [0.75, 0.9]
    assert detections.corners[0].tolist() == [10.5, 20, 40.5, 60]
    single = detap.read_detections(detected / "a.txt", truth, format="visdrone")
    assert single.score.tolist() == [0.75, 0.9]


BAD = {
    "seven columns": (",".join(CAR.split(",")[:7]), "line 2: has 7 columns, expected 8; write `x,"),
    "spaces": (CAR.replace(",", " "), "line 2: has 1 column, expected 8"),
    "text": (CAR.replace("30", "wide"), "line 2: width 'wide' is not a number"),
    "an empty column": (CAR.replace("30", ""), "line 2: width '' is empty, expected a number"),
    "nan": (CAR.replace("30", "nan"), "line 2: width 'nan' is not a finite number"),
    "category": (CAR.replace(",4,", ",12,"), "line 2: category is 12, expected an integer"),
    "half a category": (CAR.replace(",4,", ",4.5,"), "line 2: category is 4.5, expected an int"),
    "a score": (CAR.replace(",1,4", ",0.9,4"), "line 2: score is 0.9, expected 0 (ignored) or 1"),
    "overflow": (CAR.replace("30", "1e300").replace("40", "1e300"), "line 2: box area overflows"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line(tmp_path: Path, name: str) -> None:
    line, message = BAD[name]
    truths = folder_of(tmp_path, a=f"{CAR}\n{line}\n{CAR}")
    with pytest.raises(detap.InputError) as caught:
        detap.read_ground_truth(truths, format="visdrone")
    assert str(caught.value).startswith(f"{truths / 'a.txt'}: {message}")


def test_nothing_to_read(tmp_path: Path) -> None:
    for name, message in (("empty", "no annotations: no file ends with .txt"), ("blank", "boxes")):
        folder = folder_of(tmp_path / name, **({"a": "\n"} if name == "blank" else {}))
        with pytest.raises(detap.InputError, match=message):
            detap.read_ground_truth(folder, format="visdrone")
    with pytest.raises(detap.InputError, match="file names are needed; use a folder"):
        detap.read_ground_truth("-", format="visdrone")


def test_image_sizes(tmp_path: Path) -> None:
    truths = folder_of(tmp_path / "annotations", a=CAR, b=f"{CAR}\n{REGION}", c=CAR)

    def sizes(**options: Any) -> list[list[float]]:
        table = detap.read_ground_truth(truths, **options).image_sizes
        assert table is not None
        listed: list[list[float]] = np.nan_to_num(table, nan=-1).tolist()
        return listed

    assert sizes() == [[-1, -1]] * 3
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(png(640, 480))
    assert sizes() == [[640, 480], [-1, -1], [-1, -1]]
    (tmp_path / "sizes.json").write_text('{"b": [100, 200]}')
    assert sizes() == [[640, 480], [100, 200], [-1, -1]]
    (tmp_path / "sizes.csv").write_text("image,width,height\nb.jpg,300,400\nc.jpg,1,2\n")
    expected = [[640, 480], [300, 400], [1, 2]]
    assert sizes(image_sizes=str(tmp_path / "sizes.csv")) == expected
    for content, message in (
        ("[]", "is []; write {image: [width, height]}"),
        ('{"b": [1]}', "image 'b': size is [1]; write {"),
        ('{"b": [0, 5]}', "image 'b': width is 0; write pixels"),
    ):
        (tmp_path / "sizes.json").write_text(content)
        with pytest.raises(detap.InputError, match=re.escape(f"sizes.json: {message}")):
            sizes()


def test_regions_need_a_size(tmp_path: Path) -> None:
    truths = folder_of(tmp_path / "annotations", a=f"{CAR}\n{REGION}", b=CAR)
    detected = folder_of(tmp_path / "dt", a=FOUND, b="10,20,30,40,0.5,4,-1,-1")
    message = (
        "image 'a': ignored regions need the size of each image, which 1 of 1 images lack; "
        "use --image-sizes, or --drop-in-regions none"
    )
    with pytest.raises(detap.InputError, match=message):
        detap.evaluate(truths, detected)
    # Both remedies: with regions, the car of image a and its detection are dropped.
    assert detap.evaluate(truths, detected, WITHOUT_REGIONS).ground_truths.sum() == 2
    (tmp_path / "sizes.csv").write_text("image,width,height\na,200,200\n")
    result = detap.evaluate(truths, detected, image_sizes=tmp_path / "sizes.csv")
    assert result.ground_truths.sum() == result.true_positives.sum() == 1
    codes = {note.code: note.count for note in result.notes}
    assert codes["ground-truths-in-regions"] == 2  # the region too
    assert codes["detections-in-regions"] == 1


@pytest.mark.parametrize(
    ("line", "is_visdrone"),
    [
        (CAR, True),
        (f"{CAR},", True),
        (FOUND, True),
        (CAR.replace(",", ", "), True),
        ("1,-1,10,20,30,40,0.9", False),  # MOTChallenge
        ("1,-1,10,20,30,40,0.9,1,1", False),
        ("1,-1,10,20,30,40,0.9,-1,-1,-1", False),
        ("1,-1,10,20,30,40,0.9,", False),
        ("car,10,20,30,40,0,0,0", False),
        (CAR.replace(",", " "), False),
        ("image,xmin,ymin,xmax,ymax,class,score,a", False),
    ],
)
def test_detection_by_content(tmp_path: Path, line: str, is_visdrone: bool) -> None:
    folder = folder_of(tmp_path, a="", b=f"{line}\n{line}\n")
    assert (matching_formats(str(folder)) == ["visdrone"]) == is_visdrone


def test_the_root_of_the_data_set(tmp_path: Path) -> None:
    folder_of(tmp_path / "annotations", a=CAR)
    (tmp_path / "images").mkdir()
    assert matching_formats(str(tmp_path)) == ["visdrone"]
    assert detap.read_ground_truth(tmp_path).images == ("a",)
    folder_of(tmp_path / "annotations", a="1 2 3 4")
    assert matching_formats(str(tmp_path)) == ["voc"]


# --- MOTChallenge


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
    assert FORMATS["mot"].file_names(truth)["S-1/000003"] == "S-1/img1/000003.jpg"
    assert truth.image.tolist() == [0, 0, 1]
    assert [truth.classes[k] for k in truth.label] == ["pedestrian", "distractor", "pedestrian"]
    assert truth.corners[0].tolist() == [10, 10, 30, 50]
    assert truth.ignore.tolist() == [False, True, False]
    assert np.asarray(truth.image_sizes).tolist() == [[100, 80]] * 4


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


BAD_ROWS = {
    "columns": ("1,1,10,10", "line 4: has 4 columns, expected 6 to 10"),
    "text": ("1,1,x,10,20,40,1,1,1", "line 4: x 'x' is not a number"),
    "NaN": ("1,1,nan,10,20,40,1,1,1", "line 4: x 'nan' is not a finite number"),
    "frame 0": ("0,1,10,10,20,40,1,1,1", "line 4: frame is 0; expected 1 to 999999"),
    "frame 1.5": ("1.5,1,10,10,20,40,1,1,1", "line 4: frame is 1.5"),
    "class": ("1,1,10,10,20,40,1,99,1", "line 4: class is 99; expected 1 to 13, or -1"),
    "negative": ("1,1,10,10,-20,40,1,1,1", "line 4: "),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_invalid_lines(name: str, tmp_path: Path) -> None:
    line, message = BAD_ROWS[name]
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
