"""Open Images' CSV: valid and invalid input."""

import gzip
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap import evaluate
from detap.errors import InputError
from detap.formats.openimages._scan import Scanner
from detap.formats.openimages.rows import FORM, Rows
from detap.formats.openimages.tables import read_detections, read_ground_truth
from detap.protocols import protocol
from detap.protocols.fields import ANY_AREA
from tests.cli.conftest import Run
from tests.coco import truth_of
from tests.raised import raised

FULL = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsGroupOf"
PLAIN = "ImageID,LabelName,XMin,XMax,YMin,YMax"
SCORED = "ImageID,LabelName,Score,XMin,XMax,YMin,YMax"
BOX = "a,dog,.25,.5,.125,.375"
SIZES = "image,width,height\na,80,40\nb.png,20,10\n"
INSIST = "to count them as boxes that overlap nothing"
DECIMAL = "use a decimal number"


def written(folder: Path, *lines: str | bytes, name: str = "gt.csv") -> Path:
    path = folder / name
    data = [line if isinstance(line, bytes) else line.encode() for line in lines]
    path.write_bytes(b"\n".join(data) + b"\n")
    return path


def refused(path: Path, **options: Any) -> list[str]:
    error = raised(InputError, read_ground_truth, path, **options)
    assert all(isinstance(problem.location, str) for problem in error.problems)
    return [str(p).replace(f"{path}: ", "") for p in error.problems]


def refused_detections(path: Path, **options: Any) -> list[str]:
    truth = read_ground_truth(written(path.parent, PLAIN, BOX, name="truth.csv"))
    error = raised(InputError, read_detections, path, truth, **options)
    return [str(p).replace(f"{path}: ", "") for p in error.problems]


# --- what is read


def test_a_byte_order_mark_only_begins_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, f"\ufeff{PLAIN}", BOX.replace("a", "b"), "\ufeffc,dog,0,1,0,1")
    assert read_ground_truth(path).images == ("b", "\ufeffc")


def test_columns_follow_the_header(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        FULL,
        "b.jpg,xclick,/m/02,1,.5,.75,.25,1,0,1",
        'a,"x, y",/m/01,1,0,1,0,.5,1,-1',
        "b.jpg,,/m/01,,0,1.000000,0,.5,,",
    )
    truth = read_ground_truth(path)
    assert truth.images == ("a", "b")
    assert truth.classes == ("/m/01", "/m/02")
    assert truth.image.tolist() == [1, 0, 1]
    assert truth.label.tolist() == [1, 0, 0]
    # XMin, XMax, YMin, YMax in the file; x1, y1, x2, y2 here.
    assert truth.corners.tolist() == [[0.5, 0.25, 0.75, 1], [0, 0, 1, 0.5], [0, 0, 1, 0.5]]
    assert truth.group_of.tolist() == [True, False, False]
    assert truth.image_sizes is None
    assert {note.code for note in truth.notes} == {
        "normalized-boxes-unknown-size",
        "group-of-unknown",
    }


def test_detections_in_either_order_of_columns(tmp_path: Path) -> None:
    truth = read_ground_truth(written(tmp_path, PLAIN, BOX, "b,cat,0,1,0,1"))
    lines = (SCORED, "a.jpg,dog,.75,.25,.5,.125,.375", "b,cow,1e-3,0,1,0,1")
    other = ("ImageID,LabelName,XMin,YMin,XMax,YMax,Score", "a,dog,.25,.125,.5,.375,.75")
    detections = read_detections(written(tmp_path, *lines, name="1.csv"), truth)
    assert detections.score.tolist() == [0.75, 0.001]
    assert detections.classes == ("cat", "dog", "cow")
    assert detections.corners.tolist() == [[0.25, 0.125, 0.5, 0.375], [0, 0, 1, 1]]
    detections = read_detections(written(tmp_path, *other, name="2.csv"), truth)
    assert detections.score.tolist() == [0.75]
    assert detections.corners.tolist() == [[0.25, 0.125, 0.5, 0.375]]


