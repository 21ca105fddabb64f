"""Invalid VOC files: each message has file, location, value and hint."""

import os
from pathlib import Path
from typing import Any

import pytest

from detap.errors import InputError
from detap.formats.voc.tables import read_detections, read_ground_truth
from detap.io.limits import Limits
from detap.tables.detection import GroundTruth
from detap.tables.notes import SAME_IMAGES
from tests.formats.voc_files import item, problems_of, tree, write, xml
from tests.raised import raised

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
HTML = "<!DOCTYPE html>\n<html><head><title>404</title></head></html>\n"
DUE = "write `image score x1 y1 x2 y2`"
INSIST = "or pass as_is=True (--as-is) to count them as boxes that overlap nothing"


def refused_truth(folder: Path, **options: Any) -> list[str]:
    return problems_of(raised(InputError, read_ground_truth, folder, **options), folder)


def refused_xml(folder: Path, content: str | bytes) -> list[str]:
    problems = refused_truth(tree(folder, {"a": content}))
    for problem in problems:
        assert problem.startswith("Annotations/a.xml: ")
    return [problem.removeprefix("Annotations/a.xml: ") for problem in problems]


def whole(inner: str) -> str:
    return f"<annotation><object>{inner}</object></annotation>"


BOX = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox>"

OBJECTS = {
    "empty name": (xml(item(" ")), "object 1, line 3: empty name; write the name of its class"),
    "two names": (
        whole(f"<name>a</name><name>a</name>{BOX}"),
        "object 1, line 1: has 2 elements <name>; keep one",
    ),
    "element in the name": (
        whole(f"<name>a<b/></name>{BOX}"),
        "object 1, line 1: has elements inside <name>; write only text there",
    ),
    "box of a part only": (
        whole(f"<name>a</name><part>{BOX}</part>"),
        "object 1, line 1: has no bndbox; add <bndbox>",
    ),
    "an empty corner": (
        xml(item(box=(10, 20, 30, " "))),
        "object 1, line 3: ymax '' is empty, expected a number; use a decimal number",
    ),
    "y turned": (
        xml(item(box=(10, 40, 30, 20.5))),
        f"object 1: ymax = 20.5 is less than ymin = 40; correct the boxes, {INSIST}",
    ),
    "area overflows": (
        xml(item(box=(0, 0, "1e200", "1e200"))),
        "object 1, line 3: box area overflows; correct the box",
    ),
}

NUMBERS = {
    "2_63": "is not a number; use a decimal number",
    "\N{FULLWIDTH DIGIT ONE}2": "is not a number; use a decimal number",
    "nan": "is not a finite number; use a decimal number",
    "-Infinity": "is not a finite number; use a decimal number",
    "0x10": "is not a number; use a decimal number",
    "1,5": "is not a number (use a decimal point, not a comma); use a decimal number",
    "1e999": "is too large for a number; use a decimal number",
    "1" * 401: "is too large for a number; use a decimal number",
    "1e": "is not a number; use a decimal number",
    ".": "is not a number; use a decimal number",
    "--1": "is not a number; use a decimal number",
    "1.0.0": "is not a number; use a decimal number",
    "None": "is not a number; use a decimal number",
    "1\N{ARABIC-INDIC DIGIT TWO}": "is not a number; use a decimal number",
}


def quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


@pytest.mark.parametrize(("text", "fault"), NUMBERS.items(), ids=[n[:12] for n in NUMBERS])
def test_numbers_in_xml(tmp_path: Path, text: str, fault: str) -> None:
    expected = f"object 2, line 4: xmin {quoted(text)} {fault}"
    assert refused_xml(tmp_path, xml(item(), item(box=(text, 20, 30, 40)))) == [expected]


def test_each_invalid_corner_is_named(tmp_path: Path) -> None:
    box = "<bndbox><ymin>2</ymin><xmax>x</xmax></bndbox>"
    problems = refused_xml(tmp_path, whole(f"<name>a</name>{box}"))
    assert len(problems) == 3
    for problem, corner in zip(problems, ("xmin", "xmax", "ymax"), strict=True):
        assert corner in problem


NO_ANNOTATIONS = {
    "html": (HTML, "contains a DOCTYPE, which is not allowed; remove it"),
    "xhtml": (
        "<html><head/></html>",
        "not a VOC annotation: the root is <html> (an HTML page?); expected <annotation>",
    ),
    "broken html": (
        "<!doctype html><html><br></html>",
        "looks like an HTML page; expected an XML annotation",
    ),
    "cvat": (
        "<annotations><image><box/></image></annotations>",
        "not a VOC annotation: the root is <annotations>; expected <annotation>",
    ),
    "upper case": (
        "<annotation>\n<Object/></annotation>",
        "line 2: unexpected element <Object>; write <object>",
    ),
}


