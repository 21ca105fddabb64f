"""VIA 3's project: valid and invalid input."""

from pathlib import Path
from typing import Any

import pytest

import detap
from detap.errors import InputError
from tests.formats.exports import CAT, DOG, RESULTS, changed, write

PROJECT: dict[str, Any] = {
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
SHAPES = {
    "extreme points": ([8, 20, 8, 25, 5, 30, 9, 22, 15], ()),
    "circle": ([3, 25, 10, 5], ("bbox",)),
    "ellipse": ([4, 25, 10, 5, 5], ("bbox",)),
    "polygon": ([7, 20, 5, 30, 5, 25, 15], ("bbox",)),
}


def read(folder: Path, content: Any, **options: Any) -> detap.GroundTruth:
    return detap.read_ground_truth(write(folder / "via.json", content), **options)


def test_shapes_of_images(tmp_path: Path) -> None:
    """An attribute has the number of an option, or a text."""
    truth = read(tmp_path, PROJECT)
    assert truth.format == "via"
    assert truth.images == ("a", "b")
    assert [truth.classes[k] for k in truth.label] == ["dog", "cat"]
    assert truth.corners.tolist() == [[*DOG], [*CAT]]
    assert {note.code: note.count for note in truth.notes}["tags-skipped"] == 1
    results = detap.read_detections(write(tmp_path / "dt.json", RESULTS), truth)
    assert detap.evaluate(truth, results, "coco").summary["AP"] == pytest.approx(1)


@pytest.mark.parametrize("name", SHAPES)
def test_other_shapes(name: str, tmp_path: Path) -> None:
    shape, options = SHAPES[name]
    content = changed(PROJECT, "metadata", "1_y", "xy", to=shape)
    if options:
        with pytest.raises(InputError, match=r'metadata\["1_y"\]: is .*, not a box; pass shapes='):
            read(tmp_path, content)
    truth = read(tmp_path, content, **dict.fromkeys(("shapes",) if options else (), "bbox"))
    assert truth.corners[1].tolist() == [*CAT]


def test_a_line_encloses_nothing(tmp_path: Path) -> None:
    truth = read(tmp_path, changed(PROJECT, "metadata", "1_y", "xy", to=[5, 1, 2, 3, 4]))
    assert len(truth) == 1
    assert {note.code: note.count for note in truth.notes}["tags-skipped"] == 2


def test_the_class_is_one_of_several_attributes(tmp_path: Path) -> None:
    content = changed(PROJECT, "metadata", "1_x", "av", to={"1": "0", "2": "young"})
    with pytest.raises(InputError, match="several attributes: '2', 'kind'; choose that of"):
        read(tmp_path, content)
    assert read(tmp_path, content, class_attribute="kind").classes == ("cat", "dog")


FIRST = 'metadata["1_x"]'
BAD = {
    "view": (("metadata", "1_x", "vid"), "9", f'{FIRST}: vid is "9"; expected the key of a view'),
    "file": (("view", "1", "fid_list"), ["9"], f'{FIRST}: its view has the files ["9"]'),
    "three numbers": (("metadata", "1_x", "xy"), [2, 1, 2, 3], f"{FIRST}: xy has 3 numbers"),
    "odd points": (("metadata", "1_x", "xy"), [7, 1, 2, 3], f"{FIRST}: xy has 3 coordinates"),
    "text": (("metadata", "1_x", "xy"), [2, "1", 2, 3, 4], f'{FIRST}: xy[1] is "1"'),
    "options": (
        ("metadata", "1_x", "av"),
        {"1": "0,1"},
        f"{FIRST}: kind has 2 options set; set exactly one",
    ),
    "metadata": (("metadata", "1_x"), 3, "is 3; expected VIA's annotations"),
    "no name": (("file", "2", "fname"), None, 'file "2": image name is missing'),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_input(name: str, tmp_path: Path) -> None:
    keys, value, message = BAD[name]
    content = changed(PROJECT, "attribute", "1", "options", to={"0": "dog", "1": "fox"})
    with pytest.raises(InputError) as caught:
        read(tmp_path, changed(content, *keys, to=value))
    assert f"via.json: {message}" in str(caught.value)