def test_image_sizes_give_pixels_and_images_without_boxes(tmp_path: Path) -> None:
    (tmp_path / "sizes.csv").write_text(SIZES)
    path = written(tmp_path, PLAIN, "a.jpg,dog,.25,.5,.125,.375")
    truth = read_ground_truth(path, image_sizes=tmp_path / "sizes.csv")
    assert truth.images == ("a", "b")
    assert truth.corners.tolist() == [[20, 5, 40, 15]]
    assert truth.box_area.tolist() == [200]
    assert np.asarray(truth.image_sizes).tolist() == [[80, 40], [20, 10]]
    assert [note.code for note in truth.notes] == ["images-without-objects"]
    assert [source.records for source in truth.files] == [1, 2]
    # Detections take the sizes of the ground truth.
    detections = read_detections(
        written(tmp_path, SCORED, "b,dog,.5,0,1,.5,1", name="d.csv"), truth
    )
    assert detections.corners.tolist() == [[0, 5, 20, 10]]


def test_an_image_without_a_size(tmp_path: Path) -> None:
    (tmp_path / "sizes.csv").write_text(SIZES)
    path = written(tmp_path, PLAIN, BOX, "c,dog,0,1,0,1")
    (message,) = refused(path, image_sizes=tmp_path / "sizes.csv")
    assert "unknown size of image 'c', required for normalized boxes; pass --image-s" in message


def test_names_of_classes(tmp_path: Path) -> None:
    rows = "/m/01,Dog\n/m/02,Cat\n/m/03,Bat\n/m/04,Bat\n"
    path = written(tmp_path, PLAIN, *(f"a,/m/0{n},0,1,0,1" for n in (2, 1, 3, 4)), "b,Dog,0,1,0,1")
    for header in ("", "LabelName,DisplayName\n", "LabelName,DisplayName,id\n"):
        names = tmp_path / "class-descriptions.csv"
        names.write_text(header + rows)
        truth = read_ground_truth(path, class_descriptions=names)
        # Two labels of one name stay classes apart.
        assert truth.classes == ("Bat (/m/03)", "Bat (/m/04)", "Cat", "Dog")
        assert truth.label.tolist() == [2, 3, 0, 1, 3]
    path = written(tmp_path, PLAIN, BOX)
    assert refused(path, class_descriptions=names) == [
        f"line 2: label 'dog' is not in {names}; use the list that belongs to this file"
    ]


NAMES = {
    "one column": ("/m/01\n", "line 1: '/m/01' is not a label and a name; write {form}"),
    "another header": (
        "LabelName,id\nDog,1\n",
        "line 1: 'LabelName,id' is not a label and a name; write {form}",
    ),
    "another name": (
        "/m/01,Dog\n/m/01,Cat\n",
        "line 2: duplicate label '/m/01' with another name; list each class once",
    ),
    "empty": ("", "no class names; write {form}"),
    "Latin-1": ("/m/01,Dog\n/m/02,Garçon\n", "line 2: 0xe7 is not UTF-8; save it as UTF-8"),
    "JSON": ("[]", "looks like JSON; expected {form}"),
    "quotes": ('/m/01,"Dog', "line 1: invalid CSV: unexpected end of data; correct the line"),
}


@pytest.mark.parametrize("case", NAMES)
def test_bad_names_of_classes(tmp_path: Path, case: str) -> None:
    text, expected = NAMES[case]
    names = tmp_path / "names.csv"
    names.write_text(text, "latin-1")
    problems = refused(written(tmp_path, PLAIN, BOX), class_descriptions=names)
    assert problems == [
        f"{names}: {expected}".replace("{form}", "lines `/m/0...,name`, one per class")
    ]


def test_decimal_commas_of_every_number(tmp_path: Path) -> None:
    path = written(tmp_path, PLAIN, 'a.b,dog,"0,25","0,5","0,125","0,375"', 'a,dog,0,1,0,"0,5"')
    truth = read_ground_truth(path)
    assert truth.corners.tolist() == [[0.25, 0.125, 0.5, 0.375], [0, 0, 1, 0.5]]
    assert {n.code: n.count for n in truth.notes if n.code[0] == "d"} == {"decimal-commas": 2}


def test_byte_order_mark_line_ends_blanks_and_gzip(tmp_path: Path) -> None:
    data = "\ufeff" + f"{PLAIN}\r\n\r\n{BOX}\r\n\r\n\r\na, dog, 0,1,0,1"
    path = tmp_path / "gt.csv.gz"
    path.write_bytes(gzip.compress(data.encode()))
    truth = read_ground_truth(path)
    assert truth.corners.tolist() == [[0.25, 0.125, 0.5, 0.375], [0, 0, 1, 1]]
    assert truth.classes == ("dog",)
    rows = Rows(path, FORM, check=False)
    assert rows.line.tolist() == [3, 6]