@pytest.mark.parametrize("name", [*OBJECTS, *NO_ANNOTATIONS])
def test_annotations(tmp_path: Path, name: str) -> None:
    content, message = (OBJECTS | NO_ANNOTATIONS)[name]
    assert refused_xml(tmp_path, content) == [message]


BROKEN = {
    "cut": xml(item())[:-20],
    "tags crossed": "<annotation><a><b></a></b></annotation>",
    "two roots": xml(item()) * 2,
    "text behind": xml(item()) + "x",
    "bare ampersand": xml(item("a & b")),
    "unknown entity": xml(item("&nbsp;")),
    "not UTF-8": xml(item("x")).encode().replace(b">x<", b">\xe9<"),
    "unknown encoding": '<?xml version="1.0" encoding="klingon"?>' + xml(item()),
    "control character": xml(item("a\x01")),
    "NUL": xml(item()).replace("dog", "d\0g"),
    "attribute twice": xml(item()).replace("<size>", '<size a="1" a="2">'),
    "attribute bare": xml(item()).replace("<size>", "<size a=1>"),
    "attributes joined": xml(item()).replace("<size>", '<size a="1"b="2">'),
    "less-than in attribute": xml(item()).replace("<size>", '<size a="<">'),
    "]]>": xml(item()).replace("<size>", "]]><size>"),
    "blank before the declaration": ' <?xml version="1.0"?>' + xml(item()),
    "prefix without namespace": xml(item()).replace("<size>", "<a:b/><size>"),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_broken_xml(tmp_path: Path, content: str | bytes) -> None:
    (message,) = refused_xml(tmp_path, content)
    assert "invalid XML: " in message
    assert message.endswith("; correct it")


def test_all_problems_up_to_the_limit(tmp_path: Path) -> None:
    wrong = item(box=(3, 2, float("nan"), 4), difficult="x")
    tree(tmp_path, {"a": xml(item(), wrong), "b": xml(wrong), "c": xml(item(), item(""))})
    not_finite = "xmax 'nan' is not a finite number; use a decimal number"
    assert refused_truth(tmp_path) == [
        "Annotations/a.xml: object 2, line 4: difficult is 'x'; use 0 or 1",
        f"Annotations/a.xml: object 2, line 4: {not_finite}",
        "Annotations/b.xml: object 1, line 3: difficult is 'x'; use 0 or 1",
        f"Annotations/b.xml: object 1, line 3: {not_finite}",
        "Annotations/c.xml: object 2, line 4: empty name; write the name of its class",
    ]
    error = raised(InputError, read_ground_truth, tmp_path, limits=Limits(problems=2))
    assert len(error.problems) == 2
    assert error.omitted == 3
    assert str(error).endswith("\n... and 3 more")


# --- folders and image sets ---------------------------------------------------------------------


def test_empty_folders(tmp_path: Path) -> None:
    give = "use the folder with the files, or the one with Annotations"
    (tmp_path / "empty").mkdir()
    tree(tmp_path / "bare", {})
    (tmp_path / "bare" / "Annotations").mkdir(parents=True)
    write(tmp_path / "bare" / "Annotations", {"a.txt": "dog 1 2 3 4"})
    tree(tmp_path / "none", {"a": xml(), "b": xml()})
    assert problems_of(raised(InputError, read_ground_truth, tmp_path / "empty"), tmp_path) == [
        f"empty: no annotations: no file ends with .xml or .txt; {give}"
    ]
    assert problems_of(raised(InputError, read_ground_truth, tmp_path / "bare"), tmp_path) == [
        f"bare/Annotations: no annotations: no file ends with .xml; {give}"
    ]
    assert problems_of(raised(InputError, read_ground_truth, tmp_path / "none"), tmp_path) == [
        "none: no objects in its 2 annotation files; use the annotations that belong to these "
        "detections"
    ]


def test_paths_that_are_not_folders(tmp_path: Path) -> None:
    file = write(tmp_path, {"a.xml": xml(item())}) / "a.xml"
    for path, message in (
        (file, "not a folder; use the folder that contains the files"),
        ("a\0b", "invalid path: contains a NUL character"),
    ):
        with pytest.raises(InputError, match=message):
            read_ground_truth(path)


def test_two_files_of_an_image(tmp_path: Path) -> None:
    write(tmp_path, {"a.xml": xml(item()), "a.XML": xml(item())})
    if len(os.listdir(tmp_path)) < 2:
        pytest.skip("the file system does not tell upper from lower case")
    (message,) = refused_truth(tmp_path)
    assert "belong to the same image; keep one of them" in message


def test_image_sets(tmp_path: Path) -> None:
    tree(tmp_path, {"a": xml(item())}, test=["a", "b", "a.jpg", "x/a.xml", "a 2", "a 1 1"], none=[])
    at = "ImageSets/Main/test.txt: line"
    assert refused_truth(tmp_path, image_set="test") == [
        f"{at} 2: image 'b' has no .xml file in Annotations; remove it from the list, or add the "
        f"file",
        f"{at} 3: image 'a.jpg' has no .xml file in Annotations; remove folder and suffix from "
        f"the name",
        f"{at} 4: image 'x/a.xml' has no .xml file in Annotations; remove folder and suffix from "
        f"the name",
        f"{at} 5: 'a 2' is not an image name, optionally followed by -1, 0 or 1; write one image "
        f"per line",
        f"{at} 6: 'a 1 1' is not an image name, optionally followed by -1, 0 or 1; write one "
        f"image per line",
    ]
    assert refused_truth(tmp_path, image_set="none") == [
        "ImageSets/Main/none.txt: no images; list one image per line"
    ]
    assert refused_truth(tmp_path, image_set="val") == [
        "val: no such image set: neither it nor ImageSets/Main/val.txt exists; use a file, or the "
        "name of a set in ImageSets/Main"
    ]
    assert refused_truth(tmp_path, image_set="./none.txt") == [
        "./none.txt: no such file or directory"
    ]
    write(tmp_path, {"lfs.txt": LFS, "bad.txt": b"a\n\xff\n\x07\n"})
    assert refused_truth(tmp_path, image_set=str(tmp_path / "lfs.txt")) == [
        "lfs.txt: looks like a Git LFS pointer; expected one name per line"
    ]
    assert refused_truth(tmp_path, image_set=str(tmp_path / "bad.txt")) == [
        r"bad.txt: line 2: b'\xff' is not UTF-8; save it as UTF-8",
        r"bad.txt: line 3: contains control character '\x07'; remove it",
    ]


def test_lists_of_class_names(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "gt/a.txt": "7 1 2 3 4",
            "few": "cat\ndog\n",
            "twice": "a\nb\na\n",
            "gap": "a\n\nb\n",
            "none": "",
        },
    )

    def refused(names: str) -> list[str]:
        error = raised(InputError, read_ground_truth, tmp_path / "gt", class_names=tmp_path / names)
        return problems_of(error, tmp_path)

    assert refused("few") == [
        "gt/a.txt: line 1: class '7' is not in few, which has 2 classes; check the list; classes "
        "are numbered from 0"
    ]
    assert refused("twice") == [
        "twice: line 3: duplicate class 'a' (also at line 1); list each class once"
    ]
    assert refused("gap") == [
        "gap: line 2: is blank, which would shift the class numbers; remove it"
    ]
    assert refused("none") == ["none: no class names; list one class per line"]


