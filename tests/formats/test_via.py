"""Files of VIA 1 and 2 in JSON and CSV: valid and invalid input."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

import detap
from detap.errors import InputError
from tests.formats.exports import CAT, Bad, changed, write


def region(label: Any, name: str = "rect", **shape: Any) -> dict[str, Any]:
    return {"shape_attributes": {"name": name, **shape}, "region_attributes": {"kind": label}}


REGIONS = [
    region("dog", x=1, y=2, width=10.5, height=20),
    region("cat", x=20, y=5, width=10, height=10),
]
A = {"filename": "a.jpg", "size": 7, "regions": REGIONS, "file_attributes": {"night": "1"}}
B = {"filename": "b.png", "size": 8, "regions": [], "file_attributes": {}}
TRUTH = {"a.jpg7": A, "b.png8": B}
PROJECT = {"_via_settings": {"ui": {}}, "_via_img_metadata": TRUTH, "_via_attributes": {}}
VIA_1 = {
    "a.jpg7": {
        "fileref": "",
        "base64_img_data": "",
        **A,
        "regions": {str(n): item for n, item in enumerate(REGIONS)},
    },
    "b.png8": {"fileref": "", **B, "regions": {}},
}
HEADER = (
    "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,"
    "region_attributes"
)


def cell(value: Any) -> str:
    text = json.dumps(value).replace('"', '""')
    return f'"{text}"'


def row(name: str, count: Any, number: int, item: dict[str, Any] | None = None) -> str:
    item = item or {"shape_attributes": {}, "region_attributes": {}}
    shape, attributes = cell(item["shape_attributes"]), cell(item["region_attributes"])
    night = cell({"night": "1"} if name == "a.jpg" else {})
    return f"{name},7,{night},{count},{number},{shape},{attributes}\n"


ROWS = "".join(row("a.jpg", 2, n, item) for n, item in enumerate(REGIONS)) + row("b.png", 0, 0)
CSV = f"{HEADER}\n{ROWS}"
FILES: dict[str, tuple[str, Any]] = {
    "JSON": ("gt.json", TRUTH),
    "project": ("gt.json", PROJECT),
    "VIA 1": ("gt.json", VIA_1),
    "CSV": ("gt.csv", CSV),
    "CSV of VIA 1": ("gt.csv", f"#{CSV}"),
}


def valid(folder: Path, kind: str = "JSON") -> Path:
    name, content = FILES[kind]
    return write(folder / name, content)


def test_one_attribute_names_the_class(tmp_path: Path) -> None:
    more = changed(
        TRUTH, "a.jpg7", "regions", 0, "region_attributes", to={"kind": "dog", "id": "7"}
    )
    path = write(tmp_path / "gt.json", more)
    with pytest.raises(
        InputError, match=r"several attributes: 'id', 'kind'; choose that of the class with --"
    ):
        detap.read_ground_truth(path)
    truth = detap.read_ground_truth(path, class_attribute="kind")
    assert truth.classes == ("cat", "dog")
    hard = changed(
        TRUTH, "a.jpg7", "regions", 0, "region_attributes", to={"kind": "dog", "hard": "1"}
    )
    path = write(tmp_path / "hard.json", hard)
    flags = "hard=difficult"
    truth = detap.read_ground_truth(path, class_attribute="kind", attribute_flags=flags)
    assert truth.difficult.tolist() == [True, False]


def test_a_checkbox_names_the_class_by_its_option(tmp_path: Path) -> None:
    at = ("a.jpg7", "regions", 0, "region_attributes", "kind")
    path = write(tmp_path / "gt.json", changed(TRUTH, *at, to={"dog": True, "cat": False}))
    assert detap.read_ground_truth(path).label.tolist() == [1, 0]


def test_other_shapes_are_read_as_their_bounds(tmp_path: Path) -> None:
    shapes = [
        region("x", "polygon", all_points_x=[3.5, 1, 8], all_points_y=[4, 9, 2]),
        region("x", "polyline", all_points_x=[1, 3], all_points_y=[2, 1]),
        region("x", "circle", cx=10, cy=20, r=5),
        region("x", "ellipse", cx=10, cy=20, rx=5, ry=2),
        region("x", "ellipse", cx=10, cy=20, rx=5, ry=2, theta=math.pi / 2),
        region("x", "point", cx=1, cy=2),
    ]
    path = write(tmp_path / "gt.json", {"a.jpg7": {**A, "regions": shapes}})
    expected = [
        *([1, 2, 8, 9], [1, 1, 3, 2], [5, 15, 15, 25], [5, 18, 15, 22], [8, 15, 12, 25]),
        [1, 2, 1, 2],
    ]
    corners = detap.read_ground_truth(path, shapes="bbox").corners.tolist()
    assert corners == [pytest.approx(box) for box in expected]


def test_a_tilted_ellipse_touches_its_bounds(tmp_path: Path) -> None:
    """Sampled at a million angles."""
    item = region("x", "ellipse", cx=10, cy=20, rx=5, ry=2, theta=0.5)
    path = write(tmp_path / "gt.json", {"a.jpg7": {**A, "regions": [item]}})
    [[x1, y1, x2, y2]] = detap.read_ground_truth(path, shapes="bbox").corners.tolist()
    angles = [k * math.tau / 100_000 for k in range(100_000)]
    cos, sin = math.cos(0.5), math.sin(0.5)
    across = [10 + 5 * math.cos(a) * cos - 2 * math.sin(a) * sin for a in angles]
    down = [20 + 5 * math.cos(a) * sin + 2 * math.sin(a) * cos for a in angles]
    expected = [min(across), min(down), max(across), max(down)]
    assert [x1, y1, x2, y2] == pytest.approx(expected, abs=1e-6)


KEY = "a.jpg7"
FIRST = f'"{KEY}".regions[0]'
AT = (KEY, "regions", 0)
SHAPE, ATTRIBUTES = (*AT, "shape_attributes"), (*AT, "region_attributes")


def shaped(name: str, **shape: Any) -> Any:
    return changed(TRUTH, *AT, to=region("dog", name, **shape))


BBOX = ("--shapes", "bbox")
BAD = {
    "no images": Bad({}, "no boxes in its 0 images"),
    "a list": Bad([A], "; expected VIA's"),
    "a project without images": Bad({"_via_img_metadata": []}, "is []; expected VIA's"),
    "an image is text": Bad({KEY: "a.jpg"}, f'"{KEY}": is "a.jpg"'),
    "no filename": Bad(changed(TRUTH, KEY, without="filename"), f'"{KEY}": image name is missing'),
    "a blank filename": Bad(changed(TRUTH, KEY, "filename", to=""), f'"{KEY}": image name is ""'),
    "no regions": Bad(changed(TRUTH, KEY, without="regions"), f'"{KEY}": regions is missing'),
    "regions are text": Bad(changed(TRUTH, KEY, "regions", to="0"), f'"{KEY}": regions is "0"'),
    "no shape": Bad(
        changed(TRUTH, *AT, without="shape_attributes"), f"{FIRST}: shape_attributes is"
    ),
    "an unknown shape": Bad(shaped("star", x=1), f'{FIRST}: shape is "star"'),
    "a shape without name": Bad(
        changed(TRUTH, *SHAPE, without="name"), f"{FIRST}: shape is missing"
    ),
    "a polygon": Bad(shaped("polygon"), f"{FIRST}: is a polygon, not a box; pass shapes='bbox'"),
    "a circle": Bad(shaped("circle"), f"{FIRST}: is a circle, not a box"),
    "few points": Bad(
        shaped("polygon", all_points_x=[1, 2], all_points_y=[1, 2]), "has 2 x and 2 y", options=BBOX
    ),
    "points without y": Bad(
        shaped("polygon", all_points_x=[1, 2, 3]), "all_points_y is missing", options=BBOX
    ),
    "a point is text": Bad(
        shaped("polygon", all_points_x=[1, "2", 3], all_points_y=[1, 2, 3]),
        'all_points[1] is "2"',
        options=BBOX,
    ),
    "no radius": Bad(shaped("circle", cx=1, cy=1), "r is missing", options=BBOX),
    "a negative radius": Bad(shaped("circle", cx=9, cy=9, r=-2), "r -2 is negative", options=BBOX),
    "no attributes": Bad(
        changed(TRUTH, *AT, without="region_attributes"), f"{FIRST}: region_attributes is missing"
    ),
    "two attributes": Bad(
        changed(TRUTH, *ATTRIBUTES, "x", to="1"), "several attributes: 'kind', 'x'"
    ),
    "no option": Bad(changed(TRUTH, *ATTRIBUTES, "kind", to={}), f"{FIRST}: kind has 0 options"),
    "two options": Bad(
        changed(TRUTH, *ATTRIBUTES, "kind", to={"a": True, "b": True}), "kind has 2 options set"
    ),
    "no such attribute": Bad(TRUTH, "breed is missing", options=("--class-attribute", "breed")),
    "no column": Bad(CSV.replace("region_id", "id"), "line 1: has no column region_id"),
    "a missing row": Bad(f"{HEADER}\n{row('a.jpg', 2, 0, REGIONS[0])}", "'a.jpg' is '2', rows: 1"),
    "a count of text": Bad(f"{HEADER}\n{row('a.jpg', 'x', 0)}", "region_count of 'a.jpg' is 'x'"),
    "no JSON in a cell": Bad(CSV.replace('{""kind', "{kind", 1), "region_attributes of line 2 is"),
    "a short row": Bad(f"{CSV}a.jpg,7\n", "line 5: has 2 columns, expected 7"),
    "NaN in a cell": Bad(CSV.replace('""x"": 1', '""x"": NaN'), "line 2: x is NaN"),
    "an image twice in CSV": Bad(
        CSV + row("b.png", 0, 0).replace(",7,", ",9,"), "'b.png' (also at"
    ),
}


# --- VIA 3


VIA_3: dict[str, Any] = {
    "project": {"pid": "__VIA_PROJECT_ID__", "pname": "pets", "data_format_version": "3.1.1"},
    "config": {"file": {"loc_prefix": {"1": ""}}},
    "attribute": {
        "1": {"aname": "kind", "anchor_id": "FILE1_Z0_XY1", "type": 2, "options": {"0": "dog"}}
    },
    "file": {
        "1": {"fid": "1", "fname": "a.jpg", "type": 2, "loc": 1, "src": ""},
        "2": {"fid": "2", "fname": "b.jpg", "type": 2, "loc": 1, "src": ""},
    },
    "metadata": {
        "1_x": {"vid": "1", "flg": 0, "z": [], "xy": [2, 1, 2, 10.5, 20], "av": {"1": "0"}},
        "1_y": {"vid": "1", "flg": 0, "z": [], "xy": [2, 20, 5, 10, 10], "av": {"1": "cat"}},
        "1_z": {"vid": "1", "flg": 0, "z": [0.5, 2], "xy": [], "av": {"1": "0"}},
    },
    "view": {"1": {"fid_list": ["1"]}, "2": {"fid_list": ["2"]}},
}


def valid_3(folder: Path) -> Path:
    return write(folder / "via.json", VIA_3)


SHAPES = {
    "extreme points": ([8, 20, 8, 25, 5, 30, 9, 22, 15], ()),
    "circle": ([3, 25, 10, 5], ("bbox",)),
    "ellipse": ([4, 25, 10, 5, 5], ("bbox",)),
    "polygon": ([7, 20, 5, 30, 5, 25, 15], ("bbox",)),
}


def read(folder: Path, content: Any, **options: Any) -> detap.GroundTruth:
    return detap.read_ground_truth(write(folder / "via.json", content), **options)


@pytest.mark.parametrize("name", SHAPES)
def test_other_shapes(name: str, tmp_path: Path) -> None:
    shape, options = SHAPES[name]
    content = changed(VIA_3, "metadata", "1_y", "xy", to=shape)
    if options:
        with pytest.raises(InputError, match=r'metadata\["1_y"\]: is .*, not a box; pass shapes='):
            read(tmp_path, content)
    truth = read(tmp_path, content, **dict.fromkeys(("shapes",) if options else (), "bbox"))
    assert truth.corners[1].tolist() == [*CAT]


def test_a_shape_in_part_of_a_video_is_skipped(tmp_path: Path) -> None:
    truth = read(tmp_path, changed(VIA_3, "metadata", "1_y", "z", to=[0.5]))
    assert len(truth) == 1
    assert {note.code: note.count for note in truth.notes}["tags-skipped"] == 2


def test_a_line_encloses_nothing(tmp_path: Path) -> None:
    truth = read(tmp_path, changed(VIA_3, "metadata", "1_y", "xy", to=[5, 1, 2, 3, 4]))
    assert len(truth) == 1
    assert {note.code: note.count for note in truth.notes}["tags-skipped"] == 2


def test_the_class_is_one_of_several_attributes(tmp_path: Path) -> None:
    content = changed(VIA_3, "metadata", "1_x", "av", to={"1": "0", "2": "young"})
    with pytest.raises(InputError, match="several attributes: '2', 'kind'; choose that of"):
        read(tmp_path, content)
    assert read(tmp_path, content, class_attribute="kind").classes == ("cat", "dog")


VIEW = 'metadata["1_x"]'
BAD_3 = {
    "view": (
        ("metadata", "1_x", "vid"),
        "9",
        f'{VIEW}: vid is "9"; expected the key of a view',
    ),
    "file": (("view", "1", "fid_list"), ["9"], f'{VIEW}: its view has the files ["9"]'),
    "three numbers": (("metadata", "1_x", "xy"), [2, 1, 2, 3], f"{VIEW}: xy has 3 numbers"),
    "odd points": (("metadata", "1_x", "xy"), [7, 1, 2, 3], f"{VIEW}: xy has 3 coordinates"),
    "text": (("metadata", "1_x", "xy"), [2, "1", 2, 3, 4], f'{VIEW}: xy[1] is "1"'),
    "options": (
        ("metadata", "1_x", "av"),
        {"1": "0,1"},
        f"{VIEW}: kind has 2 options set; set exactly one",
    ),
    "metadata": (("metadata", "1_x"), 3, "is 3; expected VIA's annotations"),
    "no name": (("file", "2", "fname"), None, 'file "2": image name is missing'),
}


@pytest.mark.parametrize("name", BAD_3)
def test_invalid_input_of_via_3(name: str, tmp_path: Path) -> None:
    keys, value, message = BAD_3[name]
    content = changed(VIA_3, "attribute", "1", "options", to={"0": "dog", "1": "fox"})
    with pytest.raises(InputError) as caught:
        read(tmp_path, changed(content, *keys, to=value))
    assert f"via.json: {message}" in str(caught.value)