# --- fractions and pixels


def test_iou_does_not_need_image_sizes_but_areas_do(tmp_path: Path) -> None:
    (tmp_path / "sizes.csv").write_text(SIZES)
    path = written(tmp_path, PLAIN, BOX, "b,dog,0,.5,0,.5", "b,dog,.5,1,.5,1")
    lines = (SCORED, "a,dog,.9,.26,.5,.125,.375", "b,dog,.8,0,.5,0,.45", "b,dog,.7,0,.2,.5,.9")
    results, without_areas = [], replace(protocol("coco"), area_ranges=(ANY_AREA,))
    for sizes in (None, tmp_path / "sizes.csv"):
        truth = read_ground_truth(path, image_sizes=sizes)
        detections = read_detections(written(tmp_path, *lines, name="d.csv"), truth)
        results.append(evaluate(truth, detections, without_areas).summary["AP"])
        if sizes is None:
            assert str(raised(InputError, evaluate, truth, detections, "coco")) == (
                f"{path}: boxes are normalized and image sizes are unknown, but the protocol coco "
                "has area ranges in pixels; pass --image-sizes FILE (image_sizes=), or "
                "--area-ranges none"
            )
            with pytest.raises(
                InputError, match=r"voc2007 counts whole pixels; .* --no-inclusive-pixels"
            ):
                evaluate(truth, detections, "voc2007")
        else:
            assert evaluate(truth, detections, "coco").summary["AP"] == pytest.approx(results[0])
    assert results[0] == pytest.approx(results[1])
    assert 0 < results[0] < 1


def test_boxes_without_image_sizes_are_not_converted(tmp_path: Path, detap: Run) -> None:
    gt = written(tmp_path, PLAIN, BOX)
    (tmp_path / "sizes.csv").write_text(SIZES)
    for to in ("coco", "voc", "yolo"):
        said = detap("convert", "--gt", gt, "--to", to, "-o", tmp_path / to).refused()
        assert (
            f"{gt}: boxes are normalized and image sizes are unknown, but pixels are written; pass "
            "--image-sizes FILE (image_sizes=)"
        ) in said
    sizes = ("--image-sizes", tmp_path / "sizes.csv")
    call = ("convert", "--gt", gt, *sizes, "--to", "coco", "-o", tmp_path / "gt.json")
    assert detap(*call).status == 0
    record = json.loads((tmp_path / "gt.json").read_text())
    assert record["annotations"][0]["bbox"] == [20, 5, 20, 10]


def test_detections_use_the_image_sizes_of_another_format(tmp_path: Path, detap: Run) -> None:
    coco = truth_of([(1, 1, [20, 5, 20, 10])], {1: "dog"}, {1: "x/a.jpg"}, size=(80, 40))
    (tmp_path / "gt.json").write_text(json.dumps(coco))
    dt = written(tmp_path, SCORED, "a.jpg,dog,.5,.25,.5,.125,.375", name="dt.csv")
    call = ("--gt", tmp_path / "gt.json", "--dt", dt)
    ended = detap("eval", *call, "--output-format", "json")
    assert json.loads(ended.out)["summary"]["AP"] == pytest.approx(1)
    for width in (0, None):
        coco["images"][0]["width"] = width
        (tmp_path / "gt.json").write_text(json.dumps(coco))
        ended = detap("eval", *call)
        assert (
            "unknown size of image 'a', required for normalized boxes; pass --image-" in ended.err
        )