# --- text ---------------------------------------------------------------------------------------


@pytest.fixture
def truth(tmp_path: Path) -> GroundTruth:
    images = {"a": xml(item()), "b": xml(item("cat")), "c": xml(item())}
    return read_ground_truth(tree(tmp_path / "truth", images, few=["a", "b"]), image_set="few")


def refused_lines(folder: Path, truth: GroundTruth, *lines: str | bytes) -> list[str]:
    content = b"".join((x.encode() if isinstance(x, str) else x) + b"\n" for x in lines)
    write(folder / "dt", {"comp4_det_test_dog.txt": content})
    problems = problems_of(raised(InputError, read_detections, folder / "dt", truth), folder / "dt")
    return [problem.removeprefix("comp4_det_test_dog.txt: ") for problem in problems]


FINE = "a .5 1 2 3 4"

SWAPPED = "use x1 y1 x2 y2, or boxes='xywh' (--dt-boxes xywh) if these are x, y, width and height"

LINES = {
    "semicolon": ("a;1 2 3 4 5 6 7", f"has 7 columns, expected 6; {DUE}, separated by spaces"),
    "word for a score": ("a high 1 2 3 4", "score 'high' is not a number; use a decimal number"),
    "too few and no score": ("a x 2 3 4", "x1 'x' is not a number; use a decimal number"),
    "61 letters": (
        f"a .5 1 2 3 {'x' * 61}",
        f"y2 '{'x' * 57}...' is not a number; use a decimal number",
    ),
    "y turned": ("a .5 1 4 3 2", f"y2 = 2 is less than y1 = 4; {SWAPPED}, {INSIST}"),
    "side overflows": ("a .5 -1e308 0 1e308 1", "box area overflows; correct the box"),
    "image with suffix": (
        "img/a.jpg .5 1 2 3 4",
        "image 'img/a.jpg' is not in the ground truth; remove folder and suffix from the name",
    ),
    "control character": ("a .5 1 2 3 4\x1b[31m", r"contains control character '\x1b'; remove it"),
    "lone carriage return": (
        "a .5 1 2 3 4\ra .5 1 2 3 4",
        r"contains control character '\r'; remove it",
    ),
    "not UTF-8": (b"\xe9 .5 1 2 3 4", r"b'\xe9 .5 1 2 3 4' is not UTF-8; save it as UTF-8"),
    "Unicode blank": ("a .5 1 2 3\u00a04", "y2 '3\\xa04' is not a number; use a decimal number"),
}


