"""CSV files of boxes in pixels: valid and invalid input."""

from pathlib import Path

import numpy as np
import pytest

import detap
from detap.errors import InputError
from detap.formats.catalogue import FORMATS
from detap.formats.detection import detect_format
from tests.cli.conftest import Run
from tests.formats.exports import CAT, DOG, RESULTS, Bad, refused, write

HEADER = "filename,width,height,class,xmin,ymin,xmax,ymax"
ROWS = "a.jpg,50,40,dog,1,2,11.5,22\na.jpg,50,40,cat,20,5,30,15\n"
TRUTH = f"{HEADER}\n{ROWS}"
SCORED = f"{HEADER},score\na.jpg,50,40,dog,1,2,11.5,22,0.9\n"
SINK = "x_min,y_min,x_max,y_max,class_id,confidence,tracker_id"
KERAS = "a.jpg,1,2,11.5,22,dog\na.jpg,20,5,30,15,cat\nb.jpg,,,,,\n"


def valid(folder: Path) -> Path:
    return write(folder / "gt.csv", TRUTH)


def test_columns_go_by_their_names(tmp_path: Path) -> None:
    truth = detap.read_ground_truth(valid(tmp_path))
    assert truth.format == "tfcsv"
    assert truth.corners.tolist() == [[*DOG], [*CAT]]
    assert [truth.classes[k] for k in truth.label] == ["dog", "cat"]
    assert np.asarray(truth.image_sizes).tolist() == [[50, 40]]
    assert FORMATS["tfcsv"].file_names(truth) == {"a": "a.jpg"}
    turned = "ymax,xmax,class,filename,xmin,ymin\r\n22,11.5,dog,a.jpg,1,2\r\n\r\n"
    turned += "15,30,cat,a.jpg,20,5\r\n"
    other = detap.read_ground_truth(write(tmp_path / "b.csv", "\ufeff" + turned))
    assert other.corners.tolist() == truth.corners.tolist()
    detections = detap.read_detections(write(tmp_path / "dt.json", RESULTS), truth)
    assert detap.evaluate(truth, detections, "coco").summary["AP"] == pytest.approx(1)


def test_line_separators_of_unicode_are_part_of_a_name(tmp_path: Path) -> None:
    path = write(tmp_path / "gt.csv", f"{HEADER}\r\na.jpg,50,40,d\u2028og,1,2,11.5,22\r\n")
    assert detap.read_ground_truth(path).classes == ("d\u2028og",)


def test_images_without_boxes_come_from_the_sizes(tmp_path: Path) -> None:
    """The file has only images with boxes; a note says so."""
    note = "images-with-boxes-only"
    truth = detap.read_ground_truth(valid(tmp_path))
    assert {n.code: n.count for n in truth.notes}[note] == 1
    sizes = write(tmp_path / "sizes.csv", "image,width,height\na,50,40\nb,64,48\n")
    truth = detap.read_ground_truth(tmp_path / "gt.csv", image_sizes=sizes)
    assert truth.images == ("a", "b")
    assert np.asarray(truth.image_sizes).tolist() == [[50, 40], [64, 48]]
    assert note not in {n.code for n in truth.notes}


def test_a_repeated_row_is_dropped_with_a_warning(tmp_path: Path) -> None:
    rows = ROWS + "a.jpg,50,40,dog,1.0,2,11.50,22\na.jpg,50,40,dog,1,2,11.5,23\n"
    truth = detap.read_ground_truth(write(tmp_path / "gt.csv", f"{HEADER}\n{rows}"))
    assert len(truth) == 3
    [note] = [note for note in truth.notes if note.code == "repeated-rows"]
    assert (note.count, note.severity) == (1, "warning")


def test_a_file_without_header_is_refused_and_the_hint_works(tmp_path: Path) -> None:
    """As Keras RetinaNet writes it, with empty cells for an image without objects."""
    path = write(tmp_path / "gt.csv", KERAS)
    assert detect_format(path).name == "tfcsv"
    with pytest.raises(InputError, match=r"line 1: has no header; put the line `(.*)` above") as at:
        detap.read_ground_truth(path)
    header = at.value.problems[0].hint.split("`")[1]
    truth = detap.read_ground_truth(write(path, f"{header}\n{KERAS}"))
    assert truth.images == ("a", "b")
    assert truth.corners.tolist() == [[*DOG], [*CAT]]