def test_standard_input(tmp_path: Path, detap: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    gt = written(tmp_path, PLAIN, BOX)
    lines = f"{SCORED}\na,dog,.5,.25,.5,.125,.375\na,dog,x,0,1,0,1\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    ended = detap("eval", "--gt", gt, "--dt", "-", "--area-ranges", "none")
    assert f"<stdin>: line 3: Score 'x' is not a number; {DECIMAL}" in ended.err


def test_urls() -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.pipe("/oi/gt.csv", f"{PLAIN}\n{BOX}\na,dog,0,1,0,\n".encode())
    with pytest.raises(InputError, match=r"^memory://oi/gt.csv: line 3: YMax '' is empty"):
        read_ground_truth("memory://oi/gt.csv")
    memory.store.clear()


# --- bad input

HEADERS: dict[str, tuple[tuple[str | bytes, ...], str]] = {
    "empty": ((), "is empty; begin with the line `{plain}`"),
    "none": ((BOX,), "line 1: has no column ImageID: its first line is '{box}'; begin with {line}"),
    "semicolons": (
        (PLAIN.replace(",", ";"),),
        "line 1: columns are not separated by commas; use commas",
    ),
    "a missing column": (
        (PLAIN.replace("YMax", "YMaximum"),),
        "line 1: has no column YMax: its first line is '{plain}imum'; begin with {line}",
    ),
    "detections": (
        (SCORED,),
        "line 1: has a column Score (detections?); use the ground truth",
    ),
    "a column twice": ((PLAIN + ",XMin",), "line 1: duplicate column XMin; keep one"),
    "no row": (
        (PLAIN,),
        "no boxes; use the annotations that belong to these detections",
    ),
    "HTML": (
        ("<html>",),
        "looks like an HTML page; expected a CSV with the header `{plain}`",
    ),
}


@pytest.mark.parametrize("case", HEADERS)
def test_bad_headers(tmp_path: Path, case: str) -> None:
    lines, expected = HEADERS[case]
    for mark, words in {"{line}": "the line `{plain}`", "{plain}": PLAIN, "{box}": BOX}.items():
        expected = expected.replace(mark, words)
    assert refused(written(tmp_path, *lines)) == [expected]


ROWS: dict[str, tuple[str | bytes, str]] = {
    "no image": (",dog,0,1,0,1", "has no ImageID; add it"),
    "no label": ("a,,0,1,0,1", "has no LabelName; add it"),
    "a control character": (
        "a,d\x1bg,0,1,0,1",
        r"LabelName contains control character '\x1b'; remove it",
    ),
    "too few": (
        "a,dog,0,1,0",
        "has 5 columns, expected 6; write as many as the header has; {commas}",
    ),
    "bare commas": (
        "a,dog,0,25,0,5,0,1,1",
        "has 9 columns, expected 6; write as many as the header has; {commas}",
    ),
    "a comma among points": (
        'a,dog,"0,25",.5,0,1',
        "XMin '0,25' has a decimal comma, but others have a point; write every number of the "
        "file with a point",
    ),
    "two commas": ('a,dog,"0,2,5",1,0,1', "XMin '0,2,5' {mixed}"),
    "nan": ("a,dog,nan,1,0,1", f"XMin 'nan' is not a finite number; {DECIMAL}"),
    "underscore": ("a,dog,.2_63,1,0,1", f"XMin '.2_63' is not a number; {DECIMAL}"),
    "empty number": ("a,dog,0,1,0,", f"YMax '' is empty, expected a number; {DECIMAL}"),
    "pixels": (
        "a,dog,0,1,0,375",
        "YMax '375' is outside [0, 1]; write pixels divided by the height; or pass as_is=True "
        "(--as-is)",
    ),
    "below zero": (
        "a,dog,-.02,1,0,1",
        "XMin '-.02' is outside [0, 1]; write pixels divided by the width; or pass as_is=True "
        "(--as-is)",
    ),
    "not UTF-8": (b"a,d\xffg,0,1,0,1", "0xff is not UTF-8; save it as UTF-8"),
    "open quotes": ('a,"dog,0,1,0,1', "invalid CSV: unexpected end of data; correct the line"),
    "quotes inside": (
        'a,"d"og,0,1,0,1',
        "invalid CSV: ',' expected after '\"'; correct the line",
    ),
}


@pytest.mark.parametrize("case", ROWS)
def test_bad_rows(tmp_path: Path, case: str) -> None:
    line, expected = ROWS[case]
    expected = expected.replace("{commas}", "quote decimal commas")
    mixed = "has a decimal comma, but others have a point; write every number of the file with"
    expected = expected.replace("{mixed}", f"{mixed} a point")
    assert refused(written(tmp_path, PLAIN, BOX, "", line)) == [f"line 4: {expected}"]


def test_an_invalid_group_flag(tmp_path: Path) -> None:
    lines = ("a,,dog,1,0,1,0,1,0,2", "a,,dog,1,0,1,0,1,0,true")
    assert refused(written(tmp_path, FULL, *lines)) == [
        "line 2: IsGroupOf is '2'; expected 1, 0, or -1 for unknown",
        "line 3: IsGroupOf is 'true'; expected 1, 0, or -1 for unknown",
    ]


def test_a_field_over_several_lines(tmp_path: Path) -> None:
    path = written(tmp_path, PLAIN, BOX, '"a', 'b",dog,0,1,0,1')
    message = "invalid CSV: unexpected end of data; correct the line"
    assert refused(path) == [f"line 3: {message}"]


def test_scores_are_any_finite_numbers(tmp_path: Path) -> None:
    lines = ("a,dog,-7.5,0,1,0,1", "a,dog,inf,0,1,0,1", "a,dog,1,-1,2,0,2.5")
    path = written(tmp_path, SCORED, *lines)
    assert refused_detections(path) == [
        f"line 3: Score 'inf' is not a finite number; {DECIMAL}",
        "line 4: YMax '2.5' is outside [0, 1]; write pixels divided by the "
        "height; or pass as_is=True (--as-is)",
    ]


def test_images_of_equal_stems(tmp_path: Path) -> None:
    path = written(tmp_path, PLAIN, BOX, "a.jpg,dog,0,1,0,1", "a.png,dog,0,1,0,1")
    assert refused(path) == [
        "line 4: image 'a.png' and 'a.jpg' differ only in the suffix; rename one of them"
    ]


def test_negative_sizes(tmp_path: Path) -> None:
    lines = [f"a,dog,.{n}1,.9,.{n}2,.9" for n in range(8)] * 3
    lines[4] = "a,dog,.5,.4,.1,.2"
    lines[5] = "a,dog,.4,.5,.2,.2"  # of no height, which is not negative
    path = written(tmp_path, PLAIN, *lines)
    note = next(n for n in read_ground_truth(path).notes if n.code.endswith("negative-size"))
    assert f"{path}: line 6: XMax = 0.4 is less than XMin = 0.5" in note.message
    path = written(tmp_path, PLAIN, "a,dog,.5,.4,.1,.2", "a,dog,.5,.4,.3,.2")
    assert refused(path) == [
        "2 of 2 boxes have negative width or height; correct the boxes, or pass as_is=True "
        f"(--as-is) {INSIST}",
        "line 2: XMax = 0.4 is less than XMin = 0.5; correct the boxes",
        "line 3: XMax = 0.4 is less than XMin = 0.5; correct the boxes",
    ]
    assert len(read_ground_truth(path, as_is=True)) == 2


def test_a_line_that_is_too_long(tmp_path: Path) -> None:
    long = written(tmp_path, PLAIN, BOX, "a" * (3 << 20))
    assert refused(long) == ["line 3: is longer than 1048576 bytes; write one row per line"]


# --- the scanner, which fuzz.targets compares with the fallback reader


def test_lines_may_cross_block_borders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block of the fallback reader lies between others, and blocks end inside lines."""
    from detap.io import stream

    lines = [f"im{n % 7},dog {n % 3},0.{n:03},0.9,0.{n:03},0.95" for n in range(200)]
    lines[90] = 'im"90",dog,0,"1",0,1'
    lines[91] = ""
    whole = Rows(written(tmp_path, PLAIN, *lines), FORM, check=False)
    read = stream.Stream.read
    monkeypatch.setattr(stream.Stream, "read", lambda self: read(self, 37))
    parts = Rows(written(tmp_path, PLAIN, *lines), FORM, check=False)
    assert len(parts) == 199
    assert parts.line[[0, 89, 90, 91, 198]].tolist() == [2, 91, 92, 94, 201]
    assert parts.corners.tobytes() == whole.corners.tobytes()
    assert [parts.images[n] for n in parts.image] == [whole.images[n] for n in whole.image]


# --- the scanner, line by line


SIX = [-2, -3, 0, 1, 2, 3]
"""Columns: image, label and box."""


@pytest.mark.parametrize(
    ("columns", "line", "regular"),
    [
        (SIX, b"a,b,0,1,0.5,0\n", True), (SIX, b"a,b,0,1,0.5,0\r\n", True),
        (SIX, b"a,b,0,1,0.5,0", True), (SIX, b"a,b,0,1,0.5,0\r\r\n", False),
        (SIX, b"a,b,0,1,0.5\n", False), (SIX, b"a,b,0,1,0.5,0,1\n", False),
        (SIX, b"a,b,0,1,0.5,0 \n", False), (SIX, b"a,b,0;1,0.5,0\n", False),
        (SIX, b"a,b,0,1.01,0.5,0\n", False), (SIX, b"a,b,-0.01,1,0.5,0\n", False),
        (SIX, b",b,0,1,0.5,0\n", False), (SIX, b"a,,0,1,0.5,0\n", False),
        (SIX, b" a,b,0,1,0.5,0\n", False), (SIX, b"a ,b c,0,1,0.5,0\n", True),
        (SIX, b'a"c,b,0,1,0.5,0\n', False), (SIX, b"\xc3\xa9,b,0,1,0.5,0\n", False),
        (SIX, b"a\x7f,b,0,1,0.5,0\n", False), (SIX, b"a\tc,b,0,1,0.5,0\n", False),
        (SIX, b"a,b,0,1,0.5,nan\n", False), (SIX, b"a;b,0,1,0.5,0\n", False), (SIX, b"", True),
        ([-2, -3, 1, 2, 3, 4], b"a,b,0,1,0.5,2\n", False),
        ([-2, -3, 1, 2, 3, 4], b"a,b,2,1,0.5,0\n", False),
        ([-2, -3, 0, 1, 2, 3, 4], b"a,b,7,0,1,0,1\n", True),
        ([-2, -3, 0, 1, 2, 3, 4], b"a,b,0,7,1,0,1\n", False),
        ([-1, *SIX, -1], b" x,a,b,0,1,0.5,0, \n", True),
        ([-1, *SIX], b'"x",a,b,0,1,0.5,0\n', False),
        ([*SIX, *[-1] * 300], b"a,b,0,1,0.5,0" + b"," * 300 + b"\n", True),
        ([*SIX, -4], b"a,b,0,1,0.5,0,2\n", False), ([*SIX, -4], b"a,b,0,1,0.5,0,-2\n", False),
        ([*SIX, -4], b"a,b,0,1,0.5,0,11\n", False), ([*SIX, -4], b"a,b,0,1,0.5,0,-1\n", True),
        ([*SIX, -4], b"a,b,0,1,0.5,0,+1\n", False), ([*SIX, -4], b"a,b,0,1,0.5,0, \n", False),
    ],
)  # fmt: skip
def test_lines_of_open_images(columns: list[int], line: bytes, regular: bool) -> None:
    odd: list[tuple[int, bytes]] = []
    scanner = Scanner(lambda *line: odd.append(line), 0.0, 1.0)
    numbers = 5 if 4 in columns else 4
    scanner.expect(columns, numbers)
    first = b",".join(b"0" if column > -4 else b"" for column in columns) + b"\n"
    scanner.read(first + line)
    assert odd == ([] if regular else [(2, line.removesuffix(b"\n"))])
    rows = 1 + (regular and line != b"")  # an irregular line leaves nothing
    columns_ = scanner.columns()
    assert (columns_[1].tolist(), len(columns_[5])) == ([1, 2][:rows], rows * numbers)


def test_rows_of_open_images_by_hand() -> None:
    rows = {1: None, 9: (b"i2", b"e", [0.5, 1, 2, 3], 2)}
    scanner: Any = Scanner(lambda number, _: rows[number], 0.0, 1.0)
    scanner.read(b"the columns are not known yet\n")
    scanner.expect([-2, -1, -3, 0, 1, 2, 3, -4], 4)
    scanner.read(b"i.1,z,c,0,1,0,1,-1\ni2,z,c,1,0,1,0,0\n")
    assert not scanner.points  # the point of a name is none of a number
    scanner.read(b"i2,z,d,0.25,1,0,1,1\n")
    assert scanner.points
    scanner.read(b"i3,z,d,0,1,0,1,\n")
    assert scanner.points
    scanner.points, scanner.commas = False, True
    scanner.read(b"i3,z,d,0,1,0,1,\n")
    rows[7] = rows[8] = None
    scanner.read(b"i3,z,d,0.1,1,0,1,\ni3,z,d,0,1,0,.1,\nodd\n")
    assert not scanner.points
    assert (len(scanner), scanner.line) == (6, 9)
    image, line, label, group, _, numbers, words = scanner.columns()
    assert [words[n] for n in image] == [b"i.1", b"i2", b"i2", b"i3", b"i3", b"i2"]
    assert [words[n] for n in label] == [b"c", b"c", b"d", b"d", b"d", b"e"]
    assert line.tolist() == [2, 3, 4, 5, 6, 9]
    assert group.tolist() == [2, 0, 1, 0, 0, 2]
    expected = [[0, 1, 0, 1], [1, 0, 1, 0], [0.25, 1, 0, 1], *[[0, 1, 0, 1]] * 2, [0.5, 1, 2, 3]]
    assert numbers.reshape(-1, 4).tolist() == expected
    assert len(scanner) == 0