@pytest.mark.parametrize(("line", "message"), LINES.values(), ids=LINES)
def test_lines(tmp_path: Path, truth: GroundTruth, line: str | bytes, message: str) -> None:
    assert refused_lines(tmp_path, truth, FINE, "", line, FINE) == [f"line 3: {message}"]


@pytest.mark.parametrize(("text", "fault"), NUMBERS.items(), ids=[n[:12] for n in NUMBERS])
def test_numbers_in_lines(tmp_path: Path, truth: GroundTruth, text: str, fault: str) -> None:
    for column, name in ((1, "score"), (2, "x1"), (5, "y2")):
        columns = FINE.split()
        columns[column] = text
        expected = [f"line 2: {name} {quoted(text)} {fault}"]
        assert refused_lines(tmp_path, truth, FINE, " ".join(columns)) == expected


def test_no_image_in_common(tmp_path: Path, truth: GroundTruth) -> None:
    lead, *rest = refused_lines(tmp_path, truth, *(f"{n} .5 1 2 3 4" for n in range(30)))
    assert lead == (
        f"{tmp_path}/dt: no image in common with the ground truth (here: '0', '1', "
        "'2', ...; ground truth: 'a', 'b'); use results for the same images"
    )
    assert rest == [
        "line 1: image '0' is not in the ground truth (30 detections of 30 such images); "
        + SAME_IMAGES
    ]
    write(tmp_path / "images", {"0001.txt": "dog .5 1 2 3 4", "0002.txt": "dog .5 1 2 3 4"})
    with pytest.raises(InputError, match=r"\(here: '0001', '0002'; ground truth: "):
        read_detections(tmp_path / "images", truth)


def test_xywh_instead_of_xyxy(tmp_path: Path, truth: GroundTruth) -> None:
    lead, *rest = refused_lines(tmp_path, truth, *["a .5 100 200 30 40"] * 3, FINE)
    assert lead == (
        f"{tmp_path}/dt: 3 of 4 boxes have negative width or height: they look like x, "
        "y, width and height; first: comp4_det_test_dog.txt: line 1: x2 = 30 is less than x1 = "
        f"100; {SWAPPED}, {INSIST}"
    )
    assert not rest
    write(tmp_path / "gt", {"a.txt": "dog 100 200 30 40\n" * 3})
    with pytest.raises(InputError, match="3 of 3 boxes have negative width or height"):
        read_ground_truth(tmp_path / "gt")


XYWH = {
    "negative height": ("dog 1 2 3 -.5", f"height -0.5 is negative; correct the boxes, {INSIST}"),
    "far corner": ("dog 1e308 2 1e308 0", "box corner overflows; correct the box"),
    "area": ("dog 1 2 1e200 1e200", "box area overflows; correct the box"),
    "detections": (
        "dog .5 1 2 3 4",
        "has 6 columns, expected 5: has a score (detections?); write `class x y width height "
        "[difficult]`",
    ),
    "two words": (
        "traffic light 1 2 3 4",
        "the class 'traffic light' has spaces, which separate the columns; write "
        "traffic_light in both inputs, or numbers with --class-names",
    ),
    "another word": (
        "dog 1 2 3 4 hard",
        "has 6 columns, expected 5; write `class x y width height [difficult]`",
    ),
}


@pytest.mark.parametrize(("line", "message"), XYWH.values(), ids=XYWH)
def test_lines_of_ground_truth(tmp_path: Path, line: str, message: str) -> None:
    write(tmp_path, {"a.txt": f"dog 1 2 3 4\n{line}\n"})
    assert refused_truth(tmp_path, boxes="xywh") == [f"a.txt: line 2: {message}"]