def test_supervision_needs_an_image_column(tmp_path: Path) -> None:
    truth = detap.read_ground_truth(valid(tmp_path))
    row = "1.0,2.0,11.5,22.0,1,0.75,"
    path = write(tmp_path / "dt.csv", f"{SINK}\n{row}\n")
    with pytest.raises(InputError, match=r"CSVSink add it with custom_data=\{\"image\": \.\.\.\}"):
        detap.read_detections(path, truth)
    write(path, f"{SINK},image\n{row},x/a.jpg\n")
    with pytest.raises(InputError, match=r"no class in common .* pass --dt-class-names FILE"):
        detap.read_detections(path, truth)
    names = write(tmp_path / "names.txt", "cat\ndog\n")
    detections = detap.read_detections(path, truth, dt_class_names=names)
    assert detections.corners.tolist() == [[*DOG]]
    assert detections.score.tolist() == [0.75]
    assert [detections.classes[k] for k in detections.label] == ["dog"]
    write(path, f"{SINK},image,class_name\n{row},a.jpg,dog\n")
    assert detap.read_detections(path, truth).label.tolist() == detections.label.tolist()


def bad(row: str, message: str) -> Bad:
    return Bad(f"{TRUTH}{row}\n", f"line 4: {message}")


BOX = "a.jpg,50,40,dog"
BAD = {
    "empty file": Bad("", "is empty"),
    "only a header": Bad(HEADER + "\n", "no boxes in its 0 images"),
    "JSON": Bad("[]", "looks like JSON"),
    "UTF-16": Bad(TRUTH.encode("utf-16"), "UTF-16 text"),
    "not UTF-8": Bad(TRUTH.encode() + b"\xff", "0xff is not UTF-8"),
    "no header": Bad(KERAS, "line 1: has no header"),
    "semicolons": Bad(TRUTH.replace(",", ";"), "line 1: has no column filename or image"),
    "no filename": Bad(
        TRUTH.replace("filename", "name"), "line 1: has no column filename or image"
    ),
    "no class": Bad(TRUTH.replace("class", "kind"), "line 1: has no column class or class_name or"),
    "no ymax": Bad(TRUTH.replace("ymax", "y2"), "line 1: has no column ymax"),
    "a column twice": Bad(TRUTH.replace("width", "xmin"), "line 1: duplicate column xmin"),
    "too few values": bad(f"{BOX},1,2,3", "has 7 columns, expected 8"),
    "an open quote": bad(
        f'"{BOX},1,2,3,4', "invalid CSV: unexpected end of data; correct the line"
    ),
    "NaN": bad(f"{BOX},nan,2,3,4", "xmin 'nan' "),
    "underscore": bad(f"{BOX},2_63,2,3,4", "xmin '2_63' is not a number"),
    "no number": bad(f"{BOX},1,2,,4", "xmax '' "),
    "an overflow": bad(f"{BOX},0,0,1e300,1e300", "box area overflows"),
    "a negative width": bad(f"{BOX},9,2,3,4", "xmax = 3 is less than xmin = 9"),
    "no class name": bad("a.jpg,50,40,,1,2,3,4", "class is empty"),
    "no image": bad(",50,40,dog,1,2,3,4", 'image name is ""'),
    "another width": bad("a.jpg,51,40,dog,1,2,3,4", "width is '51', '50' in line 2"),
    "a negative image": bad("b.jpg,-50,40,dog,1,2,3,4", "width is -50.0"),
    "text as image size": bad("b.jpg,wide,40,dog,1,2,3,4", "width 'wide' "),
    "an image of two types": bad(
        "a.png,50,40,dog,1,2,3,4", "duplicate image 'a.png' (also at line 2, as"
    ),
    "detections": Bad(SCORED, "line 1: has a column score (detections?)"),
    "NaN as score": Bad(SCORED.replace("0.9", "NaN"), "line 2: score 'NaN' ", True),
    "no image column": Bad(f"{SINK}\n1,2,3,4,1,0.9,\n", 'custom_data={"image": ...}', True),
    "a class without name": Bad(
        f"{SINK},image\n1,2,3,4,2,0.9,,a.jpg\n", "line 2: class '2' is not in", True
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_input(name: str, tmp_path: Path, command: Run) -> None:
    case = BAD[name]
    if name == "a class without name":
        names = write(tmp_path / "names.txt", "dog\ncat\n")
        case = case._replace(options=("--dt-class-names", str(names)))
    refused(tmp_path, case, "bad.csv", valid, command=command, file_format="tfcsv")
