"""Wrong VOC files: each gets a message with the file, the place, the value and the remedy."""

import os
import pickle
import socket
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from detap.errors import InputError
from detap.formats.voc.tables import read_detections, read_ground_truth
from detap.io.limits import Limits
from detap.tables.detection import GroundTruth
from tests.formats.voc_files import item, problems_of, tree, write, xml

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
HTML = "<!DOCTYPE html>\n<html><head><title>404</title></head></html>\n"
MERGE = "<<<<<<< HEAD\ndog .5 1 2 3 4\n=======\n>>>>>>> theirs\n"
DUE = "write `image score x1 y1 x2 y2`"
INSIST = "or give as_is=True (--as-is), and they count as boxes that overlap nothing"


def refused_truth(folder: Path, **options: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_ground_truth(folder, **options)
    return problems_of(caught.value, folder)


def refused_xml(folder: Path, content: str | bytes) -> list[str]:
    """Return the problems of one annotation, without its path."""
    problems = refused_truth(tree(folder, {"a": content}))
    for problem in problems:
        assert problem.startswith("Annotations/a.xml: ")
    return [problem.removeprefix("Annotations/a.xml: ") for problem in problems]


def whole(inner: str) -> str:
    return f"<annotation><object>{inner}</object></annotation>"


BOX = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox>"

OBJECTS = {
    "no name": (whole(BOX), "object 1, line 1: has no name; add <name>"),
    "empty name": (item(" "), "object 1, line 3: has an empty name; name its class"),
    "two names": (
        whole(f"<name>a</name><name>a</name>{BOX}"),
        "object 1, line 1: has 2 elements <name>; keep one",
    ),
    "element in the name": (
        whole(f"<name>a<b/></name>{BOX}"),
        "object 1, line 1: has elements inside <name>; write text alone there",
    ),
    "no box": (whole("<name>a</name>"), "object 1, line 1: has no bndbox; add <bndbox>"),
    "box of a part only": (
        whole(f"<name>a</name><part>{BOX}</part>"),
        "object 1, line 1: has no bndbox; add <bndbox>",
    ),
    "two boxes": (
        whole(f"<name>a</name>{BOX}{BOX}"),
        "object 1, line 1: has 2 elements <bndbox>; keep one",
    ),
    "corner missing": (
        whole(f"<name>a</name>{BOX.replace('<xmin>1</xmin>', '')}"),
        "object 1, line 1: has no xmin; add <xmin>",
    ),
    "corner twice": (
        whole(f"<name>a</name>{BOX.replace('<xmin>', '<xmin>1</xmin><xmin>')}"),
        "object 1, line 1: has 2 elements <xmin>; keep one",
    ),
    "difficult 2": (
        item(difficult="2"),
        "object 1, line 3: difficult is '2'; it must be 0 or 1",
    ),
    "difficult empty": (
        item(difficult=""),
        "object 1, line 3: difficult is ''; it must be 0 or 1",
    ),
    "difficult true": (
        item(difficult="true"),
        "object 1, line 3: difficult is 'true'; it must be 0 or 1",
    ),
    "truncated a fraction": (
        item(more="<truncated>0.4</truncated>"),
        "object 1, line 3: truncated is '0.4'; it must be 0 or 1",
    ),
    "occluded false": (
        item(more="<occluded>False</occluded>"),
        "object 1, line 3: occluded is 'False'; it must be 0 or 1",
    ),
    "occluded twice": (
        item(more="<occluded>0</occluded><occluded>0</occluded>"),
        "object 1, line 3: has 2 elements <occluded>; keep one",
    ),
    "x turned": (
        item(box=(30, 20, 10, 40)),
        f"object 1: xmax = 10 is less than xmin = 30; correct the boxes; {INSIST}",
    ),
    "y turned": (
        item(box=(10, 40, 30, 20.5)),
        f"object 1: ymax = 20.5 is less than ymin = 40; correct the boxes; {INSIST}",
    ),
    "area overflows": (
        item(box=(0, 0, "1e200", "1e200")),
        "object 1, line 3: the area of the box overflows; correct the box",
    ),
}

NUMBERS = {
    "2_63": "is not a number; give a decimal number",
    "\N{FULLWIDTH DIGIT ONE}2": "is not a number; give a decimal number",
    "nan": "is not a finite number; give a decimal number",
    "-Infinity": "is not a finite number; give a decimal number",
    "0x10": "is not a number; give a decimal number",
    "1,5": "is not a number (a point is due, not a comma); give a decimal number",
    "1e999": "is too large for a number; give a decimal number",
    "1" * 401: "is too large for a number; give a decimal number",
    "1e": "is not a number; give a decimal number",
    ".": "is not a number; give a decimal number",
    "--1": "is not a number; give a decimal number",
    "1.0.0": "is not a number; give a decimal number",
    "None": "is not a number; give a decimal number",
    "1\N{ARABIC-INDIC DIGIT TWO}": "is not a number; give a decimal number",
}


def quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


@pytest.mark.parametrize(("content", "message"), OBJECTS.values(), ids=OBJECTS)
def test_objects(tmp_path: Path, content: str, message: str) -> None:
    assert refused_xml(tmp_path, content if "<annotation" in content else xml(content)) == [message]


@pytest.mark.parametrize(("text", "fault"), NUMBERS.items(), ids=[n[:12] for n in NUMBERS])
def test_numbers_in_xml(tmp_path: Path, text: str, fault: str) -> None:
    due = f"object 2, line 4: xmin {quoted(text)} {fault}"
    assert refused_xml(tmp_path, xml(item(), item(box=(text, 20, 30, 40)))) == [due]


def test_an_empty_corner(tmp_path: Path) -> None:
    due = "object 1, line 3: ymax '' is empty where a number is due; give a decimal number"
    assert refused_xml(tmp_path, xml(item(box=(10, 20, 30, " ")))) == [due]


DOCTYPES = {
    "internal": '<!DOCTYPE annotation [<!ENTITY x "dog">]>',
    "external": '<!DOCTYPE annotation SYSTEM "file:///etc/hostname">',
    "network": '<!DOCTYPE annotation PUBLIC "-//x" "http://127.0.0.1:9/x.dtd">',
    "laughs": '<!DOCTYPE annotation [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>',
    "bare": "<!DOCTYPE annotation>",
}


@pytest.mark.parametrize("doctype", DOCTYPES.values(), ids=DOCTYPES)
def test_a_doctype(tmp_path: Path, doctype: str) -> None:
    name = "&x;" if "ENTITY x" in doctype else "dog"
    due = ["has a DOCTYPE, which is not read; remove it"]
    assert refused_xml(tmp_path, doctype + xml(item(name))) == due


def test_an_entity_that_expands_without_end(tmp_path: Path) -> None:
    letters = "abcdefghijklmnop"
    entities = "".join(f'<!ENTITY {b} "{f"&{a};" * 20}">' for a, b in pairwise(letters))
    doctype = f'<!DOCTYPE annotation [<!ENTITY a "ha">{entities}]>'
    content = doctype + xml(item()).replace("<annotation", '<annotation x="&p;"')
    (message,) = refused_xml(tmp_path, content)
    assert "DOCTYPE" in message or "is no XML" in message


NO_ANNOTATIONS = {
    "empty": ("", "is empty; an XML annotation is due"),
    "blank": (" \n", "is empty; an XML annotation is due"),
    "lfs": (
        LFS,
        "looks like a Git LFS pointer (fetch it with git lfs pull); an XML annotation is due",
    ),
    "html": (HTML, "has a DOCTYPE, which is not read; remove it"),
    "xhtml": (
        "<html><head/></html>",
        "is no VOC annotation: its root is <html> (an HTML page?); <annotation> is due",
    ),
    "broken html": (
        "<!doctype html><html><br></html>",
        "looks like an HTML page (a download that failed?); an XML annotation is due",
    ),
    "merge": (MERGE, "looks like a file with unresolved merge markers; an XML annotation is due"),
    "json": ('{"a": 1}', "looks like JSON; an XML annotation is due"),
    "cvat": (
        "<annotations><image><box/></image></annotations>",
        "is no VOC annotation: its root is <annotations>; <annotation> is due",
    ),
    "upper case": (
        "<annotation>\n<Object/></annotation>",
        "line 2: has an element <Object> under its root; VOC calls it <object>",
    ),
    "binary": (b"\0\1\2\3", "looks like binary data; an XML annotation is due"),
    "pickle": (pickle.dumps([1]), "looks like a Python pickle; an XML annotation is due"),
    "image": (b"\x89PNG\r\n\x1a\n\0", "looks like a PNG image; an XML annotation is due"),
}


@pytest.mark.parametrize(("content", "message"), NO_ANNOTATIONS.values(), ids=NO_ANNOTATIONS)
def test_what_is_no_annotation(tmp_path: Path, content: str | bytes, message: str) -> None:
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
    assert "is no XML: " in message
    assert message.endswith("; correct it")


def test_all_problems_up_to_the_limit(tmp_path: Path) -> None:
    wrong = item(box=(3, 2, float("nan"), 4), difficult="x")
    tree(tmp_path, {"a": xml(item(), wrong), "b": xml(wrong), "c": xml(item(), item(""))})
    not_finite = "xmax 'nan' is not a finite number; give a decimal number"
    assert refused_truth(tmp_path) == [
        "Annotations/a.xml: object 2, line 4: difficult is 'x'; it must be 0 or 1",
        f"Annotations/a.xml: object 2, line 4: {not_finite}",
        "Annotations/b.xml: object 1, line 3: difficult is 'x'; it must be 0 or 1",
        f"Annotations/b.xml: object 1, line 3: {not_finite}",
        "Annotations/c.xml: object 2, line 4: has an empty name; name its class",
    ]
    with pytest.raises(InputError) as caught:
        read_ground_truth(tmp_path, limits=Limits(problems=2))
    assert len(caught.value.problems) == 2
    assert caught.value.omitted == 3
    assert str(caught.value).endswith("\n... and 3 more")


# --- folders and image sets ---------------------------------------------------------------------


def test_folders_that_hold_nothing(tmp_path: Path) -> None:
    give = "give a folder with Annotations, or one that holds the files itself"
    (tmp_path / "empty").mkdir()
    tree(tmp_path / "bare", {})
    (tmp_path / "bare" / "Annotations").mkdir(parents=True)
    write(tmp_path / "bare" / "Annotations", {"a.txt": "dog 1 2 3 4"})
    tree(tmp_path / "none", {"a": xml(), "b": xml()})
    with pytest.raises(InputError) as caught:
        read_ground_truth(tmp_path / "empty")
    assert problems_of(caught.value, tmp_path) == [
        f"empty: has no annotation: no file ends with .xml or .txt; {give}"
    ]
    with pytest.raises(InputError) as caught:
        read_ground_truth(tmp_path / "bare")
    assert problems_of(caught.value, tmp_path) == [
        f"bare/Annotations: has no annotation: no file ends with .xml; {give}"
    ]
    with pytest.raises(InputError) as caught:
        read_ground_truth(tmp_path / "none")
    assert problems_of(caught.value, tmp_path) == [
        "none: has no object in its 2 annotation files; give the annotations that belong to these "
        "detections"
    ]


def test_paths_that_are_no_folder(tmp_path: Path) -> None:
    file = write(tmp_path, {"a.xml": xml(item())}) / "a.xml"
    for path, message in (
        (file, "is no folder; give the folder that holds the files"),
        (tmp_path / "none", "no such file or directory"),
        ("a\0b", "invalid path: contains a NUL character"),
    ):
        with pytest.raises(InputError, match=message):
            read_ground_truth(path)


def test_two_files_of_an_image(tmp_path: Path) -> None:
    write(tmp_path, {"a.xml": xml(item()), "a.XML": xml(item())})
    if len(os.listdir(tmp_path)) < 2:
        pytest.skip("the file system does not tell upper from lower case")
    (message,) = refused_truth(tmp_path)
    assert "are of the same image; keep one of them" in message


def test_image_sets(tmp_path: Path) -> None:
    tree(tmp_path, {"a": xml(item())}, test=["a", "b", "a.jpg", "x/a.xml", "a 2", "a 1 1"], none=[])
    at = "ImageSets/Main/test.txt: line"
    assert refused_truth(tmp_path, image_set="test") == [
        f"{at} 2: image 'b' has no .xml file in Annotations; take it off the list, or add the file",
        f"{at} 3: image 'a.jpg' has no .xml file in Annotations; write it without folder and "
        "suffix",
        f"{at} 4: image 'x/a.xml' has no .xml file in Annotations; write it without folder and "
        "suffix",
        f"{at} 5: 'a 2' is no image name, or one and -1, 0 or 1; write one image a line",
        f"{at} 6: 'a 1 1' is no image name, or one and -1, 0 or 1; write one image a line",
    ]
    assert refused_truth(tmp_path, image_set="none") == [
        "ImageSets/Main/none.txt: names no image; list one image a line"
    ]
    assert refused_truth(tmp_path, image_set="val") == [
        "val: is no image set: neither it nor ImageSets/Main/val.txt exists; name a file, or a set "
        "under ImageSets/Main"
    ]
    assert refused_truth(tmp_path, image_set="./none.txt") == [
        "./none.txt: no such file or directory"
    ]
    write(tmp_path, {"lfs.txt": LFS, "bad.txt": b"a\n\xff\n\x07\n"})
    assert refused_truth(tmp_path, image_set=str(tmp_path / "lfs.txt")) == [
        "lfs.txt: looks like a Git LFS pointer (fetch it with git lfs pull); one name a line is due"
    ]
    assert refused_truth(tmp_path, image_set=str(tmp_path / "bad.txt")) == [
        r"bad.txt: line 2: b'\xff' is not UTF-8; save it so",
        r"bad.txt: line 3: has the control character '\x07'; remove it",
    ]


def test_what_would_hang_is_refused(tmp_path: Path) -> None:
    tree(tmp_path, {"a": xml(item())})
    annotations = tmp_path / "Annotations"
    os.mkfifo(annotations / "b.xml")
    (annotations / "c.xml").symlink_to("/dev/zero")
    (annotations / "d.xml").symlink_to("d.xml")
    (annotations / "e.xml").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(annotations / "f.xml"))
        assert refused_truth(tmp_path) == [
            "Annotations/b.xml: is a FIFO, expected a file; use the path of a regular file",
            "Annotations/c.xml: is a device, expected a file; use the path of a regular file",
            "Annotations/d.xml: too many symbolic links; use the path of the file itself",
            "Annotations/e.xml: no such file or directory",
            "Annotations/f.xml: is a socket, expected a file; use the path of a regular file",
        ]
    os.mkfifo(tmp_path / "set")
    assert refused_truth(tmp_path, image_set=str(tmp_path / "set")) == [
        "set: is a FIFO, expected a file; use the path of a regular file"
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
        with pytest.raises(InputError) as caught:
            read_ground_truth(tmp_path / "gt", class_names=tmp_path / names)
        return problems_of(caught.value, tmp_path)

    assert refused("few") == [
        "gt/a.txt: line 1: class '7' is beyond the 2 of few; classes are numbered from 0; check "
        "the list"
    ]
    assert refused("twice") == ["twice: line 3: 'a' stands on line 1 already; name each class once"]
    assert refused("gap") == ["gap: line 2: is blank; numbers would shift: remove it"]
    assert refused("none") == ["none: names no class; list one class a line"]


# --- text ---------------------------------------------------------------------------------------


@pytest.fixture
def truth(tmp_path: Path) -> GroundTruth:
    images = {"a": xml(item()), "b": xml(item("cat")), "c": xml(item())}
    return read_ground_truth(tree(tmp_path / "truth", images, few=["a", "b"]), image_set="few")


def refused_lines(folder: Path, truth: GroundTruth, *lines: str | bytes) -> list[str]:
    """Return the problems of the lines of a class's file, without its path."""
    content = b"".join((x.encode() if isinstance(x, str) else x) + b"\n" for x in lines)
    write(folder / "dt", {"comp4_det_test_dog.txt": content})
    with pytest.raises(InputError) as caught:
        read_detections(folder / "dt", truth)
    problems = problems_of(caught.value, folder / "dt")
    return [problem.removeprefix("comp4_det_test_dog.txt: ") for problem in problems]


FINE = "a .5 1 2 3 4"

SWAPPED = "give x1 y1 x2 y2, or boxes='xywh' (--dt-boxes xywh) if these are x, y, width and height"

LINES = {
    "too few": ("a .5 1 2", f"has 4 columns, 6 are due; {DUE}"),
    "one": ("a", f"has 1 column, 6 are due; {DUE}"),
    "no score": (
        "a 1 2 3 4",
        f"has 5 columns, 6 are due: its score is missing, as in ground truth; {DUE}",
    ),
    "too many": ("a .5 1 2 3 4 x", f"has 7 columns, 6 are due; {DUE}"),
    "spaces in the image": (
        "my image .5 1 2 3 4",
        f"has 7 columns, 6 are due; {DUE}, the image without spaces",
    ),
    "commas": ("a,.5,1,2,3,4", f"has 1 column, 6 are due; {DUE}, separated by spaces"),
    "NaN score": ("a nan 1 2 3 4", "score 'nan' is not a finite number; give a decimal number"),
    "x turned": ("a .5 3 2 1 4", f"x2 = 1 is less than x1 = 3; {SWAPPED}; {INSIST}"),
    "y turned": ("a .5 1 4 3 2", f"y2 = 2 is less than y1 = 4; {SWAPPED}; {INSIST}"),
    "area overflows": (
        "a .5 0 0 1e200 1e200",
        "the area of the box overflows; correct the box",
    ),
    "side overflows": (
        "a .5 -1e308 0 1e308 1",
        "the area of the box overflows; correct the box",
    ),
    "unknown image": (
        "z .5 1 2 3 4",
        "image 'z' is not in the ground truth; score the detections of the images that the ground "
        "truth has",
    ),
    "image with suffix": (
        "img/a.jpg .5 1 2 3 4",
        "image 'img/a.jpg' is not in the ground truth; write it without folder and suffix",
    ),
    "control character": (
        "a .5 1 2 3 4\x1b[31m",
        r"has the control character '\x1b'; remove it",
    ),
    "lone carriage return": (
        "a .5 1 2 3 4\ra .5 1 2 3 4",
        r"has the control character '\r'; remove it",
    ),
    "NUL": ("a .5 1 2 3 \0", r"has the control character '\x00'; remove it"),
    "not UTF-8": (b"\xe9 .5 1 2 3 4", r"b'\xe9 .5 1 2 3 4' is not UTF-8; save it so"),
    "Unicode blank": ("a .5 1 2 3\u00a04", f"has 5 columns, 6 are due; {DUE}"),
}


@pytest.mark.parametrize(("line", "message"), LINES.values(), ids=LINES)
def test_lines(tmp_path: Path, truth: GroundTruth, line: str | bytes, message: str) -> None:
    assert refused_lines(tmp_path, truth, FINE, "", line, FINE) == [f"line 3: {message}"]


@pytest.mark.parametrize(("text", "fault"), NUMBERS.items(), ids=[n[:12] for n in NUMBERS])
def test_numbers_in_lines(tmp_path: Path, truth: GroundTruth, text: str, fault: str) -> None:
    for column, name in ((1, "score"), (2, "x1"), (5, "y2")):
        columns = FINE.split()
        columns[column] = text
        due = [f"line 2: {name} {quoted(text)} {fault}"]
        assert refused_lines(tmp_path, truth, FINE, " ".join(columns)) == due


def test_an_image_outside_the_image_set(tmp_path: Path, truth: GroundTruth) -> None:
    place = tmp_path / "truth" / "Annotations" / "c.xml"
    due = (
        f"image 'c' is not in the image set, though {place} exists; give the image set that the "
        "detector was run on"
    )
    assert refused_lines(tmp_path, truth, FINE, "c .5 1 2 3 4") == [f"line 2: {due}"]
    write(tmp_path / "images", {"a.txt": "dog .5 1 2 3 4", "c.txt": "dog .5 1 2 3 4"})
    with pytest.raises(InputError) as caught:
        read_detections(tmp_path / "images", truth)
    assert problems_of(caught.value, tmp_path / "images") == [f"c.txt: {due}"]


def test_no_image_in_common(tmp_path: Path, truth: GroundTruth) -> None:
    lead, *rest = refused_lines(tmp_path, truth, *(f"{n} .5 1 2 3 4" for n in range(30)))
    assert lead == (
        f"{tmp_path}/dt: has no image in common with the ground truth: its images are '0', '1', "
        "'2', ..., the ground truth's 'a', 'b'; check that both are of the same data"
    )
    assert len(rest) == 20
    write(tmp_path / "images", {"0001.txt": "dog .5 1 2 3 4", "0002.txt": "dog .5 1 2 3 4"})
    with pytest.raises(InputError, match="its images are '0001', '0002', the ground truth's"):
        read_detections(tmp_path / "images", truth)


def test_xywh_where_corners_are_due(tmp_path: Path, truth: GroundTruth) -> None:
    lead, *rest = refused_lines(tmp_path, truth, *["a .5 100 200 30 40"] * 3, FINE)
    assert lead == (
        f"{tmp_path}/dt: 3 of 4 boxes have a negative width or height: they look like x, "
        f"y, width and height; {SWAPPED}; {INSIST}"
    )
    assert len(rest) == 3
    write(tmp_path / "gt", {"a.txt": "dog 100 200 30 40\n" * 3})
    with pytest.raises(InputError, match="3 of 3 boxes have a negative width or height"):
        read_ground_truth(tmp_path / "gt")


XYWH = {
    "negative width": ("dog 1 2 -3 4", f"width -3 is negative; correct the boxes; {INSIST}"),
    "negative height": ("dog 1 2 3 -.5", f"height -0.5 is negative; correct the boxes; {INSIST}"),
    "far corner": ("dog 1e308 2 1e308 0", "the far corner overflows; correct the box"),
    "area": ("dog 1 2 1e200 1e200", "the area of the box overflows; correct the box"),
    "detections": (
        "dog .5 1 2 3 4",
        "has 6 columns, 5 are due: it has a score, as detections have; write `class x y width "
        "height`",
    ),
    "another word": (
        "dog 1 2 3 4 hard",
        "has 6 columns, 5 are due; write `class x y width height`",
    ),
}


@pytest.mark.parametrize(("line", "message"), XYWH.values(), ids=XYWH)
def test_lines_of_ground_truth(tmp_path: Path, line: str, message: str) -> None:
    write(tmp_path, {"a.txt": f"dog 1 2 3 4\n{line}\n"})
    assert refused_truth(tmp_path, boxes="xywh") == [f"a.txt: line 2: {message}"]


def many(wrong: str, fine: str, count: int) -> str:
    """Return lines of which the third is wrong."""
    return "".join(f"{wrong if number == 2 else fine}\n" for number in range(count))


@pytest.mark.parametrize("boxes", ["xyxy", "xywh"])
def test_fewer_than_one_box_in_twenty_may_end_before_it_begins(
    tmp_path: Path, truth: GroundTruth, boxes: str
) -> None:
    """Real detectors clip boxes on one side only; WIDER FACE has such a ground truth."""
    wrong, location = (
        ("9 2 3 4", "x2 = 3 is less than x1 = 9")
        if boxes == "xyxy"
        else ("9 2 -6 4", "width -6 is negative")
    )
    for count, fine in ((21, True), (20, False)):
        write(tmp_path / "dt", {"x_dog.txt": many(f"a .5 {wrong}", "a .5 1 2 3 4", count)})
        write(tmp_path / "gt", {"a.txt": many(f"dog {wrong}", "dog 1 2 3 4", count)})
        if fine:
            found = read_detections(tmp_path / "dt", truth, boxes=boxes)
            table = read_ground_truth(tmp_path / "gt", boxes=boxes)
        else:
            for error in (
                refused_truth(tmp_path / "gt", boxes=boxes),
                refused_detections(tmp_path / "dt", truth, boxes=boxes),
            ):
                assert len(error) == 1
                assert f"line 3: {location}" in error[0]
                assert error[0].endswith(INSIST)
            found = read_detections(tmp_path / "dt", truth, boxes=boxes, as_is=True)
            table = read_ground_truth(tmp_path / "gt", boxes=boxes, as_is=True)
        for read, kind, end in (
            (found, "detections", "x_dog.txt"),
            (table, "ground-truth", "a.txt"),
        ):
            assert len(read) == count
            assert read.corners.tolist()[2] == [9, 2, 3, 6 if boxes == "xywh" else 4]
            (note,) = [note for note in read.notes if note.code == f"{kind}-negative-size"]
            assert (note.count, note.severity) == (1, "warning")
            assert f"/{end}: line 3: {location})" in note.message


def refused_detections(path: Path, truth: GroundTruth, **options: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_detections(path, truth, **options)
    return problems_of(caught.value, path)


def test_fewer_than_one_object_in_twenty_may_end_before_it_begins(tmp_path: Path) -> None:
    wrong = item(box=(30, 20, 10, 40))
    tree(tmp_path, {"a": xml(item(), wrong), "b": xml(*[item()] * 19)})
    (note,) = [n for n in read_ground_truth(tmp_path).notes if "negative" in n.code]
    assert (
        f"{tmp_path}/Annotations/a.xml: object 2: xmax = 10 is less than xmin = 30" in note.message
    )
    assert "cannot be found" in note.message


def test_fractions_are_never_taken_for_sides(tmp_path: Path, truth: GroundTruth) -> None:
    """Lines of YOLO: --boxes xywh would read them, and give a number that is wrong."""
    write(tmp_path / "gt", {"a.txt": "dog 0.5 0.5 0.2 0.3\n" * 3})
    write(tmp_path / "dt", {"a.txt": "dog 0.5 0.5 0.2 0.3 0.9\n" * 3})
    for (line,) in (refused_truth(tmp_path / "gt"), refused_detections(tmp_path / "dt", truth)):
        assert "look like fractions of the image's size" in line
        assert "-format yolo (format='yolo') for text files of a class" in line
        assert "xywh" not in line


NO_LINES = {
    "lfs": (LFS, "a Git LFS pointer (fetch it with git lfs pull)"),
    "html": (HTML, "an HTML page (a download that failed?)"),
    "xml": (xml(item()), "XML"),
    "merge": (MERGE, "a file with unresolved merge markers"),
    "json": ('[\n{"image_id": 1}]', "JSON"),
    "json lines": ('{"image_id": 1}\n{"image_id": 2}\n', "JSON"),
    "utf-16": (FINE.encode("utf-16"), "UTF-16 text (UTF-8 is due)"),
    "pickle": (pickle.dumps({"a": [0.5]}), "a Python pickle"),
    "zip": (b"PK\x03\x04....", "a zip archive"),
    "numpy": (b"\x93NUMPY\x01\x00", "a NumPy array"),
    "image": (b"\xff\xd8\xff\xe0", "a JPEG image"),
}


@pytest.mark.parametrize(("content", "kind"), NO_LINES.values(), ids=NO_LINES)
def test_what_is_no_list_of_lines(
    tmp_path: Path, truth: GroundTruth, content: str | bytes, kind: str
) -> None:
    write(tmp_path / "dt", {"det_test_cat.txt": FINE, "det_test_dog.txt": content})
    with pytest.raises(InputError) as caught:
        read_detections(tmp_path / "dt", truth)
    assert problems_of(caught.value, tmp_path / "dt") == [
        f"det_test_dog.txt: looks like {kind}; lines of `image score x1 y1 x2 y2` are due"
    ]


def test_a_class_may_begin_with_a_bracket(tmp_path: Path, truth: GroundTruth) -> None:
    write(tmp_path / "dt", {"a.txt": "[dog] .5 1 2 3 4\ndog .5 1 2 3 4\n<unk> .5 1 2 3 4\n"})
    assert read_detections(tmp_path / "dt", truth).classes[2:] == ("<unk>", "[dog]")


def test_detections_that_are_no_detections(tmp_path: Path, truth: GroundTruth) -> None:
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "fifo")
    for path, message in (
        (tmp_path / "empty", "no file ends with .txt; give the folder of the detections"),
        (tmp_path / "truth" / "Annotations", "but some with .xml, as ground truth has"),
        (tmp_path / "none", "no such file or directory"),
        (tmp_path / "fifo", "is a FIFO, expected a file"),
        ("-", "<stdin>: cannot hold VOC detections: the files' names count"),
        ("a\0b", "invalid path: contains a NUL character"),
    ):
        with pytest.raises(InputError, match=message):
            read_detections(path, truth)


def test_a_fifo_among_detections(tmp_path: Path, truth: GroundTruth) -> None:
    write(tmp_path / "dt", {"comp4_det_test_cat.txt": FINE})
    os.mkfifo(tmp_path / "dt" / "comp4_det_test_dog.txt")
    with pytest.raises(InputError, match=r"det_test_dog\.txt: is a FIFO, expected a file"):
        read_detections(tmp_path / "dt", truth)


def test_no_class_in_common(tmp_path: Path, truth: GroundTruth) -> None:
    numbers = write(tmp_path / "numbers", {"a.txt": "0 .5 1 2 3 4\n14 .5 1 2 3 4\n"})
    words = write(tmp_path / "words", {"a.txt": "Cat .5 1 2 3 4\n"})
    with pytest.raises(InputError) as caught:
        read_detections(numbers, truth)
    assert problems_of(caught.value, tmp_path) == [
        "numbers: has no detection of a class of the ground truth: its classes are '0', '14', the "
        "ground truth's 'cat', 'dog'; give the file that names the classes, one a line "
        "(dt_class_names, --dt-class-names); or, if all are of other classes indeed, give "
        "as_is=True (--as-is)"
    ]
    with pytest.raises(InputError, match=r"its classes are 'Cat', .* check that both are of the"):
        read_detections(words, truth)
    assert read_detections(words, truth, as_is=True).classes == ("cat", "dog", "Cat")


def test_two_files_of_a_class(tmp_path: Path, truth: GroundTruth) -> None:
    names = ("comp3_det_test_dog.txt", "comp4_det_test_dog.txt")
    write(tmp_path / "dt", dict.fromkeys(names, FINE))
    with pytest.raises(InputError) as caught:
        read_detections(tmp_path / "dt", truth)
    assert problems_of(caught.value, tmp_path / "dt") == [
        "comp4_det_test_dog.txt: is of the class 'dog', as comp3_det_test_dog.txt is; give one "
        "detections file a class"
    ]


def test_a_class_that_is_ambiguous(tmp_path: Path) -> None:
    items = [item("light"), item("traffic_light"), item("my_traffic_light")]
    truth = read_ground_truth(tree(tmp_path / "truth", {"a": xml(*items)}))
    write(tmp_path / "dt", {"our_traffic_light.txt": FINE})
    with pytest.raises(InputError) as caught:
        read_detections(tmp_path / "dt", truth)
    assert problems_of(caught.value, tmp_path / "dt") == [
        "our_traffic_light.txt: may be of the class 'traffic_light' or 'light'; call it "
        "..._det_<set>_<class>.txt"
    ]


def test_a_layout_that_cannot_be_told(tmp_path: Path) -> None:
    # The image and the class are both called "dog".
    truth = read_ground_truth(tree(tmp_path / "truth", {"dog": xml(item())}))
    write(tmp_path / "dt", {"dog.txt": "dog .5 1 2 3 4"})
    with pytest.raises(InputError, match="give layout='class-files' or 'image-files'"):
        read_detections(tmp_path / "dt", truth)
    for layout in ("class-files", "image-files"):
        assert len(read_detections(tmp_path / "dt", truth, layout=layout)) == 1


def test_ground_truth_that_numbers_its_images(tmp_path: Path) -> None:
    truth = GroundTruth.from_arrays(image=[1], label=["dog"], boxes=[[1, 2, 3, 4]])
    write(tmp_path, {"comp4_det_test_dog.txt": "1 .5 1 2 3 4"})
    with pytest.raises(InputError, match="names images by words, but the ground truth numbers"):
        read_detections(tmp_path, truth)


@pytest.mark.parametrize("boxes", ["xyxy", "xywh"])
def test_a_score_in_the_last_column_is_named(
    tmp_path: Path, truth: GroundTruth, boxes: str
) -> None:
    """`class x1 y1 x2 y2 score`: read as it stands, no box overlaps anything."""
    write(tmp_path / "dt", {"a.txt": "dog 10 20 30 40 0.9\ndog 12 21 31 44 0.25\n"})
    sides = "x1 y1 x2 y2" if boxes == "xyxy" else "x y width height"
    assert refused_detections(tmp_path / "dt", truth, boxes=boxes) == [
        f"{tmp_path / 'dt'}: the score looks like the last column: all there lie within 0 and 1, "
        f"as 0.9 does, and behind the class stands 10; write `class score {sides}`; or, if so "
        "they are, give as_is=True (--as-is)"
    ]
    found = read_detections(tmp_path / "dt", truth, boxes=boxes, as_is=True)
    assert found.score.tolist() == [10, 12]


def test_percent_is_no_score_in_another_column(tmp_path: Path, truth: GroundTruth) -> None:
    write(tmp_path / "dt", {"a.txt": "dog 90 10.5 20.5 30.5 40.5\ndog 25 0.5 0.5 0.75 0.75\n"})
    assert len(read_detections(tmp_path / "dt", truth)) == 2