def test_fewer_than_one_object_in_twenty_may_have_a_negative_size(tmp_path: Path) -> None:
    wrong = item(box=(30, 20, 10, 40))
    tree(tmp_path, {"a": xml(item(), wrong), "b": xml(*[item()] * 19)})
    (note,) = [n for n in read_ground_truth(tmp_path).notes if "negative" in n.code]
    assert (
        f"{tmp_path}/Annotations/a.xml: object 2: xmax = 10 is less than xmin = 30" in note.message
    )
    assert "can never be matched" in note.message


def test_files_that_are_not_detections(tmp_path: Path, truth: GroundTruth) -> None:
    (tmp_path / "empty").mkdir()
    for path, message in (
        (tmp_path / "empty", "no file ends with .txt; use the folder with the files"),
        (tmp_path / "truth" / "Annotations", ".xml files are ground truth"),
        ("a\0b", "invalid path: contains a NUL character"),
        ("-", "<stdin>: cannot provide VOC detections: file names are needed"),
    ):
        with pytest.raises(InputError, match=message):
            read_detections(path, truth)


def test_no_class_in_common(tmp_path: Path, truth: GroundTruth) -> None:
    numbers = write(tmp_path / "numbers", {"a.txt": "0 .5 1 2 3 4\n14 .5 1 2 3 4\n"})
    words = write(tmp_path / "words", {"a.txt": "Cat .5 1 2 3 4\n"})
    assert problems_of(raised(InputError, read_detections, numbers, truth), tmp_path) == [
        "numbers: no class in common with the ground truth (here: '0', '14'; ground truth: 'cat', "
        "'dog'); pass --dt-class-names FILE; for YOLO text files use --dt-format yolo; if the "
        "classes are right, pass as_is=True (--as-is)"
    ]
    birds = write(tmp_path / "birds", {"a.txt": "bird .5 1 2 3 4\n"})
    with pytest.raises(InputError, match=r"\(here: 'bird'; .* use results for the same classes"):
        read_detections(birds, truth)
    with pytest.raises(InputError, match=r"\(here: 'Cat'; .* the line dt = { \"Cat\" = \"cat\" }"):
        read_detections(words, truth)
    assert read_detections(words, truth, as_is=True).classes == ("cat", "dog", "Cat")


def test_a_class_that_is_ambiguous(tmp_path: Path) -> None:
    items = [item("light"), item("traffic_light"), item("my_traffic_light")]
    truth = read_ground_truth(tree(tmp_path / "truth", {"a": xml(*items)}))
    write(tmp_path / "dt", {"our_traffic_light.txt": FINE})
    error = raised(InputError, read_detections, tmp_path / "dt", truth)
    assert problems_of(error, tmp_path / "dt") == [
        "our_traffic_light.txt: the class may be 'traffic_light' or 'light'; rename it to "
        "..._det_<set>_<class>.txt"
    ]


def test_ground_truth_that_numbers_its_images(tmp_path: Path) -> None:
    truth = GroundTruth.from_arrays(image=[1], label=["dog"], boxes=[[1, 2, 3, 4]])
    write(tmp_path, {"comp4_det_test_dog.txt": "1 .5 1 2 3 4"})
    with pytest.raises(InputError, match="has image names, but the ground truth has image numbers"):
        read_detections(tmp_path, truth)


@pytest.mark.parametrize("boxes", ["xyxy", "xywh"])
def test_a_score_in_the_last_column_is_named(
    tmp_path: Path, truth: GroundTruth, boxes: str
) -> None:
    """`class x1 y1 x2 y2 score`: read as it is, no box overlaps anything."""
    write(tmp_path / "dt", {"a.txt": "dog 10 20 30 40 0.9\ndog 12 21 31 44 0.25\n"})
    sides = "x1 y1 x2 y2" if boxes == "xyxy" else "x y width height"
    error = raised(InputError, read_detections, tmp_path / "dt", truth, boxes=boxes)
    assert problems_of(error, tmp_path / "dt") == [
        f"{tmp_path / 'dt'}: the last column looks like the score: its values are within 0 and 1, "
        f"e.g. 0.9; the column after the class has 10; write `class score {sides}`, or pass "
        f"as_is=True (--as-is) if that is the order"
    ]
    detections = read_detections(tmp_path / "dt", truth, boxes=boxes, as_is=True)
    assert detections.score.tolist() == [10, 12]


def test_scores_in_percent_are_not_taken_for_another_column(
    tmp_path: Path, truth: GroundTruth
) -> None:
    write(tmp_path / "dt", {"a.txt": "dog 90 10.5 20.5 30.5 40.5\ndog 25 0.5 0.5 0.75 0.75\n"})
    assert len(read_detections(tmp_path / "dt", truth)) == 2
