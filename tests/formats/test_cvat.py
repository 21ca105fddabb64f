"""CVAT for images 1.1: valid and invalid input."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap import formats
from detap.errors import InputError, UsageError
from detap.formats.catalogue import FORMATS
from tests.formats.exports import write
from tests.raised import raised

CVAT = FORMATS["cvat"]
fits, placeholder_ground_truth = CVAT.fits, CVAT.placeholder
read_ground_truth, read_detections = CVAT.read_truth_file, CVAT.read_detections_file

HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>\n'
BOX = '<box label="dog" occluded="0" xtl="1.5" ytl="2" xbr="11.5" ybr="22" z_order="0"></box>'
FEW = "to count them as boxes that overlap nothing"
BOUNDS = "pass shapes='bbox' (--shapes bbox) to read its bounding box"
EXPORT = "export the task again, as CVAT for images 1.1"


def image(*shapes: str, name: str = "a.jpg", more: str = 'width="50" height="40"') -> str:
    return f'  <image id="0" name="{name}" {more}>\n' + "\n".join(shapes) + "\n  </image>\n"


def document(*images: str) -> str:
    return HEAD + "".join(images) + "</annotations>\n"


def written(folder: Path, text: str | bytes, name: str = "annotations.xml") -> Path:
    return write(folder / name, text)


def box(label: str = "dog", corners: tuple[Any, ...] = (1, 2, 11, 22), inner: str = "") -> str:
    xtl, ytl, xbr, ybr = corners
    sides = f'xtl="{xtl}" ytl="{ytl}" xbr="{xbr}" ybr="{ybr}"'
    return f'<box label="{label}" {sides}>{inner}</box>'


def attribute(name: str, value: str) -> str:
    return f'<attribute name="{name}">{value}</attribute>'


def refused(path: Path, **options: Any) -> list[str]:
    error = raised(InputError, read_ground_truth, path, **options)
    return [str(problem).replace(f"{path}: ", "") for problem in error.problems]


# --- what is read


def test_boxes_images_and_sizes(tmp_path: Path) -> None:
    text = document(
        image(BOX, box("cat", (0, 0, 50, 40)), name="b/x.y.png"),
        image(name="a.jpg", more=""),
        image(name="c.jpg", more='width="0" height="0.5"'),
    )
    truth = read_ground_truth(written(tmp_path, text))
    assert truth.images == ("a", "b/x.y", "c")
    assert truth.classes == ("cat", "dog")
    assert truth.image.tolist() == [1, 1]
    assert truth.label.tolist() == [1, 0]
    assert truth.corners.tolist() == [[1.5, 2, 11.5, 22], [0, 0, 50, 40]]
    assert truth.box_area.tolist() == [200, 2000]
    sizes = np.array([[np.nan] * 2, [50, 40], [np.nan, 0.5]])
    assert np.array_equal(np.asarray(truth.image_sizes), sizes, equal_nan=True)
    assert {note.code: note.count for note in truth.notes} == {"images-without-objects": 2}


def test_the_folder_of_an_export_and_gzip(tmp_path: Path) -> None:
    path = written(tmp_path, document(image(BOX)))
    assert len(read_ground_truth(tmp_path)) == 1
    packed = written(tmp_path, gzip.compress(path.read_bytes()), "a.xml.gz")
    assert read_ground_truth(packed).corners.tolist() == [[1.5, 2, 11.5, 22]]


def test_encodings_comments_and_tags(tmp_path: Path) -> None:
    text = document(image("<!-- <box/> -->", BOX.replace("dog", "Köter"), '<tag label="rain"/>'))
    truth = read_ground_truth(written(tmp_path, "\ufeff" + text))
    assert truth.classes == ("Köter",)
    assert [note.code for note in truth.notes] == ["tags-skipped"]
    for encoding in ("latin-1", "utf-16"):
        data = text.replace("utf-8", encoding).encode(encoding)
        assert read_ground_truth(written(tmp_path, data)).classes == ("Köter",)


def test_a_rotated_box_is_a_quadrilateral(tmp_path: Path) -> None:
    """Clockwise about its center, (15, 30): 10 wide and 20 high, by 90 and by 450 degrees."""
    rotated = [
        f'<box label="a" xtl="10" ytl="20" xbr="20" ybr="40" rotation="{degrees}"/>'
        for degrees in ("90", "450.0", "0", "")
    ]
    path = written(tmp_path, document(image(*rotated)))
    truth = read_ground_truth(path)
    corners = [25, 25, 25, 35, 5, 35, 5, 25]
    upright = [10, 20, 20, 20, 20, 40, 10, 40]
    for row, expected in enumerate((corners, corners, upright, upright)):
        assert np.asarray(truth.polygons)[row].tolist() == pytest.approx(expected)
    assert {note.code: note.count for note in truth.notes}["angles-beyond-a-turn"] == 1
    bounding = read_ground_truth(path, shapes="bbox")
    assert bounding.polygons is None
    assert bounding.corners[0].tolist() == pytest.approx([5, 25, 25, 35])


def test_other_shapes_are_read_as_their_bounds(tmp_path: Path) -> None:
    shapes = (
        '<polygon label="a" points="3.5,4.0;1.0,9.0;8.0,2.0"></polygon>',
        '<polyline label="a" points="1,2;3,1"/>',
        '<points label="a" points="1,2;5,6;3,9"/>',
        '<ellipse label="a" cx="10" cy="20" rx="4" ry="5"/>',
        '<mask label="a" left="3" top="4" width="10" height="20" rle="1, 2"/>',
    )
    truth = read_ground_truth(written(tmp_path, document(image(*shapes))), shapes="bbox")
    assert truth.corners.tolist() == [
        [1, 2, 8, 9],
        [1, 1, 3, 2],
        [1, 2, 5, 9],
        [6, 15, 14, 25],
        [3, 4, 13, 24],
    ]


def test_attributes_that_are_flags(tmp_path: Path) -> None:
    shapes = (
        box(inner=attribute("difficult", "true") + attribute("iscrowd", "0")),
        box(inner=attribute("difficult", "False") + attribute("iscrowd", "1")),
        box(corners=(5, 5, 9, 9), inner=attribute("hard", "yes") + attribute("colour", "red")),
    )
    path = written(tmp_path, document(image(*shapes)))
    truth = read_ground_truth(path)
    assert not truth.difficult.any()
    assert not truth.crowd.any()
    note = next(note for note in truth.notes if note.code == "flags-not-mapped")
    assert note.count == 2
    assert "--attribute-flags difficult,iscrowd" in note.message
    truth = read_ground_truth(path, attribute_flags="difficult,iscrowd,hard=ignore")
    assert truth.difficult.tolist() == [True, False, False]
    assert truth.crowd.tolist() == [False, True, False]
    assert truth.ignore.tolist() == [False, False, True]
    assert "flags-not-mapped" not in {note.code for note in truth.notes}


def test_an_attribute_that_is_not_a_flag(tmp_path: Path) -> None:
    path = written(tmp_path, document(image(box(inner=attribute("difficult", "rather")))))
    assert refused(path, attribute_flags="difficult") == [
        "line 5: flag 'difficult' is 'rather'; expected true or false, yes or no, 1 or 0"
    ]
    with pytest.raises(UsageError, match="'hard' names no flag; use hard=difficult or"):
        read_ground_truth(path, attribute_flags="hard")
    with pytest.raises(UsageError, match="shapes 'all' is unknown; use one of reject, bbox"):
        formats.read_ground_truth(path, format="cvat", shapes="all")


def test_detections_have_scores(tmp_path: Path) -> None:
    truth = read_ground_truth(written(tmp_path, document(image(BOX, box("cat")))))
    scored = BOX.replace("<box", '<box score=".75"')
    path = written(
        tmp_path, document(image(scored, box("cow", inner=attribute("confidence", ".5")))), "d.xml"
    )
    detections = read_detections(path, truth)
    assert detections.score.tolist() == [0.75, 0.5]
    assert [(source.path, source.records) for source in detections.files] == [(str(path), 2)]
    assert detections.classes == ("cat", "dog", "cow")
    assert detections.label.tolist() == [1, 2]
    # Folders count only where the ground truth has some.
    other = written(tmp_path, document(image(scored, name="x/a.jpg")), "e.xml")
    assert read_detections(other, truth).image.tolist() == [0]


def test_attributes_and_files_of_images(tmp_path: Path) -> None:
    images = (image(BOX, name="x\\a.jpg", more='subset="night"'), image(name="b"))
    truth = read_ground_truth(written(tmp_path, document(*images)))
    assert truth.images == ("b", "x/a")
    assert FORMATS["cvat"].image_attribute(truth, "subset") == {"x/a": "night"}
    assert FORMATS["cvat"].file_names(truth) == {"x/a": "x\\a.jpg", "b": "b"}


# --- bad input

WHOLE: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "is empty; expected a CVAT export"),
    "cut off": (document(image(BOX))[:-20], "line 6: invalid XML: expected '>'; export it again"),
    "VOC": (
        "<annotation/>",
        "line 1: not a CVAT export: the root is <annotation>; expected <annotations>",
    ),
    "JSON": (
        '{"images": []}',
        "looks like JSON; expected a CVAT export, annotations.xml",
    ),
    "DOCTYPE": (
        '<!DOCTYPE a [<!ENTITY x "y">]>\n' + document(image(BOX)).partition("\n")[2],
        "line 1: contains a DOCTYPE, which is not allowed; remove it",
    ),
    "entity": (
        document(image(BOX.replace("dog", "&dog;"))),
        "line 5: invalid XML: Entity 'dog' not defined; export it again",
    ),
    "unknown encoding": (
        HEAD.replace("utf-8", "klingon") + "</annotations>",
        "invalid XML: unknown encoding: klingon; export it again",
    ),
    "broken bytes": (
        document(image(BOX)).encode().replace(b"dog", b"d\xffg"),
        "line 5: invalid XML: Invalid bytes in character encoding; export it again",
    ),
    "video": (
        document('<track id="0" label="dog"><box frame="0"/></track>'),
        "line 4: contains a <track>: this is CVAT for video, which has no image names; " + EXPORT,
    ),
    "no image": (document(), f"no <image> elements; {EXPORT}"),
    "no box": (
        document(image()),
        "no boxes in its 1 images; use the annotations that belong to these detections",
    ),
    "an image twice": (
        document(image(BOX), image(BOX)),
        "line 7: duplicate image 'a.jpg' (also at line 4); keep one of them; export the tasks of "
        "a project one by one",
    ),
    "two images of a name": (
        document(image(BOX), image(BOX, name="a.png")),
        "line 7: duplicate image 'a.png' (also at line 4, as 'a.jpg'); keep one of "
        "them; export the tasks of a project one by one",
    ),
    "an image without name": (
        document(image(BOX, name="")),
        'line 4: image name is ""; write its file name',
    ),
    "a shape elsewhere": (
        document(image(BOX).replace("image", "picture"), image(BOX)),
        "line 5: <box> is in <picture>, expected in <image>; export it again",
    ),
    "text between elements": (
        document(image(BOX, "box label='cat'/>")),
        "line 6: has text between its elements: \"box label='cat'/>\"; remove it, or write it as "
        "an element",
    ),
    "a width that is none": (
        document(image(BOX, more='width="wide" height="4"')),
        "line 4: width 'wide' is not a number; use a decimal number",
    ),
    "a negative height": (
        document(image(BOX, more='width="4" height="-4"')),
        "line 4: height is -4.0; write pixels, or null if unknown",
    ),
}


SHAPES = {
    "no label": (BOX.replace('label="dog"', ""), "has no label; write the name of its class"),
    "no corner": (
        BOX.replace('ytl="2"', ""),
        "has no ytl; write xtl, ytl, xbr, ybr",
    ),
    "nan": (
        box(corners=(1, "nan", 3, 4)),
        "ytl 'nan' is not a finite number; use a decimal number",
    ),
    "underscore": (
        box(corners=("2_63", 2, 3, 4)),
        "xtl '2_63' is not a number; use a decimal number",
    ),
    "area overflows": (
        box(corners=(0, 0, "1e200", "1e200")),
        "box area overflows; correct the box",
    ),
    "turned": (
        box(corners=(11, 2, 1, 22)),
        f"xbr = 1 is less than xtl = 11; correct the boxes, or pass as_is=True (--as-is) {FEW}",
    ),
    "rotation is text": (
        BOX.replace("<box", '<box rotation="30,5"'),
        "rotation '30,5' is not a number (use a decimal point, not a comma); use a decimal number",
    ),
    "rotated, and its area overflows": (
        box(corners=(0, 0, "1e200", "1e200")).replace("<box", '<box rotation="30"'),
        "box area overflows; correct the box",
    ),
    "polygon": ('<polygon label="a" points="1,2;3,4;5,0"/>', f"is a polygon, not a box; {BOUNDS}"),
    "mask": ('<mask label="a" left="0" top="0" rle="1"/>', f"is a mask, not a box; {BOUNDS}"),
    "cuboid": (
        '<cuboid label="a" xtl1="1"/>',
        "<cuboid> is not supported; remove it, or draw a box",
    ),
    "unknown": (
        '<blob label="a"/>',
        "<blob> is an unknown shape; remove it, or draw a box",
    ),
}


BAD = WHOLE | {
    name: (document(image(text)), f"line 5: {expected}")
    for name, (text, expected) in SHAPES.items()
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(tmp_path: Path, case: str) -> None:
    text, expected = BAD[case]
    assert refused(written(tmp_path, text)) == [expected]


def test_bad_shapes_with_shapes_bbox(tmp_path: Path) -> None:
    shapes = (
        '<polygon label="a" points="1,2;3,4"/>',
        '<polygon label="a" points="1,2;3;5,0"/>',
        '<polygon label="a" points="1,2;3,x;5,0"/>',
        '<points label="a"/>',
        '<ellipse label="a" cx="1" cy="2" rx="3"/>',
        '<ellipse label="a" cx="1" cy="2" rx="3" ry="4" rotation="x"/>',
    )
    assert refused(written(tmp_path, document(image(*shapes))), shapes="bbox") == [
        "line 5: has 2 points as a <polygon>; expected 3",
        "line 6: has a point '3'; write points as x,y;x,y",
        "line 7: point 'x' is not a number; use a decimal number",
        "line 8: has 0 points as a <points>; expected 1",
        "line 9: has no ry; write cx, cy, rx, ry",
        "line 10: rotation 'x' is not a number; use a decimal number",
    ]


def test_nesting_and_folders(tmp_path: Path) -> None:
    deep = written(tmp_path, HEAD + "<a>" * 200)
    assert refused(deep) == [
        "line 4: XML is nested 101 levels deep, the limit is 100; raise the limit with "
        "--max-nesting"
    ]
    (tmp_path / "sub" / "annotations.xml").mkdir(parents=True)
    assert "is a folder, expected a file" in refused(tmp_path / "sub")[0]
